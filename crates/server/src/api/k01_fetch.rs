//! Fetch (1): records from an offset on, at once or when they come (F-1 to F-16).

use std::sync::Arc;
use std::time::{Duration, Instant};

use log::{FetchData, Isolation, PartitionLog, ReadError, ReadParams};
use wire::messages::fetch_request::FetchRequest;
use wire::messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchResponse, FetchableTopicResponse, PartitionData,
};
use wire::{Bytes, ErrorCode, Payload, Remote, Uuid};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{FetchPlan, Partitions, PlannedPartition, Seen, check_leader_epoch};

/// Answers of sessions leave out what did not change; this is what is known of one partition after reading.
struct Read {
    data: PartitionData,
    size: usize,
}

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: FetchRequest,
) -> Result<Handled<FetchResponse>, HandlerError> {
    let broker = cx.broker;
    let image = broker.topics.image();
    let names = |id: &Uuid| image.name_of(id).cloned();
    let plan = match broker.fetch_sessions.plan(&request, cx.api_version, Instant::now(), names) {
        Ok(plan) => plan,
        Err(error) => return Ok(FetchResponse { error_code: error.code(), ..Default::default() }.into()),
    };
    let limits = Limits::of(cx, &request);
    let deadline = Instant::now() + Duration::from_millis(request.max_wait_ms.max(0) as u64);
    // Read first: only a fetch that really has to wait pays for a registration.
    let mut reads = read_all(cx, &plan, &limits);
    if !is_enough(&plan, &reads, &request, &limits) {
        let waiting = broker.fetch_waiters.register(partitions_of(cx, &plan));
        loop {
            reads = read_all(cx, &plan, &limits);
            if is_enough(&plan, &reads, &request, &limits) || Instant::now() >= deadline {
                break;
            }
            tokio::select! {
                () = waiting.moved() => {}
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = broker.shutdown.begun() => break,
            }
        }
    }
    Ok(respond(cx, plan, reads).into())
}

/// How much may be returned, and what may be seen.
struct Limits {
    max_bytes: usize,
    isolation: Isolation,
}

impl Limits {
    fn of(cx: &RequestContext<'_>, request: &FetchRequest) -> Limits {
        let configured = cx.broker.config.current().network.fetch_max_bytes;
        let isolation = match (request.replica_id, request.isolation_level) {
            // A debugging consumer sees all that was written.
            (-2, _) => Isolation::LogEnd,
            (_, 1) => Isolation::LastStable,
            _ => Isolation::HighWatermark,
        };
        Limits { max_bytes: request.max_bytes.min(configured).max(0) as usize, isolation }
    }
}

/// F-8: whether the answer goes out without waiting any longer.
fn is_enough(plan: &FetchPlan, reads: &[Read], request: &FetchRequest, limits: &Limits) -> bool {
    let bytes: usize = reads.iter().map(|read| read.size).sum();
    let wanted = (request.min_bytes.max(0) as usize).min(limits.max_bytes);
    let special = |read: &Read| read.data.error_code != 0 || read.data.diverging_epoch != EpochEndOffset::default();
    request.max_wait_ms <= 0 || plan.partitions.is_empty() || bytes >= wanted || reads.iter().any(special)
}

fn read_all(cx: &RequestContext<'_>, plan: &FetchPlan, limits: &Limits) -> Vec<Read> {
    let partitions = Partitions::now(cx.broker);
    let mut left = limits.max_bytes;
    let mut first = true;
    let reads = plan.partitions.iter().map(|wanted| {
        let read = read_one(&partitions, wanted, left, first, limits.isolation);
        left = left.saturating_sub(read.size);
        first &= read.size == 0;
        read
    });
    reads.collect()
}

fn read_one(
    partitions: &Partitions<'_>,
    wanted: &PlannedPartition,
    left: usize,
    first: bool,
    isolation: Isolation,
) -> Read {
    let (key, planned) = (&wanted.key, &wanted.planned);
    let found =
        partitions.planned(wanted).and_then(|log| check_leader_epoch(&log, planned.current_leader_epoch).map(|()| log));
    let log = match found {
        Ok(log) => log,
        // F-2: an empty list, where errors of the read path have none.
        Err(error @ (ErrorCode::UnknownTopicId | ErrorCode::UnknownTopicOrPartition)) => {
            return failed(key.partition, error.code(), Some(Vec::new()));
        }
        Err(error) => return failed(key.partition, error.code(), None),
    };
    match diverges(&log, planned.last_fetched_epoch, planned.fetch_offset) {
        Ok(None) => {}
        Ok(Some(diverging)) => return diverged(&log, key.partition, diverging),
        Err(error) => return failed(key.partition, error, None),
    }
    let params = ReadParams {
        from_offset: planned.fetch_offset,
        max_bytes: left.min(planned.max_bytes.max(0) as usize),
        isolation,
        min_one_batch: first,
    };
    match log.read_to_send(&params) {
        Ok(data) => delivered(key.partition, data),
        Err(error) => {
            if let ReadError::Storage(error) = &error {
                tracing::error!("{}: a fetch at {} failed: {error}", log.topic_partition(), planned.fetch_offset);
            }
            failed(key.partition, error.code(), None)
        }
    }
}

