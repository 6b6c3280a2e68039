//! Files of fixed-size, ascending entries, and the offset index among them.
//!
//! An index only makes finding quick. It is written without a sync, may lag behind the log, and is never believed without a look at
//! the log: whatever is missing is found by reading on.

use std::io;
use std::path::{Path, PathBuf};

use crate::file_range::Known;
use crate::files::Files;
use crate::fs::OpenMode;

/// Entries kept in memory before they are written.
const PENDING_ENTRIES: usize = 128;

/// A file of entries of `N` bytes, the last ones still in memory.
#[derive(Debug)]
pub(crate) struct EntryFile<const N: usize> {
    path: PathBuf,
    /// Entries in the file; `None` before the first use.
    stored: Option<u64>,
    pending: Vec<[u8; N]>,
    /// The file is longer than its entries (preallocated by Kafka, or cut short by us).
    excess: bool,
}

impl<const N: usize> EntryFile<N> {
    pub fn new(path: PathBuf) -> Self {
        EntryFile { path, stored: None, pending: Vec::new(), excess: false }
    }

    /// For a segment that was just begun: no file yet.
    pub fn fresh(path: PathBuf) -> Self {
        EntryFile { path, stored: Some(0), pending: Vec::new(), excess: true }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn load(&mut self, files: &Files) -> io::Result<u64> {
        if let Some(stored) = self.stored {
            return Ok(stored);
        }
        let file = match files.get(&self.path, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.stored = Some(0);
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        let mut end = len / N as u64;
        // Kafka preallocates: after a crash of it the file ends in zeros. No entry but a first one could be all zeros.
        if end > 0 && read_entry::<N>(&*file, end - 1)? == [0; N] {
            let (mut low, mut high) = (0, end - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                match read_entry::<N>(&*file, middle)? == [0; N] {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            end = low;
        }
        self.excess = end * N as u64 != len;
        self.stored = Some(end);
        Ok(end)
    }

    pub fn len(&mut self, files: &Files) -> io::Result<u64> {
        Ok(self.load(files)? + self.pending.len() as u64)
    }

    pub fn get(&mut self, files: &Files, index: u64) -> io::Result<[u8; N]> {
        let stored = self.load(files)?;
        if index >= stored {
            return self
                .pending
                .get((index - stored) as usize)
                .copied()
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        }
        read_entry(&*files.get(&self.path, OpenMode::Existing)?, index)
    }

    pub fn last(&mut self, files: &Files) -> io::Result<Option<[u8; N]>> {
        match self.len(files)? {
            0 => Ok(None),
            n => self.get(files, n - 1).map(Some),
        }
    }

    /// Number of entries at the front for which `before` holds; it must hold for all of them and for none after.
    pub fn partition_point(&mut self, files: &Files, before: impl Fn(&[u8; N]) -> bool) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.len(files)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match before(&self.get(files, middle)?) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Adds an entry. Writing it may fail (a full disk, say): it then stays in memory and is tried again with the next ones.
    pub fn push(&mut self, files: &Files, entry: [u8; N]) {
        self.pending.push(entry);
        if self.pending.len() >= PENDING_ENTRIES
            && let Err(error) = self.flush(files)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot write index entries yet");
        }
    }

    /// Writes what is pending to the file.
    pub fn flush(&mut self, files: &Files) -> io::Result<()> {
        let stored = self.load(files)?;
        if self.pending.is_empty() && !self.excess {
            return Ok(());
        }
        let file = files.get(&self.path, OpenMode::Create)?;
        file.write_at(&self.pending.concat(), stored * N as u64)?;
        let stored = stored + self.pending.len() as u64;
        if self.excess {
            file.truncate(stored * N as u64)?;
            self.excess = false;
        }
        self.pending.clear();
        self.stored = Some(stored);
        Ok(())
    }

    /// Keeps the first `count` entries.
    pub fn truncate(&mut self, files: &Files, count: u64) -> io::Result<()> {
        let stored = self.load(files)?;
        if count >= stored {
            self.pending.truncate((count - stored) as usize);
            return Ok(());
        }
        self.pending.clear();
        self.stored = Some(count);
        self.excess = true;
        Ok(())
    }
}

fn read_entry<const N: usize>(file: &dyn crate::fs::File, index: u64) -> io::Result<[u8; N]> {
    let mut entry = [0; N];
    match file.read_at(&mut entry, index * N as u64)? {
        read if read == N => Ok(entry),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Offset to file position, for a batch every `index.interval.bytes`. An entry names the last offset of the batch at its position.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    base: i64,
    entries: EntryFile<8>,
}

impl OffsetIndex {
    pub fn new(base: i64, entries: EntryFile<8>) -> OffsetIndex {
        OffsetIndex { base, entries }
    }

    pub fn entries(&mut self) -> &mut EntryFile<8> {
        &mut self.entries
    }

    /// Bytes of the file once all entries are written.
    pub fn size(&mut self, files: &Files) -> io::Result<u64> {
        Ok(self.entries.len(files)? * 8)
    }

    /// `last_offset` must be within 2^31 of the segment's base.
    pub fn push(&mut self, files: &Files, last_offset: i64, position: u32) {
        let relative = (last_offset - self.base) as u32;
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&relative.to_be_bytes());
        entry[4..].copy_from_slice(&position.to_be_bytes());
        self.entries.push(files, entry);
    }

    /// A position at or before that of the batch that holds `offset`: 0 if nothing better is known.
    pub fn position_before(&mut self, files: &Files, offset: i64) -> io::Result<u64> {
        let count = self.entries.partition_point(files, |entry| self.base + i64::from(split(entry).0) <= offset)?;
        match count {
            0 => Ok(0),
            n => Ok(u64::from(split(&self.entries.get(files, n - 1)?).1)),
        }
    }

    /// The last batch with an entry that begins at or before `position` and ends before `limit`.
    pub fn last_before(&mut self, files: &Files, position: u64, limit: i64) -> io::Result<Option<Known>> {
        let base = self.base;
        let known = |entry: &[u8; 8]| {
            let (relative, position) = split(entry);
            Known { position: u64::from(position), last_offset: base + i64::from(relative) }
        };
        let count = self.entries.partition_point(files, |entry| {
            let known = known(entry);
            known.position <= position && known.last_offset < limit
        })?;
        match count {
            0 => Ok(None),
            n => Ok(Some(known(&self.entries.get(files, n - 1)?))),
        }
    }

    /// Drops entries at or after a file position.
    pub fn truncate_position(&mut self, files: &Files, position: u64) -> io::Result<()> {
        let count = self.entries.partition_point(files, |entry| u64::from(split(entry).1) < position)?;
        self.entries.truncate(files, count)
    }
}

fn split(entry: &[u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *entry;
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}
