//! The APIs about topics, over real sockets: Metadata, CreateTopics, DeleteTopics, CreatePartitions, DescribeTopicPartitions.

mod common;

use common::{Client, TestBroker};
use wire::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use wire::messages::create_topics_response::CreatableTopicResult;
use wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use wire::messages::describe_topic_partitions_request::{Cursor, DescribeTopicPartitionsRequest, TopicRequest};
use wire::messages::elect_leaders_request::ElectLeadersRequest;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::list_groups_request::ListGroupsRequest;
use wire::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use wire::messages::metadata_response::MetadataResponse;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::{KStr, Uuid};

const QUIET: &[(&str, &str)] = &[("offsets.topic.num.partitions", "1")];

fn creatable(name: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic { name: KStr::copy(name), num_partitions: partitions, replication_factor: -1, ..Default::default() }
}

async fn create(client: &mut Client, version: i16, topics: Vec<CreatableTopic>) -> Vec<CreatableTopicResult> {
    client.call(version, &CreateTopicsRequest { topics, ..Default::default() }).await.topics
}

async fn created(client: &mut Client, name: &str, partitions: i32) -> Uuid {
    let mut results = create(client, 7, vec![creatable(name, partitions)]).await;
    let result = results.remove(0);
    assert_eq!(result.error_code, 0, "{name}: {:?}", result.error_message);
    result.topic_id
}

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(KStr::copy(name)), ..Default::default() }
}

fn by_id(topic_id: Uuid) -> MetadataRequestTopic {
    MetadataRequestTopic { name: None, topic_id }
}

async fn metadata(client: &mut Client, version: i16, topics: Option<Vec<MetadataRequestTopic>>) -> MetadataResponse {
    let request = MetadataRequest { topics, allow_auto_topic_creation: true, ..Default::default() };
    client.call(version, &request).await
}

/// `name:error:partitions` of each topic, in the order of the answer.
fn summary(response: &MetadataResponse) -> Vec<String> {
    let name = |name: &Option<KStr>| name.as_ref().map_or("-".to_owned(), |name| name.as_str().to_owned());
    response.topics.iter().map(|t| format!("{}:{}:{}", name(&t.name), t.error_code, t.partitions.len())).collect()
}

#[tokio::test]
async fn m_1_null_asks_for_all_topics_and_an_empty_list_for_none_but_in_version_0() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    created(&mut client, "a", 2).await;
    let all = ["__consumer_offsets:0:1", "__transaction_state:0:16", "a:0:2"];
    for version in 1..=13 {
        assert_eq!(summary(&metadata(&mut client, version, None).await), all, "version {version}");
        assert!(metadata(&mut client, version, Some(vec![])).await.topics.is_empty(), "version {version}");
        assert_eq!(summary(&metadata(&mut client, version, Some(vec![named("a")])).await), ["a:0:2"]);
    }
    assert_eq!(summary(&metadata(&mut client, 0, Some(vec![])).await), all);
}

#[tokio::test]
async fn m_1_topics_are_found_by_id_and_unknown_ids_have_no_name() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    let id = created(&mut client, "a", 1).await;
    let unknown = Uuid([7; 16]);
    let response = metadata(&mut client, 12, Some(vec![by_id(id), by_id(unknown), by_id(id)])).await;
    assert_eq!(summary(&response), ["a:0:1", "-:100:0"]);
    assert_eq!(response.topics[1].topic_id, unknown);
    // Versions 10 and 11 have the field, but do not mean it.
    let response = metadata(&mut client, 10, Some(vec![MetadataRequestTopic { topic_id: id, ..named("a") }])).await;
    assert_eq!((summary(&response), response.brokers.len()), (vec!["a:42:0".to_owned()], 0));
}

