//! A data directory: its lock and identity, its partitions, and the threads that keep it in order.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use crate::checkpoint::{self, CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS};
use crate::compact::CompactionReport;
use crate::config::{DirConfig, LogConfig};
use crate::error::{OpenError, StorageError};
use crate::files::Files;
use crate::fs::{Fs, LockGuard, OpenMode};
use crate::partition::{PartitionLog, State};
use crate::shared::Shared;
use crate::snapshot;
use crate::types::{Clock, FailureListener, Listener, TopicId, TopicPartition};
use crate::writer::Flushes;

const META: &str = "meta.properties";
const LOCK: &str = ".lock";
const CLEAN: &str = ".kafka_cleanshutdown";
const DELETED: &str = "-delete";
/// How often the housekeeping looks around.
const TICK_MS: u64 = 100;
/// Over the memory budget, partitions that nobody wrote to for this long give up their recent batches.
const IDLE_CACHE_MS: i64 = 10_000;
/// How often it is looked whether the directory is still there: as often as Kafka writes its high watermarks.
const LOOK_MS: i64 = 5000;
/// How long it is believed of batches that are sent from their file that they are as they were when they were written or read.
const SOUND_MS: i64 = 3_600_000;

/// A data directory, held by this process alone.
pub struct LogDir {
    shared: Arc<Shared>,
    cluster_id: String,
    partitions: RwLock<BTreeMap<TopicPartition, Arc<PartitionLog>>>,
    was_clean: bool,
    checkpointed_ms: AtomicI64,
    expired_ms: AtomicI64,
    forgot_sound_ms: AtomicI64,
    looked_ms: AtomicI64,
    /// Two checkpoints at a time would overwrite each other.
    checkpointing: Mutex<()>,
    next_doomed: AtomicI64,
    closed: AtomicBool,
    stop: Arc<(Mutex<bool>, Condvar)>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<LockGuard>>,
}

