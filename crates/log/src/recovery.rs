//! Opening a partition: what the directory holds becomes a log that ends with the last sound batch.
//!
//! Work is bounded by what lies beyond the recovery point and the last producer snapshot, not by the size of the log. Everything before
//! the recovery point was synced and is taken as it is, but for the last few hundred kilobytes, which are looked at in any case: that
//! is where files get cut or damaged while nobody looks.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use wire::batch::Batch;

use crate::checkpoint::LeaderEpochs;
use crate::error::StorageError;
use crate::files::Files;
use crate::fs::OpenMode;
use crate::partition::{Inner, PartitionLog};
use crate::producer_state::ProducerState;
use crate::read::is_batch_at;
use crate::scan::{ScanError, Scanner};
use crate::segment::{SUFFIXES, Segment, stem};
use crate::snapshot;
use crate::tail::Tail;
use crate::txn_index::AbortedTxn;
use crate::validate::read_marker;

/// The most that is kept of bytes cut off although they were once synced.
const MAX_SAVED: u64 = 64 << 20;

/// What the directory holds.
#[derive(Default)]
struct Found {
    /// Base offsets and sizes of the log files.
    segments: Vec<(i64, u64)>,
    snapshots: BTreeSet<i64>,
}

/// Opens the partition from its directory, which is made if it is missing.
pub(crate) fn open(log: &PartitionLog) -> Result<Inner, StorageError> {
    let dir = log.dir();
    let io = |error: io::Error| StorageError::io(format_args!("{}: cannot open", log.tp), error);
    let files = &log.shared.files;
    let found = look(log, &dir).map_err(io)?;
    let now_ms = log.shared.clock.now_ms();
    let mut segments: Vec<Segment> =
        found.segments.iter().map(|(base, size)| Segment::existing(&dir, *base, *size, now_ms)).collect();
    let known_start = log.log_start.load(Ordering::Acquire);
    let recovery_point = log.recovery_point.load(Ordering::Acquire);
    // The start is noted before segments at the front are removed. A front that is missing all the same never reached the disk, and
    // what follows it was promised to nobody.
    if segments.first().is_some_and(|first| first.base > known_start.max(recovery_point)) {
        tracing::warn!(partition = %log.tp, offset = known_start, "the first segment is missing, dropping those after it");
        drop_after(files, &mut segments, 0, true).map_err(io)?;
    }
    if segments.is_empty() {
        segments.push(Segment::fresh(&dir, known_start, now_ms));
    }
    let scanned = scan(log, &dir, &mut segments, recovery_point)?;
    let end = scanned.end;
    let log_start = known_start.max(segments[0].base).min(end);
    let mut epochs = LeaderEpochs::read(&*files.fs, &dir).unwrap_or_default();
    epochs.truncate_end(end);
    let epochs_known = epochs.clone();
    let mut inner = Inner {
        dir: dir.clone(),
        segments,
        log_start,
        end,
        durable: end,
        high_watermark: end,
        producers: ProducerState::default(),
        epochs,
        epochs_changed: false,
        tail: Tail::new(log.shared.cache.clone()),
        dirty: Vec::new(),
        dir_changed: found.segments.is_empty(),
        parent_changed: found.segments.is_empty(),
        waiters: Default::default(),
        next_waiter: 0,
        queued: false,
        syncing: false,
        listed: false,
        unsynced_bytes: 0,
        dirty_since_ms: -1,
        bytes_since_snapshot: 0,
        snapshots: Vec::new(),
        // What was cut off and written anew since is dirty; to take it for clean would keep more than need be, and lose nothing.
        cleaned_to: log.cleaned.load(Ordering::Acquire).min(end),
        cleaning: false,
    };
    load_producers(log, &mut inner, &found.snapshots)?;
    inner.epochs_changed = inner.epochs != epochs_known;
    inner.producers.advance(end);
    if scanned.changed || end > recovery_point {
        // What was read may be in memory only, names included. It counts as durable from now on, so it has to be.
        sync_recovered(log, &inner, scanned.from_base)
            .map_err(|error| StorageError::Offline(format!("a sync failed in recovery: {error}").into()))?;
        log.recovery_point.store(end, Ordering::Release);
        log.shared.points_changed.store(true, Ordering::Release);
    }
    log.log_start.store(log_start, Ordering::Release);
    Ok(inner)
}

