//! The language of the scenario files: variables, lists with a key written as maps, and expectations.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};
use wire::ErrorCode;

static VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$(?:\((\w+)([+-]\d+)?\)|\{(\w+)\}|([A-Za-z_]\w*))").expect("a regular expression"));

/// Marks a map that was made of a list: it has to match completely.
const COMPLETE: &str = "\u{0}complete";

/// Definitions that all files share.
#[derive(Default)]
pub(super) struct Language {
    /// Abbreviations: name to what it stands for, with `$value` in it.
    pub short: Map<String, Value>,
    /// Field to the name of the key field, and of the value field if the rest is only that.
    pub fold: BTreeMap<String, (String, Option<String>)>,
}

pub(super) type Vars = BTreeMap<String, Value>;

/// Puts variables and built values in.
pub(super) fn fill(value: &Value, vars: &Vars) -> Value {
    match value {
        Value::String(text) => fill_text(text, vars),
        Value::Array(items) => items.iter().map(|item| fill(item, vars)).collect(),
        Value::Object(fields) => {
            if fields.len() == 1
                && let Some(built) = fields.iter().next().and_then(|(name, arg)| build(name, &fill(arg, vars)))
            {
                return built;
            }
            let filled = fields.iter().map(|(name, item)| (plain(&fill_text(name, vars)), fill(item, vars)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn build(name: &str, arg: &Value) -> Option<Value> {
    match name {
        "<repeat>" => Some(json!(arg[0].as_str()?.repeat(arg[1].as_u64()? as usize))),
        "<at>" => Some(arg[0][arg[1].as_u64()? as usize].clone()),
        "<minus>" => {
            let gone: Vec<String> =
                arg.as_array()?[1..].iter().filter_map(Value::as_array).flatten().map(plain).collect();
            Some(arg[0].as_array()?.iter().filter(|item| !gone.contains(&plain(item))).cloned().collect())
        }
        "<utf8>" => Some(arg.clone()),
        _ => None,
    }
}

fn fill_text(text: &str, vars: &Vars) -> Value {
    if !text.contains('$') {
        return json!(text);
    }
    let lookup = |captures: &regex::Captures<'_>| {
        let name = captures.get(1).or(captures.get(3)).or(captures.get(4)).expect("one of the forms").as_str();
        let value = vars.get(name).unwrap_or_else(|| panic!("variable ${name} is not set")).clone();
        match captures.get(2) {
            None => value,
            Some(sum) => json!(value.as_i64().expect("a number") + sum.as_str().parse::<i64>().expect("a number")),
        }
    };
    if let Some(captures) = VARIABLE.captures(text)
        && captures.get(0).is_some_and(|all| all.as_str() == text)
    {
        return lookup(&captures);
    }
    json!(VARIABLE.replace_all(text, |captures: &regex::Captures<'_>| plain(&lookup(captures))).into_owned())
}

/// A value as it stands in a text.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Language {
    /// Replaces abbreviations at the top of a map.
    pub(super) fn expand(&self, fields: &Map<String, Value>) -> Map<String, Value> {
        let mut expanded = Map::new();
        for (name, value) in fields {
            match self.short.get(name) {
                None => _ = expanded.insert(name.clone(), value.clone()),
                Some(meaning) => {
                    let meaning = meaning.as_object().expect("an abbreviation is a map");
                    expanded.extend(meaning.iter().map(|(field, text)| (field.clone(), put_value(text, value))));
                }
            }
        }
        expanded
    }

    /// Maps that stand for lists become lists, for a request.
    pub(super) fn unfold(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.unfold(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(name, _)| *name != COMPLETE).map(|(name, item)| {
                    let item = match (self.fold.get(name), item) {
                        (Some((key, rest)), Value::Object(entries)) => {
                            self.unfold_entries(key, rest.as_deref(), entries)
                        }
                        (_, item) => self.unfold(item),
                    };
                    (name.clone(), item)
                });
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn unfold_entries(&self, key: &str, rest: Option<&str>, entries: &Map<String, Value>) -> Value {
        let each = entries.iter().filter(|(name, _)| *name != COMPLETE).map(|(name, item)| {
            let mut element = match rest {
                None => self.unfold(item).as_object().cloned().expect("an element is a map"),
                Some(field) => Map::from_iter([(field.to_owned(), self.unfold(item))]),
            };
            element.insert(key.to_owned(), json!(name));
            Value::Object(element)
        });
        each.collect()
    }

    /// Lists with a key become maps, in an answer.
    pub(super) fn fold(&self, value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| self.fold(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, item)| {
                    let item = self.fold(item);
                    let folded = self.fold.get(name).and_then(|(key, rest)| fold_list(key, rest.as_deref(), &item));
                    (name.clone(), folded.unwrap_or(item))
                });
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }
}

fn put_value(text: &Value, value: &Value) -> Value {
    match text {
        Value::String(text) if text == "$value" => value.clone(),
        Value::String(text) => json!(text.replace("$value", &plain(value))),
        other => other.clone(),
    }
}

fn fold_list(key: &str, rest: Option<&str>, list: &Value) -> Option<Value> {
    let items = list.as_array().filter(|items| !items.is_empty())?;
    let mut folded = Map::new();
    for item in items {
        let mut fields = item.as_object()?.clone();
        let name = match fields.remove(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            name => plain(&name),
        };
        let item = match rest {
            Some(field) => fields.remove(field)?,
            None => Value::Object(fields),
        };
        if folded.insert(name, item).is_some() {
            return None;
        }
    }
    folded.insert(COMPLETE.to_owned(), json!(true));
    Some(Value::Object(folded))
}

/// What is at a path of names and indexes.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

/// `None` if `actual` is as expected, else what differs. Variables may be set by `<as name>`.
pub(super) fn mismatch(expected: &Value, actual: Option<&Value>, path: &str) -> Option<String> {
    match expected {
        Value::String(text) if text.starts_with('<') && text.ends_with('>') => {
            let ok = matcher(text[1..text.len() - 1].trim(), actual, path);
            (!ok).then(|| differs(path, expected, actual))
        }
        Value::Object(fields) => object(fields, expected, actual, path),
        Value::Array(items) => {
            let Some(actual) = actual else { return Some(differs(path, expected, None)) };
            if items.is_empty() && size(actual) == Some(0) {
                return None;
            }
            match actual.as_array() {
                Some(found) if found.len() == items.len() => items
                    .iter()
                    .zip(found)
                    .enumerate()
                    .find_map(|(at, (item, found))| mismatch(item, Some(found), &format!("{path}[{at}]"))),
                _ => Some(differs(path, expected, Some(actual))),
            }
        }
        Value::String(text) if path.ends_with("rrorCode") => {
            let named = ErrorCode::ALL.iter().find(|code| code.name() == text);
            let code = named.unwrap_or_else(|| panic!("no such error: {text}")).code();
            (actual != Some(&json!(code))).then(|| differs(path, expected, actual))
        }
        expected => (actual != Some(expected)).then(|| differs(path, expected, actual)),
    }
}

fn size(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::Object(fields) => Some(fields.keys().filter(|name| *name != COMPLETE).count()),
        _ => None,
    }
}

fn object(fields: &Map<String, Value>, expected: &Value, actual: Option<&Value>, path: &str) -> Option<String> {
    let items = || actual.and_then(Value::as_array).cloned().unwrap_or_default();
    let fits = |expected: &Value, actual: &Value| mismatch(expected, Some(actual), path).is_none();
    let (mut named, mut more) = (0, false);
    for (name, arg) in fields {
        let args = || arg.as_array().cloned().unwrap_or_default();
        let ok = match name.as_str() {
            "<more>" => {
                more = true;
                true
            }
            "<size>" => actual.and_then(size).is_some_and(|size| fits(arg, &json!(size))),
            "<unordered>" => items().len() == args().len() && pair(&args(), &mut items(), path),
            "<includes>" => pair(&args(), &mut items(), path),
            "<excludes>" => !args().iter().any(|arg| items().iter().any(|item| fits(arg, item))),
            "<every>" => items().iter().all(|item| fits(arg, item)),
            "<all of>" => args().iter().all(|arg| mismatch(arg, actual, path).is_none()),
            "<any of>" => args().iter().any(|arg| mismatch(arg, actual, path).is_none()),
            "<not>" => mismatch(arg, actual, path).is_some(),
            COMPLETE => true,
            _ => {
                named += 1;
                true
            }
        };
        if !ok {
            return Some(differs(path, expected, actual));
        }
    }
    if named == 0 && !fields.is_empty() {
        return None;
    }
    let Some(actual) = actual else { return Some(differs(path, expected, None)) };
    if fields.is_empty() && size(actual) == Some(0) {
        return None;
    }
    if actual.as_object().is_none() {
        return Some(differs(path, expected, Some(actual)));
    }
    let complete = actual.get(COMPLETE).is_some() && !more;
    if complete && size(actual) != Some(named) {
        return Some(differs(path, expected, Some(actual)));
    }
    let plain_fields = fields.iter().filter(|(name, _)| !name.starts_with('<') && *name != COMPLETE);
    plain_fields.into_iter().find_map(|(name, item)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        mismatch(item, actual.get(name), &path)
    })
}

/// Whether each expectation finds an item of its own.
fn pair(expected: &[Value], items: &mut Vec<Value>, path: &str) -> bool {
    let Some((first, others)) = expected.split_first() else { return true };
    for at in 0..items.len() {
        if mismatch(first, Some(&items[at]), path).is_none() {
            let taken = items.remove(at);
            if pair(others, items, path) {
                return true;
            }
            items.insert(at, taken);
        }
    }
    false
}

fn matcher(text: &str, actual: Option<&Value>, path: &str) -> bool {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let Some(actual) = actual else { return word == "absent" };
    let number = actual.as_i64();
    let length = size(actual).or_else(|| actual.as_str().map(str::len));
    if let Some((low, high)) = text.split_once("..") {
        let bound = |text: &str| text.parse::<i64>().expect("a number");
        return number.is_some_and(|number| (bound(low)..=bound(high)).contains(&number));
    }
    match word {
        "any" => true,
        "absent" => false,
        "null" => actual.is_null(),
        "empty" => length == Some(0),
        "nonempty" => length.is_some_and(|length| length > 0) || number.is_some(),
        "has" => actual.as_str().is_some_and(|text| text.to_lowercase().contains(&rest.to_lowercase())),
        "re" => Regex::new(rest).expect("a regular expression").is_match(actual.as_str().unwrap_or("")),
        "min" => number.is_some_and(|number| number >= rest.parse().expect("a number")),
        "max" => number.is_some_and(|number| number <= rest.parse().expect("a number")),
        "size" => size(actual) == rest.parse().ok(),
        "not" => {
            let other = serde_json::from_str(rest).unwrap_or_else(|_| json!(rest));
            mismatch(&other, Some(actual), path).is_some()
        }
        _ => panic!("no such matcher: <{text}>"),
    }
}

fn differs(path: &str, expected: &Value, actual: Option<&Value>) -> String {
    let actual = actual.map_or("no such field".to_owned(), |actual| actual.to_string().replace("\\u0000", "@"));
    format!("{}: expected {expected}, got {actual}", if path.is_empty() { "answer" } else { path })
}
