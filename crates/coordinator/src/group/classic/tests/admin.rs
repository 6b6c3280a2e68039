//! Describe, list, delete, leave in bulk, and what offsets ask of a group.

use super::*;
use wire::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use wire::messages::offset_delete_response::OffsetDeleteResponse;

fn offset_delete(rig: &mut Rig, topic: &str) -> OffsetDeleteResponse {
    let request = OffsetDeleteRequest {
        group_id: text(GROUP),
        topics: vec![OffsetDeleteRequestTopic {
            name: text(topic),
            partitions: vec![OffsetDeleteRequestPartition::default()],
        }],
    };
    match rig.bench.ask(Command::OffsetDelete(caller(0), Box::new(request))) {
        Reply::OffsetDelete(response) => *response,
        other => panic!("not an answer to OffsetDelete: {other:?}"),
    }
}

/// Top-level error, error of the partition.
fn offset_delete_errors(rig: &mut Rig, topic: &str) -> (ErrorCode, Option<ErrorCode>) {
    let response = offset_delete(rig, topic);
    let partition = response.topics.first().map(|t| error(t.partitions[0].error_code));
    (error(response.error_code), partition)
}

fn delete(rig: &mut Rig) -> ErrorCode {
    match rig.bench.ask(Command::DeleteGroup { group_id: text(GROUP) }) {
        Reply::DeleteGroup(result) => error(result.error_code),
        other => panic!("not an answer to DeleteGroups: {other:?}"),
    }
}

#[test]
fn d1_what_is_shown_depends_on_the_state() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(1);
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_type), ("CompletingRebalance", "consumer"));
    assert_eq!((&*described.protocol_data, described.members[0].member_metadata.len()), ("", 0));

    rig.assign(&ids, 1);
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_data), ("Stable", "range"));
    let member = &described.members[0];
    assert_eq!((&*member.client_id, &*member.client_host), ("client", "/127.0.0.1"));
    assert_eq!((&member.member_metadata[..], &member.member_assignment[..]), (&b"meta"[..], ids[0].as_bytes()));

    rig.send_join(j("").version(3));
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_data), ("PreparingRebalance", ""));
    let old = described.members.iter().find(|m| m.member_id == *ids[0]).unwrap();
    assert_eq!((old.member_metadata.len(), &old.member_assignment[..]), (0, ids[0].as_bytes()));
}

#[test]
fn d2_gd01_a_missing_group_is_dead() {
    let mut rig = Rig::new();
    let described = rig.describe_version(5);
    assert_eq!((described.error_code, &*described.group_state, described.error_message), (0, "Dead", None));
    let described = rig.describe_version(6);
    assert_eq!((error(described.error_code), &*described.group_state), (ErrorCode::GroupIdNotFound, "Dead"));
    assert_eq!(described.error_message, Some(text("Group g not found.")));
}

#[test]
fn d4_gd05_groups_are_filtered_by_state_and_type() {
    let mut rig = Rig::new();
    rig.stable_group(1);
    rig.join(j("").group("other"));
    let ids = |listed: Vec<ListedGroup>| listed.into_iter().map(|g| g.group_id.to_string()).collect::<Vec<_>>();
    let cases: [(&[&str], &[&str], &[&str]); 6] = [
        (&[], &[], &["g", "other"]),
        (&["EMPTY "], &["Classic"], &["other"]),
        (&["stable"], &[], &["g"]),
        (&["Stable", "Empty"], &["classic"], &["g", "other"]),
        (&[], &["zz"], &[]),
        (&["zz"], &[], &[]),
    ];
    for (states, types, expected) in cases {
        assert_eq!(ids(rig.list(states, types)), expected, "{states:?} {types:?}");
    }
    let entry = &rig.list(&["stable"], &[])[0];
    assert_eq!((&*entry.protocol_type, &*entry.group_state, &*entry.group_type), ("consumer", "Stable", "classic"));
}

#[test]
fn d4_m9_a_group_of_commits_only_is_a_simple_one() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    assert_eq!(rig.commit("", None, -1), ErrorCode::None);
    let listed = rig.list(&[], &[]);
    assert_eq!((&*listed[0].protocol_type, &*listed[0].group_state, &*listed[0].group_type), ("", "Empty", "classic"));
    assert_eq!(rig.describe().protocol_type, "");
    let id = rig.new_id();
    assert_eq!(rig.join_soon(j(&id)).generation_id, 1, "and can be joined");
}

