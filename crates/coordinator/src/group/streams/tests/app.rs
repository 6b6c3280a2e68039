//! An application of stock Streams clients on a test bench, in virtual time (S 11.2, 11.3): each heartbeats when its last
//! answer told it to, acknowledges a changed assignment at once, and reports offsets as a v1 client does.

use std::collections::{BTreeMap, BTreeSet};

use wire::messages::streams_group_describe_response::DescribedGroup;
use wire::messages::streams_group_heartbeat_request as hb;
use wire::messages::streams_group_heartbeat_response::{StreamsGroupHeartbeatResponse, TaskIds};
use wire::{KStr, Message, Writer};

use crate::command::{Caller, Command};
use crate::config::BrokerConfig;
use crate::outcome::{Effect, Reply};
use crate::testing::Bench;

pub(super) const GROUP: &str = "app";

/// Task lists as a client has them: `0_1` for task 1 of subtopology 0.
pub(super) type Names = BTreeSet<String>;

/// One stream thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    pub id: String,
    pub process: String,
    pub instance: Option<String>,
    pub endpoint: Option<(String, u16)>,
    pub tags: Vec<(String, String)>,
    pub version: i16,
    pub topology_epoch: i32,
    pub epoch: i32,
    pub active: Names,
    pub standby: Names,
    pub warmup: Names,
    acknowledged: bool,
    endpoint_epoch: i32,
    /// When it heartbeats next, on the monotonic clock.
    pub due_ms: u64,
    reports_at_ms: u64,
    /// Task state on its disk: offset reached, by task.
    pub state: BTreeMap<String, i64>,
    pub last: StreamsGroupHeartbeatResponse,
}

pub(super) struct App {
    pub bench: Bench,
    pub topology: hb::Topology,
    pub clients: BTreeMap<String, Client>,
    /// End of each task's changelog.
    pub end_offset: i64,
    /// Records that a standby or warm-up restores per millisecond.
    pub restore_per_ms: i64,
    /// Internal topics are created when asked for.
    pub creates_topics: bool,
}

/// Nothing waits: what Kafka's tests of the protocol configure.
pub(super) fn immediate() -> BrokerConfig {
    BrokerConfig {
        streams_initial_rebalance_delay_ms: Some(0),
        streams_assignment_interval_ms: Some(0),
        streams_heartbeat_interval_ms: Some(5_000),
        ..BrokerConfig::default()
    }
}

/// One subtopology over `topic`; with a changelog if `stateful`.
pub(super) fn subtopology(id: &str, topic: &str, stateful: bool) -> hb::Subtopology {
    let changelog = hb::TopicInfo { name: KStr::from(format!("{GROUP}-{id}-changelog")), ..Default::default() };
    hb::Subtopology {
        subtopology_id: KStr::copy(id),
        source_topics: vec![KStr::copy(topic)],
        state_changelog_topics: if stateful { vec![changelog] } else { Vec::new() },
        ..Default::default()
    }
}

impl App {
    /// With a topic `in` of so many partitions, read by subtopology 0.
    pub(super) fn new(broker: BrokerConfig, partitions: i32, stateful: bool) -> App {
        let mut bench = Bench::with_config(broker);
        bench.set_topic("in", partitions);
        let topology = hb::Topology { epoch: 0, subtopologies: vec![subtopology("0", "in", stateful)] };
        let clients = BTreeMap::new();
        App { bench, topology, clients, end_offset: 0, restore_per_ms: 0, creates_topics: true }
    }

    pub(super) fn now(&self) -> u64 {
        self.bench.now().mono_ms
    }

    /// A v1 client that has not joined yet.
    pub(super) fn client(&self, id: &str, process: &str) -> Client {
        Client {
            id: id.to_owned(),
            process: process.to_owned(),
            version: 1,
            topology_epoch: self.topology.epoch,
            acknowledged: true,
            endpoint_epoch: -1,
            due_ms: self.now(),
            ..Client::default()
        }
    }

    pub(super) fn add(&mut self, client: Client) {
        self.clients.insert(client.id.clone(), client);
    }

    /// Joins at once; yields the answer.
    pub(super) fn join(&mut self, id: &str, process: &str) -> StreamsGroupHeartbeatResponse {
        self.add(self.client(id, process));
        self.beat(id)
    }

    /// Sends a request as it is.
    pub(super) fn send(
        &mut self,
        version: i16,
        request: hb::StreamsGroupHeartbeatRequest,
    ) -> StreamsGroupHeartbeatResponse {
        let caller =
            Caller { client_id: KStr::from("client"), client_host: KStr::from("/127.0.0.1"), api_version: version };
        let reply = self.bench.ask(Command::StreamsGroupHeartbeat(caller, Box::new(request)));
        let Reply::StreamsGroupHeartbeat(answer) = reply else { panic!("another reply") };
        let mut writer = Writer::new();
        answer.encode(&mut writer, version).expect("the answer fits the version");
        if self.creates_topics {
            self.carry_out_effects();
        }
        *answer
    }

