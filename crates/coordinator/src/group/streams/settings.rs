//! The configuration that counts for one group: its own values, else the broker's, within the broker's limits (S 9.6.6).

use wire::KStr;

use super::records::AssignmentConfigs;
use crate::assign::{AssignError, StreamsInput, StreamsTarget, balanced, sticky};
use crate::config::{BrokerConfig, GroupConfigs, GroupOverrides};
use crate::group::interval::{self, DEFAULT_HEARTBEAT_MS, DEFAULT_INITIAL_DELAY_MS, QUIET_MS};

const NUM_STANDBY_REPLICAS: &str = "num.standby.replicas";
const RACK_AWARE_TAGS: &str = "rack.aware.assignment.tags";

/// Kafka's default task offset interval, and the one of groups at rest.
const DEFAULT_TASK_OFFSET_INTERVAL_MS: i32 = 60_000;
/// While the group warms tasks up (decision 13b).
const WARMING_TASK_OFFSET_INTERVAL_MS: i32 = 1_000;
/// A warm-up without progress for so long is given up, if reports come often enough (decision 8).
const WARMUP_PATIENCE_MS: u64 = 600_000;

/// A view of the configuration; cheap to make.
pub(super) struct Settings<'a> {
    broker: &'a BrokerConfig,
    group: &'a GroupOverrides,
    pub session_timeout_ms: i32,
}

/// How long a group that was empty waits for more members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitialDelay {
    /// As configured; 0 for none.
    Fixed(u64),
    /// Until joins have been quiet for a while, but not longer than `most_ms` (decision 14).
    Quiet { quiet_ms: u64, most_ms: u64 },
}

/// Which assignor computes the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assignor {
    Sticky,
    Balanced,
    /// Repeats what the oracle's does.
    #[cfg(test)]
    RoundRobin,
}

impl Assignor {
    pub(super) fn assign(self, input: &StreamsInput) -> Result<StreamsTarget, AssignError> {
        let target = match self {
            Assignor::Sticky => sticky::assign(input),
            Assignor::Balanced => balanced::assign(input),
            #[cfg(test)]
            Assignor::RoundRobin => Ok(super::tests::round_robin(input)),
        };
        #[cfg(feature = "testing")]
        let target = target.map(|target| crate::assign::given::streams(input, target));
        target
    }
}

impl<'a> Settings<'a> {
    pub(super) fn of(configs: &'a GroupConfigs, group_id: &str) -> Settings<'a> {
        Settings {
            broker: &configs.broker,
            group: configs.overrides(group_id),
            session_timeout_ms: configs.streams_session_timeout_ms(group_id),
        }
    }

    pub(super) fn broker(&self) -> &'a BrokerConfig {
        self.broker
    }

    pub(super) fn num_standby_replicas(&self) -> i32 {
        let replicas = self.group.streams_num_standby_replicas.unwrap_or(self.broker.streams_num_standby_replicas);
        replicas.clamp(0, self.broker.streams_max_standby_replicas.max(0))
    }

