//! The values of broker keys by where they were set, and what holds in the end.

use std::collections::BTreeMap;

use super::key::Key;
use super::keys;
use super::value::{self, Value};

/// Checked values by key.
pub type Values = BTreeMap<String, String>;

/// Where a value comes from; the numbers are those of DescribeConfigs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Topic = 1,
    Broker = 2,
    ClusterDefault = 3,
    Static = 4,
    Default = 5,
    Group = 8,
}

/// From the strongest to the weakest: this broker's dynamic values, those for all brokers, the start configuration, defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layers {
    pub broker: Values,
    pub cluster: Values,
    pub fixed: Values,
}

impl Layers {
    pub fn of_static(fixed: Values) -> Layers {
        Layers { fixed, ..Layers::default() }
    }

    /// The value that was set for exactly this name, and where.
    pub fn set(&self, name: &str) -> Option<(&str, Source)> {
        [(&self.broker, Source::Broker), (&self.cluster, Source::ClusterDefault), (&self.fixed, Source::Static)]
            .into_iter()
            .find_map(|(values, source)| values.get(name).map(|value| (value.as_str(), source)))
    }

    /// What was set for the key or, in its unit, for the first of its synonyms that is set.
    pub fn configured(&self, key: &Key) -> Option<Value> {
        let own = self.set(key.name).and_then(|(text, _)| value::parse(key, text).ok());
        own.or_else(|| {
            key.synonyms.iter().filter(|synonym| synonym.name != key.name).find_map(|synonym| {
                let (text, _) = self.set(synonym.name)?;
                scaled(key, text, synonym.name, synonym.factor)
            })
        })
    }

    /// A configured INT, SHORT or LONG.
    pub fn configured_int(&self, key: &Key) -> Option<i32> {
        match self.configured(key)? {
            Value::Integer(number) => i32::try_from(number).ok(),
            _ => None,
        }
    }
}

impl Lookup for Layers {
    /// The value that holds: configured, or the default, or nothing for keys without one.
    fn get(&self, key: &Key) -> Option<Value> {
        self.configured(key).or_else(|| {
            let own = key.default.and_then(|text| value::parse(key, text).ok());
            own.or_else(|| {
                key.synonyms.iter().filter(|synonym| synonym.name != key.name).find_map(|synonym| {
                    scaled(key, keys::find_broker(synonym.name)?.default?, synonym.name, synonym.factor)
                })
            })
        })
    }
}

/// Values by key, typed. A key's type and default are in its definition, so a caller that asks for the wrong type, or for a key
/// that may be null, gets the type's zero.
pub trait Lookup {
    /// The value that holds; `None` is null.
    fn get(&self, key: &Key) -> Option<Value>;

    /// INT, SHORT and LONG keys.
    fn long(&self, key: &Key) -> i64 {
        match self.get(key) {
            Some(Value::Integer(number)) => number,
            _ => 0,
        }
    }

    fn int(&self, key: &Key) -> i32 {
        self.long(key).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    /// Negative values are 0.
    fn unsigned(&self, key: &Key) -> u32 {
        self.long(key).clamp(0, u32::MAX.into()) as u32
    }

    fn boolean(&self, key: &Key) -> bool {
        matches!(self.get(key), Some(Value::Boolean(true)))
    }

    fn double(&self, key: &Key) -> f64 {
        match self.get(key) {
            Some(Value::Double(number)) => number,
            _ => 0.0,
        }
    }

    fn text(&self, key: &Key) -> Option<String> {
        match self.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn list(&self, key: &Key) -> Vec<String> {
        match self.get(key) {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }
}

/// A synonym's value in the key's own unit. Negative values mean "no limit" in every unit.
fn scaled(key: &Key, text: &str, name: &str, factor: i64) -> Option<Value> {
    let synonym = keys::find_broker(name)?;
    match value::parse(synonym, text).ok()? {
        Value::Integer(number) if factor != 1 && number >= 0 => Some(Value::Integer(number.saturating_mul(factor))),
        Value::Integer(number) if factor != 1 => Some(Value::Integer(number.max(-1))),
        other => {
            // A key and its synonyms in the same unit have the same type.
            debug_assert_eq!(key.kind == super::key::Kind::List, synonym.kind == super::key::Kind::List);
            Some(other)
        }
    }
}
