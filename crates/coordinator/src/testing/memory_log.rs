//! The log of the test bench.

use crate::record::Record;
use crate::state_log::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};

/// When appended records become durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Immediate,
    /// When `MemoryLog::make_durable` is called.
    Manual,
}

/// A log that lives in memory. Its offsets are positions in `entries`.
#[derive(Debug, Default)]
pub struct MemoryLog {
    entries: Vec<LogEntry>,
    term: u32,
    durable: u64,
    durability: Durability,
    fail_next: Option<LogError>,
    max_batch_bytes: Option<usize>,
}

impl MemoryLog {
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    pub fn end(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
        if durability == Durability::Immediate {
            self.make_durable();
        }
    }

    /// The next append fails with `error` and writes nothing.
    pub fn fail_next_append(&mut self, error: LogError) {
        self.fail_next = Some(error);
    }

    /// Larger batches are refused with `TooLarge`. A batch counts as what Kafka would make of it, give or take a few bytes.
    pub fn set_max_batch_bytes(&mut self, max_batch_bytes: usize) {
        self.max_batch_bytes = Some(max_batch_bytes);
    }

    /// Another log takes the place of this one, to be loaded by a restart. Offsets are given anew.
    pub fn replace(&mut self, entries: Vec<LogEntry>) {
        self.entries = entries;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let (LogEntry::Record { offset, .. } | LogEntry::Marker { offset, .. }) = entry;
            *offset = index as u64;
        }
        self.make_durable();
    }

    /// A new owner takes the log over: every append of the present one is fenced until it loads again.
    pub fn fence(&mut self) {
        self.term += 1;
    }

    /// The bench's `make_durable` also delivers the answers that wait for it.
    pub fn make_durable(&mut self) {
        self.durable = self.end();
    }

    /// What a crash leaves.
    pub fn lose_unsynced(&mut self) {
        self.entries.truncate(self.durable as usize);
    }

    /// Adds entries as another broker would have written them; to be loaded by a restart.
    pub fn seed(&mut self, records: &[Record]) {
        for record in records {
            self.seed_raw(record.encode().expect("a record of a test fits its schema"));
        }
    }

    /// The same for a record of any state machine.
    pub fn seed_raw(&mut self, record: RawRecord) {
        let offset = self.end();
        self.entries.push(LogEntry::Record { offset, timestamp_ms: 0, producer: None, record });
        self.make_durable();
    }

    fn check(&mut self, term: u32, expected_end: u64) -> Result<(), LogError> {
        if let Some(error) = self.fail_next.take() {
            return Err(error);
        }
        if term != self.term || expected_end != self.end() {
            return Err(LogError::Fenced);
        }
        Ok(())
    }

    fn written(&mut self) -> u64 {
        if self.durability == Durability::Immediate {
            self.make_durable();
        }
        self.end()
    }
}

impl StateLog for MemoryLog {
    fn load(&mut self, each: &mut dyn FnMut(LogEntry)) -> Result<(u32, u64), LogError> {
        self.term += 1;
        self.entries.iter().cloned().for_each(each);
        Ok((self.term, self.end()))
    }

    fn append(
        &mut self,
        term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        batch: &[RawRecord],
    ) -> Result<u64, LogError> {
        self.check(term, expected_end)?;
        if self.max_batch_bytes.is_some_and(|max| batch_bytes(batch) > max) {
            return Err(LogError::TooLarge);
        }
        for record in batch {
            let (offset, record) = (self.end(), record.clone());
            self.entries.push(LogEntry::Record { offset, timestamp_ms, producer, record });
        }
        Ok(self.written())
    }

    fn append_marker(
        &mut self,
        term: u32,
        expected_end: u64,
        _timestamp_ms: i64,
        marker: &EndMarker,
    ) -> Result<u64, LogError> {
        self.check(term, expected_end)?;
        let offset = self.end();
        self.entries.push(LogEntry::Marker { offset, producer: marker.producer, commit: marker.commit });
        Ok(self.written())
    }

    fn durable_end(&self) -> u64 {
        self.durable
    }
}

/// Size of a record batch: its header, and per record two lengths and five small numbers besides key and value.
fn batch_bytes(batch: &[RawRecord]) -> usize {
    let record = |record: &RawRecord| record.key.len() + record.value.as_ref().map_or(0, |value| value.len()) + 8;
    61 + batch.iter().map(record).sum::<usize>()
}

/// The record of an entry; markers have none.
pub(super) fn record(entry: &LogEntry) -> Option<Record> {
    match entry {
        LogEntry::Record { record, .. } => Record::decode(record).expect("what the shard wrote can be read"),
        LogEntry::Marker { .. } => None,
    }
}