#[tokio::test]
async fn m_2_an_unknown_topic_is_created_where_both_sides_allow_it_and_found_the_next_time() {
    let broker = TestBroker::start(&[("num.partitions", "3"), ("offsets.topic.num.partitions", "1")]).await;
    let mut client = broker.connect().await;
    let request = |allow: bool| MetadataRequest {
        topics: Some(vec![named("new"), named("a b")]),
        allow_auto_topic_creation: allow,
        ..Default::default()
    };
    for _ in 0..2 {
        assert_eq!(summary(&client.call(13, &request(false)).await), ["new:3:0", "a b:17:0"]);
    }
    assert_eq!(summary(&client.call(13, &request(true)).await), ["new:3:0", "a b:17:0"]);
    assert_eq!(summary(&client.call(13, &request(true)).await), ["new:0:3", "a b:17:0"]);

    let strict = TestBroker::start(&[("auto.create.topics.enable", "false")]).await;
    let mut client = strict.connect().await;
    for _ in 0..2 {
        assert_eq!(summary(&client.call(13, &request(true)).await), ["new:3:0", "a b:17:0"]);
    }
}

#[tokio::test]
async fn m_3_the_broker_and_its_operations_are_told_when_asked_for() {
    let broker = TestBroker::start(&[("broker.rack", "r1"), ("node.id", "5")]).await;
    let mut client = broker.connect().await;
    created(&mut client, "a", 1).await;
    let request = |asked: bool| MetadataRequest {
        topics: Some(vec![named("a"), named("__consumer_offsets")]),
        include_cluster_authorized_operations: asked,
        include_topic_authorized_operations: asked,
        ..Default::default()
    };
    let response = client.call(9, &request(true)).await;
    assert_eq!((response.controller_id, response.cluster_authorized_operations), (5, 8096));
    assert_eq!(response.cluster_id.as_deref(), Some(broker.running.cluster_id()));
    let node = &response.brokers[0];
    assert_eq!((node.node_id, node.rack.as_deref()), (5, Some("r1")));
    assert_eq!(node.port, i32::from(broker.address().port()));
    let flags: Vec<_> = response.topics.iter().map(|t| (t.is_internal, t.topic_authorized_operations)).collect();
    assert_eq!(flags, [(false, 3576), (true, 3576)]);
    let partition = &response.topics[0].partitions[0];
    assert_eq!((partition.leader_id, partition.leader_epoch), (5, 0));
    assert_eq!(
        (&partition.replica_nodes, &partition.isr_nodes, &partition.offline_replicas),
        (&vec![5], &vec![5], &vec![])
    );
    let response = client.call(9, &request(false)).await;
    assert_eq!(response.cluster_authorized_operations, i32::MIN);
    assert_eq!(response.topics[0].topic_authorized_operations, i32::MIN);
}

#[tokio::test]
async fn le_01_a_restart_raises_the_leader_epoch_and_keeps_everything_else() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    let id = created(&mut client, "a", 1).await;
    let broker = broker.crash().await;
    let response = metadata(&mut broker.connect().await, 13, Some(vec![named("a")])).await;
    assert_eq!((response.topics[0].topic_id, response.topics[0].partitions[0].leader_epoch), (id, 1));
    let broker = broker.restart().await;
    let response = metadata(&mut broker.connect().await, 13, Some(vec![named("a")])).await;
    assert_eq!((response.topics[0].topic_id, response.topics[0].partitions[0].leader_epoch), (id, 2));
}

#[tokio::test]
async fn ct_01_a_request_names_each_topic_once_and_never_the_metadata_log() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    let topics = vec![
        creatable("twice", 1),
        creatable("twice", 2),
        creatable("__cluster_metadata", 1),
        creatable("a", 1),
        creatable("", 1),
    ];
    let results = create(&mut client, 7, topics).await;
    let told: Vec<_> = results.iter().map(|r| (r.name.as_str(), r.error_code, r.error_message.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("a", 0, None),
            ("", 17, Some("Topic name is invalid: the empty string is not allowed")),
            ("__cluster_metadata", 42, Some("Creation of internal topic __cluster_metadata is prohibited.")),
            ("twice", 42, Some("Duplicate topic name.")),
        ]
    );
    let refused = &results[1];
    assert_eq!((refused.num_partitions, refused.replication_factor, refused.topic_id), (-1, -1, Uuid::ZERO));
    assert_eq!(refused.configs, Some(vec![]));
}

