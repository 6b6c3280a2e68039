use wire::KStr;

use super::{BrokerConfig, GroupOverrides};

type Change = fn(&mut BrokerConfig);

#[test]
fn s_9_7_a_broker_whose_group_values_contradict_each_other_is_refused() {
    let cases: &[(Change, &str)] = &[
        (
            |c| c.streams_session_timeout_ms = 10,
            "group.streams.session.timeout.ms must be greater than or equal to group.streams.min.session.timeout.ms",
        ),
        (
            |c| c.streams_heartbeat_interval_ms = Some(20_000),
            "group.streams.heartbeat.interval.ms must be less than or equal to group.streams.max.heartbeat.interval.ms",
        ),
        (
            |c| c.consumer_min_session_timeout_ms = 100_000,
            "group.consumer.max.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            |c| c.consumer_assignment_interval_ms = Some(20_000),
            "group.consumer.assignment.interval.ms must be less than or equal to group.consumer.max.assignment.interval.ms",
        ),
        (
            |c| c.streams_num_standby_replicas = 9,
            "group.streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            |c| c.streams_num_warmup_replicas = 30,
            "group.streams.num.warmup.replicas must be less than or equal to group.streams.max.warmup.replicas",
        ),
        (
            |c| c.streams_task_offset_interval_ms = Some(5),
            "group.streams.task.offset.interval.ms must be greater than or equal to group.streams.min.task.offset.interval.ms",
        ),
        (
            |c| c.streams_rack_aware_assignment_tags = vec![KStr::from("zone"), KStr::from("zone")],
            "group.streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            |c| {
                c.streams_min_session_timeout_ms = 5_000;
                c.streams_session_timeout_ms = 5_000;
                c.streams_heartbeat_interval_ms = Some(5_000);
            },
            "group.streams.heartbeat.interval.ms must be less than group.streams.session.timeout.ms",
        ),
        (
            |c| c.streams_assignors = vec![KStr::from("fancy")],
            "Invalid value fancy for configuration group.streams.assignors: known are sticky, balanced",
        ),
        (
            |c| c.consumer_assignors = vec![],
            "Configuration 'group.consumer.assignors' must not be empty. Valid values include: any non-empty value",
        ),
    ];
    assert_eq!(BrokerConfig::default().check(), Ok(()));
    for (change, expected) in cases {
        let mut config = BrokerConfig::default();
        change(&mut config);
        assert_eq!(config.check(), Err((*expected).to_owned()));
    }
}

#[test]
fn decision_13_limits_do_not_bind_a_value_that_nobody_configured() {
    let config = BrokerConfig { streams_min_heartbeat_interval_ms: 6_000, ..BrokerConfig::default() };
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn s_9_6_1_a_group_value_outside_the_brokers_limits_is_refused_with_kafkas_text() {
    let none = GroupOverrides::default;
    let cases: &[(GroupOverrides, &str)] = &[
        (
            GroupOverrides { consumer_session_timeout_ms: Some(1), ..none() },
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            GroupOverrides { consumer_heartbeat_interval_ms: Some(1), ..none() },
            "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive.",
        ),
        (
            GroupOverrides { streams_session_timeout_ms: Some(60_001), ..none() },
            "streams.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            GroupOverrides { streams_assignment_interval_ms: Some(20_000), ..none() },
            "streams.assignment.interval.ms must be in the range 0 to 15000 inclusive.",
        ),
        (
            GroupOverrides { streams_num_standby_replicas: Some(3), ..none() },
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            GroupOverrides { streams_num_warmup_replicas: Some(21), ..none() },
            "streams.num.warmup.replicas must be less than or equal to 20",
        ),
        (
            GroupOverrides { streams_task_offset_interval_ms: Some(14_999), ..none() },
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            GroupOverrides { streams_assignor_name: Some(KStr::from("X")), ..none() },
            "streams.assignor.name 'X' is not a registered task assignor. Registered assignors are: [sticky, balanced].",
        ),
    ];
    let broker = BrokerConfig::default();
    for (overrides, expected) in cases {
        assert_eq!(overrides.check(&broker), Err((*expected).to_owned()));
    }
    let largest = GroupOverrides {
        consumer_session_timeout_ms: Some(60_000),
        consumer_heartbeat_interval_ms: Some(15_000),
        streams_session_timeout_ms: Some(60_000),
        streams_initial_rebalance_delay_ms: Some(i32::MAX),
        streams_assignor_name: Some(KStr::from("balanced")),
        ..none()
    };
    assert_eq!(largest.check(&broker), Ok(()));
}

#[test]
fn s_9_6_2_the_session_must_outlast_the_heartbeat_interval_with_the_brokers_value_for_the_missing_one() {
    let broker = BrokerConfig {
        streams_min_session_timeout_ms: 4_000,
        consumer_min_session_timeout_ms: 4_000,
        consumer_heartbeat_interval_ms: Some(14_000),
        ..BrokerConfig::default()
    };
    let streams = |session, heartbeat| GroupOverrides {
        streams_session_timeout_ms: session,
        streams_heartbeat_interval_ms: heartbeat,
        ..GroupOverrides::default()
    };
    let refused = Err("streams.session.timeout.ms must be greater than streams.heartbeat.interval.ms".to_owned());
    // Nobody configured the interval: Kafka's constant of 5 s is what the session is compared with.
    assert_eq!(streams(Some(5_000), None).check(&broker), refused);
    assert_eq!(streams(Some(5_001), None).check(&broker), Ok(()));
    assert_eq!(streams(Some(12_000), Some(12_000)).check(&broker), refused);
    let consumer = GroupOverrides { consumer_session_timeout_ms: Some(12_000), ..GroupOverrides::default() };
    assert_eq!(
        consumer.check(&broker),
        Err("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms".to_owned())
    );
    assert_eq!(GroupOverrides::default().check(&broker), Ok(()));
}
