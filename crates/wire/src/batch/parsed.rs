//! One whole batch over shared bytes.

use bytes::Bytes;

use super::records::Records;
use super::{BatchError, BatchHeader, MAX_DECOMPRESSED, field, header};

/// A batch whose length and format version have been checked, and nothing else: [`Batch::validate_crc`] and iterating the records
/// check the rest. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Takes the first batch off `buf`; returns it and what follows it. Copies nothing.
    pub fn parse_next(buf: &Bytes) -> Result<(Batch, Bytes), BatchError> {
        let header = BatchHeader::parse(buf)?;
        let size = header.size();
        if buf.len() < size {
            return Err(BatchError::Incomplete { needed: size, available: buf.len() });
        }
        Ok((Batch { header, bytes: buf.slice(..size) }, buf.slice(size..)))
    }

    /// All batches of `buf`, in order; ends after the first error.
    pub fn iter(buf: &Bytes) -> impl Iterator<Item = Result<Batch, BatchError>> + use<> {
        let mut rest = buf.clone();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            match Batch::parse_next(&rest) {
                Ok((batch, after)) => {
                    rest = after;
                    Some(Ok(batch))
                }
                Err(error) => {
                    rest = Bytes::new();
                    Some(Err(error))
                }
            }
        })
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The batch as it is stored and sent.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Compares the stored CRC with that of the content.
    pub fn validate_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[field::ATTRIBUTES..]);
        match computed == self.header.crc {
            true => Ok(()),
            false => Err(BatchError::Crc { stored: self.header.crc, computed }),
        }
    }

    /// A copy with base offset and leader epoch set. The log patches in place where it owns the bytes; this is for the rest.
    pub fn with_offset(&self, base_offset: i64, leader_epoch: i32) -> Batch {
        let mut bytes = self.bytes.to_vec();
        header::set_base_offset(&mut bytes, base_offset);
        header::set_leader_epoch(&mut bytes, leader_epoch);
        let header = BatchHeader { base_offset, partition_leader_epoch: leader_epoch, ..self.header };
        Batch { header, bytes: bytes.into() }
    }

    /// Iterates the records, decompressing at most [`MAX_DECOMPRESSED`] bytes.
    pub fn records(&self) -> Result<Records, BatchError> {
        self.records_limited(MAX_DECOMPRESSED)
    }

    /// Iterates the records, decompressing at most `limit` bytes. Keys and values of an uncompressed batch are slices of it.
    pub fn records_limited(&self, limit: usize) -> Result<Records, BatchError> {
        Records::new(&self.header, &self.bytes, limit)
    }
}
