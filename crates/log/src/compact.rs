//! Compaction: of every key, the newest value stays (section 12). The rules are in `cleaner`; this is about the files.
//!
//! Closed segments are written anew beside the log, then put in its place. The `.log.swap` name is the decision: with it the new files
//! replace the old ones, also after a crash; without it they are forgotten.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use wire::batch::{Batch, BatchHeader};

use crate::cleaner::{Cleaner, KeyMap, Verdict};
use crate::error::StorageError;
use crate::files::Files;
use crate::fs::{DirEntry, File, Fs, OpenMode};
use crate::partition::{Inner, PartitionLog};
use crate::scan::{ScanError, Scanner};
use crate::segment::{SUFFIXES, Segment, stem};
use crate::txn_index::AbortedTxn;

/// Written at once.
const CHUNK: usize = 1 << 20;

/// What a compaction has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Bytes of the compacted segments before and after.
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Everything before this offset has been compacted.
    pub cleaned_to: i64,
}

/// A closed segment, as the compaction sees it.
struct Source {
    base: i64,
    /// Where the next segment begins.
    next: i64,
    size: u64,
    file: Arc<dyn File>,
    aborted: Vec<AbortedTxn>,
}

struct Job {
    dir: PathBuf,
    sources: Vec<Source>,
    cleaner: Cleaner,
    /// Everything before it was compacted earlier.
    dirty_from: i64,
    segment_bytes: u64,
    interval: u64,
}

impl PartitionLog {
    /// Share of the cleanable bytes that have not been compacted, and whether something is older than `max.compaction.lag.ms` allows.
    pub(crate) fn compaction_due(&self, noted_point: i64, now_ms: i64) -> Result<bool, StorageError> {
        let config = self.config();
        if !config.compact {
            return Ok(false);
        }
        let files = &self.shared.files;
        self.with(|inner| {
            let count = cleanable(inner, files, noted_point, now_ms, config.min_compaction_lag_ms)?;
            let (mut dirty, mut total, mut late) = (0u64, 0u64, false);
            for at in 0..count {
                let next = inner.segments[at + 1].base;
                let segment = &mut inner.segments[at];
                total += segment.size;
                if next > inner.cleaned_to {
                    dirty += segment.size;
                    let (timestamp, _) = segment.max_timestamp(files)?;
                    late |= timestamp >= 0 && now_ms.saturating_sub(timestamp) > config.max_compaction_lag_ms;
                }
            }
            Ok(dirty > 0 && (late || dirty as f64 > config.min_cleanable_dirty_ratio * total as f64))
        })?
        .map_err(|error: io::Error| StorageError::io(format_args!("{}: cannot look at segments", self.tp), error))
    }

    /// Compacts the closed segments before `noted_point`, a recovery point that is noted on disk: recovery takes a gap beyond it for a
    /// loss. `None` if there is nothing to do, or it is being done.
    pub(crate) fn compact(&self, noted_point: i64, now_ms: i64) -> Result<Option<CompactionReport>, StorageError> {
        let io = |error: io::Error| StorageError::io(format_args!("{}: cannot compact", self.tp), error);
        let Some(mut job) = self.with(|inner| self.begin(inner, noted_point, now_ms))?.map_err(io)? else {
            return Ok(None);
        };
        let cleaned = self.clean(&mut job);
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        inner.cleaning = false;
        let groups = cleaned.inspect_err(|error| {
            tracing::error!(partition = %self.tp, %error, "compaction failed; the log is as before");
        })?;
        match self.swap(inner, &job, &groups) {
            Ok(report) => Ok(Some(report)),
            Err(error) => {
                // Half-way between old and new files: the next opening finishes it.
                let waiters =
                    self.go_offline(&mut state, &format!("compacted segments could not be put in place: {error}"));
                drop(state);
                let error = io(error);
                self.fail(waiters, &error);
                Err(error)
            }
        }
    }

