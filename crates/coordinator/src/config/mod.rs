//! What the coordinator can be told by configuration: broker-wide values (S 9.7, C 0.3) and overrides per group (S 9.6).
//!
//! The server parses values and builds these structs; [`BrokerConfig::check`] and [`GroupOverrides::check`] say whether they
//! agree with each other. The core only reads them. `Option` marks the values whose default is adaptive: `None` means that
//! nobody configured it.

mod check;
mod overrides;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::KStr;

/// A snapshot of everything. The server makes a new one for each change.
#[derive(Clone, Debug, Default)]
pub struct GroupConfigs {
    pub broker: BrokerConfig,
    /// Group resources (type 32) by group id.
    pub groups: BTreeMap<KStr, Arc<GroupOverrides>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPolicy {
    Disabled,
    Upgrade,
    Downgrade,
    Bidirectional,
}

/// Times in milliseconds unless the name says otherwise.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    pub consumer_protocol_enabled: bool,
    pub streams_protocol_enabled: bool,

    pub classic_min_session_timeout_ms: i32,
    pub classic_max_session_timeout_ms: i32,
    /// `None`: ends when joins have been quiet for a short while, 3 s at the latest (decision 14).
    pub classic_initial_rebalance_delay_ms: Option<i32>,
    pub classic_max_size: usize,

    pub consumer_session_timeout_ms: i32,
    pub consumer_min_session_timeout_ms: i32,
    pub consumer_max_session_timeout_ms: i32,
    /// `None`: adaptive (decision 13).
    pub consumer_heartbeat_interval_ms: Option<i32>,
    pub consumer_min_heartbeat_interval_ms: i32,
    pub consumer_max_heartbeat_interval_ms: i32,
    /// `None`: bounded by what the assignor costs (decision 14b).
    pub consumer_assignment_interval_ms: Option<i32>,
    pub consumer_min_assignment_interval_ms: i32,
    pub consumer_max_assignment_interval_ms: i32,
    pub consumer_max_size: usize,
    /// The first one is the default.
    pub consumer_assignors: Vec<KStr>,
    pub consumer_migration_policy: MigrationPolicy,
    pub consumer_regex_refresh_interval_ms: i32,

    pub streams_session_timeout_ms: i32,
    pub streams_min_session_timeout_ms: i32,
    pub streams_max_session_timeout_ms: i32,
    /// `None`: adaptive (decision 13).
    pub streams_heartbeat_interval_ms: Option<i32>,
    pub streams_min_heartbeat_interval_ms: i32,
    pub streams_max_heartbeat_interval_ms: i32,
    pub streams_max_size: usize,
    pub streams_num_standby_replicas: i32,
    pub streams_max_standby_replicas: i32,
    /// `None`: as for classic groups (decision 14).
    pub streams_initial_rebalance_delay_ms: Option<i32>,
    /// `None`: bounded by what the assignor costs (decision 14b).
    pub streams_assignment_interval_ms: Option<i32>,
    pub streams_min_assignment_interval_ms: i32,
    pub streams_max_assignment_interval_ms: i32,
    /// The first one is the default.
    pub streams_assignors: Vec<KStr>,
    pub streams_rack_aware_assignment_tags: Vec<KStr>,
    /// `None`: short while the group warms tasks up, else 60 s (decision 13b).
    pub streams_task_offset_interval_ms: Option<i32>,
    pub streams_min_task_offset_interval_ms: i32,
    pub streams_num_warmup_replicas: i32,
    pub streams_max_warmup_replicas: i32,
    pub streams_acceptable_recovery_lag: i64,

    /// `group.heartbeat.adaptive`: false makes every unset interval and delay Kafka's constant.
    pub heartbeat_adaptive: bool,
    /// Share of one core that heartbeats of the whole broker may use, 0 to 1; bounds the adaptive interval.
    pub heartbeat_cpu_share: f64,

