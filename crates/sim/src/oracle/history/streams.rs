//! Streams members: mostly what a client sends, now and then something wrong.
//!
//! What decisions 1 to 5 and 25 make of topologies is left out: Kafka 4.4 refuses all of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::topics::Topics;
use crate::oracle::duel::History;
use crate::rng::Rng;

const GROUP: &str = "app";
const PROCESSES: [&str; 3] = ["p1", "p2", "p3"];
const NAMES: [&str; 5] = ["in", "in2", "cl", "r", "r2"];
/// Topologies that a group can have.
const VARIANTS: u64 = 8;
const LISTS: [&str; 3] = ["activeTasks", "standbyTasks", "warmupTasks"];

/// What a client knows.
#[derive(Clone, Debug)]
struct Client {
    process: &'static str,
    instance: Option<String>,
    endpoint: bool,
    epoch: i64,
    endpoint_epoch: i64,
    /// The lists it was given last, and those it sent last.
    given: Option<Value>,
    sent: Option<Value>,
    /// It left for now.
    away: bool,
}

pub struct Streams {
    rng: Rng,
    steps: usize,
    /// The log refuses a write now and then.
    log_refuses: bool,
    started: usize,
    topology: Value,
    topics: Topics,
    clients: BTreeMap<String, Client>,
    /// Whether its clients name endpoints. Topics stay as they are then (decision 11).
    endpoints: bool,
    made: usize,
    requests: u64,
    /// The answer to the request at hand does not arrive.
    lost: bool,
}

impl Streams {
    pub fn new(seed: u64, steps: usize) -> Streams {
        let mut rng = Rng::new(seed);
        let variant = rng.weighted(&[(3, 0), (3, 1), (3, 2), (3, 3), (1, 4), (1, 5), (1, 6), (1, 7)]);
        let mut topics = Topics::new(&NAMES);
        for (name, partitions) in NAMES.into_iter().zip([
            3,
            if variant == 4 { 3 } else { 2 },
            if variant == 1 { 3 } else { 2 },
            if variant == 5 { 2 } else { 3 },
            3,
        ]) {
            topics.put(name, partitions);
        }
        let log_refuses = rng.percent(15);
        let endpoints = rng.percent(20);
        if !endpoints {
            for (name, percent) in [("cl", 30), ("r", 50), ("r2", 50), ("in", 15)] {
                if rng.percent(percent) {
                    topics.remove(name);
                }
            }
        }
        Streams {
            topology: topology(variant),
            topics,
            endpoints,
            log_refuses,
            rng,
            steps,
            started: 0,
            clients: BTreeMap::new(),
            made: 0,
            requests: 0,
            lost: false,
        }
    }

    fn config(&mut self) -> Value {
        json!({"op": "config", "broker": {
            "group.streams.initial.rebalance.delay.ms": self.rng.weighted(&[(3, 0), (1, 2_000)]),
            "group.streams.assignment.interval.ms": self.rng.weighted(&[(2, 0), (1, 1_000)]),
            "group.streams.num.standby.replicas": self.rng.weighted(&[(2, 0), (1, 1), (1, 2)]),
            "group.streams.num.warmup.replicas": 0,
            "group.streams.max.size": self.rng.weighted(&[(5, 100), (1, 3)]),
            "offset.metadata.max.bytes": 10,
            "offsets.retention.minutes": self.rng.weighted(&[(1, 10_080), (1, 1)]),
        }})
    }

    fn request(&mut self, api: i16, version: i16, body: Value) -> Value {
        self.requests += 1;
        let client = self.rng.weighted(&[(30, "client"), (1, "other")]);
        json!({"op": "request", "api": api, "version": version, "id": format!("r{}", self.requests),
            "clientId": client, "body": body})
    }

