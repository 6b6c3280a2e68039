//! Classic members, their commits, and administrators, at random and not always well-behaved.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::topics::Topics;
use crate::oracle::duel::History;
use crate::rng::Rng;

const GROUPS: [&str; 2] = ["ga", "gb"];
const INSTANCES: [&str; 3] = ["i1", "i2", ""];
/// Topics with how many partitions are named.
const TOPICS: [(&str, u32); 2] = [("orders", 2), ("users", 1)];

/// Subscriptions to orders, to both topics, and one that cannot be read.
const METADATA: [&str; 3] = ["AAAAAAABAAZvcmRlcnP/////", "AAAAAAACAAZvcmRlcnMABXVzZXJz/////w==", "AQI="];

/// Names in one order only, so that no vote is tied.
const PROTOCOLS: [&[&str]; 6] = [&["range"], &["range"], &["range"], &["range", "rr"], &["range", "rr"], &["rr"]];

#[derive(Default)]
struct GroupModel {
    /// Member ids that were seen, the latest last.
    ids: Vec<String>,
    generation: i64,
    leader: String,
    members: Vec<String>,
    /// Instance ids of members, as far as they told.
    instances: BTreeMap<String, String>,
    /// Joined in this generation and not synced yet.
    unsynced: BTreeSet<String>,
}

pub struct Classic {
    rng: Rng,
    groups: BTreeMap<&'static str, GroupModel>,
    topics: Topics,
    steps: usize,
    /// The log refuses a write now and then.
    log_refuses: bool,
    started: usize,
    /// Half of its steps are what a well-behaved client would do, so that groups settle.
    calm: bool,
    requests: u64,
    open: BTreeMap<String, Value>,
}

impl Classic {
    pub fn new(seed: u64, steps: usize) -> Classic {
        let mut rng = Rng::new(seed);
        let calm = rng.percent(50);
        let log_refuses = rng.percent(15);
        let mut topics = Topics::new(&TOPICS.map(|(name, _)| name));
        TOPICS.iter().for_each(|(name, partitions)| topics.put(name, *partitions as i32));
        Classic {
            rng,
            calm,
            log_refuses,
            topics,
            groups: GROUPS.iter().map(|name| (*name, GroupModel::default())).collect(),
            steps,
            started: 0,
            requests: 0,
            open: BTreeMap::new(),
        }
    }

    fn request(&mut self, api: i16, version: i16, body: Value) -> Value {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        let client = self.rng.pick(&["client", "client", "c2"]);
        json!({"op": "request", "api": api, "version": version, "id": id, "clientId": client, "body": body})
    }

