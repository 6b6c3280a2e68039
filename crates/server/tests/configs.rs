//! The APIs about configuration, features and the cluster, over real sockets.

mod common;

use common::{Client, TestBroker};
use wire::KStr;
use wire::messages::alter_configs_request as legacy;
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::describe_cluster_request::DescribeClusterRequest;
use wire::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use wire::messages::describe_configs_response::DescribeConfigsResult;
use wire::messages::describe_log_dirs_request::{DescribableLogDirTopic, DescribeLogDirsRequest};
use wire::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use wire::messages::list_config_resources_request::ListConfigResourcesRequest;
use wire::messages::update_features_request::{FeatureUpdateKey, UpdateFeaturesRequest};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const GROUP: i8 = 32;
/// What every cluster has (M-11).
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas=1(3) [min.insync.replicas=1(3)]";

async fn create(client: &mut Client, name: &str) {
    let topic =
        CreatableTopic { name: KStr::copy(name), num_partitions: 1, replication_factor: 1, ..Default::default() };
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    assert_eq!(client.call(7, &request).await.topics[0].error_code, 0);
}

async fn describe(client: &mut Client, kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: KStr::copy(name),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| KStr::copy(key)).collect()),
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, include_documentation: true };
    client.call(4, &request).await.results.remove(0)
}

/// `key=value(source) [name=value(source) ...]` of each key.
fn lines(result: &DescribeConfigsResult) -> Vec<String> {
    let text = |value: &Option<KStr>| value.as_ref().map_or("null".to_owned(), |value| value.as_str().to_owned());
    let line = |config: &wire::messages::describe_configs_response::DescribeConfigsResourceResult| {
        let synonyms: Vec<String> =
            config.synonyms.iter().map(|s| format!("{}={}({})", s.name, text(&s.value), s.source)).collect();
        format!("{}={}({}) [{}]", config.name, text(&config.value), config.config_source, synonyms.join(" "))
    };
    result.configs.iter().map(line).collect()
}

/// Operations: 0 set, 1 delete, 2 append, 3 subtract.
fn change(kind: i8, name: &str, keys: &[(&str, i8, Option<&str>)]) -> AlterConfigsResource {
    let key = |(name, config_operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: KStr::copy(name),
        config_operation: *config_operation,
        value: value.map(KStr::copy),
    };
    AlterConfigsResource {
        resource_type: kind,
        resource_name: KStr::copy(name),
        configs: keys.iter().map(key).collect(),
    }
}

async fn alter(client: &mut Client, resources: Vec<AlterConfigsResource>) -> Vec<(i16, Option<KStr>)> {
    let request = IncrementalAlterConfigsRequest { resources, validate_only: false };
    let responses = client.call(1, &request).await.responses;
    responses.into_iter().map(|response| (response.error_code, response.error_message)).collect()
}

async fn altered(client: &mut Client, resource: AlterConfigsResource) {
    let (code, message) = alter(client, vec![resource]).await.remove(0);
    assert_eq!(code, 0, "{message:?}");
}

#[tokio::test]
async fn cf_01_what_cannot_be_described_says_why() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    let cases = [
        (TOPIC, "x", 3),
        (TOPIC, "", 17),
        (TOPIC, "a b", 17),
        (BROKER, "7", 42),
        (BROKER, "x", 42),
        (GROUP, "", 42),
        (GROUP, "gg", 0),
        (99, "x", 42),
    ];
    for (kind, name, code) in cases {
        let result = describe(&mut client, kind, name, None).await;
        assert_eq!((result.error_code, result.configs.is_empty()), (code, code != 0), "{kind} {name}");
    }
    // A type that does not exist spoils the whole request.
    let resource = |kind: i8, name: &str| DescribeConfigsResource {
        resource_type: kind,
        resource_name: KStr::copy(name),
        configuration_keys: None,
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource(GROUP, "g"), resource(0, "")], ..Default::default() };
    let codes: Vec<i16> = client.call(4, &request).await.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [42, 42]);
}

