//! From keys to typed settings.

use log::{FlushPolicy, LogConfig};
use wire::batch::{Compression, TimestampType};

use super::started;
use crate::config::keys::topic;
use crate::config::{Config, Lookup, Source, TopicOverrides, Values, log_config, validate};

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

fn overrides(pairs: &[(&str, &str)]) -> TopicOverrides {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn an_unconfigured_topic_has_kafkas_defaults() {
    assert_eq!(log_config(&TopicOverrides::new(), &started("").layers), LogConfig::default());
}

#[test]
fn what_is_set_on_a_topic_wins_over_the_broker() {
    let broker = started("log.retention.hours=1\nlog.cleanup.policy=delete\ncompression.type=gzip").layers;
    let config = log_config(
        &overrides(&[
            ("retention.ms", "-1"),
            ("cleanup.policy", "compact,delete"),
            ("segment.bytes", "1048576"),
            ("message.timestamp.type", "LogAppendTime"),
            ("compression.type", "zstd"),
            ("compression.zstd.level", "9"),
        ]),
        &broker,
    );
    assert_eq!((config.retention_ms, config.segment_bytes), (-1, 1_048_576));
    assert!(config.compact && config.delete);
    assert_eq!(config.timestamp_type, TimestampType::LogAppendTime);
    assert_eq!((config.compression, config.compression_level), (Some(Compression::Zstd), Some(9)));
    let plain = log_config(&TopicOverrides::new(), &broker);
    assert_eq!(
        (plain.retention_ms, plain.compression, plain.compression_level),
        (3_600_000, Some(Compression::Gzip), None)
    );
}

#[test]
fn the_flush_policy_says_what_an_acknowledgement_promises() {
    let policy = |text: &str, set: &[(&str, &str)]| log_config(&overrides(set), &started(text).layers).flush;
    assert_eq!(policy("", &[]), FlushPolicy::Always);
    assert_eq!(policy("log.flush.interval.ms=7", &[]), FlushPolicy::Always);
    assert_eq!(policy("log.flush.policy=never", &[]), FlushPolicy::Never);
    assert_eq!(policy("log.flush.policy=interval", &[]), FlushPolicy::IntervalMs(1000));
    assert_eq!(policy("log.flush.policy=interval\nlog.flush.interval.ms=7", &[]), FlushPolicy::IntervalMs(7));
    assert_eq!(
        policy("log.flush.policy=interval\nlog.flush.interval.ms=7", &[("flush.ms", "3")]),
        FlushPolicy::IntervalMs(3)
    );
}

#[test]
fn m_6_a_topics_configurations_are_checked_together() {
    let broker = started("").layers;
    let refused = |set: &[(&str, &str)]| validate(&overrides(set), &broker).unwrap_err().to_string();
    assert_eq!(refused(&[("nope", "1")]), "Unknown topic config name: nope");
    assert_eq!(
        refused(&[("retention.ms", "abc")]),
        "Invalid value abc for configuration retention.ms: Not a number of type LONG"
    );
    assert_eq!(
        refused(&[("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "50")]),
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"
    );
    assert_eq!(
        refused(&[("remote.storage.enable", "true")]),
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    );
    assert_eq!(validate(&overrides(&[("retention.ms", "1"), ("cleanup.policy", "compact")]), &broker), Ok(()));
}
