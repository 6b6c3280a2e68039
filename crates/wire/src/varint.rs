//! Variable-length integers: seven bits a byte, lowest first; signed ones are zigzag-coded.

use crate::error::DecodeError;

/// Most bytes a 32-bit integer takes.
pub const MAX_VARINT_BYTES: usize = 5;
/// Most bytes a 64-bit integer takes.
pub const MAX_VARLONG_BYTES: usize = 10;

const TRUNCATED: DecodeError = DecodeError::Truncated { needed: 1, left: 0 };

/// Reads an unsigned 32-bit integer and moves `src` behind it. On an error `src` stays where it was.
#[inline]
pub fn read_unsigned_varint(src: &mut &[u8]) -> Result<u32, DecodeError> {
    // Nearly all lengths and tags fit one byte.
    if let Some((&first, rest)) = src.split_first()
        && first < 0x80
    {
        *src = rest;
        return Ok(u32::from(first));
    }
    let value = read_long(src, MAX_VARINT_BYTES, u64::from(u32::MAX))?;
    u32::try_from(value).map_err(|_| DecodeError::Varint)
}

/// Reads an unsigned 64-bit integer and moves `src` behind it. On an error `src` stays where it was.
pub fn read_unsigned_varlong(src: &mut &[u8]) -> Result<u64, DecodeError> {
    read_long(src, MAX_VARLONG_BYTES, u64::MAX)
}

/// Reads a zigzag-coded 32-bit integer and moves `src` behind it.
#[inline]
pub fn read_varint(src: &mut &[u8]) -> Result<i32, DecodeError> {
    let n = read_unsigned_varint(src)?;
    Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
}

/// Reads a zigzag-coded 64-bit integer and moves `src` behind it.
#[inline]
pub fn read_varlong(src: &mut &[u8]) -> Result<i64, DecodeError> {
    let n = read_unsigned_varlong(src)?;
    Ok((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
}

fn read_long(src: &mut &[u8], max_bytes: usize, max: u64) -> Result<u64, DecodeError> {
    let mut value = 0u64;
    for (i, &byte) in src.iter().take(max_bytes).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * i;
        // Bits that a shift would push out mean a number that no writer of this type produces.
        if bits > max >> shift {
            return Err(DecodeError::Varint);
        }
        value |= bits << shift;
        if byte < 0x80 {
            *src = &src[i + 1..];
            return Ok(value);
        }
    }
    Err(if src.len() < max_bytes { TRUNCATED } else { DecodeError::Varint })
}

/// Appends an unsigned 32-bit integer.
#[inline]
pub fn write_unsigned_varint(out: &mut Vec<u8>, value: u32) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        write_unsigned_varlong(out, u64::from(value));
    }
}

/// Appends an unsigned 64-bit integer.
pub fn write_unsigned_varlong(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a zigzag-coded 32-bit integer.
#[inline]
pub fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_unsigned_varint(out, ((value << 1) ^ (value >> 31)).cast_unsigned());
}

/// Appends a zigzag-coded 64-bit integer.
#[inline]
pub fn write_varlong(out: &mut Vec<u8>, value: i64) {
    write_unsigned_varlong(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Bytes that [`write_unsigned_varint`] appends.
pub const fn unsigned_varint_size(value: u32) -> usize {
    unsigned_varlong_size(value as u64)
}

/// Bytes that [`write_unsigned_varlong`] appends.
pub const fn unsigned_varlong_size(value: u64) -> usize {
    // Zero takes a byte too, hence the lowest bit.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Bytes that [`write_varint`] appends.
pub const fn varint_size(value: i32) -> usize {
    unsigned_varint_size(((value << 1) ^ (value >> 31)).cast_unsigned())
}

/// Bytes that [`write_varlong`] appends.
pub const fn varlong_size(value: i64) -> usize {
    unsigned_varlong_size(((value << 1) ^ (value >> 63)).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_survives_a_round_trip_and_has_the_size_announced() {
        let mut values = vec![0i64, -1, i64::MIN, i64::MAX];
        for bit in 0..63 {
            values.extend([1 << bit, (1 << bit) - 1, -(1 << bit)]);
        }
        for value in values {
            let mut out = Vec::new();
            write_varlong(&mut out, value);
            assert_eq!(out.len(), varlong_size(value));
            let mut src = &out[..];
            assert_eq!(read_varlong(&mut src), Ok(value));
            assert!(src.is_empty());

            out.clear();
            write_unsigned_varlong(&mut out, value.cast_unsigned());
            assert_eq!(out.len(), unsigned_varlong_size(value.cast_unsigned()));
            assert_eq!(read_unsigned_varlong(&mut &out[..]), Ok(value.cast_unsigned()));

            let short = value as i32;
            out.clear();
            write_varint(&mut out, short);
            assert_eq!(out.len(), varint_size(short));
            assert_eq!(read_varint(&mut &out[..]), Ok(short));

            out.clear();
            write_unsigned_varint(&mut out, short.cast_unsigned());
            assert_eq!(out.len(), unsigned_varint_size(short.cast_unsigned()));
            assert_eq!(read_unsigned_varint(&mut &out[..]), Ok(short.cast_unsigned()));
        }
    }

    #[test]
    fn known_encodings() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn malformed_ones_are_errors_and_move_nothing() {
        let long = DecodeError::Varint;
        for (bytes, error) in [
            (&[][..], TRUNCATED),
            (&[0x80], TRUNCATED),
            (&[0xff, 0xff, 0xff, 0xff], TRUNCATED),
            (&[0xff, 0xff, 0xff, 0xff, 0xff], long.clone()),
            (&[0xff, 0xff, 0xff, 0xff, 0x1f], long.clone()),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01], long.clone()),
        ] {
            let mut src = bytes;
            assert_eq!(read_unsigned_varint(&mut src), Err(error), "{bytes:?}");
            assert_eq!(src, bytes);
        }
        assert_eq!(read_unsigned_varlong(&mut &[0xff; 10][..]), Err(long.clone()));
        let mut too_wide = [0xff; 10];
        too_wide[9] = 0x02;
        assert_eq!(read_unsigned_varlong(&mut &too_wide[..]), Err(long));
    }
}
