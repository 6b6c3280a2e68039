//! One segment: a log file and its indexes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::batch::BatchHeader;

use crate::files::Files;
use crate::fs::{File, OpenMode};
use crate::index::{EntryFile, OffsetIndex};
use crate::scan::{ScanError, Scanner};
use crate::sound::Sound;
use crate::time_index::TimeIndex;
use crate::txn_index::TxnIndex;

pub(crate) const SUFFIXES: [&str; 4] = ["log", "index", "timeindex", "txnindex"];

/// Index entries are written to their files at least for every so many bytes of log: what opening after a crash reads in any case.
const FLUSH_BYTES: u64 = 512 << 10;

/// The name that Kafka gives to the file of a segment, without its suffix.
pub(crate) fn stem(base: i64) -> String {
    format!("{base:020}")
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub base: i64,
    log_path: PathBuf,
    /// Bytes of the log file that hold whole batches.
    pub size: u64,
    pub offsets: OffsetIndex,
    pub times: TimeIndex,
    pub txns: TxnIndex,
    /// What of the log file was compared with its checksums.
    pub sound: Arc<Sound>,
    bytes_since_entry: u64,
    bytes_since_flush: u64,
    /// Max timestamp of the first batch, by which the segment ages; -1 before it is known.
    first_timestamp: i64,
    /// The largest timestamp and the last offset of the first batch that has it; `None` before it is known.
    max: Option<(i64, i64)>,
    /// When the segment was begun or opened, in milliseconds: its age if its batches have no timestamps.
    begun_ms: i64,
}

impl Segment {
    /// A segment found on disk.
    pub fn existing(dir: &Path, base: i64, size: u64, now_ms: i64) -> Segment {
        Segment::with(dir, base, size, now_ms, false, "")
    }

    /// A segment that compaction writes, under names that do not count yet.
    pub fn cleaned(dir: &Path, base: i64) -> Segment {
        Segment::with(dir, base, 0, 0, true, ".cleaned")
    }

    /// A segment without files; they are made by the first append.
    pub fn fresh(dir: &Path, base: i64, now_ms: i64) -> Segment {
        Segment::with(dir, base, 0, now_ms, true, "")
    }

    fn with(dir: &Path, base: i64, size: u64, now_ms: i64, fresh: bool, extra: &str) -> Segment {
        let path = |suffix: &str| dir.join(format!("{}.{suffix}{extra}", stem(base)));
        let (index, timeindex) = match fresh {
            true => (EntryFile::fresh(path("index")), EntryFile::fresh(path("timeindex"))),
            false => (EntryFile::new(path("index")), EntryFile::new(path("timeindex"))),
        };
        let txns = if fresh { TxnIndex::fresh(path("txnindex")) } else { TxnIndex::new(path("txnindex")) };
        Segment {
            base,
            log_path: path("log"),
            size,
            offsets: OffsetIndex::new(base, index),
            times: TimeIndex::new(base, timeindex),
            txns,
            sound: Arc::default(),
            bytes_since_entry: 0,
            bytes_since_flush: 0,
            first_timestamp: -1,
            max: fresh.then_some((-1, base)),
            begun_ms: now_ms,
        }
    }

    pub fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// The log file; it must exist.
    pub fn file(&self, files: &Files) -> io::Result<Arc<dyn File>> {
        files.get(&self.log_path, OpenMode::Existing)
    }

    /// Writes `bytes`, whole batches described by `batches` (each with its position in `bytes`), at the end. Returns the file, to be
    /// synced. On failure the file is cut back, and the segment is as before; if even that fails, `Err` has the second error too.
    pub fn append(
        &mut self,
        files: &Files,
        bytes: &[u8],
        batches: &[(usize, BatchHeader)],
        interval: u64,
    ) -> Result<Arc<dyn File>, (io::Error, Option<io::Error>)> {
        let file = files.get(&self.log_path, OpenMode::Create).map_err(|error| (error, None))?;
        if let Err(error) = file.write_at(bytes, self.size) {
            return Err((error, file.truncate(self.size).err()));
        }
        for (at, header) in batches {
            self.note(files, self.size + *at as u64, header, interval);
        }
        self.sound.add(self.size..self.size + bytes.len() as u64);
        self.size += bytes.len() as u64;
        Ok(file)
    }

