//! The configuration of one group (resource type 32): from what was set to what the coordinator is told.

use coordinator::config::{BrokerConfig, GroupOverrides};
use wire::KStr;

use super::key::Key;
use super::keys::{self, group};
use super::layers::{Lookup, Values};
use super::value::{self, Value, ValueError};

/// A set of group configurations that is not accepted (INVALID_CONFIG, S 9.6.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupConfigError {
    #[error("Unknown group config name: {0}")]
    Unknown(String),
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A limit of the broker, or two values that contradict each other.
    #[error("{0}")]
    Limit(String),
}

/// S 9.6.2: all that is set on a group, checked together.
pub fn validate_group(values: &Values, broker: &BrokerConfig) -> Result<(), GroupConfigError> {
    group_overrides(values)?.check(broker).map_err(GroupConfigError::Limit)
}

/// What the coordinator is told. Limits of the broker are not looked at: they may have been narrowed since (S 9.6.6).
pub fn group_overrides(values: &Values) -> Result<GroupOverrides, GroupConfigError> {
    if let Some(name) = values.keys().find(|name| keys::find_group(name).is_none()) {
        return Err(GroupConfigError::Unknown(name.clone()));
    }
    for (name, text) in values {
        if let Some(key) = keys::find_group(name) {
            value::parse(key, text)?;
        }
    }
    let set = Set(values);
    Ok(GroupOverrides {
        consumer_session_timeout_ms: set.own_int(&group::CONSUMER_SESSION_TIMEOUT_MS),
        consumer_heartbeat_interval_ms: set.own_int(&group::CONSUMER_HEARTBEAT_INTERVAL_MS),
        consumer_assignment_interval_ms: set.own_int(&group::CONSUMER_ASSIGNMENT_INTERVAL_MS),
        streams_session_timeout_ms: set.own_int(&group::STREAMS_SESSION_TIMEOUT_MS),
        streams_heartbeat_interval_ms: set.own_int(&group::STREAMS_HEARTBEAT_INTERVAL_MS),
        streams_num_standby_replicas: set.own_int(&group::STREAMS_NUM_STANDBY_REPLICAS),
        streams_initial_rebalance_delay_ms: set.own_int(&group::STREAMS_INITIAL_REBALANCE_DELAY_MS),
        streams_assignment_interval_ms: set.own_int(&group::STREAMS_ASSIGNMENT_INTERVAL_MS),
        streams_rack_aware_assignment_tags: set
            .get(&group::STREAMS_RACK_AWARE_TAGS)
            .map(|_| set.list(&group::STREAMS_RACK_AWARE_TAGS).into_iter().map(KStr::from).collect()),
        streams_assignor_name: set.text(&group::STREAMS_ASSIGNOR_NAME).map(KStr::from),
        streams_task_offset_interval_ms: set.own_int(&group::STREAMS_TASK_OFFSET_INTERVAL_MS),
        streams_num_warmup_replicas: set.own_int(&group::STREAMS_NUM_WARMUP_REPLICAS),
        streams_acceptable_recovery_lag: match set.get(&group::STREAMS_ACCEPTABLE_RECOVERY_LAG) {
            Some(Value::Integer(lag)) => Some(lag),
            _ => None,
        },
    })
}

/// Only what is set: no defaults.
struct Set<'a>(&'a Values);

impl Set<'_> {
    fn own_int(&self, key: &Key) -> Option<i32> {
        match self.get(key)? {
            Value::Integer(number) => i32::try_from(number).ok(),
            _ => None,
        }
    }
}

impl Lookup for Set<'_> {
    fn get(&self, key: &Key) -> Option<Value> {
        self.0.get(key.name).and_then(|text| value::parse(key, text).ok())
    }
}
