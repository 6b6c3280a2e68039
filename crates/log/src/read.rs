//! Reading: recent batches from memory, older ones from the file. The lock is held to find the place, not while reading a file.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use wire::batch::{Batch, BatchHeader, HEADER_LEN};

use crate::error::{ReadError, StorageError};
use crate::file_range::{self, Known};
use crate::files::Files;
use crate::fs::File;
use crate::partition::{Inner, PartitionLog};
use crate::scan::ScanError;
use crate::sound::Sound;
use crate::tail::{Taken, take_batches};
use crate::types::{AbortedTransaction, FetchData, Isolation, ReadParams};

/// Read at least so much from a file at a time, to get over batches that lie between an index entry and the one looked for.
const MIN_READ: usize = 16 << 10;
/// Read at most so much at a time, unless one batch is larger.
const MAX_READ: usize = 16 << 20;

/// Where in the files to go on reading.
pub(crate) struct Place {
    pub file: Arc<dyn File>,
    pub position: u64,
    /// End of the segment's whole batches.
    pub end: u64,
    pub sound: Arc<Sound>,
    /// For who sends from the file: a batch further on.
    known: Option<Known>,
    /// Base of the segment after this one.
    next_segment: Option<i64>,
}

enum Step {
    Done(Taken),
    ReadFile(Place),
}

impl PartitionLog {
    /// Reads whole batches from `params.from_offset` on. Nothing to read yet is not an error: `records` is empty then.
    pub fn read(&self, params: &ReadParams) -> Result<FetchData, ReadError> {
        self.read_as(params, false)
    }

    /// The same for who can send from a file: much that was compared with its checksums before is not read again, but given as
    /// [`FetchData::file`].
    pub fn read_to_send(&self, params: &ReadParams) -> Result<FetchData, ReadError> {
        self.read_as(params, true)
    }

    fn read_as(&self, params: &ReadParams, from_file: bool) -> Result<FetchData, ReadError> {
        let mut data = FetchData::default();
        let mut from = params.from_offset;
        let mut limit = 0;
        let (taken, aborted) = loop {
            let (step, aborted) = {
                let mut state = self.lock();
                let inner = self.ready(&mut state)?;
                if from == params.from_offset {
                    limit = begin(inner, params, &mut data)?;
                }
                locate(inner, &self.shared.files, from, limit, params, from_file)
                    .map_err(|error| StorageError::io(format_args!("{}: cannot read", self.tp), error))?
            };
            match step {
                Step::Done(taken) => break (taken, aborted),
                Step::ReadFile(place) => {
                    let range =
                        if from_file { file_range::find(&place, place.known, from, limit, params) } else { None };
                    if let Some((range, next_offset)) = range {
                        let taken = Taken { next_offset, size: range.len(), ..Taken::default() };
                        data.file = Some(range);
                        break (taken, aborted);
                    }
                    let taken =
                        read_file(&place, from, limit, params).map_err(|error| self.read_failed(from, error))?;
                    match place.next_segment {
                        // The rest of this segment was compacted away: go on with the next one.
                        Some(next) if taken.size == 0 && !taken.full && next > from && next < limit => from = next,
                        _ => break (taken, aborted),
                    }
                }
            }
        };
        data.next_offset = taken.next_offset.max(from);
        data.size = taken.size;
        data.records = taken.records;
        if params.isolation == Isolation::LastStable {
            let overlapping = aborted.into_iter().filter(|txn| txn.first_offset < data.next_offset);
            data.aborted_transactions = Some(overlapping.collect());
        }
        Ok(data)
    }

    pub(crate) fn read_failed(&self, offset: i64, error: ScanError) -> StorageError {
        match error {
            ScanError::Io(error) => StorageError::io(format_args!("{}: cannot read", self.tp), error),
            ScanError::Damaged { position, reason } => {
                tracing::error!(partition = %self.tp, offset, position, reason, "a stored batch is damaged");
                StorageError::Damaged { partition: self.tp.to_string(), offset, reason }
            }
        }
    }
}

/// Checks the offset and notes the marks; returns the offset before which may be read.
fn begin(inner: &Inner, params: &ReadParams, data: &mut FetchData) -> Result<i64, ReadError> {
    let marks = inner.offsets();
    let (offset, start, end) = (params.from_offset, marks.log_start, marks.log_end);
    if offset < start || offset > end {
        return Err(ReadError::OffsetOutOfRange { offset, start, end });
    }
    data.high_watermark = marks.high_watermark;
    data.last_stable_offset = marks.last_stable;
    data.log_start_offset = marks.log_start;
    Ok(match params.isolation {
        Isolation::HighWatermark => marks.high_watermark,
        Isolation::LastStable => marks.last_stable,
        Isolation::LogEnd => marks.log_end,
    })
}

/// Where to read, and the aborted transactions that may overlap it. Both are found under one lock: compaction removes an entry together
/// with the records, so an older file goes with older entries.
fn locate(
    inner: &mut Inner,
    files: &Files,
    from: i64,
    limit: i64,
    params: &ReadParams,
    from_file: bool,
) -> io::Result<(Step, Vec<AbortedTransaction>)> {
    let step = step(inner, files, from, limit, params, from_file)?;
    let until = match &step {
        Step::Done(taken) => taken.next_offset,
        Step::ReadFile(place) => place.next_segment.map_or(limit, |next| next.min(limit)),
    };
    let aborted = match params.isolation {
        Isolation::LastStable => aborted_between(inner, files, from, until)?,
        _ => Vec::new(),
    };
    Ok((step, aborted))
}

