//! What a group resource (type 32) may set (S 9.6). Types and bounds that do not depend on the broker are checked before; here
//! come those that do, with Kafka's texts, all values of the resource together (S 9.6.2).

use wire::KStr;

use super::{BrokerConfig, GroupOverrides};

/// Kafka's constant, compared with where the broker's own interval is adaptive.
const DEFAULT_HEARTBEAT_INTERVAL_MS: i32 = 5_000;

impl GroupOverrides {
    /// The first value that the broker does not allow; the answer is INVALID_CONFIG with this text (S 9.6.1).
    pub fn check(&self, broker: &BrokerConfig) -> Result<(), String> {
        self.check_consumer(broker)?;
        self.check_streams(broker)?;
        check_session(
            "consumer",
            self.consumer_session_timeout_ms.unwrap_or(broker.consumer_session_timeout_ms),
            self.consumer_heartbeat_interval_ms.or(broker.consumer_heartbeat_interval_ms),
            self.consumer_session_timeout_ms.is_some() || self.consumer_heartbeat_interval_ms.is_some(),
        )?;
        check_session(
            "streams",
            self.streams_session_timeout_ms.unwrap_or(broker.streams_session_timeout_ms),
            self.streams_heartbeat_interval_ms.or(broker.streams_heartbeat_interval_ms),
            self.streams_session_timeout_ms.is_some() || self.streams_heartbeat_interval_ms.is_some(),
        )
    }

    fn check_consumer(&self, broker: &BrokerConfig) -> Result<(), String> {
        in_range(
            "consumer.heartbeat.interval.ms",
            self.consumer_heartbeat_interval_ms,
            broker.consumer_min_heartbeat_interval_ms,
            broker.consumer_max_heartbeat_interval_ms,
        )?;
        in_range(
            "consumer.session.timeout.ms",
            self.consumer_session_timeout_ms,
            broker.consumer_min_session_timeout_ms,
            broker.consumer_max_session_timeout_ms,
        )?;
        in_range(
            "consumer.assignment.interval.ms",
            self.consumer_assignment_interval_ms,
            broker.consumer_min_assignment_interval_ms,
            broker.consumer_max_assignment_interval_ms,
        )
    }

    fn check_streams(&self, broker: &BrokerConfig) -> Result<(), String> {
        in_range(
            "streams.heartbeat.interval.ms",
            self.streams_heartbeat_interval_ms,
            broker.streams_min_heartbeat_interval_ms,
            broker.streams_max_heartbeat_interval_ms,
        )?;
        in_range(
            "streams.session.timeout.ms",
            self.streams_session_timeout_ms,
            broker.streams_min_session_timeout_ms,
            broker.streams_max_session_timeout_ms,
        )?;
        in_range(
            "streams.assignment.interval.ms",
            self.streams_assignment_interval_ms,
            broker.streams_min_assignment_interval_ms,
            broker.streams_max_assignment_interval_ms,
        )?;
        at_most(
            "streams.num.standby.replicas",
            self.streams_num_standby_replicas,
            broker.streams_max_standby_replicas,
        )?;
        at_most("streams.num.warmup.replicas", self.streams_num_warmup_replicas, broker.streams_max_warmup_replicas)?;
        at_least(
            "streams.task.offset.interval.ms",
            self.streams_task_offset_interval_ms,
            broker.streams_min_task_offset_interval_ms,
        )?;
        if let Some(name) = self.streams_assignor_name.as_ref().filter(|name| !broker.streams_assignors.contains(name))
        {
            return Err(format!(
                "streams.assignor.name '{}' is not a registered task assignor. Registered assignors are: {}.",
                &**name,
                bracketed(&broker.streams_assignors)
            ));
        }
        Ok(())
    }
}

fn bracketed(names: &[KStr]) -> String {
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    format!("[{}]", names.join(", "))
}

fn in_range(key: &str, value: Option<i32>, min: i32, max: i32) -> Result<(), String> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(format!("{key} must be in the range {min} to {max} inclusive."))
        }
        _ => Ok(()),
    }
}

fn at_most(key: &str, value: Option<i32>, max: i32) -> Result<(), String> {
    match value {
        Some(value) if value > max => Err(format!("{key} must be less than or equal to {max}")),
        _ => Ok(()),
    }
}

fn at_least(key: &str, value: Option<i32>, min: i32) -> Result<(), String> {
    match value {
        Some(value) if value < min => Err(format!("{key} must be greater than or equal to {min}")),
        _ => Ok(()),
    }
}

/// The broker's value stands in for the missing one; a pair of which the group sets neither is the broker's own affair.
fn check_session(kind: &str, session: i32, heartbeat: Option<i32>, own: bool) -> Result<(), String> {
    if own && session <= heartbeat.unwrap_or(DEFAULT_HEARTBEAT_INTERVAL_MS) {
        return Err(format!("{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"));
    }
    Ok(())
}
