//! How far a group is behind, in records and in time.
//!
//! The lag of a partition is the distance from the committed offset, or the start of the log if that was passed by retention or
//! deletion, to the end: the high watermark, or for readers of committed data the last stable offset. Like Kafka's own it is a
//! distance of offsets: what compaction removed in between counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::description::{GroupDescription, Member};
use super::positions::{Position, Span, first_timestamps, offsets};
use super::{Isolation, TopicPartition, offsets::committed};
use crate::error::ClientError;
use crate::router::Client;

/// One partition of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionLag {
    pub topic: String,
    pub partition: i32,
    /// `None`: nothing was committed.
    pub committed: Option<i64>,
    /// `None` when the partition does not exist any more, or has no leader.
    pub start: Option<i64>,
    pub end: Option<i64>,
    /// Records; `None` without a commit.
    pub lag: Option<i64>,
    /// How long ago the first record that is not consumed was written, in milliseconds; 0 when there is none.
    pub lag_ms: Option<i64>,
    /// The member that the partition is assigned to. In a streams group: the one that runs the active task.
    pub member_id: Option<String>,
    pub instance_id: Option<String>,
    pub client_id: Option<String>,
    pub host: Option<String>,
}

impl PartitionLag {
    pub fn at(&self) -> TopicPartition {
        TopicPartition::new(&self.topic, self.partition)
    }
}

/// A sum over partitions: of a topic or of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Total {
    pub partitions: usize,
    /// Records, over the partitions that have a commit; `None` if none has.
    pub lag: Option<i64>,
    /// The largest of them.
    pub lag_ms: Option<i64>,
}

impl Total {
    pub fn of<'a>(partitions: impl IntoIterator<Item = &'a PartitionLag>) -> Total {
        let mut total = Total::default();
        for partition in partitions {
            total.partitions += 1;
            total.lag = match (total.lag, partition.lag) {
                (Some(sum), Some(lag)) => Some(sum.saturating_add(lag)),
                (sum, lag) => sum.or(lag),
            };
            total.lag_ms = total.lag_ms.max(partition.lag_ms);
        }
        total
    }
}

/// All partitions that the group has committed or is assigned, by topic and number. `group` tells who has which.
pub async fn of_group(
    client: &mut Client,
    group_id: &str,
    group: Option<&GroupDescription>,
    isolation: Isolation,
) -> Result<Vec<PartitionLag>, ClientError> {
    let committed = committed(client, group_id).await?;
    let owners = group.map(owners).unwrap_or_default();
    let mut all: BTreeSet<TopicPartition> = committed.keys().cloned().collect();
    let assigned: Vec<&TopicPartition> = owners.keys().filter(|at| !all.contains(*at)).collect();
    all.extend(assigned.into_iter().cloned());
    let at = |position| all.iter().map(|at| (at.clone(), position)).collect::<BTreeMap<_, _>>();
    let starts = offsets(client, &at(Position::Earliest), Isolation::ReadUncommitted).await?;
    let ends = offsets(client, &at(Position::Latest), isolation).await?;
    let known = |offsets: &BTreeMap<_, Result<Option<i64>, _>>, at| match offsets.get(at) {
        Some(Ok(offset)) => *offset,
        _ => None,
    };
    let mut rows = Vec::new();
    let mut behind = BTreeMap::new();
    for at in &all {
        let (start, end) = (known(&starts, at), known(&ends, at));
        let committed = committed.get(at).copied();
        let from = committed.map(|committed| committed.max(start.unwrap_or(0)));
        let lag = from.zip(end).map(|(from, end)| (end - from).max(0));
        if let (Some(from), Some(until), true) = (from, end, lag.is_some_and(|lag| lag > 0)) {
            behind.insert(at.clone(), Span { from, until });
        }
        let owner = owners.get(at);
        rows.push(PartitionLag {
            topic: at.topic.clone(),
            partition: at.partition,
            committed,
            start,
            end,
            lag,
            lag_ms: lag.filter(|lag| *lag == 0),
            member_id: owner.map(|member| member.member_id.clone()),
            instance_id: owner.and_then(|member| member.instance_id.clone()),
            client_id: owner.map(|member| member.client_id.clone()),
            host: owner.map(|member| member.host.clone()),
        });
    }
    let timestamps = first_timestamps(client, &behind, isolation).await?;
    let now = now_ms();
    for row in &mut rows {
        let at = row.at();
        if let Some(timestamp) = timestamps.get(&at) {
            // A record without a timestamp has no age.
            row.lag_ms = (*timestamp >= 0).then(|| (now - timestamp).max(0));
        } else if behind.contains_key(&at) {
            // Nothing but markers, or what was aborted or compacted: there is no record to be late for, unless it was not found.
            row.lag_ms = None;
        }
    }
    Ok(rows)
}

/// Who has which partition. In a streams group the source topics of a subtopology are read by the active task of the same
/// number.
fn owners(group: &GroupDescription) -> BTreeMap<TopicPartition, &Member> {
    let mut owners = BTreeMap::new();
    let subtopologies = group.streams.iter().flat_map(|streams| &streams.subtopologies);
    let sources: BTreeMap<&str, Vec<&String>> = subtopologies
        .map(|sub| (sub.id.as_str(), sub.source_topics.iter().chain(&sub.repartition_source_topics).collect()))
        .collect();
    for member in &group.members {
        owners.extend(member.assignment.iter().map(|at| (at.clone(), member)));
        for task in member.streams.iter().flat_map(|streams| &streams.tasks.active) {
            for topic in sources.get(task.subtopology.as_str()).into_iter().flatten() {
                owners.insert(TopicPartition::new(topic, task.partition), member);
            }
        }
    }
    owners
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