/// aborted transactions that overlap `from..until`.
fn aborted_between(inner: &mut Inner, files: &Files, from: i64, until: i64) -> io::Result<Vec<AbortedTransaction>> {
    let mut aborted = Vec::new();
    if from >= until {
        return Ok(aborted);
    }
    let first = inner.segment_of(from);
    for segment in &mut inner.segments[first..] {
        for entry in segment.txns.entries(files)? {
            if entry.last_offset >= from && entry.first_offset < until {
                let (producer_id, first_offset) = (entry.producer_id, entry.first_offset);
                aborted.push(AbortedTransaction { producer_id, first_offset });
            }
            if entry.last_stable_offset >= until {
                return Ok(aborted);
            }
        }
    }
    Ok(aborted)
}

fn step(
    inner: &mut Inner,
    files: &Files,
    from: i64,
    limit: i64,
    params: &ReadParams,
    from_file: bool,
) -> io::Result<Step> {
    let nothing = Taken { next_offset: from, ..Taken::default() };
    if from >= limit {
        return Ok(Step::Done(nothing));
    }
    if let Some(taken) = inner.tail.read(from, limit, params.max_bytes, params.min_one_batch) {
        return Ok(Step::Done(taken));
    }
    let mut at = inner.segment_of(from);
    while inner.segments[at].size == 0 && at + 1 < inner.segments.len() {
        at += 1;
    }
    let next_segment = inner.segments.get(at + 1).map(|segment| segment.base);
    let segment = &mut inner.segments[at];
    if segment.size == 0 {
        return Ok(Step::Done(nothing));
    }
    let file = segment.file(files)?;
    let mut position = segment.position_before(files, from)?;
    if position > 0 && !is_batch_at(&*file, position, segment.size, from) {
        tracing::warn!(path = %segment.log_path().display(), position, "an index entry is wrong and is not used");
        position = 0;
    }
    // Finding gets slower without, no more.
    let known = match from_file {
        true => {
            segment.offsets.last_before(files, position.saturating_add(params.max_bytes as u64), limit).ok().flatten()
        }
        false => None,
    };
    let (end, sound) = (segment.size, segment.sound.clone());
    Ok(Step::ReadFile(Place { file, position, end, sound, known, next_segment }))
}

/// Whether a batch that begins at or before `offset` is at `position`: what an index says is only a hint.
pub(crate) fn is_batch_at(file: &dyn File, position: u64, end: u64, offset: i64) -> bool {
    let mut head = [0; HEADER_LEN];
    let read = file.read_at(&mut head, position).unwrap_or(0);
    BatchHeader::parse(&head[..read])
        .is_ok_and(|header| header.base_offset <= offset && position + header.size() as u64 <= end)
}

/// Takes what fits from one segment. Every batch's checksum is compared: nothing damaged is handed out.
fn read_file(place: &Place, from: i64, limit: i64, params: &ReadParams) -> Result<Taken, ScanError> {
    let mut taken = Taken { next_offset: from, ..Taken::default() };
    let mut position = place.position;
    let mut want = params.max_bytes.clamp(MIN_READ, MAX_READ) + MIN_READ;
    while position < place.end {
        let len = want.min((place.end - position) as usize);
        let bytes = Bytes::from(place.file.read_vec_at(len, position).map_err(ScanError::Io)?);
        let read = bytes.len();
        let damaged = |at: usize, reason: String| ScanError::Damaged { position: position + at as u64, reason };
        // Over the batches before the one looked for.
        let mut at = 0;
        let mut next_size = HEADER_LEN;
        let mut found = false;
        while at + HEADER_LEN <= bytes.len() {
            let header = BatchHeader::parse(&bytes[at..]).map_err(|error| damaged(at, error.to_string()))?;
            if position + at as u64 + header.size() as u64 > place.end {
                return Err(damaged(at, "it is longer than the segment".to_owned()));
            }
            if header.last_offset() >= from {
                (found, next_size) = (true, header.size());
                break;
            }
            at += header.size();
        }
        if found && at + next_size <= bytes.len() {
            take_sound(&bytes.slice(at..), from, limit, params, &mut taken)
                .map_err(|(behind, reason)| damaged(at + behind, reason))?;
            let start = position + at as u64;
            place.sound.add(start..start + taken.size as u64);
            return Ok(taken);
        }
        if read < len {
            return Err(damaged(at.min(read), "the file ends early".to_owned()));
        }
        // The batch is larger than what was read, or further on.
        position += at as u64;
        want = next_size.max(if found { HEADER_LEN } else { MIN_READ });
        if found && next_size > params.max_bytes && !params.min_one_batch {
            taken.full = true;
            return Ok(taken);
        }
    }
    Ok(taken)
}

/// [`take_batches`], up to the first batch with a wrong checksum; an error if that is the very first.
fn take_sound(
    bytes: &Bytes,
    from: i64,
    limit: i64,
    params: &ReadParams,
    taken: &mut Taken,
) -> Result<(), (usize, String)> {
    take_batches(bytes, from, limit, params.max_bytes, params.min_one_batch, taken);
    let Some(run) = taken.records.first().cloned() else { return Ok(()) };
    let mut rest = run.clone();
    while !rest.is_empty() {
        let at = run.len() - rest.len();
        let (batch, after) = Batch::parse_next(&rest).map_err(|error| (at, error.to_string()))?;
        if let Err(error) = batch.validate_crc() {
            if at == 0 {
                return Err((0, error.to_string()));
            }
            taken.records = vec![run.slice(..at)];
            (taken.size, taken.next_offset, taken.full) = (at, batch.header().base_offset, true);
            return Ok(());
        }
        rest = after;
    }
    Ok(())
}