#[test]
fn d6_gd02_only_empty_groups_are_deleted() {
    let mut rig = Rig::new();
    assert_eq!(delete(&mut rig), ErrorCode::GroupIdNotFound);
    let ids = rig.joined_group(1);
    assert_eq!(delete(&mut rig), ErrorCode::NonEmptyGroup);
    rig.assign(&ids, 1);
    assert_eq!(delete(&mut rig), ErrorCode::NonEmptyGroup);
    rig.leave(&[(&ids[0], None)]);
    rig.bench.records();
    let pending = rig.new_id();
    assert_eq!(delete(&mut rig), ErrorCode::None, "ids that are pending do not count");
    assert_eq!(rig.group_records(), [None]);
    assert_eq!(rig.describe().group_state, "Dead");
    assert!(rig.bench.timers().iter().all(|(_, timer)| !timer.contains(&pending)));
    assert_eq!(error(rig.join(j(&pending)).error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn d7_gd04_offsets_of_a_live_group_of_another_kind_stay() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let join = rig.send_join(j("").version(3).kind("connect"));
    rig.bench.advance(0);
    rig.joined(join);
    assert_eq!(offset_delete_errors(&mut rig, "t"), (ErrorCode::NonEmptyGroup, None));
}

#[test]
fn d7_a_missing_group_has_no_offsets() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    assert_eq!(offset_delete_errors(&mut rig, "t"), (ErrorCode::GroupIdNotFound, None));
}

#[test]
fn d8_d9_gd03_offsets_of_topics_that_are_read_stay() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    rig.bench.set_topic("u", 1);
    rig.bench.set_topic("v", 1);
    let none = (ErrorCode::None, Some(ErrorCode::None));
    let subscribed = (ErrorCode::None, Some(ErrorCode::GroupSubscribedToTopic));
    let joins = [rig.send_join(js("i1").reading(&["t"])), rig.send_join(js("i2").reading(&["t", "u"]))];
    assert_eq!(offset_delete_errors(&mut rig, "v"), subscribed, "not known yet: all of them");
    rig.bench.advance(0);
    let leader = rig.joined(joins[0]).member_id.to_string();
    rig.joined(joins[1]);
    for topic in ["t", "u"] {
        assert_eq!(offset_delete_errors(&mut rig, topic), subscribed, "{topic}");
    }
    assert_eq!(offset_delete_errors(&mut rig, "v"), none);
    rig.sync(&leader, 1, &[]);
    let other = rig.join(js("i2").reading(&["v"])).member_id.to_string();
    assert_eq!(offset_delete_errors(&mut rig, "v"), none, "looked at with each generation only");
    rig.leave(&[(&leader, None), (&other, None)]);
    assert_eq!(offset_delete_errors(&mut rig, "t"), none, "nobody reads");
}

#[test]
fn d9_metadata_that_cannot_be_read_covers_every_topic() {
    for metadata in ["", "x", "\u{1}\u{2}\u{3}"] {
        let mut rig = Rig::new();
        rig.bench.set_topic("t", 1);
        let join = rig.send_join(js("i1").offering(&[("range", metadata)]));
        rig.bench.advance(0);
        assert_eq!(rig.joined(join).error_code, 0);
        let (_, partition) = offset_delete_errors(&mut rig, "t");
        assert_eq!(partition, Some(ErrorCode::GroupSubscribedToTopic));
    }
}

#[test]
fn l1_older_versions_name_one_member() {
    for version in 0..=2 {
        let mut rig = Rig::new();
        let ids = rig.stable_group(1);
        let mut leave = |member_id: &str| {
            let request = LeaveGroupRequest { group_id: text(GROUP), member_id: text(member_id), ..Default::default() };
            match rig.bench.ask(Command::LeaveGroup(caller(version), Box::new(request))) {
                Reply::LeaveGroup(response) => {
                    assert_eq!(response.members, []);
                    error(response.error_code)
                }
                other => panic!("not an answer to LeaveGroup: {other:?}"),
            }
        };
        assert_eq!(leave("zz"), ErrorCode::UnknownMemberId);
        assert_eq!(leave(""), ErrorCode::UnknownMemberId);
        assert_eq!(leave(&ids[0]), ErrorCode::None);
    }
}

#[test]
fn l2_gs19_an_unknown_group_has_no_members() {
    let mut rig = Rig::new();
    assert_eq!(rig.leave(&[("x", None), ("y", Some("i"))]), [ErrorCode::UnknownMemberId; 2]);
    assert_eq!(rig.leave(&[]), []);
    assert_eq!(rig.list(&[], &[]), []);
}

#[test]
fn l4_the_open_join_of_a_member_that_leaves_is_answered() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let open = rig.send_join(j(&ids[0]));
    assert_eq!(rig.leave(&[(&ids[0], None)]), [ErrorCode::None]);
    let response = rig.joined(open);
    assert_eq!(error(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!(response.member_id, "");
}

#[test]
fn m8_the_leadership_passes_on() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(3);
    rig.leave(&[(&ids[0], None)]);
    let joins = [rig.send_join(j(&ids[1])), rig.send_join(j(&ids[2]))];
    let leader = rig.joined(joins[0]).leader;
    assert!(ids[1..].contains(&leader.to_string()));
    assert_eq!(rig.joined(joins[1]).leader, leader);
}

