//! Which records of a log compaction keeps: rules C-2 to C-6, without any files.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use wire::batch::{
    Attributes, Batch, BatchBuilder, BatchError, BatchHeader, Record, TimestampType, field, recompute_crc,
};

use crate::txn_index::AbortedTxn;

/// Memory that an entry of the map takes, roughly.
const ENTRY_BYTES: usize = 48;

/// The newest offset of every key in a range of the log. Keys are held as 128-bit hashes under random seeds, so that nobody can make
/// two keys meet.
pub(crate) struct KeyMap {
    seeds: [RandomState; 2],
    newest: HashMap<(u64, u64), i64>,
    capacity: usize,
    /// The map knows everything from the first dirty offset up to this one.
    pub end: i64,
}

impl KeyMap {
    pub fn new(bytes: usize) -> KeyMap {
        let seeds = [RandomState::new(), RandomState::new()];
        KeyMap { seeds, newest: HashMap::new(), capacity: (bytes / ENTRY_BYTES).max(16), end: 0 }
    }

    fn hash(&self, key: &[u8]) -> (u64, u64) {
        (self.seeds[0].hash_one(key), self.seeds[1].hash_one(key))
    }

    /// Takes in a batch; false if the map is full, and then the batch does not count as known.
    pub fn add(&mut self, batch: &Batch) -> Result<bool, BatchError> {
        if self.newest.len() + batch.header().record_count.max(0) as usize > self.capacity && !self.newest.is_empty() {
            return Ok(false);
        }
        for record in batch.records()? {
            let record = record?;
            if let Some(key) = &record.key {
                self.newest.insert(self.hash(key), record.offset);
            }
        }
        Ok(true)
    }

    fn is_newest(&self, record: &Record) -> bool {
        let Some(key) = &record.key else { return false };
        self.newest.get(&self.hash(key)).is_none_or(|newest| record.offset >= *newest)
    }
}

/// The aborted transactions of a log, to tell whose records nobody may see.
#[derive(Default)]
pub(crate) struct Aborted(HashMap<i64, Vec<(i64, i64)>>);

impl Aborted {
    pub fn add(&mut self, entry: &AbortedTxn) {
        self.0.entry(entry.producer_id).or_default().push((entry.first_offset, entry.last_offset));
    }

    pub fn contains(&self, header: &BatchHeader) -> bool {
        header.attributes.is_transactional()
            && !header.attributes.is_control()
            && self
                .0
                .get(&header.producer_id)
                .is_some_and(|ranges| ranges.iter().any(|(first, last)| (*first..*last).contains(&header.base_offset)))
    }
}

/// What becomes of a batch.
pub(crate) enum Verdict {
    Keep,
    Replace(Bytes),
    Drop,
}

/// Goes over the batches of a log in their order and says what becomes of each.
pub(crate) struct Cleaner {
    pub map: KeyMap,
    pub aborted: Aborted,
    /// Last offset of the last data batch of every producer that is still known, or its epoch if it has only markers.
    pub producers: HashMap<i64, (Option<i64>, i16)>,
    /// Last offset of all that is compacted. Its batch stays, empty if need be: where the active segment was never synced, or not
    /// begun, a crash makes this the end of the log, and offsets must not be given out again (C-7).
    pub last_offset: i64,
    /// Producers with records of a transaction that is not yet ended, among what was kept.
    kept_in_txn: HashSet<i64>,
    pub now_ms: i64,
    pub delete_retention_ms: i64,
}

impl Cleaner {
    pub fn new(map: KeyMap, now_ms: i64, delete_retention_ms: i64) -> Cleaner {
        Cleaner {
            map,
            aborted: Aborted::default(),
            producers: HashMap::new(),
            last_offset: -1,
            kept_in_txn: HashSet::new(),
            now_ms,
            delete_retention_ms,
        }
    }

