//! The fixed part of a batch: reading its fields and setting those a broker sets.

use super::{BatchError, Compression, HEADER_LEN, MAGIC, NO_PRODUCER_ID, PREFIX_LEN};

/// Positions of the fields in a batch.
pub mod field {
    pub const BASE_OFFSET: usize = 0;
    pub const LENGTH: usize = 8;
    pub const LEADER_EPOCH: usize = 12;
    pub const MAGIC: usize = 16;
    pub const CRC: usize = 17;
    pub const ATTRIBUTES: usize = 21;
    pub const LAST_OFFSET_DELTA: usize = 23;
    pub const BASE_TIMESTAMP: usize = 27;
    pub const MAX_TIMESTAMP: usize = 35;
    pub const PRODUCER_ID: usize = 43;
    pub const PRODUCER_EPOCH: usize = 51;
    pub const BASE_SEQUENCE: usize = 53;
    pub const RECORD_COUNT: usize = 57;
}

/// Who set the timestamps of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer, one for each record.
    CreateTime,
    /// The broker: every record has the batch's max timestamp.
    LogAppendTime,
}

/// The attribute bits of a batch: compression in bits 0-2, then timestamp type, transactional, control, delete horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    pub const LOG_APPEND_TIME: i16 = 0x08;
    pub const TRANSACTIONAL: i16 = 0x10;
    pub const CONTROL: i16 = 0x20;
    pub const DELETE_HORIZON: i16 = 0x40;

    /// Fails on compression types 5 to 7, which do not exist.
    pub fn compression(self) -> Result<Compression, BatchError> {
        Compression::from_id((self.0 & 7) as u8)
    }

    pub fn timestamp_type(self) -> TimestampType {
        match self.0 & Self::LOG_APPEND_TIME {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time (ms) at which the compacted batch's tombstones may go.
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// The header fields of a batch, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes of the batch after this field; [`BatchHeader::size`] is the size of all of it.
    pub batch_length: i32,
    pub partition_leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    /// Milliseconds; record timestamps are relative to it. With a delete horizon it is that horizon.
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header of the batch at the start of `buf`, which need not hold all of it. Checks length (at least a header) and
    /// magic, nothing else.
    pub fn parse(buf: &[u8]) -> Result<BatchHeader, BatchError> {
        let needed = peek_size(buf)?;
        // Magic comes before the rest: older formats are shorter and must be told apart from damage.
        if let Some(&magic) = buf.get(field::MAGIC)
            && magic as i8 != MAGIC
        {
            return Err(BatchError::UnsupportedMagic(magic as i8));
        }
        if needed < HEADER_LEN {
            return Err(BatchError::InvalidLength((needed - PREFIX_LEN) as i32));
        }
        let Some(head) = buf.first_chunk::<HEADER_LEN>() else {
            return Err(BatchError::Incomplete { needed, available: buf.len() });
        };
        Ok(BatchHeader {
            base_offset: i64_at(head, field::BASE_OFFSET),
            batch_length: i32_at(head, field::LENGTH),
            partition_leader_epoch: i32_at(head, field::LEADER_EPOCH),
            magic: head[field::MAGIC] as i8,
            crc: i32_at(head, field::CRC) as u32,
            attributes: Attributes(i16_at(head, field::ATTRIBUTES)),
            last_offset_delta: i32_at(head, field::LAST_OFFSET_DELTA),
            base_timestamp: i64_at(head, field::BASE_TIMESTAMP),
            max_timestamp: i64_at(head, field::MAX_TIMESTAMP),
            producer_id: i64_at(head, field::PRODUCER_ID),
            producer_epoch: i16_at(head, field::PRODUCER_EPOCH),
            base_sequence: i32_at(head, field::BASE_SEQUENCE),
            record_count: i32_at(head, field::RECORD_COUNT),
        })
    }

    /// Size of the whole batch in bytes.
    pub fn size(&self) -> usize {
        PREFIX_LEN + self.batch_length.max(0) as usize
    }

    /// Offset of the last record (or of where it was, in a compacted batch).
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id != NO_PRODUCER_ID
    }

    /// Sequence number of the last record; wraps from 2147483647 to 0. The base sequence itself if there is none.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        let sum = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (sum % (i64::from(i32::MAX) + 1)) as i32
    }

    /// The time (ms) after which tombstones of this batch may be dropped, if compaction has set one.
    pub fn delete_horizon(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }
}

