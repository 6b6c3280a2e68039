//! Timestamp to offset: an entry says that no batch up to and including that of its offset has a larger timestamp.

use std::io;

use crate::files::Files;
use crate::index::EntryFile;

#[derive(Debug)]
pub(crate) struct TimeIndex {
    base: i64,
    entries: EntryFile<12>,
}

impl TimeIndex {
    pub fn new(base: i64, entries: EntryFile<12>) -> TimeIndex {
        TimeIndex { base, entries }
    }

    pub fn entries(&mut self) -> &mut EntryFile<12> {
        &mut self.entries
    }

    /// Adds an entry if the timestamp (ms) is larger than the last one's.
    pub fn maybe_push(&mut self, files: &Files, timestamp: i64, offset: i64) -> io::Result<()> {
        if timestamp < 0 || self.last(files)?.is_some_and(|(last, _)| timestamp <= last) {
            return Ok(());
        }
        let mut entry = [0; 12];
        entry[..8].copy_from_slice(&timestamp.to_be_bytes());
        entry[8..].copy_from_slice(&((offset - self.base) as u32).to_be_bytes());
        self.entries.push(files, entry);
        Ok(())
    }

    /// The last entry: timestamp and offset.
    pub fn last(&mut self, files: &Files) -> io::Result<Option<(i64, i64)>> {
        let base = self.base;
        Ok(self.entries.last(files)?.map(|entry| split(base, &entry)))
    }

    /// An offset before which nothing has a timestamp of at least `timestamp`: the segment's base if nothing better is known.
    pub fn offset_before(&mut self, files: &Files, timestamp: i64) -> io::Result<i64> {
        let base = self.base;
        match self.entries.partition_point(files, |entry| split(base, entry).0 < timestamp)? {
            0 => Ok(base),
            n => Ok(split(base, &self.entries.get(files, n - 1)?).1),
        }
    }

    /// Drops entries of offsets at or after `offset`.
    pub fn truncate_offset(&mut self, files: &Files, offset: i64) -> io::Result<()> {
        let base = self.base;
        let count = self.entries.partition_point(files, |entry| split(base, entry).1 < offset)?;
        self.entries.truncate(files, count)
    }
}

fn split(base: i64, entry: &[u8; 12]) -> (i64, i64) {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *entry;
    (i64::from_be_bytes([a, b, c, d, e, f, g, h]), base + i64::from(u32::from_be_bytes([i, j, k, l])))
}