#[tokio::test]
async fn m_10_values_come_with_their_source_and_the_names_they_fall_back_to() {
    let broker = TestBroker::start(&[("log.retention.hours", "2"), ("message.max.bytes", "77")]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    altered(&mut client, change(TOPIC, "a", &[("cleanup.policy", 0, Some("compact"))])).await;
    let keys: &[&str] = &["cleanup.policy", "max.message.bytes", "segment.bytes", "preallocate", "nope"];
    assert_eq!(
        lines(&describe(&mut client, TOPIC, "a", Some(keys)).await),
        [
            "cleanup.policy=compact(1) [cleanup.policy=compact(1) log.cleanup.policy=delete(5)]",
            "max.message.bytes=77(4) [message.max.bytes=77(4) message.max.bytes=1048588(5)]",
            "preallocate=false(5) [log.preallocate=false(5)]",
            "segment.bytes=1073741824(5) [log.segment.bytes=1073741824(5)]",
        ]
    );
    altered(&mut client, change(BROKER, "", &[("log.retention.ms", 0, Some("5"))])).await;
    altered(&mut client, change(BROKER, "1", &[("log.retention.ms", 0, Some("6"))])).await;
    assert_eq!(
        lines(&describe(&mut client, TOPIC, "a", Some(&["retention.ms"])).await),
        [
            "retention.ms=6(2) [log.retention.ms=6(2) log.retention.ms=5(3) log.retention.hours=2(4) log.retention.hours=168(5)]"
        ]
    );
    assert_eq!(
        lines(&describe(&mut client, BROKER, "", None).await),
        ["log.retention.ms=5(3) [log.retention.ms=5(3)]", MIN_INSYNC_REPLICAS]
    );
    let own = describe(&mut client, BROKER, "1", Some(&["log.retention.ms", "num.partitions"])).await;
    let read_only: Vec<_> = own.configs.iter().map(|config| (config.name.as_str(), config.read_only)).collect();
    assert_eq!(read_only, [("log.retention.ms", false), ("num.partitions", true)]);
}

/// It is given to the cluster at the first start, and never taken away.
#[tokio::test]
async fn m_11_min_insync_replicas_always_comes_from_the_cluster() {
    let broker = TestBroker::start(&[("min.insync.replicas", "2")]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    let of_topic = |value| {
        format!(
            "min.insync.replicas={value}(3) [min.insync.replicas={value}(3) min.insync.replicas=2(4) min.insync.replicas=1(5)]"
        )
    };
    let key: &[&str] = &["min.insync.replicas"];
    assert_eq!(lines(&describe(&mut client, TOPIC, "a", Some(key)).await), [of_topic(2)]);
    altered(&mut client, change(BROKER, "", &[("min.insync.replicas", 0, Some("3"))])).await;
    assert_eq!(lines(&describe(&mut client, TOPIC, "a", Some(key)).await), [of_topic(3)]);
    let replaced = legacy::AlterConfigsRequest {
        resources: vec![legacy::AlterConfigsResource { resource_type: BROKER, ..Default::default() }],
        ..Default::default()
    };
    assert_eq!(client.call(2, &replaced).await.responses[0].error_code, 0);
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    assert_eq!(lines(&describe(&mut client, TOPIC, "a", Some(key)).await), [of_topic(3)]);
}

#[tokio::test]
async fn m_10_an_untouched_topic_shows_37_keys_with_types_and_documentation() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    let result = describe(&mut client, TOPIC, "a", None).await;
    assert_eq!(result.configs.len(), 37);
    for config in &result.configs {
        let source = if config.name == "min.insync.replicas" { 3 } else { 5 };
        assert_eq!((config.config_source, config.is_sensitive, config.read_only), (source, false, false), "{config:?}");
    }
    assert!(result.configs.iter().all(|config| config.documentation.as_ref().is_some_and(|doc| !doc.is_empty())));
    let kind = |name: &str| result.configs.iter().find(|config| config.name == name).expect(name).config_type;
    let kinds = [
        "preallocate",
        "compression.type",
        "segment.bytes",
        "retention.ms",
        "min.cleanable.dirty.ratio",
        "cleanup.policy",
    ];
    assert_eq!(kinds.map(kind), [1, 2, 3, 5, 6, 7]);
}

#[tokio::test]
async fn s_9_6_5_a_group_shows_its_public_keys_and_hidden_ones_only_when_set() {
    let broker = TestBroker::start(&[("group.consumer.heartbeat.interval.ms", "6000")]).await;
    let mut client = broker.connect().await;
    let hidden = "streams.num.warmup.replicas";
    let names = |result: &DescribeConfigsResult| result.configs.iter().filter(|config| config.name == hidden).count();
    let before = describe(&mut client, GROUP, "g", None).await;
    assert_eq!((before.configs.len(), names(&before)), (21, 0));
    altered(
        &mut client,
        change(GROUP, "g", &[(hidden, 0, Some("3")), ("consumer.session.timeout.ms", 0, Some("50000"))]),
    )
    .await;
    let after = describe(&mut client, GROUP, "g", None).await;
    assert_eq!((after.configs.len(), names(&after)), (22, 1));
    let keys: &[&str] =
        &["consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "streams.assignor.name", hidden];
    assert_eq!(
        lines(&describe(&mut client, GROUP, "g", Some(keys)).await),
        [
            "consumer.heartbeat.interval.ms=6000(4) [group.consumer.heartbeat.interval.ms=6000(4) \
             group.consumer.heartbeat.interval.ms=5000(5)]",
            "consumer.session.timeout.ms=50000(8) [consumer.session.timeout.ms=50000(8) \
             group.consumer.session.timeout.ms=45000(5)]",
            "streams.assignor.name=sticky(5) [group.streams.assignors=sticky(5)]",
            "streams.num.warmup.replicas=3(8) [streams.num.warmup.replicas=3(8) group.streams.num.warmup.replicas=2(5)]",
        ]
    );
}

#[tokio::test]
async fn cf_02_bad_changes_are_refused_with_kafkas_codes() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    let cases = [
        (change(TOPIC, "a", &[("retention.ms", 0, Some("abc"))]), 40),
        (change(TOPIC, "a", &[("nope", 0, Some("1"))]), 40),
        (change(TOPIC, "a", &[("retention.ms", 2, Some("1"))]), 40),
        (change(TOPIC, "a", &[("retention.ms", 0, None)]), 42),
        (change(TOPIC, "a", &[("retention.ms", 0, Some("1")), ("retention.ms", 1, None)]), 42),
        (change(TOPIC, "a", &[("retention.ms", 9, Some("1"))]), -1),
        (change(TOPIC, "x", &[("retention.ms", 0, Some("1"))]), 3),
        (change(TOPIC, "", &[("retention.ms", 0, Some("1"))]), 42),
        (change(TOPIC, "a b", &[("retention.ms", 0, Some("1"))]), 17),
        (change(BROKER, "7", &[("message.max.bytes", 0, Some("1"))]), 42),
        (change(BROKER, "1", &[("num.partitions", 0, Some("1"))]), 42),
        (change(BROKER, "", &[("message.max.bytes", 2, Some("1"))]), 40),
        (change(BROKER, "x", &[("message.max.bytes", 2, Some("1"))]), 42),
        // What is wrong first counts; of a broker all operations are looked at before all keys.
        (change(TOPIC, "a", &[("retention.ms", 2, Some("1")), ("segment.ms", 9, Some("1"))]), 40),
        (change(BROKER, "1", &[("log.retention.ms", 2, Some("1")), ("max.connections", 9, Some("1"))]), 42),
        (change(BROKER, "1", &[("min.insync.replicas", 0, Some("1"))]), 40),
        (change(BROKER, "", &[("min.insync.replicas", 1, None)]), 40),
        (change(GROUP, "", &[]), 42),
        (change(GROUP, "g", &[("share.auto.offset.reset", 0, Some("compact"))]), 40),
        (change(GROUP, "g", &[("share.auto.offset.reset", 0, Some("by_duration:1h"))]), 40),
        (change(GROUP, "g", &[("share.auto.offset.reset", 0, Some("by_duration:PT1H"))]), 0),
        (change(GROUP, "g", &[("consumer.session.timeout.ms", 0, Some("1"))]), 40),
        (change(GROUP, "g", &[("streams.rack.aware.assignment.tags", 2, Some("a"))]), 40),
        (change(8, "1", &[("kafka", 0, Some("INFO"))]), 40),
        (change(99, "x", &[]), 42),
    ];
    for (resource, code) in cases {
        let described = format!("{resource:?}");
        assert_eq!(alter(&mut client, vec![resource]).await[0].0, code, "{described}");
    }
    let twice = vec![change(TOPIC, "a", &[]), change(TOPIC, "a", &[]), change(GROUP, "g", &[])];
    let codes: Vec<i16> = alter(&mut client, twice).await.into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [42, 42, 0]);
}

