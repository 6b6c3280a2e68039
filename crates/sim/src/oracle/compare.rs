//! Answers of two coordinators side by side. Kafka's arrays come in the order of its hash tables, so arrays of structs and of
//! names are compared as sets, and records of one type that follow each other by key.

use serde_json::{Map, Value};

use super::codec;

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

impl Difference {
    /// A law that a target of ours breaks.
    pub fn of_law(broken: String) -> Difference {
        Difference { at: "law".into(), kafka: Value::Null, ours: broken.into() }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Of two lists only what the other has not, unless it is the order that differs.
        let more = |of: &Value, than: &Value| -> Value {
            match (of, than) {
                (Value::Array(of), Value::Array(than)) => {
                    of.iter().filter(|element| !than.contains(element)).cloned().collect()
                }
                (of, _) => of.clone(),
            }
        };
        let (kafka, ours) = (more(&self.kafka, &self.ours), more(&self.ours, &self.kafka));
        match kafka == ours {
            true => write!(f, "{}: Kafka {}, we {}", self.at, self.kafka, self.ours),
            false => write!(f, "{}: Kafka {kafka}, we {ours}", self.at),
        }
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
            let normal = |(key, value): (&String, &Value)| {
                let value = match value.as_str() {
                    Some(text) if key == "assignment" => assignment(text).map_or_else(|| sorted(value), Value::from),
                    _ => sorted(value),
                };
                (key.clone(), value)
            };
            let mut fields: Map<String, Value> = fields.iter().map(normal).collect();
            sort_partitions(&mut fields);
            fields.into()
        }
        Value::String(text) => in_own_words(text).into(),
        other => other.clone(),
    }
}

/// An assignment of the consumer's embedded protocol, whose topics come in the order of a hash table, with sorted topics;
/// none if it is something else.
fn assignment(text: &str) -> Option<String> {
    let bytes = codec::bytes_of(text).ok()?;
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let (mut at, mut topics) = (6, Vec::new());
    for _ in 0..number(2)? {
        let name = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?) as usize;
        let end = number(at + 2 + name)?.checked_mul(4)?.checked_add(at + 6 + name)?;
        topics.push(bytes.get(at..end)?);
        at = end;
    }
    topics.sort_unstable();
    Some(codec::bytes_text(&[bytes.get(..6)?, &topics.concat(), bytes.get(at..)?].concat()))
}

/// Partitions are a set, alone or with the epoch of each.
fn sort_partitions(fields: &mut Map<String, Value>) {
    let Some(Value::Array(partitions)) = fields.get("partitions") else { return };
    if !partitions.iter().all(Value::is_number) {
        return;
    }
    let mut order: Vec<usize> = (0..partitions.len()).collect();
    order.sort_by_key(|index| partitions[*index].as_i64());
    for list in ["partitions", "assignmentEpochs"] {
        if let Some(Value::Array(elements)) = fields.get_mut(list)
            && elements.len() == order.len()
        {
            *elements = order.iter().map(|index| elements[*index].clone()).collect();
        }
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
    fn the_order_of_topics_in_an_assignment_does_not_count() {
        let assignment = |text: &str| json!({"response": {"assignment": text}});
        let [a, b] = ["AAMAAAACAAFhAAAAAQAAAAAAAWIAAAAA/////w==", "AAMAAAACAAFiAAAAAAABYQAAAAEAAAAA/////w=="];
        assert_eq!(answers(&assignment(a), &assignment(b)), []);
        assert_eq!(answers(&assignment(a), &assignment("AAMAAAABAAFiAAAAAP////8=")).len(), 1);
        for short in ["", "AQ==", "AAMAAAAC", "AAMAAAACAAFh", "AAP/////"] {
            assert_eq!(answers(&assignment(short), &assignment(short)), []);
        }
    }

    #[test]
    fn arrays_of_numbers_keep_their_order() {
        let found = answers(&json!({"response": {"p": [1, 2]}}), &json!({"response": {"p": [2, 1]}}));
        assert_eq!(found.len(), 2);
        let with_epochs = |partitions: [i32; 2], epochs: [i32; 2]| json!({"response": {"partitions": partitions, "assignmentEpochs": epochs}});
        assert_eq!(answers(&with_epochs([1, 2], [3, 4]), &with_epochs([2, 1], [3, 4])).len(), 2);
        assert_eq!(answers(&with_epochs([1, 2], [3, 4]), &with_epochs([2, 1], [4, 3])), []);
        let alone = |partitions: [i32; 2]| json!({"response": {"partitions": partitions}});
        assert_eq!(answers(&alone([1, 2]), &alone([2, 1])), []);
    }
}
