//! The table of keys.

use std::collections::BTreeSet;

use crate::config::key::{Key, Kind};
use crate::config::keys::{self, Known};
use crate::config::value::{Value, parse};

fn all() -> impl Iterator<Item = &'static Key> {
    keys::described_broker().chain(keys::topic()).chain(keys::group())
}

#[test]
fn every_default_is_a_value_of_its_key() {
    for key in all() {
        if let Some(text) = key.default {
            assert!(parse(key, text).is_ok(), "{} = {text}", key.name);
        }
    }
}

#[test]
fn every_key_is_defined_once_and_documented() {
    for keys in [keys::broker().collect::<Vec<_>>(), keys::topic().collect(), keys::group().collect()] {
        let names: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), keys.len());
        for key in keys {
            assert!(key.doc.ends_with('.'), "{}", key.name);
        }
    }
    for key in keys::refused::ALL.iter().chain(keys::inert::ALL) {
        assert!(keys::find_broker(key.name).is_none(), "{}", key.name);
    }
}

#[test]
fn every_synonym_is_a_broker_key_of_a_matching_type() {
    for key in all() {
        for synonym in key.synonyms {
            let broker =
                keys::find_described_broker(synonym.name).unwrap_or_else(|| panic!("{}: {}", key.name, synonym.name));
            let number = |kind: Kind| matches!(kind, Kind::Int | Kind::Short | Kind::Long);
            assert!(broker.kind == key.kind || (number(broker.kind) && number(key.kind)), "{}", key.name);
        }
    }
}

#[test]
fn m_7_a_topic_shows_37_keys() {
    assert_eq!(keys::topic().filter(|key| !key.internal).count(), 37);
}

#[test]
fn s_9_6_5_a_consumer_or_streams_group_shows_its_public_keys() {
    let public: Vec<&str> = keys::group().filter(|key| !key.internal).map(|key| key.name).collect();
    assert_eq!(public.iter().filter(|name| name.starts_with("streams.")).count(), 7);
    assert_eq!(public.iter().filter(|name| name.starts_with("consumer.")).count(), 3);
}

#[test]
fn names_are_classified() {
    assert!(matches!(keys::classify("num.partitions"), Known::Key(_)));
    assert!(matches!(keys::classify("zookeeper.connect"), Known::Inert(_)));
    assert!(matches!(keys::classify("listener.name.plaintext.max.connections"), Known::Inert(_)));
    assert!(matches!(keys::classify("ssl.anything.new"), Known::Refused { harmless: None }));
    assert!(matches!(keys::classify("no.such.key"), Known::Unknown));
}

/// Kafka's texts, as its own classes gave them.
#[test]
fn bad_values_are_refused_in_kafkas_words() {
    let cases = [
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        ("segment.bytes", "3", "Invalid value 3 for configuration segment.bytes: Value must be at least 1048576"),
        (
            "segment.bytes",
            "99999999999",
            "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "cleanup.policy",
            "compact,foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "GZIP",
            "Invalid value GZIP for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.zstd.level",
            "99",
            "Invalid value 99 for configuration compression.zstd.level: Value must be no more than 22",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "abc",
            "Invalid value abc for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
        ),
        (
            "preallocate",
            "foo",
            "Invalid value foo for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "follower.replication.throttled.replicas",
            "foo",
            "Invalid value [foo] for configuration follower.replication.throttled.replicas: \
             follower.replication.throttled.replicas must be the literal '*' or a list of replicas in the following \
             format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ];
    for (name, text, expected) in cases {
        let key = keys::find_topic(name).expect(name);
        assert_eq!(parse(key, text).expect_err(text).to_string(), expected);
    }
    let tags = keys::find_group("streams.rack.aware.assignment.tags").expect("a key");
    assert_eq!(
        parse(tags, "a,a").expect_err("a repetition").to_string(),
        "streams.rack.aware.assignment.tags must not contain duplicate tag keys."
    );
    let policy = keys::find_broker("group.consumer.migration.policy").expect("a key");
    assert_eq!(
        parse(policy, "foo").expect_err("no policy").to_string(),
        "Invalid value foo for configuration group.consumer.migration.policy: String must be one of (case insensitive): \
         DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL"
    );
}

#[test]
fn values_are_read_as_kafka_reads_them() {
    let list = |names: &[&str]| Value::List(names.iter().map(|name| (*name).to_owned()).collect());
    let cases = [
        ("retention.ms", " 5 ", Value::Integer(5)),
        ("retention.ms", "+5", Value::Integer(5)),
        ("retention.bytes", "-5", Value::Integer(-5)),
        ("preallocate", "TRUE", Value::Boolean(true)),
        ("min.cleanable.dirty.ratio", "0.3f", Value::Double(0.3)),
        ("cleanup.policy", "", list(&[])),
        ("cleanup.policy", "compact, delete", list(&["compact", "delete"])),
        ("cleanup.policy", "compact,compact", list(&["compact"])),
        ("follower.replication.throttled.replicas", "*", list(&["*"])),
        ("follower.replication.throttled.replicas", "0:1,1:2", list(&["0:1", "1:2"])),
    ];
    for (name, text, expected) in cases {
        let key = keys::find_topic(name).expect(name);
        assert_eq!(parse(key, text), Ok(expected), "{name}={text}");
    }
}

#[test]
fn the_nearest_name_is_found_only_for_names_that_are_like_it() {
    assert_eq!(keys::nearest("log.retention.hour"), Some("log.retention.hours"));
    assert_eq!(keys::nearest("listener"), Some("listeners"));
    assert_eq!(keys::nearest("xyz"), None);
}

#[test]
fn every_key_is_documented_in_the_page_about_configuration() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let documented = crate::config::document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &documented).expect("the page can be written");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == documented, "docs/configuration.md is out of date: UPDATE_DOCS=1 cargo test -p server documented");
}
