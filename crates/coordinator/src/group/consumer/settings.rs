//! What is configured for a group: its own value, within the broker's limits (S 9.6.6), else the broker's. `None`: nobody
//! configured it, it is to be chosen (decisions 13, 14b).

use crate::config::GroupConfigs;

pub(super) fn heartbeat_interval_ms(config: &GroupConfigs, group_id: &str) -> Option<i32> {
    let broker = &config.broker;
    let (min, max) = (broker.consumer_min_heartbeat_interval_ms, broker.consumer_max_heartbeat_interval_ms);
    let own = config.overrides(group_id).consumer_heartbeat_interval_ms;
    own.map(|ms| ms.clamp(min, max)).or(broker.consumer_heartbeat_interval_ms)
}

pub(super) fn assignment_interval_ms(config: &GroupConfigs, group_id: &str) -> Option<i32> {
    let broker = &config.broker;
    let (min, max) = (broker.consumer_min_assignment_interval_ms, broker.consumer_max_assignment_interval_ms);
    let own = config.overrides(group_id).consumer_assignment_interval_ms;
    own.map(|ms| ms.clamp(min, max)).or(broker.consumer_assignment_interval_ms)
}
