//! Our coordinator behind the oracle's protocol: one command of JSON in, one answer of JSON out, in virtual time. The
//! protocol is described beside the oracle (`../shared/harness/coordinator-oracle/README.md`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use coordinator::assign::given;
use coordinator::group::Group;
use coordinator::runtime::Unavailable;
use coordinator::testing::{Answer, Bench, CallId};
use coordinator::{
    Caller, Command, Effect, EndMarker, LogEntry, LogError, Moment, Producer, RawRecord, Reply, TopicMetadata,
};
use serde_json::{Map, Value, json};
use wire::{ErrorCode, KStr, Uuid};

use super::schema::Schemas;
use super::{broker, codec, compare, log, settings, timers};

const START_MS: u64 = 1_000_000;
/// In the answer to ConsumerGroupDescribe (C K-41).
const CLASSIC_MEMBER: i8 = 0;

pub struct Session {
    schemas: Arc<Schemas>,
    bench: Bench,
    /// Regular expressions are resolved when the history says so.
    manual: bool,
    waiting: VecDeque<Effect>,
    parked: BTreeMap<CallId, Parked>,
    raw: bool,
    lines: u64,
    shown: usize,
    creatable: Vec<Value>,
    /// Kafka's log, if ours is loaded from that.
    followed: Option<Followed>,
}

/// What Kafka's coordinator wrote.
#[derive(Default)]
struct Followed {
    log: Vec<LogEntry>,
    /// In the step at hand.
    latest: Vec<LogEntry>,
    /// Topics have changed since expressions were resolved.
    topics_are_new: bool,
}

/// A request that has no answer yet.
struct Parked {
    id: Value,
    api: i16,
    version: i16,
    body: Value,
}

impl Session {
    pub fn new(schemas: Arc<Schemas>) -> Session {
        let mut session = Session {
            schemas,
            bench: Bench::with_config(settings::kafka_defaults()),
            manual: false,
            waiting: VecDeque::new(),
            parked: BTreeMap::new(),
            raw: false,
            lines: 0,
            shown: 0,
            creatable: Vec::new(),
            followed: None,
        };
        session.bench.set_now(Moment { mono_ms: START_MS, wall_ms: START_MS as i64 });
        session
    }

    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// Whether the member that a timer of ours or Kafka's is named after exists.
    pub fn knows_member_of(&mut self, timer: &str) -> bool {
        let groups = self.bench.shard().state().group_ids();
        groups.into_iter().any(|group_id| {
            let Some((_, member)) = timer.split_once(&format!("-{group_id}-")) else { return false };
            self.members(&group_id).iter().any(|id| *id == *member)
        })
    }

    /// Whether the member of a consumer group that a timer is named after speaks the classic protocol.
    pub fn speaks_classic(&mut self, timer: &str) -> bool {
        let groups = self.bench.shard().state().group_ids();
        groups.into_iter().any(|group_id| {
            let Some((_, member)) = timer.split_once(&format!("-{group_id}-")) else { return false };
            let caller = coordinator::testing::caller(1);
            match self.bench.call(Command::ConsumerGroupDescribe { caller, group_id }) {
                Some(Reply::ConsumerGroupDescribe(group)) => {
                    group.members.iter().any(|each| each.member_id == *member && each.member_type == CLASSIC_MEMBER)
                }
                _ => false,
            }
        })
    }

    /// Whether the group that a timer of members is named after is a classic one.
    pub fn is_classic_timer(&self, timer: &str) -> bool {
        let state = self.bench.shard().state();
        let groups = state.group_ids();
        let group = groups.iter().find(|group_id| timer.contains(&format!("-{group_id}-")));
        group.is_some_and(|group_id| matches!(state.group(group_id), Some(Group::Classic(_))))
    }

    pub fn has_group(&self, group_id: &str) -> bool {
        self.bench.shard().state().group(group_id).is_some()
    }