    fn group(&mut self) -> &'static str {
        self.rng.weighted(&[(3, GROUPS[0]), (1, GROUPS[1])])
    }

    /// An id that somebody has or had.
    fn some_id(&mut self, group: &str) -> String {
        let model = &self.groups[group];
        let recent = &model.ids[model.ids.len().saturating_sub(5)..];
        match recent {
            [] => "nobody".to_owned(),
            _ if self.rng.percent(3) => "nobody".to_owned(),
            recent => recent[self.rng.index(recent.len())].clone(),
        }
    }

    /// The instance of a member, mostly the right one.
    fn instance_of(&mut self, group: &str, member: &str) -> Value {
        if self.rng.percent(4) {
            return json!(self.rng.pick(&INSTANCES));
        }
        match self.groups[group].instances.get(member) {
            Some(instance) if self.rng.percent(70) => json!(instance),
            _ => Value::Null,
        }
    }

    fn generation(&mut self, group: &str) -> i64 {
        let generation = self.groups[group].generation;
        self.rng.weighted(&[(90, generation), (5, generation - 1), (3, generation + 1), (2, -1)])
    }

    fn join(&mut self) -> Value {
        let group = self.group();
        let version = self.rng.weighted(&[(1, 0), (1, 2), (2, 3), (3, 5), (2, 6), (2, 7), (2, 8), (10, 9)]);
        let mut member = String::new();
        let mut instance = Value::Null;
        match self.rng.below(10) {
            0..2 => {}
            2..5 if version >= 5 => instance = json!(self.rng.pick(&INSTANCES)),
            _ => {
                member = self.some_id(group);
                if version >= 5 {
                    instance = self.instance_of(group, &member);
                }
            }
        }
        let names = self.rng.pick(&PROTOCOLS);
        let protocols: Vec<Value> = names
            .iter()
            .map(|name| {
                let metadata = METADATA[self.rng.weighted(&[(12, 0), (4, 1), (1, 2)])];
                json!({"name": name, "metadata": metadata})
            })
            .collect();
        let kind = self.rng.weighted(&[(60, "consumer"), (1, "connect"), (1, "")]);
        // All of them different: the order in which equal deadlines come is Kafka's hash order.
        let spread = self.rng.below(1_000);
        let session_ms =
            self.rng.weighted(&[(8, 10_000 + spread), (4, 6_000 + spread), (4, 30_000 + spread), (1, 5_999)]);
        let mut body = json!({
            "groupId": self.rng.weighted(&[(60, group), (1, "")]),
            "memberId": member,
            "protocolType": kind,
            "sessionTimeoutMs": session_ms,
            "protocols": if self.rng.percent(2) { json!([]) } else { json!(protocols) },
        });
        if version >= 1 {
            body["rebalanceTimeoutMs"] = self.rng.weighted(&[(6, 20_000), (3, 5_000), (1, 60_000), (1, 100)]).into();
        }
        if version >= 5 {
            body["groupInstanceId"] = instance;
        }
        self.request(11, version, body)
    }

    fn sync(&mut self) -> Value {
        let group = self.group();
        let version = self.rng.weighted(&[(1, 0), (3, 3), (1, 4), (5, 5)]);
        let leader = self.groups[group].leader.clone();
        let member = if self.rng.percent(40) && !leader.is_empty() { leader } else { self.some_id(group) };
        let mut shares = Vec::new();
        for member in self.groups[group].members.clone() {
            if self.rng.percent(85) {
                let assignment = self.rng.pick(&["AQ==", "AgI=", ""]);
                shares.push(json!({"memberId": member, "assignment": assignment}));
            }
        }
        let mut body = json!({
            "groupId": group,
            "generationId": self.generation(group),
            "memberId": member,
            "assignments": shares,
        });
        if version >= 3 {
            body["groupInstanceId"] = self.instance_of(group, &member);
        }
        if version >= 5 {
            body["protocolType"] = self.rng.weighted(&[(20, json!("consumer")), (1, json!("x")), (1, Value::Null)]);
            body["protocolName"] = self.rng.weighted(&[(20, json!("range")), (4, json!("rr")), (1, Value::Null)]);
        }
        self.request(14, version, body)
    }

    /// Whoever joined syncs, the leader first; in a group that has settled static members come back and all heartbeat.
    fn well_behaved(&mut self) -> Value {
        let group = GROUPS[0];
        let model = &self.groups[group];
        let (generation, leader) = (model.generation, model.leader.clone());
        let waiting = if model.unsynced.contains(&leader) { Some(&leader) } else { model.unsynced.first() };
        if let Some(member) = waiting.cloned() {
            let share = |member: &String| json!({"memberId": member, "assignment": "AQ=="});
            let shares: Vec<Value> = self.groups[group].members.iter().map(share).collect();
            let body = json!({"groupId": group, "generationId": generation, "memberId": member,
                "groupInstanceId": null, "assignments": shares});
            return self.request(14, 3, body);
        }
        if self.rng.percent(40) {
            let version = self.rng.weighted(&[(1, 7), (4, 9)]);
            let body = json!({"groupId": group, "memberId": "", "groupInstanceId": self.rng.pick(&INSTANCES),
                "protocolType": "consumer", "sessionTimeoutMs": 30_000 + self.rng.below(1_000), "rebalanceTimeoutMs": 20_000,
                "protocols": [{"name": "range", "metadata": METADATA[0]}]});
            return self.request(11, version, body);
        }
        let member = self.some_id(group);
        self.request(12, 3, json!({"groupId": group, "generationId": generation, "memberId": member}))
    }

    fn heartbeat(&mut self) -> Value {
        let group = self.group();
        let version = self.rng.weighted(&[(1, 0), (2, 3), (5, 4)]);
        let member = self.some_id(group);
        let mut body = json!({"groupId": group, "generationId": self.generation(group), "memberId": member});
        if version >= 3 {
            body["groupInstanceId"] = self.instance_of(group, &member);
        }
        self.request(12, version, body)
    }

    fn leave(&mut self) -> Value {
        let group = self.group();
        let version = self.rng.weighted(&[(2, 1), (2, 3), (5, 5)]);
        if version < 3 {
            let body = json!({"groupId": group, "memberId": self.some_id(group)});
            return self.request(13, version, body);
        }
        let mut members = Vec::new();
        for _ in 0..self.rng.weighted(&[(1, 0), (10, 1), (4, 2), (1, 4)]) {
            let member = if self.rng.percent(25) { String::new() } else { self.some_id(group) };
            let instance =
                if member.is_empty() { json!(self.rng.pick(&INSTANCES)) } else { self.instance_of(group, &member) };
            members.push(json!({"memberId": member, "groupInstanceId": instance}));
        }
        self.request(13, version, json!({"groupId": group, "members": members}))
    }

    fn partitions(&mut self, partition: impl Fn(&mut Rng, u64) -> Value) -> Vec<(Value, Vec<Value>)> {
        let mut topics = Vec::new();
        for (name, count) in TOPICS {
            if self.rng.percent(60) {
                let some = (0..u64::from(count) + u64::from(self.rng.percent(5))).map(|p| partition(&mut self.rng, p));
                topics.push((json!(name), some.collect()));
            }
        }
        if self.rng.percent(3) {
            let unknown = partition(&mut self.rng, 0);
            topics.push((json!("nothing"), vec![unknown]));
        }
        topics
    }

    fn commit(&mut self, transactional: bool) -> Value {
        let group = self.group();
        let version = match transactional {
            true => self.rng.weighted(&[(1, 2), (3, 3), (3, 5), (2, 6)]),
            false => self.rng.weighted(&[(1, 2), (1, 6), (2, 7), (2, 8), (4, 9), (2, 10)]),
        };
        let member = if self.rng.percent(30) { String::new() } else { self.some_id(group) };
        let generation = if member.is_empty() { -1 } else { self.generation(group) };
        let with_epoch = if transactional { version >= 2 } else { version >= 6 };
        let topics = self.partitions(|rng, partition| {
            let metadata = rng.weighted(&[
                (16, json!("")),
                (8, json!("note")),
                (2, Value::Null),
                (1, json!("0123456789")),
                (1, json!("0123456789a")),
            ]);
            let offset = rng.below(1_000);
            let mut partition =
                json!({"partitionIndex": partition, "committedOffset": offset, "committedMetadata": metadata});
            if with_epoch {
                partition["committedLeaderEpoch"] = rng.weighted(&[(2, -1), (1, 3)]).into();
            }
            partition
        });
        let by_id = if transactional { version >= 6 } else { version >= 10 };
        let topics: Vec<Value> = topics
            .into_iter()
            .map(|(name, partitions)| match by_id {
                true => json!({"topicId": self.topics.id(&name), "partitions": partitions}),
                false => json!({"name": name, "partitions": partitions}),
            })
            .collect();
        let mut body = json!({"groupId": group, "topics": topics});
        if transactional {
            body["transactionalId"] = json!("tx");
            body["producerId"] = self.rng.weighted(&[(3, 7), (1, 8)]).into();
            body["producerEpoch"] = json!(0);
        }
        if !transactional || version >= 3 {
            body["memberId"] = json!(member);
            body["generationIdOrMemberEpoch"] = generation.into();
            if transactional || version >= 7 {
                body["groupInstanceId"] = self.instance_of(group, &member);
            }
        }
        if !transactional && version <= 4 {
            body["retentionTimeMs"] = self.rng.weighted(&[(2, -1), (1, 5_000)]).into();
        }
        self.request(if transactional { 28 } else { 8 }, version, body)
    }

    fn fetch(&mut self) -> Value {
        let version = self.rng.weighted(&[(1, 1), (1, 5), (1, 7), (3, 8), (3, 9), (3, 10)]);
        let group = self.group();
        let topics = self.partitions(|_, partition| json!(partition));
        let topics: Vec<Value> = topics
            .into_iter()
            .map(|(name, indexes)| match version >= 10 {
                true => json!({"topicId": self.topics.id(&name), "partitionIndexes": indexes}),
                false => json!({"name": name, "partitionIndexes": indexes}),
            })
            .collect();
        let topics = if version >= 2 && self.rng.percent(40) { Value::Null } else { json!(topics) };
        let mut body = if version >= 8 {
            json!({"groups": [{"groupId": group, "topics": topics}]})
        } else {
            json!({"groupId": group, "topics": topics})
        };
        if version >= 7 {
            body["requireStable"] = self.rng.percent(50).into();
        }
        self.request(9, version, body)
    }

    fn administer(&mut self) -> Value {
        let group = self.group();
        match self.rng.below(13) {
            12 => self.topics.change(&mut self.rng),
            0..4 => {
                let version = self.rng.weighted(&[(1, 0), (1, 4), (1, 5), (4, 6)]);
                self.request(15, version, json!({"groups": [group]}))
            }
            4..6 => {
                let states: &[&str] = self.rng.weighted(&[
                    (2, &[][..]),
                    (1, &["Stable"]),
                    (1, &["empty", " PreparingRebalance"]),
                    (1, &["zz"]),
                ]);
                let types: &[&str] = self.rng.weighted(&[(2, &[][..]), (1, &["Classic"]), (1, &["consumer"])]);
                self.request(16, 5, json!({"statesFilter": states, "typesFilter": types}))
            }
            6..7 => self.request(42, 2, json!({"groupsNames": [group]})),
            7..9 => {
                let topics = self.partitions(|_, partition| json!({"partitionIndex": partition}));
                let topics: Vec<Value> = topics
                    .into_iter()
                    .map(|(name, partitions)| json!({"name": name, "partitions": partitions}))
                    .collect();
                self.request(47, 0, json!({"groupId": group, "topics": topics}))
            }
            9 => json!({"op": "restart", "compacted": self.rng.percent(30)}),
            _ => {
                let commit = self.rng.percent(70);
                let producer = self.rng.weighted(&[(3, 7), (1, 8)]);
                json!({"op": "txnMarker", "producerId": producer, "producerEpoch": 0, "commit": commit})
            }
        }
    }

    fn learn(&mut self, request: &Value, response: &Value) {
        let body = &request["body"];
        let Some(model) = body["groupId"].as_str().and_then(|group| self.groups.get_mut(group)) else {
            return;
        };
        let member = response["memberId"].as_str().unwrap_or_default().to_owned();
        match request["api"].as_i64() {
            Some(11) if !member.is_empty() => {
                let joined = response["errorCode"] == 0;
                if let Some(instance) = body["groupInstanceId"].as_str()
                    && joined
                {
                    model.instances.retain(|_, i| i != instance);
                    model.instances.insert(member.clone(), instance.to_owned());
                }
                if joined {
                    if response["generationId"] != model.generation {
                        model.unsynced.clear();
                        model.members.clear();
                    }
                    model.generation = response["generationId"].as_i64().unwrap_or(0);
                    model.leader = response["leader"].as_str().unwrap_or_default().to_owned();
                    model.unsynced.insert(member.clone());
                    model.members.push(member.clone());
                    model.members.dedup();
                }
                model.ids.retain(|id| *id != member);
                model.ids.push(member);
            }
            Some(14) if response["errorCode"] == 0 => {
                model.unsynced.remove(body["memberId"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }
}

impl History for Classic {
    fn next(&mut self) -> Option<Value> {
        self.started += 1;
        if self.started > self.steps {
            return None;
        }
        if self.log_refuses && self.started > 2 && self.rng.percent(4) {
            return Some(super::failed_append(&mut self.rng));
        }
        Some(match self.started {
            1 => {
                let delay = self.rng.weighted(&[(4, 0), (1, 1_500), (1, 3_000)]);
                json!({"op": "config", "broker": {
                    "group.initial.rebalance.delay.ms": delay,
                    "group.max.size": self.rng.weighted(&[(11, 100), (1, 2)]),
                    "offset.metadata.max.bytes": 10,
                    "offsets.retention.minutes": self.rng.weighted(&[(1, 10_080), (1, 1)]),
                }})
            }
            2 => self.topics.command(),
            _ if self.calm && self.rng.percent(50) => self.well_behaved(),
            _ => match self.rng.below(100) {
                0..30 => self.join(),
                30..48 => self.sync(),
                48..57 => self.heartbeat(),
                57..63 => self.leave(),
                63..69 => self.commit(false),
                69..72 => self.commit(true),
                72..76 => self.fetch(),
                76..83 => self.administer(),
                _ => {
                    let ms = self.rng.weighted(&[
                        (30, 0),
                        (10, 1),
                        (10, 1_500),
                        (10, 4_999),
                        (4, 5_000),
                        (3, 10_000),
                        (2, 20_000),
                        (1, 60_000),
                        (1, 300_000),
                        (1, 600_000),
                    ]);
                    json!({"op": "advance", "ms": ms})
                }
            },
        })
    }

    fn observe(&mut self, command: &Value, answer: &Value) {
        if command["op"] == "request" {
            if answer["response"].is_null() {
                let id = command["id"].as_str().unwrap_or_default().to_owned();
                self.open.insert(id, command.clone());
            } else {
                self.learn(command, &answer["response"]);
            }
        }
        for late in answer["completed"].as_array().into_iter().flatten() {
            let id = late["id"].as_str().unwrap_or_default();
            if let Some(request) = self.open.remove(id) {
                self.learn(&request, &late["response"]);
            }
        }
    }
}
