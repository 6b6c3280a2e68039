use std::collections::BTreeMap;

use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use wire::{ErrorCode, KStr, Uuid};

use super::{reaches_group, refused_commit};
use crate::command::Command;
use crate::config::BrokerConfig;
use crate::outcome::Reply;
use crate::record::Record;
use crate::state_log::{EndMarker, LogError, Producer};
use crate::testing::{Bench, caller};

const NONE: i16 = 0;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const METADATA_TOO_LARGE: i16 = 12;
const ILLEGAL_GENERATION: i16 = 22;
const INVALID_GROUP_ID: i16 = 24;
const GROUP_ID_NOT_FOUND: i16 = 69;
const UNSTABLE: i16 = 88;
const UNKNOWN_TOPIC_ID: i16 = 100;

fn text(text: &str) -> KStr {
    KStr::copy(text)
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.set_topic("orders", 4);
    bench.set_topic("users", 1);
    bench
}

/// An anonymous commit of `offset` to the given partitions.
fn commit_request(group_id: &str, topic: &str, partitions: &[i32], offset: i64) -> OffsetCommitRequest {
    let partitions = partitions.iter().map(|&partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset,
        ..Default::default()
    });
    OffsetCommitRequest {
        group_id: text(group_id),
        generation_id_or_member_epoch: -1,
        retention_time_ms: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: text(topic),
            partitions: partitions.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Partition and error, in the order of the answer.
fn commit(bench: &mut Bench, version: i16, request: OffsetCommitRequest) -> Vec<(i32, i16)> {
    let Reply::OffsetCommit(response) = bench.ask(Command::OffsetCommit(caller(version), Box::new(request))) else {
        panic!("not the reply to a commit")
    };
    let topics = response.topics.into_iter();
    topics.flat_map(|topic| topic.partitions).map(|p| (p.partition_index, p.error_code)).collect()
}

fn commit_one(bench: &mut Bench, group_id: &str, topic: &str, partition: i32, offset: i64) {
    let request = commit_request(group_id, topic, &[partition], offset);
    assert_eq!(commit(bench, 9, request), [(partition, NONE)]);
}

fn txn_request(group_id: &str, producer_id: i64, partition: i32, offset: i64) -> TxnOffsetCommitRequest {
    TxnOffsetCommitRequest {
        group_id: text(group_id),
        producer_id,
        generation_id_or_member_epoch: -1,
        topics: vec![TxnOffsetCommitRequestTopic {
            name: text("orders"),
            partitions: vec![TxnOffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn txn_commit(bench: &mut Bench, version: i16, request: TxnOffsetCommitRequest) -> Vec<(i32, i16)> {
    let command = Command::TxnOffsetCommit(caller(version), Box::new(request));
    let Reply::TxnOffsetCommit(response) = bench.ask(command) else {
        panic!("not the reply to a transactional commit")
    };
    let topics = response.topics.into_iter();
    topics.flat_map(|topic| topic.partitions).map(|p| (p.partition_index, p.error_code)).collect()
}

fn end_transaction(bench: &mut Bench, producer_id: i64, commit: bool) {
    bench.ask(marker(producer_id, commit));
}

fn marker(producer_id: i64, commit: bool) -> Command {
    let producer = Producer { id: producer_id, epoch: 0 };
    Command::TxnMarker(EndMarker { producer, commit, coordinator_epoch: 0, raises_epoch: false })
}

fn fetch_command(group_id: &str, topics: Option<Vec<OffsetFetchRequestTopics>>, version: i16, stable: bool) -> Command {
    let group = OffsetFetchRequestGroup { group_id: text(group_id), member_epoch: -1, topics, ..Default::default() };
    Command::OffsetFetch { caller: caller(version), group: Box::new(group), require_stable: stable }
}

type Fetched = BTreeMap<(String, i32), (i64, i16)>;

fn fetched(reply: Reply) -> Fetched {
    let Reply::OffsetFetch(group) = reply else { panic!("not the reply to a fetch") };
    assert_eq!(group.error_code, NONE);
    let topics = group.topics.into_iter();
    topics
        .flat_map(|topic| {
            let name = String::from(&topic.name);
            topic.partitions.into_iter().map(move |p| {
                let key = (name.clone(), p.partition_index);
                (key, (p.committed_offset, p.error_code))
            })
        })
        .collect()
}

/// Offset and error of one partition.
fn fetch(bench: &mut Bench, group_id: &str, partition: i32, stable: bool) -> (i64, i16) {
    let topic =
        OffsetFetchRequestTopics { name: text("orders"), partition_indexes: vec![partition], ..Default::default() };
    let command = fetch_command(group_id, Some(vec![topic]), 9, stable);
    fetched(bench.ask(command))[&(String::from("orders"), partition)]
}

fn fetch_all(bench: &mut Bench, group_id: &str, stable: bool) -> Fetched {
    fetched(bench.ask(fetch_command(group_id, None, 9, stable)))
}

fn delete_command(group_id: &str, topic: &str, partitions: &[i32]) -> Command {
    let partitions = partitions.iter().map(|&partition_index| OffsetDeleteRequestPartition { partition_index });
    let topics = vec![OffsetDeleteRequestTopic { name: text(topic), partitions: partitions.collect() }];
    Command::OffsetDelete(caller(0), Box::new(OffsetDeleteRequest { group_id: text(group_id), topics }))
}

fn delete(bench: &mut Bench, group_id: &str, topic: &str, partitions: &[i32]) -> (i16, Vec<(i32, i16)>) {
    let Reply::OffsetDelete(response) = bench.ask(delete_command(group_id, topic, partitions)) else {
        panic!("not the reply to a deletion")
    };
    let topics = response.topics.into_iter();
    let partitions = topics.flat_map(|topic| topic.partitions).map(|p| (p.partition_index, p.error_code));
    (response.error_code, partitions.collect())
}

/// The tombstones among the records since the last look, as topic and partition.
fn tombstones(bench: &mut Bench) -> Vec<(String, i32)> {
    let offsets = bench.records().into_iter().filter_map(|record| match record {
        Record::OffsetCommit(key, None) => Some((String::from(&key.topic), key.partition)),
        _ => None,
    });
    offsets.collect()
}

#[test]
fn o_1_what_does_not_exist_comes_first_and_does_not_stop_the_rest() {
    let mut bench = bench();
    assert_eq!(commit(&mut bench, 9, commit_request("g", "gone", &[0], 5)), [(0, UNKNOWN_TOPIC_OR_PARTITION)]);
    let answer = commit(&mut bench, 9, commit_request("g", "orders", &[0, 77, -1], 5));
    assert_eq!(answer, [(77, UNKNOWN_TOPIC_OR_PARTITION), (-1, UNKNOWN_TOPIC_OR_PARTITION), (0, NONE)]);
    assert_eq!(fetch(&mut bench, "g", 0, false), (5, NONE));
}

#[test]
fn o_1_version_10_names_topics_by_id() {
    let mut bench = bench();
    let orders = bench.topics().get("orders").expect("made above").id;
    let with_id = |topic_id| {
        let mut request = commit_request("g", "", &[1], 6);
        request.topics[0].topic_id = topic_id;
        request
    };
    for unknown in [Uuid::ZERO, Uuid::from_u128(99)] {
        assert_eq!(commit(&mut bench, 10, with_id(unknown)), [(1, UNKNOWN_TOPIC_ID)]);
    }
    assert_eq!(commit(&mut bench, 10, with_id(orders)), [(1, NONE)]);
    assert_eq!(fetch(&mut bench, "g", 1, false), (6, NONE));
}

#[test]
fn o_1_without_valid_partitions_the_group_is_not_looked_at() {
    let mut bench = bench();
    let mut request = commit_request("g", "gone", &[0], 5);
    request.generation_id_or_member_epoch = 3;
    assert_eq!(commit(&mut bench, 9, request), [(0, UNKNOWN_TOPIC_OR_PARTITION)]);
}

#[test]
fn o_2_a_group_that_does_not_exist() {
    for (version, error) in [(2, ILLEGAL_GENERATION), (8, ILLEGAL_GENERATION), (9, GROUP_ID_NOT_FOUND)] {
        let mut bench = bench();
        let mut request = commit_request("g", "orders", &[0], 5);
        request.generation_id_or_member_epoch = 0;
        assert_eq!(commit(&mut bench, version, request), [(0, error)], "version {version}");
        assert!(bench.records().is_empty());
        assert!(bench.shard().state().group("g").is_none());
    }
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    assert!(bench.shard().state().group("g").is_some());
    // No group record: the group lives by its offsets.
    assert!(matches!(bench.records()[..], [Record::OffsetCommit(..)]));
}

#[test]
fn r_5_an_empty_group_id_is_legal_for_plain_commits_only() {
    let mut bench = bench();
    commit_one(&mut bench, "", "orders", 0, 5);
    assert_eq!(fetch(&mut bench, "", 0, false), (5, NONE));
    assert_eq!(txn_commit(&mut bench, 5, txn_request("", 7, 0, 6)), [(0, INVALID_GROUP_ID)]);
    assert_eq!(delete(&mut bench, "", "orders", &[0]), (INVALID_GROUP_ID, vec![]));
}

#[test]
fn o_8_metadata_is_limited_by_characters() {
    let cases = [
        ("x".repeat(4096), NONE),
        ("x".repeat(4097), METADATA_TOO_LARGE),
        ("é".repeat(4096), NONE),
        // Two characters each, as Java counts.
        ("\u{1f600}".repeat(2048), NONE),
        ("\u{1f600}".repeat(2049), METADATA_TOO_LARGE),
    ];
    for (metadata, error) in cases {
        let mut bench = bench();
        let mut request = commit_request("g", "orders", &[0, 1], 5);
        request.topics[0].partitions[0].committed_metadata = Some(text(&metadata));
        assert_eq!(commit(&mut bench, 9, request), [(0, error), (1, NONE)], "{} bytes", metadata.len());
    }
}

#[test]
fn o_9_any_offset_is_stored() {
    let mut bench = bench();
    for offset in [-1, -5, 0, i64::MAX] {
        commit_one(&mut bench, "g", "orders", 0, offset);
        assert_eq!(fetch(&mut bench, "g", 0, false), (offset, NONE));
    }
}

#[test]
fn o_10_what_is_stored() {
    let mut bench = bench();
    let mut request = commit_request("g", "orders", &[2], 5);
    request.topics[0].partitions[0].committed_leader_epoch = 3;
    request.topics[0].partitions[0].committed_metadata = Some(text("note"));
    commit(&mut bench, 9, request.clone());
    request.retention_time_ms = 2000;
    commit(&mut bench, 4, request);
    let [Record::OffsetCommit(key, Some(plain)), Record::OffsetCommit(_, Some(timed))] = &bench.records()[..] else {
        panic!("two offsets were committed")
    };
    assert_eq!((&*key.group, &*key.topic, key.partition), ("g", "orders", 2));
    assert_eq!((plain.offset, plain.leader_epoch, &*plain.metadata), (5, 3, "note"));
    assert_eq!((plain.commit_timestamp, plain.expire_timestamp), (1_000_000, -1));
    assert_eq!(plain.topic_id, bench.topics().get("orders").expect("made above").id);
    // Version 1 of the record has no place for the leader epoch and the topic id.
    assert_eq!((timed.commit_timestamp, timed.expire_timestamp), (1_000_000, 1_002_000));
}

#[test]
fn f_2_names_are_not_checked_and_ids_are() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    let orders = bench.topics().get("orders").expect("made above").id;
    let topic = |name: &str, topic_id, index| OffsetFetchRequestTopics {
        name: text(name),
        topic_id,
        partition_indexes: vec![index],
    };
    let names = vec![topic("gone", Uuid::ZERO, 0), topic("orders", Uuid::ZERO, 77)];
    let by_name = fetched(bench.ask(fetch_command("g", Some(names), 9, false)));
    assert!(by_name.values().all(|&value| value == (-1, NONE)));
    let ids = vec![topic("", Uuid::from_u128(99), 0), topic("", orders, 0)];
    let Reply::OffsetFetch(by_id) = bench.ask(fetch_command("g", Some(ids), 10, false)) else {
        panic!("not the reply to a fetch")
    };
    let seen = by_id.topics.iter().map(|t| (t.topic_id, t.partitions[0].committed_offset, t.partitions[0].error_code));
    assert_eq!(seen.collect::<Vec<_>>(), [(orders, 5, NONE), (Uuid::from_u128(99), -1, UNKNOWN_TOPIC_ID)]);
}

#[test]
fn f_3_a_group_that_does_not_exist_has_no_offsets() {
    let mut bench = bench();
    assert_eq!(fetch(&mut bench, "none", 0, true), (-1, NONE));
    assert!(fetch_all(&mut bench, "none", false).is_empty());
}

#[test]
fn f_6_an_offset_of_an_earlier_topic_of_that_name_does_not_count() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    // The topic is made anew; the shard is not told, as after a crash in between.
    let stale = bench.topics().get("orders").expect("made above").clone();
    let metadata = crate::topics::TopicMetadata { id: Uuid::from_u128(99), ..stale };
    bench.set_topic_metadata("orders", metadata);
    let topic =
        OffsetFetchRequestTopics { topic_id: Uuid::from_u128(99), partition_indexes: vec![0], ..Default::default() };
    let by_id = fetched(bench.ask(fetch_command("g", Some(vec![topic]), 10, false)));
    assert_eq!(by_id.into_values().collect::<Vec<_>>(), [(-1, NONE)]);
    assert_eq!(fetch(&mut bench, "g", 0, false), (5, NONE));
}

#[test]
fn f_7_open_transactions() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    for partition in [0, 1] {
        assert_eq!(txn_commit(&mut bench, 5, txn_request("g", 7, partition, 9)), [(partition, NONE)]);
    }
    assert_eq!(fetch(&mut bench, "g", 0, false), (5, NONE));
    assert_eq!(fetch(&mut bench, "g", 1, false), (-1, NONE));
    assert_eq!(fetch(&mut bench, "g", 0, true), (-1, UNSTABLE));
    assert_eq!(fetch(&mut bench, "g", 1, true), (-1, UNSTABLE));
    // A partition that is only pending is not among all.
    let all = fetch_all(&mut bench, "g", true);
    assert_eq!(all, Fetched::from([((String::from("orders"), 0), (-1, UNSTABLE))]));
}

#[test]
fn f_8_all_by_id_leaves_out_what_is_gone() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    commit_one(&mut bench, "g", "users", 0, 6);
    // A refused write keeps the offsets of a topic that is gone.
    bench.log_mut().fail_next_append(LogError::NoSpace);
    bench.delete_topic("users");
    let Reply::OffsetFetch(all) = bench.ask(fetch_command("g", None, 10, false)) else {
        panic!("not the reply to a fetch")
    };
    let orders = bench.topics().get("orders").expect("made above").id;
    assert_eq!(all.topics.iter().map(|t| t.topic_id).collect::<Vec<_>>(), [orders]);
    assert_eq!(fetch_all(&mut bench, "g", false).len(), 2);
}

#[test]
fn x_2_the_transaction_is_not_touched_when_nothing_exists() {
    let bench = bench();
    let mut request = txn_request("g", 7, 77, 5);
    assert!(!reaches_group(bench.topics(), 5, &request));
    request.topics[0].partitions[0].partition_index = 3;
    assert!(reaches_group(bench.topics(), 5, &request));
    assert!(!reaches_group(bench.topics(), 6, &request));
}

#[test]
fn x_3_a_group_that_does_not_exist() {
    for (version, error) in [(3, ILLEGAL_GENERATION), (5, ILLEGAL_GENERATION)] {
        let mut request = txn_request("g", 7, 0, 5);
        request.generation_id_or_member_epoch = 1;
        assert_eq!(txn_commit(&mut bench(), version, request), [(0, error)], "version {version}");
    }
    let mut bench = bench();
    let mut request = txn_request("g", 7, 0, 5);
    request.generation_id_or_member_epoch = 1;
    request.topics[0].topic_id = bench.topics().get("orders").expect("made above").id;
    assert_eq!(txn_commit(&mut bench, 6, request), [(0, GROUP_ID_NOT_FOUND)]);
}

#[test]
fn x_7_the_marker_decides() {
    for (commit, expected) in [(true, 9), (false, 5)] {
        let mut bench = bench();
        commit_one(&mut bench, "g", "orders", 0, 5);
        txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
        // Another producer's marker changes nothing.
        end_transaction(&mut bench, 8, true);
        assert_eq!(fetch(&mut bench, "g", 0, true), (-1, UNSTABLE));
        bench.restart();
        assert_eq!(fetch(&mut bench, "g", 0, true), (-1, UNSTABLE));
        end_transaction(&mut bench, 7, commit);
        assert_eq!(fetch(&mut bench, "g", 0, true), (expected, NONE));
        bench.restart();
        assert_eq!(fetch(&mut bench, "g", 0, true), (expected, NONE));
    }
}

#[test]
fn x_7_a_later_plain_commit_wins() {
    let mut bench = bench();
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 55));
    commit_one(&mut bench, "g", "orders", 0, 77);
    end_transaction(&mut bench, 7, true);
    assert_eq!(fetch(&mut bench, "g", 0, true), (77, NONE));
}

