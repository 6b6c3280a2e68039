//! Appending: producer rules, offsets, the write, and what follows from it. One lock from the first check to the last change, and no
//! change before the write has succeeded: a refused append leaves no trace.

use std::sync::Arc;

use bytes::Bytes;
use wire::batch::{ControlType, control_batch, set_base_offset, set_leader_epoch};

use crate::config::{FlushPolicy, LogConfig};
use crate::error::{AppendError, StorageError};
use crate::partition::{Inner, PartitionLog};
use crate::producer_state::CompletedTxn;
use crate::segment::{NextAppend, RollLimits, Segment};
use crate::shared::Shared;
use crate::txn_index::AbortedTxn;
use crate::types::{AppendInfo, AppendParams, Event, Origin, TxnProtocol};
use crate::validate::{Prepared, prepare};

/// Why a locked append failed.
enum Failure {
    Refused(AppendError),
    /// The files are in doubt: the partition has to go offline.
    Fatal(String),
}

impl<E: Into<AppendError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Refused(error.into())
    }
}

impl PartitionLog {
    /// Appends `records`, one or more batches (of a client: exactly one), and assigns their offsets.
    ///
    /// On return the records are in the page cache: enough for acks=1. For acks=all wait with [`PartitionLog::when_committed`] for
    /// [`AppendInfo::next_offset`], also for duplicates. On an error nothing has happened.
    pub fn append(&self, params: &AppendParams, records: &Bytes) -> Result<AppendInfo, AppendError> {
        let config = self.config();
        let mut prepared = prepare(&self.tp, records, params, &config)?;
        let mut state = self.lock();
        let inner = self.ready(&mut state)?;
        let before = inner.high_watermark;
        let result = self.append_locked(inner, params, &config, &mut prepared);
        let advanced = inner.high_watermark > before;
        match result {
            Ok(info) => {
                let done = if advanced { crate::writer::take_committed(inner) } else { Vec::new() };
                drop(state);
                done.into_iter().for_each(|done| done(Ok(())));
                if advanced {
                    self.notify(Event::Advanced);
                }
                Ok(info)
            }
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Fatal(reason)) => {
                let waiters = self.go_offline(&mut state, &reason);
                drop(state);
                let error = StorageError::Offline(reason.into());
                self.fail(waiters, &error);
                Err(error.into())
            }
        }
    }

    /// Appends the marker that ends a producer's transaction (W-9, W-11), also if none is open here.
    pub fn append_marker(
        &self,
        kind: ControlType,
        producer_id: i64,
        producer_epoch: i16,
        coordinator_epoch: i32,
        protocol: TxnProtocol,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let batch = control_batch(kind, producer_id, producer_epoch, coordinator_epoch, now_ms)
            .map_err(|error| AppendError::InvalidRecord(error.to_string()))?;
        let params = AppendParams { txn_protocol: protocol, ..AppendParams::coordinator(now_ms) };
        self.append(&params, &batch)
    }

    fn append_locked(
        &self,
        inner: &mut Inner,
        params: &AppendParams,
        config: &LogConfig,
        prepared: &mut Prepared,
    ) -> Result<AppendInfo, Failure> {
        if let Some(expected) = params.expected_end.filter(|expected| *expected != inner.end) {
            return Err(AppendError::UnexpectedEnd { expected, end: inner.end }.into());
        }
        if let Some(info) = duplicate(inner, params, prepared) {
            return Ok(info);
        }
        // The broker's own records may use the reserve: deletions and commits must work when clients have filled the disk.
        if params.origin == Origin::Client && self.shared.is_low_on_space(params.now_ms) {
            return Err(StorageError::NoSpace.into());
        }
        check_producers(inner, params, prepared, self.shared.config.verify_transactions)?;
        let epoch = self.leader_epoch();
        let first_offset = inner.end;
        let mut next = first_offset;
        let mut max_timestamp = -1;
        for (position, header) in &mut prepared.batches {
            set_base_offset(&mut prepared.bytes[*position..], next);
            set_leader_epoch(&mut prepared.bytes[*position..], epoch);
            (header.base_offset, header.partition_leader_epoch) = (next, epoch);
            next = header.next_offset();
            max_timestamp = max_timestamp.max(header.max_timestamp);
        }
        let size = prepared.bytes.len() as u64;
        let append = NextAppend { bytes: size, last_offset: next - 1, max_timestamp, now_ms: params.now_ms };
        let rolled = self.roll_if_needed(inner, config, &append)?;
        self.write(inner, params, config, prepared)?;
        if inner.epochs.assign(epoch, first_offset) {
            inner.epochs_changed = true;
        }
        inner.end = next;
        inner.unsynced_bytes += size;
        inner.bytes_since_snapshot += size;
        let bytes = Bytes::from(std::mem::take(&mut prepared.bytes));
        inner.tail.push(first_offset, next, bytes, params.now_ms);
        self.arrange_sync(inner, config.flush, rolled, params.now_ms);
        Ok(AppendInfo {
            first_offset,
            last_offset: next - 1,
            log_append_time_ms: prepared.log_append_time_ms,
            log_start_offset: inner.log_start,
            duplicate: false,
        })
    }

    /// Writes the batches and applies them to producers and indexes.
    fn write(
        &self,
        inner: &mut Inner,
        params: &AppendParams,
        config: &LogConfig,
        prepared: &Prepared,
    ) -> Result<(), Failure> {
        let files = &self.shared.files;
        let completed: Vec<CompletedTxn> =
            markers(prepared).filter_map(|(h, m)| inner.producers.completes(h, m)).collect();
        let first = prepared.batches[0].1.base_offset;
        // The index entry goes first: without it, the marker would turn aborted records into committed ones.
        for txn in completed.iter().filter(|txn| txn.aborted) {
            let stable = inner.producers.first_unstable_without(txn).unwrap_or(txn.last_offset + 1);
            let entry = AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: txn.last_offset,
                last_stable_offset: stable,
            };
            let appended = inner.active().txns.append(files, entry);
            match appended {
                Ok(file) => inner.mark_dirty(file),
                Err(error) => {
                    let undone = inner.active().txns.truncate(files, first);
                    return Err(self.write_failed(error, undone.err(), params.now_ms));
                }
            }
            inner.dir_changed = true;
        }
        let interval = u64::from(config.index_interval_bytes);
        let new_file = inner.active().size == 0;
        let written = inner.active().append(files, &prepared.bytes, &prepared.batches, interval);
        match written {
            Ok(file) => inner.mark_dirty(file),
            Err((error, undo)) => {
                let undone = inner.active().txns.truncate(files, first);
                return Err(self.write_failed(error, undo.or(undone.err()), params.now_ms));
            }
        }
        inner.dir_changed |= new_file;
        for ((_, header), marker) in prepared.batches.iter().zip(&prepared.markers) {
            match marker {
                Some(marker) => inner.producers.apply_marker(header, marker),
                None if header.has_producer_id() && !header.attributes.is_control() => {
                    inner.producers.apply_data(header)
                }
                None => {}
            }
            inner.producers.end = header.next_offset();
        }
        Ok(())
    }

    /// A full disk is refused and forgotten, if what was written in part could be cut off again; all else is in doubt.
    fn write_failed(&self, error: std::io::Error, undo: Option<std::io::Error>, now_ms: i64) -> Failure {
        if let Some(undo) = undo {
            return Failure::Fatal(format!("a write failed ({error}) and could not be undone: {undo}"));
        }
        match StorageError::io(format_args!("{}: cannot append", self.tp), error) {
            StorageError::NoSpace => {
                self.shared.space_ran_out(now_ms);
                Failure::Refused(StorageError::NoSpace.into())
            }
            error => Failure::Fatal(error.to_string()),
        }
    }

    /// Starts a new segment if the batches do not belong into the active one (H-5); true if so.
    fn roll_if_needed(&self, inner: &mut Inner, config: &LogConfig, next: &NextAppend) -> Result<bool, Failure> {
        let limits = RollLimits {
            segment_bytes: u64::from(config.segment_bytes).min(i32::MAX as u64),
            segment_ms: config.segment_ms - self.jitter_ms(config, inner.active().base),
            index_bytes: u64::from(config.segment_index_bytes),
        };
        let must = inner.active().must_roll(&self.shared.files, next, &limits);
        let must = must.map_err(|error| StorageError::io(format_args!("{}: cannot read an index", self.tp), error))?;
        if must {
            roll(inner, &self.shared, next.now_ms);
        }
        Ok(must)
    }

    /// What is taken off the age of the segment that begins at `base`: any number, but always the same for a segment, and another
    /// one for its neighbours.
    fn jitter_ms(&self, config: &LogConfig, base: i64) -> i64 {
        let most = config.segment_jitter_ms.min(config.segment_ms);
        let place = self.tp.topic.bytes().chain(self.tp.partition.to_be_bytes()).chain(base.to_be_bytes());
        // FNV-1a
        let hash =
            place.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        (hash >> 1).checked_rem(most.max(0) as u64).unwrap_or(0) as i64
    }

    /// Sees to it that what was appended becomes visible and durable as the policy says. A closed segment is synced under any policy, in
    /// the background: only what is durable is compacted, and recovery reads the rest.
    fn arrange_sync(&self, inner: &mut Inner, flush: FlushPolicy, rolled: bool, now_ms: i64) {
        if inner.dirty_since_ms < 0 {
            inner.dirty_since_ms = now_ms;
        }
        if flush == FlushPolicy::Always {
            self.enqueue_inner(inner);
        } else {
            inner.advance(flush);
            if rolled || inner.unsynced_bytes >= self.shared.config.background_sync_bytes {
                self.enqueue_inner(inner);
            } else {
                self.list_unsynced(inner);
            }
        }
    }
}

