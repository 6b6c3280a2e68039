//! Every key that can be configured, once. What the file format, DescribeConfigs, AlterConfigs and the documentation know
//! about a key, they know from here.

pub mod group;
pub mod groups;
pub mod inert;
pub mod network;
pub mod refused;
pub mod storage;
pub mod topic;
pub mod transactions;

use super::key::{Key, Support};

/// Defines a static per key, and `ALL` with all of them.
macro_rules! keys {
    ($($name:ident = $key:expr;)*) => {
        $(pub static $name: Key = $key;)*
        pub static ALL: &[&Key] = &[$(&$name),*];
    };
}
use keys;

/// Broker keys that have an effect.
pub fn broker() -> impl Iterator<Item = &'static Key> {
    [network::ALL, storage::ALL, groups::ALL, transactions::ALL].into_iter().flatten().copied()
}

pub fn topic() -> impl Iterator<Item = &'static Key> {
    topic::ALL.iter().copied()
}

pub fn group() -> impl Iterator<Item = &'static Key> {
    group::ALL.iter().copied()
}

pub fn find_topic(name: &str) -> Option<&'static Key> {
    topic().find(|key| key.name == name)
}

pub fn find_group(name: &str) -> Option<&'static Key> {
    group().find(|key| key.name == name)
}

/// A broker key with an effect.
pub fn find_broker(name: &str) -> Option<&'static Key> {
    broker().find(|key| key.name == name)
}

/// Broker keys that DescribeConfigs shows: those with an effect, and those of Kafka's without.
pub fn described_broker() -> impl Iterator<Item = &'static Key> {
    broker().chain(inert::ALL)
}

/// A broker key of Kafka's or ours, with an effect or without.
pub fn find_described_broker(name: &str) -> Option<&'static Key> {
    described_broker().find(|key| key.name == name)
}

/// What is known about a name in a configuration file.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    Key(&'static Key),
    /// Accepted without effect, for this reason.
    Inert(&'static str),
    /// Not accepted, unless the value is the harmless one.
    Refused {
        harmless: Option<&'static str>,
    },
    Unknown,
}

pub fn classify(name: &str) -> Known {
    if let Some(key) = find_broker(name) {
        return Known::Key(key);
    }
    let listed = refused::ALL.iter().chain(inert::ALL).find(|key| key.name == name);
    if listed.is_none() && refused_by_prefix(name) {
        return Known::Refused { harmless: None };
    }
    match listed.map(|key| key.support) {
        Some(Support::Refused(harmless)) => Known::Refused { harmless },
        Some(Support::Inert(why)) => Known::Inert(why),
        Some(Support::Used) | None => match inert::PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
            Some((_, why)) => Known::Inert(why),
            None => Known::Unknown,
        },
    }
}

/// A family of security, also for one listener only (`listener.name.clients.ssl.keystore.location`).
fn refused_by_prefix(name: &str) -> bool {
    let of_listener = name.strip_prefix("listener.name.").and_then(|rest| rest.split_once('.')).map(|(_, key)| key);
    let mechanism = |key: &str| key.contains(".sasl.") || key.contains(".ssl.");
    refused::PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix) || of_listener.is_some_and(|key| key.starts_with(prefix)))
        || of_listener.is_some_and(mechanism)
        || of_listener.is_some_and(|key| refused::ALL.iter().any(|refused| refused.name == key))
}

/// The known name that is most like `name`, if any is like it at all.
pub fn nearest(name: &str) -> Option<&'static str> {
    let names = broker().map(|key| key.name).chain(inert::ALL.iter().map(|key| key.name));
    nearest_of(name, names)
}

/// The name with the smallest edit distance, at most a third of the length.
pub fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).max(1);
    names
        .map(|known| (edit_distance(name, known), known))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, known)| known)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