    fn begin(&self, inner: &mut Inner, noted_point: i64, now_ms: i64) -> io::Result<Option<Job>> {
        let config = self.config();
        let files = &self.shared.files;
        let count = cleanable(inner, files, noted_point, now_ms, config.min_compaction_lag_ms)?;
        if inner.cleaning || count == 0 {
            return Ok(None);
        }
        let mut cleaner =
            Cleaner::new(KeyMap::new(self.shared.config.compaction_map_bytes), now_ms, config.delete_retention_ms);
        for (id, entry) in inner.producers.iter() {
            cleaner.producers.insert(id, (entry.batches.back().map(|batch| batch.last_offset), entry.epoch));
        }
        let mut sources = Vec::new();
        for at in 0..inner.segments.len() {
            let next = inner.segments.get(at + 1).map_or(inner.end, |next| next.base);
            let segment = &mut inner.segments[at];
            let aborted = segment.txns.entries(files)?.to_vec();
            // Those of later segments, too: their records may be in these.
            aborted.iter().for_each(|entry| cleaner.aborted.add(entry));
            if at < count {
                let file = segment.file(files)?;
                sources.push(Source { base: segment.base, next, size: segment.size, file, aborted });
            }
        }
        cleaner.last_offset = sources.last().map_or(-1, |source: &Source| source.next - 1);
        inner.cleaning = true;
        Ok(Some(Job {
            dir: inner.dir.clone(),
            sources,
            cleaner,
            dirty_from: inner.cleaned_to,
            segment_bytes: u64::from(config.segment_bytes),
            interval: u64::from(config.index_interval_bytes),
        }))
    }

    /// Writes the compacted segments beside the log; returns how many sources each one replaces.
    fn clean(&self, job: &mut Job) -> Result<Vec<(usize, u64)>, StorageError> {
        self.fill_map(job)?;
        let mut groups = Vec::new();
        let mut at = 0;
        while at < job.sources.len() {
            let (mut count, mut size) = (0, 0);
            let base = job.sources[at].base;
            for source in &job.sources[at..] {
                let fits = size + source.size <= job.segment_bytes && source.next - base <= i64::from(i32::MAX);
                if count > 0 && !fits {
                    break;
                }
                (count, size) = (count + 1, size + source.size);
            }
            let written = self.write_group(job, at, count)?;
            groups.push((count, written));
            at += count;
        }
        Ok(groups)
    }

    fn fill_map(&self, job: &mut Job) -> Result<(), StorageError> {
        let map = &mut job.cleaner.map;
        map.end = job.dirty_from;
        for source in job.sources.iter().filter(|source| source.next > job.dirty_from) {
            let mut scanner = Scanner::new(source.file.clone(), 0, source.size, true);
            while let Some(found) = scanner.next().map_err(|error| self.read_failed(source.base, error))? {
                let header = found.header;
                if header.next_offset() <= job.dirty_from {
                    continue;
                }
                if !header.attributes.is_control() && !job.cleaner.aborted.contains(&header) {
                    let batch = self.parse(found.bytes)?;
                    let added = map.add(&batch).map_err(|error| self.damaged(&header, &error))?;
                    if !added {
                        return Ok(());
                    }
                }
                map.end = header.next_offset();
            }
            map.end = source.next;
        }
        Ok(())
    }

    fn parse(&self, bytes: &[u8]) -> Result<Batch, StorageError> {
        let parsed = Batch::parse_next(&Bytes::copy_from_slice(bytes));
        parsed
            .map(|(batch, _)| batch)
            .map_err(|error| self.read_failed(0, ScanError::Damaged { position: 0, reason: error.to_string() }))
    }

    fn damaged(&self, header: &BatchHeader, error: &wire::batch::BatchError) -> StorageError {
        self.read_failed(header.base_offset, ScanError::Damaged { position: 0, reason: error.to_string() })
    }

