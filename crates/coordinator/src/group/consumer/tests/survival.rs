//! Sessions, restarts, and a log that refuses.

use super::*;
use crate::state_log::LogError;

#[test]
fn gk_27_a_silent_member_is_removed_with_its_session() {
    let mut rig = Rig::two();
    rig.bench.advance(44_999);
    rig.ok(beat("c1", 3));
    rig.bench.advance(1);
    assert_eq!(rig.member_ids(), ["c1"]);
    assert_eq!(rig.refused(beat("c2", 3)), ErrorCode::UnknownMemberId);
    assert_eq!(rig.ok(beat("c1", 3)), (4, Some(vec![0, 1, 2, 3])));
}

#[test]
fn the_group_may_have_its_own_session_timeout_within_the_brokers_limits() {
    let mut rig = Rig::new();
    rig.configure(GroupOverrides { consumer_session_timeout_ms: Some(99_000), ..Default::default() });
    rig.ok(joins("c1"));
    rig.bench.advance(59_999);
    assert_eq!(rig.member_ids(), ["c1"]);
    rig.bench.advance(1);
    assert!(rig.member_ids().is_empty());
}

#[test]
fn gx_08_after_a_restart_members_go_on_at_their_epochs_with_a_full_session() {
    let mut rig = Rig::two();
    let before = rig.describe();
    rig.bench.advance(40_000);
    rig.bench.restart();
    assert_eq!(rig.describe(), before);
    rig.bench.advance(44_999);
    assert_eq!(rig.ok(beat("c1", 3)), (3, None));
    rig.bench.advance(1);
    assert_eq!(rig.member_ids(), ["c1"]);
}

#[test]
fn k_29_after_a_restart_a_classic_member_has_the_groups_session_until_it_is_heard_of() {
    let (mut rig, classic) = Rig::classic(join(""));
    rig.ok(joins("c1"));
    rig.bench.restart();
    rig.bench.advance(44_999);
    assert!(rig.member_ids().contains(&classic));
    rig.bench.advance(1);
    assert!(rig.member_ids().is_empty());
}

#[test]
fn k_29_after_a_restart_a_revocation_has_its_full_time_again() {
    let mut rig = Rig::revoking();
    rig.bench.advance(29_000);
    rig.bench.restart();
    rig.bench.advance(29_999);
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    rig.bench.advance(1);
    assert_eq!(rig.member_ids(), ["c2"]);
}

#[test]
fn k_29_after_a_restart_a_classic_member_that_has_to_revoke_has_its_rebalance_timeout() {
    let (mut rig, classic) = Rig::mixed();
    assert_eq!(rig.joined(join(&classic).owns(&[0, 1, 2, 3])).generation_id, 1);
    rig.bench.restart();
    rig.bench.advance(19_999);
    assert!(rig.member_ids().contains(&classic));
    rig.bench.advance(1);
    assert_eq!(rig.member_ids(), ["c2"]);
}

#[test]
fn a_restart_in_the_midst_of_a_revocation_loses_nothing() {
    let mut rig = Rig::revoking();
    rig.bench.restart();
    assert_eq!(rig.ok(beat("c2", 3)), (3, None), "c1 holds it still");
    assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1])), (3, None));
    assert_eq!(rig.ok(beat("c2", 3)), (3, Some(vec![2, 3])));
}

#[test]
fn a_refused_join_never_happened() {
    let mut rig = Rig::one();
    let before = rig.describe();
    rig.unwritten(joins("c2"));
    assert_eq!(rig.describe(), before);
    // The timer of the member that did not come to be finds nobody.
    rig.bench.advance(44_000);
    rig.ok(beat("c1", 2));
    rig.bench.advance(2_000);
    assert_eq!(rig.member_ids(), ["c1"]);
    assert_eq!(rig.ok(joins("c2")), (3, Some(vec![])));
}

#[test]
fn a_refused_leave_leaves_the_member_with_a_session() {
    let mut rig = Rig::one();
    rig.unwritten(beat("c1", -1));
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    rig.bench.advance(45_000);
    assert!(rig.member_ids().is_empty());
}

#[test]
fn a_session_whose_end_the_log_refuses_ends_later() {
    let mut rig = Rig::one();
    rig.bench.advance(44_999);
    rig.bench.log_mut().fail_next_append(LogError::NoSpace);
    rig.bench.advance(1);
    assert_eq!(rig.member_ids(), ["c1"]);
    rig.bench.advance(45_000);
    assert!(rig.member_ids().is_empty());
}

#[test]
fn a_refused_revocation_is_begun_again() {
    let mut rig = Rig::one();
    rig.ok(joins("c2"));
    rig.unwritten(beat("c1", 2).owns(&[0, 1, 2, 3]));
    rig.bench.advance(29_999);
    assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1, 2, 3])), (2, Some(vec![0, 1])));
    rig.ok(beat("c2", 3));
    rig.bench.advance(29_999);
    assert_eq!(rig.ok(beat("c1", 2)), (2, None), "the time counts from the second beginning");
}

#[test]
fn a_change_of_topics_is_not_lost_with_a_refused_write() {
    let mut rig = Rig::one();
    rig.bench.set_topic("orders", 5);
    rig.unwritten(beat("c1", 2));
    assert_eq!(rig.ok(beat("c1", 2)), (3, Some(vec![0, 1, 2, 3, 4])));
}

#[test]
fn a_refused_question_about_expressions_is_asked_again() {
    let mut rig = Rig::new();
    rig.unwritten(joins("c1").no_names().regex("o.*"));
    assert!(rig.bench.effects().is_empty());
    rig.ok(joins("c1").no_names().regex("o.*"));
    assert_eq!(rig.bench.effects().len(), 1);
}
