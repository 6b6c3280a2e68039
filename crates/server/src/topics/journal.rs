//! The metadata log: partition 0 of `__cluster_metadata`, in the data directory beside the others.
//!
//! One append is one atomic batch. The log is kept short by appending the present state again and then letting go of what lies
//! before it: replaying a state over itself changes nothing, so a crash at any point of that is harmless.

use std::sync::{Arc, mpsc};

use log::{AppendParams, FlushPolicy, Isolation, LogConfig, LogDir, PartitionLog, ReadError, ReadParams, StorageError};
use log::{TopicId, TopicPartition};
use wire::batch::{Batch, BatchBuilder, BatchError};

use super::error::Refusal;
use super::record::{MetadataRecord, RecordError};

pub(crate) const METADATA_TOPIC: &str = "__cluster_metadata";
/// Kafka's id of that topic.
const METADATA_TOPIC_ID: TopicId = TopicId([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
const SEGMENT_BYTES: u32 = 32 << 20;
const READ_BYTES: usize = 1 << 20;
/// Records in one batch of a rewritten state.
const REWRITE_RECORDS: usize = 10_000;

/// The metadata log cannot be read, so the broker does not know what it has.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("the metadata log cannot be used: {0}")]
    Storage(#[from] StorageError),
    #[error("the metadata log cannot be read: {0}")]
    Read(#[from] ReadError),
    #[error("the metadata log is damaged at offset {offset}: {reason}")]
    Damaged { offset: i64, reason: String },
    #[error("the metadata log cannot be written: {0}")]
    Write(String),
    #[error(
        "the directory {partition} belongs to topic id {found}, but the topic has id {expected}: move it out of the way"
    )]
    Foreign { partition: String, found: TopicId, expected: TopicId },
}

pub(super) struct Journal {
    log: Arc<PartitionLog>,
}

impl Journal {
    pub fn open(dir: &LogDir) -> Result<Journal, StorageError> {
        let config = LogConfig {
            segment_bytes: SEGMENT_BYTES,
            max_message_bytes: SEGMENT_BYTES as usize,
            retention_ms: -1,
            delete: false,
            flush: FlushPolicy::Always,
            ..LogConfig::default()
        };
        let partition = TopicPartition::new(METADATA_TOPIC, 0);
        let log = dir.create_partition(&partition, METADATA_TOPIC_ID, config.clone())?;
        log.set_config(config);
        Ok(Journal { log })
    }

    /// Hands every record to `take`, in order, with its offset; returns the offset after the last.
    pub fn replay(
        &self,
        mut take: impl FnMut(i64, MetadataRecord) -> Result<(), String>,
    ) -> Result<i64, MetadataError> {
        let mut from = self.log.offsets()?.log_start;
        loop {
            let params = ReadParams {
                from_offset: from,
                max_bytes: READ_BYTES,
                isolation: Isolation::LogEnd,
                min_one_batch: true,
            };
            let data = self.log.read(&params)?;
            if data.records.is_empty() {
                return Ok(from);
            }
            for batch in data.records.iter().flat_map(Batch::iter) {
                replay_batch(batch, from, &mut take)?;
            }
            from = data.next_offset;
        }
    }

    /// Appends one atomic batch and waits until it is synced; returns the offset after it.
    pub fn append(&self, records: &[MetadataRecord], now_ms: i64) -> Result<i64, Refusal> {
        let end = self.append_unsynced(records, now_ms)?;
        self.sync(end)?;
        Ok(end)
    }

    fn append_unsynced(&self, records: &[MetadataRecord], now_ms: i64) -> Result<i64, Refusal> {
        let mut builder = BatchBuilder::new();
        for record in records {
            let value = record.encode().map_err(|error| Refusal::invalid_request(error.to_string()))?;
            builder.append(now_ms, None, Some(&value), &[]);
        }
        let batch = builder.build().map_err(|error| Refusal::invalid_request(error.to_string()))?;
        Ok(self.log.append(&AppendParams::coordinator(now_ms), &batch)?.next_offset())
    }

    fn sync(&self, end: i64) -> Result<(), StorageError> {
        let (tell, told) = mpsc::channel();
        self.log.when_committed(
            end,
            Box::new(move |result| {
                // The receiver waits just below.
                let _ = tell.send(result);
            }),
        );
        // A log that ends without an answer is a log that was closed.
        told.recv().unwrap_or(Err(StorageError::Closed))
    }

    /// Records that are kept.
    pub fn len(&self) -> Result<u64, StorageError> {
        let offsets = self.log.offsets()?;
        Ok(u64::try_from(offsets.log_end - offsets.log_start).unwrap_or(0))
    }

    /// Appends `state` and forgets everything before it; returns the offset after it.
    pub fn rewrite(&self, state: &[MetadataRecord], now_ms: i64) -> Result<i64, Refusal> {
        let start = self.log.offsets()?.log_end;
        let mut end = start;
        for records in state.chunks(REWRITE_RECORDS) {
            end = self.append_unsynced(records, now_ms)?;
        }
        self.sync(end)?;
        // Whole segments before it go with the next retention.
        if let Err(error) = self.log.delete_records(start) {
            tracing::warn!(%error, "the metadata log keeps what it no longer needs");
        }
        Ok(end)
    }
}

fn replay_batch(
    batch: Result<Batch, BatchError>,
    from: i64,
    take: &mut impl FnMut(i64, MetadataRecord) -> Result<(), String>,
) -> Result<(), MetadataError> {
    let damaged = |offset: i64, reason: String| MetadataError::Damaged { offset, reason };
    let batch = batch.map_err(|error| damaged(from, error.to_string()))?;
    let base = batch.header().base_offset;
    for record in batch.records().map_err(|error| damaged(base, error.to_string()))? {
        let record = record.map_err(|error| damaged(base, error.to_string()))?;
        // A read begins with the whole batch that holds its first offset.
        if record.offset < from {
            continue;
        }
        let decoded = MetadataRecord::decode(record.value.as_ref());
        let decoded = decoded.map_err(|error: RecordError| damaged(record.offset, error.to_string()))?;
        take(record.offset, decoded).map_err(|reason| damaged(record.offset, reason))?;
    }
    Ok(())
}
