//! Random histories, played to the shard and to Kafka 4.4's own coordinator (`../shared/harness/coordinator-oracle`):
//! answers, records and what a restart leaves have to be the same.
//!
//! Needs Java and the harness, so it runs when asked for:
//! `COORDINATOR_ORACLE=.../run.sh cargo test -p coordinator -- --ignored oracle`. `ORACLE_SEED` and `ORACLE_RUNS` choose
//! the histories. Only the range assignor is used, since placement among equals is not imitated (decision 19).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command as Process, Stdio};

use serde_json::{Value, json};
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use wire::{Bytes, KStr, Uuid};

use crate::command::Command;
use crate::config::{BrokerConfig, GroupOverrides};
use crate::env::Moment;
use crate::group::{Group as AnyGroup, regex};
use crate::outcome::{Effect, Reply};
use crate::record::Record;
use crate::state_log::RawRecord;
use crate::testing::{Bench, caller};
use crate::topics::TopicMetadata;

const TOPICS: [&str; 3] = ["orders", "other", "users"];
const GROUP: &str = "kg";
const MEMBERS: [&str; 5] = ["k1", "k2", "k3", "k4", "k5"];
const INSTANCES: [&str; 2] = ["i1", "i2"];
const REGEXES: [&str; 3] = ["o.*", "u.*", "nothing"];

struct Oracle {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let path = std::env::var("COORDINATOR_ORACLE").expect("COORDINATOR_ORACLE names the oracle's run.sh");
        let mut process =
            Process::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the oracle can be started");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        Oracle { process, answers }
    }

    fn ask(&mut self, command: &Value) -> Value {
        let input = self.process.stdin.as_mut().expect("it is piped");
        writeln!(input, "{command}").expect("the oracle reads");
        input.flush().expect("the oracle reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the oracle answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(answer.get("fault").is_none(), "{command}: {answer}");
        answer
    }
}

/// A small generator of its own: the histories must not change with a library.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

/// What a client knows.
#[derive(Clone, Default)]
struct Client {
    id: &'static str,
    epoch: i32,
    instance: Option<&'static str>,
    assigned: Vec<(Uuid, Vec<i32>)>,
    owned: Vec<(Uuid, Vec<i32>)>,
}

struct Run {
    oracle: Oracle,
    bench: Bench,
    dice: Dice,
    clients: Vec<Client>,
    topics: Vec<(&'static str, u64, i32)>,
    next_topic: u64,
    history: Vec<String>,
    /// The first difference of this history.
    failure: Option<String>,
    /// It cannot be compared any further.
    parted: bool,
}

#[test]
#[ignore = "needs Java and ../shared/harness/coordinator-oracle"]
fn histories_are_kafkas() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let (first, runs) = (number("ORACLE_SEED", 1), number("ORACLE_RUNS", 200));
    let mut run = Run {
        oracle: Oracle::start(),
        bench: Bench::new(),
        dice: Dice(0),
        clients: Vec::new(),
        topics: Vec::new(),
        next_topic: 0,
        history: Vec::new(),
        failure: None,
        parted: false,
    };
    let mut failures = Vec::new();
    for seed in first..first + runs {
        run.begin(seed);
        for _ in 0..80 {
            run.step(seed);
            if let Some(failure) = run.failure.take() {
                let failure = format!("seed {seed}: {failure}\n after\n{}", run.history.join("\n"));
                failures.push((run.history.len(), failure));
                break;
            }
            if std::mem::take(&mut run.parted) {
                break;
            }
        }
    }
    failures.sort();
    let shown = failures.iter().take(4).map(|(_, failure)| failure.as_str());
    assert!(failures.is_empty(), "{} of {runs} differ\n{}", failures.len(), shown.collect::<Vec<_>>().join("\n\n"));
}