/// F-5: the epoch of the last record that the client has, compared with ours.
fn diverges(log: &PartitionLog, last_epoch: i32, fetch_offset: i64) -> Result<Option<EpochEndOffset>, i16> {
    if last_epoch < 0 {
        return Ok(None);
    }
    match log.end_offset_for_epoch(last_epoch) {
        Ok(None) => Err(ErrorCode::OffsetOutOfRange.code()),
        Ok(Some((epoch, end_offset))) => {
            let same = epoch == last_epoch && fetch_offset <= end_offset;
            Ok((!same).then_some(EpochEndOffset { epoch, end_offset }))
        }
        Err(error) => Err(error.code()),
    }
}

fn diverged(log: &PartitionLog, partition: i32, diverging_epoch: EpochEndOffset) -> Read {
    let offsets = log.offsets();
    let (high_watermark, last_stable_offset, log_start_offset) =
        offsets.map_or((-1, -1, -1), |o| (o.high_watermark, o.last_stable, o.log_start));
    let data = PartitionData {
        partition_index: partition,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        diverging_epoch,
        records: Some(Payload::default()),
        ..Default::default()
    };
    Read { data, size: 0 }
}

fn delivered(partition: i32, data: FetchData) -> Read {
    let aborted = data.aborted_transactions.map(|aborted| {
        let entry = |a: log::AbortedTransaction| AbortedTransaction {
            producer_id: a.producer_id,
            first_offset: a.first_offset,
        };
        aborted.into_iter().map(entry).collect()
    });
    let records = match data.file {
        Some(range) => Payload::Remote(Remote::new(range.len(), Arc::new(range))),
        None => joined(data.records, data.size).into(),
    };
    let answer = PartitionData {
        partition_index: partition,
        high_watermark: data.high_watermark,
        last_stable_offset: data.last_stable_offset,
        log_start_offset: data.log_start_offset,
        aborted_transactions: aborted,
        records: Some(records),
        ..Default::default()
    };
    Read { data: answer, size: data.size }
}

/// F-4: nothing is known of a partition that answers with an error.
fn failed(partition: i32, error_code: i16, aborted_transactions: Option<Vec<AbortedTransaction>>) -> Read {
    let data = PartitionData {
        partition_index: partition,
        error_code,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        aborted_transactions,
        records: Some(Payload::default()),
        ..Default::default()
    };
    Read { data, size: 0 }
}

/// The records field is one run of bytes; a single piece, which is the usual case, is not copied.
fn joined(mut pieces: Vec<Bytes>, size: usize) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut whole = Vec::with_capacity(size);
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.into()
}

fn partitions_of(cx: &RequestContext<'_>, plan: &FetchPlan) -> Vec<log::TopicPartition> {
    let partitions = Partitions::now(cx.broker);
    let found = plan.partitions.iter().filter_map(|wanted| partitions.planned(wanted).ok());
    found.map(|log| log.topic_partition().clone()).collect()
}

/// F-13: a full answer lists every partition, an incremental one those with news.
fn respond(cx: &RequestContext<'_>, plan: FetchPlan, reads: Vec<Read>) -> FetchResponse {
    let mut response = FetchResponse { session_id: plan.session_id, ..Default::default() };
    let mut told = Vec::new();
    for (wanted, Read { data, size }) in plan.partitions.into_iter().zip(reads) {
        let seen = Seen { high_watermark: data.high_watermark, log_start_offset: data.log_start_offset };
        let news = size > 0
            || data.error_code != 0
            || data.diverging_epoch != EpochEndOffset::default()
            || seen != wanted.seen;
        if plan.incremental && !news {
            continue;
        }
        if plan.session_id != 0 {
            told.push((wanted.key.clone(), seen, size > 0));
        }
        match response.responses.last_mut() {
            Some(last) if last.topic == wanted.key.topic && last.topic_id == wanted.key.topic_id => {
                last.partitions.push(data);
            }
            _ => response.responses.push(FetchableTopicResponse {
                topic: wanted.key.topic,
                topic_id: wanted.key.topic_id,
                partitions: vec![data],
            }),
        }
    }
    if !told.is_empty() {
        cx.broker.fetch_sessions.answered(plan.session_id, told);
    }
    response
}
