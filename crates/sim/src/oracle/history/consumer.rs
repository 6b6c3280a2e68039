//! Members of the consumer protocol with what surrounds them; with members of the classic protocol in the same group, if
//! asked for, and now and then a streams member that is in the wrong place.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::topics::Topics;
use crate::oracle::codec;
use crate::oracle::duel::History;
use crate::rng::Rng;

const GROUP: &str = "kg";
const MEMBERS: [&str; 5] = ["k1", "k2", "k3", "k4", "k5"];
/// Of members of the classic protocol before the broker gave them any.
const CLASSIC: [&str; 2] = ["c1", "c2"];
const INSTANCES: [&str; 3] = ["i1", "i2", "i3"];
const NAMES: [&str; 3] = ["orders", "other", "users"];
const REGEXES: [&str; 4] = ["o.*", "u.*", "nothing", "("];

/// What a client of the consumer protocol knows.
#[derive(Clone, Debug, Default)]
struct Client {
    epoch: i64,
    instance: Option<&'static str>,
    assigned: Value,
}

/// What a client of the classic protocol knows.
#[derive(Clone, Debug)]
struct ClassicClient {
    id: String,
    generation: i64,
    instance: Option<String>,
    /// What it is to sync with.
    protocol: String,
    names: Vec<&'static str>,
    /// Partitions of `orders` by its last sync.
    owned: Vec<i32>,
    due: Due,
}

/// What a client of the classic protocol does next if it does as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Join,
    Sync,
    Heartbeat,
}

pub struct Consumer {
    rng: Rng,
    steps: usize,
    /// The log refuses a write now and then.
    log_refuses: bool,
    started: usize,
    with_classic: bool,
    /// Members mostly say what they know, so that groups settle.
    calm: bool,
    clients: BTreeMap<&'static str, Client>,
    classic: Vec<ClassicClient>,
    /// Assignors that members ask for. With more than one, votes are often even, which is left to choice.
    assignors: &'static [&'static str],
    /// Two names of the classic protocol in the order in which members prefer them. All the same one: a vote may be even else.
    preferred: &'static [&'static str],
    topics: Topics,
    requests: u64,
    open: BTreeMap<String, Value>,
}

