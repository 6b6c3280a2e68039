//! Replays histories that Kafka 4.4's own coordinator answered (`../shared/harness/coordinator-oracle`, with an assignor that
//! deals tasks by turn on both sides): the same answers, the same records to the byte, the same timers.
//!
//! What differs on purpose does not occur in the histories, or is masked here: the wish for a topology description
//! (decision 15), and the resolved counts in describe, which Kafka shows only once a record was written after them. Arrays of structs are compared in sorted order, since Kafka's follow the order of its hash tables.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::{KStr, Uuid};

use super::messages::{self, number, text};
use crate::command::{Caller, Command};
use crate::config::{BrokerConfig, GroupOverrides};
use crate::env::Moment;
use crate::group::Group as AnyGroup;
use crate::outcome::{Effect, Reply};
use crate::record::Record;
use crate::testing::Bench;
use crate::topics::TopicMetadata;

const GROUP: &str = "app";

#[test]
fn kafka_answers_the_same() {
    replay(include_str!("../../../../tests/scenarios/streams-oracle.jsonl"));
}

/// For many more histories than are checked in: `MILLSTREAM_ORACLE` names a file of them.
#[test]
#[ignore = "needs a file made by the oracle"]
fn kafka_answers_the_same_to_many_more() {
    let path = std::env::var("MILLSTREAM_ORACLE").expect("MILLSTREAM_ORACLE names a file");
    replay(&std::fs::read_to_string(path).expect("the file can be read"));
}

fn replay(file: &str) {
    let mut failures = Vec::new();
    for (at, line) in file.lines().enumerate() {
        let history: Value = serde_json::from_str(line).expect("a history is JSON");
        if let Err(why) = History::new(&history).run(&history) {
            failures.push(format!("history {at}: {why}"));
        }
    }
    assert!(failures.is_empty(), "{} histories differ:\n{}", failures.len(), failures.join("\n"));
}

struct History {
    bench: Bench,
}

impl History {
    fn new(history: &Value) -> Self {
        let config = &history["config"];
        let broker = BrokerConfig {
            streams_heartbeat_interval_ms: Some(5_000),
            streams_task_offset_interval_ms: Some(60_000),
            streams_initial_rebalance_delay_ms: Some(number(config, "delay", 0) as i32),
            streams_assignment_interval_ms: Some(number(config, "interval", 0) as i32),
            streams_num_standby_replicas: number(config, "standby", 0) as i32,
            streams_num_warmup_replicas: 0,
            streams_assignors: vec![KStr::from("round-robin")],
            offsets_retention_check_interval_ms: 1_000_000_000,
            ..BrokerConfig::default()
        };
        let mut bench = Bench::with_config(broker);
        bench.set_now(Moment { mono_ms: 77_000, wall_ms: 1_000_000 });
        History { bench }
    }

    fn run(&mut self, history: &Value) -> Result<(), String> {
        for (at, step) in history["steps"].as_array().expect("a list of steps").iter().enumerate() {
            let (op, expected) = (&step[0], &step[1]);
            let answer = self.perform(op);
            let create = self.created();
            let in_order = op["op"] != "advance";
            self.compare(expected, answer, create, in_order).map_err(|why| format!("step {at} {op}: {why}"))?;
        }
        Ok(())
    }

    fn perform(&mut self, op: &Value) -> Option<Value> {
        match op["op"].as_str().expect("an operation") {
            "topics" => self.topics(op),
            "groupConfig" => self.bench.configure_group(GROUP, overrides(&op["configs"])),
            "advance" => self.bench.advance(number(op, "ms", 0) as u64),
            "restart" => self.bench.restart(),
            "request" => return Some(self.request(op)),
            other => panic!("no such operation: {other}"),
        }
        None
    }

