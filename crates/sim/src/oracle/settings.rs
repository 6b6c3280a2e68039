//! Configuration by Kafka's names, with Kafka's defaults where ours adapt.

use coordinator::config::{BrokerConfig, GroupOverrides, MigrationPolicy};
use serde_json::{Map, Value};
use wire::KStr;

/// The broker's configuration that the oracle runs with if nothing is set.
pub fn kafka_defaults() -> BrokerConfig {
    BrokerConfig {
        classic_initial_rebalance_delay_ms: Some(3_000),
        consumer_heartbeat_interval_ms: Some(5_000),
        consumer_assignment_interval_ms: Some(1_000),
        streams_heartbeat_interval_ms: Some(5_000),
        streams_initial_rebalance_delay_ms: Some(3_000),
        streams_assignment_interval_ms: Some(1_000),
        streams_task_offset_interval_ms: Some(60_000),
        // Decision 8: with 0 tasks move as in Kafka 4.4.
        streams_num_warmup_replicas: 0,
        heartbeat_adaptive: false,
        ..Default::default()
    }
}

fn int(value: &Value) -> Result<i32, String> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let number = number.and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| format!("not a number: {value}"))
}

fn names(value: &Value) -> Vec<KStr> {
    let text = value.as_str().unwrap_or_default();
    text.split(',').filter(|name| !name.is_empty()).map(|name| KStr::copy(name.trim())).collect()
}

/// Sets what the oracle's `config` command gives. Returns `message.max.bytes` if it is set.
pub fn broker(config: &mut BrokerConfig, given: &Map<String, Value>) -> Result<Option<usize>, String> {
    let mut max_batch_bytes = None;
    for (name, value) in given {
        match name.as_str() {
            "message.max.bytes" => max_batch_bytes = Some(int(value)? as usize),
            "group.min.session.timeout.ms" => config.classic_min_session_timeout_ms = int(value)?,
            "group.max.session.timeout.ms" => config.classic_max_session_timeout_ms = int(value)?,
            "group.initial.rebalance.delay.ms" => config.classic_initial_rebalance_delay_ms = Some(int(value)?),
            "group.max.size" => config.classic_max_size = int(value)? as usize,
            "group.consumer.session.timeout.ms" => config.consumer_session_timeout_ms = int(value)?,
            "group.consumer.min.session.timeout.ms" => config.consumer_min_session_timeout_ms = int(value)?,
            "group.consumer.max.session.timeout.ms" => config.consumer_max_session_timeout_ms = int(value)?,
            "group.consumer.heartbeat.interval.ms" => config.consumer_heartbeat_interval_ms = Some(int(value)?),
            "group.consumer.assignment.interval.ms" => config.consumer_assignment_interval_ms = Some(int(value)?),
            "group.consumer.max.size" => config.consumer_max_size = int(value)? as usize,
            "group.consumer.assignors" => config.consumer_assignors = names(value),
            "group.consumer.migration.policy" => config.consumer_migration_policy = policy(value)?,
            "group.streams.session.timeout.ms" => config.streams_session_timeout_ms = int(value)?,
            "group.streams.min.session.timeout.ms" => config.streams_min_session_timeout_ms = int(value)?,
            "group.streams.max.session.timeout.ms" => config.streams_max_session_timeout_ms = int(value)?,
            "group.streams.heartbeat.interval.ms" => config.streams_heartbeat_interval_ms = Some(int(value)?),
            "group.streams.initial.rebalance.delay.ms" => {
                config.streams_initial_rebalance_delay_ms = Some(int(value)?);
            }
            "group.streams.assignment.interval.ms" => config.streams_assignment_interval_ms = Some(int(value)?),
            "group.streams.max.size" => config.streams_max_size = int(value)? as usize,
            "group.streams.num.warmup.replicas" => config.streams_num_warmup_replicas = int(value)?,
            "group.streams.num.standby.replicas" => config.streams_num_standby_replicas = int(value)?,
            "offset.metadata.max.bytes" => config.offset_metadata_max_chars = int(value)? as usize,
            "offsets.retention.minutes" => config.offsets_retention_ms = i64::from(int(value)?) * 60_000,
            "offsets.retention.check.interval.ms" => {
                config.offsets_retention_check_interval_ms = i64::from(int(value)?);
            }
            _ => return Err(format!("unknown config {name}")),
        }
    }
    config.check()?;
    Ok(max_batch_bytes)
}

fn policy(value: &Value) -> Result<MigrationPolicy, String> {
    Ok(match value.as_str().unwrap_or_default() {
        "disabled" => MigrationPolicy::Disabled,
        "upgrade" => MigrationPolicy::Upgrade,
        "downgrade" => MigrationPolicy::Downgrade,
        "bidirectional" => MigrationPolicy::Bidirectional,
        other => return Err(format!("unknown policy {other}")),
    })
}

/// What the oracle's `groupConfig` command gives.
pub fn group(broker: &BrokerConfig, given: &Map<String, Value>) -> Result<GroupOverrides, String> {
    let mut overrides = GroupOverrides::default();
    for (name, value) in given {
        let number = || int(value).map(Some);
        match name.as_str() {
            "consumer.session.timeout.ms" => overrides.consumer_session_timeout_ms = number()?,
            "consumer.heartbeat.interval.ms" => overrides.consumer_heartbeat_interval_ms = number()?,
            "consumer.assignment.interval.ms" => overrides.consumer_assignment_interval_ms = number()?,
            "streams.session.timeout.ms" => overrides.streams_session_timeout_ms = number()?,
            "streams.heartbeat.interval.ms" => overrides.streams_heartbeat_interval_ms = number()?,
            "streams.num.standby.replicas" => overrides.streams_num_standby_replicas = number()?,
            "streams.initial.rebalance.delay.ms" => overrides.streams_initial_rebalance_delay_ms = number()?,
            "streams.assignment.interval.ms" => overrides.streams_assignment_interval_ms = number()?,
            "streams.task.offset.interval.ms" => overrides.streams_task_offset_interval_ms = number()?,
            "streams.rack.aware.assignment.tags" => overrides.streams_rack_aware_assignment_tags = Some(names(value)),
            _ => return Err(format!("Unknown group config name: {name}")),
        }
    }
    overrides.check(broker)?;
    Ok(overrides)
}