impl Consumer {
    pub fn new(seed: u64, steps: usize, with_classic: bool) -> Consumer {
        let mut rng = Rng::new(seed);
        let mut client = |id: &&'static str| {
            let instance = rng.percent(35).then(|| rng.pick(&INSTANCES));
            (*id, Client { instance, ..Client::default() })
        };
        let clients = MEMBERS.iter().map(&mut client).collect();
        let calm = rng.percent(50);
        let log_refuses = rng.percent(15);
        let assignors = rng.weighted(&[(3, &["range"][..]), (3, &["uniform"]), (1, &["range", "uniform"])]);
        let preferred = rng.weighted(&[(1, &["range", "rr"][..]), (1, &["rr", "range"])]);
        Consumer {
            rng,
            steps,
            log_refuses,
            assignors,
            preferred,
            started: 0,
            with_classic,
            calm,
            clients,
            classic: Vec::new(),
            topics: Topics::new(&NAMES),
            requests: 0,
            open: BTreeMap::new(),
        }
    }

    fn request(&mut self, api: i16, version: i16, body: Value) -> Value {
        self.requests += 1;
        let client = self.rng.weighted(&[(30, "client"), (1, "other")]);
        json!({"op": "request", "api": api, "version": version, "id": format!("r{}", self.requests),
            "clientId": client, "body": body})
    }

    fn config(&mut self) -> Value {
        let policy = match self.with_classic {
            true => self.rng.weighted(&[(6, "bidirectional"), (1, "upgrade"), (1, "downgrade"), (1, "disabled")]),
            false => "bidirectional",
        };
        json!({"op": "config", "broker": {
            "group.consumer.assignors": self.rng.weighted(&[(2, "range,uniform"), (1, "uniform,range")]),
            "group.consumer.migration.policy": policy,
            "group.initial.rebalance.delay.ms": self.rng.weighted(&[(3, 0), (1, 3_000)]),
            "offset.metadata.max.bytes": 10,
            "offsets.retention.minutes": self.rng.weighted(&[(1, 10_080), (1, 1)]),
            "group.consumer.max.size": self.rng.weighted(&[(1, 4), (3, 100)]),
            "group.consumer.assignment.interval.ms": self.rng.weighted(&[(3, 0), (1, 1_000), (1, 5_000)]),
        }})
    }

    fn heartbeat(&mut self) -> Value {
        let id = self.rng.pick(&MEMBERS);
        let client = self.clients[id].clone();
        let epoch = self.rng.weighted(&[
            (if self.calm { 500 } else { 78 }, client.epoch),
            (6, -1),
            (3, -2),
            (4, client.epoch - 1),
            (2, client.epoch + 1),
            (5, 0),
        ]);
        let version = self.rng.weighted(&[(9, 1), (1, 0)]);
        let mut body = json!({"groupId": GROUP, "memberId": id, "memberEpoch": epoch});
        if epoch == 0 {
            body["topicPartitions"] = json!([]);
            body["rebalanceTimeoutMs"] = self.rng.weighted(&[(1, 3_000), (2, 30_000), (1, 7_001)]).into();
            self.subscribe(&mut body, version);
            if body.get("subscribedTopicNames").is_none() && self.rng.percent(90) {
                body["subscribedTopicNames"] = json!(["orders"]);
            }
        } else {
            if self.rng.percent(if self.calm { 2 } else { 8 }) {
                self.subscribe(&mut body, version);
            }
            match self.rng.below(if self.calm { 8 } else { 10 }) {
                0..4 if !self.calm => {}
                0..8 => body["topicPartitions"] = client.assigned.clone(),
                8 => body["topicPartitions"] = json!([]),
                _ => body["topicPartitions"] = self.topics.all_partitions(),
            }
            if body["topicPartitions"].is_null() {
                body.as_object_mut().map(|body| body.remove("topicPartitions"));
            }
        }
        if self.rng.percent(5) {
            let assignor = self.rng.pick(self.assignors);
            body["serverAssignor"] = self.rng.weighted(&[(8, assignor), (1, "nobody")]).into();
        }
        if self.rng.percent(5) {
            body["rackId"] = self.rng.weighted(&[(4, "r1"), (2, "r2"), (1, "")]).into();
        }
        // A member that changes its instance in place loses its target in Kafka.
        let instance =
            if epoch != 0 && self.rng.percent(3) { Some(self.rng.pick(&INSTANCES)) } else { client.instance };
        if let Some(instance) = instance {
            body["instanceId"] = instance.into();
        }
        self.request(68, version, body)
    }

    fn subscribe(&mut self, body: &mut Value, version: i16) {
        if self.rng.percent(75) {
            let names: Vec<&str> = NAMES.into_iter().filter(|_| self.rng.percent(60)).collect();
            body["subscribedTopicNames"] = json!(names);
        }
        if version >= 1 && self.rng.percent(30) {
            let regex =
                self.rng.weighted(&[(3, ""), (4, REGEXES[0]), (4, REGEXES[1]), (2, REGEXES[2]), (1, REGEXES[3])]);
            body["subscribedTopicRegex"] = regex.into();
        }
    }

    fn classic_client(&mut self) -> ClassicClient {
        match self.classic.len() as u64 {
            0 => ClassicClient {
                id: self.rng.pick(&CLASSIC).to_owned(),
                generation: 2,
                instance: None,
                protocol: "range".to_owned(),
                names: vec!["orders"],
                owned: Vec::new(),
                due: Due::Heartbeat,
            },
            n => self.classic[self.rng.below(n) as usize].clone(),
        }
    }

    fn classic_member(&mut self) -> Value {
        match self.rng.below(if self.calm { 120 } else { 25 }) {
            20.. => self.as_told(),
            0..8 => self.join(),
            8..13 => self.sync(),
            13..18 => self.classic_heartbeat(),
            _ => self.leave(),
        }
    }

    /// The next step of a client that rejoins when it is asked to, with what it owns, and syncs what it joined.
    fn as_told(&mut self) -> Value {
        let mut client = self.classic_client();
        // One that wants other topics rejoins unasked.
        if self.rng.percent(3) {
            client.due = Due::Join;
            client.names = NAMES.into_iter().filter(|_| self.rng.percent(50)).collect();
        }
        let with_instance = |mut body: Value| {
            if client.instance.is_some() {
                body["groupInstanceId"] = json!(client.instance);
            }
            body
        };
        match client.due {
            Due::Join => {
                let metadata = codec::bytes_text(&subscription(&client.names, &client.owned, client.generation as i32));
                let spread = self.rng.below(900);
                let body = json!({"groupId": GROUP, "memberId": client.id, "protocolType": "consumer",
                    "sessionTimeoutMs": 10_000 + spread, "rebalanceTimeoutMs": 20_000,
                    "protocols": [{"name": client.protocol, "metadata": metadata}]});
                self.request(11, 9, with_instance(body))
            }
            Due::Sync => {
                let share = json!({"memberId": client.id, "assignment": "AAAAAAABAAZvcmRlcnMAAAABAAAAAP////8="});
                let body = json!({"groupId": GROUP, "memberId": client.id, "generationId": client.generation,
                    "protocolType": "consumer", "protocolName": client.protocol, "assignments": [share]});
                self.request(14, 5, with_instance(body))
            }
            Due::Heartbeat => {
                let body = json!({"groupId": GROUP, "memberId": client.id, "generationId": client.generation});
                self.request(12, 4, with_instance(body))
            }
        }
    }

    fn join(&mut self) -> Value {
        let known = self.classic_client();
        let is_new = self.rng.percent(40);
        let id = if is_new { String::new() } else { known.id };
        let instance =
            if is_new { self.rng.percent(30).then(|| self.rng.pick(&INSTANCES).to_owned()) } else { known.instance };
        let version = if instance.is_some() || self.rng.percent(20) { 9 } else { self.rng.weighted(&[(4, 3), (1, 9)]) };
        let mut names: Vec<&str> = NAMES.into_iter().filter(|_| self.rng.percent(50)).collect();
        if names.is_empty() {
            names.push("orders");
        }
        let owned: Vec<i32> = (0..3).filter(|_| self.rng.percent(33)).collect();
        let metadata = match self.rng.percent(3) {
            true => "AQI=".to_owned(),
            false => codec::bytes_text(&subscription(&names, &owned, known.generation as i32)),
        };
        let offered = self.rng.weighted(&[(16, &["range"][..]), (6, self.preferred)]);
        let protocol = |name: &&str| json!({"name": name, "metadata": metadata});
        let protocols: Vec<Value> = offered.iter().map(protocol).collect();
        let spread = self.rng.below(900);
        let mut body = json!({"groupId": GROUP, "memberId": id, "protocolType": "consumer",
            "sessionTimeoutMs": 10_000 + spread, "rebalanceTimeoutMs": 20_000, "protocols": protocols});
        if version >= 5 {
            body["groupInstanceId"] = json!(instance);
        }
        self.request(11, version, body)
    }

    fn sync(&mut self) -> Value {
        let client = self.classic_client();
        let generation = self.rng.weighted(&[(9, client.generation), (1, client.generation + 1)]);
        let shares: Vec<Value> = match self.rng.percent(50) {
            true => vec![json!({"memberId": client.id, "assignment": "AAAAAAABAAZvcmRlcnMAAAABAAAAAP////8="})],
            false => vec![],
        };
        let mut body = json!({"groupId": GROUP, "memberId": client.id, "generationId": generation,
            "protocolType": "consumer", "protocolName": self.rng.weighted(&[(8, &client.protocol[..]), (1, "range")]),
            "assignments": shares});
        if client.instance.is_some() {
            body["groupInstanceId"] = json!(client.instance);
        }
        self.request(14, 5, body)
    }

    fn classic_heartbeat(&mut self) -> Value {
        let client = self.classic_client();
        let generation = self.rng.weighted(&[(12, client.generation), (1, client.generation - 1)]);
        let mut body = json!({"groupId": GROUP, "memberId": client.id, "generationId": generation});
        if client.instance.is_some() && self.rng.percent(90) {
            body["groupInstanceId"] = json!(client.instance);
        }
        self.request(12, 4, body)
    }

    fn leave(&mut self) -> Value {
        let client = self.classic_client();
        let by_instance = client.instance.is_some() && self.rng.percent(50);
        let id = if by_instance { String::new() } else { client.id };
        let instance = if by_instance || self.rng.percent(30) { client.instance } else { None };
        self.request(13, 5, json!({"groupId": GROUP, "members": [{"memberId": id, "groupInstanceId": instance}]}))
    }

    /// Who commits and fetches: an id with its epoch or generation.
    fn identity(&mut self) -> (String, i64) {
        if self.with_classic && self.rng.percent(30) {
            let client = self.classic_client();
            return (client.id, client.generation);
        }
        if self.rng.percent(15) {
            return (String::new(), -1);
        }
        let id = self.rng.pick(&MEMBERS);
        let epoch = self.clients[id].epoch;
        (id.to_owned(), self.rng.weighted(&[(6, epoch), (2, epoch - 1), (1, epoch + 1), (1, -1)]))
    }

    fn commit(&mut self) -> Value {
        let (member, epoch) = self.identity();
        let transactional = self.rng.percent(20);
        let (api, version, first_by_id) = match transactional {
            true => (28, self.rng.weighted(&[(2, 5), (1, 6)]), 6),
            false => (8, self.rng.weighted(&[(1, 7), (2, 8), (4, 9), (1, 10)]), 10),
        };
        let topic = self.rng.pick(&NAMES);
        let note = self.rng.weighted(&[(12, "note"), (1, "a note too long")]);
        let partitions: Vec<Value> = (0..3)
            .filter(|_| self.rng.percent(50))
            .map(|p| json!({"partitionIndex": p, "committedOffset": p + 5, "committedMetadata": note}))
            .collect();
        let topic = match version >= first_by_id {
            true => json!({"topicId": self.topics.id(&json!(topic)), "partitions": partitions}),
            false => json!({"name": topic, "partitions": partitions}),
        };
        let mut body =
            json!({"groupId": GROUP, "memberId": member, "generationIdOrMemberEpoch": epoch, "topics": [topic]});
        if transactional {
            for (key, value) in
                [("transactionalId", json!("tx")), ("producerId", json!(7)), ("producerEpoch", json!(0))]
            {
                body[key] = value;
            }
        }
        self.request(api, version, body)
    }

    fn fetch(&mut self) -> Value {
        let (member, epoch) = self.identity();
        let version = self.rng.weighted(&[(1, 8), (3, 9), (1, 10)]);
        let mut group = json!({"groupId": GROUP, "topics": null});
        if version >= 9 && self.rng.percent(80) {
            group["memberEpoch"] = epoch.into();
            group["memberId"] = if member.is_empty() { Value::Null } else { json!(member) };
        }
        let stable = self.rng.percent(50);
        self.request(9, version, json!({"requireStable": stable, "groups": [group]}))
    }

    fn look(&mut self) -> Value {
        match self.rng.below(10) {
            0..5 => self.request(69, 1, json!({"groupIds": [GROUP]})),
            5..7 => self.request(15, 6, json!({"groups": [GROUP]})),
            7..9 => self.request(16, 5, json!({})),
            _ => self.request(69, 0, json!({"groupIds": ["nobody", GROUP, ""]})),
        }
    }

    fn administer(&mut self) -> Value {
        match self.rng.below(10) {
            0..3 => json!({"op": "restart", "compacted": self.rng.percent(50)}),
            3..5 => {
                let configs = self.rng.weighted(&[
                    (1, json!({})),
                    (1, json!({"consumer.session.timeout.ms": "50000"})),
                    (1, json!({"consumer.heartbeat.interval.ms": "7000"})),
                    (1, json!({"consumer.assignment.interval.ms": "2000"})),
                    (1, json!({"consumer.assignment.interval.ms": "15001"})),
                ]);
                json!({"op": "groupConfig", "group": GROUP, "configs": configs})
            }
            5 if self.rng.percent(50) => {
                let commit = self.rng.percent(70);
                json!({"op": "txnMarker", "producerId": 7, "producerEpoch": 0, "commit": commit})
            }
            5 => self.request(42, 2, json!({"groupsNames": [GROUP]})),
            6..8 => {
                let topic = self.rng.pick(&NAMES);
                self.request(
                    47,
                    0,
                    json!({"groupId": GROUP, "topics": [
                    {"name": topic, "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}]}]}),
                )
            }
            _ => self.topics.change(&mut self.rng),
        }
    }

    /// A streams member that is in the wrong place.
    fn stranger(&mut self) -> Value {
        let epoch = self.rng.weighted(&[(3, 0), (1, 1), (1, -1)]);
        let mut body = json!({"groupId": GROUP, "memberId": "s1", "memberEpoch": epoch});
        if epoch == 0 {
            for list in ["activeTasks", "standbyTasks", "warmupTasks"] {
                body[list] = json!([]);
            }
            body["processId"] = "p".into();
            body["rebalanceTimeoutMs"] = 9_000.into();
            body["topology"] =
                json!({"epoch": 0, "subtopologies": [{"subtopologyId": "0", "sourceTopics": ["orders"]}]});
        }
        self.request(88, 1, body)
    }

    fn learn(&mut self, request: &Value, response: &Value) {
        let body = &request["body"];
        match request["api"].as_i64() {
            Some(68) => self.learn_heartbeat(body, response),
            Some(11) => {
                let code = response["errorCode"].as_i64();
                let id = response["memberId"].as_str().unwrap_or_default().to_owned();
                if matches!(code, Some(0 | 79)) && !id.is_empty() {
                    let generation = response["generationId"].as_i64().unwrap_or(-1);
                    let instance = body["groupInstanceId"].as_str().map(str::to_owned);
                    let known = self.classic.iter().find(|client| client.id == id);
                    let owned = known.map(|client| client.owned.clone()).unwrap_or_default();
                    let protocol = response["protocolName"].as_str().filter(|name| !name.is_empty());
                    let protocol = protocol.unwrap_or("range").to_owned();
                    let due = if code == Some(0) { Due::Sync } else { Due::Join };
                    let metadata = body["protocols"][0]["metadata"].as_str().unwrap_or_default();
                    let names = names_in(&codec::bytes_of(metadata).unwrap_or_default());
                    self.classic.retain(|client| client.id != id);
                    self.classic.push(ClassicClient { id, generation, instance, protocol, names, owned, due });
                    if self.classic.len() > 5 {
                        self.classic.remove(0);
                    }
                } else if code == Some(25) {
                    self.classic.retain(|client| body["memberId"] != client.id.as_str());
                }
            }
            Some(12 | 14) => self.learn_of_rebalance(request, response),
            _ => {}
        }
    }

    /// The answer to a sync or a heartbeat of the classic protocol.
    fn learn_of_rebalance(&mut self, request: &Value, response: &Value) {
        let id = &request["body"]["memberId"];
        let Some(client) = self.classic.iter_mut().find(|client| *id == client.id.as_str()) else { return };
        match response["errorCode"].as_i64() {
            Some(0) if request["api"] == 14 => {
                let assignment = response["assignment"].as_str().unwrap_or_default();
                client.owned = orders_in(&codec::bytes_of(assignment).unwrap_or_default());
                client.due = Due::Heartbeat;
            }
            Some(22 | 23 | 27) => client.due = Due::Join,
            Some(25) if self.rng.percent(70) => self.classic.retain(|client| *id != client.id.as_str()),
            _ => {}
        }
    }

    fn learn_heartbeat(&mut self, body: &Value, response: &Value) {
        let id = body["memberId"].as_str().unwrap_or_default();
        let Some((_, client)) = self.clients.iter_mut().find(|(member, _)| **member == id) else { return };
        match response["errorCode"].as_i64() {
            Some(0) => {
                client.epoch = response["memberEpoch"].as_i64().unwrap_or(0).max(0);
                if let Some(topics) = response["assignment"].get("topicPartitions") {
                    client.assigned = topics.clone();
                }
                if client.epoch == 0 {
                    client.assigned = Value::Null;
                }
            }
            Some(25 | 110) if self.rng.percent(70) => {
                *client = Client { instance: client.instance, ..Client::default() }
            }
            _ => {}
        }
    }

    fn advance(&mut self) -> Value {
        let ms = self.rng.weighted(&[
            (10, 0),
            (10, 500),
            (8, 1_500),
            (6, 4_999),
            (3, 9_000),
            (2, 20_000),
            (1, 46_000),
            (1, 600_000),
        ]);
        json!({"op": "advance", "ms": ms})
    }
}

impl History for Consumer {
    fn next(&mut self) -> Option<Value> {
        self.started += 1;
        if self.started > self.steps {
            return None;
        }
        if self.log_refuses && self.started > 2 && self.rng.percent(4) {
            return Some(super::failed_append(&mut self.rng));
        }
        Some(match self.started {
            1 => self.config(),
            2 => self.topics.command(),
            _ => match self.rng.below(100) {
                0..35 if self.with_classic => self.classic_member(),
                35..37 if self.with_classic => self.stranger(),
                0..60 => self.heartbeat(),
                60..75 => self.advance(),
                75..82 => self.commit(),
                82..86 => self.fetch(),
                86..92 => self.look(),
                _ => self.administer(),
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
            if let Some(request) = late["id"].as_str().and_then(|id| self.open.remove(id)) {
                self.learn(&request, &late["response"]);
            }
        }
    }
}

/// Version 3 of a consumer's subscription, which owns partitions of `orders`.
fn subscription(names: &[&str], owned: &[i32], generation: i32) -> Vec<u8> {
    let mut bytes = vec![0, 3];
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as i16).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    bytes.extend((names.len() as i32).to_be_bytes());
    names.iter().for_each(|name| text(&mut bytes, name));
    bytes.extend((-1i32).to_be_bytes());
    if owned.is_empty() {
        bytes.extend(0i32.to_be_bytes());
    } else {
        bytes.extend(1i32.to_be_bytes());
        text(&mut bytes, "orders");
        bytes.extend((owned.len() as i32).to_be_bytes());
        owned.iter().for_each(|partition| bytes.extend(partition.to_be_bytes()));
    }
    bytes.extend(generation.to_be_bytes());
    bytes.extend((-1i16).to_be_bytes());
    bytes
}

/// Topics that a subscription of any version names.
fn names_in(subscription: &[u8]) -> Vec<&'static str> {
    let has = |name: &str| {
        let written = [&(name.len() as i16).to_be_bytes()[..], name.as_bytes()].concat();
        subscription.windows(written.len()).any(|window| window == written)
    };
    let names: Vec<&str> = NAMES.into_iter().filter(|name| has(name)).collect();
    if names.is_empty() { vec!["orders"] } else { names }
}

/// Partitions of `orders` in an assignment of any version.
fn orders_in(assignment: &[u8]) -> Vec<i32> {
    let name = b"\0\x06orders";
    let Some(at) = assignment.windows(name.len()).position(|window| window == name) else { return Vec::new() };
    let mut numbers = assignment[at + name.len()..]
        .chunks_exact(4)
        .map(|four| i32::from_be_bytes([four[0], four[1], four[2], four[3]]));
    let count = numbers.next().unwrap_or(0).max(0) as usize;
    numbers.take(count).collect()
}
