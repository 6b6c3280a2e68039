use wire::{ErrorCode, KStr};

use super::{Bench, listen, set};
use crate::config::Lookup;
use crate::config::keys::topic;
use crate::topics::ResourceType::{Broker, Group, Topic};
use crate::topics::{Alteration, Operation};

#[tokio::test]
async fn m_12_topic_configurations_are_set_deleted_appended_and_subtracted() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    let steps = [
        (
            vec![("retention.ms", set("5")), ("cleanup.policy", Operation::Append("compact".into()))],
            "cleanup.policy=delete,compact;retention.ms=5",
        ),
        (vec![("cleanup.policy", Operation::Append("compact".into()))], "cleanup.policy=delete,compact;retention.ms=5"),
        (
            vec![("cleanup.policy", Operation::Subtract("delete".into())), ("retention.ms", Operation::Delete)],
            "cleanup.policy=compact",
        ),
        (vec![("cleanup.policy", Operation::Delete)], ""),
        (vec![("segment.ms", Operation::Delete)], ""),
    ];
    for (operations, expected) in steps {
        bench.alter(Topic, "a", &operations).await.expect("allowed");
        assert_eq!(bench.set_on(Topic, "a"), expected);
    }
}

#[tokio::test]
async fn m_12_what_cannot_be_set_is_refused_and_nothing_of_its_resource_changes() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    let cases = [
        (Topic, "a", vec![("retention.ms", set("5")), ("segment.bytes", set("1"))], ErrorCode::InvalidConfig),
        (Topic, "a", vec![("nope", set("5"))], ErrorCode::InvalidConfig),
        (Topic, "a", vec![("retention.ms", Operation::Append("5".into()))], ErrorCode::InvalidConfig),
        (Topic, "x", vec![("retention.ms", set("5"))], ErrorCode::UnknownTopicOrPartition),
        (Topic, "", vec![("retention.ms", set("5"))], ErrorCode::InvalidRequest),
        (Group, "", vec![("consumer.session.timeout.ms", set("50000"))], ErrorCode::InvalidRequest),
        (Group, "g", vec![("consumer.session.timeout.ms", set("1"))], ErrorCode::InvalidConfig),
        (
            Group,
            "g",
            vec![("streams.rack.aware.assignment.tags", Operation::Append("a".into()))],
            ErrorCode::InvalidConfig,
        ),
        (Broker, "7", vec![("message.max.bytes", set("5"))], ErrorCode::InvalidRequest),
        (Broker, "x", vec![("message.max.bytes", set("5"))], ErrorCode::InvalidRequest),
        (Broker, "1", vec![("num.partitions", set("5"))], ErrorCode::InvalidRequest),
        (Broker, "1", vec![("message.max.bytes", set("x"))], ErrorCode::InvalidRequest),
        (Broker, "", vec![("group.streams.assignment.interval.ms", set("99999"))], ErrorCode::InvalidRequest),
    ];
    for (kind, name, operations, code) in cases {
        let before = bench.set_on(kind, name);
        let refusal = bench.alter(kind, name, &operations).await.expect_err(&format!("{operations:?}"));
        assert_eq!(refusal.code, code, "{kind:?} {name} {operations:?}: {refusal}");
        assert_eq!(bench.set_on(kind, name), before);
    }
}

#[tokio::test]
async fn m_12_alter_configs_replaces_the_whole_set() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    bench.alter(Topic, "a", &[("retention.ms", set("5")), ("segment.ms", set("6"))]).await.expect("allowed");
    let replace = Alteration {
        kind: Topic,
        name: "a".into(),
        operations: vec![(KStr::from("segment.ms"), set("7"))],
        replace: true,
    };
    let results = bench.topics.alter_configs(vec![replace], false).await.expect("a result");
    assert_eq!(results, [Ok(())]);
    assert_eq!(bench.set_on(Topic, "a"), "segment.ms=7");
}

#[tokio::test]
async fn logs_follow_the_configuration_of_their_topic_and_of_the_broker() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    bench.created("b", 1).await;
    let retention = |name: &str| bench.topics.partition(name, 0).expect("a log").config().retention_ms;
    bench.alter(Topic, "a", &[("retention.ms", set("5"))]).await.expect("allowed");
    assert_eq!((retention("a"), retention("b")), (5, 604_800_000));
    bench.alter(Broker, "", &[("log.retention.ms", set("7"))]).await.expect("allowed");
    assert_eq!((retention("a"), retention("b")), (5, 7));
    bench.alter(Broker, "1", &[("log.retention.ms", set("8"))]).await.expect("allowed");
    assert_eq!((retention("a"), retention("b")), (5, 8));
    assert_eq!(bench.config.current().layers.long(&topic::RETENTION_MS), 8);
    bench.alter(Broker, "1", &[("log.retention.ms", Operation::Delete)]).await.expect("allowed");
    bench.alter(Topic, "a", &[("retention.ms", Operation::Delete)]).await.expect("allowed");
    assert_eq!((retention("a"), retention("b")), (7, 7));
}

#[tokio::test]
async fn s_9_6_the_coordinator_hears_of_group_and_broker_settings() {
    let bench = Bench::new("");
    let told = listen(&bench.topics);
    bench.alter(Group, "g", &[("streams.heartbeat.interval.ms", set("5000"))]).await.expect("allowed");
    let configs = bench.topics.group_configs();
    // Decision 13: set, even to the default, means configured.
    assert_eq!(configs.overrides("g").streams_heartbeat_interval_ms, Some(5000));
    bench.alter(Broker, "", &[("group.streams.assignment.interval.ms", set("500"))]).await.expect("allowed");
    assert_eq!(bench.topics.group_configs().broker.streams_assignment_interval_ms, Some(500));
    bench.alter(Group, "g", &[("streams.heartbeat.interval.ms", Operation::Delete)]).await.expect("allowed");
    assert!(bench.topics.group_configs().groups.is_empty());
    assert_eq!(
        *told.lock().expect("no panic"),
        [
            r#"changed [] deleted [] groups ["g"] broker false"#,
            r#"changed [] deleted [] groups [] broker true"#,
            r#"changed [] deleted [] groups ["g"] broker false"#,
        ]
    );
}

#[tokio::test]
async fn a_new_topic_is_told_apart_from_a_deleted_one_with_other_settings() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    bench.alter(Topic, "a", &[("retention.ms", set("5"))]).await.expect("allowed");
    let id = bench.topics.state().topic("a").expect("exists").id;
    bench.topics.delete(vec![id]).await.expect("deleted");
    bench.created("a", 1).await;
    assert_eq!(bench.set_on(Topic, "a"), "");
}
