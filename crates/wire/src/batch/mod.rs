//! Record batches, format 2: what producers send, the log stores and consumers read, byte for byte the same.
//!
//! This module parses, checks, patches, builds, compresses and iterates batches. It does no I/O and leaves offsets, sequences and
//! validity rules of a topic to the log. Everything here takes bytes from the network or from a damaged disk: lengths are checked
//! against what is there before anything is allocated, and nothing panics.
//!
//! Layout (big-endian): base offset i64, batch length i32 (of what follows it), leader epoch i32, magic i8, CRC-32C u32 (of what
//! follows it), attributes i16, last offset delta i32, base timestamp i64, max timestamp i64, producer id i64, producer epoch i16,
//! base sequence i32, record count i32, records. Base offset and leader epoch lie outside the CRC so that a broker may set them.

mod builder;
mod compress;
mod control;
mod header;
mod parsed;
mod records;
mod varint;

pub use builder::BatchBuilder;
pub use compress::{Compression, compress, decompress};
pub use control::{ControlType, control_batch, control_record, end_txn_value, parse_control_key, parse_end_txn_value};
pub use header::{Attributes, BatchHeader, TimestampType, field};
pub use header::{
    clear_log_append_time, peek_size, recompute_crc, set_base_offset, set_leader_epoch, set_log_append_time,
};
pub use parsed::Batch;
pub use records::{Header, Record, RecordSummary, Records, Summaries};

/// Bytes of a batch before its records.
pub const HEADER_LEN: usize = 61;
/// Bytes of base offset and batch length: what must be read to know how long a batch is.
pub const PREFIX_LEN: usize = 12;
/// The only format version that is supported.
pub const MAGIC: i8 = 2;
/// "No timestamp".
pub const NO_TIMESTAMP: i64 = -1;
/// "No producer id".
pub const NO_PRODUCER_ID: i64 = -1;
/// "No producer epoch".
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// "No sequence number"; also the base sequence of control batches.
pub const NO_SEQUENCE: i32 = -1;
/// Default limit on what one compressed batch may decompress to, in bytes. Bounds memory against decompression bombs.
pub const MAX_DECOMPRESSED: usize = 256 << 20;

/// Why bytes are not a usable batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does. `needed` is the size of the whole batch if its length field could be read, else
    /// [`PREFIX_LEN`].
    #[error("incomplete batch: {available} of {needed} bytes")]
    Incomplete { needed: usize, available: usize },
    /// The length field cannot be that of a batch.
    #[error("invalid batch length {0}")]
    InvalidLength(i32),
    /// Another format version than 2.
    #[error("unsupported batch format {0}")]
    UnsupportedMagic(i8),
    #[error("batch checksum is {stored:08x}, its content has {computed:08x}")]
    Crc { stored: u32, computed: u32 },
    /// Compression bits 5, 6 or 7.
    #[error("unsupported compression type {0}")]
    UnsupportedCompression(u8),
    #[error("cannot decompress {0}: {1}")]
    Decompress(Compression, String),
    #[error("cannot compress {0}: {1}")]
    Compress(Compression, String),
    #[error("batch decompresses to more than {0} bytes")]
    TooLarge(usize),
    /// The records do not follow the format; says what is wrong.
    #[error("invalid record {index}: {reason}")]
    InvalidRecord { index: i32, reason: &'static str },
}

#[cfg(test)]
mod tests;