    fn topics(&mut self, op: &Value) {
        let wanted: BTreeMap<String, &Value> = op["topics"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|topic| (text(topic, "name").to_string(), topic))
            .collect();
        let gone: Vec<KStr> = self
            .bench
            .topics()
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !wanted.contains_key(&**name))
            .collect();
        for name in gone {
            self.bench.delete_topic(&name);
        }
        for (name, topic) in wanted {
            let id: Uuid = text(topic, "id").parse().expect("a topic id");
            let partitions = number(topic, "partitions", 1) as i32;
            let before = self.bench.topics().get(&name);
            if before.is_none_or(|before| before.id != id || before.partitions != partitions) {
                self.bench.set_topic_metadata(&name, TopicMetadata { id, partitions, rack: None });
            }
        }
    }

    fn request(&mut self, op: &Value) -> Value {
        let version = number(op, "version", 0) as i16;
        let client = op["clientId"].as_str().unwrap_or("client");
        let caller =
            Caller { client_id: KStr::copy(client), client_host: KStr::from("/127.0.0.1"), api_version: version };
        if op["api"] == 89 {
            let group_id = KStr::from(GROUP);
            let command = Command::StreamsGroupDescribe { caller, group_id, include_topology_description: false };
            let Reply::StreamsGroupDescribe(group) = self.bench.ask(command) else { panic!("another reply") };
            return json!({"throttleTimeMs": 0, "groups": [messages::described(&group, version)]});
        }
        let request = Box::new(messages::heartbeat(&op["body"]));
        let Reply::StreamsGroupHeartbeat(answer) = self.bench.ask(Command::StreamsGroupHeartbeat(caller, request))
        else {
            panic!("another reply")
        };
        messages::heartbeat_answer(&answer, version)
    }

    /// Internal topics asked for; they fail at once, as the oracle's are not made either.
    fn created(&mut self) -> Value {
        let mut asked = Vec::new();
        for effect in self.bench.effects() {
            if let Effect::CreateInternalTopics { group_id, topics } = effect {
                let each = topics.iter();
                asked
                    .extend(each.map(|topic| json!([topic.name.as_str(), topic.partitions, topic.replication_factor])));
                self.bench.ask(Command::InternalTopicsCreated { group_id, failures: vec![], unauthorized: vec![] });
            }
        }
        asked.sort_by_key(Value::to_string);
        json!(asked)
    }

    fn compare(
        &mut self,
        expected: &Value,
        answer: Option<Value>,
        create: Value,
        in_order: bool,
    ) -> Result<(), String> {
        let answer = canonical(&answer.unwrap_or(Value::Null));
        let response = canonical(&expected["response"]);
        if let Some(difference) = difference(&response, &answer, "response") {
            return Err(difference);
        }
        let records = self.bench.records();
        let (mut ours, mut theirs) = (encoded(&records), recorded(&expected["records"]));
        if !in_order {
            // After a restart all sessions end together, in the order of a hash table.
            ours.sort();
            theirs.sort();
        }
        if ours != theirs {
            let ours: Vec<_> = records.iter().map(|record| messages::record(record).to_string()).collect();
            let theirs = decoded(&expected["records"]);
            return Err(format!("records: expected\n  {}\ngot\n  {}", theirs.join("\n  "), ours.join("\n  ")));
        }
        let expected_create = if expected["create"].is_null() { json!([]) } else { expected["create"].clone() };
        if expected_create != create {
            return Err(format!("topics to create: expected {expected_create}, got {create}"));
        }
        let (ours, theirs) = (self.timers(), self.expected_timers(&expected["timers"]));
        if ours != theirs { Err(format!("timers: expected {theirs:?}, got {ours:?}")) } else { Ok(()) }
    }

    /// Names as Kafka has them, with the milliseconds that are left.
    fn timers(&self) -> BTreeMap<String, i64> {
        let quoted = |name: &str, field: &str| {
            let after = name.split(&format!("{field}: \"")).nth(1)?;
            after.split('"').next().map(str::to_owned)
        };
        let timers = self.bench.timers().into_iter().filter_map(|(left, name)| {
            let member = quoted(&name, "member_id").unwrap_or_default();
            let kind = ["Session", "Rebalance", "InitialDelay"].into_iter().find(|kind| name.contains(kind))?;
            let kafkas = match kind {
                "Session" => format!("session-timeout-{GROUP}-{member}"),
                "Rebalance" => format!("rebalance-timeout-{GROUP}-{member}"),
                _ => format!("initial-rebalance-timeout-{GROUP}"),
            };
            Some((kafkas, left as i64))
        });
        timers.collect()
    }

    /// Kafka leaves the session timers of replaced static members to run out.
    fn expected_timers(&self, timers: &Value) -> BTreeMap<String, i64> {
        let members: Vec<String> = match self.bench.shard().state().group(GROUP) {
            Some(AnyGroup::Streams(group)) => group.members.keys().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let timers = timers.as_object().into_iter().flatten();
        let known = timers.filter(|(name, _)| {
            name.starts_with("initial") || members.iter().any(|member| name.ends_with(&format!("-{member}")))
        });
        known.map(|(name, left)| (name.clone(), left.as_i64().expect("milliseconds"))).collect()
    }
}

