//! How far a group is behind, in records and in time. The broker has both sides: what was committed, and the log.
//!
//! The end of a partition is its last stable offset: what a reader of committed records can get. An offset that lies
//! before the start of the log counts from the start; one that lies beyond the end has no lag. Records are counted as
//! offsets, as all tools do, so end markers and records that compaction removed count too.

use std::sync::Arc;

use coordinator::{Caller, Command, Reply};
use log::{Isolation, PartitionLog, ReadParams};
use wire::KStr;
use wire::batch::{Batch, Compression};
use wire::messages::offset_fetch_request::OffsetFetchRequestGroup;

use crate::broker::Broker;

/// One committed partition of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartitionLag {
    pub topic: KStr,
    pub partition: i32,
    pub committed: i64,
    /// Last stable offset; none if the partition does not exist (any more).
    pub end: Option<i64>,
    /// Records between the two; none if there is no end.
    pub records: Option<i64>,
    /// Age of the first record that was not consumed, in milliseconds; 0 without lag, none if it cannot be told.
    pub age_ms: Option<i64>,
}

/// Lag of every partition for which the group has committed, in order of topic and partition. `None` if the group cannot be
/// asked now. Ages cost a look into the log for each partition that lags, so they are found only if asked for.
pub(crate) async fn of_group(broker: &Arc<Broker>, group_id: &KStr, with_age: bool) -> Option<Vec<PartitionLag>> {
    let caller = Caller { client_id: KStr::EMPTY, client_host: KStr::EMPTY, api_version: 10 };
    let asked = OffsetFetchRequestGroup { group_id: group_id.clone(), topics: None, ..Default::default() };
    let command = Command::OffsetFetch { caller, group: Box::new(asked), require_stable: false };
    let Ok(Reply::OffsetFetch(reply)) = broker.groups.call(group_id, command).await else { return None };
    let mut committed = Vec::new();
    for topic in reply.topics {
        for partition in topic.partitions.iter().filter(|partition| partition.committed_offset >= 0) {
            let log = broker.topics.partition(&topic.name, partition.partition_index);
            committed.push((topic.name.clone(), partition.partition_index, partition.committed_offset, log));
        }
    }
    let now_ms = with_age.then(|| broker.clock.wall_ms());
    // Ages may have to be read from files.
    let work = move || {
        let lags =
            committed.into_iter().map(|(topic, partition, offset, log)| lag(topic, partition, offset, log, now_ms));
        let mut lags: Vec<_> = lags.collect();
        lags.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        lags
    };
    if with_age { tokio::task::spawn_blocking(work).await.ok() } else { Some(work()) }
}

fn lag(
    topic: KStr,
    partition: i32,
    committed: i64,
    log: Option<Arc<PartitionLog>>,
    now_ms: Option<i64>,
) -> PartitionLag {
    let offsets = log.as_ref().and_then(|log| log.offsets().ok());
    let end = offsets.map(|offsets| offsets.last_stable);
    let next = offsets.map_or(committed, |offsets| committed.max(offsets.log_start));
    let records = end.map(|end| (end - next).max(0));
    let age_ms = match (records, now_ms) {
        (Some(0), Some(_)) => Some(0),
        (Some(_), Some(now_ms)) => log.and_then(|log| timestamp_of(&log, next)).map(|then| (now_ms - then).max(0)),
        _ => None,
    };
    PartitionLag { topic, partition, committed, end, records, age_ms }
}

/// Timestamp of the first record at or after an offset.
fn timestamp_of(log: &PartitionLog, offset: i64) -> Option<i64> {
    let params =
        ReadParams { from_offset: offset, max_bytes: 1, isolation: Isolation::LastStable, min_one_batch: true };
    let read = log.read(&params).ok()?;
    let batch = Batch::iter(read.records.first()?).next()?.ok()?;
    let header = batch.header();
    // A batch is not decompressed for this: its first record is as good an answer, to within one batch.
    let timestamp = if header.attributes.compression() == Ok(Compression::None) {
        let mut records = batch.records().ok()?;
        let record = records.find_map(|record| record.ok().filter(|record| record.offset >= offset));
        record.map_or(header.max_timestamp, |record| record.timestamp)
    } else {
        header.base_timestamp
    };
    Some(timestamp).filter(|timestamp| *timestamp >= 0)
}