    /// Whether this is a group of another than the classic protocol, and nobody is in it.
    pub fn is_empty_of_another_kind(&mut self, group_id: &str) -> bool {
        let is_other = match self.bench.shard().state().group(group_id) {
            None | Some(Group::Classic(_)) => false,
            Some(Group::Consumer(_) | Group::Streams(_)) => true,
        };
        is_other && self.members(&KStr::copy(group_id)).is_empty()
    }

    fn members(&mut self, group_id: &KStr) -> Vec<KStr> {
        let (caller, group_id) = (coordinator::testing::caller(1), group_id.clone());
        let command = match self.bench.shard().state().group(&group_id) {
            None => return Vec::new(),
            Some(Group::Classic(_)) => Command::DescribeGroup { caller, group_id },
            Some(Group::Consumer(_)) => Command::ConsumerGroupDescribe { caller, group_id },
            Some(Group::Streams(_)) => {
                Command::StreamsGroupDescribe { caller, group_id, include_topology_description: false }
            }
        };
        match self.bench.call(command) {
            Some(Reply::DescribeGroup(group)) => group.members.into_iter().map(|member| member.member_id).collect(),
            Some(Reply::ConsumerGroupDescribe(group)) => group.members.into_iter().map(|m| m.member_id).collect(),
            Some(Reply::StreamsGroupDescribe(group)) => group.members.into_iter().map(|m| m.member_id).collect(),
            _ => Vec::new(),
        }
    }