fn overrides(configs: &Value) -> GroupOverrides {
    let int = |name: &str| configs[name].as_str().map(|value| value.parse().expect("a number"));
    let tags = configs["streams.rack.aware.assignment.tags"].as_str();
    GroupOverrides {
        streams_num_standby_replicas: int("streams.num.standby.replicas"),
        streams_heartbeat_interval_ms: int("streams.heartbeat.interval.ms"),
        streams_rack_aware_assignment_tags: tags.map(|tags| tags.split(',').map(KStr::copy).collect()),
        ..GroupOverrides::default()
    }
}

/// Arrays of structs sorted, what differs on purpose removed.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(canonical).collect();
            if items.first().is_some_and(Value::is_object) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::Object(fields) => {
            let masked = ["topologyDescriptionRequired", "stateChangelogTopics", "repartitionSourceTopics"];
            let fields = fields.iter().filter(|(name, _)| !masked.contains(&name.as_str()));
            Value::Object(fields.map(|(name, item)| (name.clone(), canonical(item))).collect())
        }
        Value::String(text) => match text.strip_prefix("Internal topics are missing: ") {
            // Named in the order of a hash table.
            Some(names) => {
                let mut names: Vec<&str> = names.split(", ").collect();
                names.sort_unstable();
                json!(names.join(", "))
            }
            None => value.clone(),
        },
        other => other.clone(),
    }
}

fn difference(expected: &Value, actual: &Value, path: &str) -> Option<String> {
    match (expected, actual) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            names.into_iter().find_map(|name| {
                difference(
                    left.get(name).unwrap_or(&Value::Null),
                    right.get(name).unwrap_or(&Value::Null),
                    &format!("{path}.{name}"),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| difference(left, right, &format!("{path}[{at}]"))),
        (left, right) if left == right => None,
        (left, right) => Some(format!("{path}: expected {left}, got {right}")),
    }
}

type Encoded = Vec<(i16, Vec<u8>, Option<Vec<u8>>)>;

/// Sorted within runs of one type.
fn sorted_runs(records: Encoded) -> Encoded {
    let mut records = records;
    records.chunk_by_mut(|a, b| a.0 == b.0).for_each(<[_]>::sort);
    records
}

fn encoded(records: &[Record]) -> Encoded {
    let encode = |record: &Record| {
        let raw = record.encode().expect("what was written can be encoded");
        (record.record_type(), raw.key.to_vec(), raw.value.map(|value| value.to_vec()))
    };
    sorted_runs(records.iter().map(encode).collect())
}

fn recorded(records: &Value) -> Encoded {
    let decode = |record: &Value| {
        let value = record[2].as_str().map(base64);
        (record[0].as_i64().expect("a type") as i16, base64(record[1].as_str().expect("a key")), value)
    };
    sorted_runs(records.as_array().into_iter().flatten().map(decode).collect())
}

fn decoded(records: &Value) -> Vec<String> {
    let show = |(_, key, value): (i16, Vec<u8>, Option<Vec<u8>>)| {
        let raw = crate::state_log::RawRecord { key: key.into(), value: value.map(Into::into) };
        let record = Record::decode(&raw).expect("Kafka's record can be read").expect("a type that is known");
        messages::record(&record).to_string()
    };
    recorded(records).into_iter().map(show).collect()
}

/// The alphabet of MIME, with padding.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for char in text.bytes().filter(|char| *char != b'=') {
        let digit = ALPHABET.iter().position(|each| *each == char).expect("base64") as u32;
        bits = bits << 6 | digit;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
