//! One partition's log: its state, and the calls that only look at it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use crate::checkpoint::LeaderEpochs;
use crate::config::{FlushPolicy, LogConfig};
use crate::error::{AppendError, StorageError};
use crate::files::Files;
use crate::fs::File;
use crate::producer_state::ProducerState;
use crate::scan::ScanError;
use crate::segment::Segment;
use crate::shared::Shared;
use crate::tail::Tail;
use crate::types::{Completion, Event, Offsets, ProducerInfo, TopicId, TopicPartition, VerificationGuard};

/// The log of one partition. Shared by all who use it; every call may come from any thread.
///
/// It is opened at the first call that needs its files, so that a directory of thousands of partitions is there at once.
pub struct PartitionLog {
    pub(crate) tp: TopicPartition,
    topic_id: TopicId,
    pub(crate) shared: Arc<Shared>,
    config: RwLock<Arc<LogConfig>>,
    pub(crate) state: Mutex<State>,
    /// All before it is known to be synced; what recovery need not read. Written to the checkpoint.
    pub(crate) recovery_point: AtomicI64,
    /// As written to the checkpoint, and at least the start of the first segment.
    pub(crate) log_start: AtomicI64,
    /// As written to the checkpoint: all before it is compacted.
    pub(crate) cleaned: AtomicI64,
    leader_epoch: AtomicI32,
    this: Weak<PartitionLog>,
}

pub(crate) enum State {
    /// Not looked at since the directory was opened.
    Unopened,
    Ready(Box<Inner>),
    /// A write or sync failed; the log has to be recovered.
    Offline(Arc<str>),
    /// The partition was deleted or the directory closed.
    Closed,
}

/// An open partition; guarded by the partition's lock.
pub(crate) struct Inner {
    pub dir: PathBuf,
    /// Ascending and without gaps in between; the last one is the active one. Never empty.
    pub segments: Vec<Segment>,
    pub log_start: i64,
    /// Offset of the next record.
    pub end: i64,
    pub durable: i64,
    pub high_watermark: i64,
    pub producers: ProducerState,
    pub epochs: LeaderEpochs,
    pub epochs_changed: bool,
    pub tail: Tail,
    /// Files with data that is not synced.
    pub dirty: Vec<Arc<dyn File>>,
    /// Files were made in the directory since it was synced.
    pub dir_changed: bool,
    /// The directory itself may be new.
    pub parent_changed: bool,
    pub waiters: BTreeMap<(i64, u64), Completion>,
    pub next_waiter: u64,
    /// Waits in the queue of the flushers.
    pub queued: bool,
    /// A flusher is at it.
    pub syncing: bool,
    /// In the list of partitions that are synced by time or size.
    pub listed: bool,
    pub unsynced_bytes: u64,
    pub dirty_since_ms: i64,
    pub bytes_since_snapshot: u64,
    /// Offsets of the producer snapshots on disk, ascending.
    pub snapshots: Vec<i64>,
    /// All before it was compacted already.
    pub cleaned_to: i64,
    /// A compaction of the closed segments is running; they must stay as they are.
    pub cleaning: bool,
}

impl Inner {
    /// The segment that is written to.
    pub fn active(&mut self) -> &mut Segment {
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }

    /// Position of the segment that holds `offset`, or where it would be.
    pub fn segment_of(&self, offset: i64) -> usize {
        self.segments.partition_point(|segment| segment.base <= offset).saturating_sub(1)
    }

    pub fn last_stable(&self) -> i64 {
        self.producers
            .first_unstable()
            .map_or(self.high_watermark, |first| first.clamp(self.log_start, self.high_watermark))
    }

    pub fn mark_dirty(&mut self, file: Arc<dyn File>) {
        if !self.dirty.iter().any(|known| Arc::ptr_eq(known, &file)) {
            self.dirty.push(file);
        }
    }

    /// Moves the high watermark up to where `flush` lets consumers see; true if that changed something.
    pub fn advance(&mut self, flush: FlushPolicy) -> bool {
        let visible = if flush == FlushPolicy::Always { self.durable } else { self.end };
        if visible <= self.high_watermark {
            return false;
        }
        self.high_watermark = visible;
        self.producers.advance(visible);
        true
    }

    pub fn offsets(&self) -> Offsets {
        Offsets {
            log_start: self.log_start,
            last_stable: self.last_stable(),
            high_watermark: self.high_watermark,
            log_end: self.end,
            durable: self.durable,
        }
    }
}

