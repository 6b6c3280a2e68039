use coordinator::InternalTopic;
use log::AppendParams;
use wire::batch::BatchBuilder;
use wire::{ErrorCode, KStr};

use super::{Bench, listen, topic};
use crate::topics::{NewPartitions, NewTopic};

fn config(pairs: &[(&str, Option<&str>)]) -> Vec<(KStr, Option<KStr>)> {
    pairs.iter().map(|(key, value)| (KStr::copy(key), value.map(KStr::copy))).collect()
}

#[tokio::test]
async fn m_6_what_cannot_be_created_is_refused_with_its_code_and_text() {
    let bench = Bench::new("");
    bench.created("a.b", 1).await;
    let cases: Vec<(NewTopic, ErrorCode, &str)> = vec![
        (topic("a.b"), ErrorCode::TopicAlreadyExists, "Topic 'a.b' already exists."),
        (topic(""), ErrorCode::InvalidTopicException, "Topic name is invalid: the empty string is not allowed"),
        (topic("a_b"), ErrorCode::InvalidTopicException, "Topic 'a_b' collides with existing topic: a.b"),
        (
            NewTopic { partitions: 0, ..topic("x") },
            ErrorCode::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic { partitions: -2, ..topic("x") },
            ErrorCode::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic { replication_factor: 0, ..topic("x") },
            ErrorCode::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            NewTopic { replication_factor: 3, ..topic("x") },
            ErrorCode::InvalidReplicationFactor,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because \
             only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            NewTopic { configs: config(&[("nope", Some("1"))]), ..topic("x") },
            ErrorCode::InvalidConfig,
            "Unknown topic config name: nope",
        ),
        (
            NewTopic { configs: config(&[("retention.ms", Some("abc"))]), ..topic("x") },
            ErrorCode::InvalidConfig,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            NewTopic { configs: config(&[("retention.ms", None)]), ..topic("x") },
            ErrorCode::InvalidConfig,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            NewTopic { assignments: vec![(0, vec![1])], partitions: 1, ..topic("x") },
            ErrorCode::InvalidRequest,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic { assignments: vec![(0, vec![1])], replication_factor: 1, ..topic("x") },
            ErrorCode::InvalidRequest,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            NewTopic { assignments: vec![(0, vec![7])], ..topic("x") },
            ErrorCode::InvalidReplicaAssignment,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            NewTopic { assignments: vec![(0, vec![1]), (2, vec![1])], ..topic("x") },
            ErrorCode::InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
    ];
    for (new, code, text) in cases {
        let described = format!("{new:?}");
        let (_, result) = bench.create(vec![new]).await.remove(0);
        let refusal = result.expect_err(&described);
        assert_eq!((refusal.code, refusal.to_string().as_str()), (code, text), "{described}");
    }
    assert_eq!(bench.listing(), "a.b:1");
    assert_eq!(bench.directories(), ["a.b-0"], "a refusal leaves nothing behind");
}

#[tokio::test]
async fn m_6_more_than_10000_partitions_in_one_request_are_refused_altogether() {
    let bench = Bench::new("");
    let new = vec![NewTopic { partitions: 10_000, ..topic("a") }, topic("b")];
    for (_, result) in bench.create(new).await {
        assert_eq!(result.expect_err("too many").code, ErrorCode::PolicyViolation);
    }
    assert_eq!(bench.listing(), "");
}

#[tokio::test]
async fn m_7_minus_one_asks_for_the_brokers_defaults() {
    let bench = Bench::new("num.partitions=4");
    bench.created("a", -1).await;
    assert_eq!(bench.listing(), "a:4");
}

#[tokio::test]
async fn m_7_validate_only_answers_the_same_and_creates_nothing() {
    let bench = Bench::new("");
    let new = NewTopic { partitions: 3, configs: config(&[("retention.ms", Some("5"))]), ..topic("a") };
    let (_, result) = bench.topics.create(vec![new], true).await.expect("a result").remove(0);
    let created = result.expect("could be created");
    assert_eq!((created.partitions, created.overrides["retention.ms"].as_str()), (3, "5"));
    assert_eq!((bench.listing().as_str(), bench.directories().len()), ("", 0));
}

#[tokio::test]
async fn one_request_creates_what_it_can() {
    let bench = Bench::new("");
    let results = bench.create(vec![topic("a"), topic(""), topic("a.b"), topic("a_b")]).await;
    let codes: Vec<_> = results.into_iter().map(|(name, r)| (name, r.map_or_else(|e| e.code.code(), |_| 0))).collect();
    // Only topics that exist already are collided with.
    assert_eq!(codes, [("a".into(), 0), ("".into(), 17), ("a.b".into(), 0), ("a_b".into(), 0)]);
    assert_eq!(bench.listing(), "a:1 a.b:1 a_b:1");
}

#[tokio::test]
async fn decision_28_replication_factors_are_lowered_where_that_is_configured() {
    let bench = Bench::new("replication.factor.clamp=true");
    let new = vec![
        NewTopic { replication_factor: 3, ..topic("a") },
        NewTopic { assignments: vec![(0, vec![1, 2, 3]), (1, vec![2, 3, 1])], ..topic("b") },
    ];
    for (name, result) in bench.create(new).await {
        result.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    }
    assert_eq!(bench.listing(), "a:1 b:2");

    let strict = Bench::new("default.replication.factor=3");
    let (_, result) = strict.create(vec![topic("a")]).await.remove(0);
    assert_eq!(result.expect_err("one node").code, ErrorCode::InvalidReplicationFactor);
}

#[tokio::test]
async fn listeners_are_told_before_the_caller_and_see_the_logs() {
    let bench = Bench::new("");
    let told = listen(&bench.topics);
    bench.created("a", 2).await;
    bench.create(vec![topic("b"), topic("c")]).await;
    let id = bench.topics.state().topic("a").expect("exists").id;
    bench.topics.delete(vec![id]).await.expect("deleted");
    assert_eq!(
        *told.lock().expect("no panic"),
        [
            r#"changed ["a"] deleted [] groups [] broker false"#,
            r#"changed ["b", "c"] deleted [] groups [] broker false"#,
            r#"changed [] deleted ["a"] groups [] broker false"#,
        ]
    );
    assert!(bench.topics.partition("b", 0).is_some());
    assert!(bench.topics.partition("b", 1).is_none());
    assert!(bench.topics.partition("b", -1).is_none());
}

#[tokio::test]
async fn s_4_8_internal_topics_that_exist_with_these_partitions_are_no_failure() {
    let bench = Bench::new("");
    bench.created("have", 2).await;
    bench.created("other", 3).await;
    let wanted = |name: &'static str| InternalTopic {
        name: name.into(),
        partitions: 2,
        replication_factor: 0,
        configs: vec![("cleanup.policy".into(), "compact".into())],
    };
    let failures =
        bench.topics.create_internal(vec![wanted("have"), wanted("new"), wanted("other"), wanted("b d")]).await;
    let failed: Vec<_> = failures.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    assert_eq!(
        failed,
        [
            ("other", "Topic 'other' already exists."),
            (
                "b d",
                "Topic name is invalid: 'b d' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
            ),
        ]
    );
    assert!(bench.topics.partition("new", 1).expect("created").config().compact);
}

