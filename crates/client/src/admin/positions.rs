//! Where partitions begin and end, and what lies between: offsets by kind or time, the timestamp of a record.

use std::collections::{BTreeMap, BTreeSet};

use wire::batch::Batch;
use wire::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use wire::{ErrorCode, KStr, Payload, Uuid};

use super::{Isolation, TopicPartition, topics};
use crate::error::ClientError;
use crate::router::Client;

/// Which offset of a partition is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    Earliest,
    /// The high watermark, or for [`Isolation::ReadCommitted`] the last stable offset.
    Latest,
    /// The first record at or after a time in milliseconds since 1970.
    AtTime(i64),
}

impl Position {
    fn timestamp(self) -> i64 {
        match self {
            Position::Latest => -1,
            Position::Earliest => -2,
            Position::AtTime(time) => time.max(0),
        }
    }
}

/// Partitions by the broker that leads them; those without a leader, or that do not exist, have an error.
struct Leaders {
    by_broker: BTreeMap<String, Vec<TopicPartition>>,
    errors: BTreeMap<TopicPartition, ErrorCode>,
    ids: BTreeMap<String, Uuid>,
}

async fn leaders(client: &mut Client, wanted: &BTreeSet<TopicPartition>) -> Result<Leaders, ClientError> {
    let names: BTreeSet<&str> = wanted.iter().map(|at| at.topic.as_str()).collect();
    let found = topics::find(client, &names.into_iter().collect::<Vec<_>>()).await?;
    let mut leaders = Leaders { by_broker: BTreeMap::new(), errors: BTreeMap::new(), ids: BTreeMap::new() };
    for at in wanted {
        let topic = found.get(&at.topic);
        let partition = topic.and_then(|topic| topic.partitions.iter().find(|p| p.partition == at.partition));
        match partition.map(|partition| partition.leader.as_ref()) {
            Some(Some(leader)) => leaders.by_broker.entry(leader.clone()).or_default().push(at.clone()),
            Some(None) => drop(leaders.errors.insert(at.clone(), ErrorCode::LeaderNotAvailable)),
            None => drop(leaders.errors.insert(at.clone(), ErrorCode::UnknownTopicOrPartition)),
        }
    }
    leaders.ids = found.values().map(|topic| (topic.name.clone(), topic.uuid())).collect();
    Ok(leaders)
}

/// The offset of each partition; `Ok(None)` if there is no record at or after the time.
pub async fn offsets(
    client: &mut Client,
    wanted: &BTreeMap<TopicPartition, Position>,
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, Result<Option<i64>, ErrorCode>>, ClientError> {
    let leaders = leaders(client, &wanted.keys().cloned().collect()).await?;
    let mut offsets: BTreeMap<_, _> = leaders.errors.into_iter().map(|(at, error)| (at, Err(error))).collect();
    for (address, partitions) in leaders.by_broker {
        let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
        for at in &partitions {
            topics.entry(&at.topic).or_default().push(ListOffsetsPartition {
                partition_index: at.partition,
                current_leader_epoch: -1,
                timestamp: wanted[at].timestamp(),
                ..Default::default()
            });
        }
        let topics = topics.into_iter().map(|(name, partitions)| ListOffsetsTopic {
            name: KStr::copy(name),
            partitions,
            ..Default::default()
        });
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: isolation.level(),
            topics: topics.collect(),
            timeout_ms: i32::try_from(client.timeout().as_millis()).unwrap_or(i32::MAX),
            ..Default::default()
        };
        let response = client.call_broker(&address, &request).await?;
        for topic in &response.topics {
            for partition in &topic.partitions {
                let offset = match ErrorCode::from_code(partition.error_code) {
                    ErrorCode::None => Ok((partition.offset >= 0).then_some(partition.offset)),
                    code => Err(code),
                };
                offsets.insert(TopicPartition::new(&topic.name, partition.partition_index), offset);
            }
        }
    }
    Ok(offsets)
}

/// Where a reader stands, and how far it could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    pub until: i64,
}

/// What is fetched of a partition at a time. A batch that is larger comes whole where it is the first of a request.
const PARTITION_BYTES: i32 = 64 << 10;
const REQUEST_BYTES: i32 = 8 << 20;
/// Rounds after which a search is given up: each skips a batch at least, and long runs of nothing to read are rare.
const ROUNDS: usize = 200;

