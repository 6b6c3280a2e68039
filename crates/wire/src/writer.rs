//! Collects the bytes of a message. Large payloads are not copied: they stay chunks of their own, for a vectored write.

use bytes::Bytes;

use crate::codec::Element;
use crate::error::EncodeError;
use crate::kstr::KStr;
use crate::payload::Payload;
use crate::uuid::Uuid;
use crate::varint;

type Result<T> = std::result::Result<T, EncodeError>;

/// Payloads of at least this many bytes become chunks of their own.
pub const SPLICE_MIN_BYTES: usize = 4096;
/// Kafka's limit for strings, also where the length field could say more.
const MAX_STRING_LEN: usize = i16::MAX as usize;

/// A rope of bytes: one buffer for what is small, and the large payloads with the places where they belong.
///
/// After an encode that failed, what was written is of no use.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    buf: Vec<u8>,
    /// Payload and its position in `buf`, in ascending order.
    splices: Vec<(usize, Payload)>,
    spliced_bytes: usize,
    errors: ErrorTally,
}

/// The error codes among what was written: an answer may have one for itself and one for each of its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorTally {
    /// How many parts have none.
    pub none: u32,
    /// Code and number, in the order in which they came first. Empty, and without memory, as long as all went well.
    pub some: Vec<(i16, u32)>,
}

impl ErrorTally {
    fn note(&mut self, code: i16) {
        if code == 0 {
            self.none += 1;
            return;
        }
        match self.some.iter_mut().find(|(noted, _)| *noted == code) {
            Some((_, times)) => *times += 1,
            None => self.some.push((code, 1)),
        }
    }
}

/// Place of a value that is to be filled in later; see [`Writer::reserve_i32`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Patch(usize);

impl Writer {
    /// An empty writer.
    pub const fn new() -> Self {
        let errors = ErrorTally { none: 0, some: Vec::new() };
        Self { buf: Vec::new(), splices: Vec::new(), spliced_bytes: 0, errors }
    }