#[test]
fn x_7_two_producers_may_be_open_at_once() {
    let mut bench = bench();
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 1));
    txn_commit(&mut bench, 5, txn_request("g", 8, 0, 2));
    end_transaction(&mut bench, 8, true);
    assert_eq!(fetch(&mut bench, "g", 0, true), (-1, UNSTABLE));
    // The offset that was written earlier does not come back.
    end_transaction(&mut bench, 7, true);
    assert_eq!(fetch(&mut bench, "g", 0, true), (2, NONE));
}

#[test]
fn x_7_deleting_drops_what_is_open() {
    let mut bench = bench();
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    assert_eq!(delete(&mut bench, "g", "orders", &[0]), (NONE, vec![(0, NONE)]));
    end_transaction(&mut bench, 7, true);
    assert_eq!(fetch(&mut bench, "g", 0, true), (-1, NONE));
}

#[test]
fn x_8_an_aborted_commit_leaves_the_group() {
    let mut bench = bench();
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    end_transaction(&mut bench, 7, false);
    assert!(bench.shard().state().group("g").is_some());
    assert!(fetch_all(&mut bench, "g", false).is_empty());
}

#[test]
fn d_7_errors_before_the_group_and_from_the_group() {
    let mut bench = bench();
    // The group is looked at even if no partition exists.
    assert_eq!(delete(&mut bench, "none", "orders", &[99]), (GROUP_ID_NOT_FOUND, vec![]));
    assert_eq!(delete(&mut bench, "none", "orders", &[0, 99]), (GROUP_ID_NOT_FOUND, vec![]));
}