    /// Compared with the number of characters (C O-8).
    pub offset_metadata_max_chars: usize,
    pub offsets_retention_ms: i64,
    pub offsets_retention_check_interval_ms: i64,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        BrokerConfig {
            consumer_protocol_enabled: true,
            streams_protocol_enabled: true,
            classic_min_session_timeout_ms: 6_000,
            classic_max_session_timeout_ms: 1_800_000,
            classic_initial_rebalance_delay_ms: None,
            classic_max_size: i32::MAX as usize,
            consumer_session_timeout_ms: 45_000,
            consumer_min_session_timeout_ms: 45_000,
            consumer_max_session_timeout_ms: 60_000,
            consumer_heartbeat_interval_ms: None,
            consumer_min_heartbeat_interval_ms: 5_000,
            consumer_max_heartbeat_interval_ms: 15_000,
            consumer_assignment_interval_ms: None,
            consumer_min_assignment_interval_ms: 0,
            consumer_max_assignment_interval_ms: 15_000,
            consumer_max_size: i32::MAX as usize,
            consumer_assignors: vec![KStr::from("uniform"), KStr::from("range")],
            consumer_migration_policy: MigrationPolicy::Bidirectional,
            consumer_regex_refresh_interval_ms: 600_000,
            streams_session_timeout_ms: 45_000,
            streams_min_session_timeout_ms: 45_000,
            streams_max_session_timeout_ms: 60_000,
            streams_heartbeat_interval_ms: None,
            streams_min_heartbeat_interval_ms: 5_000,
            streams_max_heartbeat_interval_ms: 15_000,
            streams_max_size: i32::MAX as usize,
            streams_num_standby_replicas: 0,
            streams_max_standby_replicas: 2,
            streams_initial_rebalance_delay_ms: None,
            streams_assignment_interval_ms: None,
            streams_min_assignment_interval_ms: 0,
            streams_max_assignment_interval_ms: 15_000,
            streams_assignors: vec![KStr::from("sticky"), KStr::from("balanced")],
            streams_rack_aware_assignment_tags: Vec::new(),
            streams_task_offset_interval_ms: None,
            streams_min_task_offset_interval_ms: 15_000,
            streams_num_warmup_replicas: 2,
            streams_max_warmup_replicas: 20,
            streams_acceptable_recovery_lag: 10_000,
            heartbeat_adaptive: true,
            heartbeat_cpu_share: 0.15,
            offset_metadata_max_chars: 4096,
            offsets_retention_ms: 7 * 24 * 3_600_000,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}

/// What a group resource sets. Absent values fall back to the broker's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupOverrides {
    pub consumer_session_timeout_ms: Option<i32>,
    pub consumer_heartbeat_interval_ms: Option<i32>,
    pub consumer_assignment_interval_ms: Option<i32>,
    pub streams_session_timeout_ms: Option<i32>,
    pub streams_heartbeat_interval_ms: Option<i32>,
    pub streams_num_standby_replicas: Option<i32>,
    pub streams_initial_rebalance_delay_ms: Option<i32>,
    pub streams_assignment_interval_ms: Option<i32>,
    pub streams_rack_aware_assignment_tags: Option<Vec<KStr>>,
    pub streams_assignor_name: Option<KStr>,
    pub streams_task_offset_interval_ms: Option<i32>,
    pub streams_num_warmup_replicas: Option<i32>,
    pub streams_acceptable_recovery_lag: Option<i64>,
}

static NO_OVERRIDES: GroupOverrides = GroupOverrides {
    consumer_session_timeout_ms: None,
    consumer_heartbeat_interval_ms: None,
    consumer_assignment_interval_ms: None,
    streams_session_timeout_ms: None,
    streams_heartbeat_interval_ms: None,
    streams_num_standby_replicas: None,
    streams_initial_rebalance_delay_ms: None,
    streams_assignment_interval_ms: None,
    streams_rack_aware_assignment_tags: None,
    streams_assignor_name: None,
    streams_task_offset_interval_ms: None,
    streams_num_warmup_replicas: None,
    streams_acceptable_recovery_lag: None,
};

impl GroupConfigs {
    /// The overrides of a group; all absent when it has none.
    pub fn overrides(&self, group_id: &str) -> &GroupOverrides {
        self.groups.get(group_id).map_or(&NO_OVERRIDES, |overrides| overrides)
    }

    /// S 9.6.6: a stored value outside the broker's present limits is clamped when used.
    pub fn streams_session_timeout_ms(&self, group_id: &str) -> i32 {
        let b = &self.broker;
        self.overrides(group_id).streams_session_timeout_ms.map_or(b.streams_session_timeout_ms, |v| {
            v.clamp(b.streams_min_session_timeout_ms, b.streams_max_session_timeout_ms)
        })
    }

    pub fn consumer_session_timeout_ms(&self, group_id: &str) -> i32 {
        let b = &self.broker;
        self.overrides(group_id).consumer_session_timeout_ms.map_or(b.consumer_session_timeout_ms, |v| {
            v.clamp(b.consumer_min_session_timeout_ms, b.consumer_max_session_timeout_ms)
        })
    }
}
