//! A partition of `__consumer_offsets` or `__transaction_state` as the log of a shard.
//!
//! Batches carry the attributes that Kafka's coordinator gives them: create time, no compression, and producer id and
//! epoch only inside a transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coordinator::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};
use log::{AppendError, AppendParams, Isolation, PartitionLog, ReadParams, StorageError, TxnProtocol};
use wire::batch::{Batch, BatchBuilder, ControlType, control_batch, parse_control_key};

/// Bytes read at once while loading.
const LOAD_BYTES: usize = 1 << 20;

/// See the module. `committed` is shared with whoever is told of the log's progress.
pub(crate) struct PartitionStateLog {
    log: Arc<PartitionLog>,
    committed: Arc<Committed>,
}

/// How far the log is committed, so that nobody needs the log's lock to know.
#[derive(Debug, Default)]
pub(crate) struct Committed(AtomicU64);

impl Committed {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Looks at the log. True if it has moved.
    pub fn refresh(&self, log: &PartitionLog) -> bool {
        match log.offsets() {
            Ok(offsets) => {
                let committed = offsets.high_watermark.max(0) as u64;
                self.0.fetch_max(committed, Ordering::AcqRel) < committed
            }
            // The log's owner is told that it failed in another way.
            Err(_) => false,
        }
    }
}

impl PartitionStateLog {
    pub fn new(log: Arc<PartitionLog>, committed: Arc<Committed>) -> Self {
        PartitionStateLog { log, committed }
    }

    fn append_bytes(&mut self, expected_end: u64, params: AppendParams, batch: &Bytes) -> Result<u64, LogError> {
        let params = AppendParams { expected_end: Some(offset(expected_end)?), ..params };
        let info = self.log.append(&params, batch).map_err(append_error)?;
        // Under a lazy flush policy this is committed already.
        self.committed.refresh(&self.log);
        Ok(info.next_offset() as u64)
    }
}

impl StateLog for PartitionStateLog {
    fn load(&mut self, each: &mut dyn FnMut(LogEntry)) -> Result<(u32, u64), LogError> {
        let failed = |error: &dyn std::fmt::Display| LogError::Failed(error.to_string());
        let offsets = self.log.offsets().map_err(|error| failed(&error))?;
        let mut next = offsets.log_start;
        while next < offsets.log_end {
            let params = ReadParams {
                from_offset: next,
                max_bytes: LOAD_BYTES,
                isolation: Isolation::LogEnd,
                min_one_batch: true,
            };
            let read = self.log.read(&params).map_err(|error| failed(&error))?;
            for records in &read.records {
                each_entry(records, each)?;
            }
            if read.next_offset <= next {
                return Err(LogError::Failed(format!(
                    "nothing at offset {next}, but the log ends at {}",
                    offsets.log_end
                )));
            }
            next = read.next_offset;
        }
        self.committed.refresh(&self.log);
        Ok((self.log.leader_epoch().max(0) as u32, next.max(0) as u64))
    }

    fn append(
        &mut self,
        _term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        batch: &[RawRecord],
    ) -> Result<u64, LogError> {
        let bytes = build(timestamp_ms, producer, batch)?;
        self.append_bytes(expected_end, AppendParams::coordinator(timestamp_ms), &bytes)
    }

    fn append_marker(
        &mut self,
        _term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        marker: &EndMarker,
    ) -> Result<u64, LogError> {
        let EndMarker { producer, commit, coordinator_epoch, raises_epoch } = *marker;
        let kind = if commit { ControlType::Commit } else { ControlType::Abort };
        let bytes = control_batch(kind, producer.id, producer.epoch, coordinator_epoch, timestamp_ms)
            .map_err(|error| LogError::Failed(error.to_string()))?;
        let txn_protocol = if raises_epoch { TxnProtocol::V2 } else { TxnProtocol::V1 };
        self.append_bytes(
            expected_end,
            AppendParams { txn_protocol, ..AppendParams::coordinator(timestamp_ms) },
            &bytes,
        )
    }

    fn durable_end(&self) -> u64 {
        self.committed.get()
    }
}

/// Takes batches apart. Control batches become markers; records of a transaction keep their producer.
fn each_entry(records: &Bytes, each: &mut dyn FnMut(LogEntry)) -> Result<(), LogError> {
    let failed = |error: wire::batch::BatchError| LogError::Failed(error.to_string());
    for batch in Batch::iter(records) {
        let batch = batch.map_err(failed)?;
        let header = *batch.header();
        let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
        for record in batch.records().map_err(failed)? {
            let record = record.map_err(failed)?;
            let offset = record.offset.max(0) as u64;
            let key = record.key.unwrap_or_default();
            if header.attributes.is_control() {
                // Other control records (of Kafka's quorum) do not concern a coordinator.
                if let Some(kind) = parse_control_key(&key) {
                    each(LogEntry::Marker { offset, producer, commit: kind == ControlType::Commit });
                }
                continue;
            }
            each(LogEntry::Record {
                offset,
                timestamp_ms: record.timestamp,
                producer: header.attributes.is_transactional().then_some(producer),
                record: RawRecord { key, value: record.value },
            });
        }
    }
    Ok(())
}

fn build(timestamp_ms: i64, producer: Option<Producer>, records: &[RawRecord]) -> Result<Bytes, LogError> {
    let mut builder = BatchBuilder::new();
    if let Some(producer) = producer {
        builder = builder.producer(producer.id, producer.epoch, wire::batch::NO_SEQUENCE).transactional(true);
    }
    for record in records {
        builder.append(timestamp_ms, Some(&record.key), record.value.as_deref(), &[]);
    }
    builder.build().map_err(|_| LogError::TooLarge)
}

fn offset(end: u64) -> Result<i64, LogError> {
    i64::try_from(end).map_err(|_| LogError::Fenced)
}

fn append_error(error: AppendError) -> LogError {
    match error {
        AppendError::TooLarge { .. } | AppendError::LargerThanSegment { .. } => LogError::TooLarge,
        AppendError::Storage(StorageError::NoSpace) => LogError::NoSpace,
        AppendError::UnexpectedEnd { .. } => LogError::Fenced,
        // Refused as a whole, so nothing was written; the shard may go on.
        AppendError::InvalidProducerEpoch { .. }
        | AppendError::InvalidTxnState { .. }
        | AppendError::CoordinatorFenced { .. } => LogError::Refused(error.code()),
        error => LogError::Failed(error.to_string()),
    }
}

#[cfg(test)]
#[path = "state_log_tests.rs"]
mod tests;
