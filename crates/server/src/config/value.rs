//! Turning the text of a configuration value into what it means, with Kafka's words when it cannot.

use thiserror::Error;

use super::key::{Check, Key, Kind};

/// A value that its key does not allow. The texts are Kafka's, because clients and tools show and match them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    #[error("Invalid value {value} for configuration {key}: {why}")]
    Invalid { key: &'static str, value: String, why: String },
    #[error("Configuration '{0}' values must not be empty.")]
    EmptyElement(&'static str),
    #[error("{0} must not contain duplicate tag keys.")]
    DuplicateTag(&'static str),
    #[error("Configuration '{0}' must not be empty. Valid values include: any non-empty value")]
    EmptyList(&'static str),
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Boolean(bool),
    /// INT, SHORT and LONG; within the bounds of the key's type.
    Integer(i64),
    Double(f64),
    /// STRING, CLASS and PASSWORD.
    Text(String),
    /// In the order given; each element once, as Kafka does, unless the key's check is about that.
    List(Vec<String>),
}

/// Parses and checks `text` as a value of `key`.
pub fn parse(key: &Key, text: &str) -> Result<Value, ValueError> {
    let value = parse_kind(key, text.trim())?;
    check(key, &value)?;
    Ok(value)
}

fn invalid(key: &Key, value: impl ToString, why: impl Into<String>) -> ValueError {
    ValueError::Invalid { key: key.name, value: value.to_string(), why: why.into() }
}

fn parse_kind(key: &Key, text: &str) -> Result<Value, ValueError> {
    let not_a_number = || invalid(key, text, format!("Not a number of type {}", key.kind.name()));
    match key.kind {
        Kind::Boolean if text.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
        Kind::Boolean if text.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
        Kind::Boolean => Err(invalid(key, text, "Expected value to be either true or false")),
        Kind::Int => text.parse::<i32>().map(|v| Value::Integer(v.into())).map_err(|_| not_a_number()),
        Kind::Short => text.parse::<i16>().map(|v| Value::Integer(v.into())).map_err(|_| not_a_number()),
        Kind::Long => text.parse::<i64>().map(Value::Integer).map_err(|_| not_a_number()),
        Kind::Double => parse_double(text).map(Value::Double).ok_or_else(not_a_number),
        Kind::String | Kind::Class | Kind::Password | Kind::Unknown => Ok(Value::Text(text.to_owned())),
        Kind::List => parse_list(key, text),
    }
}

/// Java's notation, which allows a type letter at the end.
fn parse_double(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    digits.parse().ok().filter(|v: &f64| !v.is_nan())
}

fn parse_list(key: &Key, text: &str) -> Result<Value, ValueError> {
    let mut elements: Vec<String> = Vec::new();
    if text.is_empty() {
        return Ok(Value::List(elements));
    }
    for element in text.split(',').map(str::trim) {
        if element.is_empty() {
            return Err(ValueError::EmptyElement(key.name));
        }
        if key.check == Check::Distinct || !elements.iter().any(|e| e == element) {
            elements.push(element.to_owned());
        }
    }
    Ok(Value::List(elements))
}

fn check(key: &Key, value: &Value) -> Result<(), ValueError> {
    match (key.check, value) {
        (Check::Anything, _) => Ok(()),
        (Check::AtLeast(min), Value::Integer(v)) => check_range(key, *v, min, i64::MAX),
        (Check::Between(min, max), Value::Integer(v)) => check_range(key, *v, min, max),
        (Check::Between(min, max), Value::Double(v)) => check_double(key, *v, min, max),
        (Check::BetweenOr(min, max, other), Value::Integer(v)) => {
            if *v == other || (min..=max).contains(v) {
                return Ok(());
            }
            Err(invalid(key, v, format!("Value must be between {min} and {max} or equal to {other}")))
        }
        (Check::OneOf(allowed), Value::Text(v)) => check_one_of(key, v, allowed),
        (Check::OneOf(allowed), Value::List(list)) => list.iter().try_for_each(|v| check_one_of(key, v, allowed)),
        (Check::OffsetReset, Value::Text(v)) => {
            let known = matches!(v.as_str(), "earliest" | "latest");
            if known || v.strip_prefix("by_duration:").is_some_and(is_duration) {
                return Ok(());
            }
            Err(invalid(key, v, "must be earliest, latest or by_duration:DURATION".to_owned()))
        }
        (Check::OneOfAnyCase(allowed), Value::Text(v)) => {
            if allowed.iter().any(|a| a.eq_ignore_ascii_case(v)) {
                return Ok(());
            }
            Err(invalid(key, v, format!("String must be one of (case insensitive): {}", allowed.join(", "))))
        }
        (Check::NotEmpty, Value::List(list)) if list.is_empty() => Err(ValueError::EmptyList(key.name)),
        (Check::NotEmpty, Value::Text(text)) if text.is_empty() => Err(ValueError::EmptyList(key.name)),
        (Check::Distinct, Value::List(list)) if list.iter().enumerate().any(|(at, e)| list[..at].contains(e)) => {
            Err(ValueError::DuplicateTag(key.name))
        }
        (Check::Replicas, Value::List(list)) => check_replicas(key, list),
        _ => Ok(()),
    }
}

/// Of ISO 8601, as far as its letters go.
fn is_duration(text: &str) -> bool {
    text.strip_prefix('P').is_some_and(|rest| {
        rest.bytes().any(|b| b.is_ascii_digit()) && rest.bytes().all(|b| b.is_ascii_digit() || b".TDHMS".contains(&b))
    })
}

fn check_range(key: &Key, value: i64, min: i64, max: i64) -> Result<(), ValueError> {
    if value < min {
        return Err(invalid(key, value, format!("Value must be at least {min}")));
    }
    if value > max {
        return Err(invalid(key, value, format!("Value must be no more than {max}")));
    }
    Ok(())
}

fn check_double(key: &Key, value: f64, min: i64, max: i64) -> Result<(), ValueError> {
    // `{:?}` writes 2.0 where `{}` writes 2; Java writes 2.0.
    if value < min as f64 {
        return Err(invalid(key, format!("{value:?}"), format!("Value must be at least {min}")));
    }
    if value > max as f64 {
        return Err(invalid(key, format!("{value:?}"), format!("Value must be no more than {max}")));
    }
    Ok(())
}

fn check_one_of(key: &Key, value: &str, allowed: &[&str]) -> Result<(), ValueError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(invalid(key, value, format!("String must be one of: {}", allowed.join(", "))))
}

fn check_replicas(key: &Key, list: &[String]) -> Result<(), ValueError> {
    let pair = |text: &str| {
        text.split_once(':').is_some_and(|(partition, broker)| {
            [partition, broker].iter().all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    if matches!(list, [star] if star == "*") || list.iter().all(|element| pair(element)) {
        return Ok(());
    }
    let name = key.name;
    Err(invalid(
        key,
        format!("[{}]", list.join(", ")),
        format!(
            "{name} must be the literal '*' or a list of replicas in the following format: \
             [partitionId]:[brokerId],[partitionId]:[brokerId],..."
        ),
    ))
}
