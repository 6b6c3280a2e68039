//! Producer snapshots (`OFFSET.snapshot`, Kafka's version 1): the producer state of everything before OFFSET.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::fs::{read_file, replace_file};
use crate::producer_state::{BatchMeta, ProducerEntry, ProducerState};

const VERSION: i16 = 1;
/// Version i16, CRC u32, entry count i32.
const HEADER_LEN: usize = 10;
const ENTRY_LEN: usize = 46;

pub(crate) fn path(dir: &Path, offset: i64) -> PathBuf {
    dir.join(format!("{offset:020}.snapshot"))
}

pub(crate) fn encode(state: &ProducerState) -> Vec<u8> {
    let mut entries: Vec<_> = state.iter().collect();
    entries.sort_by_key(|(id, _)| *id);
    let mut out = Vec::with_capacity(HEADER_LEN + ENTRY_LEN * entries.len());
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    for (id, entry) in entries {
        let last = entry.batches.back();
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&entry.epoch.to_be_bytes());
        out.extend_from_slice(&entry.last_sequence().to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |batch| batch.last_offset).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, |batch| batch.offset_delta).to_be_bytes());
        out.extend_from_slice(&entry.last_timestamp.to_be_bytes());
        out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&entry.txn_first_offset.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc32c::crc32c(&out[6..]);
    out[2..6].copy_from_slice(&crc.to_be_bytes());
    out
}

/// `None` if the bytes are not a sound snapshot.
pub(crate) fn decode(bytes: &[u8]) -> Option<ProducerState> {
    let head = bytes.first_chunk::<HEADER_LEN>()?;
    let version = i16::from_be_bytes([head[0], head[1]]);
    let crc = u32::from_be_bytes([head[2], head[3], head[4], head[5]]);
    let count = u32::from_be_bytes([head[6], head[7], head[8], head[9]]) as usize;
    let body = &bytes[HEADER_LEN..];
    if version != VERSION || crc != crc32c::crc32c(&bytes[6..]) || Some(body.len()) != count.checked_mul(ENTRY_LEN) {
        return None;
    }
    let mut state = ProducerState::default();
    for entry in body.chunks_exact(ENTRY_LEN) {
        let mut fields = Fields(entry);
        let id = fields.i64()?;
        let epoch = fields.i16()?;
        let (last_sequence, last_offset, offset_delta) = (fields.i32()?, fields.i64()?, fields.i32()?);
        let last_timestamp = fields.i64()?;
        let coordinator_epoch = fields.i32()?;
        let txn_first_offset = fields.i64().filter(|first| *first >= 0);
        let batch = BatchMeta { last_sequence, last_offset, offset_delta, timestamp: last_timestamp };
        let batches = (last_offset >= 0).then_some(batch).into_iter().collect();
        state.insert(id, ProducerEntry { epoch, batches, coordinator_epoch, last_timestamp, txn_first_offset });
    }
    Some(state)
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

/// Writes the snapshot of `state`, for its end.
pub(crate) fn write(files: &Files, dir: &Path, state: &ProducerState) -> io::Result<()> {
    replace_file(&*files.fs, &path(dir, state.end), &encode(state))
}

/// Reads the snapshot for `offset`; `None` if it is missing or damaged.
pub(crate) fn read(files: &Files, dir: &Path, offset: i64) -> Option<ProducerState> {
    let path = path(dir, offset);
    let bytes = match read_file(&*files.fs, &path, 1 << 30) {
        Ok(bytes) => bytes?,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read a producer snapshot");
            return None;
        }
    };
    let Some(mut state) = decode(&bytes) else {
        tracing::warn!(path = %path.display(), "a producer snapshot is damaged and is left out");
        return None;
    };
    state.end = offset;
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_round_trips_and_damage_is_noticed() {
        let mut state = ProducerState::starting_at(77);
        let batch = BatchMeta { last_sequence: 9, last_offset: 70, offset_delta: 3, timestamp: 5000 };
        let entry = ProducerEntry {
            epoch: 2,
            batches: [batch].into(),
            coordinator_epoch: 4,
            last_timestamp: 5000,
            txn_first_offset: Some(60),
        };
        state.insert(8, entry.clone());
        state.insert(9, ProducerEntry { batches: [].into(), txn_first_offset: None, ..entry.clone() });
        let bytes = encode(&state);
        let read = decode(&bytes).unwrap();
        assert_eq!(read.get(8), state.get(8));
        assert_eq!(read.get(9), state.get(9));
        assert_eq!(read.first_unstable(), Some(60));
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1;
            assert!(decode(&damaged).is_none(), "byte {i}");
            assert!(decode(&bytes[..i]).is_none());
        }
    }
}