    fn heartbeat(&mut self, id: &str, epoch: i64, more: Value) -> Value {
        let mut body = json!({"groupId": GROUP, "memberId": id, "memberEpoch": epoch});
        let client = &self.clients[id];
        if let Some(instance) = &client.instance {
            body["instanceId"] = json!(instance);
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        // The offsets that version 0 has no fields for are not sent with it.
        let version = if epoch == 0 { self.rng.weighted(&[(4, 1), (1, 0)]) } else { 1 };
        self.request(88, version, body)
    }

    fn new_client(&mut self) -> String {
        self.made += 1;
        let id = format!("m{}", self.made);
        let client = Client {
            process: self.rng.weighted(&PROCESSES.map(|process| (1, process))),
            instance: self.rng.percent(30).then(|| format!("i{}", self.made)),
            endpoint: self.endpoints && self.rng.percent(60),
            epoch: 0,
            endpoint_epoch: -1,
            given: None,
            sent: None,
            away: false,
        };
        self.clients.insert(id.clone(), client);
        id
    }

    fn join(&mut self, id: &str) -> Value {
        let mut more = json!({
            "rebalanceTimeoutMs": self.rng.pick(&[5_000, 20_000, 60_000]),
            "topology": self.topology,
            "endpointInformationEpoch": self.clients[id].endpoint_epoch,
            "processId": self.clients[id].process,
        });
        for list in LISTS {
            more[list] = json!([]);
        }
        if self.clients[id].endpoint {
            more["userEndpoint"] = json!({"host": format!("h-{id}"), "port": 9});
        }
        if self.rng.percent(10) {
            more["rackId"] = json!(self.rng.pick(&["r1", "r2"]));
        }
        if self.rng.percent(10) {
            more["clientTags"] = json!([{"key": "zone", "value": self.rng.pick(&["a", "b"])}]);
        }
        self.spoil(&mut more);
        if let Some(client) = self.clients.get_mut(id) {
            (client.epoch, client.sent, client.away) = (0, None, false);
        }
        self.heartbeat(id, 0, more)
    }

    /// Makes one in seven joins wrong.
    fn spoil(&mut self, join: &mut Value) {
        let first = |join: &mut Value, field: &str, value: Value| {
            if let Some(subtopology) = join["topology"]["subtopologies"].get_mut(0) {
                subtopology[field] = value;
            }
        };
        match self.rng.below(140) {
            0 => join["rebalanceTimeoutMs"] = json!(0),
            1 => join["processId"] = Value::Null,
            2 => join["topology"] = Value::Null,
            3 => join["activeTasks"] = Value::Null,
            4 => join["standbyTasks"] = json!([{"subtopologyId": "0", "partitions": [0]}]),
            5 => first(join, "sourceTopics", json!(["in", "__consumer_offsets"])),
            6 => first(join, "sourceTopics", json!(["a b", "c/d"])),
            7 => join["rebalanceTimeoutMs"] = json!(-1),
            8 => join["rackId"] = json!(""),
            9 => join["instanceId"] = json!(""),
            10 => join["memberId"] = json!(""),
            11 => join["groupId"] = json!(""),
            12 => first(join, "stateChangelogTopics", json!([{"name": "cl", "partitions": 3}])),
            13 => join["topology"]["epoch"] = json!(-1),
            14 => join["clientTags"] = json!([{"key": "zone", "value": "a"}, {"key": "zone", "value": "b"}]),
            15 => join["warmupTasks"] = Value::Null,
            // What a group cannot change to.
            17 => join["topology"] = topology(self.rng.below(VARIANTS) as usize),
            18 => first(join, "subtopologyId", json!("1")),
            19..26 if self.clients.len() == 1 => join["topology"] = impossible(self.rng.below(3)),
            _ => {}
        }
    }

    fn beat(&mut self, id: &str) -> Value {
        let client = self.clients[id].clone();
        if client.epoch == 0 {
            // Decision 16: with its own id an active static member comes back at once here, and not in Kafka.
            return if client.instance.is_some() { self.leave(id, -2) } else { self.join(id) };
        }
        let mut more = json!({"endpointInformationEpoch": client.endpoint_epoch});
        let mut epoch = client.epoch;
        let lists = |more: &mut Value, given: Option<&Value>| {
            for list in LISTS {
                more[list] = given.map_or_else(|| json!([]), |given| given[list].clone());
            }
        };
        if client.given.is_some() && (client.given != client.sent || self.rng.percent(20)) {
            lists(&mut more, client.given.as_ref());
            if let Some(client) = self.clients.get_mut(id) {
                client.sent.clone_from(&client.given);
            }
        } else if self.rng.percent(5) {
            lists(&mut more, None);
        }
        match self.rng.below(100) {
            0..3 => epoch += 1,
            3..7 => epoch = (epoch - 1).max(1),
            7..9 => more["rackId"] = json!("r3"),
            9..11 => more["rebalanceTimeoutMs"] = json!(7_777),
            11..15 => {
                let offset = self.rng.below(10);
                let offsets = [0, 1].map(|p| json!({"subtopologyId": "0", "partition": p, "offset": offset}));
                more["taskOffsets"] = json!(offsets);
            }
            15 => more["shutdownApplication"] = json!(true),
            16..18 => {
                lists(&mut more, None);
                let subtopology = self.rng.pick(&["0", "1", "7"]);
                more["activeTasks"] = json!([{"subtopologyId": subtopology, "partitions": [self.rng.pick(&[0, 9])]}]);
            }
            18 => more["processId"] = json!("p9"),
            19 => more["clientTags"] = json!([{"key": "zone", "value": "c"}]),
            20 => more["instanceId"] = json!("i1"),
            21 => more["activeTasks"] = json!([]),
            22 => self.spoil_beat(&mut epoch, &mut more),
            _ => {}
        }
        self.heartbeat(id, epoch, more)
    }

    /// Makes a heartbeat invalid by itself, or says something twice.
    fn spoil_beat(&mut self, epoch: &mut i64, more: &mut Value) {
        let twice = |entry: Value| json!([entry, entry]);
        match self.rng.below(12) {
            0 => *epoch = -3,
            1 => *epoch = -2,
            2 => more["topology"] = self.topology.clone(),
            3 => more["taskOffsets"] = twice(json!({"subtopologyId": "0", "partition": 0, "offset": 4})),
            4 => more["taskEndOffsets"] = json!([{"subtopologyId": "77", "partition": -1, "offset": 4}]),
            5 => more["clientTags"] = twice(json!({"key": "zone", "value": "a"})),
            6 => {
                LISTS.iter().for_each(|list| more[*list] = json!([]));
                more["activeTasks"] = twice(json!({"subtopologyId": "0", "partitions": [0]}));
            }
            7 => {
                LISTS.iter().for_each(|list| more[*list] = json!([]));
                more["standbyTasks"] = json!([{"subtopologyId": "0", "partitions": [-1]}]);
            }
            8 => more["memberId"] = json!(""),
            9 => more["instanceId"] = json!(""),
            10 => more["instanceId"] = json!("i99"),
            _ => more["userEndpoint"] = json!({"host": "elsewhere", "port": 1}),
        }
        // Endpoints are for histories whose topics stay (decision 11).
        if !self.endpoints
            && let Some(more) = more.as_object_mut()
        {
            more.remove("userEndpoint");
        }
    }

    fn leave(&mut self, id: &str, epoch: i64) -> Value {
        let command = self.heartbeat(id, epoch, json!({}));
        if let Some(client) = self.clients.get_mut(id) {
            (client.epoch, client.given, client.sent) = (0, None, None);
            client.away = epoch == -2;
        }
        if epoch == -1 {
            self.clients.remove(id);
        }
        command
    }

    /// A static member that is away comes back, mostly under another id.
    fn come_back(&mut self, old: &str) -> Value {
        let mut client = self.clients[old].clone();
        client.away = false;
        if self.rng.percent(30) {
            client.process = "p9";
        }
        let id = if self.rng.percent(30) {
            old.to_owned()
        } else {
            self.made += 1;
            format!("m{}", self.made)
        };
        self.clients.remove(old);
        self.clients.insert(id.clone(), client);
        self.join(&id)
    }

    fn member(&mut self) -> Value {
        let of = |away: bool, clients: &BTreeMap<String, Client>| -> Vec<String> {
            clients.iter().filter(|(_, client)| client.away == away).map(|(id, _)| id.clone()).collect()
        };
        let (inside, away) = (of(false, &self.clients), of(true, &self.clients));
        self.lost = self.rng.percent(6);
        let one = self.rng.below(100);
        if inside.is_empty() || (one < 10 && inside.len() < 5) {
            let id = self.new_client();
            return self.join(&id);
        }
        let id = inside[self.rng.index(inside.len())].clone();
        let is_static = self.clients[&id].instance.is_some();
        match one {
            10..15 if !is_static => self.join(&id),
            15..20 if !self.endpoints => self.leave(&id, -1),
            20..26 if is_static && !self.endpoints => self.leave(&id, -2),
            26..34 if !away.is_empty() => {
                let old = away[self.rng.index(away.len())].clone();
                self.come_back(&old)
            }
            34 => {
                let body = json!({"groupId": GROUP, "memberId": "nobody", "memberEpoch": self.rng.pick(&[3, -1])});
                self.request(88, 1, body)
            }
            35 if is_static => self.usurp(&id),
            _ => self.beat(&id),
        }
    }

    /// Another member joins under the instance of one that is there.
    fn usurp(&mut self, holder: &str) -> Value {
        self.made += 1;
        let id = format!("m{}", self.made);
        let client = self.clients[holder].clone();
        self.clients.insert(id.clone(), client);
        let command = self.join(&id);
        self.clients.remove(&id);
        command
    }

    fn look(&mut self) -> Value {
        match self.rng.below(11) {
            0..5 => self.request(89, 1, json!({"groupIds": [GROUP]})),
            5 => self.request(89, 0, json!({"groupIds": ["nobody", GROUP, ""]})),
            6 => self.request(15, 6, json!({"groups": [GROUP]})),
            7 => self.request(69, 1, json!({"groupIds": [GROUP]})),
            8 => self.request(16, 5, json!({"typesFilter": ["Streams"]})),
            _ => {
                let states = ["Stable", " reconciling", "empty", "not_ready", "Assigning", "dead", "zz"];
                let states = [self.rng.pick(&states), self.rng.pick(&states)];
                self.request(16, 5, json!({"statesFilter": states}))
            }
        }
    }

    fn offsets(&mut self) -> Value {
        let ids: Vec<String> = self.clients.keys().cloned().collect();
        let (id, epoch) = match ids.is_empty() || self.rng.percent(20) {
            true => (self.rng.weighted(&[(4, ""), (1, "nobody")]).to_owned(), self.rng.weighted(&[(5, -1), (1, 3)])),
            false => {
                let id = ids[self.rng.index(ids.len())].clone();
                let epoch = self.clients[&id].epoch;
                (id, self.rng.weighted(&[(6, epoch), (2, epoch - 1), (1, epoch + 1)]))
            }
        };
        match self.rng.below(12) {
            0..6 => {
                let version = self.rng.weighted(&[(1, 8), (8, 9)]);
                let topics = self.committed();
                let body =
                    json!({"groupId": GROUP, "memberId": id, "generationIdOrMemberEpoch": epoch, "topics": topics});
                self.request(8, version, body)
            }
            6..9 => {
                let member = if id.is_empty() { Value::Null } else { json!(id) };
                let stable = self.rng.percent(50);
                let body = json!({"requireStable": stable, "groups": [
                    {"groupId": GROUP, "topics": null, "memberId": member, "memberEpoch": epoch}]});
                self.request(9, 9, body)
            }
            9 => {
                let topic = self.rng.pick(&NAMES);
                let body =
                    json!({"groupId": GROUP, "topics": [{"name": topic, "partitions": [{"partitionIndex": 0}]}]});
                self.request(47, 0, body)
            }
            10 => {
                let topics = self.committed();
                let body = json!({"transactionalId": "tx", "producerId": 7, "producerEpoch": 0, "groupId": GROUP,
                    "memberId": id, "generationIdOrMemberEpoch": epoch, "topics": topics});
                self.request(28, 5, body)
            }
            _ => {
                let commit = self.rng.percent(70);
                json!({"op": "txnMarker", "producerId": 7, "producerEpoch": 0, "commit": commit})
            }
        }
    }

    /// Offsets of two partitions of a topic.
    fn committed(&mut self) -> Value {
        let topic = self.rng.pick(&NAMES);
        let note = self.rng.weighted(&[(8, "note"), (1, "a note too long")]);
        let partitions =
            [0, 1].map(|p| json!({"partitionIndex": p, "committedOffset": 7 + p, "committedMetadata": note}));
        json!([{"name": topic, "partitions": partitions}])
    }

    /// Somebody with the classic or the consumer protocol.
    fn stranger(&mut self) -> Value {
        let member = self.rng.weighted(&[(2, ""), (1, "m1")]);
        match self.rng.below(5) {
            0 => {
                let body = json!({"groupId": GROUP, "memberId": member, "protocolType": "consumer", "sessionTimeoutMs": 10_000,
                    "rebalanceTimeoutMs": 20_000, "protocols": [{"name": "range", "metadata": "AAA="}]});
                self.request(11, 9, body)
            }
            1 => self.request(12, 4, json!({"groupId": GROUP, "memberId": "m1", "generationId": 2})),
            2 => self.request(13, 5, json!({"groupId": GROUP, "members": [{"memberId": "m1"}]})),
            3 => {
                let body = json!({"groupId": GROUP, "memberId": "m1", "generationId": 2, "protocolType": "consumer",
                    "protocolName": "range"});
                self.request(14, 5, body)
            }
            _ => {
                let body = json!({"groupId": GROUP, "memberId": "k1", "memberEpoch": 0, "rebalanceTimeoutMs": 9_000,
                    "topicPartitions": [], "subscribedTopicNames": ["in"]});
                self.request(68, 1, body)
            }
        }
    }

    fn administer(&mut self) -> Value {
        match self.rng.below(10) {
            0..3 => json!({"op": "restart", "compacted": self.rng.percent(50)}),
            3..6 => {
                let configs = self.rng.weighted(&[
                    (2, json!({})),
                    (1, json!({"streams.num.standby.replicas": "1"})),
                    (1, json!({"streams.num.standby.replicas": "2"})),
                    (1, json!({"streams.rack.aware.assignment.tags": "zone"})),
                    (1, json!({"streams.heartbeat.interval.ms": "6000"})),
                    (1, json!({"streams.session.timeout.ms": "50000"})),
                    (1, json!({"streams.initial.rebalance.delay.ms": "3000"})),
                    (1, json!({"streams.assignment.interval.ms": "500"})),
                    (1, json!({"streams.task.offset.interval.ms": "20000"})),
                    (1, json!({"streams.session.timeout.ms": "44999"})),
                    (1, json!({"streams.num.standby.replicas": "3"})),
                    (1, json!({"streams.nothing": "1"})),
                ]);
                json!({"op": "groupConfig", "group": GROUP, "configs": configs})
            }
            6 => self.request(42, 2, json!({"groupsNames": [GROUP]})),
            _ if self.endpoints => self.look(),
            _ => self.topics.change(&mut self.rng),
        }
    }

    fn advance(&mut self) -> Value {
        let ms = match self.endpoints {
            true => self.rng.weighted(&[(1, 10), (1, 50), (1, 100), (1, 300)]),
            false => self.rng.weighted(&[
                (5, 100),
                (5, 500),
                (5, 1_000),
                (8, 2_500),
                (3, 6_000),
                (2, 15_000),
                (1, 46_000),
                (1, 600_000),
            ]),
        };
        json!({"op": "advance", "ms": ms})
    }
}

impl History for Streams {
    fn next(&mut self) -> Option<Value> {
        self.started += 1;
        if self.started > self.steps {
            return None;
        }
        if self.log_refuses && self.started > 2 && self.rng.percent(4) {
            return Some(super::failed_append(&mut self.rng));
        }
        self.lost = false;
        Some(match self.started {
            1 => self.config(),
            2 => self.topics.command(),
            _ => match self.rng.below(100) {
                0..69 => self.member(),
                69 => self.stranger(),
                70..82 => self.advance(),
                82..87 => self.look(),
                87..92 => self.offsets(),
                _ => self.administer(),
            },
        })
    }

