//! Zig-zag variable-length integers as records use them.

/// Reads a zig-zag varint of at most 64 bits; `None` if the bytes end early or it is longer than ten bytes.
pub(super) fn read_i64(buf: &[u8], pos: &mut usize) -> Option<i64> {
    let mut value = 0u64;
    for i in 0..10 {
        let byte = *buf.get(*pos)?;
        *pos += 1;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some(((value >> 1) as i64) ^ -((value & 1) as i64));
        }
    }
    None
}

/// Reads a zig-zag varint of at most 32 bits; `None` also if the value does not fit.
pub(super) fn read_i32(buf: &[u8], pos: &mut usize) -> Option<i32> {
    i32::try_from(read_i64(buf, pos)?).ok()
}

pub(super) fn write_i64(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes that [`write_i64`] takes.
pub(super) fn size_i64(value: i64) -> usize {
    let rest = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (rest | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_round_trip_and_sizes_agree() {
        for value in
            [0, 1, -1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN]
        {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            assert_eq!(out.len(), size_i64(value), "{value}");
            let mut pos = 0;
            assert_eq!(read_i64(&out, &mut pos), Some(value));
            assert_eq!(pos, out.len());
            assert_eq!(read_i64(&out[..out.len() - 1], &mut 0), None);
        }
    }

    #[test]
    fn overlong_and_oversized_are_refused() {
        assert_eq!(read_i64(&[0xff; 11], &mut 0), None);
        let mut out = Vec::new();
        write_i64(&mut out, i64::from(i32::MAX) + 1);
        assert_eq!(read_i32(&out, &mut 0), None);
    }
}
