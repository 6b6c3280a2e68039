//! Reading a segment file batch by batch, in large pieces, without believing a length it holds.

use std::io;
use std::sync::Arc;

use wire::batch::{BatchError, BatchHeader, HEADER_LEN, peek_size};

use crate::fs::File;

const CHUNK: usize = 256 << 10;

/// Why a scan stopped before the end.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    /// What is at this position is not a whole, sound batch.
    Damaged {
        position: u64,
        reason: String,
    },
}

/// Walks over batches from a position that must be the start of one, up to `end`.
pub(crate) struct Scanner {
    file: Arc<dyn File>,
    position: u64,
    end: u64,
    verify: bool,
    buf: Vec<u8>,
    /// File position of `buf[0]`.
    buf_start: u64,
}

/// A batch where it is stored.
pub(crate) struct Scanned<'a> {
    pub position: u64,
    pub header: BatchHeader,
    pub bytes: &'a [u8],
}

impl Scanner {
    /// `verify` compares checksums too.
    pub fn new(file: Arc<dyn File>, position: u64, end: u64, verify: bool) -> Scanner {
        Scanner { file, position, end, verify, buf: Vec::new(), buf_start: position }
    }

    /// The next batch, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Scanned<'_>>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let position = self.position;
        let header = match self.check() {
            Ok(header) => header,
            // A read may go wrong where the disk is sound, and who finds damage may cut off what was promised: look again.
            Err(ScanError::Damaged { .. }) => {
                self.buf.clear();
                self.check()?
            }
            Err(error) => return Err(error),
        };
        self.position += header.size() as u64;
        let start = (position - self.buf_start) as usize;
        Ok(Some(Scanned { position, header, bytes: &self.buf[start..start + header.size()] }))
    }

    /// The header of the batch at the present position, of which every byte is in the buffer.
    fn check(&mut self) -> Result<BatchHeader, ScanError> {
        let position = self.position;
        self.fill(HEADER_LEN.min((self.end - position) as usize))?;
        let damaged = |reason: String| ScanError::Damaged { position, reason };
        let start = (position - self.buf_start) as usize;
        let header = BatchHeader::parse(&self.buf[start..]).map_err(|error| damaged(error.to_string()))?;
        let size = peek_size(&self.buf[start..]).map_err(|error| damaged(error.to_string()))?;
        if size as u64 > self.end - position {
            let available = (self.end - position) as usize;
            return Err(damaged(BatchError::Incomplete { needed: size, available }.to_string()));
        }
        self.fill(size)?;
        let start = (position - self.buf_start) as usize;
        let Some(bytes) = self.buf.get(start..start + size) else {
            return Err(damaged("the file ends early".to_owned()));
        };
        if self.verify && batch_crc(bytes) != header.crc {
            return Err(damaged("wrong checksum".to_owned()));
        }
        Ok(header)
    }

    /// Makes `need` bytes from the present position available, if the file has them.
    fn fill(&mut self, need: usize) -> Result<(), ScanError> {
        // An empty buffer begins anywhere.
        let start = if self.buf.is_empty() { 0 } else { (self.position - self.buf_start) as usize };
        if self.buf.len().saturating_sub(start) >= need {
            return Ok(());
        }
        self.buf.drain(..start.min(self.buf.len()));
        self.buf_start = self.position;
        let have = self.buf.len();
        let want = need.max(CHUNK).min((self.end - self.position) as usize);
        self.buf.resize(want.max(have), 0);
        let read = self.file.read_at(&mut self.buf[have..], self.position + have as u64).map_err(ScanError::Io)?;
        self.buf.truncate(have + read);
        Ok(())
    }
}

pub(crate) fn batch_crc(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(wire::batch::field::ATTRIBUTES..).unwrap_or_default())
}
