use std::collections::BTreeSet;

use log::{AppendParams, LogConfig, TopicId, TopicPartition};
use wire::batch::BatchBuilder;
use wire::{ErrorCode, KStr, Uuid};

use super::{Bench, set};
use crate::topics::ResourceType::{Broker, Group, Topic};
use crate::topics::{Alteration, Direction, FeatureUpdate, MetadataError, NewPartitions, Operation};

fn append(bench: &Bench, topic: &str, partition: i32) {
    let log = bench.topics.partition(topic, partition).expect("a log");
    append_to(&log);
}

fn append_to(log: &log::PartitionLog) {
    let mut batch = BatchBuilder::new();
    batch.append(1, None, Some(b"value"), &[]);
    log.append(&AppendParams::client(1), &batch.build().expect("a batch")).expect("appended");
}

async fn populate(bench: &Bench) {
    bench.created("a", 2).await;
    bench.created("gone", 1).await;
    let grow = NewPartitions { topic: "a".into(), count: 3, assignments: None };
    bench.topics.grow(vec![grow], false).await.expect("a result").remove(0).1.expect("grown");
    bench.alter(Topic, "a", &[("retention.ms", set("5"))]).await.expect("allowed");
    bench.alter(Group, "g", &[("consumer.session.timeout.ms", set("50000"))]).await.expect("allowed");
    bench.alter(Broker, "", &[("message.max.bytes", set("99"))]).await.expect("allowed");
    let id = bench.topics.state().topic("gone").expect("exists").id;
    bench.topics.delete(vec![id]).await.expect("deleted");
}

fn described(bench: &Bench) -> String {
    let state = bench.topics.state();
    let id = state.topic("a").map(|topic| topic.id);
    format!(
        "{} {id:?} {} {} {} {:?}",
        bench.listing(),
        bench.set_on(Topic, "a"),
        bench.set_on(Group, "g"),
        bench.set_on(Broker, ""),
        state.features
    )
}

#[tokio::test]
async fn everything_is_there_again_after_a_restart_and_after_a_crash() {
    let bench = Bench::new("");
    populate(&bench).await;
    let before = described(&bench);
    assert!(before.starts_with("a:3 Some("), "{before}");
    let bench = bench.restart();
    assert_eq!(described(&bench), before);
    let bench = bench.crash();
    assert_eq!(described(&bench), before);
    assert_eq!(bench.topics.partition("a", 0).expect("a log").config().retention_ms, 5);
    assert_eq!(bench.topics.partition("a", 0).expect("a log").config().max_message_bytes, 99);
    assert_eq!(bench.topics.group_configs().overrides("g").consumer_session_timeout_ms, Some(50_000));
    assert_eq!(bench.config.current().layers.set("message.max.bytes").map(|(value, _)| value), Some("99"));
}

#[tokio::test]
async fn le_01_every_start_raises_the_leader_epoch_of_what_existed() {
    let bench = Bench::new("");
    bench.created("old", 1).await;
    let epoch = |bench: &Bench, name: &str| {
        let state = bench.topics.state();
        let topic = state.topic(name).expect("exists");
        let log = bench.topics.partition(name, 0).expect("a log");
        assert_eq!(state.leader_epoch(&topic.partitions[0]), log.leader_epoch());
        log.leader_epoch()
    };
    assert_eq!(epoch(&bench, "old"), 0);
    let bench = bench.crash();
    bench.created("new", 1).await;
    assert_eq!((epoch(&bench, "old"), epoch(&bench, "new")), (1, 0));
    let bench = bench.restart();
    assert_eq!((epoch(&bench, "old"), epoch(&bench, "new")), (2, 1));
}

#[tokio::test]
async fn producer_ids_never_come_twice() {
    let mut bench = Bench::new("");
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        for _ in 0..1500 {
            assert!(seen.insert(bench.topics.next_producer_id().await.expect("an id")));
        }
        bench = bench.crash();
    }
    let together = (0..50).map(|_| {
        let topics = bench.topics.clone();
        tokio::spawn(async move { topics.next_producer_id().await.expect("an id") })
    });
    for id in together.collect::<Vec<_>>() {
        assert!(seen.insert(id.await.expect("no panic")));
    }
}

#[tokio::test]
async fn a_creation_that_a_crash_cut_short_leaves_nothing() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    // Logs are made before the records are written.
    let made = bench.logs.create_partition(&TopicPartition::new("half", 0), TopicId([9; 16]), LogConfig::default());
    assert!(made.is_ok());
    let bench = bench.crash();
    assert_eq!((bench.listing().as_str(), bench.directories()), ("a:1", vec!["a-0".to_owned()]));
    bench.created("half", 2).await;
}

#[tokio::test]
async fn a_deletion_that_a_crash_cut_short_is_finished() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    append(&bench, "a", 0);
    let id = bench.topics.state().topic("a").expect("exists").id;
    bench.topics.delete(vec![id]).await.expect("deleted");
    // As if the directory had not been renamed before the end.
    let back = bench.logs.create_partition(&TopicPartition::new("a", 0), TopicId(id.0), LogConfig::default());
    append_to(&back.expect("made"));
    let bench = bench.crash();
    assert_eq!((bench.listing().as_str(), bench.directories().len()), ("", 0));
}