/// M-6, where two things are wrong.
#[tokio::test]
async fn m_6_the_number_of_partitions_is_looked_at_before_the_brokers() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    for (partitions, factor, code) in [(0, 2, 37), (0, 0, 38), (1, 2, 38), (-2, -1, 37)] {
        let topic = CreatableTopic { replication_factor: factor, ..creatable("a", partitions) };
        assert_eq!(create(&mut client, 7, vec![topic]).await[0].error_code, code, "{partitions} of factor {factor}");
    }
}

#[tokio::test]
async fn a_partition_has_one_leader_and_one_place() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    created(&mut client, "a", 1).await;
    let elected = client.call(2, &ElectLeadersRequest { topic_partitions: None, ..Default::default() }).await;
    let told: Vec<_> =
        elected.replica_election_results.iter().map(|r| (r.topic.as_str(), r.partition_result.len())).collect();
    assert_eq!(told, [("__consumer_offsets", 0), ("__transaction_state", 0), ("a", 0)]);
    for (name, partition_index, replicas, code) in [
        ("a", 0, Some(vec![1]), 0),
        ("a", 0, Some(vec![2]), 39),
        ("a", 0, None, 85),
        ("a", 1, None, 3),
        ("x", 0, None, 3),
    ] {
        let partition = ReassignablePartition { partition_index, replicas, ..Default::default() };
        let described = format!("{name} {partition:?}");
        let topic = ReassignableTopic { name: name.into(), partitions: vec![partition], ..Default::default() };
        let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
        let answer = client.call(1, &request).await.responses.remove(0).partitions.remove(0);
        assert_eq!(answer.error_code, code, "{described}");
    }
}

#[tokio::test]
async fn m_7_a_created_topic_is_told_with_its_counts_and_37_configurations_with_their_source() {
    let broker = TestBroker::start(&[("log.retention.ms", "1000"), ("num.partitions", "2")]).await;
    let mut client = broker.connect().await;
    let config =
        |name: &'static str, value: &'static str| CreatableTopicConfig { name: name.into(), value: Some(value.into()) };
    let new = CreatableTopic { configs: vec![config("cleanup.policy", "compact")], ..creatable("a", -1) };
    let request = CreateTopicsRequest { topics: vec![new.clone()], validate_only: true, ..Default::default() };
    let planned = client.call(7, &request).await.topics.remove(0);
    assert_eq!(metadata(&mut client, 13, None).await.topics.len(), 2, "validate only creates nothing");
    let made = create(&mut client, 7, vec![new]).await.remove(0);
    for result in [&planned, &made] {
        assert_eq!((result.error_code, result.num_partitions, result.replication_factor), (0, 2, 1));
        assert!(!result.topic_id.is_zero());
        let configs = result.configs.as_ref().expect("configurations");
        assert_eq!(configs.len(), 37);
        let shown = |name: &str| {
            let config = configs.iter().find(|config| config.name == name).expect(name);
            (config.value.as_deref().unwrap_or("null"), config.config_source)
        };
        assert_eq!(shown("cleanup.policy"), ("compact", 1));
        assert_eq!(shown("retention.ms"), ("1000", 4));
        assert_eq!(shown("segment.bytes"), ("1073741824", 5));
    }
    // Older versions say less.
    let old =
        create(&mut client, 2, vec![CreatableTopic { replication_factor: 1, ..creatable("b", 1) }]).await.remove(0);
    assert_eq!((old.error_code, old.topic_id), (0, Uuid::ZERO));
}