/// Size in bytes of the batch that starts at `buf`, from its length field alone.
pub fn peek_size(buf: &[u8]) -> Result<usize, BatchError> {
    let Some(prefix) = buf.first_chunk::<PREFIX_LEN>() else {
        return Err(BatchError::Incomplete { needed: PREFIX_LEN, available: buf.len() });
    };
    let length = i32_at(prefix, field::LENGTH);
    // The shortest message of any format has 14 bytes after its length; less is garbage (a run of zeros, above all).
    if length < 14 {
        return Err(BatchError::InvalidLength(length));
    }
    Ok(PREFIX_LEN + length as usize)
}

/// Sets the base offset of the batch at the start of `batch`. Outside the CRC. Does nothing if `batch` is shorter than a header.
pub fn set_base_offset(batch: &mut [u8], offset: i64) {
    put(batch, field::BASE_OFFSET, &offset.to_be_bytes());
}

/// Sets the leader epoch. Outside the CRC.
pub fn set_leader_epoch(batch: &mut [u8], epoch: i32) {
    put(batch, field::LEADER_EPOCH, &epoch.to_be_bytes());
}

/// Marks the batch as LogAppendTime with `timestamp` (ms) and renews the CRC; `batch` must be exactly one batch. Base timestamp and
/// record deltas stay as sent (U-14).
pub fn set_log_append_time(batch: &mut [u8], timestamp: i64) {
    set_attribute_bit(batch, Attributes::LOG_APPEND_TIME, true);
    put(batch, field::MAX_TIMESTAMP, &timestamp.to_be_bytes());
    recompute_crc(batch);
}

/// Clears the LogAppendTime bit, sets the max timestamp (ms), and renews the CRC; `batch` must be exactly one batch (U-12).
pub fn clear_log_append_time(batch: &mut [u8], max_timestamp: i64) {
    set_attribute_bit(batch, Attributes::LOG_APPEND_TIME, false);
    put(batch, field::MAX_TIMESTAMP, &max_timestamp.to_be_bytes());
    recompute_crc(batch);
}

/// Renews the CRC of `batch`, which must be exactly one batch.
pub fn recompute_crc(batch: &mut [u8]) {
    if batch.len() >= HEADER_LEN {
        let crc = crc32c::crc32c(&batch[field::ATTRIBUTES..]);
        put(batch, field::CRC, &crc.to_be_bytes());
    }
}

fn set_attribute_bit(batch: &mut [u8], bit: i16, on: bool) {
    if batch.len() >= HEADER_LEN {
        let old = i16_at(batch, field::ATTRIBUTES);
        let new = if on { old | bit } else { old & !bit };
        put(batch, field::ATTRIBUTES, &new.to_be_bytes());
    }
}

fn put(batch: &mut [u8], at: usize, bytes: &[u8]) {
    if batch.len() >= HEADER_LEN {
        batch[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

// The three readers are only called with positions inside a header that was checked to be there.
fn i64_at(buf: &[u8], at: usize) -> i64 {
    (i64::from(i32_at(buf, at)) << 32) | i64::from(i32_at(buf, at + 4) as u32)
}

fn i32_at(buf: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([buf[at], buf[at + 1], buf[at + 2], buf[at + 3]])
}

fn i16_at(buf: &[u8], at: usize) -> i16 {
    i16::from_be_bytes([buf[at], buf[at + 1]])
}