#[tokio::test]
async fn keys_that_nobody_knows_are_kept_and_hidden_but_security_is_refused() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    altered(&mut client, change(BROKER, "", &[("what.ever", 0, Some("1"))])).await;
    altered(&mut client, change(BROKER, "1", &[("what.ever", 0, Some("2")), ("num.io.threads", 0, Some("9"))])).await;
    let own = describe(&mut client, BROKER, "1", Some(&["what.ever"])).await;
    assert_eq!(lines(&own), ["what.ever=null(2) [what.ever=null(2) what.ever=null(3)]"]);
    assert!(own.configs[0].is_sensitive && own.configs[0].read_only);
    assert_eq!(
        lines(&describe(&mut client, BROKER, "", None).await),
        [MIN_INSYNC_REPLICAS, "what.ever=null(3) [what.ever=null(3)]"]
    );
    for key in ["listener.name.plaintext.ssl.keystore.location", "super.users", "sasl.enabled.mechanisms"] {
        assert_eq!(alter(&mut client, vec![change(BROKER, "1", &[(key, 0, Some("x"))])]).await[0].0, 42, "{key}");
    }
    // It protects nothing; librdkafka's tests of AlterConfigs set it.
    altered(&mut client, change(BROKER, "1", &[("sasl.kerberos.min.time.before.relogin", 0, Some("58000"))])).await;
    let own = describe(&mut client, BROKER, "1", Some(&["sasl.kerberos.min.time.before.relogin"])).await;
    assert_eq!(own.configs[0].value.as_deref(), Some("58000"));
}