#[tokio::test]
async fn m_9_topics_grow_and_never_shrink() {
    let bench = Bench::new("");
    bench.created("a", 2).await;
    let grow = |count, assignments: Option<Vec<Vec<i32>>>| NewPartitions { topic: "a".into(), count, assignments };
    let cases = [
        (NewPartitions { topic: "x".into(), count: 2, assignments: None }, ErrorCode::UnknownTopicOrPartition),
        (grow(2, None), ErrorCode::InvalidPartitions),
        (grow(1, None), ErrorCode::InvalidPartitions),
        (grow(4, Some(vec![])), ErrorCode::InvalidReplicaAssignment),
        (grow(3, Some(vec![vec![2]])), ErrorCode::InvalidReplicaAssignment),
    ];
    for (new, code) in cases {
        let described = format!("{new:?}");
        let (_, result) = bench.topics.grow(vec![new], false).await.expect("a result").remove(0);
        assert_eq!(result.expect_err(&described).code, code, "{described}");
    }
    let grown = bench.topics.grow(vec![grow(5, None)], true).await.expect("a result").remove(0).1;
    assert_eq!((grown, bench.listing().as_str()), (Ok(()), "a:2"), "validate only");
    for (count, assignments) in [(3, None), (4, Some(vec![vec![1]]))] {
        let grown = bench.topics.grow(vec![grow(count, assignments)], false).await.expect("a result").remove(0).1;
        assert_eq!(grown, Ok(()));
    }
    assert_eq!(bench.listing(), "a:4");
    assert!(bench.topics.partition("a", 3).is_some());
}

#[tokio::test]
async fn a_deleted_topic_is_gone_and_comes_back_empty_under_another_id() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    let log = bench.topics.partition("a", 0).expect("a log");
    let mut batch = BatchBuilder::new();
    batch.append(1, None, Some(b"value"), &[]);
    log.append(&AppendParams::client(1), &batch.build().expect("a batch")).expect("appended");
    let first = bench.topics.state().topic("a").expect("exists").id;
    assert_eq!(bench.topics.delete(vec![first, first]).await.expect("deleted"), [first]);
    assert_eq!((bench.listing().as_str(), bench.directories().len()), ("", 0));
    assert_eq!(bench.topics.delete(vec![first]).await.expect("nothing to do"), []);
    bench.created("a", 1).await;
    assert_ne!(bench.topics.state().topic("a").expect("exists").id, first);
    let offsets = bench.topics.partition("a", 0).expect("a log").offsets().expect("readable");
    assert_eq!(offsets.log_end, 0);
}

#[tokio::test]
async fn a_thousand_partitions_cost_one_batch_and_so_one_sync() {
    let bench = Bench::new("");
    let before = bench.metadata_batches();
    bench.created("wide", 1000).await;
    assert_eq!(bench.metadata_batches(), before + 1);
    assert!(bench.topics.partition("wide", 999).is_some());
}

#[tokio::test]
async fn ensure_makes_a_topic_once_and_keeps_its_partitions() {
    let bench = Bench::new("");
    let wanted = |partitions| NewTopic {
        partitions,
        configs: vec![("cleanup.policy".into(), Some("compact".into()))],
        ..NewTopic::named("__consumer_offsets".into())
    };
    bench.topics.ensure(wanted(3)).await.expect("made");
    bench.topics.ensure(wanted(5)).await.expect("is there");
    assert_eq!(bench.listing(), "__consumer_offsets:3");
    assert!(bench.topics.partition("__consumer_offsets", 0).expect("a log").config().compact);
}
