//! Offsets of consumer groups.

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

use super::*;

/// Commits 5 for partitions of `orders`.
fn commit_in_version(
    rig: &mut Rig,
    version: i16,
    member_id: &str,
    epoch: i32,
    partitions: &[i32],
) -> Result<(), Vec<ErrorCode>> {
    let partitions = partitions.iter().map(|&partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 5,
        ..Default::default()
    });
    let topic =
        OffsetCommitRequestTopic { name: text("orders"), partitions: partitions.collect(), ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: text(GROUP),
        generation_id_or_member_epoch: epoch,
        member_id: text(member_id),
        topics: vec![topic],
        ..Default::default()
    };
    let Reply::OffsetCommit(response) = rig.bench.ask(Command::OffsetCommit(caller(version), Box::new(request))) else {
        panic!("not an answer to a commit")
    };
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    let errors: Vec<_> = partitions.map(|partition| error(partition.error_code)).collect();
    if errors.iter().all(|error| error.is_none()) { Ok(()) } else { Err(errors) }
}

pub(super) fn commit(rig: &mut Rig, member_id: &str, epoch: i32, partitions: &[i32]) -> Result<(), Vec<ErrorCode>> {
    commit_in_version(rig, 9, member_id, epoch, partitions)
}

/// The offset of `orders`, partition 0.
pub(super) fn fetch(rig: &mut Rig, member_id: Option<&str>, epoch: i32) -> Result<i64, ErrorCode> {
    let topic = OffsetFetchRequestTopics { name: text("orders"), partition_indexes: vec![0], ..Default::default() };
    let group = OffsetFetchRequestGroup {
        group_id: text(GROUP),
        member_id: member_id.map(text),
        member_epoch: epoch,
        topics: Some(vec![topic]),
    };
    let command = Command::OffsetFetch { caller: caller(9), group: Box::new(group), require_stable: true };
    let Reply::OffsetFetch(group) = rig.bench.ask(command) else { panic!("not an answer to a fetch") };
    match error(group.error_code) {
        ErrorCode::None => Ok(group.topics[0].partitions[0].committed_offset),
        why => {
            assert!(group.topics.is_empty());
            Err(why)
        }
    }
}

#[test]
fn gk_12_commits_with_current_older_and_wrong_epochs() {
    let mut rig = Rig::acknowledged();
    let stale = ErrorCode::StaleMemberEpoch;
    // At its epoch a member may commit anything.
    assert_eq!(commit(&mut rig, "c1", 3, &[0, 2]), Ok(()));
    // At an older one only what it has had since then.
    assert_eq!(commit(&mut rig, "c1", 2, &[0, 1]), Ok(()));
    assert_eq!(commit(&mut rig, "c1", 2, &[0, 1, 2, 3]), Err(vec![stale; 4]));
    assert_eq!(commit(&mut rig, "c1", 1, &[0]), Err(vec![stale]));
    assert_eq!(commit(&mut rig, "c1", 9, &[0]), Err(vec![stale]));
    assert_eq!(commit_in_version(&mut rig, 8, "c1", 3, &[0]), Err(vec![ErrorCode::UnsupportedVersion]));
    assert_eq!(commit(&mut rig, "", -1, &[0]), Err(vec![ErrorCode::UnknownMemberId]));
}

#[test]
fn o_7_what_is_still_to_be_given_up_may_be_committed() {
    let mut rig = Rig::revoking();
    assert_eq!(commit(&mut rig, "c1", 2, &[2, 3]), Ok(()));
}

#[test]
fn o_6_tools_may_commit_once_the_group_is_empty() {
    let mut rig = Rig::one();
    rig.ok(beat("c1", -1));
    assert_eq!(commit(&mut rig, "", -1, &[0]), Ok(()));
    assert_eq!(commit(&mut rig, "c1", 2, &[0]), Err(vec![ErrorCode::UnknownMemberId]));
}

#[test]
fn gk_13_who_may_fetch() {
    let mut rig = Rig::acknowledged();
    commit(&mut rig, "c1", 3, &[0]).expect("it is a member");
    for (member_id, epoch, expected) in [
        (Some("c1"), 3, Ok(5)),
        (Some("c1"), 2, Err(ErrorCode::StaleMemberEpoch)),
        (Some("zz"), 3, Err(ErrorCode::UnknownMemberId)),
        (None, -1, Ok(5)),
        (Some(""), -1, Err(ErrorCode::UnknownMemberId)),
    ] {
        assert_eq!(fetch(&mut rig, member_id, epoch), expected, "{member_id:?} {epoch}");
    }
}

#[test]
fn x_5_transactional_commits() {
    let mut rig = Rig::acknowledged();
    let mut send = |version: i16, member_id: &str, epoch: i32| {
        let partition =
            TxnOffsetCommitRequestPartition { partition_index: 3, committed_offset: 6, ..Default::default() };
        let topic = TxnOffsetCommitRequestTopic { name: text("orders"), topic_id: ORDERS, partitions: vec![partition] };
        let request = TxnOffsetCommitRequest {
            group_id: text(GROUP),
            producer_id: 7,
            generation_id_or_member_epoch: epoch,
            member_id: text(member_id),
            topics: vec![topic],
            ..Default::default()
        };
        let command = Command::TxnOffsetCommit(caller(version), Box::new(request));
        let Reply::TxnOffsetCommit(response) = rig.bench.ask(command) else { panic!("not an answer to a commit") };
        error(response.topics[0].partitions[0].error_code)
    };
    assert_eq!(send(3, "c1", 3), ErrorCode::None);
    assert_eq!(send(3, "", -1), ErrorCode::None);
    assert_eq!(send(3, "zz", 3), ErrorCode::UnknownMemberId);
    assert_eq!(send(5, "c1", 2), ErrorCode::IllegalGeneration);
    assert_eq!(send(6, "c1", 2), ErrorCode::StaleMemberEpoch);
}

#[test]
fn d_8_offsets_of_topics_that_are_read_are_kept() {
    let mut rig = Rig::one();
    commit(&mut rig, "c1", 2, &[0]).expect("it is a member");
    let mut delete = |topic: &str| {
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
        let topics = vec![OffsetDeleteRequestTopic { name: text(topic), partitions }];
        let request = OffsetDeleteRequest { group_id: text(GROUP), topics };
        let Reply::OffsetDelete(response) = rig.bench.ask(Command::OffsetDelete(caller(0), Box::new(request))) else {
            panic!("not an answer to a deletion")
        };
        error(response.topics[0].partitions[0].error_code)
    };
    assert_eq!(delete("orders"), ErrorCode::GroupSubscribedToTopic);
    assert_eq!(delete("users"), ErrorCode::None);
}

#[test]
fn e_1_offsets_of_other_topics_expire_in_a_live_group_and_the_group_goes_with_its_last_member() {
    let mut rig = Rig::with(|config| config.offsets_retention_ms = 60_000);
    rig.ok(joins("c1"));
    commit(&mut rig, "c1", 2, &[0]).expect("it is a member");
    for _ in 0..20 {
        rig.bench.advance(30_000);
        rig.ok(beat("c1", 2));
    }
    assert_eq!(fetch(&mut rig, None, -1), Ok(5));
    rig.ok(beat("c1", 2).names(&["users"]).owns(&[]));
    for _ in 0..20 {
        rig.bench.advance(30_000);
        rig.ok(beat("c1", 3));
    }
    assert_eq!(fetch(&mut rig, None, -1), Ok(-1));
    rig.ok(beat("c1", -1));
    rig.bench.advance(600_000);
    assert!(rig.bench.shard().state().group(GROUP).is_none());
}
