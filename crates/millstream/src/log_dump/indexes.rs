//! The indexes of a segment: entries of fixed size, ascending.

use std::path::Path;

use serde_json::json;

use super::Dump;
use crate::output::{Output, Table};
use crate::time::format_time;

/// `.index`: offset relative to the segment's (u32), position in the segment in bytes (u32).
pub fn offsets(file: &Path, base_offset: i64, json: bool, out: &mut Output) -> Result<(), Dump> {
    let mut table = Table::new(&["OFFSET", "POSITION"]);
    let rest = entries(file, |entry: &[u8; 8]| {
        let (offset, position) = (base_offset + i64::from(u32_at(entry, 0)), u32_at(entry, 4));
        match json {
            true => out.line(json!({ "offset": offset, "position": position }).to_string()),
            false => table.row(vec![offset.into(), position.into()]),
        }
    })?;
    out.table(&table);
    whole(rest)
}

/// `.timeindex`: timestamp in ms (i64), relative offset (u32).
pub fn times(file: &Path, base_offset: i64, json: bool, out: &mut Output) -> Result<(), Dump> {
    let mut table = Table::new(&["TIMESTAMP", "TIME", "OFFSET"]);
    let rest = entries(file, |entry: &[u8; 12]| {
        let (timestamp, offset) = (i64_at(entry, 0), base_offset + i64::from(u32_at(entry, 8)));
        match json {
            true => out.line(json!({ "timestamp": timestamp, "offset": offset }).to_string()),
            false => table.row(vec![timestamp.into(), format_time(timestamp).into(), offset.into()]),
        }
    })?;
    out.table(&table);
    whole(rest)
}

/// `.txnindex`: version (i16), then producer id, first and last offset, last stable offset (i64 each).
pub fn aborted(file: &Path, json: bool, out: &mut Output) -> Result<(), Dump> {
    let mut table = Table::new(&["PRODUCER", "FIRST OFFSET", "LAST OFFSET", "LAST STABLE"]);
    let rest = entries(file, |entry: &[u8; 34]| {
        let [producer, first, last, stable] = [2, 10, 18, 26].map(|at| i64_at(entry, at));
        match json {
            true => out.line(
                json!({
                    "producer_id": producer, "first_offset": first, "last_offset": last, "last_stable_offset": stable,
                })
                .to_string(),
            ),
            false => table.row(vec![producer.into(), first.into(), last.into(), stable.into()]),
        }
    })?;
    out.table(&table);
    whole(rest)
}

/// Calls with each entry, and returns how many bytes are left over. Kafka preallocates indexes: from the first entry of zeros
/// on, the very first excepted, there is nothing.
fn entries<const N: usize>(file: &Path, mut entry: impl FnMut(&[u8; N])) -> Result<usize, Dump> {
    let bytes = std::fs::read(file)?;
    let (chunks, rest) = bytes.as_chunks::<N>();
    for (number, bytes) in chunks.iter().enumerate() {
        let is_empty = *bytes == [0; N];
        if is_empty && (number > 0 || chunks.len() > 1) {
            return Ok(0);
        }
        entry(bytes);
    }
    Ok(rest.len())
}

fn whole(rest: usize) -> Result<(), Dump> {
    match rest {
        0 => Ok(()),
        _ => Err(Dump::Damaged(format!("{rest} bytes after the last whole entry"))),
    }
}

// Called with positions inside of an entry only.
fn u32_at(entry: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
}

fn i64_at(entry: &[u8], at: usize) -> i64 {
    (i64::from(u32_at(entry, at)) << 32) | i64::from(u32_at(entry, at + 4))
}