impl LogDir {
    /// Opens or makes a data directory. Looks at names only: partitions are opened when they are first used. Partitions found there
    /// have default settings until [`PartitionLog::set_config`].
    pub fn open(fs: Arc<dyn Fs>, clock: Arc<dyn Clock>, config: DirConfig) -> Result<Arc<LogDir>, OpenError> {
        let root = config.path.clone();
        let io = |what: &str, error: io::Error| StorageError::io(format_args!("{}: {what}", root.display()), error);
        fs.create_dir_all(&root).map_err(|error| io("cannot create the data directory", error))?;
        let lock = match fs.lock(&root.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(OpenError::Locked(root.display().to_string()));
            }
            Err(error) => return Err(io("cannot lock", error).into()),
        };
        let cluster_id = identify(&*fs, &config)?;
        let entries = fs.list(&root).map_err(|error| io("cannot list", error))?;
        let was_clean = entries.iter().any(|entry| entry.name == CLEAN);
        if was_clean {
            fs.remove_file(&root.join(CLEAN)).map_err(|error| io("cannot remove the clean marker", error))?;
        }
        let flushers = config.flush_threads;
        let now_ms = clock.now_ms();
        let shared = Arc::new(Shared::new(config.clone(), Files::new(fs, config.open_files), clock));
        let partitions = find_partitions(&shared, entries.into_iter().filter(|e| e.is_dir).map(|e| e.name));
        let dir = Arc::new(LogDir {
            shared,
            cluster_id,
            partitions: RwLock::new(partitions),
            was_clean,
            checkpointed_ms: AtomicI64::new(i64::MIN),
            expired_ms: AtomicI64::new(i64::MIN),
            forgot_sound_ms: AtomicI64::new(now_ms),
            looked_ms: AtomicI64::new(i64::MIN),
            checkpointing: Mutex::new(()),
            next_doomed: AtomicI64::new(0),
            closed: AtomicBool::new(false),
            stop: Arc::default(),
            threads: Mutex::default(),
            lock: Mutex::new(Some(lock)),
        });
        if flushers > 0 {
            dir.start(flushers).map_err(|error| io("cannot start threads", error))?;
        }
        Ok(dir)
    }

    fn start(self: &Arc<Self>, flushers: usize) -> io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for i in 0..flushers {
            let shared = self.shared.clone();
            let run = move || shared.flusher.run();
            threads.push(std::thread::Builder::new().name(format!("log-flusher-{i}")).spawn(run)?);
        }
        // The housekeeping must not keep the directory alive, or it would never be dropped.
        let (dir, stop) = (Arc::downgrade(self), self.stop.clone());
        let run = move || {
            loop {
                let stopped = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
                let pause = std::time::Duration::from_millis(TICK_MS);
                let (stopped, _) = stop.1.wait_timeout(stopped, pause).unwrap_or_else(PoisonError::into_inner);
                if *stopped {
                    return;
                }
                drop(stopped);
                let Some(dir) = dir.upgrade() else { return };
                dir.tick(dir.shared.clock.now_ms());
            }
        };
        threads.push(std::thread::Builder::new().name("log-housekeeping".to_owned()).spawn(run)?);
        Ok(())
    }

    /// The cluster id in `meta.properties`.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Whether the directory was closed properly the last time.
    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// Whom to tell of what happens to partitions; replaces the one before.
    pub fn set_listener(&self, listener: Listener) {
        *self.shared.listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Whom to tell, once, that a write or sync failed or that the directory is gone: what it holds is in doubt until it is opened
    /// again. A full disk is no failure. Called on any thread and under locks of the log: it must be quick and must not call back.
    pub fn set_failure_listener(&self, listener: FailureListener) {
        *self.shared.failure_listener.write().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    pub fn partition(&self, tp: &TopicPartition) -> Option<Arc<PartitionLog>> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner).get(tp).cloned()
    }

    /// All partitions, by topic and number.
    pub fn partitions(&self) -> Vec<Arc<PartitionLog>> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Makes a partition; returns the present one if it exists. Makes its directory and `partition.metadata`, no more: the files of the
    /// log come with the first append.
    pub fn create_partition(
        &self,
        tp: &TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
    ) -> Result<Arc<PartitionLog>, StorageError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StorageError::Closed);
        }
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(partition) = partitions.get(tp) {
            if ![topic_id, TopicId::default()].contains(&partition.topic_id()) {
                let error = io::Error::from(io::ErrorKind::AlreadyExists);
                return Err(StorageError::io(format_args!("{tp} of another topic is still there"), error));
            }
            return Ok(partition.clone());
        }
        let fs = &*self.shared.files.fs;
        let dir = self.shared.root.join(tp.to_string());
        let made = fs.create_dir_all(&dir).and_then(|()| checkpoint::write_topic_id(fs, &dir, topic_id));
        made.map_err(|error| StorageError::io(format_args!("cannot create {tp}"), error))?;
        let partition = PartitionLog::new(tp.clone(), topic_id, self.shared.clone(), config, 0, 0, 0);
        partitions.insert(tp.clone(), partition.clone());
        Ok(partition)
    }

    /// Deletes a partition: it is closed and renamed at once, its files go after `file.delete.delay.ms`. False if there is none.
    /// Where its directory can neither be renamed nor removed the partition stays: a new one of this name must not find its files.
    pub fn delete_partition(&self, tp: &TopicPartition) -> Result<bool, StorageError> {
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        let Some(partition) = partitions.get(tp).cloned() else { return Ok(false) };
        let now_ms = self.shared.clock.now_ms();
        let old = std::mem::replace(&mut *partition.lock(), State::Closed);
        let number = self.next_doomed.fetch_add(1, Ordering::Relaxed);
        let from = self.shared.root.join(tp.to_string());
        // A directory name has at most 255 bytes, and a topic's may have 249.
        let topic: String = tp.topic.chars().take(200).collect();
        let to = self.shared.root.join(format!("{topic}-{}.{:016x}{:016x}{DELETED}", tp.partition, now_ms, number));
        self.shared.files.forget_dir(&from);
        let fs = &*self.shared.files.fs;
        if let Err(error) = fs.rename(&from, &to)
            && fs.remove_dir_all(&from).is_err()
        {
            *partition.lock() = old;
            return Err(StorageError::io(format_args!("cannot delete {tp}"), error));
        }
        partitions.remove(tp);
        drop(partitions);
        if let State::Ready(mut inner) = old {
            partition.fail(std::mem::take(&mut inner.waiters).into_values().collect(), &StorageError::Closed);
        }
        let at = now_ms.saturating_add(partition.config().file_delete_delay_ms);
        self.shared.doomed.lock().unwrap_or_else(PoisonError::into_inner).push((at, to));
        self.shared.points_changed.store(true, Ordering::Release);
        self.shared.starts_changed.store(true, Ordering::Release);
        Ok(true)
    }

    /// Opens all partitions, with `threads` at a time, so that none is opened while a client waits. Failures are logged and show again
    /// when the partition is used.
    pub fn open_all(&self, threads: usize) {
        let partitions = self.partitions();
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    while let Some(partition) = partitions.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = partition.open() {
                            tracing::error!(partition = %partition.topic_partition(), %error, "cannot open the partition");
                        }
                    }
                });
            }
        });
    }

    /// Applies retention to all partitions, and removes what DeleteRecords has left behind; meant to be called every
    /// `log.retention.check.interval.ms`. Files go `file.delete.delay.ms` later.
    pub fn apply_retention(&self, now_ms: i64) {
        let partitions = self.partitions();
        let failed = |partition: &PartitionLog, error: StorageError| {
            tracing::error!(partition = %partition.topic_partition(), %error, "cannot apply retention");
        };
        for partition in &partitions {
            partition.expire_segments(now_ms).unwrap_or_else(|error| failed(partition, error));
        }
        let starts: Vec<i64> = partitions.iter().map(|p| p.log_start.load(Ordering::Acquire)).collect();
        if let Err(error) = self.checkpoint_durably() {
            tracing::error!(%error, "cannot note where logs start, so nothing is removed yet");
            return;
        }
        for (partition, start) in partitions.iter().zip(starts) {
            _ = partition.remove_deleted(start, now_ms).map_err(|error| failed(partition, error));
        }
    }

    /// Compacts the partitions that are due for it (C-1); meant to be called every `log.cleaner.backoff.ms`, on a thread that may take
    /// its time. Returns what was done where.
    pub fn compact(&self, now_ms: i64) -> Vec<(TopicPartition, CompactionReport)> {
        let failed = |partition: &PartitionLog, error: StorageError| {
            tracing::error!(partition = %partition.topic_partition(), %error, "cannot compact");
        };
        let point = |partition: &PartitionLog| partition.recovery_point.load(Ordering::Acquire);
        let due = |partition: &Arc<PartitionLog>| {
            let due = partition.compaction_due(point(partition), now_ms);
            due.unwrap_or_else(|error| {
                failed(partition, error);
                false
            })
        };
        let partitions: Vec<_> = self.partitions().into_iter().filter(due).collect();
        if partitions.is_empty() {
            return Vec::new();
        }
        let points: Vec<i64> = partitions.iter().map(|partition| point(partition)).collect();
        if let Err(error) = self.checkpoint_durably() {
            tracing::error!(%error, "cannot note the recovery points, so nothing is compacted");
            return Vec::new();
        }
        let mut done = Vec::new();
        for (partition, point) in partitions.iter().zip(points) {
            match partition.compact(point, now_ms) {
                Ok(report) => done.extend(report.map(|report| (partition.topic_partition().clone(), report))),
                Err(error) => failed(partition, error),
            }
        }
        // Without it, the next start compacts once more than it would have to.
        let cleaned = |partition: &PartitionLog| partition.cleaned.load(Ordering::Acquire);
        if let Err(error) = self.write_offsets(CLEANED, &cleaned) {
            tracing::warn!(%error, "cannot note what is compacted");
        }
        done
    }

    fn write_offsets(&self, name: &str, value: &dyn Fn(&PartitionLog) -> i64) -> Result<(), StorageError> {
        let all = self.partitions();
        let offsets = all.iter().map(|p| (p.topic_partition().clone(), value(p))).filter(|(_, offset)| *offset > 0);
        checkpoint::write_offsets(&*self.shared.files.fs, &self.shared.root.join(name), &offsets.collect())
            .map_err(|error| StorageError::io(format_args!("cannot write {name}"), error))
    }

    /// Writes the checkpoints so that no crash brings older ones back.
    fn checkpoint_durably(&self) -> Result<(), StorageError> {
        self.checkpoint()?;
        let synced = self.shared.files.fs.sync_dir(&self.shared.root);
        synced.map_err(|error| StorageError::io("cannot sync the data directory", error))
    }

    /// How many syncs there have been, and how long they took.
    pub fn flushes(&self) -> Flushes {
        self.shared.flushes.read()
    }

    /// Free bytes of the device.
    pub fn free_bytes(&self) -> Result<u64, StorageError> {
        let free = self.shared.files.fs.free_bytes(&self.shared.root);
        free.map_err(|error| StorageError::io("cannot look at the free space", error))
    }

    /// What has to be done from time to time: syncs that are due, checkpoints, removal of deleted files, memory. Called by a thread of
    /// the directory, unless [`DirConfig::flush_threads`] is 0.
    pub fn tick(&self, now_ms: i64) {
        let listed = std::mem::take(&mut *self.shared.unsynced.lock().unwrap_or_else(PoisonError::into_inner));
        let rest: Vec<_> = listed.into_iter().filter(|partition| !partition.sync_if_due(now_ms)).collect();
        self.shared.unsynced.lock().unwrap_or_else(PoisonError::into_inner).extend(rest);
        if due(&self.checkpointed_ms, now_ms, self.shared.config.checkpoint_interval_ms)
            && let Err(error) = self.checkpoint()
        {
            tracing::warn!(%error, "cannot write the checkpoints");
            if !matches!(error, StorageError::NoSpace) {
                self.shared.report_failure(&error.to_string());
            }
        }
        if due(&self.looked_ms, now_ms, LOOK_MS) {
            self.look();
        }
        self.remove_doomed(now_ms);
        if self.shared.cache.used.load(Ordering::Relaxed) > self.shared.cache.limit {
            self.each_ready(|inner| inner.tail.clear_if_idle(now_ms - IDLE_CACHE_MS));
        }
        if due(&self.forgot_sound_ms, now_ms, SOUND_MS) {
            self.each_ready(|inner| inner.segments.iter().for_each(|segment| segment.sound.forget()));
        }
        if due(&self.expired_ms, now_ms, self.shared.config.producer_id_check_interval_ms) {
            let expiration = self.shared.config.producer_id_expiration_ms;
            self.each_ready(|inner| inner.producers.expire(now_ms, expiration));
        }
    }

    /// Open files can be written to when their names are long gone, so nobody else would notice that the directory was taken away.
    fn look(&self) {
        if let Err(error) = self.shared.files.fs.open(&self.shared.root.join(META), OpenMode::Existing)
            && error.kind() == io::ErrorKind::NotFound
        {
            self.shared.report_failure(&format!("{META} is gone: {error}"));
        }
    }

    fn each_ready(&self, mut f: impl FnMut(&mut crate::partition::Inner)) {
        for partition in self.partitions() {
            if let State::Ready(inner) = &mut *partition.lock() {
                f(inner);
            }
        }
    }

    fn remove_doomed(&self, now_ms: i64) {
        let mut doomed = self.shared.doomed.lock().unwrap_or_else(PoisonError::into_inner);
        let due: Vec<_> = doomed.extract_if(.., |(at, _)| *at <= now_ms).collect();
        drop(doomed);
        for (_, path) in due {
            let fs = &*self.shared.files.fs;
            let is_dir = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(DELETED));
            let removed = if is_dir { fs.remove_dir_all(&path) } else { fs.remove_file(&path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove a deleted file");
                }
                _ => {}
            }
        }
    }

    /// Writes the checkpoints that changed.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let _one = self.checkpointing.lock().unwrap_or_else(PoisonError::into_inner);
        let write = |changed: &AtomicBool, name: &str, value: &dyn Fn(&PartitionLog) -> i64| {
            if !changed.swap(false, Ordering::AcqRel) {
                return Ok(());
            }
            self.write_offsets(name, value).inspect_err(|_| changed.store(true, Ordering::Release))
        };
        // Log starts first: a recovery point below a log start only costs reading.
        write(&self.shared.starts_changed, LOG_STARTS, &|p| p.log_start.load(Ordering::Acquire))?;
        write(&self.shared.points_changed, RECOVERY_POINTS, &|p| p.recovery_point.load(Ordering::Acquire))
    }

    /// Syncs everything that waits for it, on this thread: for a directory without threads.
    pub fn flush_now(&self) {
        while let Some(partition) = self.shared.flusher.try_pop() {
            partition.sync();
        }
    }

    /// Closes the directory: syncs everything, saves producer state, writes the checkpoints and the mark of a clean end. Appends and
    /// reads fail from then on. Without it, the next opening recovers as after a crash.
    ///
    /// # Errors
    /// A partition is offline, so that some of what was written to it is lost; or the checkpoints could not be written.
    pub fn close(&self) -> Result<(), StorageError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        let (mut clean, mut offline) = (true, None);
        let partitions = self.partitions();
        for partition in &partitions {
            partition.enqueue_dirty();
        }
        self.shared.flusher.stop();
        for thread in std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner)) {
            // The housekeeping may be the last to hold the directory, and then it closes it: a thread cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        self.flush_now();
        let mut marks = BTreeMap::new();
        for partition in &partitions {
            let point = partition.recovery_point.load(Ordering::Acquire);
            marks.insert(partition.topic_partition().clone(), point);
            match close_partition(partition, &self.shared.files, &mut marks) {
                Ok(synced) => clean &= synced,
                Err(error) => offline = offline.or(Some(error)),
            }
        }
        let path = self.shared.root.join(HIGH_WATERMARKS);
        if let Err(error) = checkpoint::write_offsets(&*self.shared.files.fs, &path, &marks) {
            tracing::warn!(%error, "cannot write the high watermarks");
        }
        self.shared.points_changed.store(true, Ordering::Release);
        self.shared.starts_changed.store(true, Ordering::Release);
        let mut result = self.checkpoint().and_then(|()| offline.map_or(Ok(()), Err));
        if clean && result.is_ok() {
            let content = br#"{"version":0,"brokerEpoch":-1}"#;
            result = crate::fs::replace_file(&*self.shared.files.fs, &self.shared.root.join(CLEAN), content)
                .and_then(|()| self.shared.files.fs.sync_dir(&self.shared.root))
                .map_err(|error| StorageError::io("cannot write the clean marker", error));
        }
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        result
    }
}

