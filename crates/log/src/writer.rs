//! Group commit: flushers sync what has been written, publish how far it is durable, and begin again. There is no timer: while one
//! sync of a partition runs, all that is appended to it shares the next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::config::FlushPolicy;
use crate::error::StorageError;
use crate::fs::File;
use crate::partition::{Inner, PartitionLog, State};
use crate::snapshot;
use crate::types::{Completion, Event};

/// The queue of partitions with something to sync.
#[derive(Default)]
pub(crate) struct Flusher {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    partitions: VecDeque<Arc<PartitionLog>>,
    stopped: bool,
}

impl Flusher {
    pub fn push(&self, partition: Arc<PartitionLog>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.partitions.push_back(partition);
        drop(queue);
        self.wake.notify_one();
    }

    /// The next partition, without waiting.
    pub fn try_pop(&self) -> Option<Arc<PartitionLog>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).partitions.pop_front()
    }

    /// The next partition; `None` when stopped and drained.
    fn pop(&self) -> Option<Arc<PartitionLog>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(partition) = queue.partitions.pop_front() {
                return Some(partition);
            }
            if queue.stopped {
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the threads end once the queue is empty.
    pub fn stop(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.wake.notify_all();
    }

    /// What a flusher thread does until it is stopped.
    pub fn run(&self) {
        while let Some(partition) = self.pop() {
            partition.sync();
        }
    }
}

/// Syncs of partitions since the directory was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flushes {
    pub count: u64,
    /// How long they took in all.
    pub micros: u64,
    /// How long the longest took.
    pub max_micros: u64,
}

#[derive(Default)]
pub(crate) struct FlushCounters {
    count: AtomicU64,
    micros: AtomicU64,
    max_micros: AtomicU64,
}

impl FlushCounters {
    fn record(&self, took: std::time::Duration) {
        let micros = took.as_micros() as u64;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.max_micros.fetch_max(micros, Ordering::Relaxed);
    }

    pub fn read(&self) -> Flushes {
        Flushes {
            count: self.count.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            max_micros: self.max_micros.load(Ordering::Relaxed),
        }
    }
}

/// What to sync, taken from a partition under its lock.
struct Work {
    files: Vec<Arc<dyn File>>,
    dir_changed: bool,
    parent_changed: bool,
    epochs: Option<crate::checkpoint::LeaderEpochs>,
    /// Everything before it will be durable.
    target: i64,
    /// Offset and bytes of a producer snapshot to write.
    snapshot: Option<(i64, Vec<u8>)>,
}

impl PartitionLog {
    /// Syncs what has been written so far and publishes it. Called by flushers, never by two at a time for one partition.
    pub(crate) fn sync(&self) {
        let Some(work) = self.take_work() else { return };
        let began = std::time::Instant::now();
        let result = self.sync_files(&work);
        self.shared.flushes.record(began.elapsed());
        let mut state = self.lock();
        let State::Ready(inner) = &mut *state else { return };
        inner.syncing = false;
        if let Err(error) = result {
            let reason = format!("a sync failed: {error}");
            let waiters = self.go_offline(&mut state, &reason);
            drop(state);
            return self.fail(waiters, &StorageError::Offline(reason.into()));
        }
        inner.durable = inner.durable.max(work.target);
        let moved = inner.advance(self.config().flush);
        self.recovery_point.store(inner.durable, Ordering::Release);
        self.shared.points_changed.store(true, Ordering::Release);
        let stale = match work.snapshot {
            Some((offset, _)) => note_snapshot(inner, offset),
            None => Vec::new(),
        };
        let done = take_committed(inner);
        if std::mem::take(&mut inner.queued) {
            self.enqueue_inner(inner);
        }
        let dir = inner.dir.clone();
        drop(state);
        done.into_iter().for_each(|done| done(Ok(())));
        if moved {
            self.notify(Event::Advanced);
        }
        for offset in stale {
            // A snapshot too many does no harm; the next opening looks at all of them.
            let _ = self.shared.files.fs.remove_file(&snapshot::path(&dir, offset));
        }
    }

