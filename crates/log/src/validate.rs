//! What can be checked and changed in an append before the partition is asked: everything but offsets and producer state.

use bytes::Bytes;
use wire::batch::{
    Batch, BatchBuilder, BatchError, BatchHeader, NO_TIMESTAMP, RecordSummary, TimestampType, clear_log_append_time,
    parse_control_key, parse_end_txn_value, set_log_append_time,
};

use crate::config::LogConfig;
use crate::error::{AppendError, RecordError};
use crate::producer_state::Marker;
use crate::types::{AppendParams, Origin, TopicPartition};

/// Batches that are ready but for their offsets.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub bytes: Vec<u8>,
    /// Position in `bytes`, header, and the marker if it is one.
    pub batches: Vec<(usize, BatchHeader)>,
    pub markers: Vec<Option<Marker>>,
    /// The append time (ms) for LogAppendTime topics, else -1.
    pub log_append_time_ms: i64,
}

/// Checks `records` by the rules U-3, U-8 and U-9, and gives its batches the compression and timestamps of the topic.
pub(crate) fn prepare(
    tp: &TopicPartition,
    records: &Bytes,
    params: &AppendParams,
    config: &LogConfig,
) -> Result<Prepared, AppendError> {
    let mut prepared = Prepared { log_append_time_ms: -1, ..Prepared::default() };
    let mut rest = records.clone();
    while !rest.is_empty() {
        let (batch, after) = Batch::parse_next(&rest).map_err(|error| match error {
            BatchError::UnsupportedMagic(_) => AppendError::InvalidRecord(error.to_string()),
            error => AppendError::Corrupt(error.to_string()),
        })?;
        rest = after;
        if params.origin == Origin::Client && !prepared.batches.is_empty() {
            return Err(invalid("more than one batch for a partition"));
        }
        check_batch(&batch, params.origin, config)?;
        let marker = marker_of(&batch)?;
        let stored = stored_form(tp, batch, params, config, &mut prepared.log_append_time_ms)?;
        let header = BatchHeader::parse(&stored).map_err(|error| AppendError::Corrupt(error.to_string()))?;
        prepared.batches.push((prepared.bytes.len(), header));
        prepared.markers.push(marker);
        // Nearly always there is one batch.
        match prepared.bytes.is_empty() {
            true => prepared.bytes = stored,
            false => prepared.bytes.extend_from_slice(&stored),
        }
    }
    if prepared.batches.is_empty() {
        return Err(invalid("no batch"));
    }
    let (size, limit) = (prepared.bytes.len(), config.segment_bytes as usize);
    if size > limit {
        return Err(AppendError::LargerThanSegment { size, limit });
    }
    Ok(prepared)
}

fn invalid(reason: &str) -> AppendError {
    AppendError::InvalidRecord(reason.to_owned())
}

/// U-8, in its order. The broker's own batches are not bound to the size limit of clients.
fn check_batch(batch: &Batch, origin: Origin, config: &LogConfig) -> Result<(), AppendError> {
    let header = batch.header();
    let client = origin == Origin::Client;
    if client && header.base_offset != 0 {
        return Err(invalid("the base offset is not 0"));
    }
    if client && batch.size() > config.max_message_bytes {
        return Err(AppendError::TooLarge { size: batch.size(), limit: config.max_message_bytes });
    }
    batch.validate_crc().map_err(|error| AppendError::Corrupt(error.to_string()))?;
    let count = i64::from(header.record_count);
    if header.last_offset_delta < 0 || count <= 0 || i64::from(header.last_offset_delta) + 1 != count {
        return Err(invalid("the number of records does not match the last offset delta"));
    }
    if client && header.attributes.is_control() {
        return Err(invalid("a client must not write control records"));
    }
    if client && header.has_producer_id() && header.base_sequence < 0 {
        return Err(invalid("a producer id without a sequence number"));
    }
    if header.attributes.is_transactional() && !header.has_producer_id() {
        return Err(invalid("a transactional batch without a producer id"));
    }
    Ok(())
}

/// Reads the marker of a control batch.
fn marker_of(batch: &Batch) -> Result<Option<Marker>, AppendError> {
    if !batch.header().attributes.is_control() {
        return Ok(None);
    }
    Ok(read_marker(batch))
}

/// The marker in a control batch; `None` for kinds that are not known here.
pub(crate) fn read_marker(batch: &Batch) -> Option<Marker> {
    let record = batch.records().ok()?.next()?.ok()?;
    let kind = parse_control_key(record.key.as_deref()?)?;
    let coordinator_epoch = parse_end_txn_value(record.value.as_deref()?)?;
    Some(Marker { kind, coordinator_epoch })
}