impl Run {
    fn begin(&mut self, seed: u64) {
        self.dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.history.clear();
        let policy = "bidirectional";
        let config = json!({"op": "config", "raw": true, "broker": {
            "group.consumer.assignors": "range,uniform", "group.consumer.migration.policy": policy,
            "group.initial.rebalance.delay.ms": 0, "group.consumer.max.size": 4}});
        self.oracle.ask(&config);
        self.bench = Bench::with_config(BrokerConfig {
            consumer_assignors: vec![KStr::from("range"), KStr::from("uniform")],
            classic_initial_rebalance_delay_ms: Some(0),
            heartbeat_adaptive: false,
            consumer_max_size: 4,
            ..BrokerConfig::default()
        });
        self.bench.set_now(Moment { mono_ms: 10_000, wall_ms: 1_000_000 });
        self.topics.clear();
        self.next_topic = 0;
        self.clients = MEMBERS.map(|id| Client { id, ..Client::default() }).to_vec();
        for name in TOPICS {
            let partitions = 1 + self.dice.roll(4) as i32;
            self.next_topic += 1;
            self.topics.push((name, self.next_topic, partitions));
        }
        self.set_topics();
        let interval = [0, 1000, 5000][self.dice.roll(3)];
        let command = json!({"op": "groupConfig", "group": GROUP,
            "configs": {"consumer.assignment.interval.ms": interval.to_string()}});
        self.oracle.ask(&command);
        let overrides = GroupOverrides { consumer_assignment_interval_ms: Some(interval), ..Default::default() };
        self.bench.configure_group(GROUP, overrides);
        self.note(&command);
    }

    fn note(&mut self, command: &Value) {
        self.history.push(command.to_string());
    }

    fn set_topics(&mut self) {
        let topics = self.topics.iter().map(|(name, id, partitions)| {
            json!({"name": name, "id": Uuid::from_u128(u128::from(*id)).to_string(), "partitions": partitions})
        });
        let topics: Vec<_> = topics.collect();
        let command = json!({"op": "topics", "topics": topics});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        let old: Vec<_> = self.bench.topics().iter().map(|(name, topic)| (name.clone(), topic.id)).collect();
        for (name, id) in old {
            let stays = self.topics.iter().any(|t| name == t.0 && id == Uuid::from_u128(u128::from(t.1)));
            if !stays {
                self.bench.delete_topic(&name);
            }
        }
        for (name, id, partitions) in self.topics.clone() {
            let metadata = TopicMetadata { id: Uuid::from_u128(u128::from(id)), partitions, rack: None };
            if self.bench.topics().get(name) != Some(&metadata) {
                self.bench.set_topic_metadata(name, metadata);
            }
        }
        self.compare_records(&theirs);
    }

    fn step(&mut self, seed: u64) {
        let before = self.history.len();
        match self.dice.roll(100) {
            0..=69 => self.heartbeat(),
            70..=74 => self.advance(),
            75..=82 => self.commit(),
            83..=85 => self.fetch(),
            86..=89 => self.describe(),
            90..=93 => self.change_topics(),
            94..=95 => self.restart(),
            _ => self.advance(),
        }
        assert!(self.history.len() > before, "seed {seed}: a step is noted");
    }

    fn fail(&mut self, what: &str, theirs: &str, ours: &str) {
        self.failure.get_or_insert(format!("{what}\n theirs: {theirs}\n ours:   {ours}"));
    }

    fn compare_records(&mut self, theirs: &Value) {
        let mut expected = Vec::new();
        for record in theirs["records"].as_array().expect("there is a list") {
            if record.get("marker").is_none() {
                expected.push(decode(record));
            }
        }
        let mut ours = self.bench.records();
        normalise(&mut expected);
        normalise(&mut ours);
        if expected != ours {
            let keys = |records: &[Record]| {
                let keys = records.iter().map(|record| record.encode().expect("it can be written").key);
                keys.collect::<std::collections::BTreeSet<_>>()
            };
            // Timers that are due at once may fire in another order: the histories part here.
            if self.history.last().is_some_and(|step| step.contains("advance")) && keys(&expected) == keys(&ours) {
                self.parted = true;
                return;
            }
            // After a restart, Kafka resolves expressions again if its metadata has moved since, we in any case.
            let others = |records: &[Record]| {
                let others = records.iter().filter(|record| !matches!(record, Record::ConsumerRegex(..)));
                others.cloned().collect::<Vec<_>>()
            };
            if self.history.iter().any(|step| step.contains("restart")) && others(&expected) == others(&ours) {
                self.parted = true;
                return;
            }
            self.fail("records", &show(&expected), &show(&ours));
        }
    }