    pub(super) fn carry_out_effects(&mut self) {
        for effect in self.bench.effects() {
            match effect {
                Effect::CreateInternalTopics { group_id, topics } => {
                    for topic in topics {
                        self.bench.set_topic(&topic.name, topic.partitions);
                    }
                    let nothing = Vec::new();
                    self.bench.ask(Command::InternalTopicsCreated {
                        group_id,
                        failures: vec![],
                        unauthorized: nothing,
                    });
                }
                Effect::ComputeAssignment { group_id, group_epoch, input } => {
                    let target = input.compute();
                    self.bench.ask(Command::AssignmentReady { group_id, group_epoch, target });
                }
                Effect::ResolveRegex { group_id, expressions } => {
                    let matches = crate::group::regex::resolve(&expressions, self.bench.topics());
                    self.bench.ask(Command::RegexResolved { group_id, matches, image_version: 0 });
                }
            }
        }
    }

    /// A leave with epoch -1 or -2.
    pub(super) fn leave(&mut self, id: &str, epoch: i32) -> StreamsGroupHeartbeatResponse {
        let client = self.clients.remove(id).expect("the client is there");
        self.send(
            client.version,
            hb::StreamsGroupHeartbeatRequest {
                group_id: KStr::from(GROUP),
                member_id: KStr::copy(id),
                member_epoch: epoch,
                instance_id: client.instance.as_deref().map(KStr::copy),
                ..Default::default()
            },
        )
    }

    /// The next heartbeat of a client, as the stock client would send it.
    pub(super) fn beat(&mut self, id: &str) -> StreamsGroupHeartbeatResponse {
        let request = self.request(id);
        let version = self.clients[id].version;
        let answer = self.send(version, request);
        self.receive(id, &answer);
        answer
    }

    /// What the client would send next.
    pub(super) fn request(&mut self, id: &str) -> hb::StreamsGroupHeartbeatRequest {
        let now_ms = self.now();
        let (end_offset, topology) = (self.end_offset, self.topology.clone());
        let client = self.clients.get_mut(id).expect("the client is there");
        let joins = client.epoch == 0;
        let mut request = hb::StreamsGroupHeartbeatRequest {
            group_id: KStr::from(GROUP),
            member_id: KStr::copy(id),
            member_epoch: client.epoch,
            endpoint_information_epoch: client.endpoint_epoch,
            instance_id: client.instance.as_deref().map(KStr::copy),
            ..Default::default()
        };
        if joins {
            request.rebalance_timeout_ms = 300_000;
            request.topology = Some(hb::Topology { epoch: client.topology_epoch, ..topology });
            request.process_id = Some(KStr::copy(&client.process));
            let tags = client.tags.iter();
            let tags = tags.map(|(key, value)| hb::KeyValue { key: KStr::copy(key), value: KStr::copy(value) });
            request.client_tags = Some(tags.collect());
            let endpoint = client.endpoint.as_ref();
            request.user_endpoint = endpoint.map(|(host, port)| hb::Endpoint { host: KStr::copy(host), port: *port });
        }
        if joins || !client.acknowledged {
            let lists = if joins { [Names::new(), Names::new(), Names::new()] } else { client.lists() };
            let [active, standby, warmup] = lists.map(|names| Some(task_ids(&names)));
            (request.active_tasks, request.standby_tasks, request.warmup_tasks) = (active, standby, warmup);
            client.acknowledged = true;
        }
        let caught_up = client.warmup.iter().any(|task| {
            end_offset - client.state.get(task).copied().unwrap_or(0) <= client.last.acceptable_recovery_lag
        });
        if client.version >= 1 && (joins || now_ms >= client.reports_at_ms || caught_up) {
            request.task_offsets = Some(client.offsets(|offset| offset));
            request.task_end_offsets = Some(client.offsets(|_| end_offset));
            client.reports_at_ms = now_ms + client.last.task_offset_interval_ms.max(0) as u64;
        }
        request
    }

    /// What the client makes of an answer.
    pub(super) fn receive(&mut self, id: &str, answer: &StreamsGroupHeartbeatResponse) {
        let now_ms = self.now();
        let client = self.clients.get_mut(id).expect("the client is there");
        client.last = answer.clone();
        client.due_ms = now_ms + answer.heartbeat_interval_ms.max(0) as u64;
        match answer.error_code {
            0 => {}
            25 | 110 => {
                client.epoch = 0;
                client.set([Names::new(), Names::new(), Names::new()]);
                client.due_ms = now_ms;
                return;
            }
            other => panic!("{id} is answered error {other}: {:?}", answer.error_message),
        }
        client.epoch = answer.member_epoch;
        client.endpoint_epoch = answer.endpoint_information_epoch;
        let lists = [&answer.active_tasks, &answer.standby_tasks, &answer.warmup_tasks];
        let present = lists.iter().filter(|list| list.is_some()).count();
        assert!(present == 0 || present == 3, "a client throws on mixed lists: {answer:?}");
        if present == 3 {
            let lists = lists.map(|list| names(list.as_deref().unwrap_or_default()));
            if lists != client.lists() {
                client.set(lists);
                client.acknowledged = false;
                client.due_ms = now_ms;
            }
        }
    }

