//! Groups over real sockets: parked answers, durability, restarts, timers. The rules of the protocols themselves are
//! tested in the coordinator, in virtual time.

mod common;

use std::time::{Duration, Instant};

use common::{Client, TestBroker};
use wire::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::delete_groups_request::DeleteGroupsRequest;
use wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use wire::messages::describe_groups_request::DescribeGroupsRequest;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::list_groups_request::ListGroupsRequest;
use wire::messages::metadata_request::MetadataRequest;
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_fetch_request::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, Subtopology, TopicInfo, Topology};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::{Bytes, KStr};

const UNKNOWN_MEMBER_ID: i16 = 25;
const REBALANCE_IN_PROGRESS: i16 = 27;

fn join(group: &str, member_id: &KStr, instance: Option<&str>) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: KStr::copy(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member_id.clone(),
        group_instance_id: instance.map(KStr::copy),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::from_static(b"\0\0") }],
        ..Default::default()
    }
}

/// Version 3 takes a new member at once.
async fn join_new(client: &mut Client, group: &str) -> JoinGroupResponse {
    client.call(3, &join(group, &KStr::EMPTY, None)).await
}

fn sync(group: &str, joined: &JoinGroupResponse, assignments: &[(&KStr, &'static [u8])]) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member_id, assignment)| SyncGroupRequestAssignment {
        member_id: (*member_id).clone(),
        assignment: Bytes::from_static(assignment),
    });
    SyncGroupRequest {
        group_id: KStr::copy(group),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

fn heartbeat(group: &str, joined: &JoinGroupResponse) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: KStr::copy(group),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    }
}