#[tokio::test]
async fn m_10_a_hidden_topic_key_is_shown_once_it_is_set() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    altered(&mut client, change(TOPIC, "a", &[("internal.segment.bytes", 0, Some("2000"))])).await;
    let result = describe(&mut client, TOPIC, "a", None).await;
    assert_eq!(result.configs.len(), 38);
    let hidden = result.configs.iter().find(|config| config.name == "internal.segment.bytes").expect("shown");
    assert_eq!((hidden.value.as_deref(), hidden.config_source), (Some("2000"), 1));
}

#[tokio::test]
async fn m_12_lists_are_appended_to_and_validate_only_changes_nothing() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    let append = change(TOPIC, "a", &[("cleanup.policy", 2, Some("compact"))]);
    let request = IncrementalAlterConfigsRequest { resources: vec![append.clone()], validate_only: true };
    assert_eq!(client.call(1, &request).await.responses[0].error_code, 0);
    let policy = async |client: &mut Client| {
        let result = describe(client, TOPIC, "a", Some(&["cleanup.policy"])).await;
        result.configs[0].value.clone().expect("a value").as_str().to_owned()
    };
    assert_eq!(policy(&mut client).await, "delete");
    altered(&mut client, append).await;
    assert_eq!(policy(&mut client).await, "delete,compact");
    altered(&mut client, change(TOPIC, "a", &[("cleanup.policy", 3, Some("delete"))])).await;
    assert_eq!(policy(&mut client).await, "compact");
}

#[tokio::test]
async fn m_12_alter_configs_replaces_the_whole_set_and_it_survives_a_crash() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    altered(&mut client, change(TOPIC, "a", &[("retention.ms", 0, Some("5")), ("segment.ms", 0, Some("6"))])).await;
    let config = legacy::AlterableConfig { name: "segment.ms".into(), value: Some("7".into()) };
    let resource =
        legacy::AlterConfigsResource { resource_type: TOPIC, resource_name: "a".into(), configs: vec![config] };
    let request = legacy::AlterConfigsRequest { resources: vec![resource], validate_only: false };
    assert_eq!(client.call(2, &request).await.responses[0].error_code, 0);
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    let result = describe(&mut client, TOPIC, "a", Some(&["retention.ms", "segment.ms"])).await;
    let values: Vec<_> = result.configs.iter().map(|config| (config.value.as_deref(), config.config_source)).collect();
    assert_eq!(values, [(Some("604800000"), 5), (Some("7"), 1)]);
}

