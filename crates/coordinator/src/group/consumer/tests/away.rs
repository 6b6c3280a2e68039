//! Static members, and their way to leave for a while.

use super::*;

fn with_static() -> Rig {
    let mut rig = Rig::new();
    assert_eq!(rig.ok(joins("c1").instance("i1")), (2, Some(vec![0, 1, 2, 3])));
    rig
}

#[test]
fn gk_15_an_instance_that_is_in_use_keeps_newcomers_out() {
    let mut rig = with_static();
    assert_eq!(rig.refused(joins("c2").instance("i1")), ErrorCode::UnreleasedInstanceId);
    assert_eq!(rig.refused(joins("c1").instance("i1")), ErrorCode::UnreleasedInstanceId);
    assert_eq!(rig.refused(beat("c2", 2).instance("i1")), ErrorCode::FencedInstanceId);
    assert_eq!(rig.refused(beat("c1", 2).instance("i2")), ErrorCode::UnknownMemberId);
    // K-13: it need not name its instance.
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
}

#[test]
fn gk_16_one_that_comes_back_under_another_id_inherits_everything() {
    let mut rig = with_static();
    assert_eq!(rig.ok(beat("c1", -2).instance("i1")), (-2, None));
    assert_eq!(rig.state(), (String::from("Reconciling"), 2, 2));
    assert_eq!(rig.refused(beat("c1", 2).instance("i1")), ErrorCode::FencedMemberEpoch);
    assert_eq!(rig.ok(joins("c2").instance("i1")), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(rig.state(), (String::from("Stable"), 2, 2));
    assert_eq!(rig.member_ids(), ["c2"]);
    assert_eq!(rig.refused(beat("c1", 2)), ErrorCode::UnknownMemberId);
}

#[test]
fn k_12_one_that_comes_back_with_another_subscription_moves_the_epoch() {
    let mut rig = with_static();
    rig.ok(beat("c1", -2).instance("i1"));
    assert_eq!(rig.ok(joins("c1").instance("i1").names(&["users"])), (3, Some(vec![])));
}

#[test]
fn k_12_one_that_comes_back_waits_for_nothing_that_it_held_itself() {
    let mut rig = with_static();
    rig.ok(joins("c2"));
    assert_eq!(rig.ok(beat("c1", 2).instance("i1")), (2, Some(vec![0, 1])));
    rig.ok(beat("c1", -2).instance("i1"));
    // What it had to give up is free with its leave.
    assert_eq!(rig.ok(beat("c2", 3)), (3, Some(vec![2, 3])));
    assert_eq!(rig.ok(joins("c3").instance("i1")), (3, Some(vec![0, 1])));
    assert_eq!(rig.state(), (String::from("Stable"), 3, 3));
}

#[test]
fn k_30_one_that_does_not_come_back_is_removed_with_its_session() {
    let mut rig = with_static();
    rig.bench.advance(20_000);
    rig.ok(beat("c1", -2).instance("i1"));
    rig.bench.advance(24_999);
    assert_eq!(rig.member_ids(), ["c1"]);
    rig.bench.advance(1);
    assert_eq!(rig.state(), (String::from("Empty"), 3, 3));
}

#[test]
fn k_30_leaving_for_good_frees_the_instance() {
    let mut rig = with_static();
    assert_eq!(rig.ok(beat("c1", -1).instance("i1")), (-1, None));
    assert_eq!(rig.ok(joins("c2").instance("i1")), (4, Some(vec![0, 1, 2, 3])));
}

#[test]
fn k_31_who_may_leave_in_the_name_of_an_instance() {
    let mut rig = with_static();
    assert_eq!(rig.refused(beat("c1", -1).instance("i9")), ErrorCode::UnknownMemberId);
    assert_eq!(rig.refused(beat("c2", -2).instance("i1")), ErrorCode::FencedInstanceId);
    assert_eq!(rig.refused(beat("c2", -1).instance("i1")), ErrorCode::FencedInstanceId);
    assert_eq!(rig.ok(beat("c1", -1)), (-1, None));
}
