//! The log that a shard writes through. Embedded, it is a partition of the segment log; the trait is the seam where a
//! log in an existing Kafka-compatible cluster can take its place, hence `term` and `expected_end`.

use bytes::Bytes;

/// The transaction that a batch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: i64,
    pub epoch: i16,
}

/// The end of a transaction, to be written into every log that it wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndMarker {
    pub producer: Producer,
    pub commit: bool,
    /// Epoch of the transaction coordinator that ends it (D-4).
    pub coordinator_epoch: i32,
    /// Every transaction raises the epoch (protocol 2): the marker's must be higher than the one of the records (W-9).
    pub raises_epoch: bool,
}

/// A record as bytes. A `None` value is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// What loading yields, in log order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    Record {
        offset: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        record: RawRecord,
    },
    /// The end of a transaction of this producer.
    Marker {
        offset: u64,
        producer: Producer,
        commit: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Another owner wrote with a higher term, or the end is not where the owner left it. The shard must reload.
    #[error("another owner writes this log")]
    Fenced,
    /// The write failed, what is on disk is unknown. The shard must reload.
    #[error("the log failed: {0}")]
    Failed(String),
    /// The batch exceeds the topic's max.message.bytes. Nothing was written.
    #[error("the batch is too large for the log")]
    TooLarge,
    /// The disk is full. Nothing was written.
    #[error("no space left for the log")]
    NoSpace,
    /// Injected by tests: a Kafka error code. Nothing was written.
    #[error("refused with error {0}")]
    Refused(i16),
}

impl LogError {
    /// True when the log is known to be unchanged, so that the shard can go on.
    pub fn is_clean(&self) -> bool {
        matches!(self, LogError::TooLarge | LogError::NoSpace | LogError::Refused(_))
    }
}

/// Offsets are those of the log; an *end* is the offset after the last record.
pub trait StateLog: Send {
    /// Opens a new term (fencing earlier ones) and yields all entries from the start. Returns the term and the end.
    fn load(&mut self, each: &mut dyn FnMut(LogEntry)) -> Result<(u32, u64), LogError>;

    /// Appends one atomic batch and returns the new end. It may not be durable yet.
    /// `expected_end` is where the owner believes the log ends; anything else is `Fenced`.
    fn append(
        &mut self,
        term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        batch: &[RawRecord],
    ) -> Result<u64, LogError>;

    /// Appends the end marker of a transaction and returns the new end.
    fn append_marker(
        &mut self,
        term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        marker: &EndMarker,
    ) -> Result<u64, LogError>;

    /// Everything before this offset survives a crash.
    fn durable_end(&self) -> u64;
}
