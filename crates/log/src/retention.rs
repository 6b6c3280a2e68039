//! Letting go of old data: by time, by size, and by DeleteRecords (section 11).

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::append::roll;
use crate::error::{ReadError, StorageError};
use crate::files::Files;
use crate::partition::{Inner, PartitionLog};
use crate::segment::Segment;
use crate::snapshot;
use crate::types::Event;

/// The largest timestamp (ms) of a segment; when the file was changed if there is none.
fn latest_ms(segment: &mut Segment, files: &Files) -> io::Result<i64> {
    match segment.max_timestamp(files)? {
        (timestamp, _) if timestamp >= 0 => Ok(timestamp),
        _ => segment.file(files)?.modified_ms(),
    }
}

impl PartitionLog {
    /// Moves the log start over the segments that the policy no longer keeps (H-1). They are removed by
    /// [`PartitionLog::remove_deleted`], once the new start is noted on disk: a log that begins later than noted looks damaged.
    pub(crate) fn expire_segments(&self, now_ms: i64) -> Result<(), StorageError> {
        let config = self.config();
        let files = &self.shared.files;
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        if !config.delete || inner.cleaning {
            return Ok(());
        }
        let mut total: u64 = inner.segments.iter().map(|segment| segment.size).sum();
        let mut start = inner.log_start;
        for at in 0..inner.segments.len() {
            let next_base = inner.segments.get(at + 1).map_or(inner.end, |next| next.base);
            let segment = &mut inner.segments[at];
            // Nothing that consumers have not been able to see.
            if segment.size == 0 || next_base > inner.high_watermark {
                break;
            }
            let by_size =
                config.retention_bytes >= 0 && total.saturating_sub(segment.size) >= config.retention_bytes as u64;
            let by_time = config.retention_ms >= 0 && {
                let latest = latest_ms(segment, files)
                    .map_err(|error| StorageError::io(format_args!("{}: cannot look at a segment", self.tp), error))?;
                now_ms.saturating_sub(latest) > config.retention_ms
            };
            if !(by_size || by_time || next_base <= inner.log_start) {
                break;
            }
            total -= segment.size;
            start = start.max(next_base);
        }
        if start == inner.log_start {
            return Ok(());
        }
        self.move_start(inner, start);
        drop(state);
        self.notify(Event::StartMoved);
        Ok(())
    }

    /// Removes the segments before `noted_start`, the log start as noted on disk; returns how many. Files go after
    /// `file.delete.delay.ms`.
    pub(crate) fn remove_deleted(&self, noted_start: i64, now_ms: i64) -> Result<usize, StorageError> {
        let delay_ms = self.config().file_delete_delay_ms;
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        if inner.cleaning {
            return Ok(0);
        }
        let bases = inner.segments.iter().skip(1).map(|segment| segment.base).chain([inner.end]);
        let count = bases.take_while(|next_base| *next_base <= noted_start).count();
        let count = if inner.active().size == 0 { count.min(inner.segments.len() - 1) } else { count };
        if count == 0 {
            return Ok(0);
        }
        if count == inner.segments.len() {
            roll(inner, &self.shared, now_ms);
        }
        self.remove_front(inner, count, now_ms.saturating_add(delay_ms)).map(|()| count)
    }

    /// Removes the first `count` segments; there is one more at least.
    fn remove_front(&self, inner: &mut Inner, count: usize, at_ms: i64) -> Result<(), StorageError> {
        // From the newest on: should it stop half-way, what is left is before the log start, and goes the next time.
        for segment in inner.segments.drain(..count).rev() {
            let renamed = segment
                .rename_deleted(&self.shared.files)
                .map_err(|error| StorageError::io(format_args!("{}: cannot delete a segment", self.tp), error))?;
            let mut doomed = self.shared.doomed.lock().unwrap_or_else(PoisonError::into_inner);
            doomed.extend(renamed.into_iter().map(|path| (at_ms, path)));
        }
        let (base, newest) = (inner.segments[0].base, inner.snapshots.last().copied());
        for offset in inner.snapshots.extract_if(.., |offset| *offset < base && Some(*offset) != newest) {
            let _ = self.shared.files.fs.remove_file(&snapshot::path(&inner.dir, offset));
        }
        Ok(())
    }

    fn move_start(&self, inner: &mut Inner, start: i64) {
        inner.log_start = start;
        inner.epochs_changed |= inner.epochs.truncate_start(start);
        inner.producers.forget_before(start);
        self.log_start.store(start, Ordering::Release);
        self.shared.starts_changed.store(true, Ordering::Release);
    }

    /// L-6: moves the log start up to `before`, -1 for the high watermark; returns the log start. Whole segments before it go with the
    /// next [`crate::LogDir::apply_retention`].
    pub fn delete_records(&self, before: i64) -> Result<i64, ReadError> {
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        let offset = if before == -1 { inner.high_watermark } else { before };
        let (start, end) = (inner.log_start, inner.high_watermark);
        if offset < 0 || offset > end {
            return Err(ReadError::OffsetOutOfRange { offset, start, end });
        }
        if offset <= start {
            return Ok(start);
        }
        self.move_start(inner, offset);
        drop(state);
        self.notify(Event::StartMoved);
        Ok(offset)
    }
}