impl Drop for LogDir {
    /// Ends the threads. Does not close the directory: what is not synced stays unsynced, as after a crash of the process.
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        self.shared.flusher.stop();
    }
}

fn due(last: &AtomicI64, now_ms: i64, interval_ms: i64) -> bool {
    let before = last.load(Ordering::Relaxed);
    // A clock that was set back counts as due.
    let due = before == i64::MIN || now_ms < before || now_ms - before >= interval_ms;
    if due {
        last.store(now_ms, Ordering::Relaxed);
    }
    due
}

/// Saves what the next opening would otherwise have to find out; false if not everything is synced. A partition that is offline stays so.
/// Notes its high watermark in `marks` if it is open; of the others nobody knows better than their recovery point.
fn close_partition(
    partition: &PartitionLog,
    files: &Files,
    marks: &mut BTreeMap<TopicPartition, i64>,
) -> Result<bool, StorageError> {
    let mut state = partition.lock();
    if let State::Offline(reason) = &*state {
        return Err(StorageError::Offline(reason.clone()));
    }
    let old = std::mem::replace(&mut *state, State::Closed);
    drop(state);
    let State::Ready(mut inner) = old else { return Ok(true) };
    partition.fail(std::mem::take(&mut inner.waiters).into_values().collect(), &StorageError::Closed);
    marks.insert(partition.topic_partition().clone(), inner.high_watermark);
    let clean = inner.durable == inner.end;
    if inner.end == inner.segments[0].base && inner.segments[0].size == 0 {
        return Ok(clean);
    }
    let saved = inner
        .active()
        .seal(files)
        .and_then(|_| snapshot::write(files, &inner.dir, &inner.producers))
        .and_then(|()| inner.epochs.write(&*files.fs, &inner.dir));
    if let Err(error) = saved {
        tracing::warn!(partition = %partition.topic_partition(), %error, "cannot save the partition's state");
    }
    Ok(clean)
}

