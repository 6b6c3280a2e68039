//! Errors, each with the Kafka error code that it has on the wire.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a partition's storage cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// The disk is full. Nothing was written; the partition works again once there is space.
    #[error("no space left on the device")]
    NoSpace,
    /// A write or sync failed earlier; the partition stays offline until it is recovered by a restart.
    #[error("the partition is offline: {0}")]
    Offline(Arc<str>),
    #[error("{context}: {error}")]
    Io { context: String, error: Arc<io::Error> },
    /// A stored batch is damaged.
    #[error("damaged batch in {partition} at offset {offset}: {reason}")]
    Damaged { partition: String, offset: i64, reason: String },
    /// The data directory was closed.
    #[error("the log is closed")]
    Closed,
}

impl StorageError {
    pub(crate) fn io(context: impl fmt::Display, error: io::Error) -> StorageError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StorageError::NoSpace,
            _ => StorageError::Io { context: context.to_string(), error: Arc::new(error) },
        }
    }

    /// KAFKA_STORAGE_ERROR (56).
    pub fn code(&self) -> i16 {
        56
    }
}

/// What is wrong with one record of a refused batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Position of the record in the batch, from 0.
    pub index: i32,
    pub message: String,
}

/// Why an append was refused. Nothing was written and no state has changed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// U-8: batch-level rules. INVALID_RECORD (87).
    #[error("{0}")]
    InvalidRecord(String),
    /// U-9, U-10: bad records; INVALID_TIMESTAMP (32) if one has a bad timestamp, else INVALID_RECORD (87).
    #[error("{message}")]
    InvalidRecords { timestamp: bool, message: String, errors: Vec<RecordError> },
    /// The checksum or the structure is broken. CORRUPT_MESSAGE (2).
    #[error("{0}")]
    Corrupt(String),
    /// U-11: UNKNOWN_SERVER_ERROR (-1).
    #[error("{0}")]
    BrokenCompression(String),
    /// UNSUPPORTED_COMPRESSION_TYPE (76).
    #[error("unsupported compression type {0}")]
    UnsupportedCompression(u8),
    /// MESSAGE_TOO_LARGE (10).
    #[error("the batch of {size} bytes is larger than max.message.bytes, {limit}")]
    TooLarge { size: usize, limit: usize },
    /// RECORD_LIST_TOO_LARGE (18).
    #[error("the batches of {size} bytes are larger than a segment, {limit}")]
    LargerThanSegment { size: usize, limit: usize },
    /// OUT_OF_ORDER_SEQUENCE_NUMBER (45).
    #[error("producer {producer_id}: sequence {got} after {last}")]
    OutOfOrderSequence { producer_id: i64, got: i32, last: i32 },
    /// INVALID_PRODUCER_EPOCH (47).
    #[error("producer {producer_id}: epoch {got} is not valid after {current}")]
    InvalidProducerEpoch { producer_id: i64, got: i16, current: i16 },
    /// INVALID_TXN_STATE (48).
    #[error("producer {producer_id}: {reason}")]
    InvalidTxnState { producer_id: i64, reason: &'static str },
    /// TRANSACTION_COORDINATOR_FENCED (52).
    #[error("producer {producer_id}: marker of coordinator epoch {got} after {current}")]
    CoordinatorFenced { producer_id: i64, got: i32, current: i32 },
    /// The log does not end where [`crate::AppendParams::expected_end`] says: somebody else wrote. NOT_LEADER_OR_FOLLOWER (6).
    #[error("the log ends at {end}, not at {expected}")]
    UnexpectedEnd { expected: i64, end: i64 },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl AppendError {
    /// The code on the wire.
    pub fn code(&self) -> i16 {
        match self {
            Self::InvalidRecord(_) | Self::InvalidRecords { timestamp: false, .. } => 87,
            Self::InvalidRecords { timestamp: true, .. } => 32,
            Self::Corrupt(_) => 2,
            Self::BrokenCompression(_) => -1,
            Self::UnsupportedCompression(_) => 76,
            Self::TooLarge { .. } => 10,
            Self::LargerThanSegment { .. } => 18,
            Self::OutOfOrderSequence { .. } => 45,
            Self::InvalidProducerEpoch { .. } => 47,
            Self::InvalidTxnState { .. } => 48,
            Self::CoordinatorFenced { .. } => 52,
            Self::UnexpectedEnd { .. } => 6,
            Self::Storage(error) => error.code(),
        }
    }

    /// The bad records, for the answer's RecordErrors.
    pub fn record_errors(&self) -> &[RecordError] {
        match self {
            Self::InvalidRecords { errors, .. } => errors,
            _ => &[],
        }
    }
}

/// Why a read was refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// F-4: OFFSET_OUT_OF_RANGE (1).
    #[error("offset {offset} is outside {start}..={end}")]
    OffsetOutOfRange { offset: i64, start: i64, end: i64 },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ReadError {
    /// The code on the wire.
    pub fn code(&self) -> i16 {
        match self {
            Self::OffsetOutOfRange { .. } => 1,
            Self::Storage(error) => error.code(),
        }
    }
}

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0} is in use by another process")]
    Locked(String),
    #[error("{path} belongs to another {what}: it has {found}, expected {expected}")]
    Foreign { path: String, what: &'static str, found: String, expected: String },
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Storage(#[from] StorageError),
}