    /// Client tags that standbys are spread over.
    pub(super) fn tags(&self) -> &'a [KStr] {
        self.group
            .streams_rack_aware_assignment_tags
            .as_deref()
            .unwrap_or(&self.broker.streams_rack_aware_assignment_tags)
    }

    pub(super) fn num_warmup_replicas(&self) -> usize {
        let replicas = self.group.streams_num_warmup_replicas.unwrap_or(self.broker.streams_num_warmup_replicas);
        replicas.clamp(0, self.broker.streams_max_warmup_replicas.max(0)) as usize
    }

    pub(super) fn acceptable_recovery_lag(&self) -> i64 {
        self.group.streams_acceptable_recovery_lag.unwrap_or(self.broker.streams_acceptable_recovery_lag)
    }

    /// The group's own choice if it is registered, else the first of the broker's (S 5.1).
    pub(super) fn assignor_name(&self) -> KStr {
        let registered = &self.broker.streams_assignors;
        let own = self.group.streams_assignor_name.as_ref().filter(|name| registered.contains(name));
        own.or(registered.first()).cloned().unwrap_or_else(|| KStr::from("sticky"))
    }

    pub(super) fn assignor(&self) -> Assignor {
        match self.assignor_name().as_str() {
            "balanced" => Assignor::Balanced,
            #[cfg(test)]
            "round-robin" => Assignor::RoundRobin,
            _ => Assignor::Sticky,
        }
    }

    /// What the group record holds of the configuration (S 3.4.4).
    pub(super) fn assignment_configs(&self) -> AssignmentConfigs {
        let mut configs = AssignmentConfigs::new();
        configs.insert(KStr::from(NUM_STANDBY_REPLICAS), KStr::from(self.num_standby_replicas().to_string()));
        if !self.tags().is_empty() {
            let tags: Vec<&str> = self.tags().iter().map(KStr::as_str).collect();
            configs.insert(KStr::from(RACK_AWARE_TAGS), KStr::from(tags.join(",")));
        }
        configs
    }

    /// Whether `stored` is what `assignment_configs` would write; allocates nothing.
    pub(super) fn matches(&self, stored: Option<&AssignmentConfigs>) -> bool {
        let Some(stored) = stored else { return false };
        let tags = self.tags();
        let standbys = stored.get(NUM_STANDBY_REPLICAS).and_then(|replicas| replicas.parse::<i32>().ok());
        let same_tags = match stored.get(RACK_AWARE_TAGS) {
            None => tags.is_empty(),
            Some(stored) => !tags.is_empty() && stored.split(',').eq(tags.iter().map(KStr::as_str)),
        };
        let expected = 1 + usize::from(!tags.is_empty());
        standbys == Some(self.num_standby_replicas()) && same_tags && stored.len() == expected
    }

    pub(super) fn recorded_standby_replicas(&self, stored: Option<&AssignmentConfigs>) -> Option<i32> {
        stored?.get(NUM_STANDBY_REPLICAS)?.parse().ok()
    }

    pub(super) fn initial_delay(&self) -> InitialDelay {
        let configured =
            self.group.streams_initial_rebalance_delay_ms.or(self.broker.streams_initial_rebalance_delay_ms);
        let default_ms = DEFAULT_INITIAL_DELAY_MS;
        match configured {
            None if self.broker.heartbeat_adaptive => {
                InitialDelay::Quiet { quiet_ms: QUIET_MS as u64, most_ms: default_ms as u64 }
            }
            configured => InitialDelay::Fixed(configured.unwrap_or(default_ms).max(0) as u64),
        }
    }

    /// Least time between two assignments, and whether somebody configured it; else it follows the size of the group
    /// (decision 14b).
    pub(super) fn assignment_interval(&self, members: usize, tasks: usize) -> (i32, bool) {
        let broker = self.broker;
        let own = self.group.streams_assignment_interval_ms.map(|interval| {
            interval.clamp(
                broker.streams_min_assignment_interval_ms,
                broker.streams_max_assignment_interval_ms.max(broker.streams_min_assignment_interval_ms),
            )
        });
        match own.or(broker.streams_assignment_interval_ms) {
            Some(configured) => (configured, true),
            None => (interval::assignment_interval_ms(broker, members, tasks), !broker.heartbeat_adaptive),
        }
    }

    /// An interval that somebody configured is sent exactly (decision 13).
    pub(super) fn configured_heartbeat_ms(&self) -> Option<i32> {
        let broker = self.broker;
        let own = self.group.streams_heartbeat_interval_ms.map(|interval| {
            interval.clamp(
                broker.streams_min_heartbeat_interval_ms,
                broker.streams_max_heartbeat_interval_ms.max(broker.streams_min_heartbeat_interval_ms),
            )
        });
        own.or(broker.streams_heartbeat_interval_ms)
    }

    /// The interval that does not depend on what goes on: for status 1, and for how long errors are kept (S 4.8.5).
    pub(super) fn full_heartbeat_ms(&self) -> i32 {
        self.configured_heartbeat_ms().unwrap_or(DEFAULT_HEARTBEAT_MS)
    }

    /// Decision 13b.
    pub(super) fn task_offset_interval_ms(&self, warming: bool) -> i32 {
        let broker = self.broker;
        let own = self
            .group
            .streams_task_offset_interval_ms
            .map(|interval| interval.max(broker.streams_min_task_offset_interval_ms));
        own.or(broker.streams_task_offset_interval_ms).unwrap_or({
            if warming && broker.heartbeat_adaptive {
                WARMING_TASK_OFFSET_INTERVAL_MS
            } else {
                DEFAULT_TASK_OFFSET_INTERVAL_MS
            }
        })
    }

    /// How long a warm-up may make no progress; several reports fit into it.
    pub(super) fn warmup_patience_ms(&self) -> u64 {
        WARMUP_PATIENCE_MS.max(5 * self.task_offset_interval_ms(true) as u64)
    }
}