    /// Takes a batch at `position` into indexes and timestamps: of an append, or of recovery's reading.
    pub fn note(&mut self, files: &Files, position: u64, header: &BatchHeader, interval: u64) {
        if position == 0 {
            self.first_timestamp = header.max_timestamp;
        }
        let max = self.max.unwrap_or((-1, self.base));
        let max = if header.max_timestamp > max.0 { (header.max_timestamp, header.last_offset()) } else { max };
        self.max = Some(max);
        if self.bytes_since_entry > interval {
            self.offsets.push(files, header.last_offset(), position as u32);
            if let Err(error) = self.times.maybe_push(files, max.0, max.1) {
                tracing::warn!(path = %self.log_path.display(), %error, "cannot add to the time index");
            }
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size() as u64;
        self.bytes_since_flush += header.size() as u64;
        if self.bytes_since_flush >= FLUSH_BYTES {
            self.bytes_since_flush = 0;
            if let Err(error) = self.flush_indexes(files) {
                tracing::warn!(path = %self.log_path.display(), %error, "cannot write index entries yet");
            }
        }
    }

    /// Whether an append of `bytes` up to `last_offset` must go to a new segment (H-5). `now_ms` is used where timestamps are missing.
    pub fn must_roll(&mut self, files: &Files, next: &NextAppend, limits: &RollLimits) -> io::Result<bool> {
        if self.size == 0 {
            return Ok(false);
        }
        if last_relative(self.base, next.last_offset).is_none() || self.size + next.bytes > limits.segment_bytes {
            return Ok(true);
        }
        let first = self.first_timestamp(files)?;
        let age = match first >= 0 && next.max_timestamp >= 0 {
            true => next.max_timestamp.saturating_sub(first),
            false => next.now_ms.saturating_sub(self.begun_ms),
        };
        let index_full = self.offsets.size(files)? + 8 > limits.index_bytes
            || self.times.entries().len(files)? * 12 + 12 > limits.index_bytes;
        Ok(age > limits.segment_ms || index_full)
    }

    fn first_timestamp(&mut self, files: &Files) -> io::Result<i64> {
        if self.first_timestamp < 0 && self.size > 0 {
            let mut scanner = Scanner::new(self.file(files)?, 0, self.size, false);
            if let Ok(Some(first)) = scanner.next() {
                self.first_timestamp = first.header.max_timestamp;
            }
        }
        Ok(self.first_timestamp)
    }

    /// The largest timestamp (ms, -1 if none) and an offset of it. Of a closed segment the time index's last entry says it.
    pub fn max_timestamp(&mut self, files: &Files) -> io::Result<(i64, i64)> {
        if let Some(max) = self.max {
            return Ok(max);
        }
        let mut max = self.times.last(files)?.unwrap_or((-1, self.base));
        // No entry although there is data: the index is missing. What it would say is in the batches.
        if max.0 < 0 && self.size > 0 {
            let mut scanner = Scanner::new(self.file(files)?, 0, self.size, false);
            while let Ok(Some(batch)) = scanner.next() {
                if batch.header.max_timestamp > max.0 {
                    max = (batch.header.max_timestamp, batch.header.last_offset());
                }
            }
        }
        self.max = Some(max);
        Ok(max)
    }

    /// Sets what recovery knows of the part it does not read again.
    pub fn resume(&mut self, files: &Files, scan_from: u64) -> io::Result<()> {
        self.max = Some(match scan_from {
            0 => (-1, self.base),
            _ => self.times.last(files)?.unwrap_or((-1, self.base)),
        });
        self.bytes_since_entry = 0;
        Ok(())
    }

    /// Where to start looking for `offset`.
    pub fn position_before(&mut self, files: &Files, offset: i64) -> io::Result<u64> {
        match self.offsets.position_before(files, offset) {
            Ok(position) if position < self.size => Ok(position),
            // An index that points past the log is damaged.
            Ok(_) => Ok(0),
            Err(error) => {
                tracing::warn!(path = %self.log_path.display(), %error, "cannot read the index, reading the log instead");
                Ok(0)
            }
        }
    }

    /// Writes out the indexes, with the final time entry that Kafka expects of a closed segment. The files are to be synced.
    pub fn seal(&mut self, files: &Files) -> io::Result<Vec<Arc<dyn File>>> {
        let (timestamp, offset) = self.max_timestamp(files)?;
        self.times.maybe_push(files, timestamp, offset)?;
        self.flush_indexes(files)?;
        let paths = [self.offsets.entries().path().to_path_buf(), self.times.entries().path().to_path_buf()];
        paths.iter().map(|path| files.get(path, OpenMode::Create)).collect()
    }

    pub fn flush_indexes(&mut self, files: &Files) -> io::Result<()> {
        self.offsets.entries().flush(files)?;
        self.times.entries().flush(files)
    }

    /// Removes or renames a closed segment's files: `.deleted` is added to each, to be removed later.
    pub fn rename_deleted(&self, files: &Files) -> io::Result<Vec<PathBuf>> {
        let mut renamed = Vec::new();
        for suffix in SUFFIXES {
            let path = self.log_path.with_extension(suffix);
            let target = self.log_path.with_extension(format!("{suffix}.deleted"));
            files.forget(&path);
            match files.fs.rename(&path, &target) {
                Ok(()) => renamed.push(target),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(renamed)
    }

    /// The first batch from `position` on that `wanted` accepts, as position and header.
    pub fn find_batch(
        &self,
        files: &Files,
        position: u64,
        wanted: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Option<(u64, BatchHeader)>, ScanError> {
        if self.size == 0 {
            return Ok(None);
        }
        let mut scanner = Scanner::new(self.file(files).map_err(ScanError::Io)?, position, self.size, true);
        while let Some(batch) = scanner.next()? {
            if wanted(&batch.header) {
                return Ok(Some((batch.position, batch.header)));
            }
        }
        Ok(None)
    }
}

/// What is about to be appended.
pub(crate) struct NextAppend {
    pub bytes: u64,
    pub last_offset: i64,
    pub max_timestamp: i64,
    pub now_ms: i64,
}

pub(crate) struct RollLimits {
    pub segment_bytes: u64,
    pub segment_ms: i64,
    pub index_bytes: u64,
}

/// An offset as indexes hold it; `None` if it is too far from the base.
fn last_relative(base: i64, offset: i64) -> Option<i32> {
    offset.checked_sub(base).and_then(|relative| i32::try_from(relative).ok())
}
