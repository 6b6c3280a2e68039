//! ListOffsets (2): offsets by time, and the ends of a log (L-1 to L-4).

use std::collections::HashSet;

use log::{Isolation, PartitionLog, StorageError, TimestampOffset};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest};
use wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{Commit, Partitions, check_leader_epoch};

/// Special timestamps, and the version each appeared in (L-1).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// Earlier versions have no leader epoch in the answer.
const LEADER_EPOCH_FROM: i16 = 4;

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
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let begin = |wanted: &ListOffsetsPartition| {
            if twice.contains(&(topic.name.clone(), wanted.partition_index)) {
                return Err(ErrorCode::InvalidRequest.code());
            }
            if cx.api_version < known_from(wanted.timestamp) {
                return Err(ErrorCode::UnsupportedVersion.code());
            }
            let log = partitions.by_name(&topic.name, wanted.partition_index).map_err(ErrorCode::code)?;
            check_leader_epoch(&log, wanted.current_leader_epoch).map_err(ErrorCode::code)?;
            let commit = match wanted.timestamp {
                EARLIEST | EARLIEST_LOCAL => None,
                _ if isolation == Isolation::LogEnd => None,
                _ => Some(Commit::of(&log).map_err(|error| error.code())?),
            };
            Ok((log, commit))
        };
        let begun: Vec<_> = topic.partitions.iter().map(begin).collect();
        let mut answers = Vec::with_capacity(begun.len());
        for (wanted, begun) in topic.partitions.iter().zip(begun) {
            let found = match begun {
                Ok((log, commit)) => find(&log, commit, wanted, isolation).await,
                Err(error_code) => Err(error_code),
            };
            answers.push(answer(wanted.partition_index, found, cx.api_version));
        }
        topics.push(ListOffsetsTopicResponse { partitions: answers, name: topic.name });
    }
    Ok(ListOffsetsResponse { topics, ..Default::default() }.into())
}

/// L-4: a partition that is listed twice is refused, each time.
fn listed_twice(request: &ListOffsetsRequest) -> HashSet<(KStr, i32)> {
    let mut seen = HashSet::new();
    let all = request.topics.iter().flat_map(|t| t.partitions.iter().map(|p| (t.name.clone(), p.partition_index)));
    all.filter(|partition| !seen.insert(partition.clone())).collect()
}

async fn find(
    log: &PartitionLog,
    commit: Option<Commit>,
    wanted: &ListOffsetsPartition,
    isolation: Isolation,
) -> Result<Option<TimestampOffset>, i16> {
    if let Some(commit) = commit {
        commit.done().await.map_err(|error| error.code())?;
    }
    let found = match wanted.timestamp {
        LATEST => end(log, isolation).and_then(|offset| edge(log, offset)),
        EARLIEST | EARLIEST_LOCAL => start(log),
        MAX_TIMESTAMP => log.offset_of_max_timestamp(isolation),
        // Without tiered storage there is nothing of the kind.
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(None),
        timestamp => log.offset_for_timestamp(timestamp, isolation),
    };
    found.map_err(|error| error.code())
}

/// The version of the request in which a timestamp got its meaning (L-1).
fn known_from(timestamp: i64) -> i16 {
    match timestamp {
        EARLIEST_LOCAL => 8,
        MAX_TIMESTAMP => 7,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        LATEST | EARLIEST | 0.. => 0,
        _ => i16::MAX,
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

fn answer(
    partition_index: i32,
    found: Result<Option<TimestampOffset>, i16>,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let (found, error_code) = match found {
        Ok(found) => (found, 0),
        Err(error_code) => (None, error_code),
    };
    let found = found.unwrap_or(TimestampOffset { offset: -1, timestamp: -1, leader_epoch: -1 });
    ListOffsetsPartitionResponse {
        partition_index,
        error_code,
        timestamp: found.timestamp,
        offset: found.offset,
        leader_epoch: if version >= LEADER_EPOCH_FROM { found.leader_epoch } else { -1 },
    }
}
