//! Finding offsets by time (section 9).

use bytes::Bytes;
use wire::batch::{Batch, BatchHeader, TimestampType};

use crate::error::StorageError;
use crate::partition::{Inner, PartitionLog};
use crate::read::is_batch_at;
use crate::scan::ScanError;
use crate::types::{Isolation, TimestampOffset};

impl PartitionLog {
    /// L-2: the first record, in the order of offsets, with a timestamp (ms) of at least `timestamp`; `None` if there is none that
    /// `isolation` may see.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        isolation: Isolation,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let found = self.with(|inner| self.search(inner, timestamp))??;
        self.visible(found, isolation)
    }

    /// L-3: the first record with the largest timestamp; `None` if the log is empty or nothing has a timestamp.
    pub fn offset_of_max_timestamp(&self, isolation: Isolation) -> Result<Option<TimestampOffset>, StorageError> {
        let found = self.with(|inner| {
            let files = &self.shared.files;
            let mut max = -1;
            for segment in &mut inner.segments {
                let (timestamp, _) = segment.max_timestamp(files).map_err(|error| self.io(error))?;
                max = max.max(timestamp);
            }
            if max < 0 { Ok(None) } else { self.search(inner, max) }
        })??;
        self.visible(found, isolation)
    }

    /// what lies beyond the limit counts as not found.
    fn visible(
        &self,
        found: Option<TimestampOffset>,
        isolation: Isolation,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let marks = self.offsets()?;
        let limit = match isolation {
            Isolation::HighWatermark => marks.high_watermark,
            Isolation::LastStable => marks.last_stable,
            Isolation::LogEnd => marks.log_end,
        };
        Ok(found.filter(|found| found.offset < limit))
    }

    fn search(&self, inner: &mut Inner, timestamp: i64) -> Result<Option<TimestampOffset>, StorageError> {
        let files = &self.shared.files;
        let log_start = inner.log_start;
        let first = inner.segment_of(log_start);
        for segment in &mut inner.segments[first..] {
            let (max, _) = segment.max_timestamp(files).map_err(|error| self.io(error))?;
            if max < timestamp || segment.size == 0 {
                continue;
            }
            let offset = segment.times.offset_before(files, timestamp).unwrap_or(segment.base).max(segment.base);
            let mut position = segment.position_before(files, offset).map_err(|error| self.io(error))?;
            let file = segment.file(files).map_err(|error| self.io(error))?;
            if position > 0 && !is_batch_at(&*file, position, segment.size, offset) {
                position = 0;
            }
            let wanted = |header: &BatchHeader| header.max_timestamp >= timestamp && header.last_offset() >= log_start;
            loop {
                let found = segment.find_batch(files, position, wanted);
                let Some((at, header)) = found.map_err(|error| self.read_failed(offset, error))? else { break };
                let mut bytes = vec![0; header.size()];
                let read = file.read_at(&mut bytes, at).map_err(|error| self.io(error))?;
                bytes.truncate(read);
                if let Some(found) = first_in_batch(&Bytes::from(bytes), timestamp, log_start) {
                    return Ok(Some(found));
                }
                // All its records with such a timestamp were deleted or compacted away.
                position = at + header.size() as u64;
            }
        }
        Ok(None)
    }

    fn io(&self, error: std::io::Error) -> StorageError {
        self.read_failed(0, ScanError::Io(error))
    }
}

fn first_in_batch(bytes: &Bytes, timestamp: i64, log_start: i64) -> Option<TimestampOffset> {
    let (batch, _) = Batch::parse_next(bytes).ok()?;
    let header = batch.header();
    let leader_epoch = header.partition_leader_epoch;
    let found = |offset, timestamp| Some(TimestampOffset { offset, timestamp, leader_epoch });
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime && header.base_offset >= log_start {
        return found(header.base_offset, header.max_timestamp);
    }
    // A batch that cannot be opened still has a place in time: that of its first record.
    let Ok(records) = batch.records() else { return found(header.base_offset.max(log_start), header.max_timestamp) };
    let record = records.flatten().find(|record| record.timestamp >= timestamp && record.offset >= log_start)?;
    found(record.offset, record.timestamp)
}