#[test]
fn d_8_deleting_what_is_not_there_is_no_error_and_writes_nothing() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    bench.records();
    assert_eq!(
        delete(&mut bench, "g", "orders", &[1, 0, 99]).1,
        [(0, NONE), (1, NONE), (99, UNKNOWN_TOPIC_OR_PARTITION)]
    );
    assert_eq!(tombstones(&mut bench), [(String::from("orders"), 0)]);
    assert_eq!(fetch(&mut bench, "g", 0, false), (-1, NONE));
}

#[test]
fn d_6_a_deleted_group_takes_its_offsets_along() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 1, 5);
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    bench.records();
    bench.ask(Command::DeleteGroup { group_id: text("g") });
    let orders = |partition| (String::from("orders"), partition);
    assert_eq!(tombstones(&mut bench), [orders(0), orders(1)]);
    end_transaction(&mut bench, 7, true);
    assert_eq!(fetch(&mut bench, "g", 0, true), (-1, NONE));
}

#[test]
fn e_1_an_explicit_time_counts_before_the_retention() {
    let mut bench = bench();
    let mut request = commit_request("g", "orders", &[0], 5);
    request.retention_time_ms = 2000;
    commit(&mut bench, 2, request);
    commit_one(&mut bench, "g", "orders", 1, 6);
    bench.records();
    bench.advance(600_000);
    assert_eq!(tombstones(&mut bench), [(String::from("orders"), 0)]);
    assert_eq!(fetch(&mut bench, "g", 1, false), (6, NONE));
}

