//! From keys to typed settings.

use super::started;
use crate::config::keys::topic;
use crate::config::{Config, Lookup, Source, Values};

#[test]
fn decision_13_configured_anywhere_even_to_the_default_means_configured() {
    assert_eq!(started("").groups.streams_heartbeat_interval_ms, None);
    let config = started("group.streams.heartbeat.interval.ms=5000\ngroup.consumer.assignment.interval.ms=1000");
    assert_eq!(config.groups.streams_heartbeat_interval_ms, Some(5000));
    assert_eq!(config.groups.consumer_assignment_interval_ms, Some(1000));
    assert_eq!(config.groups.consumer_heartbeat_interval_ms, None);
}

#[test]
fn group_defaults_are_those_of_the_coordinator() {
    let expected = format!("{:?}", coordinator::config::BrokerConfig::default());
    assert_eq!(format!("{:?}", started("").groups), expected);
}

#[test]
fn topics_fall_back_to_the_brokers_values_in_the_finest_unit_that_is_set() {
    let cases = [
        ("", 604_800_000),
        ("log.retention.hours=1", 3_600_000),
        ("log.retention.hours=1\nlog.retention.minutes=2", 120_000),
        ("log.retention.hours=1\nlog.retention.minutes=2\nlog.retention.ms=3", 3),
        ("log.retention.hours=-1", -1),
        ("log.retention.ms=-1", -1),
    ];
    for (text, expected) in cases {
        assert_eq!(started(text).layers.long(&topic::RETENTION_MS), expected, "{text}");
    }
    assert_eq!(started("log.roll.hours=2").layers.long(&topic::SEGMENT_MS), 7_200_000);
    assert_eq!(started("message.max.bytes=5").layers.long(&topic::MAX_MESSAGE_BYTES), 5);
    assert_eq!(started("compression.type=zstd").layers.text(&topic::COMPRESSION_TYPE).as_deref(), Some("zstd"));
}

#[test]
fn dynamic_values_win_over_the_start_configuration_and_this_brokers_over_all_brokers() {
    let config = Config::new(started("log.retention.ms=1\nmessage.max.bytes=1"));
    let values = |pairs: &[(&str, &str)]| -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    config
        .update(values(&[("log.retention.ms", "3")]), values(&[("log.retention.ms", "2"), ("message.max.bytes", "2")]))
        .expect("no contradiction");
    let now = config.current();
    assert_eq!(now.layers.long(&topic::RETENTION_MS), 3);
    assert_eq!(now.layers.set("message.max.bytes"), Some(("2", Source::ClusterDefault)));

    // What contradicts itself changes nothing.
    let broken = values(&[("group.streams.assignment.interval.ms", "99999")]);
    assert!(config.update(Values::new(), broken).is_err());
    assert_eq!(config.current().layers.long(&topic::RETENTION_MS), 3);
}
