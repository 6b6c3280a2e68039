//! What all partitions of a data directory share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::config::DirConfig;
use crate::files::Files;
use crate::partition::PartitionLog;
use crate::tail::CacheBudget;
use crate::types::{Clock, FailureListener, Listener};
use crate::writer::{FlushCounters, Flusher};

pub(crate) struct Shared {
    pub root: PathBuf,
    pub files: Files,
    pub clock: Arc<dyn Clock>,
    pub config: DirConfig,
    pub cache: Arc<CacheBudget>,
    pub flusher: Flusher,
    pub flushes: FlushCounters,
    pub listener: RwLock<Option<Listener>>,
    pub failure_listener: RwLock<Option<FailureListener>>,
    failed: AtomicBool,
    /// Partitions with data to be synced by time or size.
    pub unsynced: Mutex<Vec<Arc<PartitionLog>>>,
    /// Recovery points or log starts moved since the checkpoints were written.
    pub points_changed: AtomicBool,
    pub starts_changed: AtomicBool,
    /// Files and directories to be removed at some time (ms).
    pub doomed: Mutex<Vec<(i64, PathBuf)>>,
    space: Space,
}

/// What is known of the free space.
#[derive(Default)]
struct Space {
    low: AtomicBool,
    looked_ms: AtomicI64,
}

/// How often the free space is looked at, in milliseconds.
const SPACE_INTERVAL_MS: i64 = 1000;

impl Shared {
    pub fn new(config: DirConfig, files: Files, clock: Arc<dyn Clock>) -> Shared {
        let cache = CacheBudget {
            used: Default::default(),
            limit: config.cache_bytes,
            partition_limit: config.partition_cache_bytes,
        };
        Shared {
            root: config.path.clone(),
            files,
            clock,
            cache: Arc::new(cache),
            flusher: Flusher::default(),
            flushes: FlushCounters::default(),
            listener: RwLock::default(),
            failure_listener: RwLock::default(),
            failed: AtomicBool::new(false),
            unsynced: Mutex::default(),
            points_changed: AtomicBool::new(false),
            starts_changed: AtomicBool::new(false),
            doomed: Mutex::default(),
            space: Space::default(),
            config,
        }
    }

    /// Tells the owner, once, that the directory cannot be trusted any more.
    pub fn report_failure(&self, reason: &str) {
        if self.failed.swap(true, Ordering::AcqRel) {
            return;
        }
        let listener = self.failure_listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(reason);
        }
    }

    /// Whether less is free than the reserve. Looks at most once a second, or after [`Shared::space_ran_out`].
    pub fn is_low_on_space(&self, now_ms: i64) -> bool {
        let looked = self.space.looked_ms.load(Ordering::Relaxed);
        // A clock that was set back must not stop the looking.
        if (now_ms.saturating_sub(looked)).unsigned_abs() >= SPACE_INTERVAL_MS as u64 {
            self.space.looked_ms.store(now_ms, Ordering::Relaxed);
            if let Ok(free) = self.files.fs.free_bytes(&self.root) {
                let low = free < self.config.reserved_bytes;
                if low != self.space.low.swap(low, Ordering::Relaxed) {
                    match low {
                        true => tracing::error!(free, "the data directory is full: appends are refused"),
                        false => tracing::info!(free, "the data directory has space again"),
                    }
                }
            }
        }
        self.space.low.load(Ordering::Relaxed)
    }

    /// A write found the disk full.
    pub fn space_ran_out(&self, now_ms: i64) {
        self.space.low.store(true, Ordering::Relaxed);
        self.space.looked_ms.store(now_ms, Ordering::Relaxed);
    }
}