#[test]
fn e_1_an_open_transaction_keeps_an_offset() {
    let mut bench = Bench::with_config(BrokerConfig { offsets_retention_ms: 60_000, ..Default::default() });
    bench.set_topic("orders", 4);
    commit_one(&mut bench, "g", "orders", 0, 5);
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    bench.advance(600_000);
    assert_eq!(fetch(&mut bench, "g", 0, false), (5, NONE));
    end_transaction(&mut bench, 7, false);
    bench.advance(600_000);
    assert_eq!(fetch(&mut bench, "g", 0, false), (-1, NONE));
}

#[test]
fn e_1_many_offsets_expire_in_batches_that_fit() {
    let mut bench = Bench::with_config(BrokerConfig { offsets_retention_ms: 60_000, ..Default::default() });
    bench.set_topic("orders", 5_000);
    let all: Vec<_> = (0..5_000).collect();
    commit(&mut bench, 9, commit_request("g", "orders", &all, 5));
    let before = bench.log().entries().len();
    bench.records();
    bench.advance(600_000);
    assert_eq!(tombstones(&mut bench).len(), 5_000);
    assert!(bench.log().entries().len() - before >= 5_000);
    assert!(fetch_all(&mut bench, "g", false).is_empty());
}

#[test]
fn e_1_a_log_that_refuses_does_not_make_the_check_spin() {
    let mut bench = Bench::with_config(BrokerConfig { offsets_retention_ms: 60_000, ..Default::default() });
    bench.set_topic("orders", 5_000);
    let all: Vec<_> = (0..5_000).collect();
    commit(&mut bench, 9, commit_request("g", "orders", &all, 5));
    bench.log_mut().fail_next_append(LogError::NoSpace);
    bench.advance(600_000);
    assert_eq!(fetch_all(&mut bench, "g", false).len(), 5_000);
    bench.advance(600_000);
    assert!(fetch_all(&mut bench, "g", false).is_empty());
}