#[tokio::test]
async fn ct_01_assignments_must_be_to_this_broker() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    let assigned = |name: &str, assignments: &[(i32, &[i32])]| CreatableTopic {
        assignments: assignments
            .iter()
            .map(|(partition_index, ids)| CreatableReplicaAssignment {
                partition_index: *partition_index,
                broker_ids: ids.to_vec(),
            })
            .collect(),
        ..creatable(name, -1)
    };
    let topics = vec![
        assigned("a", &[(1, &[1]), (0, &[1])]),
        assigned("b", &[(0, &[2])]),
        assigned("c", &[(0, &[1]), (2, &[1])]),
        assigned("d", &[(0, &[])]),
        CreatableTopic { num_partitions: 1, ..assigned("e", &[(0, &[1])]) },
    ];
    let codes: Vec<i16> = create(&mut client, 7, topics).await.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [0, 39, 39, 39, 42]);
    assert_eq!(summary(&metadata(&mut client, 13, Some(vec![named("a")])).await), ["a:0:2"]);
}

fn delete_request(topics: &[(Option<&str>, Uuid)]) -> DeleteTopicsRequest {
    let state =
        |(name, topic_id): &(Option<&str>, Uuid)| DeleteTopicState { name: name.map(KStr::copy), topic_id: *topic_id };
    DeleteTopicsRequest { topics: topics.iter().map(state).collect(), ..Default::default() }
}

#[tokio::test]
async fn m_8_topics_are_deleted_by_name_or_by_id_and_each_once() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    let a = created(&mut client, "a", 1).await;
    let b = created(&mut client, "b", 1).await;
    let unknown = Uuid([7; 16]);
    type Named<'a> = (Option<&'a str>, Uuid);
    let cases: &[(&[Named<'_>], &[i16])] = &[
        (&[(Some("x"), Uuid::ZERO)], &[3]),
        (&[(None, unknown)], &[100]),
        (&[(Some("a"), a)], &[42]),
        (&[(None, Uuid::ZERO)], &[42]),
        (&[(Some("a"), Uuid::ZERO), (Some("a"), Uuid::ZERO)], &[42]),
        (&[(None, a), (None, a)], &[42]),
        (&[(None, a), (Some("a"), Uuid::ZERO)], &[42]),
    ];
    for (topics, expected) in cases {
        let responses = client.call(6, &delete_request(topics)).await.responses;
        let codes: Vec<i16> = responses.iter().map(|response| response.error_code).collect();
        assert_eq!(&codes, expected, "{topics:?}");
    }
    let responses = client.call(6, &delete_request(&[(Some("a"), Uuid::ZERO), (None, b)])).await.responses;
    let mut told: Vec<_> = responses.iter().map(|r| (r.name.as_deref(), r.topic_id, r.error_code)).collect();
    told.sort();
    assert_eq!(told, [(Some("a"), a, 0), (Some("b"), b, 0)]);
    assert_eq!(summary(&metadata(&mut client, 13, Some(vec![by_id(a)])).await), ["-:100:0"]);
    // A topic of the same name is another topic.
    assert_ne!(created(&mut client, "a", 1).await, a);
    let old = DeleteTopicsRequest { topic_names: vec!["a".into(), "x".into()], ..Default::default() };
    let mut codes: Vec<_> =
        client.call(1, &old).await.responses.into_iter().map(|r| (r.name.expect("a name"), r.error_code)).collect();
    codes.sort();
    assert_eq!(codes, [("a".into(), 0), ("x".into(), 3)]);
}

#[tokio::test]
async fn m_8_deletion_can_be_disabled() {
    let broker = TestBroker::start(&[("delete.topic.enable", "false")]).await;
    let mut client = broker.connect().await;
    created(&mut client, "a", 1).await;
    let old = DeleteTopicsRequest { topic_names: vec!["a".into()], ..Default::default() };
    for (version, code) in [(1, 42), (2, 42), (3, 73), (5, 73)] {
        assert_eq!(client.call(version, &old).await.responses[0].error_code, code, "version {version}");
    }
    assert_eq!(client.call(6, &delete_request(&[(Some("a"), Uuid::ZERO)])).await.responses[0].error_code, 73);
    assert_eq!(summary(&metadata(&mut client, 13, Some(vec![named("a")])).await), ["a:0:1"]);
}

#[tokio::test]
async fn m_9_partitions_are_added_and_an_empty_list_of_assignments_counts_as_given() {
    let broker = TestBroker::start(QUIET).await;
    let mut client = broker.connect().await;
    created(&mut client, "a", 2).await;
    created(&mut client, "b", 1).await;
    let topic = |name: &'static str, count, assignments: Option<Vec<Vec<i32>>>| CreatePartitionsTopic {
        name: name.into(),
        count,
        assignments: assignments
            .map(|list| list.into_iter().map(|broker_ids| CreatePartitionsAssignment { broker_ids }).collect()),
    };
    let cases = vec![
        (vec![topic("x", 3, None)], vec![3]),
        (vec![topic("a", 2, None)], vec![37]),
        (vec![topic("a", 1, None)], vec![37]),
        (vec![topic("a", 3, Some(vec![]))], vec![39]),
        (vec![topic("a", 3, Some(vec![vec![2]]))], vec![39]),
        (vec![topic("a", 3, None), topic("a", 4, None), topic("b", 2, None)], vec![42, 0]),
        (vec![topic("__consumer_offsets", 9, None)], vec![17]),
        (vec![topic("a", 20_000, None)], vec![44]),
        (vec![topic("a", 3, Some(vec![vec![1]]))], vec![0]),
    ];
    for (topics, expected) in cases {
        let described = format!("{topics:?}");
        let request = CreatePartitionsRequest { topics, ..Default::default() };
        let codes: Vec<i16> = client.call(3, &request).await.results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, expected, "{described}");
    }
    let topics = vec![topic("a", 7, None)];
    let request = CreatePartitionsRequest { topics, validate_only: true, ..Default::default() };
    assert_eq!(client.call(3, &request).await.results[0].error_code, 0);
    assert_eq!(summary(&metadata(&mut client, 13, Some(vec![named("a"), named("b")])).await), ["a:0:3", "b:0:2"]);
}