/// Checks `meta.properties`, or writes it for a new directory; returns the cluster id.
fn identify(fs: &dyn Fs, config: &DirConfig) -> Result<String, OpenError> {
    let path = config.path.join(META);
    let io = |error: io::Error| StorageError::io(path.display(), error);
    let node_id = config.node_id.to_string();
    let foreign = |what, found: &str, expected: &str| OpenError::Foreign {
        path: path.display().to_string(),
        what,
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    if let Some(properties) = checkpoint::read_properties(fs, &path).map_err(io)? {
        if let Some(found) = properties.get("node.id").filter(|found| **found != node_id) {
            return Err(foreign("node", found, &node_id));
        }
        let Some(found) = properties.get("cluster.id") else {
            return Err(OpenError::Invalid(format!("{} has no cluster.id", path.display())));
        };
        if let Some(expected) = config.cluster_id.as_ref().filter(|expected| *expected != found) {
            return Err(foreign("cluster", found, expected));
        }
        return Ok(found.clone());
    }
    let cluster_id = config.cluster_id.clone().unwrap_or_else(|| id_from(config.seed, 0).to_string());
    let directory_id = id_from(config.seed, 1).to_string();
    let properties =
        [("version", "1"), ("node.id", &node_id), ("cluster.id", &cluster_id), ("directory.id", &directory_id)];
    let properties = properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    checkpoint::write_properties(fs, &path, &properties).map_err(io)?;
    fs.sync_dir(&config.path).map_err(io)?;
    Ok(cluster_id)
}

/// A version 4 UUID from a seed.
fn id_from(seed: u64, stream: u64) -> TopicId {
    let mut state = seed ^ stream.wrapping_mul(0xa076_1d64_78bd_642f);
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut bits = (u128::from(next()) << 64) | u128::from(next());
    bits &= !(0xf << 76) & !(0x3 << 62);
    bits |= (0x4 << 76) | (0x2 << 62);
    TopicId(bits.to_be_bytes())
}

/// The partitions whose directories are there; schedules the removal of deleted ones.
fn find_partitions(
    shared: &Arc<Shared>,
    names: impl Iterator<Item = String>,
) -> BTreeMap<TopicPartition, Arc<PartitionLog>> {
    let fs = &*shared.files.fs;
    let points = checkpoint::read_offsets(fs, &shared.root.join(RECOVERY_POINTS));
    let starts = checkpoint::read_offsets(fs, &shared.root.join(LOG_STARTS));
    let cleaned = checkpoint::read_offsets(fs, &shared.root.join(CLEANED));
    let mut partitions = BTreeMap::new();
    for name in names {
        let path = shared.root.join(&name);
        if name.ends_with(DELETED) {
            shared.doomed.lock().unwrap_or_else(PoisonError::into_inner).push((i64::MIN, path));
            continue;
        }
        let Some(tp) = TopicPartition::parse(&name) else { continue };
        let topic_id = checkpoint::read_topic_id(fs, &path).unwrap_or_default();
        let offset = |of: &BTreeMap<TopicPartition, i64>| of.get(&tp).copied().unwrap_or(0).max(0);
        let (point, start, cleaned) = (offset(&points), offset(&starts), offset(&cleaned));
        let config = LogConfig::default();
        let partition = PartitionLog::new(tp.clone(), topic_id, shared.clone(), config, point, start, cleaned);
        partitions.insert(tp, partition);
    }
    partitions
}

/// Whether `path` looks like a data directory of Kafka or of this broker.
pub fn is_data_dir(fs: &dyn Fs, path: &Path) -> bool {
    fs.open(&path.join(META), OpenMode::Existing).is_ok()
}