    fn run_effects(&mut self) {
        for effect in self.bench.effects() {
            let Effect::ResolveRegex { group_id, expressions } = effect else { panic!("not asked for: {effect:?}") };
            let matches = regex::resolve(&expressions, self.bench.topics());
            self.bench.ask(Command::RegexResolved { group_id, matches, image_version: 0 });
        }
    }

    fn heartbeat(&mut self) {
        let at = self.dice.roll(self.clients.len());
        let mut client = self.clients[at].clone();
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: KStr::from(GROUP),
            member_id: KStr::from(client.id),
            member_epoch: client.epoch,
            instance_id: client.instance.map(KStr::from),
            ..Default::default()
        };
        match self.dice.roll(100) {
            0..=5 => request.member_epoch = -1,
            6..=9 => {
                request.member_epoch = -2;
                request.instance_id = Some(KStr::from(client.instance.unwrap_or("i1")));
            }
            10..=13 => request.member_epoch = client.epoch - 1,
            14..=15 => request.member_epoch = client.epoch + 1,
            16..=20 => request.member_epoch = 0,
            _ => {}
        }
        if request.member_epoch == 0 {
            // A member that changes its instance in place loses its target in Kafka; that is not imitated either.
            if !self.is_member(client.id) {
                client.instance = if self.dice.chance(35) { Some(self.dice.pick(&INSTANCES)) } else { None };
            }
            request.instance_id = client.instance.map(KStr::from);
            request.topic_partitions = Some(Vec::new());
            request.rebalance_timeout_ms = [3_000, 30_000][self.dice.roll(2)];
            self.subscribe(&mut request);
            let by_name = request.subscribed_topic_names.as_ref().is_some_and(|names| !names.is_empty());
            if !by_name && self.looks_away(&request) {
                request.subscribed_topic_names = Some(vec![KStr::from("orders")]);
            }
            client.owned.clear();
        } else {
            if self.dice.chance(8) {
                self.subscribe(&mut request);
            }
            if self.dice.chance(5) {
                request.server_assignor = Some(KStr::from("range"));
            }
            if self.dice.chance(5) {
                request.rack_id = Some(KStr::from("r1"));
            }
            self.report_owned(&client, &mut request);
        }
        let reply = self.send_heartbeat(&request);
        if reply["errorCode"] == 0 {
            client.epoch = reply["memberEpoch"].as_i64().expect("an epoch") as i32;
            client.epoch = client.epoch.max(0);
            if let Some(topics) = reply["assignment"]["topicPartitions"].as_array() {
                client.assigned = topics.iter().map(assigned_topic).collect();
            }
            self.clients[at] = client;
        } else if [25, 110].contains(&reply["errorCode"].as_i64().unwrap_or(0)) && self.dice.chance(70) {
            self.clients[at].epoch = 0;
        }
    }

    fn is_member(&self, id: &str) -> bool {
        let group = self.bench.shard().state().group(GROUP);
        matches!(group, Some(AnyGroup::Consumer(group)) if group.members.contains_key(id))
    }

    /// Kafka takes the group's former word for it that all subscribe to the same when a member joins that subscribes to
    /// nothing yet, and gives it what it will not take. That is not imitated, so it must not happen.
    fn looks_away(&self, request: &ConsumerGroupHeartbeatRequest) -> bool {
        let Some(regex) = request.subscribed_topic_regex.as_ref().filter(|regex| !regex.is_empty()) else {
            return true;
        };
        match self.bench.shard().state().group(GROUP) {
            Some(AnyGroup::Consumer(group)) => {
                group.epoch > group.target.epoch || group.counts.by_regex(regex) == 0 && !group.regexes.is_empty()
            }
            _ => false,
        }
    }

    fn subscribe(&mut self, request: &mut ConsumerGroupHeartbeatRequest) {
        if self.dice.chance(70) {
            let names = TOPICS.iter().filter(|_| self.dice.roll(2) == 0).map(|name| KStr::from(*name));
            request.subscribed_topic_names = Some(names.collect());
        }
        if self.dice.chance(30) {
            let regex = if self.dice.chance(25) { "" } else { self.dice.pick(&REGEXES) };
            request.subscribed_topic_regex = Some(KStr::from(regex));
        }
    }

    fn report_owned(&mut self, client: &Client, request: &mut ConsumerGroupHeartbeatRequest) {
        let owned = match self.dice.roll(10) {
            0..=3 => return,
            4..=7 => client.assigned.clone(),
            8 => Vec::new(),
            _ => self.topics.iter().map(|t| (Uuid::from_u128(u128::from(t.1)), (0..t.2).collect())).collect(),
        };
        let topics = owned.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
        request.topic_partitions = Some(topics.collect());
    }

    fn send_heartbeat(&mut self, request: &ConsumerGroupHeartbeatRequest) -> Value {
        let body = json!({
            "groupId": &*request.group_id, "memberId": &*request.member_id, "memberEpoch": request.member_epoch,
            "instanceId": text(&request.instance_id), "rackId": text(&request.rack_id),
            "rebalanceTimeoutMs": request.rebalance_timeout_ms,
            "subscribedTopicNames": request.subscribed_topic_names.as_ref()
                .map(|names| names.iter().map(|name| name.to_string()).collect::<Vec<_>>()),
            "subscribedTopicRegex": text(&request.subscribed_topic_regex),
            "serverAssignor": text(&request.server_assignor),
            "topicPartitions": request.topic_partitions.as_ref().map(|topics| topics.iter().map(|topic| {
                json!({"topicId": topic.topic_id.to_string(), "partitions": topic.partitions})
            }).collect::<Vec<_>>()),
        });
        let command = json!({"op": "request", "api": 68, "version": 1, "body": body});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        let reply = self.bench.ask(Command::ConsumerGroupHeartbeat(caller(1), Box::new(request.clone())));
        let Reply::ConsumerGroupHeartbeat(reply) = reply else { panic!("not the reply to a heartbeat") };
        let topics = reply.assignment.as_ref().map(|assignment| {
            let topics = assignment
                .topic_partitions
                .iter()
                .map(|topic| json!({"topicId": topic.topic_id.to_string(), "partitions": topic.partitions}));
            json!({"topicPartitions": topics.collect::<Vec<_>>()})
        });
        let ours = json!({
            "throttleTimeMs": 0, "errorCode": reply.error_code, "errorMessage": text(&reply.error_message),
            "memberId": text(&reply.member_id), "memberEpoch": reply.member_epoch,
            "heartbeatIntervalMs": reply.heartbeat_interval_ms, "assignment": topics,
        });
        self.run_effects();
        self.compare_response(&theirs, ours.clone());
        self.compare_records(&theirs);
        ours
    }

    fn compare_response(&mut self, theirs: &Value, mut ours: Value) {
        let mut expected = theirs["response"].clone();
        sort(&mut expected);
        sort(&mut ours);
        if expected != ours {
            self.fail("response", &expected.to_string(), &ours.to_string());
        }
    }

    fn advance(&mut self) {
        let ms = [100, 999, 1_000, 3_000, 10_001, 20_000, 44_999, 45_000][self.dice.roll(8)];
        let command = json!({"op": "advance", "ms": ms});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        self.bench.advance(ms);
        self.compare_records(&theirs);
    }

    fn commit(&mut self) {
        let at = self.dice.roll(self.clients.len());
        let client = self.clients[at].clone();
        let epoch = [client.epoch, client.epoch - 1, client.epoch + 1, -1][self.dice.roll(4)];
        let member_id = if self.dice.chance(15) { "" } else { client.id };
        let topic = self.dice.pick(&TOPICS);
        let partitions: Vec<i32> = (0..3).filter(|_| self.dice.roll(2) == 0).collect();
        let version = if self.dice.chance(10) { 8 } else { 9 };
        let request = OffsetCommitRequest {
            group_id: KStr::from(GROUP),
            generation_id_or_member_epoch: epoch,
            member_id: KStr::from(member_id),
            retention_time_ms: -1,
            topics: vec![OffsetCommitRequestTopic {
                name: KStr::from(topic),
                partitions: partitions
                    .iter()
                    .map(|&partition_index| OffsetCommitRequestPartition {
                        partition_index,
                        committed_offset: 5,
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let asked = partitions.iter().map(|p| json!({"partitionIndex": p, "committedOffset": 5}));
        let command = json!({"op": "request", "api": 8, "version": version, "body": {
            "groupId": GROUP, "memberId": member_id, "generationIdOrMemberEpoch": epoch,
            "topics": [{"name": topic, "partitions": asked.collect::<Vec<_>>()}]}});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        let reply = self.bench.ask(Command::OffsetCommit(caller(version), Box::new(request)));
        let Reply::OffsetCommit(reply) = reply else { panic!("not the reply to a commit") };
        let topics = reply.topics.iter().map(|topic| {
            let partitions = topic
                .partitions
                .iter()
                .map(|p| json!({"partitionIndex": p.partition_index, "errorCode": p.error_code}));
            json!({"name": &*topic.name, "partitions": partitions.collect::<Vec<_>>()})
        });
        let ours = json!({"throttleTimeMs": 0, "topics": topics.collect::<Vec<_>>()});
        self.compare_response(&theirs, ours);
        self.compare_records(&theirs);
    }

    fn fetch(&mut self) {
        let at = self.dice.roll(self.clients.len());
        let client = self.clients[at].clone();
        let epoch = [client.epoch, client.epoch - 1, -1][self.dice.roll(3)];
        let group = OffsetFetchRequestGroup {
            group_id: KStr::from(GROUP),
            member_id: Some(KStr::from(client.id)),
            member_epoch: epoch,
            topics: None,
        };
        let command = json!({"op": "request", "api": 9, "version": 9, "body": {"requireStable": true, "groups": [
            {"groupId": GROUP, "memberId": client.id, "memberEpoch": epoch, "topics": null}]}});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        let command = Command::OffsetFetch { caller: caller(9), group: Box::new(group), require_stable: true };
        let Reply::OffsetFetch(reply) = self.bench.ask(command) else { panic!("not the reply to a fetch") };
        let topics = reply.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|p| {
                json!({
                "partitionIndex": p.partition_index, "committedOffset": p.committed_offset,
                "committedLeaderEpoch": p.committed_leader_epoch, "metadata": text(&p.metadata),
                "errorCode": p.error_code})
            });
            json!({"name": &*topic.name, "partitions": partitions.collect::<Vec<_>>()})
        });
        let ours = json!({"throttleTimeMs": 0, "groups": [{"groupId": GROUP, "errorCode": reply.error_code,
            "topics": topics.collect::<Vec<_>>()}]});
        self.compare_response(&theirs, ours);
    }

    fn describe(&mut self) {
        let command = json!({"op": "request", "api": 69, "version": 1, "body": {"groupIds": [GROUP]}});
        self.note(&command);
        let theirs = self.oracle.ask(&command);
        let command = Command::ConsumerGroupDescribe { caller: caller(1), group_id: KStr::from(GROUP) };
        let Reply::ConsumerGroupDescribe(group) = self.bench.ask(command) else { panic!("not a description") };
        let assignment = |topics: &wire::messages::consumer_group_describe_response::Assignment| {
            let topics = topics.topic_partitions.iter().map(|topic| {
                json!({
                "topicId": topic.topic_id.to_string(), "topicName": &*topic.topic_name,
                "partitions": topic.partitions})
            });
            json!({"topicPartitions": topics.collect::<Vec<_>>()})
        };
        let members = group.members.iter().map(|m| {
            json!({
            "memberId": &*m.member_id, "instanceId": text(&m.instance_id), "rackId": text(&m.rack_id),
            "memberEpoch": m.member_epoch, "clientId": &*m.client_id, "clientHost": &*m.client_host,
            "subscribedTopicNames": m.subscribed_topic_names.iter().map(|n| n.to_string()).collect::<Vec<_>>(),
            "subscribedTopicRegex": text(&m.subscribed_topic_regex), "memberType": m.member_type,
            "assignment": assignment(&m.assignment), "targetAssignment": assignment(&m.target_assignment)})
        });
        let ours = json!({"throttleTimeMs": 0, "groups": [{
            "errorCode": group.error_code, "errorMessage": text(&group.error_message), "groupId": GROUP,
            "groupState": &*group.group_state, "groupEpoch": group.group_epoch,
            "assignmentEpoch": group.assignment_epoch, "assignorName": &*group.assignor_name,
            "members": members.collect::<Vec<_>>(), "authorizedOperations": group.authorized_operations}]});
        self.compare_response(&theirs, ours);
    }

    fn change_topics(&mut self) {
        let at = self.dice.roll(TOPICS.len());
        match self.topics.iter().position(|(name, _, _)| *name == TOPICS[at]) {
            Some(there) if self.dice.chance(50) => self.topics[there].2 += 1,
            Some(there) => {
                self.topics.remove(there);
            }
            None => {
                self.next_topic += 1;
                self.topics.push((TOPICS[at], self.next_topic, 2));
            }
        }
        self.set_topics();
    }

    fn restart(&mut self) {
        let command = json!({"op": "restart", "compacted": self.dice.chance(50)});
        self.note(&command);
        self.oracle.ask(&command);
        self.bench.restart();
    }
}

fn text(text: &Option<KStr>) -> Option<&str> {
    text.as_ref().map(KStr::as_str)
}

fn assigned_topic(topic: &Value) -> (Uuid, Vec<i32>) {
    let id = topic["topicId"].as_str().expect("an id").parse().expect("an id");
    let partitions = topic["partitions"].as_array().expect("a list").iter();
    (id, partitions.map(|p| p.as_i64().expect("a number") as i32).collect())
}

/// From the raw bytes that the oracle gives.
fn decode(record: &Value) -> Record {
    let bytes = |value: &Value| value.as_str().map(|text| Bytes::from(base64(text)));
    let raw = RawRecord { key: bytes(&record["rawKey"]).expect("there is a key"), value: bytes(&record["rawValue"]) };
    let decoded = Record::decode(&raw).unwrap_or_else(|error| panic!("{error}: {record}"));
    decoded.expect("a known type")
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter(|b| *b != b'=');
    let mut bits = 0u32;
    let mut count = 0;
    let mut bytes = Vec::new();
    for digit in digits {
        let value = ALPHABET.iter().position(|c| *c == digit).expect("base64") as u32;
        bits = bits << 6 | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

/// Kafka's order within a run of records of one type is that of its hash tables.
fn normalise(records: &mut [Record]) {
    for record in records.iter_mut() {
        match record {
            Record::ConsumerRegex(_, Some(value)) => value.version = 0,
            Record::ConsumerCurrentMember(_, Some(value)) => {
                value.assigned_partitions.sort_by_key(|topic| topic.topic_id);
                value.partitions_pending_revocation.sort_by_key(|topic| topic.topic_id);
            }
            Record::ConsumerTargetMember(_, Some(value)) => value.topic_partitions.sort_by_key(|topic| topic.topic_id),
            _ => {}
        }
    }
    for run in records.chunk_by_mut(|a, b| a.record_type() == b.record_type()) {
        run.sort_by_key(|record| record.encode().expect("it can be written").key);
    }
}

fn show(records: &[Record]) -> String {
    records.iter().map(|record| format!("\n   {record:?}")).collect()
}

/// Arrays of objects by their text.
fn sort(value: &mut Value) {
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(sort);
            if values.iter().all(|v| v.is_object() || v.is_string() || v.is_number()) {
                values.sort_by_key(Value::to_string);
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(sort),
        _ => {}
    }
}