#[tokio::test]
async fn m_13_resources_are_listed_by_type() {
    let broker = TestBroker::start(&[("offsets.topic.num.partitions", "1")]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    altered(&mut client, change(GROUP, "g", &[("consumer.session.timeout.ms", 0, Some("50000"))])).await;
    let cases: &[(&[i8], i16, &str)] = &[
        (&[], 0, "g:32 1:8 1:4 __consumer_offsets:2 __transaction_state:2 a:2"),
        (&[8], 0, "1:8"),
        (&[GROUP, BROKER], 0, "g:32 1:4"),
        (&[16], 0, ""),
        (&[TOPIC, 99], 35, ""),
    ];
    for (kinds, code, expected) in cases {
        let request = ListConfigResourcesRequest { resource_types: kinds.to_vec() };
        let response = client.call(1, &request).await;
        let listed: Vec<String> =
            response.config_resources.iter().map(|r| format!("{}:{}", r.resource_name, r.resource_type)).collect();
        assert_eq!((response.error_code, listed.join(" ").as_str()), (*code, *expected), "{kinds:?}");
    }
}

#[tokio::test]
async fn m_13_log_dirs_show_the_partitions_asked_for_that_exist() {
    let broker = TestBroker::start(&[("offsets.topic.num.partitions", "2")]).await;
    let mut client = broker.connect().await;
    create(&mut client, "a").await;
    let topic = |name: &'static str, partitions: &[i32]| DescribableLogDirTopic {
        topic: name.into(),
        partitions: partitions.to_vec(),
    };
    let request = DescribeLogDirsRequest { topics: Some(vec![topic("a", &[0, 9]), topic("x", &[0])]) };
    let response = client.call(4, &request).await;
    let dir = &response.results[0];
    assert_eq!((response.error_code, dir.error_code, dir.topics.len()), (0, 0, 1));
    let partitions: Vec<_> = dir.topics[0].partitions.iter().map(|p| (p.partition_index, p.partition_size)).collect();
    assert_eq!(partitions, [(0, 0)]);
    assert!(dir.total_bytes > dir.usable_bytes && dir.usable_bytes > 0);
    let path = std::fs::canonicalize(broker.dir.path()).expect("exists");
    assert_eq!(Some(dir.log_dir.as_str()), path.to_str());
    let all = client.call(4, &DescribeLogDirsRequest { topics: None }).await;
    let counts: Vec<_> = all.results[0].topics.iter().map(|t| (t.name.as_str(), t.partitions.len())).collect();
    assert_eq!(counts, [("__consumer_offsets", 2), ("__transaction_state", 16), ("a", 1)]);
}

#[tokio::test]
async fn m_4_the_cluster_is_this_broker() {
    let broker = TestBroker::start(&[("broker.rack", "r")]).await;
    let mut client = broker.connect().await;
    let ask = |endpoint_type: i8| DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        endpoint_type,
        ..Default::default()
    };
    let response = client.call(2, &ask(1)).await;
    assert_eq!((response.error_code, response.controller_id, response.cluster_authorized_operations), (0, 1, 8096));
    assert_eq!(response.cluster_id, *broker.running.cluster_id());
    let node = &response.brokers[0];
    assert_eq!((node.broker_id, node.rack.as_deref(), node.is_fenced), (1, Some("r"), false));
    for (endpoint, code) in [(2, 114), (3, 115)] {
        let response = client.call(2, &ask(endpoint)).await;
        assert_eq!((response.error_code, response.brokers.len()), (code, 0));
    }
}

#[tokio::test]
async fn features_are_updated_all_or_none_and_stay_so() {
    let broker = TestBroker::start(&[]).await;
    let mut client = broker.connect().await;
    let update = |feature: &'static str, max_version_level, upgrade_type| FeatureUpdateKey {
        feature: feature.into(),
        max_version_level,
        upgrade_type,
        ..Default::default()
    };
    let ask = |feature_updates: Vec<FeatureUpdateKey>| UpdateFeaturesRequest { feature_updates, ..Default::default() };
    let mixed = client.call(2, &ask(vec![update("streams.version", 0, 2), update("nope", 1, 1)])).await;
    assert_eq!(mixed.error_code, 95);
    assert_eq!(
        mixed.error_message.as_deref(),
        Some(
            "The update failed for all features since the following feature had an error: Invalid update version 1 for \
             feature nope. Local controller 1 does not support this feature."
        )
    );
    assert_eq!(finalized(&mut client, "streams.version").await, Some(1));
    let down = client.call(1, &ask(vec![update("streams.version", 0, 2)])).await;
    assert_eq!((down.error_code, down.results.len()), (0, 1));
    assert_eq!(finalized(&mut client, "streams.version").await, None);
    let broker = broker.restart().await;
    assert_eq!(finalized(&mut broker.connect().await, "streams.version").await, None);
}

async fn finalized(client: &mut Client, feature: &str) -> Option<i16> {
    let request = wire::messages::api_versions_request::ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let response = client.call(4, &request).await;
    response.finalized_features.iter().find(|f| f.name == feature).map(|f| f.max_version_level)
}
