//! Takes values off a frame. The frame is hostile until proven otherwise: every length is checked against the bytes that
//! are left before anything is allocated for it.

use bytes::Bytes;

use crate::codec::Element;
use crate::error::DecodeError;
use crate::kstr::KStr;
use crate::payload::Payload;
use crate::uuid::Uuid;
use crate::varint;

type Result<T> = std::result::Result<T, DecodeError>;

/// Kafka's limit for strings, also where the length field could say more.
const MAX_STRING_LEN: usize = i16::MAX as usize;
/// What an array may allocate before its first element has been read.
const INITIAL_ARRAY_BYTES: usize = 4096;

/// A cursor over a frame. Strings and bytes read from it are slices of the frame, not copies.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the beginning of `frame`.
    pub fn new(frame: &'a Bytes) -> Self {
        Self { frame, rest: frame }
    }

    /// Bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What has not been read yet; the cursor stays.
    #[inline]
    pub fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Fails if anything is left.
    pub fn finish(&self) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }

    /// The next `len` bytes, borrowed.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.truncated(len));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `len` bytes as a slice that shares the frame's memory.
    #[inline]
    pub fn take_bytes(&mut self, len: usize) -> Result<Bytes> {
        let taken = self.take(len)?;
        Ok(self.frame.slice_ref(taken))
    }

    #[cold]
    fn truncated(&self, needed: usize) -> DecodeError {
        DecodeError::Truncated { needed, left: self.rest.len() }
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.truncated(N));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// An 8-bit integer.
    #[inline]
    pub fn i8(&mut self) -> Result<i8> {
        self.fixed().map(i8::from_be_bytes)
    }

    /// A big-endian 16-bit integer.
    #[inline]
    pub fn i16(&mut self) -> Result<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    /// An unsigned big-endian 16-bit integer.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// A big-endian 32-bit integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// An unsigned big-endian 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// A big-endian 64-bit integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// A big-endian double.
    #[inline]
    pub fn f64(&mut self) -> Result<f64> {
        self.fixed().map(f64::from_be_bytes)
    }

    /// A byte that is true unless it is zero.
    #[inline]
    pub fn bool(&mut self) -> Result<bool> {
        self.i8().map(|byte| byte != 0)
    }

    /// A 16-byte identifier.
    #[inline]
    pub fn uuid(&mut self) -> Result<Uuid> {
        self.fixed().map(Uuid)
    }

    /// An unsigned variable-length integer of at most 5 bytes.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32> {
        varint::read_unsigned_varint(&mut self.rest)
    }

    /// A zigzag-coded variable-length integer of at most 5 bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<i32> {
        varint::read_varint(&mut self.rest)
    }

    /// A zigzag-coded variable-length integer of at most 10 bytes.
    #[inline]
    pub fn varlong(&mut self) -> Result<i64> {
        varint::read_varlong(&mut self.rest)
    }

    /// A length of a flexible version: one more than the length, zero for null.
    #[inline]
    fn compact_len(&mut self) -> Result<Option<usize>> {
        Ok((self.unsigned_varint()? as usize).checked_sub(1))
    }

    #[inline]
    fn string_len(&mut self, flexible: bool) -> Result<Option<usize>> {
        if flexible { self.compact_len() } else { plain_len(i64::from(self.i16()?)) }
    }

    /// Length of bytes, and number of elements of an array.
    #[inline]
    fn long_len(&mut self, flexible: bool) -> Result<Option<usize>> {
        if flexible { self.compact_len() } else { plain_len(i64::from(self.i32()?)) }
    }

    /// A string.
    #[inline]
    pub fn string(&mut self, flexible: bool) -> Result<KStr> {
        self.nullable_string(flexible)?.ok_or(DecodeError::Null)
    }

    /// A string or null.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<KStr>> {
        match self.string_len(flexible)? {
            None => Ok(None),
            Some(len) if len > MAX_STRING_LEN => Err(DecodeError::Length(len as i64)),
            Some(len) => KStr::from_utf8(self.take_bytes(len)?).map(Some),
        }
    }

    /// Bytes, or records.
    #[inline]
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes> {
        self.nullable_bytes(flexible)?.ok_or(DecodeError::Null)
    }

    /// Bytes, or records, or null.
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>> {
        match self.long_len(flexible)? {
            None => Ok(None),
            Some(len) => self.take_bytes(len).map(Some),
        }
    }

    /// Records of a response.
    #[inline]
    pub fn payload(&mut self, flexible: bool) -> Result<Payload> {
        self.bytes(flexible).map(Payload::from)
    }

    /// Records of a response, or null.
    #[inline]
    pub fn nullable_payload(&mut self, flexible: bool) -> Result<Option<Payload>> {
        Ok(self.nullable_bytes(flexible)?.map(Payload::from))
    }

    /// An array.
    #[inline]
    pub fn array<T: Element>(&mut self, version: i16, flexible: bool) -> Result<Vec<T>> {
        self.nullable_array(version, flexible)?.ok_or(DecodeError::Null)
    }

    /// An array or null.
    pub fn nullable_array<T: Element>(&mut self, version: i16, flexible: bool) -> Result<Option<Vec<T>>> {
        let Some(elements) = self.long_len(flexible)? else {
            return Ok(None);
        };
        // No element of any message is written in zero bytes (codegen makes sure), so this many cannot be there.
        if elements > self.rest.len() {
            return Err(DecodeError::ArrayLength { elements, left: self.rest.len() });
        }
        let initial = INITIAL_ARRAY_BYTES / size_of::<T>().max(1);
        let mut out = Vec::with_capacity(elements.min(initial.max(1)));
        while out.len() < elements {
            if out.len() == out.capacity() {
                // Doubles what was really read, and never takes more than the array claims.
                out.reserve_exact(out.len().min(elements - out.len()));
            }
            out.push(T::read(self, version, flexible)?);
        }
        Ok(Some(out))
    }

    /// A struct or null: a byte, negative for null, goes before it.
    pub fn nullable_struct<T: Element>(&mut self, version: i16, flexible: bool) -> Result<Option<T>> {
        if self.i8()? < 0 {
            return Ok(None);
        }
        T::read(self, version, flexible).map(Some)
    }

    /// The same as the value of a tagged field: zero for null goes before it.
    pub fn nullable_tagged_struct<T: Element>(&mut self, version: i16, flexible: bool) -> Result<Option<T>> {
        if self.unsigned_varint()? == 0 {
            return Ok(None);
        }
        T::read(self, version, flexible).map(Some)
    }

    /// The tagged fields at the end of a struct. `known` reads the value if it knows the tag, or says that it does not;
    /// unknown ones are skipped.
    #[inline]
    pub fn tagged_fields(&mut self, mut known: impl FnMut(u32, &mut Self) -> Result<bool>) -> Result<()> {
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            let mut value = Self { frame: self.frame, rest: self.take(size)? };
            if known(tag, &mut value)? && !value.is_empty() {
                return Err(DecodeError::TaggedSize { tag, extra: value.remaining() });
            }
        }
        Ok(())
    }

    /// The tagged fields of a struct that has none.
    #[inline]
    pub fn skip_tagged_fields(&mut self) -> Result<()> {
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let size = self.unsigned_varint()?;
            self.take(size as usize)?;
        }
        Ok(())
    }
}

