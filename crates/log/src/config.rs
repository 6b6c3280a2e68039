//! Settings, as plain structs that are passed in. Names follow Kafka's keys.

use std::path::PathBuf;

use wire::batch::{Compression, TimestampType};

/// When appended data is synced to the disk, and so what an acknowledgement promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushPolicy {
    /// Consumers see a record, and acks=all is answered, only after it was synced. Loses nothing that was acknowledged with acks=all,
    /// also when the power fails; acks=1 is answered from the page cache and survives the end of the process, not of the machine.
    Always,
    /// Acknowledged when written to the page cache, synced at most this many milliseconds later. A failing machine loses at most that
    /// much acknowledged data; the end of the process loses nothing.
    IntervalMs(u64),
    /// Acknowledged when written to the page cache; the operating system syncs when it likes, as with Kafka's defaults. A failing
    /// machine loses what it had not written; the end of the process loses nothing.
    Never,
}

/// Settings of one partition's log; may be changed while it runs. Sizes are in bytes, times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`, at most 2^31 - 1.
    pub segment_bytes: u32,
    /// `segment.ms`
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to so much less than `segment_ms`, differently for each segment, so that not all begin anew together.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: the offset index never gets larger, a full one rolls the segment.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `retention.bytes`, -1 for no limit.
    pub retention_bytes: i64,
    /// `retention.ms`, -1 for no limit.
    pub retention_ms: i64,
    /// `max.message.bytes`: the largest batch.
    pub max_message_bytes: usize,
    /// `max.decompressed.message.bytes`
    pub max_decompressed_message_bytes: usize,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub timestamp_after_max_ms: i64,
    /// `cleanup.policy` has `delete`.
    pub delete: bool,
    /// `cleanup.policy` has `compact`.
    pub compact: bool,
    /// `compression.type`; `None` is `producer`, which stores batches as they come.
    pub compression: Option<Compression>,
    /// `compression.<type>.level` of that type; `None` is the codec's default.
    pub compression_level: Option<i32>,
    pub flush: FlushPolicy,
    /// `min.compaction.lag.ms`
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`, 0 to 1.
    pub min_cleanable_dirty_ratio: f64,
    /// `delete.retention.ms`
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`
    pub file_delete_delay_ms: i64,
}

impl Default for LogConfig {
    /// Kafka's defaults; the flush policy is [`FlushPolicy::Always`].
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_bytes: -1,
            retention_ms: 604_800_000,
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: 2_147_483_639,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            delete: true,
            compact: false,
            compression: None,
            compression_level: None,
            flush: FlushPolicy::Always,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            delete_retention_ms: 86_400_000,
            file_delete_delay_ms: 60_000,
        }
    }
}

/// Settings of a data directory.
#[derive(Debug, Clone)]
pub struct DirConfig {
    pub path: PathBuf,
    /// Written to `meta.properties`; a directory of another node or cluster is refused.
    pub node_id: i32,
    /// Kafka's cluster id (22 characters); `None` takes what the directory says, or makes one from [`DirConfig::seed`].
    pub cluster_id: Option<String>,
    /// Where the ids of a new directory come from; give it something random.
    pub seed: u64,
    /// Threads that sync files. 0: none, and nothing happens in the background; the owner calls [`crate::LogDir::flush_now`] and
    /// [`crate::LogDir::tick`] (for simulations).
    pub flush_threads: usize,
    /// Recent batches that are kept in memory for consumers, in all and per partition.
    pub cache_bytes: usize,
    pub partition_cache_bytes: usize,
    /// Files that are kept open.
    pub open_files: usize,
    /// How often the recovery points are written when they changed.
    pub checkpoint_interval_ms: i64,
    /// Appended bytes after which producer state is saved: what a restart after a crash has to look through per partition.
    pub snapshot_interval_bytes: u64,
    /// Unsynced bytes after which a partition is synced although its policy does not ask for it: what a restart after a crash has to
    /// check per partition.
    pub background_sync_bytes: u64,
    /// `producer.id.expiration.ms`
    pub producer_id_expiration_ms: i64,
    /// `producer.id.expiration.check.interval.ms`
    pub producer_id_check_interval_ms: i64,
    /// `transaction.partition.verification.enable`
    pub verify_transactions: bool,
    /// Free bytes below which clients' appends are refused, so that there is room left for deletions and group commits.
    pub reserved_bytes: u64,
    /// Memory for the key map of one compaction.
    pub compaction_map_bytes: usize,
}

impl DirConfig {
    pub fn new(path: impl Into<PathBuf>) -> DirConfig {
        DirConfig {
            path: path.into(),
            node_id: 1,
            cluster_id: None,
            seed: 0,
            flush_threads: 4,
            cache_bytes: 64 << 20,
            partition_cache_bytes: 1 << 20,
            open_files: 4096,
            checkpoint_interval_ms: 1000,
            snapshot_interval_bytes: 4 << 20,
            background_sync_bytes: 32 << 20,
            producer_id_expiration_ms: 86_400_000,
            producer_id_check_interval_ms: 600_000,
            verify_transactions: true,
            reserved_bytes: 4 << 20,
            compaction_map_bytes: 32 << 20,
        }
    }
}
