//! Who is in the group: joins, epochs, leaving.

use super::*;

#[test]
fn gk_01_version_0_gets_its_member_id_from_the_broker() {
    let mut rig = Rig::new();
    assert_eq!(rig.refused(joins("")), ErrorCode::InvalidRequest);
    let response = rig.send(joins("").version(0));
    let member_id = response.member_id.expect("it is given one");
    assert_eq!((member_id.len(), response.member_epoch), (22, 2));
}

#[test]
fn gk_03_an_assignor_has_to_be_known_and_shows_in_the_description() {
    let mut rig = Rig::new();
    let with = |name| joins("c1").with(|request| request.server_assignor = Some(text(name)));
    assert_eq!(rig.refused(with("zz")), ErrorCode::UnsupportedAssignor);
    rig.ok(with("range"));
    assert_eq!(rig.describe().assignor_name, "range");
}

#[test]
fn gk_04_only_who_joins_makes_a_group() {
    let mut rig = Rig::new();
    assert_eq!(rig.refused(beat("c1", 1)), ErrorCode::GroupIdNotFound);
    assert_eq!(rig.refused(beat("c1", -1)), ErrorCode::GroupIdNotFound);
    assert!(rig.bench.shard().state().group(GROUP).is_none());
}

#[test]
fn gk_05_the_first_member_gets_everything_at_epoch_2() {
    let mut rig = Rig::one();
    assert_eq!(rig.state(), (String::from("Stable"), 2, 2));
    let member = rig.member("c1").expect("it joined");
    assert_eq!((member.member_epoch, member.member_type), (2, 1));
    assert_eq!(member.assignment.topic_partitions[0].partitions, [0, 1, 2, 3]);
    assert_eq!(member.target_assignment, member.assignment);
    assert_eq!(member.subscribed_topic_regex, Some(KStr::EMPTY));
}

#[test]
fn gk_06_when_the_assignment_is_part_of_the_answer() {
    let mut rig = Rig::one();
    let all = Some(vec![0, 1, 2, 3]);
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    let full = beat("c1", 2).names(&["orders"]).owns(&[0, 1, 2, 3]);
    assert_eq!(rig.ok(full.clone().with(|request| request.rebalance_timeout_ms = 30_000)), (2, all.clone()));
    assert_eq!(rig.ok(full), (2, None), "without the timeout it is not full");
    // K-10: a member that joins again resumes.
    assert_eq!(rig.ok(joins("c1")), (2, all));
    assert_eq!(rig.state(), (String::from("Stable"), 2, 2));
}

#[test]
fn a_steady_heartbeat_writes_nothing_and_moves_only_its_session() {
    let mut rig = Rig::two();
    rig.bench.records();
    rig.bench.advance(1_000);
    let timers = rig.bench.timers();
    assert_eq!(rig.ok(beat("c1", 3)), (3, None));
    assert!(rig.bench.records().is_empty());
    assert!(rig.bench.effects().is_empty());
    assert_eq!(rig.bench.timers().len(), timers.len());
}

#[test]
fn k_14_what_a_request_leaves_out_stays() {
    let mut rig = Rig::one();
    rig.ok(beat("c1", 2).with(|request| request.rack_id = Some(text("r1"))));
    let member = rig.member("c1").expect("it joined");
    assert_eq!(member.rack_id, Some(text("r1")));
    assert_eq!(member.subscribed_topic_names, ["orders"]);
    // K-15: a rack alone is no reason to assign anew.
    assert_eq!(rig.state(), (String::from("Stable"), 2, 2));
}

#[test]
fn gk_10_a_lost_answer_is_tolerated_and_a_zombie_is_not() {
    let mut rig = Rig::acknowledged();
    for (beat, fenced) in [
        (beat("c1", 4).owns(&[0, 1]), true),
        (beat("c1", 1).owns(&[0, 1]), true),
        (beat("c1", 2), true),
        (beat("c1", 2).owns(&[0, 1, 2, 3]), true),
        (beat("c1", 2).owns(&[0, 1]), false),
        (beat("c1", 2).owns(&[]), false),
    ] {
        if fenced {
            assert_eq!(rig.refused(beat), ErrorCode::FencedMemberEpoch);
        } else {
            assert_eq!(rig.ok(beat), (3, None));
        }
    }
}

#[test]
fn gk_24_unknown_members_leaving_and_the_group_after_the_last_leave() {
    let mut rig = Rig::two();
    assert_eq!(rig.refused(beat("zz", 3)), ErrorCode::UnknownMemberId);
    assert_eq!(rig.refused(beat("zz", -1)), ErrorCode::UnknownMemberId);
    assert_eq!(rig.ok(beat("c2", -1)), (-1, None));
    assert_eq!(rig.ok(beat("c1", 3)), (4, Some(vec![0, 1, 2, 3])));
    assert_eq!(rig.ok(beat("c1", -1)), (-1, None));
    assert_eq!(rig.state(), (String::from("Empty"), 5, 5));
    assert!(rig.member_ids().is_empty());
    assert_eq!(rig.ok(joins("c3")), (6, Some(vec![0, 1, 2, 3])));
}

#[test]
fn gx_04_a_full_group_takes_only_those_it_knows() {
    let mut rig = Rig::with(|config| config.consumer_max_size = 2);
    rig.ok(joins("c1"));
    rig.ok(joins("c2").instance("i2"));
    assert_eq!(rig.refused(joins("c3")), ErrorCode::GroupMaxSizeReached);
    assert_eq!(rig.refused(beat("c3", 3)), ErrorCode::GroupMaxSizeReached);
    rig.ok(joins("c1"));
    rig.ok(beat("c2", -2).instance("i2"));
    rig.ok(joins("c3").instance("i2"));
}

#[test]
fn k_8_an_empty_classic_group_gives_way_and_keeps_its_offsets() {
    let mut rig = Rig::new();
    super::offsets::commit(&mut rig, "", -1, &[0]).expect("tools may commit");
    assert!(rig.is_classic());
    assert_eq!(rig.ok(joins("c1")), (2, Some(vec![0, 1, 2, 3])));
    assert!(!rig.is_classic());
    assert_eq!(super::offsets::fetch(&mut rig, None, -1), Ok(5));
}

#[test]
fn gk_21_an_empty_group_gives_way_to_a_classic_join_and_keeps_its_offsets() {
    let mut rig = Rig::one();
    super::offsets::commit(&mut rig, "c1", 2, &[0]).expect("it is a member");
    rig.ok(beat("c1", -1));
    assert_eq!(error(rig.joined(join("")).error_code), ErrorCode::MemberIdRequired);
    assert!(rig.is_classic());
    assert_eq!(super::offsets::fetch(&mut rig, None, -1), Ok(5));
}