    /// An empty writer with room for `bytes` before it has to grow.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buf: Vec::with_capacity(bytes), ..Self::new() }
    }

    /// Bytes written so far, large payloads included.
    pub fn len(&self) -> usize {
        self.buf.len() + self.spliced_bytes
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything written but keeps the buffer, for the next message.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.splices.clear();
        self.spliced_bytes = 0;
        self.errors = ErrorTally::default();
    }

    /// Writes an error code, and notes it for [`Writer::errors`].
    pub fn error_code(&mut self, code: i16) {
        self.errors.note(code);
        self.i16(code);
    }

    /// The error codes among what was written, so that whoever counts answers need not know their shape.
    pub fn errors(&self) -> &ErrorTally {
        &self.errors
    }

    /// Everything written, in order, as chunks for a vectored write. None of them is empty.
    pub fn into_chunks(self) -> Vec<Payload> {
        let buf = Bytes::from(self.buf);
        let mut chunks = Vec::with_capacity(2 * self.splices.len() + 1);
        let mut from = 0;
        for (at, payload) in self.splices {
            if from < at {
                chunks.push(buf.slice(from..at).into());
            }
            chunks.push(payload);
            from = at;
        }
        if from < buf.len() {
            chunks.push(buf.slice(from..).into());
        }
        chunks
    }

    /// Everything written in one piece; copies if there are large payloads.
    ///
    /// # Panics
    ///
    /// If a payload is a [`Payload::Remote`]: of such a message only the chunks are to be had.
    pub fn into_bytes(self) -> Bytes {
        if self.splices.is_empty() {
            return Bytes::from(self.buf);
        }
        let mut out = Vec::with_capacity(self.len());
        for chunk in self.into_chunks() {
            match chunk {
                Payload::Bytes(bytes) => out.extend_from_slice(&bytes),
                Payload::Remote(remote) => panic!("{} bytes that are not in memory", remote.len()),
            }
        }
        Bytes::from(out)
    }

    /// Leaves room for a 32-bit integer that is known only later, such as the length of a frame.
    pub fn reserve_i32(&mut self) -> Patch {
        let at = Patch(self.buf.len());
        self.i32(0);
        at
    }

    /// Fills in what [`Writer::reserve_i32`] of this writer left open.
    pub fn patch_i32(&mut self, at: Patch, value: i32) {
        if let Some(place) = self.buf.get_mut(at.0..at.0 + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Bytes as they are, copied.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Bytes as they are; large ones are shared, small ones copied.
    fn share_or_copy(&mut self, bytes: &Bytes) {
        match bytes.len() < SPLICE_MIN_BYTES {
            true => self.raw(bytes),
            false => self.splice(bytes.clone().into()),
        }
    }

    fn splice(&mut self, payload: Payload) {
        self.spliced_bytes += payload.len();
        self.splices.push((self.buf.len(), payload));
    }

    /// An 8-bit integer.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// A big-endian 16-bit integer.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned big-endian 16-bit integer.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// A big-endian 32-bit integer.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned big-endian 32-bit integer.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A big-endian 64-bit integer.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// A big-endian double.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// A byte, 1 for true.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.i8(i8::from(value));
    }

    /// A 16-byte identifier.
    #[inline]
    pub fn uuid(&mut self, value: &Uuid) {
        self.raw(value.as_bytes());
    }

    /// An unsigned variable-length integer.
    #[inline]
    pub fn unsigned_varint(&mut self, value: u32) {
        varint::write_unsigned_varint(&mut self.buf, value);
    }

    /// A zigzag-coded variable-length integer.
    #[inline]
    pub fn varint(&mut self, value: i32) {
        varint::write_varint(&mut self.buf, value);
    }

    /// A zigzag-coded variable-length integer of 64 bits.
    #[inline]
    pub fn varlong(&mut self, value: i64) {
        varint::write_varlong(&mut self.buf, value);
    }

    /// A length of a flexible version: one more than the length, zero for null.
    #[inline]
    fn compact_len(&mut self, len: usize) -> Result<()> {
        // The wire type is a signed 32-bit integer in Kafka, hence the limit.
        if len >= i32::MAX as usize {
            return Err(EncodeError::TooLong(len));
        }
        self.unsigned_varint(len as u32 + 1);
        Ok(())
    }

    #[inline]
    fn long_len(&mut self, len: usize, flexible: bool) -> Result<()> {
        if flexible {
            return self.compact_len(len);
        }
        self.i32(i32::try_from(len).map_err(|_| EncodeError::TooLong(len))?);
        Ok(())
    }

    #[inline]
    fn long_null(&mut self, flexible: bool) {
        if flexible {
            self.unsigned_varint(0);
        } else {
            self.i32(-1);
        }
    }

    /// A string.
    pub fn string(&mut self, value: &str, flexible: bool) -> Result<()> {
        if value.len() > MAX_STRING_LEN {
            return Err(EncodeError::TooLong(value.len()));
        }
        if flexible {
            self.compact_len(value.len())?;
        } else {
            self.i16(value.len() as i16);
        }
        self.raw(value.as_bytes());
        Ok(())
    }

    /// A string or null.
    #[inline]
    pub fn nullable_string(&mut self, value: Option<&KStr>, flexible: bool) -> Result<()> {
        match value {
            Some(value) => self.string(value, flexible)?,
            None if flexible => self.unsigned_varint(0),
            None => self.i16(-1),
        }
        Ok(())
    }

    /// Bytes, or records. Large ones are shared, not copied.
    pub fn bytes(&mut self, value: &Bytes, flexible: bool) -> Result<()> {
        self.long_len(value.len(), flexible)?;
        self.share_or_copy(value);
        Ok(())
    }

    /// Bytes, or records, or null.
    pub fn nullable_bytes(&mut self, value: Option<&Bytes>, flexible: bool) -> Result<()> {
        match value {
            Some(value) => self.bytes(value, flexible)?,
            None => self.long_null(flexible),
        }
        Ok(())
    }

    /// Records of a response. Large ones are shared, not copied.
    pub fn payload(&mut self, value: &Payload, flexible: bool) -> Result<()> {
        match value {
            Payload::Bytes(bytes) => self.bytes(bytes, flexible)?,
            Payload::Remote(remote) if remote.is_empty() => self.long_len(0, flexible)?,
            Payload::Remote(_) => {
                self.long_len(value.len(), flexible)?;
                self.splice(value.clone());
            }
        }
        Ok(())
    }

    /// Records of a response, or null.
    pub fn nullable_payload(&mut self, value: Option<&Payload>, flexible: bool) -> Result<()> {
        match value {
            Some(value) => self.payload(value, flexible)?,
            None => self.long_null(flexible),
        }
        Ok(())
    }

    /// An array.
    pub fn array<T: Element>(&mut self, values: &[T], version: i16, flexible: bool) -> Result<()> {
        self.long_len(values.len(), flexible)?;
        for value in values {
            value.write(self, version, flexible)?;
        }
        Ok(())
    }

    /// An array or null.
    #[inline]
    pub fn nullable_array<T: Element>(&mut self, values: Option<&Vec<T>>, version: i16, flexible: bool) -> Result<()> {
        match values {
            Some(values) => self.array(values, version, flexible)?,
            None => self.long_null(flexible),
        }
        Ok(())
    }

    /// A struct or null: a byte, negative for null, goes before it.
    pub fn nullable_struct<T: Element>(&mut self, value: Option<&T>, version: i16, flexible: bool) -> Result<()> {
        match value {
            Some(value) => {
                self.i8(1);
                value.write(self, version, flexible)?;
            }
            None => self.i8(-1),
        }
        Ok(())
    }

    /// The same as the value of a tagged field: zero for null goes before it.
    pub fn nullable_tagged_struct<T: Element>(
        &mut self,
        value: Option<&T>,
        version: i16,
        flexible: bool,
    ) -> Result<()> {
        self.unsigned_varint(u32::from(value.is_some()));
        value.map_or(Ok(()), |value| value.write(self, version, flexible))
    }

    /// A tagged field: `value` writes it, its size is put before it.
    pub fn tagged_field(&mut self, tag: u32, value: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.unsigned_varint(tag);
        let (at, before, splices) = (self.buf.len(), self.len(), self.splices.len());
        value(self)?;
        let size = self.len() - before;
        let size = u32::try_from(size).map_err(|_| EncodeError::TooLong(size))?;
        // Tagged values are short; moving them is cheaper than computing their size first.
        for (place, _) in &mut self.splices[splices..] {
            *place += varint::unsigned_varint_size(size);
        }
        if size < 0x80 {
            self.buf.insert(at, size as u8);
        } else {
            let mut prefix = Vec::with_capacity(varint::MAX_VARINT_BYTES);
            varint::write_unsigned_varint(&mut prefix, size);
            self.buf.splice(at..at, prefix);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Remote;

    fn large(byte: u8) -> Bytes {
        Bytes::from(vec![byte; SPLICE_MIN_BYTES])
    }

    #[test]
    fn large_payloads_are_chunks_of_their_own_and_not_copied() {
        let (first, second) = (large(1), large(2));
        let mut w = Writer::new();
        w.share_or_copy(&first);
        w.i16(7);
        w.bytes(&Bytes::from_static(b"small"), false).unwrap();
        w.share_or_copy(&second);
        w.share_or_copy(&first);
        w.i8(8);
        assert_eq!(w.len(), 3 * SPLICE_MIN_BYTES + 12);

        let flat = w.clone().into_bytes();
        let chunks: Vec<Bytes> = w.into_chunks().iter().filter_map(|chunk| chunk.bytes().cloned()).collect();
        assert_eq!(chunks.concat(), flat);
        let lengths: Vec<usize> = chunks.iter().map(Bytes::len).collect();
        let n = SPLICE_MIN_BYTES;
        assert_eq!(lengths, [n, 11, n, n, 1]);
        assert_eq!(chunks[0].as_ptr(), first.as_ptr());
        assert_eq!(chunks[2].as_ptr(), second.as_ptr());
    }

    #[test]
    fn small_payloads_are_one_chunk_and_nothing_is_none() {
        let mut w = Writer::with_capacity(16);
        assert!(w.is_empty());
        assert!(w.clone().into_chunks().is_empty());
        w.share_or_copy(&Bytes::from_static(b"abc"));
        w.raw(b"de");
        assert_eq!(w.clone().into_chunks(), [Payload::from(Bytes::from_static(b"abcde"))]);
        assert_eq!(w.clone().into_bytes(), "abcde");
        w.clear();
        assert_eq!(w.len(), 0);
    }

    #[test]
    fn what_is_elsewhere_counts_and_keeps_its_place() {
        let remote = Remote::new(5, std::sync::Arc::new("where"));
        let mut w = Writer::new();
        w.i8(1);
        w.nullable_payload(Some(&Payload::Remote(remote.clone())), false).unwrap();
        w.nullable_payload(None, false).unwrap();
        w.payload(&Payload::Remote(Remote::new(0, std::sync::Arc::new(()))), true).unwrap();
        assert_eq!(w.len(), 1 + 4 + 5 + 4 + 1);
        let bytes = |bytes: &'static [u8]| Payload::from(Bytes::from_static(bytes));
        let expected = [bytes(&[1, 0, 0, 0, 5]), Payload::Remote(remote), bytes(&[255, 255, 255, 255, 1])];
        assert_eq!(w.into_chunks(), expected);
    }

    #[test]
    fn a_length_can_be_filled_in_later() {
        let mut w = Writer::new();
        w.i8(1);
        let length = w.reserve_i32();
        w.share_or_copy(&large(0));
        let body = w.len() - 5;
        w.patch_i32(length, body as i32);
        assert_eq!(w.into_chunks()[0], Bytes::from_static(&[1, 0, 0, 0x10, 0]).into());
    }

    #[test]
    fn tagged_fields_get_their_size_before_them() {
        for size in [0, 1, 127, 128, SPLICE_MIN_BYTES - 1, SPLICE_MIN_BYTES, 20_000] {
            let value = Bytes::from(vec![9; size]);
            let mut w = Writer::new();
            w.share_or_copy(&large(1));
            w.tagged_field(3, |w| {
                w.i8(4);
                w.share_or_copy(&value);
                w.i8(5);
                Ok(())
            })
            .unwrap();
            let mut expected = large(1).to_vec();
            expected.push(3);
            varint::write_unsigned_varint(&mut expected, size as u32 + 2);
            expected.push(4);
            expected.extend_from_slice(&value);
            expected.push(5);
            assert_eq!(w.len(), expected.len());
            assert_eq!(w.into_bytes(), expected, "{size}");
        }
    }

    #[test]
    fn strings_longer_than_kafka_allows_are_refused() {
        let (longest, longer) = ("x".repeat(32_767), "x".repeat(32_768));
        for flexible in [false, true] {
            let mut w = Writer::new();
            assert_eq!(w.string(&longest, flexible), Ok(()));
            assert_eq!(w.string(&longer, flexible), Err(EncodeError::TooLong(32_768)));
        }
    }
}
