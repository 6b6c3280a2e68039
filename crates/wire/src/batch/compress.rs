//! The five compression types of record batches, in the framing that Kafka's clients use.

use std::fmt;
use std::io::{self, Read, Write};

use super::BatchError;

/// Compression type, bits 0-2 of the attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    pub const ALL: [Compression; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    pub fn from_id(id: u8) -> Result<Compression, BatchError> {
        Self::ALL.get(usize::from(id)).copied().ok_or(BatchError::UnsupportedCompression(id))
    }

    pub fn id(self) -> u8 {
        self as u8
    }

    /// As in the topic config `compression.type`; that config's `producer` is not a type and gives `None`, as do
    /// unknown names.
    pub fn from_name(name: &str) -> Option<Compression> {
        Self::ALL.into_iter().find(|kind| kind.name() == name || (name == "uncompressed" && *kind == Self::None))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the Java client's snappy library writes before its blocks: magic, version 1, compatible with version 1.
const XERIAL_HEADER: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
const XERIAL_BLOCK: usize = 32 << 10;
/// No snappy element yields more than 64 bytes from 3, so a larger claim is a lie.
const SNAPPY_MAX_RATIO: usize = 22;

/// Compresses `input`; `level` is the codec's own (gzip 1-9, zstd -131072 to 22), out of range values are clamped, `None` is its
/// default. Snappy and lz4 have no levels here.
pub fn compress(kind: Compression, input: &[u8], level: Option<i32>) -> Result<Vec<u8>, BatchError> {
    let failed = |error: String| BatchError::Compress(kind, error);
    match kind {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => {
            let level = match level {
                Some(level @ 0..=9) => flate2::Compression::new(level as u32),
                _ => flate2::Compression::default(),
            };
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(input).and_then(|()| encoder.finish()).map_err(|e| failed(e.to_string()))
        }
        Compression::Snappy => snappy_compress(input).map_err(|e| failed(e.to_string())),
        Compression::Lz4 => {
            // Independent 64 KiB blocks without checksums: the only kind that the Java client reads is one with independent blocks.
            let info = lz4_flex::frame::FrameInfo::new()
                .block_size(lz4_flex::frame::BlockSize::Max64KB)
                .block_mode(lz4_flex::frame::BlockMode::Independent);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(input).map_err(|e| failed(e.to_string()))?;
            encoder.finish().map_err(|e| failed(e.to_string()))
        }
        Compression::Zstd => {
            let level = level.unwrap_or(3).clamp(-131_072, 22);
            zstd::stream::encode_all(input, level).map_err(|e| failed(e.to_string()))
        }
    }
}

/// Decompresses `input` to at most `limit` bytes. Memory grows with what is actually decoded, never with what a header claims.
pub fn decompress(kind: Compression, input: &[u8], limit: usize) -> Result<Vec<u8>, BatchError> {
    // What records usually shrink to; a buffer that grows is copied each time.
    let expected = input.len().saturating_mul(4);
    let result = match kind {
        Compression::None if input.len() > limit => return Err(BatchError::TooLarge(limit)),
        Compression::None => return Ok(input.to_vec()),
        Compression::Gzip => read_limited(flate2::read::MultiGzDecoder::new(input), expected, limit),
        Compression::Snappy => match snappy_decompress(input, limit) {
            Ok(None) => return Err(BatchError::TooLarge(limit)),
            Ok(Some(out)) => Ok(out),
            Err(error) => Err(error),
        },
        Compression::Lz4 => read_limited(lz4_flex::frame::FrameDecoder::new(input), expected, limit),
        Compression::Zstd => {
            let decoder = zstd::stream::read::Decoder::new(input).and_then(|mut decoder| {
                // What zstd levels up to 22 need; a larger window would let a header of a few bytes claim gigabytes.
                decoder.window_log_max(27)?;
                Ok(decoder)
            });
            decoder.and_then(|decoder| read_limited(decoder, expected, limit))
        }
    };
    match result {
        Ok(out) if out.len() > limit => Err(BatchError::TooLarge(limit)),
        Ok(out) => Ok(out),
        Err(error) => Err(BatchError::Decompress(kind, error.to_string())),
    }
}

/// `expected`: about how much it will be. Reads to the end or to one byte past `limit`, so that the caller can tell "too large".
fn read_limited(reader: impl Read, expected: usize, limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(expected.min(limit));
    reader.take(limit as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

fn snappy_compress(input: &[u8]) -> Result<Vec<u8>, snap::Error> {
    let mut out = XERIAL_HEADER.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for block in input.chunks(XERIAL_BLOCK) {
        let compressed = encoder.compress_vec(block)?;
        out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    Ok(out)
}

/// Reads xerial framing, and a bare snappy block as some clients send it. `None` if there is more than `limit`.
fn snappy_decompress(input: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    // Only the magic decides: the version fields are informative, and Java ignores newer ones too.
    let Some(mut rest) = input.strip_prefix(&XERIAL_HEADER[..8]).and_then(|r| r.get(8..)) else {
        return Ok(snappy_block(input, limit, &mut out)?.then_some(out));
    };
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk::<4>().ok_or_else(|| invalid("cut block length"))?;
        let len = u32::from_be_bytes(*len) as usize;
        let block = after.get(..len).ok_or_else(|| invalid("cut block"))?;
        rest = &after[len..];
        if !snappy_block(block, limit, &mut out)? {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

/// Appends the decoded block to `out`, or returns false if that would exceed `limit`.
fn snappy_block(block: &[u8], limit: usize, out: &mut Vec<u8>) -> io::Result<bool> {
    let len = snap::raw::decompress_len(block).map_err(io::Error::other)?;
    if len > block.len().saturating_mul(SNAPPY_MAX_RATIO) {
        return Err(invalid("impossible block size"));
    }
    let start = out.len();
    if len > limit.saturating_sub(start) {
        return Ok(false);
    }
    out.resize(start + len, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(io::Error::other)?;
    Ok(true)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
