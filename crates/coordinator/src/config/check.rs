//! What broker-wide values must satisfy together (S 9.7): a broker whose values contradict each other does not start.

use wire::KStr;

use super::BrokerConfig;

/// One value with the limits that groups get for it.
struct Bounded {
    /// `group.streams`, `group.consumer`
    prefix: &'static str,
    /// `session.timeout.ms`
    name: &'static str,
    min: i32,
    max: i32,
    /// `None`: adaptive, so that there is nothing to check.
    value: Option<i32>,
}

impl BrokerConfig {
    /// The first contradiction, in Kafka's words.
    pub fn check(&self) -> Result<(), String> {
        self.bounded().iter().try_for_each(Bounded::check)?;
        self.check_sessions()?;
        at_most(
            ("group.streams.num.standby.replicas", self.streams_num_standby_replicas),
            ("group.streams.max.standby.replicas", self.streams_max_standby_replicas),
        )?;
        at_most(
            ("group.streams.num.warmup.replicas", self.streams_num_warmup_replicas),
            ("group.streams.max.warmup.replicas", self.streams_max_warmup_replicas),
        )?;
        if let Some(interval) = self.streams_task_offset_interval_ms {
            at_least(
                ("group.streams.task.offset.interval.ms", interval),
                ("group.streams.min.task.offset.interval.ms", self.streams_min_task_offset_interval_ms),
            )?;
        }
        if has_duplicates(&self.streams_rack_aware_assignment_tags) {
            return Err("group.streams.rack.aware.assignment.tags must not contain duplicate tag keys.".to_owned());
        }
        check_assignors("group.consumer.assignors", &self.consumer_assignors, CONSUMER_ASSIGNORS)?;
        check_assignors("group.streams.assignors", &self.streams_assignors, STREAMS_ASSIGNORS)
    }

    fn bounded(&self) -> [Bounded; 6] {
        let consumer = |name, min, max, value| Bounded { prefix: "group.consumer", name, min, max, value };
        let streams = |name, min, max, value| Bounded { prefix: "group.streams", name, min, max, value };
        [
            consumer(
                "heartbeat.interval.ms",
                self.consumer_min_heartbeat_interval_ms,
                self.consumer_max_heartbeat_interval_ms,
                self.consumer_heartbeat_interval_ms,
            ),
            consumer(
                "session.timeout.ms",
                self.consumer_min_session_timeout_ms,
                self.consumer_max_session_timeout_ms,
                Some(self.consumer_session_timeout_ms),
            ),
            consumer(
                "assignment.interval.ms",
                self.consumer_min_assignment_interval_ms,
                self.consumer_max_assignment_interval_ms,
                self.consumer_assignment_interval_ms,
            ),
            streams(
                "heartbeat.interval.ms",
                self.streams_min_heartbeat_interval_ms,
                self.streams_max_heartbeat_interval_ms,
                self.streams_heartbeat_interval_ms,
            ),
            streams(
                "session.timeout.ms",
                self.streams_min_session_timeout_ms,
                self.streams_max_session_timeout_ms,
                Some(self.streams_session_timeout_ms),
            ),
            streams(
                "assignment.interval.ms",
                self.streams_min_assignment_interval_ms,
                self.streams_max_assignment_interval_ms,
                self.streams_assignment_interval_ms,
            ),
        ]
    }

    /// A member that heartbeats as told must not count as dead.
    fn check_sessions(&self) -> Result<(), String> {
        let pairs = [
            ("group.consumer", self.consumer_session_timeout_ms, self.consumer_heartbeat_interval_ms),
            ("group.streams", self.streams_session_timeout_ms, self.streams_heartbeat_interval_ms),
        ];
        for (prefix, session, heartbeat) in pairs {
            if heartbeat.is_some_and(|heartbeat| heartbeat >= session) {
                return Err(format!("{prefix}.heartbeat.interval.ms must be less than {prefix}.session.timeout.ms"));
            }
        }
        Ok(())
    }
}

/// Names that can be configured. Consumer assignors may also be given as Kafka's classes of these names.
const CONSUMER_ASSIGNORS: &[&str] = &["uniform", "range"];
const STREAMS_ASSIGNORS: &[&str] = &["sticky", "balanced"];

fn check_assignors(key: &str, names: &[KStr], known: &[&str]) -> Result<(), String> {
    if names.is_empty() {
        return Err(format!("Configuration '{key}' must not be empty. Valid values include: any non-empty value"));
    }
    if has_duplicates(names) {
        return Err(format!("{key} must not contain duplicate names."));
    }
    match names.iter().find(|name| !known.contains(&&***name)) {
        Some(name) => Err(format!("Invalid value {} for configuration {key}: known are {}", &**name, known.join(", "))),
        None => Ok(()),
    }
}

fn has_duplicates(names: &[KStr]) -> bool {
    names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
}

fn at_least((name, value): (&str, i32), (limit_name, limit): (&str, i32)) -> Result<(), String> {
    if value < limit {
        return Err(format!("{name} must be greater than or equal to {limit_name}"));
    }
    Ok(())
}

fn at_most((name, value): (&str, i32), (limit_name, limit): (&str, i32)) -> Result<(), String> {
    if value > limit {
        return Err(format!("{name} must be less than or equal to {limit_name}"));
    }
    Ok(())
}

impl Bounded {
    fn check(&self) -> Result<(), String> {
        let Bounded { prefix, name, .. } = self;
        let (own, min, max) =
            (format!("{prefix}.{name}"), format!("{prefix}.min.{name}"), format!("{prefix}.max.{name}"));
        at_least((&max, self.max), (&min, self.min))?;
        if let Some(value) = self.value {
            at_least((&own, value), (&min, self.min))?;
            at_most((&own, value), (&max, self.max))?;
        }
        Ok(())
    }
}