/// Closes the active segment and begins the next at the log's end. Its files are made when it is written to.
pub(crate) fn roll(inner: &mut Inner, shared: &Arc<Shared>, now_ms: i64) {
    match inner.active().seal(&shared.files) {
        Ok(files) => files.into_iter().for_each(|file| inner.mark_dirty(file)),
        // Only finding gets slower; recovery makes the indexes anew.
        Err(error) => {
            tracing::warn!(dir = %inner.dir.display(), %error, "cannot write the indexes of a closed segment")
        }
    }
    let segment = Segment::fresh(&inner.dir, inner.end, now_ms);
    inner.segments.push(segment);
    // The next sync takes a snapshot, so that recovery never reads a closed segment for producer state.
    inner.bytes_since_snapshot = u64::MAX / 2;
}

fn markers(prepared: &Prepared) -> impl Iterator<Item = (&wire::batch::BatchHeader, &crate::producer_state::Marker)> {
    let pairs = prepared.batches.iter().zip(&prepared.markers);
    pairs.filter_map(|((_, header), marker)| marker.as_ref().map(|marker| (header, marker)))
}

/// W-2: the answer for a batch that is there already.
fn duplicate(inner: &Inner, params: &AppendParams, prepared: &Prepared) -> Option<AppendInfo> {
    let (_, header) = prepared.batches.first()?;
    if params.origin != Origin::Client || !header.has_producer_id() {
        return None;
    }
    let original = inner.producers.duplicate_of(header)?;
    Some(AppendInfo {
        first_offset: original.first_offset(),
        last_offset: original.last_offset,
        log_append_time_ms: if prepared.log_append_time_ms >= 0 { original.timestamp } else { -1 },
        log_start_offset: inner.log_start,
        duplicate: true,
    })
}

/// The rules of section 4 for each batch.
fn check_producers(inner: &Inner, params: &AppendParams, prepared: &Prepared, verify: bool) -> Result<(), AppendError> {
    for ((_, header), marker) in prepared.batches.iter().zip(&prepared.markers) {
        if !header.has_producer_id() {
            continue;
        }
        if header.attributes.is_control() {
            if let Some(marker) = marker {
                inner.producers.check_marker(header, marker, params.txn_protocol)?;
            }
            continue;
        }
        inner.producers.check_data(header, params.origin)?;
        let producer_id = header.producer_id;
        let begins = header.attributes.is_transactional()
            && !inner.producers.has_open_transaction(producer_id, header.producer_epoch);
        let verified =
            !verify || params.origin != Origin::Client || inner.producers.is_verified(producer_id, params.verification);
        if begins && !verified {
            let reason = "the record is not part of an ongoing transaction";
            return Err(AppendError::InvalidTxnState { producer_id, reason });
        }
    }
    Ok(())
}
