//! The configuration of one topic: what was set on it, over what the broker says.

use std::collections::BTreeMap;

use ::log::{FlushPolicy, LogConfig};
use wire::batch::{Compression, TimestampType};

use super::key::Key;
use super::keys::{self, storage, topic};
use super::layers::{Layers, Lookup};
use super::value::{self, Value, ValueError};

/// What was set on a topic, by key.
pub type TopicOverrides = BTreeMap<String, String>;

/// A set of topic configurations that is not accepted (INVALID_CONFIG).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicConfigError {
    #[error("Unknown topic config name: {0}")]
    Unknown(String),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})")]
    CompactionLag { min: i64, max: i64 },
    #[error(
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    )]
    Tiered,
}

/// Checks what is set on a topic, all keys together.
pub fn validate(overrides: &TopicOverrides, broker: &Layers) -> Result<(), TopicConfigError> {
    if let Some(name) = overrides.keys().find(|name| keys::find_topic(name).is_none()) {
        return Err(TopicConfigError::Unknown(name.clone()));
    }
    for (name, text) in overrides {
        if let Some(key) = keys::find_topic(name) {
            value::parse(key, text)?;
        }
    }
    let view = TopicView { overrides, broker };
    let (min, max) = (view.long(&topic::MIN_COMPACTION_LAG_MS), view.long(&topic::MAX_COMPACTION_LAG_MS));
    if min > max {
        return Err(TopicConfigError::CompactionLag { min, max });
    }
    if view.boolean(&topic::REMOTE_STORAGE_ENABLE) {
        return Err(TopicConfigError::Tiered);
    }
    Ok(())
}

/// What the log of a topic's partitions is told.
pub fn log_config(overrides: &TopicOverrides, broker: &Layers) -> LogConfig {
    let view = TopicView { overrides, broker };
    let policy = view.list(&topic::CLEANUP_POLICY);
    let (compression, compression_level) = compression(&view);
    let internal_segment = view.get(&topic::INTERNAL_SEGMENT_BYTES);
    LogConfig {
        segment_bytes: match internal_segment {
            Some(Value::Integer(bytes)) => u32::try_from(bytes).unwrap_or(u32::MAX),
            _ => view.unsigned(&topic::SEGMENT_BYTES),
        },
        segment_ms: view.long(&topic::SEGMENT_MS),
        segment_jitter_ms: view.long(&topic::SEGMENT_JITTER_MS),
        segment_index_bytes: view.unsigned(&topic::SEGMENT_INDEX_BYTES),
        index_interval_bytes: view.unsigned(&topic::INDEX_INTERVAL_BYTES),
        retention_bytes: view.long(&topic::RETENTION_BYTES),
        retention_ms: view.long(&topic::RETENTION_MS),
        max_message_bytes: view.unsigned(&topic::MAX_MESSAGE_BYTES) as usize,
        max_decompressed_message_bytes: view.unsigned(&topic::MAX_DECOMPRESSED_MESSAGE_BYTES) as usize,
        timestamp_type: match view.text(&topic::TIMESTAMP_TYPE).as_deref() {
            Some("LogAppendTime") => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        },
        timestamp_before_max_ms: view.long(&topic::TIMESTAMP_BEFORE_MAX_MS),
        timestamp_after_max_ms: view.long(&topic::TIMESTAMP_AFTER_MAX_MS),
        delete: policy.iter().any(|p| p == "delete"),
        compact: policy.iter().any(|p| p == "compact"),
        compression,
        compression_level,
        flush: flush_policy(&view),
        min_compaction_lag_ms: view.long(&topic::MIN_COMPACTION_LAG_MS),
        max_compaction_lag_ms: view.long(&topic::MAX_COMPACTION_LAG_MS),
        min_cleanable_dirty_ratio: view.double(&topic::MIN_CLEANABLE_DIRTY_RATIO),
        delete_retention_ms: view.long(&topic::DELETE_RETENTION_MS),
        file_delete_delay_ms: view.long(&topic::FILE_DELETE_DELAY_MS),
    }
}

/// Interval that holds under `log.flush.policy=interval` when nobody set one.
const FLUSH_INTERVAL_MS: u64 = 1000;

fn flush_policy(view: &TopicView<'_>) -> FlushPolicy {
    match view.broker.text(&storage::LOG_FLUSH_POLICY).as_deref() {
        Some("never") => FlushPolicy::Never,
        Some("interval") => match u64::try_from(view.long(&topic::FLUSH_MS)) {
            Ok(ms) if ms < i64::MAX as u64 => FlushPolicy::IntervalMs(ms),
            _ => FlushPolicy::IntervalMs(FLUSH_INTERVAL_MS),
        },
        _ => FlushPolicy::Always,
    }
}

fn compression(view: &TopicView<'_>) -> (Option<Compression>, Option<i32>) {
    let level = |key: &Key| i32::try_from(view.long(key)).ok();
    match view.text(&topic::COMPRESSION_TYPE).as_deref() {
        Some("uncompressed") => (Some(Compression::None), None),
        Some("gzip") => (Some(Compression::Gzip), level(&topic::COMPRESSION_GZIP_LEVEL).filter(|level| *level > 0)),
        Some("snappy") => (Some(Compression::Snappy), None),
        Some("lz4") => (Some(Compression::Lz4), level(&topic::COMPRESSION_LZ4_LEVEL)),
        Some("zstd") => (Some(Compression::Zstd), level(&topic::COMPRESSION_ZSTD_LEVEL)),
        _ => (None, None),
    }
}

/// Overrides, then the broker's values for topics, then defaults.
pub(super) struct TopicView<'a> {
    pub overrides: &'a TopicOverrides,
    pub broker: &'a Layers,
}

impl Lookup for TopicView<'_> {
    fn get(&self, key: &Key) -> Option<Value> {
        let own = self.overrides.get(key.name).and_then(|text| value::parse(key, text).ok());
        own.or_else(|| self.broker.get(key))
    }
}