#[tokio::test]
async fn m_5_partitions_come_in_pages() {
    let broker = TestBroker::start(&[("max.request.partition.size.limit", "4")]).await;
    let mut client = broker.connect().await;
    for (name, partitions) in [("a", 3), ("b", 1), ("c", 2)] {
        created(&mut client, name, partitions).await;
    }
    let ask = |names: &[&str], limit, cursor: Option<(&str, i32)>| DescribeTopicPartitionsRequest {
        topics: names.iter().map(|name| TopicRequest { name: KStr::copy(name) }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(name, partition_index)| Cursor { topic_name: KStr::copy(name), partition_index }),
    };
    let all: &[&str] = &["c", "x", "a", "b", "a"];
    let cases: Vec<(DescribeTopicPartitionsRequest, &str)> = vec![
        (ask(all, 2, None), "a:0[0, 1] next a 2"),
        (ask(all, 2, Some(("a", 2))), "a:0[2] b:0[0] next c 0"),
        (ask(all, 2, Some(("c", 0))), "c:0[0, 1] next x 0"),
        (ask(all, 2, Some(("x", 0))), "x:3[]"),
        (ask(all, 2000, None), "a:0[0, 1, 2] b:0[0] next c 0"),
        (ask(&["a"], 0, None), "a:0[0] next a 1"),
        (ask(&["a", "a b"], 3, None), "a:0[0, 1, 2] next a b 0"),
        (ask(&["a", "a b"], 4, None), "a:0[0, 1, 2] a b:17[]"),
        (ask(&["a"], 3, Some(("zzz", 0))), "a:42[]"),
        (ask(&["a"], 3, Some(("a", -1))), "a:42[]"),
        (ask(&[], 2, Some(("b", 0))), "b:0[0] c:0[0] next c 1"),
    ];
    for (request, expected) in cases {
        let described = format!("{request:?}");
        let response = client.call(0, &request).await;
        let mut told: Vec<String> = response
            .topics
            .iter()
            .map(|topic| {
                let numbers: Vec<i32> = topic.partitions.iter().map(|p| p.partition_index).collect();
                format!("{}:{}{numbers:?}", topic.name.as_ref().expect("a name"), topic.error_code)
            })
            .collect();
        told.extend(response.next_cursor.map(|next| format!("next {} {}", next.topic_name, next.partition_index)));
        assert_eq!(told.join(" "), expected, "{described}");
    }
}