async fn create_topic(client: &mut Client, name: &str, partitions: i32) {
    let topic = CreatableTopic {
        name: KStr::copy(name),
        num_partitions: partitions,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(client.call(7, &request).await.topics[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_classic_group_forms_rebalances_and_outlives_a_crash() {
    let broker = TestBroker::start(&[("group.initial.rebalance.delay.ms", "0")]).await;
    let (mut a, mut b) = (broker.connect().await, broker.connect().await);
    let first = join_new(&mut a, "g").await;
    assert_eq!((first.error_code, first.generation_id), (0, 1));
    assert_eq!(first.leader, first.member_id);
    let synced = a.call(3, &sync("g", &first, &[(&first.member_id, b"all")])).await;
    assert_eq!((synced.error_code, synced.assignment), (0, Bytes::from_static(b"all")));
    assert_eq!(a.call(4, &heartbeat("g", &first)).await.error_code, 0);

    // The second member's join is parked until the first one has joined again.
    let id = b.send(3, &join("g", &KStr::EMPTY, None)).await;
    let started = Instant::now();
    while a.call(4, &heartbeat("g", &first)).await.error_code != REBALANCE_IN_PROGRESS {
        assert!(started.elapsed() < common::PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let first = a.call(3, &join("g", &first.member_id, None)).await;
    let second = b.receive::<JoinGroupRequest>(3, id).await;
    assert_eq!((first.generation_id, second.generation_id), (2, 2));
    assert_eq!((first.members.len(), second.members.len()), (2, 0));
    let id = b.send(3, &sync("g", &second, &[])).await;
    let parts: [(&KStr, &'static [u8]); 2] = [(&first.member_id, b"left"), (&second.member_id, b"right")];
    assert_eq!(a.call(3, &sync("g", &first, &parts)).await.assignment, Bytes::from_static(b"left"));
    assert_eq!(b.receive::<SyncGroupRequest>(3, id).await.assignment, Bytes::from_static(b"right"));

    // What was answered is on disk: both go on in their generation (C T-3).
    let broker = broker.crash().await;
    let mut a = broker.connect().await;
    assert_eq!(a.call(4, &heartbeat("g", &first)).await.error_code, 0);
    assert_eq!(a.call(4, &heartbeat("g", &second)).await.error_code, 0);
    let request =
        DescribeGroupsRequest { groups: vec!["g".into(), "none".into()], include_authorized_operations: true };
    let described = a.call(6, &request).await.groups;
    assert_eq!((described[0].group_state.as_str(), described[0].members.len()), ("Stable", 2));
    assert_eq!(described[0].members[0].client_host, "/127.0.0.1");
    assert_eq!(described[0].authorized_operations, 3400);
    assert_eq!((described[1].error_code, described[1].group_state.as_str()), (69, "Dead"));
    assert_eq!(described[1].authorized_operations, i32::MIN);
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn t_5_whoever_is_parked_when_the_broker_stops_is_told_to_look_elsewhere() {
    let broker = TestBroker::start(&[("group.initial.rebalance.delay.ms", "60000")]).await;
    let mut client = broker.connect().await;
    let id = client.send(3, &join("g", &KStr::EMPTY, None)).await;
    assert!(client.is_silent_for(Duration::from_millis(100)).await);
    let stopping = broker.running.shutdown();
    let (stopped, answer) = tokio::join!(stopping, client.receive::<JoinGroupRequest>(3, id));
    stopped.unwrap();
    assert_eq!(answer.error_code, 16);
}

/// M-8, C R-3: with `__consumer_offsets` go its groups. Whoever asked for one looks for the coordinator, which makes the topic again.
#[tokio::test(flavor = "multi_thread")]
async fn groups_go_with_their_topic_and_form_anew() {
    const NOT_COORDINATOR: i16 = 16;
    let broker = TestBroker::start(&[("group.initial.rebalance.delay.ms", "0")]).await;
    let (mut a, mut b) = (broker.connect().await, broker.connect().await);
    let delete = DeleteTopicsRequest { topic_names: vec!["__consumer_offsets".into()], ..Default::default() };
    let find = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
    let list = ListGroupsRequest::default();
    // The second time it is the topic that was made again.
    for _ in 0..2 {
        let first = join_new(&mut a, "g").await;
        assert_eq!((first.error_code, first.generation_id), (0, 1), "nothing is left of an older group");
        assert_eq!(a.call(3, &sync("g", &first, &[])).await.error_code, 0);
        let parked = b.send(3, &join("g", &KStr::EMPTY, None)).await;
        assert!(b.is_silent_for(Duration::from_millis(50)).await, "it waits for the first member");
        assert_eq!(a.call(5, &delete).await.responses[0].error_code, 0);
        assert_eq!(b.receive::<JoinGroupRequest>(3, parked).await.error_code, NOT_COORDINATOR);
        assert_eq!(a.call(4, &heartbeat("g", &first)).await.error_code, NOT_COORDINATOR);
        assert!(a.call(5, &list).await.groups.is_empty());
        assert_eq!(a.call(6, &find).await.coordinators[0].error_code, 0);
        assert_eq!(a.call(4, &heartbeat("g", &first)).await.error_code, UNKNOWN_MEMBER_ID);
    }
    // Nor does it come back.
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    assert!(client.call(5, &list).await.groups.is_empty());
    assert_eq!(join_new(&mut client, "g").await.generation_id, 1);
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_fire_without_any_request() {
    let settings = [("group.min.session.timeout.ms", "300"), ("group.initial.rebalance.delay.ms", "0")];
    let broker = TestBroker::start(&settings).await;
    let mut client = broker.connect().await;
    let request = JoinGroupRequest { session_timeout_ms: 300, ..join("g", &KStr::EMPTY, None) };
    let joined = client.call(3, &request).await;
    // The session begins anew with the sync, which is after this.
    let started = Instant::now();
    client.call(3, &sync("g", &joined, &[])).await;
    let describe = DescribeGroupsRequest { groups: vec!["g".into()], include_authorized_operations: false };
    loop {
        let group = client.call(6, &describe).await.groups.remove(0);
        if group.group_state == "Empty" {
            break;
        }
        assert_eq!(group.members.len(), 1);
        assert!(started.elapsed() < common::PATIENCE, "the session has long been over");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(started.elapsed() >= Duration::from_millis(250));
    assert_eq!(client.call(4, &heartbeat("g", &joined)).await.error_code, UNKNOWN_MEMBER_ID);
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_static_member_comes_back_without_a_rebalance_also_after_a_restart() {
    let broker = TestBroker::start(&[("group.initial.rebalance.delay.ms", "0")]).await;
    let mut client = broker.connect().await;
    let first = client.call(5, &join("g", &KStr::EMPTY, Some("i1"))).await;
    assert_eq!(client.call(3, &sync("g", &first, &[(&first.member_id, b"all")])).await.error_code, 0);
    let broker = broker.restart().await;
    let mut client = broker.connect().await;
    let again = client.call(9, &join("g", &KStr::EMPTY, Some("i1"))).await;
    assert_eq!((again.error_code, again.generation_id), (0, first.generation_id));
    assert_ne!(again.member_id, first.member_id);
    assert!(again.skip_assignment);
    let request = SyncGroupRequest {
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        group_instance_id: Some("i1".into()),
        ..sync("g", &again, &[])
    };
    assert_eq!(client.call(5, &request).await.assignment, Bytes::from_static(b"all"));
    let leave = LeaveGroupRequest {
        group_id: "g".into(),
        members: vec![MemberIdentity { group_instance_id: Some("i1".into()), ..Default::default() }],
        ..Default::default()
    };
    let left = client.call(4, &leave).await;
    assert_eq!((left.error_code, left.members[0].error_code), (0, 0));
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_offsets_survive_in_every_version_of_the_answer() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create_topic(&mut client, "t", 2).await;
    let partition = |partition_index, committed_offset| OffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_metadata: Some("m".into()),
        ..Default::default()
    };
    let topic =
        |name: &str, partitions| OffsetCommitRequestTopic { name: KStr::copy(name), partitions, ..Default::default() };
    let commit = OffsetCommitRequest {
        group_id: "g".into(),
        topics: vec![topic("t", vec![partition(0, 42), partition(7, 1)]), topic("none", vec![partition(0, 1)])],
        ..Default::default()
    };
    let mut errors: Vec<_> = client
        .call(8, &commit)
        .await
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.name.to_string(), p.partition_index, p.error_code)))
        .collect();
    errors.sort();
    assert_eq!(errors, [("none".to_owned(), 0, 3), ("t".to_owned(), 0, 0), ("t".to_owned(), 7, 3)]);
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    for version in 1..=9 {
        let asked = if version < 8 {
            let topics = vec![OffsetFetchRequestTopic { name: "t".into(), partition_indexes: vec![0, 1] }];
            OffsetFetchRequest { group_id: "g".into(), topics: Some(topics), ..Default::default() }
        } else {
            let topic =
                OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0, 1], ..Default::default() };
            let group =
                OffsetFetchRequestGroup { group_id: "g".into(), topics: Some(vec![topic]), ..Default::default() };
            OffsetFetchRequest { groups: vec![group], ..Default::default() }
        };
        let answer = client.call(version, &asked).await;
        let offsets: Vec<_> = if version < 8 {
            answer.topics[0].partitions.iter().map(|p| (p.committed_offset, p.error_code)).collect()
        } else {
            answer.groups[0].topics[0].partitions.iter().map(|p| (p.committed_offset, p.error_code)).collect()
        };
        assert_eq!(offsets, [(42, 0), (-1, 0)], "version {version}");
    }
    let listed = client.call(5, &ListGroupsRequest::default()).await;
    let listed: Vec<_> =
        listed.groups.iter().map(|group| (group.group_id.as_str(), group.group_type.as_str())).collect();
    assert_eq!(listed, [("g", "classic")]);
    let delete = DeleteGroupsRequest { groups_names: vec!["g".into(), "g".into(), "none".into()] };
    let deleted = client.call(2, &delete).await.results;
    let deleted: Vec<_> = deleted.iter().map(|result| (result.group_id.as_str(), result.error_code)).collect();
    assert_eq!(deleted, [("g", 0), ("none", 69)]);
    broker.running.shutdown().await.unwrap();
}

/// A member of a consumer group, as its client sees it.
struct Member {
    client: Client,
    request: ConsumerGroupHeartbeatRequest,
}

impl Member {
    async fn join(broker: &TestBroker, group: &str, member_id: &str, topic: &str) -> Member {
        let client = broker.connect().await;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: KStr::copy(group),
            member_id: KStr::copy(member_id),
            rebalance_timeout_ms: 10_000,
            subscribed_topic_names: Some(vec![KStr::copy(topic)]),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        Member { client, request }
    }

    /// One heartbeat, after which the member owns what it was given.
    async fn beat(&mut self) -> ConsumerGroupHeartbeatResponse {
        let response = self.client.call(1, &self.request).await;
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        self.request.member_epoch = response.member_epoch;
        if let Some(assignment) = &response.assignment {
            let owned = assignment
                .topic_partitions
                .iter()
                .map(|topic| TopicPartitions { topic_id: topic.topic_id, partitions: topic.partitions.clone() });
            self.request.topic_partitions = Some(owned.collect());
        }
        response
    }

    fn owned(&self) -> usize {
        self.request.topic_partitions.iter().flatten().map(|topic| topic.partitions.len()).sum()
    }
}

/// Heartbeats of all in turn, until `done`; returns how long it took.
async fn settle(members: &mut [Member], done: impl Fn(&[Member]) -> bool) -> Duration {
    let started = Instant::now();
    loop {
        for member in members.iter_mut() {
            member.beat().await;
        }
        if done(members) {
            return started.elapsed();
        }
        assert!(
            started.elapsed() < common::PATIENCE,
            "no agreement: {:?}",
            members.iter().map(Member::owned).collect::<Vec<_>>()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_group_shares_a_topic_learns_of_changes_and_outlives_a_crash() {
    let broker = TestBroker::start(&[]).await;
    let mut admin = broker.connect().await;
    create_topic(&mut admin, "t", 4).await;
    let mut members = vec![Member::join(&broker, "g", "a", "t").await];
    settle(&mut members, |all| all[0].owned() == 4).await;
    members.push(Member::join(&broker, "g", "b", "t").await);
    settle(&mut members, |all| all.iter().all(|member| member.owned() == 2)).await;

    let broker = broker.crash().await;
    for member in &mut members {
        member.client = broker.connect().await;
    }
    let epoch = members[0].request.member_epoch;
    settle(&mut members, |all| all.iter().all(|member| member.owned() == 2)).await;
    assert_eq!(members[0].request.member_epoch, epoch, "a restart is no reason to rebalance");
    let mut admin = broker.connect().await;
    let request = ConsumerGroupDescribeRequest { group_ids: vec!["g".into()], include_authorized_operations: true };
    let described = admin.call(1, &request).await.groups.remove(0);
    assert_eq!((described.group_state.as_str(), described.members.len()), ("Stable", 2));
    assert_eq!(described.authorized_operations, 3400);

    let topics = vec![DeleteTopicState { name: Some("t".into()), ..Default::default() }];
    let deleted = admin.call(6, &DeleteTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() }).await;
    assert_eq!(deleted.responses[0].error_code, 0);
    settle(&mut members, |all| all.iter().all(|member| member.owned() == 0)).await;
    create_topic(&mut admin, "t", 6).await;
    settle(&mut members, |all| all.iter().all(|member| member.owned() == 3)).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn k_34_topics_that_match_an_expression_are_found_off_the_shard() {
    let broker = TestBroker::start(&[]).await;
    let mut admin = broker.connect().await;
    create_topic(&mut admin, "orders-1", 2).await;
    create_topic(&mut admin, "other", 2).await;
    let mut member = Member::join(&broker, "g", "a", "").await;
    member.request.subscribed_topic_names = None;
    member.request.subscribed_topic_regex = Some("orders-.*".into());
    let mut members = vec![member];
    settle(&mut members, |all| all[0].owned() == 2).await;
    broker.running.shutdown().await.unwrap();
}

/// The field case OF-05: the topics of the coordinators do not exist yet when the first client comes.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_requests_to_a_fresh_broker_find_its_coordinators() {
    let broker = TestBroker::start(&[("group.initial.rebalance.delay.ms", "0")]).await;
    for n in 0..8 {
        first_contact(&broker, n).await;
    }
    broker.running.shutdown().await.unwrap();
}

async fn first_contact(broker: &TestBroker, n: usize) {
    let mut client = broker.connect().await;
    let group = format!("g{n}");
    for key_type in [0, 1] {
        let request =
            FindCoordinatorRequest { key_type, coordinator_keys: vec![KStr::copy(&group)], ..Default::default() };
        let found = client.call(4, &request).await.coordinators.remove(0);
        let port = i32::from(broker.address().port());
        assert_eq!((found.error_code, found.port), (0, port), "{:?}", found.error_message);
    }
    // Whoever was sent here is served here, at once.
    assert_eq!(join_new(&mut client, &group).await.error_code, 0);
    let request = InitProducerIdRequest {
        transactional_id: Some(KStr::copy(&group)),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    assert_eq!(client.call(4, &request).await.error_code, 0);
}

/// PF-08: the internal topics of a large topology are there, all of them and for every client, by the time that its tasks are.
#[tokio::test(flavor = "multi_thread")]
async fn a_topology_with_many_internal_topics_gets_them_and_then_its_tasks() {
    const STAGES: usize = 80;
    let settings = [("group.streams.initial.rebalance.delay.ms", "0"), ("group.streams.assignment.interval.ms", "0")];
    let broker = TestBroker::start(&settings).await;
    let mut client = broker.connect().await;
    create_topic(&mut client, "in", 2).await;
    let topic = |name: String| TopicInfo { name: KStr::from(name), ..Default::default() };
    let stages = (0..STAGES).map(|stage| Subtopology {
        subtopology_id: KStr::from(stage.to_string()),
        source_topics: if stage == 0 { vec!["in".into()] } else { Vec::new() },
        repartition_source_topics: if stage == 0 { vec![] } else { vec![topic(format!("repartition-{stage:02}"))] },
        repartition_sink_topics: if stage + 1 == STAGES {
            Vec::new()
        } else {
            vec![KStr::from(format!("repartition-{:02}", stage + 1))]
        },
        state_changelog_topics: vec![topic(format!("changelog-{stage:02}"))],
        ..Default::default()
    });
    let mut request = StreamsGroupHeartbeatRequest {
        group_id: "app".into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 60_000,
        topology: Some(Topology { epoch: 0, subtopologies: stages.collect() }),
        process_id: Some("p".into()),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        client_tags: Some(Vec::new()),
        ..Default::default()
    };
    let started = Instant::now();
    let tasks = loop {
        let answer = client.call(1, &request).await;
        assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
        if let Some(active) = answer.active_tasks.filter(|active| !active.is_empty()) {
            break active;
        }
        assert!(started.elapsed() < common::PATIENCE, "no tasks: {:?}", answer.status);
        request.member_epoch = answer.member_epoch;
        request.topology = None;
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(tasks.iter().map(|task| task.partitions.len()).sum::<usize>(), 2 * STAGES);
    let everything = MetadataRequest { topics: None, ..Default::default() };
    let metadata = broker.connect().await.call(12, &everything).await;
    let internal = metadata.topics.iter().filter(|topic| {
        let name = topic.name.as_deref().unwrap_or_default();
        (name.starts_with("changelog-") || name.starts_with("repartition-")) && topic.partitions.len() == 2
    });
    assert_eq!(internal.count(), 2 * STAGES - 1);
}