#[tokio::test]
async fn a_missing_directory_is_made_again() {
    let bench = Bench::new("");
    bench.created("a", 2).await;
    std::fs::remove_dir_all(bench.dir.path().join("a-1")).expect("removed");
    let bench = bench.crash();
    append(&bench, "a", 1);
    assert_eq!(bench.directories(), ["a-0", "a-1"]);
}

#[tokio::test]
async fn data_of_no_known_topic_is_left_alone_and_is_in_nobodys_way() {
    let bench = Bench::new("");
    let stranger = TopicPartition::new("stranger", 0);
    append_to(&bench.logs.create_partition(&stranger, TopicId([9; 16]), LogConfig::default()).expect("made"));
    let bench = bench.crash();
    assert_eq!((bench.listing().as_str(), bench.directories()), ("", vec!["stranger-0".to_owned()]));
    let (_, result) = bench.create(vec![super::topic("stranger")]).await.remove(0);
    assert_eq!(result.expect_err("in the way").code, ErrorCode::KafkaStorageError);
    assert_eq!(bench.directories(), ["stranger-0"]);
}

#[tokio::test]
async fn data_of_another_topic_in_the_place_of_ours_is_never_served() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    append(&bench, "a", 0);
    std::fs::write(
        bench.dir.path().join("a-0/partition.metadata"),
        format!("version: 0\ntopic_id: {}\n", Uuid([9; 16])),
    )
    .expect("written");
    let (dir, settings) = bench.kill();
    assert!(matches!(Bench::try_open(dir, &settings), Err(MetadataError::Foreign { .. })));
}

#[tokio::test]
async fn the_metadata_log_is_rewritten_when_it_is_mostly_history() {
    let mut bench = Bench::new("");
    bench.created("a", 2).await;
    bench.alter(Topic, "a", &[("retention.ms", set("5"))]).await.expect("allowed");
    let before = described(&bench);
    let records = |bench: &Bench| {
        let offsets = bench.metadata_log().offsets().expect("readable");
        offsets.log_end - offsets.log_start
    };
    let mut most = 0;
    for round in 0..8 {
        for operation in [set("50000"), Operation::Delete] {
            let alteration = |group: i32| Alteration {
                kind: Group,
                name: KStr::from(format!("g{group}")),
                operations: vec![("consumer.session.timeout.ms".into(), operation.clone())],
                replace: false,
            };
            let results = bench.topics.alter_configs((0..1000).map(alteration).collect(), false).await;
            assert!(results.expect("results").iter().all(Result::is_ok));
            most = most.max(records(&bench));
        }
        if round == 6 {
            bench = bench.crash();
        }
    }
    assert!((10_000..16_000).contains(&most), "{most}");
    assert!(records(&bench) < 10_000, "{}", records(&bench));
    assert_eq!(described(&bench), before);
    assert_eq!(bench.topics.partition("a", 0).expect("a log").leader_epoch(), 1);
}

#[tokio::test]
async fn features_move_only_where_they_may_and_stay() {
    let bench = Bench::new("");
    let update = |name: &'static str, level, direction| FeatureUpdate { name: name.into(), level, direction };
    let cases = [
        (update("group.version", 2, Direction::Up), false),
        (update("no.such", 1, Direction::Up), false),
        (update("streams.version", -1, Direction::SafeDown), false),
        (update("streams.version", 0, Direction::Up), false),
        (update("metadata.version", 20, Direction::SafeDown), false),
        (update("streams.version", 0, Direction::SafeDown), true),
    ];
    for (update, allowed) in cases {
        let described = format!("{update:?}");
        let result = bench.topics.update_features(vec![update], false).await;
        assert_eq!(result.is_ok(), allowed, "{described}");
        assert!(result.is_ok() || result.is_err_and(|r| r.code == ErrorCode::InvalidUpdateVersion));
    }
    let level = |bench: &Bench, name: &str| bench.topics.state().features.get(name).copied();
    assert_eq!(level(&bench, "streams.version"), Some(0));
    let bench = bench.crash();
    assert_eq!((level(&bench, "streams.version"), level(&bench, "group.version")), (Some(0), Some(1)));
    let (_, finalized) = bench.features.finalized();
    assert!(finalized.iter().all(|(name, _)| *name != "streams.version"));
}

#[tokio::test]
async fn a_damaged_metadata_log_does_not_start_as_an_empty_one() {
    let bench = Bench::new("");
    bench.created("a", 1).await;
    let log = bench.metadata_log();
    let mut batch = BatchBuilder::new();
    batch.append(1, None, Some(&[1, 27, 0]), &[]);
    log.append(&AppendParams::coordinator(1), &batch.build().expect("a batch")).expect("appended");
    drop(log);
    let (dir, settings) = bench.kill();
    let refused = Bench::try_open(dir, &settings);
    assert!(matches!(refused, Err(MetadataError::Damaged { offset: 5.., .. })));
}
