//! Writing batches.

use bytes::Bytes;

use super::compress::{Compression, compress};
use super::header::{Attributes, TimestampType, field, recompute_crc};
use super::{
    BatchError, HEADER_LEN, Header, MAGIC, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, PREFIX_LEN,
};
use super::{Record, varint};

/// Collects records and writes them as one batch. Defaults: base offset 0, leader epoch -1, no producer, uncompressed, CreateTime.
///
/// ```
/// # use wire::batch::{Batch, BatchBuilder};
/// let mut builder = BatchBuilder::new();
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
/// let (batch, rest) = Batch::parse_next(&builder.build()?)?;
/// assert!(rest.is_empty() && batch.header().record_count == 1);
/// # Ok::<(), wire::batch::BatchError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    compression: Compression,
    level: Option<i32>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    /// Set from outside: stays as it is whatever is appended.
    fixed_max_timestamp: bool,
    last_offset_delta: Option<i32>,
    next_delta: i32,
    count: i32,
    records: Vec<u8>,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    pub fn new() -> BatchBuilder {
        BatchBuilder {
            base_offset: 0,
            leader_epoch: -1,
            attributes: 0,
            compression: Compression::None,
            level: None,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            base_timestamp: None,
            max_timestamp: NO_TIMESTAMP,
            fixed_max_timestamp: false,
            last_offset_delta: None,
            next_delta: 0,
            count: 0,
            records: Vec::new(),
        }
    }

    pub fn base_offset(mut self, offset: i64) -> Self {
        self.base_offset = offset;
        self
    }

    pub fn leader_epoch(mut self, epoch: i32) -> Self {
        self.leader_epoch = epoch;
        self
    }

    /// Producer id, epoch and sequence number of the first record.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    pub fn compression(mut self, kind: Compression) -> Self {
        self.compression = kind;
        self
    }

    /// The codec's level, see [`compress`].
    pub fn compression_level(mut self, level: Option<i32>) -> Self {
        self.level = level;
        self
    }

    pub fn transactional(self, on: bool) -> Self {
        self.attribute(Attributes::TRANSACTIONAL, on)
    }

    pub fn control(self, on: bool) -> Self {
        self.attribute(Attributes::CONTROL, on)
    }

    /// LogAppendTime: all records count as of `timestamp` (ms), which becomes the max timestamp.
    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        (self.max_timestamp, self.fixed_max_timestamp) = (timestamp, true);
        self.attribute(Attributes::LOG_APPEND_TIME, true)
    }

    /// Stamps a delete horizon (ms), which takes the place of the base timestamp; set it before the first record (C-3).
    pub fn delete_horizon(mut self, horizon: i64) -> Self {
        self.base_timestamp = Some(horizon);
        self.attribute(Attributes::DELETE_HORIZON, true)
    }

    /// Fixes the base timestamp (ms); set it before the first record. By default it is the first record's.
    pub fn base_timestamp(mut self, timestamp: i64) -> Self {
        self.base_timestamp = Some(timestamp);
        self
    }

    /// Fixes the last offset delta, for a batch that compaction has removed records from (C-4).
    pub fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = Some(delta);
        self
    }

    fn attribute(mut self, bit: i16, on: bool) -> Self {
        self.attributes = if on { self.attributes | bit } else { self.attributes & !bit };
        self
    }

    /// Adds a record at the next offset. `timestamp` is in milliseconds, -1 for none.
    pub fn append(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header]) {
        self.append_at(self.next_delta, timestamp, key, value, headers);
    }

    /// Adds a copy of `record` at its own offset, which must not be below the base offset or the previous record's.
    pub fn append_record(&mut self, record: &Record) {
        let delta = record.offset.wrapping_sub(self.base_offset) as i32;
        self.append_at(delta, record.timestamp, record.key.as_deref(), record.value.as_deref(), &record.headers);
    }

    fn append_at(&mut self, delta: i32, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header]) {
        let base = *self.base_timestamp.get_or_insert(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base);
        let headers_size: usize =
            headers.iter().map(|h| field_size(Some(&h.key)) + field_size(h.value.as_deref())).sum();
        let size = 1
            + varint::size_i64(timestamp_delta)
            + varint::size_i64(i64::from(delta))
            + field_size(key)
            + field_size(value)
            + varint::size_i64(headers.len() as i64)
            + headers_size;
        let out = &mut self.records;
        varint::write_i64(out, size as i64);
        out.push(0);
        varint::write_i64(out, timestamp_delta);
        varint::write_i64(out, i64::from(delta));
        write_field(out, key);
        write_field(out, value);
        varint::write_i64(out, headers.len() as i64);
        for header in headers {
            write_field(out, Some(&header.key));
            write_field(out, header.value.as_deref());
        }
        self.count += 1;
        self.next_delta = delta.wrapping_add(1);
        if !self.fixed_max_timestamp {
            self.max_timestamp = self.max_timestamp.max(timestamp);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of records so far.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Size in bytes of the batch if it were built now without compression.
    pub fn uncompressed_size(&self) -> usize {
        HEADER_LEN + self.records.len()
    }

    /// Writes the batch. Fails if it would not fit the format (2 GiB), or if the codec fails.
    pub fn build(self) -> Result<Bytes, BatchError> {
        let payload = match self.compression {
            Compression::None => self.records,
            // Nothing to compress in a batch that compaction has emptied.
            _ if self.count == 0 => Vec::new(),
            kind => compress(kind, &self.records, self.level)?,
        };
        let length = i32::try_from(HEADER_LEN - PREFIX_LEN + payload.len());
        let length = length.map_err(|_| BatchError::TooLarge(i32::MAX as usize))?;
        let mut out = Vec::with_capacity(HEADER_LEN + payload.len());
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.leader_epoch.to_be_bytes());
        out.push(MAGIC as u8);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.attributes | i16::from(self.compression.id())).to_be_bytes());
        let delta = self.last_offset_delta.unwrap_or_else(|| self.next_delta.saturating_sub(1).max(0));
        out.extend_from_slice(&delta.to_be_bytes());
        out.extend_from_slice(&self.base_timestamp.unwrap_or(NO_TIMESTAMP).to_be_bytes());
        out.extend_from_slice(&self.max_timestamp.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        debug_assert_eq!(out.len(), field::RECORD_COUNT + 4);
        out.extend_from_slice(&payload);
        recompute_crc(&mut out);
        Ok(out.into())
    }

    /// The timestamp type that the batch will have.
    pub fn timestamp_type(&self) -> TimestampType {
        Attributes(self.attributes).timestamp_type()
    }
}

fn field_size(field: Option<&[u8]>) -> usize {
    field.map_or(1, |f| varint::size_i64(f.len() as i64) + f.len())
}

fn write_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => varint::write_i64(out, -1),
        Some(bytes) => {
            varint::write_i64(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