    fn observe(&mut self, command: &Value, answer: &Value) {
        let (body, response) = (&command["body"], &answer["response"]);
        if command["api"] != 88 || self.lost {
            return;
        }
        let id = body["memberId"].as_str().unwrap_or_default();
        let Some(client) = self.clients.get_mut(id) else { return };
        match response["errorCode"].as_i64() {
            Some(0) if response["memberEpoch"].as_i64() >= Some(0) && body["memberEpoch"].as_i64() >= Some(0) => {
                client.epoch = response["memberEpoch"].as_i64().unwrap_or(0);
                client.endpoint_epoch = response["endpointInformationEpoch"].as_i64().unwrap_or(-1);
                if !response["activeTasks"].is_null() {
                    client.given = Some(LISTS.iter().map(|list| (*list, response[list].clone())).collect());
                }
            }
            Some(25 | 110) => (client.epoch, client.given, client.sent) = (0, None, None),
            _ => {}
        }
    }
}

/// One that no topics make work.
fn impossible(kind: u64) -> Value {
    let subtopologies = match kind {
        // Nobody writes to r.
        0 => json!([{"subtopologyId": "0", "sourceTopics": ["in"], "repartitionSourceTopics": [{"name": "r"}]}]),
        // Two that feed each other.
        1 => {
            json!([{"subtopologyId": "0", "repartitionSourceTopics": [{"name": "r"}], "repartitionSinkTopics": ["r2"]},
            {"subtopologyId": "1", "repartitionSourceTopics": [{"name": "r2"}], "repartitionSinkTopics": ["r"]}])
        }
        _ => json!([{"subtopologyId": "0", "stateChangelogTopics": [{"name": "cl"}]}]),
    };
    json!({"epoch": 0, "subtopologies": subtopologies})
}

fn topology(variant: usize) -> Value {
    let subtopologies = match variant {
        0 => json!([{"subtopologyId": "0", "sourceTopics": ["in"]},
            {"subtopologyId": "1", "sourceTopics": ["in2"], "stateChangelogTopics": [
                {"name": "cl", "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}]}]}]),
        1 => json!([{"subtopologyId": "0", "sourceTopics": ["in"], "repartitionSinkTopics": ["r"]},
            {"subtopologyId": "1", "repartitionSourceTopics": [{"name": "r"}],
                "stateChangelogTopics": [{"name": "cl", "replicationFactor": 1}]}]),
        2 => json!([{"subtopologyId": "0", "sourceTopics": ["in", "in2"]}]),
        4 => json!([{"subtopologyId": "0", "sourceTopics": ["in", "in2"],
            "copartitionGroups": [{"sourceTopics": [0, 1]}]}]),
        5 => json!([{"subtopologyId": "0", "sourceTopics": ["in"], "repartitionSinkTopics": ["r"]},
            {"subtopologyId": "1", "sourceTopics": ["in2"], "repartitionSourceTopics": [{"name": "r", "partitions": 2}],
                "copartitionGroups": [{"sourceTopics": [0], "repartitionSourceTopics": [0]}]}]),
        6 => json!([{"subtopologyId": "0", "sourceTopics": ["in"], "repartitionSinkTopics": ["r"]},
            {"subtopologyId": "1", "sourceTopics": ["in2"], "repartitionSinkTopics": ["r2"]},
            {"subtopologyId": "2", "repartitionSourceTopics": [{"name": "r"}, {"name": "r2"}],
                "copartitionGroups": [{"repartitionSourceTopics": [0, 1]}]}]),
        7 => json!([]),
        _ => json!([{"subtopologyId": "0", "sourceTopics": ["in2"], "stateChangelogTopics": [{"name": "cl"}]}]),
    };
    json!({"epoch": 0, "subtopologies": subtopologies})
}