#[test]
fn e_4_the_offsets_of_a_deleted_topic_go_with_it() {
    let mut bench = bench();
    for group_id in ["g", "h"] {
        commit_one(&mut bench, group_id, "users", 0, 5);
        commit_one(&mut bench, group_id, "orders", 0, 6);
    }
    bench.records();
    bench.delete_topic("users");
    assert_eq!(tombstones(&mut bench).len(), 2);
    assert_eq!(fetch_all(&mut bench, "g", false).len(), 1);
    assert_eq!(fetch_all(&mut bench, "h", false).len(), 1);
}

#[test]
fn e_4_a_deleted_topic_takes_open_transactions_along_with_a_tombstone_for_each_commit() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "orders", 0, 5);
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    txn_commit(&mut bench, 5, txn_request("g", 8, 0, 9));
    bench.records();
    bench.delete_topic("orders");
    assert_eq!(tombstones(&mut bench).len(), 3);
    bench.ask(marker(7, true));
    assert!(fetch_all(&mut bench, "g", false).is_empty());
}

#[test]
fn e_4_a_refused_write_is_made_up_for() {
    let mut bench = bench();
    commit_one(&mut bench, "g", "users", 0, 5);
    bench.log_mut().fail_next_append(LogError::NoSpace);
    bench.delete_topic("users");
    assert_eq!(fetch_all(&mut bench, "g", false).len(), 1);
    bench.advance(600_000);
    assert!(fetch_all(&mut bench, "g", false).is_empty());
}

