//! Iterating the records of a batch.

use std::ops::Range;

use bytes::Bytes;

use super::compress::{Compression, decompress};
use super::varint;
use super::{BatchError, BatchHeader, HEADER_LEN, TimestampType};

/// A record header: a key and a value that may be null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// One record with its absolute offset and timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub offset: i64,
    /// Milliseconds; the batch's max timestamp if it is LogAppendTime, -1 if none was given.
    pub timestamp: i64,
    pub key: Option<Bytes>,
    /// `None` is a tombstone in a compacted topic; empty is a value.
    pub value: Option<Bytes>,
    pub headers: Vec<Header>,
}

/// What a record is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSummary {
    pub offset: i64,
    /// As in [`Record`].
    pub timestamp: i64,
    pub has_key: bool,
}

impl Record {
    pub fn summary(&self) -> RecordSummary {
        RecordSummary { offset: self.offset, timestamp: self.timestamp, has_key: self.key.is_some() }
    }
}

/// A record whose contents are still in the payload.
struct Place {
    offset: i64,
    timestamp: i64,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

/// Iterator over the records of a batch. Ends after the first error; bytes left over after the last record are an error too.
#[derive(Debug, Clone)]
pub struct Records {
    header: BatchHeader,
    payload: Bytes,
    pos: usize,
    index: i32,
    failed: bool,
}

impl Records {
    pub(super) fn new(header: &BatchHeader, batch: &Bytes, limit: usize) -> Result<Records, BatchError> {
        let compressed = batch.slice(HEADER_LEN.min(batch.len())..);
        let payload = match header.attributes.compression()? {
            Compression::None => compressed,
            // A batch emptied by compaction may keep its compression bits without any compressed data.
            _ if header.record_count == 0 && compressed.is_empty() => compressed,
            kind => decompress(kind, &compressed, limit)?.into(),
        };
        Ok(Records { header: *header, payload, pos: 0, index: 0, failed: false })
    }

    /// Bytes of the records after decompression.
    pub fn decompressed_len(&self) -> usize {
        self.payload.len()
    }

    /// The same records without their contents, which costs much less. Everything is checked all the same.
    pub fn summaries(self) -> Summaries {
        Summaries(self)
    }

    /// The next record, or what is wrong with it.
    fn read(&mut self) -> Result<Record, &'static str> {
        let payload = self.payload.clone();
        let slice = |range: Option<Range<usize>>| range.map(|range| payload.slice(range));
        let mut headers = Vec::new();
        let place = self.take(|key, value| headers.push(Header { key: payload.slice(key), value: slice(value) }))?;
        let Place { offset, timestamp, key, value } = place;
        Ok(Record { offset, timestamp, key: slice(key), value: slice(value), headers })
    }

    /// Takes the next record apart, and goes on behind it; `header` gets key and value of each header.
    fn take(&mut self, mut header: impl FnMut(Range<usize>, Option<Range<usize>>)) -> Result<Place, &'static str> {
        const CUT: &str = "the record ends early";
        let mut pos = self.pos;
        let size = varint::read_i32(&self.payload, &mut pos).ok_or("its size is not readable")?;
        let size = usize::try_from(size).map_err(|_| "its size is negative")?;
        let end =
            pos.checked_add(size).filter(|end| *end <= self.payload.len()).ok_or("it is longer than the batch")?;
        // Reading from this view keeps every field inside the record that it belongs to.
        let body = &self.payload[..end];
        pos = pos.checked_add(1).filter(|p| *p <= end).ok_or(CUT)?; // attributes, unused
        let timestamp_delta = varint::read_i64(body, &mut pos).ok_or(CUT)?;
        let offset_delta = varint::read_i32(body, &mut pos).ok_or(CUT)?;
        let key = read_bytes(body, &mut pos)?;
        let value = read_bytes(body, &mut pos)?;
        let count = varint::read_i32(body, &mut pos).ok_or(CUT)?;
        // A header takes at least two bytes, so a count beyond the bytes left is a lie.
        let count = usize::try_from(count).ok().filter(|n| *n <= end - pos).ok_or("its header count is impossible")?;
        for _ in 0..count {
            let key = read_bytes(body, &mut pos)?.ok_or("a header has no key")?;
            header(key, read_bytes(body, &mut pos)?);
        }
        if pos != end {
            return Err("it has bytes left over");
        }
        self.pos = end;
        let timestamp = match self.header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => self.header.max_timestamp,
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
        };
        let offset = self.header.base_offset.wrapping_add(i64::from(offset_delta));
        Ok(Place { offset, timestamp, key, value })
    }

    /// What [`Iterator::next`] does, with either way to read.
    fn advance<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, &'static str>) -> Option<Result<T, BatchError>> {
        if self.failed {
            return None;
        }
        if self.index >= self.header.record_count {
            if self.pos != self.payload.len() {
                self.failed = true;
                return Some(Err(self.invalid("bytes follow the last record")));
            }
            return None;
        }
        match read(self) {
            Ok(record) => {
                self.index += 1;
                Some(Ok(record))
            }
            Err(reason) => {
                self.failed = true;
                Some(Err(self.invalid(reason)))
            }
        }
    }

    fn invalid(&self, reason: &'static str) -> BatchError {
        BatchError::InvalidRecord { index: self.index, reason }
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance(Records::read)
    }
}

/// See [`Records::summaries`].
#[derive(Debug, Clone)]
pub struct Summaries(Records);

impl Iterator for Summaries {
    type Item = Result<RecordSummary, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.advance(|records| {
            let Place { offset, timestamp, key, .. } = records.take(|_, _| {})?;
            Ok(RecordSummary { offset, timestamp, has_key: key.is_some() })
        })
    }
}

/// A length-prefixed field, as its place in `body`; -1 is null.
fn read_bytes(body: &[u8], pos: &mut usize) -> Result<Option<Range<usize>>, &'static str> {
    let len = varint::read_i32(body, pos).ok_or("a length is not readable")?;
    if len == -1 {
        return Ok(None);
    }
    let len = usize::try_from(len).map_err(|_| "a length is negative")?;
    let end = pos.checked_add(len).filter(|end| *end <= body.len()).ok_or("a field is longer than the record")?;
    let field = *pos..end;
    *pos = end;
    Ok(Some(field))
}
