//! How often members of broker-driven groups are asked to heartbeat, and how often an assignor may run, where nobody
//! configured it (decisions 13, 13b, 14, 14b). Shared by consumer and streams groups.
//!
//! A member that waits for something hears of it with its next heartbeat, so intervals are short; heartbeats cost the
//! broker, so they stay within a share of one core. With `group.heartbeat.adaptive=false` Kafka's constants rule.

use crate::config::BrokerConfig;

/// Kafka's default interval, and the longest that is chosen here.
pub(crate) const DEFAULT_HEARTBEAT_MS: i32 = 5_000;
/// Kafka's default initial rebalance delay, and the longest that is chosen here.
pub(crate) const DEFAULT_INITIAL_DELAY_MS: i32 = 3_000;
/// Kafka's default assignment interval.
pub(crate) const DEFAULT_ASSIGNMENT_INTERVAL_MS: i32 = 1_000;
/// The initial delay ends when no join has come for so long.
pub(crate) const QUIET_MS: i32 = 150;

/// Members that have nothing to wait for.
const STEADY_MS: i32 = 200;
/// Members that wait.
const HURRIED_MS: i32 = 100;
/// What one heartbeat is taken to cost the broker, socket included: measured with 10,000 members on a slow machine (`BENCHMARKS.md`),
/// where each is a wake-up for one small request. Where heartbeats come in bulk it is half of that.
const HEARTBEAT_COST_US: f64 = 60.0;
/// If all members of the broker wait at once, their heartbeats may use so many times the share of a core.
const HURRIED_SHARES: i32 = 8;
/// A wait is prolonged by at most one part in so many of what it took already.
const BACKOFF_DIVISOR: u64 = 50;
/// Work of an assignor per member and per task, on the slow side.
const ASSIGNMENT_COST_US: u64 = 4;
/// An assignor may run for one part in so many of the time.
const ASSIGNMENT_DUTY: u64 = 20;
const MAX_ASSIGNMENT_INTERVAL_MS: u64 = 5_000;

/// Interval of a member that has nothing to wait for. `members` of the whole broker.
pub(crate) fn steady_ms(broker: &BrokerConfig, members: u32) -> i32 {
    if !broker.heartbeat_adaptive {
        return DEFAULT_HEARTBEAT_MS;
    }
    affordable_ms(broker, members).clamp(STEADY_MS, DEFAULT_HEARTBEAT_MS)
}

/// Interval of a member that waits: for its target, for tasks or partitions of others, for a delay to end.
/// `waiting` members of its group do, this one for `waited_ms` already. Backs off when the work takes long. How many wait in
/// other groups is not known here; it may be all of them, as when a broker with many members starts.
pub(crate) fn hurried_ms(broker: &BrokerConfig, members: u32, waiting: u32, waited_ms: u64) -> i32 {
    let steady_ms = steady_ms(broker, members);
    if !broker.heartbeat_adaptive {
        return steady_ms;
    }
    let least_ms = HURRIED_MS.max(affordable_ms(broker, members) / HURRIED_SHARES).min(steady_ms);
    let afforded_ms = affordable_ms(broker, waiting).clamp(least_ms, steady_ms);
    let patient_ms = i32::try_from(waited_ms / BACKOFF_DIVISOR).unwrap_or(DEFAULT_HEARTBEAT_MS);
    afforded_ms.max(patient_ms).min(DEFAULT_HEARTBEAT_MS)
}

/// The interval at which heartbeats of so many members use up the share of a core that they may have.
fn affordable_ms(broker: &BrokerConfig, members: u32) -> i32 {
    let share = broker.heartbeat_cpu_share.clamp(0.001, 1.0);
    // Saturates, which is what is wanted here.
    (f64::from(members) * HEARTBEAT_COST_US / 1_000.0 / share) as i32
}

/// Least time between two runs of an assignor over `members` and `tasks` (or partitions); 0 for small groups.
pub(crate) fn assignment_interval_ms(broker: &BrokerConfig, members: usize, tasks: usize) -> i32 {
    if !broker.heartbeat_adaptive {
        return DEFAULT_ASSIGNMENT_INTERVAL_MS;
    }
    let cost_ms = (members + tasks) as u64 * ASSIGNMENT_COST_US / 1_000;
    if cost_ms < 5 {
        return 0;
    }
    // At most 5000, so it fits.
    (cost_ms * ASSIGNMENT_DUTY).min(MAX_ASSIGNMENT_INTERVAL_MS) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_intervals_grow_with_the_broker_and_stay_within_the_share() {
        let broker = BrokerConfig { heartbeat_cpu_share: 0.15, ..BrokerConfig::default() };
        for (members, expected) in [(0, 200), (200, 200), (500, 200), (1_000, 400), (5_000, 2_000), (100_000, 5_000)] {
            assert_eq!(steady_ms(&broker, members), expected, "{members} members");
        }
    }

    #[test]
    fn waiting_members_hurry_and_back_off() {
        let broker = BrokerConfig { heartbeat_cpu_share: 0.15, ..BrokerConfig::default() };
        for (members, waiting, waited_ms, expected) in [
            (100, 1, 0, 100),
            (100, 100, 5_000, 100),
            (1_000, 1, 0, 100),
            (1_000, 1_000, 0, 400),
            (2_000, 100, 0, 100),
            (10_000, 100, 0, 500),
            (200_000, 100, 0, 5_000),
            (100, 1, 10_000, 200),
            (100, 1, 60_000, 1_200),
            (100, 1, 3_600_000, 5_000),
            (1_000_000, 1_000_000, u64::MAX, 5_000),
        ] {
            assert_eq!(hurried_ms(&broker, members, waiting, waited_ms), expected, "{members} {waiting} {waited_ms}");
        }
    }

    #[test]
    fn switched_off_the_constants_are_kafkas() {
        let broker = BrokerConfig { heartbeat_adaptive: false, ..BrokerConfig::default() };
        assert_eq!(steady_ms(&broker, 3), 5_000);
        assert_eq!(hurried_ms(&broker, 3, 3, 0), 5_000);
        assert_eq!(assignment_interval_ms(&broker, 3, 3), 1_000);
    }

    #[test]
    fn assignors_of_small_groups_run_at_once() {
        let broker = BrokerConfig::default();
        assert_eq!(assignment_interval_ms(&broker, 100, 1_000), 0);
        assert_eq!(assignment_interval_ms(&broker, 10_000, 30_000), 3_200);
        assert_eq!(assignment_interval_ms(&broker, 100_000, 1_000_000), 5_000);
    }
}