    /// Writes one compacted segment, synced, under its `.cleaned` names; returns its size.
    fn write_group(&self, job: &mut Job, at: usize, count: usize) -> Result<u64, StorageError> {
        let files = &self.shared.files;
        let io = |error: io::Error| StorageError::io(format_args!("{}: cannot compact", self.tp), error);
        let base = job.sources[at].base;
        remove_cleaned(files, &job.dir, base);
        let mut output = Segment::cleaned(&job.dir, base);
        let (mut buf, mut batches) = (Vec::new(), Vec::new());
        for source in &job.sources[at..at + count] {
            let mut scanner = Scanner::new(source.file.clone(), 0, source.size, true);
            while let Some(found) = scanner.next().map_err(|error| self.read_failed(source.base, error))? {
                let header = found.header;
                let batch = self.parse(found.bytes)?;
                let bytes = match job.cleaner.judge(&batch).map_err(|error| self.damaged(&header, &error))? {
                    Verdict::Drop => continue,
                    Verdict::Keep => batch.into_bytes(),
                    Verdict::Replace(bytes) => bytes,
                };
                let header = BatchHeader::parse(&bytes).map_err(|error| self.damaged(&header, &error))?;
                // A reader needs to hear of the transaction exactly as long as its marker is there.
                if let Some(entry) = source.aborted.iter().find(|entry| entry.last_offset == header.base_offset) {
                    output.txns.append(files, *entry).map_err(io)?;
                }
                batches.push((buf.len(), header));
                buf.extend_from_slice(&bytes);
                if buf.len() >= CHUNK {
                    output.append(files, &buf, &batches, job.interval).map_err(|(error, _)| io(error))?;
                    buf.clear();
                    batches.clear();
                }
            }
        }
        output.append(files, &buf, &batches, job.interval).map_err(|(error, _)| io(error))?;
        output.seal(files).map_err(io)?;
        for suffix in SUFFIXES {
            let file = files.get(&cleaned_path(&job.dir, base, suffix), OpenMode::Create).map_err(io)?;
            file.sync_data().map_err(io)?;
        }
        Ok(output.size)
    }

    /// Puts the compacted segments in the place of the old ones.
    fn swap(&self, inner: &mut Inner, job: &Job, groups: &[(usize, u64)]) -> io::Result<CompactionReport> {
        let files = &self.shared.files;
        let fs = &*files.fs;
        let config = self.config();
        let mut report = CompactionReport { cleaned_to: job.cleaner.map.end, ..CompactionReport::default() };
        let doomed_at = job.cleaner.now_ms.saturating_add(config.file_delete_delay_ms);
        let mut at = 0;
        for (place, (count, size)) in groups.iter().enumerate() {
            let base = job.sources[at].base;
            let final_path = |suffix: &str| job.dir.join(format!("{}.{suffix}", stem(base)));
            // The log last, when the others are durable: its name decides.
            for suffix in SUFFIXES.iter().rev() {
                if *suffix == "log" {
                    fs.sync_dir(&job.dir)?;
                }
                let cleaned = cleaned_path(&job.dir, base, suffix);
                files.forget(&cleaned);
                fs.rename(&cleaned, &swap_path(&final_path(suffix)))?;
            }
            fs.sync_dir(&job.dir)?;
            // From here on there is no way back; what fails now is finished by the next opening.
            for segment in inner.segments.drain(place..place + count) {
                report.bytes_before += segment.size;
                let renamed = segment.rename_deleted(files)?;
                let mut doomed = self.shared.doomed.lock().unwrap_or_else(PoisonError::into_inner);
                doomed.extend(renamed.into_iter().map(|path| (doomed_at, path)));
            }
            put_in_place(fs, &job.dir, base)?;
            inner.segments.insert(place, Segment::existing(&job.dir, base, *size, job.cleaner.now_ms));
            report.bytes_after += size;
            inner.dir_changed = true;
            at += count;
        }
        inner.cleaned_to = report.cleaned_to;
        self.cleaned.store(report.cleaned_to, Ordering::Release);
        inner.tail.forget_before(job.sources.last().map_or(0, |source| source.next));
        Ok(report)
    }
}

