//! The journal names the cause of what happens to a group, over real sockets and over a restart (issue 7, "done when" 2).

mod common;

use std::time::{Duration, Instant};

use common::{Client, TestBroker, http_get, metric};
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
use wire::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::delete_groups_request::DeleteGroupsRequest;
use wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use wire::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, TaskIds};
use wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::{Bytes, KStr};

const GROUP_RESOURCE: i8 = 32;
const SET: i8 = 0;

const SETTINGS: &[(&str, &str)] = &[
    ("admin.http.listener", "127.0.0.1:0"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.streams.initial.rebalance.delay.ms", "0"),
    ("group.streams.assignment.interval.ms", "0"),
    ("group.consumer.assignment.interval.ms", "0"),
    ("group.consumer.min.session.timeout.ms", "500"),
    ("group.consumer.session.timeout.ms", "2500"),
    ("group.consumer.min.heartbeat.interval.ms", "50"),
    ("group.consumer.heartbeat.interval.ms", "100"),
];

/// A member of a consumer group that does what it is told when it is told to beat.
struct Member {
    client: Client,
    request: ConsumerGroupHeartbeatRequest,
}

impl Member {
    async fn new(broker: &TestBroker, group: &str, id: &str, topics: &[&str]) -> Member {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: KStr::copy(group),
            member_id: KStr::copy(id),
            rebalance_timeout_ms: 400,
            subscribed_topic_names: Some(topics.iter().map(|topic| KStr::copy(topic)).collect()),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        Member { client: broker.connect().await, request }
    }

    async fn send(&mut self) -> ConsumerGroupHeartbeatResponse {
        self.client.call(1, &self.request).await
    }

    /// One heartbeat, after which the member owns what it was given.
    async fn beat(&mut self) {
        let response = self.send().await;
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        self.request.member_epoch = response.member_epoch;
        if let Some(assignment) = response.assignment {
            let owned = assignment.topic_partitions.into_iter();
            let owned = owned.map(|topic| TopicPartitions {
                topic_id: topic.topic_id,
                partitions: topic.partitions,
                ..Default::default()
            });
            self.request.topic_partitions = Some(owned.collect());
        }
    }
}

/// Beats all of them until the journal has an entry of that kind after the first `seen` ones.
async fn until(broker: &TestBroker, group: &str, members: &mut [&mut Member], seen: usize, kind: &str) -> Entries {
    let started = Instant::now();
    loop {
        for member in members.iter_mut() {
            member.beat().await;
        }
        let entries = journal(broker, group).await;
        if entries.0.iter().skip(seen).any(|entry| is(entry, kind)) {
            return entries;
        }
        assert!(started.elapsed() < common::PATIENCE, "no {kind} after {seen} in {entries:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[derive(Debug)]
struct Entries(Vec<serde_json::Value>);

impl Entries {
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The first entry of the kind after the first `seen` ones.
    #[track_caller]
    fn first(&self, seen: usize, kind: &str) -> &serde_json::Value {
        let found = self.0.iter().skip(seen).find(|entry| is(entry, kind));
        found.unwrap_or_else(|| panic!("no {kind} after {seen} in {self:#?}"))
    }
}

fn is(entry: &serde_json::Value, kind: &str) -> bool {
    entry["kind"] == kind || entry["also"].as_array().is_some_and(|also| also.iter().any(|other| other == kind))
}

async fn journal(broker: &TestBroker, group: &str) -> Entries {
    let answer = http_get(broker, &format!("/groups/{group}/journal")).await;
    assert!(answer.status == 200 || answer.status == 404, "{}", answer.body);
    let value: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    Entries(value["events"].as_array().cloned().unwrap_or_default())
}

async fn create_topic(client: &mut Client, name: &str, num_partitions: i32) {
    let topic = CreatableTopic { name: KStr::copy(name), num_partitions, replication_factor: 1, ..Default::default() };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(client.call(7, &request).await.topics[0].error_code, 0);
}

async fn grow_topic(client: &mut Client, name: &str, count: i32) {
    let topic = CreatePartitionsTopic { name: KStr::copy(name), count, assignments: None };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(client.call(3, &request).await.results[0].error_code, 0);
}

async fn delete_topic(client: &mut Client, name: &str) {
    let topic = DeleteTopicState { name: Some(KStr::copy(name)), ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(client.call(6, &request).await.responses[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_causes_are_named_and_outlive_a_restart() {
    let broker = TestBroker::start(SETTINGS).await;
    let mut admin = broker.connect().await;
    create_topic(&mut admin, "orders", 4).await;

    // 1: a member joins.
    let mut a = Member::new(&broker, "g", "a", &["orders"]).await;
    let entries = until(&broker, "g", &mut [&mut a], 0, "stable").await;
    let joined = entries.first(0, "member-joined");
    assert_eq!((&joined["who"]["member_id"], &joined["who"]["host"]), (&"a".into(), &"127.0.0.1".into()));
    assert_eq!(joined["moved"], 4, "{joined:#}");
    let text = joined["text"].as_str().unwrap();
    assert!(text.starts_with("test (a, 127.0.0.1) joined: epoch 1 to 2; 4 partitions move"), "{text}");
    let stable = entries.first(0, "stable");
    assert_eq!(stable["waited_for"][0]["member_id"], "a");

    // ... and another one, which takes two partitions over.
    let seen = entries.len();
    let mut b = Member::new(&broker, "g", "b", &["orders"]).await;
    let entries = until(&broker, "g", &mut [&mut b, &mut a], seen, "stable").await;
    let joined = entries.first(seen, "member-joined");
    assert_eq!(joined["moved"], 2);
    assert_eq!((&joined["moves"][0]["from"], &joined["moves"][0]["to"]), (&"a".into(), &"b".into()));

    // 2: a topic grows.
    let seen = entries.len();
    grow_topic(&mut admin, "orders", 6).await;
    let entries = until(&broker, "g", &mut [&mut a, &mut b], seen, "stable").await;
    assert_eq!(entries.first(seen, "topic-grew")["topics"][0], "orders");

    // 3: a member changes its subscription, to a topic that does not exist yet.
    let seen = entries.len();
    b.request.subscribed_topic_names = Some(vec!["orders".into(), "payments".into()]);
    let entries = until(&broker, "g", &mut [&mut b, &mut a], seen, "subscription-changed").await;
    assert_eq!(entries.first(seen, "subscription-changed")["who"]["member_id"], "b");

    // 4 and 5: that topic is created, then deleted.
    let seen = entries.len();
    create_topic(&mut admin, "payments", 2).await;
    let entries = until(&broker, "g", &mut [&mut b, &mut a], seen, "topic-created").await;
    assert_eq!(entries.first(seen, "topic-created")["topics"][0], "payments");
    let entries = until(&broker, "g", &mut [&mut b, &mut a], entries.len() - 1, "stable").await;
    let seen = entries.len();
    delete_topic(&mut admin, "payments").await;
    let entries = until(&broker, "g", &mut [&mut b, &mut a], seen, "topic-deleted").await;
    let deleted = entries.first(seen, "topic-deleted");
    assert_eq!(deleted["topics"][0], "payments");
    assert!(deleted["text"].as_str().unwrap().contains("payments-0 away from b"), "{deleted:#}");

    // 6: another assignor.
    let seen = entries.len();
    for member in [&mut a, &mut b] {
        member.request.server_assignor = Some("range".into());
    }
    let entries = until(&broker, "g", &mut [&mut a, &mut b], seen, "assignor-changed").await;

    // 7: a static member goes away and comes back as another process.
    let seen = entries.len();
    let mut old = Member::new(&broker, "g", "s1", &["orders"]).await;
    old.request.instance_id = Some("till-7".into());
    until(&broker, "g", &mut [&mut old, &mut a, &mut b], seen, "stable").await;
    old.request.member_epoch = -2;
    assert_eq!(old.send().await.error_code, 0);
    // Until then its place is held, and anybody can see for how long.
    let (_, group) = get(&broker, "/groups/g").await;
    let held = group["members"].as_array().into_iter().flatten().find(|member| member["instance_id"] == "till-7");
    let held = held.unwrap_or_else(|| panic!("{group:#}"));
    assert_eq!((&held["member_id"], &held["epoch"]), (&"s1".into(), &(-2).into()));
    assert!((1..=2_500).contains(&held["session_left_ms"].as_u64().unwrap_or_default()), "{held:#}");
    let mut new = Member::new(&broker, "g", "s2", &["orders"]).await;
    new.request.instance_id = Some("till-7".into());
    let entries = until(&broker, "g", &mut [&mut new, &mut a, &mut b], seen, "member-returned").await;
    entries.first(seen, "member-away");
    let returned = entries.first(seen, "member-returned");
    assert_eq!((&returned["who"]["instance_id"], &returned["detail"]), (&"till-7".into(), &"it was s1".into()));

    // 8: whoever still is the old one is fenced, however often.
    let seen = entries.len();
    old.request.member_epoch = 5;
    for _ in 0..3 {
        assert_ne!(old.send().await.error_code, 0);
    }
    let entries = until(&broker, "g", &mut [&mut new, &mut a, &mut b], seen, "refused").await;
    let refused = entries.first(seen, "refused");
    assert!(refused["detail"].as_str().unwrap().starts_with("FENCED_INSTANCE_ID"), "{refused:#}");

    // 9: a member leaves.
    let seen = entries.len();
    b.request.member_epoch = -1;
    assert_eq!(b.send().await.error_code, 0);
    let entries = until(&broker, "g", &mut [&mut new, &mut a], seen, "stable").await;
    assert_eq!(entries.first(seen, "member-left")["who"]["member_id"], "b");

    // 10: a member does not give up what it has to, and is removed.
    let seen = entries.len();
    let mut c = Member::new(&broker, "g", "c", &["orders"]).await;
    let kept = a.request.topic_partitions.clone();
    let started = Instant::now();
    let entries = loop {
        c.beat().await;
        new.beat().await;
        // It is there, but keeps what it has.
        let answer = a.send().await;
        a.request.member_epoch = answer.member_epoch;
        a.request.topic_partitions = kept.clone();
        let entries = journal(&broker, "g").await;
        if entries.0.iter().skip(seen).any(|entry| is(entry, "too-slow")) {
            break entries;
        }
        assert!(started.elapsed() < common::PATIENCE, "{entries:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(entries.first(seen, "too-slow")["who"]["member_id"], "a");

    // 11: one is not heard of any more.
    let seen = entries.len();
    let entries = until(&broker, "g", &mut [&mut new], seen, "session-expired").await;
    assert_eq!(entries.first(seen, "session-expired")["who"]["member_id"], "c");
    let entries = until(&broker, "g", &mut [&mut new], entries.len() - 1, "stable").await;

    let text = http_get(&broker, "/metrics").await.body;
    let counted = |name: &str| metric(&text, &format!("{name}{{protocol=\"consumer\"}}"));
    assert_eq!(counted("millstream_member_joins_total"), Some(4.0));
    assert_eq!(counted("millstream_member_leaves_total"), Some(1.0));
    assert_eq!(counted("millstream_member_returns_total"), Some(1.0));
    let expirations = "millstream_member_expirations_total{protocol=\"consumer\",timeout=\"session\"}";
    assert_eq!(metric(&text, expirations), Some(1.0));
    let fenced = "millstream_member_refusals_total{protocol=\"consumer\",error=\"FENCED_INSTANCE_ID\"}";
    assert_eq!(metric(&text, fenced), Some(3.0));

    // All of it is told again after a restart.
    let broker = broker.restart().await;
    let again = journal(&broker, "g").await;
    for (before, after) in entries.0.iter().zip(&again.0) {
        assert_eq!(before, after);
    }
    assert!(again.len() >= entries.len());
    let some = http_get(&broker, "/groups/g/journal?limit=2").await.body;
    let some: serde_json::Value = serde_json::from_str(&some).unwrap();
    assert_eq!(some["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(http_get(&broker, "/groups/g/journal?since=x").await.status, 400);
    assert_eq!(http_get(&broker, "/groups/nobody/journal").await.status, 404);
}

async fn streams_beat(client: &mut Client, request: &mut StreamsGroupHeartbeatRequest) {
    let response = client.call(1, request).await;
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
    request.member_epoch = response.member_epoch;
    request.topology = None;
    let owned = |tasks: Option<Vec<wire::messages::streams_group_heartbeat_response::TaskIds>>| {
        tasks.map(|tasks| {
            let tasks = tasks.into_iter();
            tasks
                .map(|ids| TaskIds { subtopology_id: ids.subtopology_id, partitions: ids.partitions })
                .collect::<Vec<_>>()
        })
    };
    if let Some(active) = owned(response.active_tasks) {
        request.active_tasks = Some(active);
        request.standby_tasks = Some(owned(response.standby_tasks).unwrap_or_default());
        request.warmup_tasks = Some(owned(response.warmup_tasks).unwrap_or_default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_groups_tell_of_topics_configuration_and_their_end() {
    let broker = TestBroker::start(SETTINGS).await;
    let mut admin = broker.connect().await;
    create_topic(&mut admin, "in", 2).await;
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec!["in".into()], ..Default::default() };
    let mut request = StreamsGroupHeartbeatRequest {
        group_id: "app".into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 10_000,
        topology: Some(Topology { epoch: 0, subtopologies: vec![subtopology] }),
        process_id: Some("p".into()),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        client_tags: Some(Vec::new()),
        ..Default::default()
    };
    let mut client = broker.connect().await;
    let steps = ["member-joined", "config-changed", "topic-grew", "emptied", "deleted"];
    let mut seen = 0;
    for kind in steps {
        match kind {
            "config-changed" => {
                let config = AlterableConfig {
                    name: "streams.num.standby.replicas".into(),
                    config_operation: SET,
                    value: Some("1".into()),
                };
                let resource = AlterConfigsResource {
                    resource_type: GROUP_RESOURCE,
                    resource_name: "app".into(),
                    configs: vec![config],
                };
                let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
                assert_eq!(admin.call(1, &request).await.responses[0].error_code, 0);
            }
            "topic-grew" => grow_topic(&mut admin, "in", 3).await,
            "emptied" => {
                request.member_epoch = -1;
                assert_eq!(client.call(1, &request).await.error_code, 0);
            }
            "deleted" => {
                let request = DeleteGroupsRequest { groups_names: vec!["app".into()] };
                assert_eq!(admin.call(2, &request).await.results[0].error_code, 0);
            }
            _ => {}
        }
        let started = Instant::now();
        let entries = loop {
            if request.member_epoch >= 0 {
                streams_beat(&mut client, &mut request).await;
            }
            let entries = journal(&broker, "app").await;
            if entries.0.iter().skip(seen).any(|entry| is(entry, kind)) {
                break entries;
            }
            assert!(started.elapsed() < common::PATIENCE, "no {kind} in {entries:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let entry = entries.first(seen, kind);
        match kind {
            "config-changed" => assert_eq!(entry["detail"], "num.standby.replicas is now 1"),
            "topic-grew" => {
                assert_eq!((&entry["topics"][0], &entry["moves"][0]["what"]), (&"in".into(), &"0_2".into()))
            }
            "emptied" => assert_eq!(entries.first(seen, "member-left")["who"]["member_id"], "m"),
            _ => assert_eq!(entry["protocol"], "streams"),
        }
        seen = entries.len();
    }
}

fn join(member_id: &KStr, reason: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "c".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member_id.clone(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(b"\0\0") }],
        reason: Some(KStr::copy(reason)),
        ..Default::default()
    }
}

/// An assignment of `orders-0`, as consumers write it.
const ASSIGNMENT: &[u8] = b"\0\0\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\xff\xff\xff\xff";

async fn sync(client: &mut Client, joined: &JoinGroupResponse) {
    let assignment =
        SyncGroupRequestAssignment { member_id: joined.member_id.clone(), assignment: Bytes::from_static(ASSIGNMENT) };
    let request = SyncGroupRequest {
        group_id: "c".into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![assignment],
        ..Default::default()
    };
    assert_eq!(client.call(5, &request).await.error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn classic_groups_tell_reasons_and_who_was_removed() {
    let broker = TestBroker::start(SETTINGS).await;
    let mut client = broker.connect().await;
    let id = client.call(9, &join(&KStr::EMPTY, "")).await.member_id;
    let joined = client.call(9, &join(&id, "")).await;
    assert_eq!(joined.error_code, 0);
    sync(&mut client, &joined).await;
    let again = client.call(9, &join(&id, "the weather changed")).await;
    assert_eq!((again.error_code, again.generation_id), (0, 2));
    sync(&mut client, &again).await;
    let leave = MemberIdentity { member_id: id.clone(), reason: Some("holidays".into()), ..Default::default() };
    let request = LeaveGroupRequest { group_id: "c".into(), members: vec![leave], ..Default::default() };
    assert_eq!(client.call(5, &request).await.error_code, 0);
    let started = Instant::now();
    let entries = loop {
        let entries = journal(&broker, "c").await;
        if entries.0.iter().any(|entry| is(entry, "emptied")) {
            break entries;
        }
        assert!(started.elapsed() < common::PATIENCE, "{entries:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let kinds: Vec<&str> = entries.0.iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!(kinds, ["member-joined", "stable", "rejoined", "stable", "member-left", "emptied"], "{entries:#?}");
    let moved = &entries.0[1]["moves"][0];
    assert_eq!((&moved["what"], &moved["to"]), (&"orders-0".into(), &id.as_str().into()));
    assert_eq!((&entries.0[2]["detail"], &entries.0[4]["detail"]), (&"the weather changed".into(), &"holidays".into()));
    assert_eq!((&entries.0[3]["epoch"]["old"], &entries.0[3]["epoch"]["new"]), (&1.into(), &2.into()));
    assert_eq!(entries.0[3]["moved"], 0);
}

async fn get(broker: &TestBroker, path: &str) -> (u16, serde_json::Value) {
    let answer = http_get(broker, path).await;
    (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_answered_and_change_nothing() {
    let broker = TestBroker::start(SETTINGS).await;
    let mut admin = broker.connect().await;
    create_topic(&mut admin, "orders", 4).await;
    let mut a = Member::new(&broker, "g", "a", &["orders"]).await;
    let before = until(&broker, "g", &mut [&mut a], 0, "stable").await;

    let (status, plan) = get(&broker, "/groups/g/plan?add-members=1&partitions=orders%3D6").await;
    assert_eq!(status, 200, "{plan:#}");
    let members = plan["members"].as_array().expect("members");
    let counts: Vec<(usize, usize)> = members
        .iter()
        .map(|member| {
            let count = |when: &str| member[when]["active"].as_array().map_or(0, Vec::len);
            (count("before"), count("finally"))
        })
        .collect();
    assert_eq!(counts, [(4, 3), (0, 3)], "{plan:#}");
    assert_eq!((&members[0]["change"], &members[1]["change"]), (&serde_json::Value::Null, &"added".into()));
    assert_eq!(plan["moved"].as_u64(), plan["moves"].as_array().map(|moves| moves.len() as u64));
    let (_, group) = get(&broker, "/groups/g").await;
    assert_eq!(group["members"][0]["assigned"]["active"].as_array().map(Vec::len), Some(4));
    assert_eq!(journal(&broker, "g").await.len(), before.len());

    for (query, status) in [
        ("remove-member=a", 200),
        ("assignor=range", 200),
        ("remove-member=nobody", 400),
        ("assignor=fastest", 400),
        ("add-members=-1", 400),
        ("add-members=100000", 400),
        ("partitions=orders", 400),
        ("partitions=orders%3D3", 400),
        ("partitions=payments%3D3", 400),
        ("set=consumer.session.timeout.ms", 400),
        ("set=no.such.key%3D1", 400),
        ("colour=red", 400),
    ] {
        let (got, answer) = get(&broker, &format!("/groups/g/plan?{query}")).await;
        assert_eq!(got, status, "{query}: {answer:#}");
        assert_eq!(answer["error"].is_string(), status != 200, "{query}");
    }
    assert_eq!(get(&broker, "/groups/nobody/plan").await.0, 404);
    let id = admin.call(9, &join(&KStr::EMPTY, "")).await.member_id;
    let joined = admin.call(9, &join(&id, "")).await;
    sync(&mut admin, &joined).await;
    assert_eq!(get(&broker, "/groups/c/plan").await.0, 409);
    let (_, list) = get(&broker, "/groups").await;
    let names: Vec<&str> =
        list["groups"].as_array().into_iter().flatten().filter_map(|g| g["group"].as_str()).collect();
    assert_eq!(names, ["c", "g"]);
}
