//! Aborted transactions of a segment (`.txnindex`), in the segment that holds the abort marker.
//!
//! Unlike the other indexes this one must be complete: a reader that is not told of an aborted transaction would take its records for
//! committed. So an entry is written before its marker, and synced with it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::files::Files;
use crate::fs::{File, OpenMode};

/// Version i16 0, producer id, first offset, last offset, last stable offset (each i64).
const ENTRY_LEN: usize = 34;

/// One aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbortedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    /// Offset of the abort marker.
    pub last_offset: i64,
    /// Last stable offset after it; a search for offsets below it may end here.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    fn to_bytes(self) -> [u8; ENTRY_LEN] {
        let mut out = [0; ENTRY_LEN];
        let fields = [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset];
        for (slot, field) in out[2..].chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        out
    }

    fn from_bytes(entry: &[u8]) -> AbortedTxn {
        let field = |i: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&entry[2 + 8 * i..10 + 8 * i]);
            i64::from_be_bytes(bytes)
        };
        AbortedTxn {
            producer_id: field(0),
            first_offset: field(1),
            last_offset: field(2),
            last_stable_offset: field(3),
        }
    }
}

#[derive(Debug)]
pub(crate) struct TxnIndex {
    path: PathBuf,
    /// `None` before the first use.
    entries: Option<Vec<AbortedTxn>>,
    /// How many of them are in the file.
    stored: usize,
}

impl TxnIndex {
    pub fn new(path: PathBuf) -> TxnIndex {
        TxnIndex { path, entries: None, stored: 0 }
    }

    pub fn fresh(path: PathBuf) -> TxnIndex {
        TxnIndex { path, entries: Some(Vec::new()), stored: 0 }
    }

    /// The entries in the order of their markers.
    pub fn entries(&mut self, files: &Files) -> io::Result<&[AbortedTxn]> {
        if self.entries.is_none() {
            let bytes = crate::fs::read_file(&*files.fs, &self.path, u64::from(u32::MAX))?.unwrap_or_default();
            // What is cut, or zeros, was never synced: it can only belong to a marker that was not, either.
            let mut before = -1;
            let sound = |entry: &AbortedTxn| {
                entry.last_offset > entry.first_offset
                    && entry.last_offset > std::mem::replace(&mut before, entry.last_offset)
            };
            let entries =
                bytes.chunks_exact(ENTRY_LEN).map(AbortedTxn::from_bytes).take_while(sound).collect::<Vec<_>>();
            self.stored = entries.len();
            self.entries = Some(entries);
        }
        Ok(self.entries.as_deref().unwrap_or_default())
    }

    /// Writes an entry; returns the file, which must be synced before the marker counts as durable.
    pub fn append(&mut self, files: &Files, entry: AbortedTxn) -> io::Result<Arc<dyn File>> {
        self.entries(files)?;
        let stored = self.stored;
        let entries = self.entries.get_or_insert_default();
        let mut bytes: Vec<u8> = entries[stored..].iter().flat_map(|entry| entry.to_bytes()).collect();
        bytes.extend_from_slice(&entry.to_bytes());
        let file = files.get(&self.path, OpenMode::Create)?;
        file.write_at(&bytes, (stored * ENTRY_LEN) as u64)?;
        entries.push(entry);
        self.stored = entries.len();
        Ok(file)
    }

    /// Brings the entries from `offset` on in line with those that recovery found in the log. What is right already is not touched: it may
    /// be synced, and to write it anew would put that at risk. If the log could not be read to its end (`whole` is false), entries beyond
    /// what was found are kept. Returns the file, which has to be synced, if there are such entries.
    pub fn reconcile(
        &mut self,
        files: &Files,
        offset: i64,
        found: &[AbortedTxn],
        whole: bool,
    ) -> io::Result<Option<Arc<dyn File>>> {
        let entries = self.entries(files)?;
        let known = &entries[entries.partition_point(|entry| entry.last_offset < offset)..];
        let same = known.iter().zip(found).take_while(|(known, found)| known == found).count();
        if same < known.len() && (whole || same < found.len()) {
            let first_wrong = known[same].last_offset;
            self.truncate(files, first_wrong)?;
        }
        for entry in &found[same..] {
            self.restore(files, *entry)?;
        }
        // What was there already may be in memory only.
        if found.is_empty() || self.stored == 0 {
            return Ok(None);
        }
        files.get(&self.path, OpenMode::Existing).map(Some)
    }

    /// Adds an entry that recovery found, and writes it if that is possible: a full disk must not keep the partition from opening.
    fn restore(&mut self, files: &Files, entry: AbortedTxn) -> io::Result<()> {
        if let Err(error) = self.append(files, entry) {
            tracing::warn!(path = %self.path.display(), %error, "cannot write the index of aborted transactions yet");
            self.entries(files)?;
            self.entries.get_or_insert_default().push(entry);
        }
        Ok(())
    }

    /// Drops entries whose marker is at or after `offset`.
    pub fn truncate(&mut self, files: &Files, offset: i64) -> io::Result<()> {
        let keep = self.entries(files)?.iter().take_while(|entry| entry.last_offset < offset).count();
        if let Some(entries) = &mut self.entries {
            entries.truncate(keep);
        }
        if keep < self.stored {
            let file = files.get(&self.path, OpenMode::Existing)?;
            file.truncate((keep * ENTRY_LEN) as u64)?;
            // Or a crash brings back an entry for an offset that other records have by then.
            file.sync_data()?;
            self.stored = keep;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_kafkas_bytes_and_round_trips() {
        let entry = AbortedTxn { producer_id: 1, first_offset: 2, last_offset: 3, last_stable_offset: 4 };
        let bytes = entry.to_bytes();
        assert_eq!(bytes[..10], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(bytes[33], 4);
        assert_eq!(AbortedTxn::from_bytes(&bytes), entry);
    }
}