    fn take_work(&self) -> Option<Work> {
        let mut state = self.lock();
        let State::Ready(inner) = &mut *state else { return None };
        inner.queued = false;
        inner.syncing = true;
        inner.unsynced_bytes = 0;
        inner.dirty_since_ms = -1;
        let due = inner.bytes_since_snapshot >= self.shared.config.snapshot_interval_bytes;
        let snapshot = due.then(|| {
            inner.bytes_since_snapshot = 0;
            if let Err(error) = inner.active().flush_indexes(&self.shared.files) {
                tracing::warn!(partition = %self.tp, %error, "cannot write index entries yet");
            }
            (inner.producers.end, snapshot::encode(&inner.producers))
        });
        Some(Work {
            files: std::mem::take(&mut inner.dirty),
            dir_changed: std::mem::take(&mut inner.dir_changed),
            parent_changed: std::mem::take(&mut inner.parent_changed),
            epochs: std::mem::take(&mut inner.epochs_changed).then(|| inner.epochs.clone()),
            target: inner.end,
            snapshot,
        })
    }

    fn sync_files(&self, work: &Work) -> std::io::Result<()> {
        let (fs, dir) = (&*self.shared.files.fs, self.dir());
        for file in &work.files {
            file.sync_data()?;
        }
        if let Some(epochs) = &work.epochs {
            // Recovery can do without: epochs are in the batches, too.
            if let Err(error) = epochs.write(fs, &dir) {
                tracing::warn!(partition = %self.tp, %error, "cannot write the leader epochs");
            }
        }
        if let Some((offset, bytes)) = &work.snapshot {
            // Without it, recovery reads more; and its checksum tells whether it is whole.
            if let Err(error) = crate::fs::replace_file_lazily(fs, &snapshot::path(&dir, *offset), bytes) {
                tracing::warn!(partition = %self.tp, %error, "cannot write a producer snapshot");
            }
        }
        if work.dir_changed {
            fs.sync_dir(&dir)?;
        }
        if work.parent_changed {
            fs.sync_dir(&self.shared.root)?;
        }
        Ok(())
    }

    /// Whether a partition that nobody waits for is due, by its policy; called by the housekeeping.
    pub(crate) fn sync_if_due(&self, now_ms: i64) -> bool {
        let flush = self.config().flush;
        let mut state = self.lock();
        let State::Ready(inner) = &mut *state else { return true };
        if inner.dirty_since_ms < 0 {
            inner.listed = false;
            return true;
        }
        let due = match flush {
            FlushPolicy::Always => true,
            FlushPolicy::IntervalMs(interval) => {
                now_ms.saturating_sub(inner.dirty_since_ms) >= i64::try_from(interval).unwrap_or(i64::MAX)
            }
            FlushPolicy::Never => false,
        };
        if due {
            inner.listed = false;
            self.enqueue_inner(inner);
        }
        due
    }
}

/// Those who wait for something that is committed by now.
pub(crate) fn take_committed(inner: &mut Inner) -> Vec<Completion> {
    let rest = inner.waiters.split_off(&(inner.high_watermark + 1, 0));
    std::mem::replace(&mut inner.waiters, rest).into_values().collect()
}

/// Notes a new snapshot; returns older ones that nothing needs. Kept are those where segments begin, and the two newest: the newest may
/// lie beyond what a crash leaves.
fn note_snapshot(inner: &mut Inner, offset: i64) -> Vec<i64> {
    if !inner.snapshots.contains(&offset) {
        inner.snapshots.push(offset);
    }
    let newest = inner.snapshots.len().saturating_sub(2);
    let old = inner.snapshots[..newest].to_vec();
    let stale: Vec<i64> =
        old.into_iter().filter(|at| inner.segments.iter().all(|segment| segment.base != *at)).collect();
    inner.snapshots.retain(|at| !stale.contains(at));
    stale
}