#[test]
fn o3_gc_commits_are_checked_by_state() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let ids = rig.joined_group(2);
    let id = &*ids[0];
    assert_eq!(rig.commit(id, None, 1), ErrorCode::RebalanceInProgress, "GO-06");
    assert_eq!(rig.commit(id, None, 2), ErrorCode::IllegalGeneration);
    assert_eq!(rig.commit("", None, -1), ErrorCode::UnknownMemberId);
    rig.assign(&ids, 1);
    assert_eq!(rig.commit(id, None, 1), ErrorCode::None, "GO-07");
    assert_eq!(rig.commit("", None, -1), ErrorCode::UnknownMemberId);
    assert_eq!(rig.commit(id, None, -1), ErrorCode::IllegalGeneration);
    rig.send_join(j("").version(3));
    assert_eq!(rig.commit(id, None, 1), ErrorCode::None, "GO-08");
}

#[test]
fn o5_an_empty_group_accepts_commits_of_nobody_only() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let ids = rig.stable_group(1);
    rig.leave(&[(&ids[0], None)]);
    assert_eq!(rig.commit(&ids[0], None, 1), ErrorCode::UnknownMemberId);
    assert_eq!(rig.commit("", None, -1), ErrorCode::None);
}

#[test]
fn o4_a_commit_keeps_its_member_alive() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let ids = rig.stable_group(1);
    for _ in 0..5 {
        rig.bench.advance(6_000);
        assert_eq!(rig.commit(&ids[0], None, 1), ErrorCode::None);
    }
    assert_eq!(rig.commit(&ids[0], None, 9), ErrorCode::IllegalGeneration);
    rig.bench.advance(6_000);
    assert_eq!(rig.commit(&ids[0], None, 9), ErrorCode::IllegalGeneration);
    rig.bench.advance(4_000);
    assert_eq!(rig.commit(&ids[0], None, 1), ErrorCode::UnknownMemberId, "one that fails does not");
}

#[test]
fn e1_e2_what_expires_depends_on_the_group() {
    let day_ms = 24 * 3_600_000;
    let committed = |rig: &mut Rig| {
        rig.bench.records();
        rig.bench.advance(8 * day_ms);
        let records = rig.bench.records();
        records.iter().filter(|r| matches!(r, Record::OffsetCommit(_, None))).count()
    };
    let long = 1_800_000;

    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    rig.commit("", None, -1);
    assert_eq!(committed(&mut rig), 1, "a simple group");
    assert_eq!(rig.describe().group_state, "Dead", "T-6: and then the group itself");

    // Heartbeats of a member that stays: every 25 minutes for eight days.
    let stay = |rig: &mut Rig, id: &str| {
        rig.bench.records();
        let mut tombstones = 0;
        for _ in 0..(8 * day_ms / 1_500_000) {
            rig.bench.advance(1_500_000);
            assert_eq!(rig.heartbeat(id, 1), ErrorCode::None);
            let records = rig.bench.records();
            tombstones += records.iter().filter(|r| matches!(r, Record::OffsetCommit(_, None))).count();
        }
        tombstones
    };
    for (topics, kind, expected, why) in [
        (&["t"][..], "consumer", 0, "the topic is read"),
        (&["u"][..], "consumer", 1, "the topic is not read any longer"),
        (&["u"][..], "connect", 0, "nobody knows what is read"),
    ] {
        let mut rig = Rig::new();
        rig.bench.set_topic("t", 1);
        rig.commit("", None, -1);
        let join = js("i1").reading(topics).session(long).kind(kind);
        let id = rig.join_soon(join).member_id.to_string();
        let request =
            SyncGroupRequest { group_id: text(GROUP), generation_id: 1, member_id: text(&id), ..Default::default() };
        rig.bench.ask(Command::SyncGroup(caller(3), Box::new(request)));
        assert_eq!(stay(&mut rig, &id), expected, "{why}");
    }
}

#[test]
fn e1_an_emptied_group_keeps_its_offsets_from_then_on() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let ids = rig.stable_group(1);
    rig.commit(&ids[0], None, 1);
    let day_ms = 24 * 3_600_000;
    for _ in 0..(3 * day_ms / 9_000) {
        rig.bench.advance(9_000);
        rig.heartbeat(&ids[0], 1);
    }
    rig.leave(&[(&ids[0], None)]);
    rig.bench.advance(7 * day_ms - 700_000);
    assert_eq!(rig.describe().group_state, "Empty");
    rig.bench.advance(1_400_000);
    assert_eq!(rig.describe().group_state, "Dead");
}

#[test]
fn t6_an_empty_group_without_offsets_vanishes_at_the_next_cleanup() {
    let mut rig = Rig::new();
    rig.join(j("").offering(&[]));
    assert_eq!(rig.state(), "Empty");
    rig.bench.advance(600_000);
    assert_eq!(rig.describe().group_state, "Dead");
    assert_eq!(rig.group_records().pop(), Some(None));
}
