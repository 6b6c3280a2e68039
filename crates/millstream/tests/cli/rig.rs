//! A broker in this process, the binary as another, and what tests put into the broker.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use client::admin::positions::{Position, offsets as offsets_of};
use client::admin::topics::{self, NewTopic};
use client::admin::{Isolation, TopicPartition, offsets};
use client::{Client, Connection};
use serde_json::Value;
use server::RunningServer;
use server::config::{Format, ServerConfig, Setting, load_text};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wire::batch::BatchBuilder;
use wire::messages::add_partitions_to_txn_request::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::{Bytes, ErrorCode, KStr, Request};

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Succeeded; its output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        assert_eq!(self.stderr, "", "nothing is said on standard error");
        self.stdout
    }

    /// Succeeded with JSON.
    #[track_caller]
    pub fn json(self) -> Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Failed with this exit code, and said why in these words, without a trace of its insides.
    #[track_caller]
    pub fn failed(self, code: i32, words: &str) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains(words), "{words:?} is not in {:?}", self.stderr);
        assert!(self.stderr.starts_with("error: "), "{:?}", self.stderr);
        assert!(!self.stderr.contains("backtrace"), "{:?}", self.stderr);
        self.stdout
    }
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_millis() as i64
}

/// Runs the binary without any broker of its own.
pub fn millstream(args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(args)
        .env("NO_COLOR", "1")
        .env("RUST_BACKTRACE", "1")
        .output()
        .expect("the binary runs");
    Ran {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Lines, each as its words: tables without their widths.
pub fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

pub struct Rig {
    pub runtime: Runtime,
    pub address: String,
    pub dir: TempDir,
    running: Option<RunningServer>,
}

impl Rig {
    pub fn start() -> Rig {
        Rig::start_with(&[("admin.http.listener", "")])
    }

    pub fn start_with(settings: &[(&str, &str)]) -> Rig {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let runtime = Runtime::new().expect("threads");
        let path = dir.path().to_str().expect("temporary directories have UTF-8 names");
        let mut all = vec![("listeners", "PLAINTEXT://127.0.0.1:0"), ("log.dirs", path)];
        all.extend([("offsets.topic.num.partitions", "1"), ("log.flush.policy", "never")]);
        // Members that join one after the other on a busy machine are to be one generation; streams members wait for nobody.
        all.extend([("group.initial.rebalance.delay.ms", "1000"), ("group.streams.initial.rebalance.delay.ms", "0")]);
        all.extend(settings);
        let setting = |(name, value): (&str, &str)| Setting { name: name.to_owned(), value: value.to_owned() };
        let (values, _) = load_text(Format::Toml, all.into_iter().map(setting).collect()).expect("valid settings");
        let config = ServerConfig::from_values(values).expect("settings that agree");
        let running = runtime.block_on(server::start(config)).expect("the broker starts");
        let address = running.addresses()[0].to_string();
        let rig = Rig { runtime, address, dir, running: Some(running) };
        // The topics of the coordinators are made when somebody looks for them, as clients do first.
        for key_type in [0, 1] {
            let request =
                FindCoordinatorRequest { key_type, coordinator_keys: vec!["any".into()], ..Default::default() };
            until_ready(|| rig.call(&request), |found| found.coordinators[0].error_code);
        }
        rig
    }

    /// Runs a command of the binary against this broker.
    pub fn cli(&self, command: &str) -> Ran {
        self.cli_args(&command.split_whitespace().collect::<Vec<_>>())
    }

    pub fn cli_args(&self, args: &[&str]) -> Ran {
        let mut all = args.to_vec();
        all.extend(["--bootstrap-server", self.address.as_str()]);
        millstream(&all)
    }

    /// Stops the broker; its files can be looked at.
    pub fn stop(&mut self) -> &Path {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.shutdown()).expect("the broker stops");
        }
        self.dir.path()
    }

    /// What the admin HTTP interface answers.
    pub fn http(&self, path: &str) -> String {
        let address = self.running.as_ref().and_then(|running| running.admin_addresses().first().copied());
        let address = address.expect("it was switched on").to_string();
        let answer = self.runtime.block_on(client::http::get(&address, path, PATIENCE)).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    pub fn http_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.http(path)).expect("JSON")
    }

    pub fn client(&self) -> Client {
        Client::new(&self.address, "test", PATIENCE)
    }

    pub fn call<R: Request>(&self, request: &R) -> R::Response {
        self.runtime.block_on(self.client().call(request)).expect("an answer")
    }

    pub fn create_topic(&self, name: &str, partitions: i32) {
        self.create_topic_with(name, partitions, &[]);
    }

    /// With configs `KEY=VALUE`.
    pub fn create_topic_with(&self, name: &str, partitions: i32, configs: &[&str]) {
        let split = |config: &&str| config.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let configs = configs.iter().map(|config| split(config).expect("KEY=VALUE")).collect();
        let topic = NewTopic { name: name.to_owned(), partitions: Some(partitions), configs, ..Default::default() };
        self.runtime.block_on(topics::create(&mut self.client(), &topic, false)).expect("the topic is created");
    }

    /// One record for each timestamp.
    pub fn produce(&self, topic: &str, partition: i32, timestamps: &[i64]) {
        self.produce_batch(topic, partition, None, BatchBuilder::new(), timestamps);
    }

    fn produce_batch(
        &self,
        topic: &str,
        partition: i32,
        transactional_id: Option<&str>,
        mut batch: BatchBuilder,
        timestamps: &[i64],
    ) {
        for timestamp in timestamps {
            batch.append(*timestamp, Some(b"key"), Some(b"value"), &[]);
        }
        let records = Some(batch.build().expect("a small batch"));
        let topic = topics_of(self, topic);
        let request = ProduceRequest {
            transactional_id: transactional_id.map(KStr::copy),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![TopicProduceData {
                name: topic.0,
                topic_id: topic.1,
                partition_data: vec![PartitionProduceData { index: partition, records, ..Default::default() }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = self.call(&request);
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0, "{response:?}");
    }

    /// Begins a transaction and writes one record for each timestamp.
    pub fn begin(&self, id: &str, topic: &str, partition: i32, timestamps: &[i64]) -> Transaction<'_> {
        let request = InitProducerIdRequest {
            transactional_id: Some(KStr::copy(id)),
            transaction_timeout_ms: 600_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let producer = until_ready(|| self.call(&request), |response| response.error_code);
        let (producer_id, epoch) = (producer.producer_id, producer.producer_epoch);
        let add = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: KStr::copy(id),
            v3_and_below_producer_id: producer_id,
            v3_and_below_producer_epoch: epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: KStr::copy(topic),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        };
        let added = self.runtime.block_on(async {
            let mut connection = Connection::open(&self.address, "test", PATIENCE).await?;
            connection.call_at(&add, 3).await
        });
        let added = added.expect("an answer");
        assert_eq!(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, 0);
        let batch = BatchBuilder::new().producer(producer_id, epoch, 0).transactional(true);
        self.produce_batch(topic, partition, Some(id), batch, timestamps);
        let at = TopicPartition::new(topic, partition);
        Transaction { rig: self, id: id.to_owned(), producer_id, epoch, at }
    }

    fn end(&self, at: &TopicPartition, isolation: Isolation) -> Option<i64> {
        let wanted = BTreeMap::from([(at.clone(), Position::Latest)]);
        let ends = self.runtime.block_on(offsets_of(&mut self.client(), &wanted, isolation)).expect("an answer");
        ends[at].expect("the partition is there")
    }

    /// Offsets of the first partitions of a topic.
    pub fn commit(&self, group: &str, topic: &str, offsets: &[i64]) {
        let at = |(p, offset): (usize, &i64)| (TopicPartition::new(topic, p as i32), *offset);
        self.commit_all(group, offsets.iter().enumerate().map(at).collect());
    }

    pub fn commit_at(&self, group: &str, topic: &str, partition: i32, offset: i64) {
        self.commit_all(group, BTreeMap::from([(TopicPartition::new(topic, partition), offset)]));
    }

    fn commit_all(&self, group: &str, offsets: BTreeMap<TopicPartition, i64>) {
        let outcomes = self.runtime.block_on(offsets::commit(&mut self.client(), group, &offsets)).expect("an answer");
        assert!(outcomes.values().all(|code| code.is_none()), "{outcomes:?}");
    }

    /// What a group has committed of a topic, by partition.
    pub fn committed(&self, group: &str, topic: &str) -> Vec<i64> {
        let all = self.runtime.block_on(offsets::committed(&mut self.client(), group)).expect("an answer");
        all.iter().filter(|(at, _)| at.topic == topic).map(|(_, offset)| *offset).collect()
    }

    /// Members of a classic group, by instance id, in one generation. Each keeps its connection.
    pub fn classic_members(&self, group: &str, instances: &[&str]) -> Vec<String> {
        let join = |instance: &str| JoinGroupRequest {
            group_id: KStr::copy(group),
            session_timeout_ms: 45_000,
            rebalance_timeout_ms: 45_000,
            group_instance_id: Some(KStr::copy(instance)),
            protocol_type: "consumer".into(),
            protocols: vec![JoinGroupRequestProtocol {
                name: "range".into(),
                metadata: Bytes::from_static(b"\0\0\0\0\0\x01\0\x02in\xff\xff\xff\xff"),
                ..Default::default()
            }],
            ..Default::default()
        };
        let joined = self.runtime.block_on(async {
            let waiting: Vec<_> = instances
                .iter()
                .map(|instance| {
                    let (mut client, request, group) = (self.client(), join(instance), group.to_owned());
                    tokio::spawn(async move { client.call_coordinator(&group, &request, |r| r.error_code).await })
                })
                .collect();
            let mut joined = Vec::new();
            for answer in waiting {
                joined.push(answer.await.expect("no panic").expect("an answer"));
            }
            joined
        });
        let ids: Vec<KStr> = joined.iter().map(|response| response.member_id.clone()).collect();
        let leader = joined.iter().find(|response| response.leader == response.member_id).expect("there is a leader");
        assert_eq!(leader.members.len(), instances.len(), "all are in one generation");
        // The first gets partition 0 of the topic "in", the second partition 1, and so on.
        let assignment = |number: usize| {
            let mut bytes = b"\0\0\0\0\0\x01\0\x02in\0\0\0\x01\0\0\0".to_vec();
            bytes.extend([number as u8, 0xff, 0xff, 0xff, 0xff]);
            Bytes::from(bytes)
        };
        let assignments = ids.iter().enumerate().map(|(number, id)| SyncGroupRequestAssignment {
            member_id: id.clone(),
            assignment: assignment(number),
            ..Default::default()
        });
        let sync = SyncGroupRequest {
            group_id: KStr::copy(group),
            generation_id: leader.generation_id,
            member_id: leader.member_id.clone(),
            group_instance_id: instances
                .iter()
                .zip(&ids)
                .find(|(_, id)| **id == leader.member_id)
                .map(|(instance, _)| KStr::copy(instance)),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments: assignments.collect(),
            ..Default::default()
        };
        assert_eq!(self.call(&sync).error_code, 0);
        ids.iter().map(KStr::to_string).collect()
    }
}

fn topics_of(rig: &Rig, topic: &str) -> (KStr, wire::Uuid) {
    let found = rig.runtime.block_on(topics::get(&mut rig.client(), topic)).expect("the topic is there");
    (KStr::copy(topic), found.id.parse().expect("a topic id"))
}

/// An open transaction.
pub struct Transaction<'a> {
    rig: &'a Rig,
    id: String,
    producer_id: i64,
    epoch: i16,
    at: TopicPartition,
}

impl Transaction<'_> {
    /// Returns when the marker is there, which comes after the answer.
    pub fn end(self, committed: bool) {
        let request = EndTxnRequest {
            transactional_id: KStr::copy(&self.id),
            producer_id: self.producer_id,
            producer_epoch: self.epoch,
            committed,
            ..Default::default()
        };
        let end = || self.rig.end(&self.at, Isolation::ReadUncommitted);
        let before = end();
        until_ready(|| self.rig.call(&request), |response| response.error_code);
        for _ in 0..400 {
            if end() > before {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("no marker is written");
    }
}

/// Asks again while the coordinator says that it is not ready; bounded.
fn until_ready<R>(ask: impl Fn() -> R, code: impl Fn(&R) -> i16) -> R {
    for _ in 0..200 {
        let answer = ask();
        match ErrorCode::from_code(code(&answer)) {
            ErrorCode::None => return answer,
            code if code.is_retriable() => std::thread::sleep(Duration::from_millis(50)),
            code => panic!("{code}"),
        }
    }
    panic!("the coordinator does not get ready");
}
