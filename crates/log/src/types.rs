//! Names, parameters and results of the public interface.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::error::StorageError;
use crate::file_range::FileRange;

/// A partition of a topic. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.into(), partition }
    }

    /// Reads `TOPIC-PARTITION`, as directories are named.
    pub fn parse(name: &str) -> Option<TopicPartition> {
        let (topic, partition) = name.rsplit_once('-')?;
        let valid = !topic.is_empty() && partition.bytes().all(|b| b.is_ascii_digit());
        valid.then(|| partition.parse().ok().map(|partition| TopicPartition::new(topic, partition)))?
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A topic's 128-bit id. Written in files as Kafka does: URL-safe base64 without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TopicId(pub [u8; 16]);

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl TopicId {
    /// Reads the 22 characters that `Display` writes.
    pub fn parse(text: &str) -> Option<TopicId> {
        let mut bits = 0u128;
        let digits = text.as_bytes();
        if digits.len() != 22 {
            return None;
        }
        for (i, digit) in digits.iter().enumerate() {
            let value = BASE64.iter().position(|b| b == digit)? as u128;
            // 22 digits have 132 bits; the last four are padding.
            bits = if i == 21 { (bits << 2) | (value >> 4) } else { (bits << 6) | value };
        }
        Some(TopicId(bits.to_be_bytes()))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for i in 0..21 {
            let digit = (bits >> (122 - 6 * i)) as usize & 63;
            write!(f, "{}", BASE64[digit] as char)?;
        }
        write!(f, "{}", BASE64[(bits as usize & 3) << 4] as char)
    }
}

/// Where "now" comes from.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Who appends, which decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A Produce request: all rules, sequence numbers included.
    Client,
    /// The broker itself (groups, transactions, markers): control batches are allowed, sequence numbers are not checked, and the
    /// reserved space of the disk may be used.
    Coordinator,
}

/// Which transaction protocol a marker belongs to (W-9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxnProtocol {
    /// Producer epochs stay the same from transaction to transaction.
    V1,
    /// Every transaction raises the epoch (KIP-890).
    V2,
}

/// Shows that the coordinator was asked about a transaction on this partition, see [`crate::PartitionLog::begin_verification`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VerificationGuard(pub(crate) u64);

/// How to append.
#[derive(Debug, Clone)]
pub struct AppendParams {
    pub origin: Origin,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// For the first batch of a transaction by a client.
    pub verification: Option<VerificationGuard>,
    /// Protocol of the markers in this append.
    pub txn_protocol: TxnProtocol,
    /// Refuse unless the log ends here: fences a writer that does not know of another one.
    pub expected_end: Option<i64>,
}

impl AppendParams {
    pub fn client(now_ms: i64) -> AppendParams {
        let txn_protocol = TxnProtocol::V2;
        AppendParams { origin: Origin::Client, now_ms, verification: None, txn_protocol, expected_end: None }
    }

    pub fn coordinator(now_ms: i64) -> AppendParams {
        AppendParams { origin: Origin::Coordinator, ..AppendParams::client(now_ms) }
    }
}

/// Where an append went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record; of the original batch if this is a duplicate.
    pub first_offset: i64,
    pub last_offset: i64,
    /// The append time (ms) for LogAppendTime topics, else -1; for a duplicate, the original's timestamp.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    /// Nothing was written: it is already there (W-2).
    pub duplicate: bool,
}

impl AppendInfo {
    /// What to wait for with [`crate::PartitionLog::when_committed`].
    pub fn next_offset(&self) -> i64 {
        self.last_offset + 1
    }
}

/// Up to where a read may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// READ_UNCOMMITTED: up to the high watermark.
    HighWatermark,
    /// READ_COMMITTED: up to the last stable offset.
    LastStable,
    /// All that was written, durable or not: for the broker's own recovery and debugging consumers.
    LogEnd,
}

/// What to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadParams {
    pub from_offset: i64,
    /// Bytes, not exceeded except as `min_one_batch` says.
    pub max_bytes: usize,
    pub isolation: Isolation,
    /// Return a whole batch even if it is larger than `max_bytes`.
    pub min_one_batch: bool,
}

/// An aborted transaction that overlaps what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

/// What a read found. Whole batches as stored; the first may begin before the offset asked for (F-7).
#[derive(Debug, Clone, Default)]
pub struct FetchData {
    /// To be sent one after the other; empty when there is nothing to read yet.
    pub records: Vec<Bytes>,
    /// Instead of `records`: all of it lies in one piece in a file. Only for who asked for it ([`crate::PartitionLog::read_to_send`]).
    pub file: Option<FileRange>,
    /// Bytes in `records` or `file`.
    pub size: usize,
    /// Offset after the last batch, or the one asked for.
    pub next_offset: i64,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// `Some` for [`Isolation::LastStable`] only.
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
}

/// The marks of a log. `log_start <= last_stable <= high_watermark <= log_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    pub log_start: i64,
    pub last_stable: i64,
    pub high_watermark: i64,
    /// Offset of the next record.
    pub log_end: i64,
    /// All before it is synced.
    pub durable: i64,
}

/// An offset found by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    pub offset: i64,
    /// Milliseconds.
    pub timestamp: i64,
    pub leader_epoch: i32,
}

/// A producer that the partition knows (D-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerInfo {
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// -1 after a marker.
    pub last_sequence: i32,
    pub last_timestamp: i64,
    /// -1 before any marker.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub txn_start_offset: Option<i64>,
}

/// Called when what it waits for is committed, or can no longer be. Runs on a thread of the log: it must be quick, must not block
/// and must not call the log.
pub type Completion = Box<dyn FnOnce(Result<(), StorageError>) + Send>;

/// What listeners are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// High watermark or last stable offset moved: waiting fetches may have something to read.
    Advanced,
    /// The log start offset moved up.
    StartMoved,
    /// The partition went offline.
    Offline,
}

/// Called after something happened to a partition, without any lock of the log held, on any thread: also on one that is appending, with
/// whatever locks its owner holds. Must be quick and must not block.
pub type Listener = Arc<dyn Fn(&TopicPartition, Event) + Send + Sync>;

/// Called with the reason when a data directory has failed; see [`crate::LogDir::set_failure_listener`].
pub type FailureListener = Arc<dyn Fn(&str) + Send + Sync>;
