//! A partition of the real log as the log of a shard, as the server has it.

use std::sync::Arc;

use coordinator::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};
use log::{AppendError, AppendParams, Isolation, PartitionLog, ReadParams, StorageError, TxnProtocol};
use wire::batch::{Batch, BatchBuilder, ControlType, NO_SEQUENCE, control_batch, parse_control_key};

pub struct DiskLog(pub Arc<PartitionLog>);

fn failed(error: impl std::fmt::Display) -> LogError {
    LogError::Failed(error.to_string())
}

impl DiskLog {
    fn append_bytes(&mut self, expected_end: u64, params: AppendParams, bytes: &bytes::Bytes) -> Result<u64, LogError> {
        let params = AppendParams { expected_end: Some(expected_end as i64), ..params };
        match self.0.append(&params, bytes) {
            Ok(info) => Ok(info.next_offset() as u64),
            Err(AppendError::Storage(StorageError::NoSpace)) => Err(LogError::NoSpace),
            Err(AppendError::UnexpectedEnd { .. }) => Err(LogError::Fenced),
            Err(AppendError::Storage(error)) => Err(failed(error)),
            Err(error) => Err(LogError::Refused(error.code())),
        }
    }
}

impl StateLog for DiskLog {
    fn load(&mut self, each: &mut dyn FnMut(LogEntry)) -> Result<(u32, u64), LogError> {
        let marks = self.0.offsets().map_err(failed)?;
        let mut from_offset = marks.log_start;
        while from_offset < marks.log_end {
            let params =
                ReadParams { from_offset, max_bytes: 1 << 16, isolation: Isolation::LogEnd, min_one_batch: true };
            let read = self.0.read(&params).map_err(failed)?;
            for batch in read.records.iter().flat_map(Batch::iter) {
                entries_of(&batch.map_err(failed)?, each)?;
            }
            if read.next_offset <= from_offset {
                return Err(failed(format!("nothing at offset {from_offset}, but the log ends at {}", marks.log_end)));
            }
            from_offset = read.next_offset;
        }
        Ok((0, marks.log_end as u64))
    }

    fn append(
        &mut self,
        _term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        batch: &[RawRecord],
    ) -> Result<u64, LogError> {
        let mut builder = BatchBuilder::new();
        if let Some(producer) = producer {
            builder = builder.producer(producer.id, producer.epoch, NO_SEQUENCE).transactional(true);
        }
        for record in batch {
            builder.append(timestamp_ms, Some(&record.key), record.value.as_deref(), &[]);
        }
        let bytes = builder.build().map_err(failed)?;
        self.append_bytes(expected_end, AppendParams::coordinator(timestamp_ms), &bytes)
    }

    fn append_marker(
        &mut self,
        _term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        marker: &EndMarker,
    ) -> Result<u64, LogError> {
        let kind = if marker.commit { ControlType::Commit } else { ControlType::Abort };
        let producer = marker.producer;
        let bytes = control_batch(kind, producer.id, producer.epoch, marker.coordinator_epoch, timestamp_ms);
        let txn_protocol = if marker.raises_epoch { TxnProtocol::V2 } else { TxnProtocol::V1 };
        let params = AppendParams { txn_protocol, ..AppendParams::coordinator(timestamp_ms) };
        self.append_bytes(expected_end, params, &bytes.map_err(failed)?)
    }

    fn durable_end(&self) -> u64 {
        self.0.offsets().map_or(0, |marks| marks.high_watermark as u64)
    }
}

fn entries_of(batch: &Batch, each: &mut dyn FnMut(LogEntry)) -> Result<(), LogError> {
    let header = batch.header();
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    for record in batch.records().map_err(failed)? {
        let record = record.map_err(failed)?;
        let offset = record.offset as u64;
        let key = record.key.unwrap_or_default();
        if header.attributes.is_control() {
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
    Ok(())
}
