//! ListOffsets (2): offsets by time, and the ends of a log (L-1 to L-4).

use std::collections::HashSet;

use log::{Isolation, PartitionLog, StorageError, TimestampOffset};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest};
use wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{Partitions, check_leader_epoch};

/// Special timestamps, and the version each appeared in (L-1).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ListOffsetsRequest,
) -> Result<Handled<ListOffsetsResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let isolation = match (request.replica_id, request.isolation_level) {
        (-2, _) => Isolation::LogEnd,
        (_, 1) => Isolation::LastStable,
        _ => Isolation::HighWatermark,
    };
    let twice = listed_twice(&request);
    let topics = request.topics.into_iter().map(|topic| {
        let answers = topic.partitions.iter().map(|wanted| {
            if twice.contains(&(topic.name.clone(), wanted.partition_index)) {
                return failed(wanted.partition_index, ErrorCode::InvalidRequest.code());
            }
            let found = partitions.by_name(&topic.name, wanted.partition_index);
            let checked = found.and_then(|log| check_leader_epoch(&log, wanted.current_leader_epoch).map(|()| log));
            match checked {
                Ok(log) => look_up(&log, wanted, cx.api_version, isolation),
                Err(error) => failed(wanted.partition_index, error.code()),
            }
        });
        ListOffsetsTopicResponse { partitions: answers.collect(), name: topic.name }
    });
    Ok(ListOffsetsResponse { topics: topics.collect(), ..Default::default() }.into())
}

/// L-4: a partition that is listed twice is refused, each time.
fn listed_twice(request: &ListOffsetsRequest) -> HashSet<(KStr, i32)> {
    let mut seen = HashSet::new();
    let all = request.topics.iter().flat_map(|t| t.partitions.iter().map(|p| (t.name.clone(), p.partition_index)));
    all.filter(|partition| !seen.insert(partition.clone())).collect()
}

fn look_up(
    log: &PartitionLog,
    wanted: &ListOffsetsPartition,
    version: i16,
    isolation: Isolation,
) -> ListOffsetsPartitionResponse {
    let partition = wanted.partition_index;
    let found = match wanted.timestamp {
        LATEST => end(log, isolation).and_then(|offset| edge(log, offset)),
        EARLIEST => start(log),
        EARLIEST_LOCAL if version >= 8 => start(log),
        MAX_TIMESTAMP if version >= 7 => log.offset_of_max_timestamp(isolation),
        // Without tiered storage there is nothing of the kind.
        LATEST_TIERED if version >= 9 => Ok(None),
        EARLIEST_PENDING_UPLOAD if version >= 11 => Ok(None),
        timestamp if timestamp >= 0 => log.offset_for_timestamp(timestamp, isolation),
        _ => return failed(partition, ErrorCode::UnsupportedVersion.code()),
    };
    match found {
        Ok(found) => answer(partition, found),
        Err(error) => failed(partition, error.code()),
    }
}

///
fn end(log: &PartitionLog, isolation: Isolation) -> Result<i64, StorageError> {
    let offsets = log.offsets()?;
    Ok(match isolation {
        Isolation::LogEnd => offsets.log_end,
        Isolation::LastStable => offsets.last_stable,
        Isolation::HighWatermark => offsets.high_watermark,
    })
}

fn start(log: &PartitionLog) -> Result<Option<TimestampOffset>, StorageError> {
    edge(log, log.offsets()?.log_start)
}

/// L-3: the ends have no timestamp, but the epoch of their offset.
fn edge(log: &PartitionLog, offset: i64) -> Result<Option<TimestampOffset>, StorageError> {
    Ok(Some(TimestampOffset { offset, timestamp: -1, leader_epoch: log.epoch_of(offset)? }))
}

fn answer(partition_index: i32, found: Option<TimestampOffset>) -> ListOffsetsPartitionResponse {
    let found = found.unwrap_or(TimestampOffset { offset: -1, timestamp: -1, leader_epoch: -1 });
    ListOffsetsPartitionResponse {
        partition_index,
        error_code: 0,
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: found.leader_epoch,
    }
}

fn failed(partition_index: i32, error_code: i16) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse { partition_index, error_code, timestamp: -1, offset: -1, leader_epoch: -1 }
}
