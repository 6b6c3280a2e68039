//! Whole batches that are sent from the file as they are, without a look at more than a few headers.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::Bytes;
use wire::batch::{BatchHeader, HEADER_LEN};

use crate::fs::File;
use crate::read::Place;
use crate::types::ReadParams;

/// Below this, reading and writing costs less than what the kernel does for pages that are lent to a socket.
pub(crate) const MIN_BYTES: usize = 32 << 10;
/// Headers are looked for in pieces of this size: about what lies between two entries of an index.
const WINDOW: usize = 4 << 10;

/// Bytes of a segment's file. The file stays open as long as this lives, also when the segment is deleted or compacted meanwhile. Only a
/// partition that goes offline cuts off bytes that were readable before; whoever sends finds the file too short then.
#[derive(Clone)]
pub struct FileRange {
    file: Arc<dyn File>,
    position: u64,
    len: usize,
}

impl FileRange {
    /// Where it begins in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The descriptor of the file, for the kernel to read from. There always is one: a file without is never given out as a range.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }

    /// The bytes themselves; fewer if the file was cut.
    pub fn read(&self) -> io::Result<Bytes> {
        Ok(self.file.read_vec_at(self.len, self.position)?.into())
    }
}

impl fmt::Debug for FileRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.len, self.position)
    }
}

/// A batch that an index names: where it begins, and its last offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub position: u64,
    pub last_offset: i64,
}

/// What of `place` can be sent from the file, and the offset after it: only what was compared before, and only if it is much. `None`: read
/// it, which also says what is wrong with it. `known`, if there is one, is a batch below `limit` that begins at most `max_bytes` behind
/// the place; what an index says is only a hint.
pub(crate) fn find(
    place: &Place,
    known: Option<Known>,
    from: i64,
    limit: i64,
    params: &ReadParams,
) -> Option<(FileRange, i64)> {
    place.file.descriptor()?;
    if place.end.saturating_sub(place.position).min(params.max_bytes as u64) < MIN_BYTES as u64 {
        return None;
    }
    let mut headers = Headers { file: &*place.file, end: place.end, buf: Vec::new(), start: 0 };
    let mut position = place.position;
    // Over the batches before the one looked for.
    let mut header = headers.at(position)?;
    while header.last_offset() < from {
        position += header.size() as u64;
        header = headers.at(position)?;
    }
    let start = position;
    let end = place.end.min(start.saturating_add(params.max_bytes as u64));
    let mut next_offset = from;
    if let Some(known) = known.filter(|known| known.position > start) {
        position = known.position;
        header = headers.at(position).filter(|header| header.last_offset() == known.last_offset)?;
        next_offset = header.base_offset;
    }
    while header.base_offset < limit && position + header.size() as u64 <= end {
        position += header.size() as u64;
        next_offset = header.next_offset();
        match headers.at(position) {
            Some(next) => header = next,
            None => break,
        }
    }
    let len = (position - start) as usize;
    (len >= MIN_BYTES && place.sound.covers(start..position))
        .then(|| (FileRange { file: place.file.clone(), position: start, len }, next_offset))
}

/// Reads headers of batches, of which several may lie in one piece of the file.
struct Headers<'a> {
    file: &'a dyn File,
    end: u64,
    buf: Vec<u8>,
    start: u64,
}

impl Headers<'_> {
    /// `None` at the end, and where there is no header.
    fn at(&mut self, position: u64) -> Option<BatchHeader> {
        if position + HEADER_LEN as u64 > self.end {
            return None;
        }
        let inside = |start: u64, len: usize| position >= start && position + HEADER_LEN as u64 <= start + len as u64;
        if !inside(self.start, self.buf.len()) {
            self.buf.resize(WINDOW, 0);
            let read = self.file.read_at(&mut self.buf, position).ok()?;
            self.buf.truncate(read);
            self.start = position;
        }
        BatchHeader::parse(self.buf.get((position - self.start) as usize..)?).ok()
    }
}
