//! Answers of two coordinators side by side. Kafka's arrays come in the order of its hash tables, so arrays of structs and of
//! names are compared as sets, and records of one type that follow each other by key.

use serde_json::{Map, Value};

/// Has the version of the metadata in it, which each broker counts by itself.
pub(super) const RESOLVED_REGEX: i16 = 16;

/// Names follow, in the order of a hash table.
const LISTS: [&str; 2] = ["Internal topics are missing: ", "Supported assignors: "];
/// What is wrong with an expression follows, in the words of the library.
const INVALID_REGEX: &str = "is not a valid regular expression: ";

/// One difference: where, what the oracle says, what we say.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub at: String,
    pub kafka: Value,
    pub ours: Value,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: Kafka {}, we {}", self.at, self.kafka, self.ours)
    }
}

/// What differs between two answers to one command.
pub fn answers(kafka: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    if kafka.get("fault").is_some() || ours.get("fault").is_some() {
        if kafka.get("fault").is_some() != ours.get("fault").is_some() {
            difference("fault", &kafka["fault"], &ours["fault"], &mut found);
        }
        return found;
    }
    for key in ["response", "parked", "creatableTopics", "records", "completed", "log", "timers", "now"] {
        let [kafka, ours] = [kafka, ours].map(|answer| normal(key, answer.get(key).unwrap_or(&Value::Null)));
        values(key, &kafka, &ours, &mut found);
    }
    if kafka.get("response").is_none() && kafka["error"]["code"] != ours["error"]["code"] {
        difference("error", &kafka["error"], &ours["error"], &mut found);
    }
    found
}

fn difference(at: &str, kafka: &Value, ours: &Value, found: &mut Vec<Difference>) {
    found.push(Difference { at: at.to_owned(), kafka: kafka.clone(), ours: ours.clone() });
}

/// Goes down to where two values differ.
fn values(at: &str, kafka: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (kafka, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let only_ours = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_ours) {
                let [a, b] = [a, b].map(|map| map.get(key).unwrap_or(&Value::Null));
                values(&format!("{at}.{key}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                values(&format!("{at}[{index}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => difference(at, a, b, found),
    }
}

fn normal(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("records" | "log", Value::Array(records)) => runs(records).into(),
        ("completed", Value::Array(completed)) => {
            let mut completed: Vec<Value> = completed.iter().map(late).collect();
            completed.sort_by_key(|late| late["id"].to_string());
            completed.into()
        }
        ("response", value) => sorted(&on_the_wire(value)),
        _ => sorted(value),
    }
}

/// What Kafka's response class does to an answer to JoinGroup: from v7 on an absent protocol is null, before it is empty.
fn on_the_wire(response: &Value) -> Value {
    let mut response = response.clone();
    let absent = response["protocolName"].as_str().unwrap_or_default().is_empty();
    if response.get("leader").is_some() && absent {
        let nullable = response.get("protocolType").is_some();
        response["protocolName"] = if nullable { Value::Null } else { "".into() };
    }
    response
}

/// A late answer without the error, which repeats what the response says.
fn late(late: &Value) -> Value {
    let mut normal = Map::new();
    normal.insert("id".into(), late["id"].clone());
    normal.insert("response".into(), sorted(&on_the_wire(&late["response"])));
    normal.into()
}

/// Arrays of structs and of names sorted by their text, everywhere inside.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(elements) => {
            let mut elements: Vec<Value> = elements.iter().map(sorted).collect();
            if elements.iter().all(|element| element.is_object() || element.is_string()) {
                elements.sort_by_cached_key(Value::to_string);
            }
            elements.into()
        }
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            // Partitions alone are a set; beside their epochs they are a list.
            let alone = !fields.contains_key("assignmentEpochs");
            if let (true, Some(Value::Array(partitions))) = (alone, fields.get_mut("partitions"))
                && partitions.iter().all(Value::is_number)
            {
                partitions.sort_by_key(Value::as_i64);
            }
            fields.into()
        }
        Value::String(text) => in_own_words(text).into(),
        other => other.clone(),
    }
}

/// A text without what is left to the library or to the order of a hash table.
fn in_own_words(text: &str) -> String {
    if let Some((before, _)) = text.split_once(INVALID_REGEX) {
        return format!("{before}{INVALID_REGEX}");
    }
    for list in LISTS {
        if let Some((before, names)) = text.split_once(list) {
            let mut names: Vec<&str> = names.trim_end_matches('.').split(", ").collect();
            names.sort_unstable();
            return format!("{before}{list}{}", names.join(", "));
        }
    }
    text.to_owned()
}

/// Sorts by key within each run of records of one type.
fn runs(records: &[Value]) -> Vec<Value> {
    let mut records: Vec<Value> = records.iter().map(sorted).collect();
    for record in records.iter_mut().filter(|record| record["type"] == RESOLVED_REGEX && !record["value"].is_null()) {
        record["value"]["version"] = Value::Null;
    }
    for run in records.chunk_by_mut(|a, b| a["type"] == b["type"]) {
        run.sort_by_cached_key(|record| record["key"].to_string());
    }
    records
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_structs_and_of_neighbouring_records_does_not_count() {
        let record = |kind: i32, key: &str, value: i32| json!({"type": kind, "key": {"m": key}, "value": value});
        let a = json!({"records": [record(1, "b", 1), record(1, "a", 2), record(2, "c", 3)], "response": {"m": [{"x": 1}, {"x": 2}]}});
        let b = json!({"records": [record(1, "a", 2), record(1, "b", 1), record(2, "c", 3)], "response": {"m": [{"x": 2}, {"x": 1}]}});
        assert_eq!(answers(&a, &b), []);
        let other = json!({"records": [record(2, "c", 3), record(1, "a", 2), record(1, "b", 1)], "response": {"m": [{"x": 1}, {"x": 3}]}});
        assert!(!answers(&a, &other).is_empty());
        let found: Vec<_> = answers(&a, &other).iter().map(|d| d.at.clone()).collect();
        assert!(found.contains(&"response.m[1].x".to_owned()), "{found:?}");
    }

    #[test]
    fn the_order_of_one_key_counts() {
        let record = |value: i32| json!({"type": 1, "key": "a", "value": value});
        let found = answers(&json!({"records": [record(1), record(2)]}), &json!({"records": [record(2), record(1)]}));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn arrays_of_numbers_keep_their_order() {
        let found = answers(&json!({"response": {"p": [1, 2]}}), &json!({"response": {"p": [2, 1]}}));
        assert_eq!(found.len(), 2);
        let with_epochs =
            |partitions: [i32; 2]| json!({"response": {"partitions": partitions, "assignmentEpochs": [3, 4]}});
        assert_eq!(answers(&with_epochs([1, 2]), &with_epochs([2, 1])).len(), 2);
        let alone = |partitions: [i32; 2]| json!({"response": {"partitions": partitions}});
        assert_eq!(answers(&alone([1, 2]), &alone([2, 1])), []);
    }
}