fn sync_recovered(log: &PartitionLog, inner: &Inner, from_base: i64) -> io::Result<()> {
    let files = &log.shared.files;
    for segment in inner.segments.iter().filter(|segment| segment.base >= from_base) {
        match segment.file(files) {
            Ok(file) => file.sync_data()?,
            // Not begun yet. An empty file may be one that was cut just now, and is synced.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.fs.sync_dir(&inner.dir)?;
    files.fs.sync_dir(&log.shared.root)
}

/// Lists the directory, and finishes or undoes what a crash has interrupted.
fn look(log: &PartitionLog, dir: &Path) -> io::Result<Found> {
    let fs = &*log.shared.files.fs;
    let entries = match fs.list(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs.create_dir_all(dir)?;
            crate::checkpoint::write_topic_id(fs, dir, log.topic_id())?;
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let entries = match crate::compact::finish_swaps(fs, dir, &entries)? {
        true => fs.list(dir)?,
        false => entries,
    };
    let mut found = Found::default();
    for entry in &entries {
        let path = dir.join(&entry.name);
        let Some((stem, suffix)) = entry.name.split_once('.') else { continue };
        let number = stem.parse::<i64>().ok().filter(|number| *number >= 0 && stem.len() == 20);
        match (suffix, number) {
            ("log", Some(base)) => found.segments.push((base, entry.len)),
            ("snapshot", Some(offset)) => _ = found.snapshots.insert(offset),
            // Leftovers of removals and of files that were being written.
            _ if suffix.ends_with("deleted") || suffix.ends_with("tmp") || suffix.ends_with("cleaned") => {
                fs.remove_file(&path)?;
            }
            _ => {}
        }
    }
    found.segments.sort_unstable();
    // An index without its log would be taken for that of a later segment with the same base.
    for entry in &entries {
        let Some((stem, "index" | "timeindex" | "txnindex")) = entry.name.split_once('.') else { continue };
        let base = stem.parse::<i64>().unwrap_or(-1);
        if found.segments.binary_search_by_key(&base, |(base, _)| *base).is_err() {
            fs.remove_file(&dir.join(&entry.name))?;
        }
    }
    Ok(found)
}

struct ScanResult {
    end: i64,
    /// Base of the first segment that was read.
    from_base: i64,
    /// Something was cut off.
    changed: bool,
}

/// Reads from the recovery point on (and the end of the log in any case), cuts off what is not sound, and brings the indexes in line.
fn scan(
    log: &PartitionLog,
    dir: &Path,
    segments: &mut Vec<Segment>,
    recovery_point: i64,
) -> Result<ScanResult, StorageError> {
    let files = &log.shared.files;
    let io = |error: io::Error| StorageError::io(format_args!("{}: cannot recover", log.tp), error);
    let first = segments.partition_point(|segment| segment.base <= recovery_point).saturating_sub(1);
    let mut result = ScanResult { end: segments[first].base, from_base: segments[first].base, changed: false };
    let mut at = first;
    while at < segments.len() {
        let segment = &mut segments[at];
        let base = segment.base;
        if base < result.end {
            return Err(overlap(log, base, result.end));
        }
        // Compaction leaves gaps, but never beyond the recovery point: there, a gap is a tail that did not reach the disk. What comes
        // after it was promised to nobody.
        if at > first && base > result.end && result.end >= recovery_point {
            tracing::warn!(partition = %log.tp, offset = result.end, "the end of a segment is missing, dropping those after it");
            result.changed = true;
            drop_after(files, segments, at, false).map_err(io)?;
            break;
        }
        result.end = base;
        let hint = if at == first { recovery_point } else { base };
        let damage = scan_segment(log, segment, hint, &mut result.end).map_err(io)?;
        if let Some((position, reason)) = damage {
            result.changed = true;
            cut(log, dir, &mut segments[at], position, &reason, result.end, recovery_point)?;
            drop_after(files, segments, at + 1, result.end < recovery_point).map_err(io)?;
        }
        at += 1;
    }
    Ok(result)
}

fn overlap(log: &PartitionLog, base: i64, end: i64) -> StorageError {
    let reason = format!("the segment begins before the one before it ends, at {end}");
    tracing::error!(partition = %log.tp, base, reason);
    StorageError::Damaged { partition: log.tp.to_string(), offset: base, reason }
}

/// Reads one segment from about `hint` to its end. Moves `end` up to what is sound; returns where it stops being so.
fn scan_segment(
    log: &PartitionLog,
    segment: &mut Segment,
    hint: i64,
    end: &mut i64,
) -> io::Result<Option<(u64, String)>> {
    let files = &log.shared.files;
    if segment.size == 0 {
        segment.offsets.entries().truncate(files, 0)?;
        segment.times.entries().truncate(files, 0)?;
        segment.resume(files, 0)?;
        return Ok(None);
    }
    // The batch to begin with must be one before the recovery point: it is known to be whole, so its offset can be believed.
    let mut from = segment.position_before(files, hint - 1)?;
    if from > 0 && !is_batch_at(&*segment.file(files)?, from, segment.size, hint - 1) {
        from = 0;
    }
    let mut start = *end;
    let damage = scan_from(log, segment, from, &mut start)?;
    if from > 0 && damage.as_ref().is_some_and(|(position, _)| *position == from) {
        let mut start = *end;
        let damage = scan_from(log, segment, 0, &mut start)?;
        *end = start;
        return Ok(damage);
    }
    *end = start;
    Ok(damage)
}

/// Reads one segment from the batch at `from` to its end, and notes its batches in the indexes.
fn scan_from(log: &PartitionLog, segment: &mut Segment, from: u64, end: &mut i64) -> io::Result<Option<(u64, String)>> {
    let files = &log.shared.files;
    let interval = u64::from(log.config().index_interval_bytes);
    segment.offsets.truncate_position(files, from)?;
    let mut scanner = Scanner::new(segment.file(files)?, from, segment.size, true);
    let (base, mut first, mut looked_again) = (segment.base, true, None);
    loop {
        let batch = match scanner.next() {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(None),
            Err(ScanError::Io(error)) => return Err(error),
            Err(ScanError::Damaged { position, reason }) => {
                if first {
                    segment.times.truncate_offset(files, *end)?;
                    segment.resume(files, from)?;
                }
                return Ok(Some((position, reason)));
            }
        };
        let (position, header) = (batch.position, batch.header);
        let far = header.last_offset().checked_sub(base).is_none_or(|relative| relative > i64::from(i32::MAX));
        if header.base_offset < *end || header.last_offset_delta < 0 || far {
            // The offset is not covered by the checksum: see [`Scanner::next`].
            if looked_again != Some(position) {
                looked_again = Some(position);
                scanner = Scanner::new(segment.file(files)?, position, segment.size, true);
                continue;
            }
            return Ok(Some((position, format!("offset {} after {}", header.base_offset, *end))));
        }
        if std::mem::take(&mut first) {
            segment.times.truncate_offset(files, header.base_offset)?;
            segment.resume(files, from)?;
        }
        segment.note(files, position, &header, interval);
        *end = header.next_offset();
    }
}

/// Cuts a segment at `position`. What was synced once is kept beside it: it was promised, so a human may want to look at it.
fn cut(
    log: &PartitionLog,
    dir: &Path,
    segment: &mut Segment,
    position: u64,
    reason: &str,
    end: i64,
    recovery_point: i64,
) -> Result<(), StorageError> {
    let files = &log.shared.files;
    let bytes = segment.size - position;
    tracing::warn!(partition = %log.tp, offset = end, bytes, reason, "cutting off the end of the log, which is not sound");
    let work = || -> io::Result<()> {
        let file = segment.file(files)?;
        if end < recovery_point {
            let mut saved = vec![0; bytes.min(MAX_SAVED) as usize];
            let read = file.read_at(&mut saved, position)?;
            let path = dir.join(format!("{}.log-cut-at-{end}", stem(segment.base)));
            let written = files.fs.open(&path, OpenMode::Create).and_then(|copy| copy.write_at(&saved[..read], 0));
            if let Err(error) = written {
                tracing::warn!(path = %path.display(), %error, "cannot keep a copy of what is cut off");
            }
        }
        file.truncate(position)
    };
    work().map_err(|error| StorageError::io(format_args!("{}: cannot cut off a damaged end", log.tp), error))?;
    segment.size = position;
    Ok(())
}

/// Takes the segments from `at` on out of the log. Their bytes stay there if `keep`.
fn drop_after(files: &Files, segments: &mut Vec<Segment>, at: usize, keep: bool) -> io::Result<()> {
    for segment in segments.drain(at..) {
        for suffix in SUFFIXES {
            let path = segment.log_path().with_extension(suffix);
            files.forget(&path);
            let result = match suffix {
                "log" if keep => files.fs.rename(&path, &path.with_extension("log-behind-damage")),
                _ => files.fs.remove_file(&path),
            };
            match result {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Producer state from the newest sound snapshot and the batches after it, which also show epochs and aborted transactions.
fn load_producers(log: &PartitionLog, inner: &mut Inner, snapshots: &BTreeSet<i64>) -> Result<(), StorageError> {
    let files = &log.shared.files;
    let io = |error: io::Error| StorageError::io(format_args!("{}: cannot recover producers", log.tp), error);
    for offset in snapshots.range(inner.end + 1..) {
        files.fs.remove_file(&snapshot::path(&inner.dir, *offset)).map_err(io)?;
    }
    inner.snapshots = snapshots.range(..=inner.end).copied().collect();
    let newest = inner.snapshots.iter().rev().find_map(|offset| snapshot::read(files, &inner.dir, *offset));
    inner.producers = newest.unwrap_or_else(|| ProducerState::starting_at(inner.segments[0].base));
    let from = inner.producers.end;
    let mut restored = Vec::new();
    for at in inner.segment_of(from)..inner.segments.len() {
        let segment = &mut inner.segments[at];
        drop_torn_entry(files, segment, from).map_err(io)?;
        let (mut found, mut whole) = (Vec::new(), true);
        if segment.size == 0 || from >= inner.end {
            restored.extend(segment.txns.reconcile(files, from, &found, whole).map_err(io)?);
            continue;
        }
        let position = segment.position_before(files, from).map_err(io)?;
        let file = segment.file(files).map_err(io)?;
        let position = if is_batch_at(&*file, position, segment.size, from.max(segment.base)) { position } else { 0 };
        let mut scanner = Scanner::new(file, position, segment.size, true);
        loop {
            let batch = match scanner.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(ScanError::Io(error)) => return Err(io(error)),
                Err(ScanError::Damaged { position, reason }) => {
                    // In an older segment: what cannot be read cannot be replayed, and the batches after it cannot be found.
                    let offset = inner.producers.end;
                    tracing::error!(partition = %log.tp, offset, position, reason, "a stored batch is damaged");
                    whole = false;
                    break;
                }
            };
            if batch.header.base_offset < from {
                continue;
            }
            // What was replayed once is saved with the next sync.
            inner.bytes_since_snapshot += batch.bytes.len() as u64;
            inner.epochs.assign(batch.header.partition_leader_epoch, batch.header.base_offset);
            let bytes = batch.header.attributes.is_control().then(|| Bytes::copy_from_slice(batch.bytes));
            found.extend(replay(&mut inner.producers, &batch.header, bytes));
        }
        restored.extend(segment.txns.reconcile(files, from, &found, whole).map_err(io)?);
    }
    inner.producers.end = inner.end;
    for file in restored {
        // Its markers count as durable from now on, so it has to be.
        file.sync_data()
            .map_err(|error| StorageError::Offline(format!("a sync failed in recovery: {error}").into()))?;
    }
    Ok(())
}

/// An entry that a crash has torn may look like one of an earlier offset, before `from`. Only the last can be torn, and then no marker is
/// where it says. Entries from `from` on are compared with the log.
fn drop_torn_entry(files: &Files, segment: &mut Segment, from: i64) -> io::Result<()> {
    let last = segment.txns.entries(files)?.last().map(|entry| entry.last_offset);
    let Some(marker) = last.filter(|marker| *marker < from) else { return Ok(()) };
    let position = segment.position_before(files, marker)?;
    let found = segment.find_batch(files, position, |header| header.last_offset() >= marker);
    match found {
        Ok(Some((_, header))) if header.base_offset == marker && header.attributes.is_control() => Ok(()),
        Err(ScanError::Io(error)) => Err(error),
        _ => segment.txns.truncate(files, marker),
    }
}

/// Applies a stored batch; returns the aborted transaction that it ends, if it does.
fn replay(
    producers: &mut ProducerState,
    header: &wire::batch::BatchHeader,
    control: Option<Bytes>,
) -> Option<AbortedTxn> {
    let mut aborted = None;
    let marker = control.and_then(|bytes| read_marker(&Batch::parse_next(&bytes).ok()?.0));
    match marker {
        Some(marker) => {
            let completed = producers.completes(header, &marker).filter(|txn| txn.aborted);
            aborted = completed.map(|txn| AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: txn.last_offset,
                last_stable_offset: producers.first_unstable_without(&txn).unwrap_or(txn.last_offset + 1),
            });
            producers.apply_marker(header, &marker);
        }
        None if header.has_producer_id() && !header.attributes.is_control() => producers.apply_data(header),
        None => {}
    }
    producers.end = header.next_offset();
    aborted
}