#[test]
fn a_read_waits_for_the_marker_it_shows() {
    let mut bench = bench();
    txn_commit(&mut bench, 5, txn_request("g", 7, 0, 9));
    bench.log_mut().set_durability(crate::testing::Durability::Manual);
    let (_, answer) = bench.send(marker(7, true));
    assert_eq!(answer, None);
    let fetch = bench.park(fetch_command("g", None, 9, true));
    bench.make_durable();
    let all = fetched(bench.reply(fetch));
    assert_eq!(all.into_values().collect::<Vec<_>>(), [(9, ErrorCode::None.code())]);
}

#[test]
fn o_1_a_commit_that_is_not_taken_still_says_what_does_not_exist() {
    let bench = bench();
    let partition = |partition_index| OffsetCommitRequestPartition { partition_index, ..Default::default() };
    let topic = |name: &str| OffsetCommitRequestTopic {
        name: text(name),
        partitions: vec![partition(0), partition(77)],
        ..Default::default()
    };
    let request = OffsetCommitRequest { topics: vec![topic("orders"), topic("nothing")], ..Default::default() };
    let response = refused_commit(bench.topics(), 9, &request, ErrorCode::NotCoordinator);
    let codes = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|p| (topic.name.as_str(), p.partition_index, ErrorCode::from_code(p.error_code)))
    });
    let mut codes: Vec<_> = codes.collect();
    codes.sort_by_key(|(name, index, _)| (*name, *index));
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(
        codes,
        [
            ("nothing", 0, unknown),
            ("nothing", 77, unknown),
            ("orders", 0, ErrorCode::NotCoordinator),
            ("orders", 77, unknown)
        ]
    );
}