    /// The answer to one line; none for a blank line or a comment.
    pub fn line(&mut self, line: &str) -> Option<Value> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let answer = match serde_json::from_str(line) {
            Err(error) => Err(format!("not JSON: {error}")),
            Ok(Value::Object(command)) => self.command(&command),
            Ok(_) => Err("not a JSON object".into()),
        };
        Some(answer.unwrap_or_else(|fault| json!({ "fault": fault })))
    }

    fn command(&mut self, command: &Map<String, Value>) -> Result<Value, String> {
        self.lines += 1;
        let mut answer = Map::new();
        match command.get("op").and_then(Value::as_str).unwrap_or_default() {
            "config" => self.config(command)?,
            "groupConfig" => self.group_config(command, &mut answer)?,
            "topics" => self.topics(command)?,
            "request" => self.request(command, &mut answer)?,
            "advance" => {
                let ms = command.get("ms").and_then(Value::as_u64).ok_or("no ms")?;
                self.bench.advance(ms);
                self.run_effects();
            }
            "txnMarker" => {
                let producer_id = command["producerId"].as_i64().ok_or("no producerId")?;
                let producer_epoch = command["producerEpoch"].as_i64().ok_or("no producerEpoch")? as i16;
                let commit = command["commit"].as_bool().ok_or("no commit")?;
                let producer = Producer { id: producer_id, epoch: producer_epoch };
                let marker = EndMarker { producer, commit, coordinator_epoch: 0, raises_epoch: false };
                self.bench.send(Command::TxnMarker(marker));
            }
            "failNextAppend" => {
                let name = command["error"].as_str().ok_or("no error")?;
                let error = ErrorCode::ALL.iter().find(|error| error.name() == name);
                let error = error.ok_or_else(|| format!("unknown error {name}"))?;
                self.bench.log_mut().fail_next_append(LogError::Refused(error.code()));
            }
            "background" => {
                for effect in std::mem::take(&mut self.waiting) {
                    self.resolve(effect);
                }
                self.run_effects();
            }
            "restart" => self.restart(command.get("compacted").and_then(Value::as_bool) == Some(true)),
            "dump" => {
                let entries = log::compacted(self.bench.log().entries());
                let log: Result<Vec<_>, _> = entries.iter().map(|entry| self.entry_json(entry)).collect();
                return Ok(json!({ "log": log? }));
            }
            other => return Err(format!("unknown op {other}")),
        }
        self.finish(&mut answer)?;
        Ok(answer.into())
    }

    fn config(&mut self, command: &Map<String, Value>) -> Result<(), String> {
        let mut config = settings::kafka_defaults();
        let empty = Map::new();
        let given = command.get("broker").and_then(Value::as_object).unwrap_or(&empty);
        let max_batch_bytes = settings::broker(&mut config, given)?;
        let followed = self.followed.take();
        *self = Session::new(self.schemas.clone());
        self.followed = followed;
        self.bench = Bench::with_config(config);
        let now_ms = command.get("now").and_then(Value::as_u64).unwrap_or(START_MS);
        self.bench.set_now(Moment { mono_ms: now_ms, wall_ms: now_ms as i64 });
        if let Some(max_batch_bytes) = max_batch_bytes {
            self.bench.log_mut().set_max_batch_bytes(max_batch_bytes);
        }
        self.manual = command.get("background").and_then(Value::as_str) == Some("manual");
        self.raw = command.get("raw").and_then(Value::as_bool) == Some(true);
        Ok(())
    }

    fn group_config(&mut self, command: &Map<String, Value>, answer: &mut Map<String, Value>) -> Result<(), String> {
        let group_id = command["group"].as_str().ok_or("no group")?;
        let given = command["configs"].as_object().ok_or("no configs")?;
        if group_id.is_empty() {
            answer.insert("error".into(), json!({ "code": ErrorCode::InvalidRequest.code() }));
            return Ok(());
        }
        match settings::group(&self.bench.config().broker, given) {
            Ok(overrides) => self.bench.configure_group(group_id, overrides),
            Err(message) => {
                let code = ErrorCode::InvalidConfig.code();
                answer.insert("error".into(), json!({ "code": code, "message": message }));
            }
        }
        self.run_effects();
        Ok(())
    }

    /// Topics that are gone go in one image, those that are new or other come in the next.
    fn topics(&mut self, command: &Map<String, Value>) -> Result<(), String> {
        let mut wanted = BTreeMap::new();
        for topic in command["topics"].as_array().ok_or("no topics")? {
            let name = KStr::copy(topic["name"].as_str().ok_or("no name")?);
            let id = codec::bytes_of(topic["id"].as_str().ok_or("no id")?)?;
            let id = Uuid(id.try_into().map_err(|_| "not a UUID")?);
            let partitions = topic["partitions"].as_i64().ok_or("no partitions")? as i32;
            let rack = topic["racks"][0][0].as_str().map(KStr::copy);
            wanted.insert(name, TopicMetadata { id, partitions, rack });
        }
        let topics = self.bench.topics().clone();
        let same = |name: &KStr, topic: &TopicMetadata| wanted.get(name).is_some_and(|wanted| wanted.id == topic.id);
        let gone: Vec<KStr> = topics.iter().filter(|(name, t)| !same(name, t)).map(|(name, _)| name.clone()).collect();
        let is_new = |(name, topic): &(KStr, TopicMetadata)| topics.get(name) != Some(topic);
        let new: Vec<(KStr, TopicMetadata)> = wanted.clone().into_iter().filter(is_new).collect();
        if !gone.is_empty() {
            self.bench.update_topics(Vec::new(), &gone);
        }
        if !new.is_empty() {
            self.bench.update_topics(new, &[]);
        }
        self.run_effects();
        Ok(())
    }

    fn request(&mut self, command: &Map<String, Value>, answer: &mut Map<String, Value>) -> Result<(), String> {
        let number = |key: &str| command.get(key).and_then(Value::as_i64).ok_or_else(|| format!("no {key}"));
        let (api, version) = (number("api")? as i16, number("version")? as i16);
        let body = command.get("body").ok_or("no body")?;
        let schema = self.schemas.request(api).ok_or_else(|| format!("unknown api {api}"))?;
        if !schema.versions.contains(version) {
            return Err(format!("{} has no version {version}", schema.name));
        }
        let bytes = Bytes::from(codec::encode(schema, version, body)?);
        let text = |key: &str, default: &str| {
            let text = command.get(key).and_then(Value::as_str).unwrap_or(default);
            KStr::copy(text)
        };
        let host = text("host", "127.0.0.1");
        let caller = Caller {
            client_id: text("clientId", "client"),
            client_host: KStr::from(format!("/{host}")),
            api_version: version,
        };
        let given_id = command.get("id").cloned();
        let mut replies = Vec::new();
        let mut failed = None;
        for command in broker::commands(api, caller, &bytes)? {
            let (call, reply) = self.bench.send(command);
            match reply {
                Some(Ok(reply)) => replies.push(reply),
                Some(Err(why)) => failed = Some(why),
                // Timers that are due at once belong to the command that set them.
                None => match self.due_at_once(call) {
                    Some(Ok(reply)) => replies.push(reply),
                    Some(Err(why)) => failed = Some(why),
                    None => {
                        let id = given_id.unwrap_or_else(|| self.lines.into());
                        answer.insert("parked".into(), id.clone());
                        answer.insert("response".into(), Value::Null);
                        self.parked.insert(call, Parked { id, api, version, body: body.clone() });
                        self.run_effects();
                        return Ok(());
                    }
                },
            }
        }
        let response = match failed {
            Some(why) => self.failure(api, version, body, &why),
            None => self.response(api, version, replies)?,
        };
        self.run_effects();
        put_response(answer, response);
        Ok(())
    }

    fn due_at_once(&mut self, call: CallId) -> Option<Answer> {
        self.bench.advance(0);
        self.bench.answer(call)
    }

    fn response(&self, api: i16, version: i16, replies: Vec<Reply>) -> Result<Value, String> {
        let bytes = broker::response(version, replies)?;
        let schema = self.schemas.response(api).ok_or("no response schema")?;
        codec::decode(schema, version, &bytes)
    }

    /// What the client is told when the coordinator could not serve it.
    fn failure(&self, api: i16, version: i16, body: &Value, why: &Unavailable) -> Value {
        let error = match why {
            Unavailable::Loading => ErrorCode::CoordinatorLoadInProgress,
            Unavailable::NotCoordinator => ErrorCode::NotCoordinator,
            Unavailable::Refused(LogError::Refused(code)) => broker::error_of_append(ErrorCode::from_code(*code)),
            Unavailable::Refused(_) => ErrorCode::UnknownServerError,
        };
        let Some(schema) = self.schemas.request(api) else { return Value::Null };
        let refused = codec::encode(schema, version, body).ok().and_then(|bytes| {
            let bytes = broker::refused(api, version, &bytes.into(), self.bench.topics(), error)?.ok()?;
            codec::decode(self.schemas.response(api)?, version, &bytes).ok()
        });
        refused.unwrap_or_else(|| super::failure::response(&self.schemas, api, version, error))
    }

    /// What Kafka answered to the command that comes next. From the first time on, a restart loads Kafka's log.
    ///
    /// # Errors
    /// If a record of it cannot be read.
    pub fn follow(&mut self, command: &Value, answer: &Value) -> Result<(), String> {
        let mut followed = self.followed.take().unwrap_or_default();
        if command["op"] == "config" {
            followed = Followed::default();
        }
        followed.log.append(&mut followed.latest);
        followed.topics_are_new |= command["op"] == "topics";
        for record in answer["records"].as_array().into_iter().flatten() {
            followed.topics_are_new &= record["type"] != compare::RESOLVED_REGEX || record["value"].is_null();
            followed.latest.push(self.entry(record, answer["now"].as_i64().unwrap_or(0))?);
        }
        self.followed = Some(followed);
        Ok(())
    }

    /// Restarts on Kafka's log, the latest step included. What the restart answers is dropped.
    pub fn catch_up(&mut self) {
        if let Some(followed) = &mut self.followed {
            followed.log.append(&mut followed.latest);
        }
        self.restart(false);
        self.bench.advance(0);
        self.run_effects();
        self.bench.completed();
        self.parked.clear();
        self.creatable.clear();
        self.shown = self.bench.log().entries().len();
    }

    fn restart(&mut self, compacted: bool) {
        let entries = match &self.followed {
            Some(followed) => &followed.log[..],
            None => self.bench.log().entries(),
        };
        let entries = if compacted { log::compacted(entries) } else { entries.to_vec() };
        // The log stays as it is; compaction is only how it is read.
        if let Some(followed) = &self.followed {
            given::set_topics_are_new(followed.topics_are_new);
        }
        self.shown = entries.len();
        self.bench.restart_from(entries);
        self.run_effects();
    }

    /// A record as the oracle shows it.
    fn entry(&self, json: &Value, now_ms: i64) -> Result<LogEntry, String> {
        let number = |key: &str| json[key].as_i64();
        let producer =
            number("producerId").map(|id| Producer { id, epoch: number("producerEpoch").unwrap_or(0) as i16 });
        if let (Some(marker), Some(producer)) = (json["marker"].as_str(), producer) {
            return Ok(LogEntry::Marker { offset: 0, producer, commit: marker == "COMMIT" });
        }
        let record_type = number("type").ok_or("a record without a type")? as i16;
        let (key_schema, value_schema) = self.schemas.record(record_type).ok_or("unknown record type")?;
        let coded = |schema, in_front: i16, version: i16, json: &Value| -> Result<Bytes, String> {
            let mut bytes = in_front.to_be_bytes().to_vec();
            bytes.extend(codec::encode(schema, version, json)?);
            Ok(bytes.into())
        };
        let key = coded(key_schema, record_type, 0, &json["key"])?;
        let value = match (number("version"), &json["value"]) {
            (Some(version), value) if !value.is_null() => {
                Some(coded(value_schema, version as i16, version as i16, value)?)
            }
            _ => None,
        };
        let record = RawRecord { key, value };
        Ok(LogEntry::Record { offset: 0, timestamp_ms: now_ms, producer, record })
    }

    /// Carries out what the shard asks for, until it asks for nothing more.
    fn run_effects(&mut self) {
        loop {
            let effects = self.bench.effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::ComputeAssignment { group_id, group_epoch, input } => {
                        let target = input.compute();
                        self.bench.send(Command::AssignmentReady { group_id, group_epoch, target });
                    }
                    Effect::CreateInternalTopics { group_id, topics } => {
                        self.creatable.extend(topics.iter().map(creatable));
                        // None is made, as with the oracle; to be asked for again.
                        let (failures, unauthorized) = (Vec::new(), Vec::new());
                        self.bench.send(Command::InternalTopicsCreated { group_id, failures, unauthorized });
                    }
                    effect @ Effect::ResolveRegex { .. } if self.manual => self.waiting.push_back(effect),
                    effect @ Effect::ResolveRegex { .. } => self.resolve(effect),
                }
            }
        }
    }

    fn resolve(&mut self, effect: Effect) {
        let Effect::ResolveRegex { group_id, expressions, .. } = effect else {
            return;
        };
        let topics = self.bench.topics().clone();
        let matches = expressions.into_iter().map(|expression| {
            let regex = regex::Regex::new(&format!("^(?:{expression})$"));
            let names = regex.map_err(|error| error.to_string()).map(|regex| {
                let names = topics.iter().map(|(name, _)| name.clone());
                names.filter(|name| regex.is_match(name)).collect::<Vec<_>>()
            });
            (expression, names)
        });
        let matches = matches.collect();
        self.bench.send(Command::RegexResolved { group_id, matches, image_version: 0 });
    }

    /// What every answer ends with: records, late answers, timers, the clock.
    fn finish(&mut self, answer: &mut Map<String, Value>) -> Result<(), String> {
        self.bench.advance(0);
        self.run_effects();
        if !self.creatable.is_empty() {
            answer.insert("creatableTopics".into(), std::mem::take(&mut self.creatable).into());
        }
        let entries = &self.bench.log().entries()[self.shown..];
        let records: Result<Vec<_>, _> = entries.iter().map(|entry| self.entry_json(entry)).collect();
        answer.insert("records".into(), records?.into());
        self.shown = self.bench.log().entries().len();
        let mut completed = Vec::new();
        for (call, reply) in self.bench.completed() {
            if let Some(parked) = self.parked.remove(&call) {
                completed.push(self.late(parked, reply)?);
            }
        }
        if !completed.is_empty() {
            answer.insert("completed".into(), completed.into());
        }
        let timers = self.bench.shard().timers().into_iter();
        let timers: Map<String, Value> = timers.map(|(at, shown)| (timers::name(&shown), at.into())).collect();
        answer.insert("timers".into(), timers.into());
        answer.insert("now".into(), self.bench.now().wall_ms.into());
        Ok(())
    }

    fn late(&self, parked: Parked, answer: Answer) -> Result<Value, String> {
        let Parked { id, api, version, body } = parked;
        let response = match answer {
            Ok(reply) => self.response(api, version, vec![reply])?,
            Err(why) => self.failure(api, version, &body, &why),
        };
        let mut entry = Map::new();
        entry.insert("id".into(), id);
        put_response(&mut entry, response);
        Ok(entry.into())
    }

    fn entry_json(&self, entry: &LogEntry) -> Result<Value, String> {
        match entry {
            LogEntry::Marker { producer, commit, .. } => Ok(json!({
                "producerId": producer.id,
                "producerEpoch": producer.epoch,
                "marker": if *commit { "COMMIT" } else { "ABORT" },
            })),
            LogEntry::Record { producer, record, .. } => {
                let mut json = self.record_json(record)?;
                if let Some(producer) = producer {
                    json.insert("producerId".into(), producer.id.into());
                    json.insert("producerEpoch".into(), producer.epoch.into());
                }
                Ok(json.into())
            }
        }
    }

    fn record_json(&self, record: &RawRecord) -> Result<Map<String, Value>, String> {
        let (record_type, key) = split(&record.key)?;
        let (key_schema, value_schema) = self.schemas.record(record_type).ok_or("unknown record type")?;
        let mut json = Map::new();
        json.insert("type".into(), record_type.into());
        json.insert("key".into(), codec::decode(key_schema, 0, key)?);
        match &record.value {
            None => json.insert("value".into(), Value::Null),
            Some(value) => {
                let (version, value) = split(value)?;
                json.insert("version".into(), version.into());
                json.insert("value".into(), codec::decode(value_schema, version, value)?)
            }
        };
        if self.raw {
            json.insert("rawKey".into(), codec::bytes_text(&record.key).into());
            let raw = record.value.as_ref().map(|value| codec::bytes_text(value));
            json.insert("rawValue".into(), raw.into());
        }
        Ok(json)
    }
}

/// The number in front, and the rest.
fn split(bytes: &[u8]) -> Result<(i16, &[u8]), String> {
    let (number, rest) = bytes.split_first_chunk().ok_or("a record without a number in front")?;
    Ok((i16::from_be_bytes(*number), rest))
}

fn put_response(answer: &mut Map<String, Value>, response: Value) {
    let code = response["errorCode"].as_i64().unwrap_or(0);
    if code != 0 {
        let error = ErrorCode::from_code(code as i16);
        let message = response["errorMessage"].clone();
        answer.insert("error".into(), json!({ "code": code, "name": error.name(), "message": message }));
    }
    answer.insert("response".into(), response);
}

fn creatable(topic: &coordinator::InternalTopic) -> Value {
    let config = |(name, value): &(KStr, KStr)| json!({ "name": name.as_str(), "value": value.as_str() });
    json!({
        "name": topic.name.as_str(),
        "numPartitions": topic.partitions,
        "replicationFactor": topic.replication_factor,
        "assignments": [],
        "configs": topic.configs.iter().map(config).collect::<Vec<_>>(),
    })
}
