//! Letting go of old data: by time, by size, and by DeleteRecords (section 11).

use std::sync::atomic::Ordering;

use crate::append::roll;
use crate::error::{ReadError, StorageError};
use crate::partition::{Inner, PartitionLog};
use crate::snapshot;
use crate::types::Event;

impl PartitionLog {
    /// Deletes the segments that the policy no longer keeps (H-1); returns how many. Files go after `file.delete.delay.ms`.
    pub fn apply_retention(&self, now_ms: i64) -> Result<usize, StorageError> {
        let config = self.config();
        let files = &self.shared.files;
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        if inner.cleaning {
            return Ok(0);
        }
        let mut total: u64 = inner.segments.iter().map(|segment| segment.size).sum();
        let mut count = 0;
        while count < inner.segments.len() {
            let next_base = inner.segments.get(count + 1).map_or(inner.end, |next| next.base);
            let segment = &mut inner.segments[count];
            // Nothing that consumers have not been able to see.
            if segment.size == 0 || next_base > inner.high_watermark {
                break;
            }
            let by_start = next_base <= inner.log_start;
            let by_size = config.delete
                && config.retention_bytes >= 0
                && total.saturating_sub(segment.size) >= config.retention_bytes as u64;
            let by_time = config.delete && config.retention_ms >= 0 && {
                let age = segment
                    .max_timestamp(files)
                    .and_then(
                        |(timestamp, _)| {
                            if timestamp >= 0 { Ok(timestamp) } else { segment.file(files)?.modified_ms() }
                        },
                    )
                    .map_err(|error| StorageError::io(format_args!("{}: cannot look at a segment", self.tp), error))?;
                now_ms.saturating_sub(age) > config.retention_ms
            };
            if !(by_start || by_size || by_time) {
                break;
            }
            total -= segment.size;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        if count == inner.segments.len() {
            roll(inner, &self.shared, now_ms);
        }
        let removed = self.remove_front(inner, count, now_ms, config.file_delete_delay_ms);
        drop(state);
        self.notify(Event::StartMoved);
        removed.map(|()| count)
    }

    /// Removes the first `count` segments; there is one more at least.
    fn remove_front(&self, inner: &mut Inner, count: usize, now_ms: i64, delay_ms: i64) -> Result<(), StorageError> {
        let start = inner.segments[count].base.max(inner.log_start);
        self.move_start(inner, start);
        let at = now_ms.saturating_add(delay_ms);
        // From the newest on: should it stop half-way, the log still has no gap.
        for segment in inner.segments.drain(..count).rev() {
            let renamed = segment
                .rename_deleted(&self.shared.files)
                .map_err(|error| StorageError::io(format_args!("{}: cannot delete a segment", self.tp), error))?;
            let mut doomed = self.shared.doomed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            doomed.extend(renamed.into_iter().map(|path| (at, path)));
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
    /// next [`PartitionLog::apply_retention`].
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