/// C R-3, as clients see it: there is no coordinator, and no topic of one, before somebody looks for it or makes the topic.
#[tokio::test]
async fn c_r_3_the_topic_of_a_coordinator_is_made_when_somebody_looks_for_it() {
    const NOT_COORDINATOR: i16 = 16;
    const GROUP: i8 = 0;
    const TRANSACTION: i8 = 1;
    let broker = TestBroker::start_untouched(QUIET).await;
    let mut client = broker.connect().await;
    let heartbeat = HeartbeatRequest { group_id: KStr::from("g"), member_id: KStr::from("m"), ..Default::default() };
    let find = |key_type| FindCoordinatorRequest {
        key_type,
        coordinator_keys: vec![KStr::from("g")],
        ..FindCoordinatorRequest::default()
    };
    assert_eq!(client.call(4, &heartbeat).await.error_code, NOT_COORDINATOR);
    assert!(client.call(5, &ListGroupsRequest::default()).await.groups.is_empty());
    assert!(summary(&metadata(&mut client, 12, None).await).is_empty());
    let found = client.call(6, &find(GROUP)).await.coordinators.remove(0);
    assert_eq!((found.error_code, found.node_id), (0, 1));
    assert_eq!(client.call(4, &heartbeat).await.error_code, 25, "unknown member");
    assert_eq!(summary(&metadata(&mut client, 12, None).await), ["__consumer_offsets:0:1"]);
    assert_eq!(client.call(6, &find(TRANSACTION)).await.coordinators[0].error_code, 0);
    let both = ["__consumer_offsets:0:1", "__transaction_state:0:16"];
    assert_eq!(summary(&metadata(&mut client, 12, None).await), both);
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    assert_eq!(client.call(4, &heartbeat).await.error_code, 25, "it is there from the start");
}

#[tokio::test]
async fn c_r_3_a_coordinator_serves_the_topic_that_an_administrator_made() {
    let broker = TestBroker::start_untouched(QUIET).await;
    let mut client = broker.connect().await;
    created(&mut client, "__consumer_offsets", 3).await;
    let heartbeat = HeartbeatRequest { group_id: KStr::from("g"), member_id: KStr::from("m"), ..Default::default() };
    let started = std::time::Instant::now();
    // Loading takes a moment, in which heartbeats are answered as if all were well (C R-4).
    while client.call(4, &heartbeat).await.error_code != 25 {
        assert!(started.elapsed() < common::PATIENCE, "it never serves");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(summary(&metadata(&mut client, 12, None).await), ["__consumer_offsets:0:3"]);
}

#[tokio::test]
async fn c_k_4_a_protocol_that_is_off_is_refused_also_before_there_is_a_coordinator() {
    const UNSUPPORTED_VERSION: i16 = 35;
    let broker = TestBroker::start_untouched(&[("group.coordinator.rebalance.protocols", "classic")]).await;
    let mut client = broker.connect().await;
    let consumer = ConsumerGroupHeartbeatRequest { group_id: KStr::from("g"), ..Default::default() };
    let answer = client.call(1, &consumer).await;
    assert_eq!((answer.error_code, answer.error_message), (UNSUPPORTED_VERSION, None));
    let streams = StreamsGroupHeartbeatRequest { group_id: KStr::from("g"), ..Default::default() };
    assert_eq!(client.call(1, &streams).await.error_code, UNSUPPORTED_VERSION);
}