    /// Lets clients heartbeat when they are due, for so long.
    pub(super) fn run_for(&mut self, ms: u64) {
        let end = self.now() + ms;
        self.run_until(end, |_| false);
    }

    /// Runs until the group is stable and nothing is being warmed up; yields how long that took. At most `limit_ms`.
    pub(super) fn settle(&mut self, limit_ms: u64) -> u64 {
        let start = self.now();
        let settled = self.run_until(start + limit_ms, |app| app.describe().group_state == "Stable");
        assert!(settled, "not stable after {limit_ms} ms: {:#?}", self.describe());
        self.now() - start
    }

    /// True as soon as `done` says so after a heartbeat, false at the end.
    pub(super) fn run_until(&mut self, end_ms: u64, done: impl Fn(&mut App) -> bool) -> bool {
        for _ in 0..1_000_000 {
            let next = self.clients.values().map(|client| (client.due_ms, client.id.clone())).min();
            let Some((due_ms, id)) = next.filter(|(due_ms, _)| *due_ms <= end_ms) else {
                self.advance(end_ms.saturating_sub(self.now()));
                return done(self);
            };
            self.advance(due_ms.saturating_sub(self.now()));
            self.beat(&id);
            if done(self) {
                return true;
            }
        }
        panic!("clients heartbeat without end");
    }

    /// Moves the clock; state is restored meanwhile.
    pub(super) fn advance(&mut self, ms: u64) {
        if ms == 0 {
            return;
        }
        self.bench.advance(ms);
        self.carry_out_effects();
        let (step, end) = (self.restore_per_ms * ms as i64, self.end_offset);
        for client in self.clients.values_mut() {
            for task in client.active.iter() {
                client.state.insert(task.clone(), end);
            }
            for task in client.standby.iter().chain(&client.warmup) {
                let offset = client.state.entry(task.clone()).or_insert(0);
                *offset = (*offset + step).min(end);
            }
        }
    }

    pub(super) fn describe(&mut self) -> DescribedGroup {
        let command = Command::StreamsGroupDescribe {
            caller: crate::testing::caller(1),
            group_id: KStr::from(GROUP),
            include_topology_description: false,
        };
        let Reply::StreamsGroupDescribe(group) = self.bench.ask(command) else { panic!("another reply") };
        *group
    }

    pub(super) fn state(&mut self) -> String {
        self.describe().group_state.to_string()
    }

    /// Every task is active once, and by whom.
    pub(super) fn owners(&self) -> BTreeMap<String, String> {
        let mut owners = BTreeMap::new();
        for client in self.clients.values() {
            for task in &client.active {
                let before = owners.insert(task.clone(), client.id.clone());
                assert_eq!(before, None, "{task} is active twice");
            }
        }
        owners
    }
}

impl Client {
    fn lists(&self) -> [Names; 3] {
        [self.active.clone(), self.standby.clone(), self.warmup.clone()]
    }

    fn set(&mut self, lists: [Names; 3]) {
        [self.active, self.standby, self.warmup] = lists;
    }

    /// Running active tasks are never reported.
    fn offsets(&self, offset: impl Fn(i64) -> i64) -> Vec<hb::TaskOffset> {
        let held = self.state.iter().filter(|(task, _)| !self.active.contains(*task));
        let each = held.map(|(task, reached)| {
            let (subtopology, partition) = split(task);
            hb::TaskOffset { subtopology_id: KStr::copy(subtopology), partition, offset: offset(*reached) }
        });
        each.collect()
    }
}

fn split(task: &str) -> (&str, i32) {
    let (subtopology, partition) = task.split_once('_').expect("a task");
    (subtopology, partition.parse().expect("a number"))
}

pub(super) fn names(lists: &[TaskIds]) -> Names {
    let each = lists
        .iter()
        .flat_map(|list| list.partitions.iter().map(|partition| format!("{}_{partition}", list.subtopology_id)));
    each.collect()
}

fn task_ids(names: &Names) -> Vec<hb::TaskIds> {
    let mut lists: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for name in names {
        let (subtopology, partition) = split(name);
        lists.entry(subtopology).or_default().push(partition);
    }
    let each = lists.into_iter().map(|(id, partitions)| hb::TaskIds { subtopology_id: KStr::copy(id), partitions });
    each.collect()
}