impl PartitionLog {
    pub(crate) fn new(
        tp: TopicPartition,
        topic_id: TopicId,
        shared: Arc<Shared>,
        config: LogConfig,
        recovery_point: i64,
        log_start: i64,
        cleaned: i64,
    ) -> Arc<PartitionLog> {
        Arc::new_cyclic(|this| PartitionLog {
            tp,
            topic_id,
            shared,
            config: RwLock::new(Arc::new(config)),
            state: Mutex::new(State::Unopened),
            recovery_point: AtomicI64::new(recovery_point),
            log_start: AtomicI64::new(log_start),
            cleaned: AtomicI64::new(cleaned),
            leader_epoch: AtomicI32::new(0),
            this: this.clone(),
        })
    }

    pub fn topic_partition(&self) -> &TopicPartition {
        &self.tp
    }

    /// As in `partition.metadata`; zero if that has none.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    pub fn config(&self) -> Arc<LogConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the settings; they hold from the next append on.
    pub fn set_config(&self, config: LogConfig) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        // What waited for a sync under the old policy may be answered under the new one, and the other way round.
        self.enqueue();
    }

    /// The epoch that batches are stamped with from now on; 0 at first. An epoch is noted in the log when it first writes.
    pub fn set_leader_epoch(&self, epoch: i32) {
        self.leader_epoch.store(epoch, Ordering::Release);
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.load(Ordering::Acquire)
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.shared.root.join(self.tp.to_string())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the partition if that has not happened yet; a no-op otherwise.
    pub fn open(&self) -> Result<(), StorageError> {
        self.with(|_| ())
    }

    /// Runs `f` on the open partition, under its lock.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> Result<R, StorageError> {
        let mut state = self.lock();
        Ok(f(self.ready(&mut state)?))
    }

    /// The open partition; opens it first if need be.
    pub(crate) fn ready<'a>(&self, state: &'a mut State) -> Result<&'a mut Inner, StorageError> {
        if let State::Unopened = state {
            *state = match crate::recovery::open(self) {
                Ok(inner) => State::Ready(Box::new(inner)),
                // A failed sync: to try it again would prove nothing.
                Err(StorageError::Offline(reason)) => {
                    self.shared.report_failure(&format!("{}: {reason}", self.tp));
                    State::Offline(reason)
                }
                Err(error) => return Err(error),
            };
        }
        match state {
            State::Ready(inner) => Ok(inner),
            State::Offline(reason) => Err(StorageError::Offline(reason.clone())),
            State::Closed | State::Unopened => Err(StorageError::Closed),
        }
    }

    /// The marks of the log.
    pub fn offsets(&self) -> Result<Offsets, StorageError> {
        self.with(|inner| inner.offsets())
    }

    /// Calls `done` once everything before `offset` is committed: synced under [`FlushPolicy::Always`], written under the others.
    /// That may be at once, on this thread. Storage that fails, and the end of the log, are reported too.
    pub fn when_committed(&self, offset: i64, done: Completion) {
        let mut state = self.lock();
        let result = match self.ready(&mut state) {
            Ok(inner) if offset > inner.high_watermark => {
                inner.next_waiter += 1;
                inner.waiters.insert((offset, inner.next_waiter), done);
                return;
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        drop(state);
        done(result);
    }

    /// V-4: whether this producer has a transaction open here, so that the coordinator need not be asked.
    pub fn has_open_transaction(&self, producer_id: i64, epoch: i16) -> Result<bool, StorageError> {
        self.with(|inner| inner.producers.has_open_transaction(producer_id, epoch))
    }

    /// Starts the verification of a producer's first transactional batch (5.2): ask the coordinator, then append with the guard.
    /// `None` if the transaction is open here already and nobody needs to be asked. `raises_epochs`: Produce 12 and later.
    /// A marker or another epoch that comes in between makes the guard void, so that no late batch begins a transaction that nobody
    /// will end.
    pub fn begin_verification(
        &self,
        producer_id: i64,
        epoch: i16,
        base_sequence: i32,
        raises_epochs: bool,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, AppendError> {
        self.with(|inner| inner.producers.begin_verification(producer_id, epoch, base_sequence, raises_epochs, now_ms))?
    }

    /// The producers that are known here, by id (D-3).
    pub fn producers(&self) -> Result<Vec<ProducerInfo>, StorageError> {
        self.with(|inner| inner.producers.describe())
    }

    /// L-5: the largest known epoch not above `epoch`, and the offset after its last record; `None` if `epoch` is not known.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Result<Option<(i32, i64)>, StorageError> {
        let current = self.leader_epoch();
        self.with(|inner| match epoch == current {
            true => Some((epoch, inner.end)),
            false if epoch > current => None,
            false => inner.epochs.end_offset(epoch, inner.end).or(Some((epoch, inner.end))),
        })
    }

    /// The epoch that wrote `offset`; the present one at the end of the log.
    pub fn epoch_of(&self, offset: i64) -> Result<i32, StorageError> {
        let current = self.leader_epoch();
        self.with(|inner| if offset >= inner.end { current } else { inner.epochs.at(offset).unwrap_or(current) })
    }

    /// The latest epoch in the log; `None` if nothing was ever written.
    pub fn latest_epoch(&self) -> Result<Option<i32>, StorageError> {
        self.with(|inner| inner.epochs.latest())
    }

    /// Bytes of all segments, without indexes.
    pub fn size_bytes(&self) -> Result<u64, StorageError> {
        self.with(|inner| inner.segments.iter().map(|segment| segment.size).sum())
    }

    /// Why the partition is offline, if it is.
    pub fn offline_reason(&self) -> Option<Arc<str>> {
        match &*self.lock() {
            State::Offline(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Puts the partition in the queue of the flushers.
    pub(crate) fn enqueue(&self) {
        if let State::Ready(inner) = &mut *self.lock() {
            self.enqueue_inner(inner);
        }
    }

    pub(crate) fn enqueue_inner(&self, inner: &mut Inner) {
        if inner.queued {
            return;
        }
        inner.queued = true;
        // The flusher that is at it looks at `queued` when it is done.
        if !inner.syncing
            && let Some(this) = self.this.upgrade()
        {
            self.shared.flusher.push(this);
        }
    }

    /// Puts the partition in the queue if it has anything to sync, whatever its policy.
    pub(crate) fn enqueue_dirty(&self) {
        if let State::Ready(inner) = &mut *self.lock()
            && (!inner.dirty.is_empty() || inner.durable < inner.end)
        {
            self.enqueue_inner(inner);
        }
    }

    /// Has the partition synced when time or size say so.
    pub(crate) fn list_unsynced(&self, inner: &mut Inner) {
        if !inner.listed
            && let Some(this) = self.this.upgrade()
        {
            inner.listed = true;
            self.shared.unsynced.lock().unwrap_or_else(PoisonError::into_inner).push(this);
        }
    }

    /// Takes the partition offline after a failure that leaves it in doubt what is on the disk. `state` is the locked state; returns
    /// who has to be told, once the lock is released.
    pub(crate) fn go_offline(&self, state: &mut State, reason: &str) -> Vec<Completion> {
        tracing::error!(partition = %self.tp, reason, "the partition goes offline");
        self.shared.report_failure(&format!("{}: {reason}", self.tp));
        let reason: Arc<str> = reason.into();
        let old = std::mem::replace(state, State::Offline(reason));
        let State::Ready(mut inner) = old else { return Vec::new() };
        // What was never synced, and never will be, must not be found by a restart that reads it from memory.
        if let Err(error) = cut_unsynced(&mut inner, &self.shared.files) {
            tracing::error!(partition = %self.tp, %error, "cannot cut off what was not synced");
        }
        std::mem::take(&mut inner.waiters).into_values().collect()
    }

    /// Tells the listener, without the lock.
    pub(crate) fn notify(&self, event: Event) {
        let listener = self.shared.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(&self.tp, event);
        }
    }

    /// Answers those who waited, without the lock, for a partition that went offline or was closed.
    pub(crate) fn fail(&self, waiters: Vec<Completion>, error: &StorageError) {
        waiters.into_iter().for_each(|done| done(Err(error.clone())));
        self.notify(Event::Offline);
    }
}

/// Cuts the files back to what is known to be durable.
fn cut_unsynced(inner: &mut Inner, files: &Files) -> io::Result<()> {
    let durable = inner.durable;
    let at = inner.segment_of(durable);
    for segment in &inner.segments[at..] {
        if segment.size == 0 {
            continue;
        }
        let found = segment.find_batch(files, 0, |header| header.base_offset >= durable);
        match found {
            Ok(Some((position, _))) => segment.file(files)?.truncate(position)?,
            Ok(None) => {}
            Err(ScanError::Io(error)) => return Err(error),
            Err(ScanError::Damaged { position, .. }) => segment.file(files)?.truncate(position)?,
        }
    }
    Ok(())
}