/// A length of a version that is not flexible: -1 for null.
#[inline]
fn plain_len(len: i64) -> Result<Option<usize>> {
    match usize::try_from(len) {
        Ok(len) => Ok(Some(len)),
        Err(_) if len == -1 => Ok(None),
        Err(_) => Err(DecodeError::Length(len)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(bytes: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Result<T>) -> Result<T> {
        let frame = Bytes::copy_from_slice(bytes);
        let mut r = Reader::new(&frame);
        let value = read(&mut r)?;
        r.finish()?;
        Ok(value)
    }

    #[test]
    fn fixed_size_values_are_big_endian() {
        assert_eq!(read(&[0xfe], |r| r.i8()), Ok(-2));
        assert_eq!(read(&[0xff, 0xfe], |r| r.i16()), Ok(-2));
        assert_eq!(read(&[0xff, 0xfe], |r| r.u16()), Ok(65534));
        assert_eq!(read(&[0, 0, 1, 2], |r| r.i32()), Ok(258));
        assert_eq!(read(&[0xff, 0, 0, 0], |r| r.u32()), Ok(0xff00_0000));
        assert_eq!(read(&[0, 0, 0, 0, 0, 0, 1, 2], |r| r.i64()), Ok(258));
        assert_eq!(read(&1.5f64.to_be_bytes(), |r| r.f64()), Ok(1.5));
        assert_eq!(read(&[7], |r| r.bool()), Ok(true));
        assert_eq!(read(&[9; 16], |r| r.uuid()), Ok(Uuid([9; 16])));
        let truncated = DecodeError::Truncated { needed: 4, left: 3 };
        assert_eq!(read(&[1, 2, 3], |r| r.i32()), Err(truncated));
        assert_eq!(read(&[1, 2], |r| r.i8()), Err(DecodeError::Trailing(1)));
    }

    #[test]
    fn strings_of_both_encodings() {
        let some = Ok(Some(KStr::from("ab")));
        assert_eq!(read(&[0, 2, b'a', b'b'], |r| r.nullable_string(false)), some);
        assert_eq!(read(&[3, b'a', b'b'], |r| r.nullable_string(true)), some);
        assert_eq!(read(&[0xff, 0xff], |r| r.nullable_string(false)), Ok(None));
        assert_eq!(read(&[0], |r| r.nullable_string(true)), Ok(None));
        assert_eq!(read(&[0], |r| r.string(true)), Err(DecodeError::Null));
        assert_eq!(read(&[2, 0xff], |r| r.string(true)), Err(DecodeError::Utf8));
    }

    #[test]
    fn lengths_that_cannot_be_are_errors() {
        let minus_two = Err(DecodeError::Length(-2));
        assert_eq!(read(&[0xff, 0xfe], |r| r.string(false)), minus_two);
        assert_eq!(read(&(-2i32).to_be_bytes(), |r| r.nullable_bytes(false)).err(), minus_two.clone().err());
        assert_eq!(read(&(-2i32).to_be_bytes(), |r| r.array::<i8>(0, false)).err(), minus_two.err());

        let long = Err(DecodeError::Truncated { needed: i32::MAX as usize, left: 0 });
        assert_eq!(read(&i32::MAX.to_be_bytes(), |r| r.bytes(false)), long);
        let array = Err(DecodeError::ArrayLength { elements: i32::MAX as usize, left: 0 });
        assert_eq!(read(&i32::MAX.to_be_bytes(), |r| r.array::<i8>(0, false)), array);

        // 40,000 bytes are there, but no string of Kafka's is that long.
        let mut bytes = Vec::new();
        varint::write_unsigned_varint(&mut bytes, 40_001);
        bytes.resize(bytes.len() + 40_000, b'x');
        assert_eq!(read(&bytes, |r| r.string(true)), Err(DecodeError::Length(40_000)));
    }

    #[test]
    fn strings_and_bytes_share_the_frame() {
        let frame = Bytes::from_static(&[0, 1, b'a', 3, b'b', b'c']);
        let mut r = Reader::new(&frame);
        let text = r.string(false).unwrap();
        let bytes = r.bytes(true).unwrap();
        assert_eq!((text.as_ptr(), bytes.as_ptr()), (frame[2..].as_ptr(), frame[4..].as_ptr()));
        assert!(r.is_empty());
    }

    #[test]
    fn arrays_take_no_more_than_they_claim() {
        let mut bytes = 3000i32.to_be_bytes().to_vec();
        bytes.resize(4 + 3000 * 8, 1);
        let array: Vec<i64> = read(&bytes, |r| r.array(0, false)).unwrap();
        assert_eq!((array.len(), array.capacity()), (3000, 3000));
        let empty: Vec<i64> = read(&[1], |r| r.array(0, true)).unwrap();
        assert_eq!(empty.capacity(), 0);
        assert_eq!(read(&[0], |r| r.nullable_array::<i64>(0, true)), Ok(None));
        assert_eq!(read(&[0], |r| r.array::<i64>(0, true)), Err(DecodeError::Null));
    }

    #[test]
    fn tagged_fields_are_read_or_skipped() {
        let bytes = [3, 0, 1, 42, 5, 2, 0xaa, 0xbb, 200, 1, 0];
        let mut found = Vec::new();
        let mut tags = |tag: u32, r: &mut Reader<'_>| {
            if tag == 0 {
                found.push(r.i8()?);
            }
            Ok(tag == 0)
        };
        assert_eq!(read(&bytes, |r| r.tagged_fields(&mut tags)), Ok(()));
        assert_eq!(found, [42]);
        assert_eq!(read(&bytes, |r| r.skip_tagged_fields()), Ok(()));
    }

    #[test]
    fn tagged_fields_stay_within_their_size() {
        let known = |_: u32, r: &mut Reader<'_>| r.i16().map(|_| true);
        let short = DecodeError::Truncated { needed: 2, left: 1 };
        assert_eq!(read(&[1, 0, 1, 42, 43], |r| r.tagged_fields(known)), Err(short));
        let extra = DecodeError::TaggedSize { tag: 0, extra: 1 };
        assert_eq!(read(&[1, 0, 3, 1, 2, 3], |r| r.tagged_fields(known)), Err(extra));
    }
}