/// The batch as it will be stored: timestamps and compression as the topic has them.
fn stored_form(
    tp: &TopicPartition,
    batch: Batch,
    params: &AppendParams,
    config: &LogConfig,
    log_append_time_ms: &mut i64,
) -> Result<Vec<u8>, AppendError> {
    let header = *batch.header();
    if params.origin == Origin::Coordinator {
        return Ok(batch.bytes().to_vec());
    }
    let kind = header
        .attributes
        .compression()
        .map_err(|_| AppendError::UnsupportedCompression((header.attributes.0 & 7) as u8))?;
    let target = config.compression.unwrap_or(kind);
    let mut rebuilt = (target != kind).then(|| {
        BatchBuilder::new()
            .producer(header.producer_id, header.producer_epoch, header.base_sequence)
            .transactional(header.attributes.is_transactional())
            .base_timestamp(header.base_timestamp)
            .compression(target)
            .compression_level(config.compression_level)
    });
    let max_timestamp = check_records(tp, &batch, params, config, rebuilt.as_mut())?;
    let mut bytes = match rebuilt {
        Some(builder) => builder.build().map_err(|error| AppendError::BrokenCompression(error.to_string()))?.to_vec(),
        None => batch.bytes().to_vec(),
    };
    if bytes.len() > config.max_message_bytes {
        return Err(AppendError::TooLarge { size: bytes.len(), limit: config.max_message_bytes });
    }
    match config.timestamp_type {
        TimestampType::LogAppendTime => {
            *log_append_time_ms = params.now_ms;
            set_log_append_time(&mut bytes, params.now_ms);
        }
        TimestampType::CreateTime => {
            let right = header.max_timestamp == max_timestamp
                && header.attributes.timestamp_type() == TimestampType::CreateTime;
            if !right {
                clear_log_append_time(&mut bytes, max_timestamp);
            }
        }
    }
    Ok(bytes)
}

/// U-9 and U-10 for every record, which also goes to `rebuilt`. Returns the largest timestamp.
fn check_records(
    tp: &TopicPartition,
    batch: &Batch,
    params: &AppendParams,
    config: &LogConfig,
    rebuilt: Option<&mut BatchBuilder>,
) -> Result<i64, AppendError> {
    let header = batch.header();
    let limit = config.max_decompressed_message_bytes.min(wire::batch::MAX_DECOMPRESSED);
    let records = batch.records_limited(limit).map_err(|error| match error {
        BatchError::TooLarge(_) => AppendError::InvalidRecord(error.to_string()),
        error => AppendError::BrokenCompression(error.to_string()),
    })?;
    let unreadable = |error: BatchError| AppendError::InvalidRecord(error.to_string());
    let mut check = RecordCheck {
        tp,
        params,
        config,
        header,
        index: 0,
        max_timestamp: NO_TIMESTAMP,
        errors: Vec::new(),
        bad_timestamp: false,
    };
    match rebuilt {
        Some(builder) => {
            for record in records {
                let record = record.map_err(unreadable)?;
                check.next(record.summary())?;
                builder.append_record(&record);
            }
        }
        None => {
            for record in records.summaries() {
                check.next(record.map_err(unreadable)?)?;
            }
        }
    }
    check.finish()
}

struct RecordCheck<'a> {
    tp: &'a TopicPartition,
    params: &'a AppendParams,
    config: &'a LogConfig,
    header: &'a BatchHeader,
    /// Of the next record.
    index: i32,
    max_timestamp: i64,
    errors: Vec<RecordError>,
    bad_timestamp: bool,
}

impl RecordCheck<'_> {
    fn next(&mut self, record: RecordSummary) -> Result<(), AppendError> {
        if record.offset != self.header.base_offset.wrapping_add(i64::from(self.index)) {
            return Err(invalid("the offsets of the records are not consecutive"));
        }
        self.judge(&record);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        self.index += 1;
        Ok(())
    }

    fn judge(&mut self, record: &RecordSummary) {
        let index = self.index;
        if self.config.compact && !record.has_key {
            let message = format!("Compacted topic cannot accept message without key in topic partition {}", self.tp);
            self.errors.push(RecordError { index, message });
        } else if self.config.timestamp_type == TimestampType::CreateTime {
            let marked = self.header.attributes.timestamp_type() == TimestampType::LogAppendTime;
            let now = self.params.now_ms;
            let range = now.saturating_sub(self.config.timestamp_before_max_ms)
                ..=now.saturating_add(self.config.timestamp_after_max_ms);
            let absent = record.timestamp == NO_TIMESTAMP;
            if (absent && marked) || (!absent && !range.contains(&record.timestamp)) {
                self.bad_timestamp = true;
                let (from, to) = range.into_inner();
                let message = format!(
                    "Timestamp {} of message with offset {} is out of range. The timestamp should be within [{from}, {to}]",
                    record.timestamp, record.offset
                );
                self.errors.push(RecordError { index, message });
            }
        }
    }

    /// The largest timestamp.
    fn finish(self) -> Result<i64, AppendError> {
        if self.errors.is_empty() {
            return Ok(self.max_timestamp);
        }
        let message = match self.bad_timestamp {
            true => "One or more records have been rejected due to invalid timestamp".to_owned(),
            false => {
                let quoted: Vec<String> =
                    self.errors.iter().take(3).map(|e| format!("{}: {}", e.index, e.message)).collect();
                let count = self.errors.len();
                let quoted = quoted.join("; ");
                format!(
                    "One or more records have been rejected due to {count} record errors, of which the first are: {quoted}"
                )
            }
        };
        Err(AppendError::InvalidRecords { timestamp: self.bad_timestamp, message, errors: self.errors })
    }
}
