//! Configurations as DescribeConfigs shows them: value, where it comes from, and the names that it falls back to (M-10).

use std::borrow::Cow;

use super::key::{Key, Kind, Support, Update};
use super::keys;
use super::layers::{Layers, Lookup, Source, Values};
use super::topic::TopicView;
use super::value::{self, Value};

/// One key of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: Cow<'static, str>,
    /// `None` is null; also for what is sensitive.
    pub value: Option<String>,
    pub read_only: bool,
    pub source: Source,
    pub sensitive: bool,
    pub kind: Kind,
    /// From the strongest on.
    pub synonyms: Vec<SynonymValue>,
    pub documentation: String,
}

/// A name that the value could come from, with its own value.
#[derive(Clone, Debug, PartialEq)]
pub struct SynonymValue {
    pub name: Cow<'static, str>,
    pub value: Option<String>,
    pub source: Source,
}

/// A topic, by name of key. Hidden keys are shown only when they are set.
pub fn describe_topic(overrides: &Values, broker: &Layers) -> Vec<Entry> {
    let view = TopicView { overrides, broker };
    let mut entries: Vec<Entry> = keys::topic()
        .filter(|key| !key.internal || overrides.contains_key(key.name))
        .map(|key| {
            let names: Vec<&'static str> = key.synonyms.iter().map(|synonym| synonym.name).collect();
            let own = overrides.get(key.name).map(|text| own_value(key, text, Source::Topic));
            let synonyms: Vec<SynonymValue> = own.into_iter().chain(chain(&names, broker)).collect();
            let value = view.get(key).map(text_of);
            entry(key, value, false, synonyms)
        })
        .collect();
    sort(&mut entries);
    entries
}

/// A group, by name of key. S 9.6.5: hidden keys are shown only when they are set.
pub fn describe_group(values: &Values, broker: &Layers) -> Vec<Entry> {
    let mut entries: Vec<Entry> = keys::group()
        .filter(|key| !key.internal || values.contains_key(key.name))
        .map(|key| {
            let own = values.get(key.name).map(|text| own_value(key, text, Source::Group));
            let fallback = match (key.name, key.synonyms.first()) {
                // The first of the broker's assignors is what a group gets.
                ("streams.assignor.name", _) => {
                    chain(&["group.streams.assignors"], broker).into_iter().map(first).collect()
                }
                (_, Some(synonym)) => chain(&[synonym.name], broker),
                (_, None) => {
                    let value = key.default.map(str::to_owned);
                    vec![SynonymValue { name: Cow::Borrowed(key.name), value, source: Source::Default }]
                }
            };
            let synonyms: Vec<SynonymValue> = own.into_iter().chain(fallback).collect();
            let value = synonyms.first().and_then(|synonym| synonym.value.clone());
            entry(key, value, false, synonyms)
        })
        .collect();
    sort(&mut entries);
    entries
}

/// This broker, by name of key, hidden keys only if they are set; `cluster` instead what is set for all brokers.
pub fn describe_broker(layers: &Layers, cluster: bool) -> Vec<Entry> {
    let shown = |key: &Key| match cluster {
        true => layers.cluster.contains_key(key.name),
        false => !key.internal || layers.set(key.name).is_some(),
    };
    let mut entries: Vec<Entry> = keys::described_broker()
        .filter(|key| shown(key))
        .map(|key| {
            let names: Vec<&'static str> =
                std::iter::once(key.name).chain(key.synonyms.iter().map(|synonym| synonym.name)).collect();
            let mut synonyms = chain(&names, layers);
            if cluster {
                synonyms.retain(|synonym| synonym.source == Source::ClusterDefault);
            }
            let set = if cluster {
                layers.cluster.get(key.name).map(String::as_str)
            } else {
                layers.set(key.name).map(|(text, _)| text)
            };
            let value = set.or(key.default).map(|text| normalised(key, text));
            entry(key, value, key.update == Update::ReadOnly, synonyms)
        })
        .collect();
    entries.extend(custom(layers, cluster));
    sort(&mut entries);
    entries
}

/// What was set dynamically on a key that nobody knows: it may be a secret of a plug-in, so its value is not shown.
fn custom(layers: &Layers, cluster: bool) -> Vec<Entry> {
    let sources = [(&layers.broker, Source::Broker), (&layers.cluster, Source::ClusterDefault)];
    let mut entries: Vec<Entry> = Vec::new();
    for (values, source) in sources.into_iter().filter(|(_, source)| !cluster || *source == Source::ClusterDefault) {
        for name in values.keys().filter(|name| keys::find_described_broker(name).is_none()) {
            let synonym = SynonymValue { name: Cow::Owned(name.clone()), value: None, source };
            match entries.iter_mut().find(|entry| entry.name == *name) {
                Some(entry) => entry.synonyms.push(synonym),
                None => entries.push(Entry {
                    name: Cow::Owned(name.clone()),
                    value: None,
                    read_only: true,
                    source,
                    sensitive: true,
                    kind: Kind::Unknown,
                    synonyms: vec![synonym],
                    documentation: String::new(),
                }),
            }
        }
    }
    entries
}

fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
}

fn entry(key: &'static Key, value: Option<String>, read_only: bool, mut synonyms: Vec<SynonymValue>) -> Entry {
    let sensitive = key.sensitive();
    if sensitive {
        synonyms.iter_mut().for_each(|synonym| synonym.value = None);
    }
    Entry {
        name: Cow::Borrowed(key.name),
        value: value.filter(|_| !sensitive),
        read_only,
        source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
        sensitive,
        kind: key.kind,
        synonyms,
        documentation: match key.support {
            Support::Inert(why) => format!("Accepted, but without effect: {why}."),
            Support::Used | Support::Refused(_) => key.doc.to_owned(),
        },
    }
}

/// Kafka's order: every name where it is set dynamically for this broker, then for all brokers, then at the start, then defaults;
/// what stands before the first name's first value is left out.
fn chain(names: &[&'static str], layers: &Layers) -> Vec<SynonymValue> {
    let set =
        [(&layers.broker, Source::Broker), (&layers.cluster, Source::ClusterDefault), (&layers.fixed, Source::Static)];
    let mut all: Vec<SynonymValue> = Vec::new();
    for (values, source) in set {
        for name in names {
            if let Some(text) = values.get(*name) {
                let value = keys::find_described_broker(name).map(|key| normalised(key, text));
                all.push(SynonymValue { name: Cow::Borrowed(*name), value, source });
            }
        }
    }
    for name in names {
        if let Some(key) = keys::find_described_broker(name)
            && let Some(text) = key.default
        {
            all.push(SynonymValue {
                name: Cow::Borrowed(*name),
                value: Some(normalised(key, text)),
                source: Source::Default,
            });
        }
    }
    let Some(first) = names.first() else { return all };
    all.into_iter().skip_while(|synonym| synonym.name != *first).collect()
}

fn own_value(key: &'static Key, text: &str, source: Source) -> SynonymValue {
    SynonymValue { name: Cow::Borrowed(key.name), value: Some(normalised(key, text)), source }
}

fn first(synonym: SynonymValue) -> SynonymValue {
    let value = synonym.value.map(|list| list.split(',').next().unwrap_or_default().to_owned());
    SynonymValue { value, ..synonym }
}

/// As Kafka writes a value that it has parsed.
fn normalised(key: &Key, text: &str) -> String {
    value::parse(key, text).map_or_else(|_| text.to_owned(), text_of)
}

fn text_of(value: Value) -> String {
    match value {
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Double(number) => format!("{number:?}"),
        Value::Text(text) => text,
        Value::List(list) => list.join(","),
    }
}