    pub fn judge(&mut self, batch: &Batch) -> Result<Verdict, BatchError> {
        let header = batch.header();
        if header.attributes.is_control() {
            return Ok(self.judge_marker(batch));
        }
        if self.aborted.contains(header) {
            return Ok(self.emptied(header));
        }
        let mut kept = Vec::new();
        let (mut dropped, mut tombstone) = (false, false);
        let expired = header.delete_horizon().is_some_and(|horizon| horizon <= self.now_ms);
        for record in batch.records()? {
            let record = record?;
            let keep =
                record.offset >= self.map.end || (self.map.is_newest(&record) && (record.value.is_some() || !expired));
            match keep {
                true => {
                    tombstone |= record.value.is_none();
                    kept.push(record);
                }
                false => dropped = true,
            }
        }
        if kept.is_empty() {
            return Ok(self.emptied(header));
        }
        if header.attributes.is_transactional() {
            self.kept_in_txn.insert(header.producer_id);
        }
        let stamp = tombstone && header.base_offset < self.map.end && header.delete_horizon().is_none();
        if !dropped && !stamp {
            return Ok(Verdict::Keep);
        }
        let horizon = if stamp { Some(self.horizon()) } else { header.delete_horizon() };
        rebuild(header, &kept, horizon).map(Verdict::Replace)
    }

    fn horizon(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }

    /// C-5: a marker stays while there are records of its transaction, and for the retention of deletions after that.
    fn judge_marker(&mut self, batch: &Batch) -> Verdict {
        let header = batch.header();
        if self.kept_in_txn.remove(&header.producer_id) || header.base_offset >= self.map.end {
            return Verdict::Keep;
        }
        match header.delete_horizon() {
            None => {
                let mut bytes = batch.bytes().to_vec();
                stamp_marker(&mut bytes, header, self.horizon());
                Verdict::Replace(bytes.into())
            }
            Some(horizon) if horizon <= self.now_ms => self.emptied(header),
            Some(_) => Verdict::Keep,
        }
    }

    /// C-6: the last batch of a producer is kept without records, or its sequence would be forgotten. So is the last of all.
    fn emptied(&self, header: &BatchHeader) -> Verdict {
        let last = match self.producers.get(&header.producer_id) {
            Some((Some(last_offset), _)) => *last_offset == header.last_offset(),
            Some((None, epoch)) => header.attributes.is_control() && *epoch == header.producer_epoch,
            None => false,
        } || header.last_offset() == self.last_offset;
        match last {
            true if header.record_count == 0 => Verdict::Keep,
            true => rebuild(header, &[], None).map_or(Verdict::Keep, Verdict::Replace),
            false => Verdict::Drop,
        }
    }
}

/// A batch with the given records of an old one, and everything else as it was (C-4).
fn rebuild(header: &BatchHeader, records: &[Record], horizon: Option<i64>) -> Result<Bytes, BatchError> {
    let mut builder = BatchBuilder::new()
        .base_offset(header.base_offset)
        .leader_epoch(header.partition_leader_epoch)
        .producer(header.producer_id, header.producer_epoch, header.base_sequence)
        .transactional(header.attributes.is_transactional())
        .control(header.attributes.is_control())
        .compression(header.attributes.compression()?)
        .last_offset_delta(header.last_offset_delta);
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        builder = builder.log_append_time(header.max_timestamp);
    }
    if let Some(horizon) = horizon {
        builder = builder.delete_horizon(horizon);
    }
    records.iter().for_each(|record| builder.append_record(record));
    builder.build()
}

/// Sets the delete horizon of a marker. Its record stays as it is but for the timestamp delta, which is re-based (C-3).
fn stamp_marker(bytes: &mut Vec<u8>, header: &BatchHeader, horizon: i64) {
    let record = Batch::parse_next(&Bytes::copy_from_slice(bytes))
        .ok()
        .and_then(|(batch, _)| batch.records().ok()?.next()?.ok());
    if let Some(record) = record
        && let Ok(rebuilt) = rebuild(header, &[record], Some(horizon))
    {
        *bytes = rebuilt.to_vec();
        return;
    }
    // A marker without a record: there is no timestamp to keep.
    let attributes = (header.attributes.0 | Attributes::DELETE_HORIZON).to_be_bytes();
    bytes[field::ATTRIBUTES..field::ATTRIBUTES + 2].copy_from_slice(&attributes);
    bytes[field::BASE_TIMESTAMP..field::BASE_TIMESTAMP + 8].copy_from_slice(&horizon.to_be_bytes());
    recompute_crc(bytes);
}