/// The timestamp (ms) of the first record in each span that a reader would be given. What compaction took, markers and, for
/// [`Isolation::ReadCommitted`], aborted records are passed over. Partitions where none was found are left out.
pub async fn first_timestamps(
    client: &mut Client,
    spans: &BTreeMap<TopicPartition, Span>,
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
    let leaders = leaders(client, &spans.keys().cloned().collect()).await?;
    let mut found = BTreeMap::new();
    for (address, partitions) in leaders.by_broker {
        let mut open: Vec<(TopicPartition, Span)> =
            partitions.into_iter().map(|at| (at.clone(), spans[&at])).filter(|(_, s)| s.from < s.until).collect();
        for _ in 0..ROUNDS {
            if open.is_empty() {
                break;
            }
            let request = fetch_request(&open, &leaders.ids, isolation);
            let response = client.call_broker(&address, &request).await?;
            ClientError::check(response.error_code, None)?;
            let mut answers = BTreeMap::new();
            for topic in &response.responses {
                let name = match topic.topic.is_empty() {
                    true => leaders.ids.iter().find(|(_, id)| **id == topic.topic_id).map(|(name, _)| name.as_str()),
                    false => Some(topic.topic.as_str()),
                };
                let Some(name) = name else { continue };
                for data in &topic.partitions {
                    answers.insert(TopicPartition::new(name, data.partition_index), data);
                }
            }
            let mut still = Vec::new();
            let first = open.first().map(|(at, _)| at.clone());
            for (at, span) in open {
                let Some(data) = answers.get(&at) else { continue };
                match search(data, span, isolation) {
                    Search::Found(timestamp) => drop(found.insert(at, timestamp)),
                    Search::GoOn(from) if from < span.until && from > span.from => {
                        still.push((at, Span { from, ..span }));
                    }
                    // Nothing came. The first is entitled to a batch, so there is none; another may come first next.
                    Search::GoOn(from) if from < span.until && Some(&at) != first.as_ref() => {
                        still.insert(0, (at, span))
                    }
                    Search::GoOn(_) | Search::GiveUp => {}
                }
            }
            open = still;
        }
    }
    Ok(found)
}

fn fetch_request(open: &[(TopicPartition, Span)], ids: &BTreeMap<String, Uuid>, isolation: Isolation) -> FetchRequest {
    // The order is kept: who comes first gets a batch however large it is.
    let mut topics: Vec<FetchTopic> = Vec::new();
    for (at, span) in open {
        if topics.last().is_none_or(|last| *last.topic != *at.topic) {
            topics.push(FetchTopic {
                topic: KStr::copy(&at.topic),
                topic_id: ids.get(&at.topic).copied().unwrap_or(Uuid::ZERO),
                ..Default::default()
            });
        }
        let partition = FetchPartition {
            partition: at.partition,
            current_leader_epoch: -1,
            fetch_offset: span.from,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: PARTITION_BYTES,
            ..Default::default()
        };
        // One was pushed if there was none.
        if let Some(last) = topics.last_mut() {
            last.partitions.push(partition);
        }
    }
    FetchRequest {
        replica_id: -1,
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: REQUEST_BYTES,
        isolation_level: isolation.level(),
        session_id: 0,
        session_epoch: -1,
        topics,
        ..Default::default()
    }
}

enum Search {
    Found(i64),
    /// Nothing below this offset.
    GoOn(i64),
    GiveUp,
}

fn search(data: &PartitionData, span: Span, isolation: Isolation) -> Search {
    if data.error_code != 0 {
        return Search::GiveUp;
    }
    // By first offset; each is taken once, when its first batch comes, and is over at its marker.
    let mut aborted = match isolation {
        Isolation::ReadCommitted => data.aborted_transactions.clone().unwrap_or_default(),
        Isolation::ReadUncommitted => Vec::new(),
    };
    aborted.sort_by_key(|txn| std::cmp::Reverse(txn.first_offset));
    let mut next = span.from;
    let mut aborting: BTreeSet<i64> = BTreeSet::new();
    for batch in data.records.iter().filter_map(Payload::bytes).flat_map(Batch::iter) {
        // The last one may be cut off.
        let Ok(batch) = batch else { break };
        let header = *batch.header();
        let producer = header.producer_id;
        while let Some(txn) = aborted.pop_if(|txn| txn.first_offset <= header.last_offset()) {
            aborting.insert(txn.producer_id);
        }
        if header.attributes.is_control() {
            aborting.remove(&producer);
        } else if !(header.attributes.is_transactional() && aborting.contains(&producer)) {
            let Ok(records) = batch.records() else { return Search::GiveUp };
            for record in records {
                let Ok(record) = record else { return Search::GiveUp };
                if record.offset >= span.from && record.offset < span.until {
                    return Search::Found(record.timestamp);
                }
            }
        }
        next = next.max(header.next_offset());
    }
    Search::GoOn(next)
}