/// C-1: how many segments at the front may be compacted.
fn cleanable(inner: &mut Inner, files: &Files, noted_point: i64, now_ms: i64, min_lag_ms: i64) -> io::Result<usize> {
    let limit = inner.last_stable().min(inner.durable).min(noted_point);
    let closed = inner.segments.len() - 1;
    let mut count = 0;
    while count < closed && inner.segments[count + 1].base <= limit {
        let (timestamp, _) = inner.segments[count].max_timestamp(files)?;
        if min_lag_ms > 0 && timestamp > now_ms.saturating_sub(min_lag_ms) {
            break;
        }
        count += 1;
    }
    Ok(count)
}

fn cleaned_path(dir: &Path, base: i64, suffix: &str) -> PathBuf {
    dir.join(format!("{}.{suffix}.cleaned", stem(base)))
}

fn swap_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".swap");
    name.into()
}

/// Removes what an earlier attempt left.
fn remove_cleaned(files: &Files, dir: &Path, base: i64) {
    for suffix in SUFFIXES {
        let path = cleaned_path(dir, base, suffix);
        files.forget(&path);
        let _ = files.fs.remove_file(&path);
    }
}

/// Finishes swaps that a crash has interrupted, and forgets those that were not decided; true if it changed the directory.
pub(crate) fn finish_swaps(fs: &dyn Fs, dir: &Path, entries: &[DirEntry]) -> io::Result<bool> {
    let swaps: Vec<&str> = entries.iter().filter_map(|entry| entry.name.strip_suffix(".swap")).collect();
    let decided: BTreeSet<&str> = swaps.iter().filter_map(|name| name.strip_suffix(".log")).collect();
    for name in &swaps {
        let stem = name.split('.').next().unwrap_or_default();
        if !decided.contains(stem) {
            fs.remove_file(&dir.join(format!("{name}.swap")))?;
        }
    }
    for name in decided {
        let Ok(base) = name.parse::<i64>() else { continue };
        let log = dir.join(format!("{name}.log.swap"));
        let end = end_of(fs.open(&log, OpenMode::Existing)?, base)?;
        // The old segments that it replaces. One that lies behind its last batch may stay: it holds old values, nothing wrong.
        for entry in entries {
            let Some((old, suffix)) = entry.name.split_once('.') else { continue };
            let inside = old.parse::<i64>().is_ok_and(|old| old > base && old < end);
            if inside && SUFFIXES.contains(&suffix) {
                fs.remove_file(&dir.join(&entry.name))?;
            }
        }
        put_in_place(fs, dir, base)?;
    }
    if !swaps.is_empty() {
        fs.sync_dir(dir)?;
    }
    Ok(!swaps.is_empty())
}

/// Gives decided files their final names. The log is last, and only when all else is durable: its `.swap` name says that there is
/// something to finish, and that must not be lost while an old segment or index is still there.
fn put_in_place(fs: &dyn Fs, dir: &Path, base: i64) -> io::Result<()> {
    for suffix in SUFFIXES.iter().rev() {
        if *suffix == "log" {
            fs.sync_dir(dir)?;
        }
        let path = dir.join(format!("{}.{suffix}", stem(base)));
        match fs.rename(&swap_path(&path), &path) {
            // A crash came between.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn end_of(file: Arc<dyn File>, base: i64) -> io::Result<i64> {
    let size = file.len()?;
    let mut scanner = Scanner::new(file, 0, size, true);
    let mut end = base;
    loop {
        match scanner.next() {
            Ok(Some(batch)) => end = batch.header.next_offset(),
            Ok(None) => return Ok(end),
            Err(ScanError::Io(error)) => return Err(error),
            Err(ScanError::Damaged { reason, .. }) => return Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
        }
    }
}
