//! When the target moves, and how members get there.

use std::sync::Arc;

use super::*;
use crate::group::ComputedTarget;
use crate::outcome::Effect;
use crate::record::Record;

#[test]
fn gk_07_with_an_assignment_interval_the_second_member_waits_for_its_end() {
    let mut rig = Rig::with(|config| config.consumer_assignment_interval_ms = Some(1_000));
    assert_eq!(rig.ok(joins("c1")), (2, Some(vec![0, 1, 2, 3])));
    assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])));
    assert_eq!(rig.state(), (String::from("Assigning"), 3, 2));
    rig.bench.advance(999);
    assert_eq!(rig.ok(beat("c2", 2)), (2, None));
    rig.bench.advance(1);
    assert_eq!(rig.ok(beat("c2", 2)), (3, None));
    assert_eq!(rig.state(), (String::from("Reconciling"), 3, 3));
}

#[test]
fn the_group_may_have_its_own_assignment_interval() {
    let mut rig = Rig::with(|config| config.consumer_assignment_interval_ms = Some(1_000));
    rig.configure(GroupOverrides { consumer_assignment_interval_ms: Some(0), ..Default::default() });
    rig.ok(joins("c1"));
    assert_eq!(rig.ok(joins("c2")), (3, Some(vec![])));
}

#[test]
fn gk_09_partitions_are_given_up_when_the_member_says_so() {
    let mut rig = Rig::revoking();
    assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1, 2, 3])), (2, None));
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    assert_eq!(rig.ok(beat("c2", 3)), (3, None), "it still waits");
    assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1])), (3, None));
    // GK-11.
    assert_eq!(rig.ok(beat("c2", 3)), (3, Some(vec![2, 3])));
    assert_eq!(rig.state(), (String::from("Stable"), 3, 3));
}

#[test]
fn gk_14_a_member_that_never_gives_up_is_removed_after_its_rebalance_timeout() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").with(|request| request.rebalance_timeout_ms = 2_000));
    rig.ok(joins("c2"));
    assert_eq!(rig.ok(beat("c1", 2)), (2, Some(vec![0, 1])));
    rig.bench.advance(1_999);
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    rig.bench.advance(1);
    assert_eq!(rig.refused(beat("c1", 2)), ErrorCode::UnknownMemberId);
    assert_eq!(rig.ok(beat("c2", 3)), (4, Some(vec![0, 1, 2, 3])));
}

#[test]
fn k_27_the_rebalance_timeout_ends_with_the_revocation() {
    let mut rig = Rig::acknowledged();
    for _ in 0..4 {
        rig.bench.advance(20_000);
        rig.ok(beat("c1", 3));
        rig.ok(beat("c2", 3));
    }
    assert_eq!(rig.member_ids(), ["c1", "c2"]);
}

#[test]
fn k_26_a_dropped_topic_is_revoked_before_there_is_a_new_target() {
    let mut rig = Rig::one();
    rig.configure(GroupOverrides { consumer_assignment_interval_ms: Some(15_000), ..Default::default() });
    assert_eq!(rig.ok(beat("c1", 2).names(&["users"])), (2, Some(vec![])));
    assert_eq!(rig.state(), (String::from("Assigning"), 3, 2));
    assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1, 2, 3])), (2, None));
    assert_eq!(rig.ok(beat("c1", 2).owns(&[])), (2, None));
    rig.bench.advance(15_000);
    let response = rig.send(beat("c1", 2));
    assert_eq!(response.member_epoch, 3);
    let assignment = response.assignment.expect("it changed").topic_partitions;
    assert_eq!((assignment[0].topic_id, &assignment[0].partitions[..]), (USERS, &[0, 1][..]));
}

#[test]
fn gk_23_topics_that_appear_grow_and_vanish_are_noticed_by_the_next_heartbeat() {
    let mut rig = Rig::new();
    assert_eq!(rig.ok(joins("c1").names(&["orders", "later"])), (2, Some(vec![0, 1, 2, 3])));
    rig.bench.set_topic("unrelated", 3);
    assert_eq!(rig.ok(beat("c1", 2)), (2, None));
    rig.bench.set_topic("later", 1);
    assert_eq!(rig.ok(beat("c1", 2)), (3, Some(vec![0, 1, 2, 3])));
    rig.bench.set_topic("orders", 5);
    assert_eq!(rig.ok(beat("c1", 3)), (4, Some(vec![0, 1, 2, 3, 4])));
    rig.bench.delete_topic("orders");
    assert_eq!(rig.ok(beat("c1", 4).owns(&[])), (5, Some(vec![])));
}

#[test]
fn k_32_several_removals_of_one_request_move_the_epoch_once() {
    let mut rig = Rig::two();
    rig.ok(joins("c3"));
    assert_eq!(rig.state().1, 4);
    assert_eq!(rig.leave_group(&[("c2", None), ("c3", None)]), [ErrorCode::None; 2]);
    assert_eq!(rig.state().1, 5);
    assert_eq!(rig.member_ids(), ["c1"]);
}

/// With a topic so large that the assignor runs off the shard.
fn large() -> Rig {
    let mut rig = Rig::new();
    rig.bench.set_topic("large", 6_000);
    rig
}

#[test]
fn a_large_target_is_computed_off_the_shard_and_counts_when_more_have_joined() {
    let mut rig = large();
    assert_eq!(rig.send(joins("c1").names(&["large"])).member_epoch, 1);
    let effects = rig.bench.effects();
    let [Effect::ComputeAssignment { group_epoch: 2, input, .. }] = &effects[..] else {
        panic!("not asked for: {effects:?}")
    };
    // A second one joins, and nothing more is asked for while the first answer is outstanding.
    rig.send(joins("c2").names(&["large"]));
    assert!(rig.bench.effects().is_empty());
    let target = input.compute();
    rig.bench.records();
    let answer =
        |group_epoch| Command::AssignmentReady { group_id: text(GROUP), group_epoch, target: Arc::clone(&target) };
    rig.bench.ask(answer(7));
    assert!(rig.bench.records().is_empty(), "nobody asked for that epoch");
    rig.bench.ask(answer(2));
    assert!(matches!(rig.bench.records()[..], [Record::ConsumerTargetMember(..), Record::ConsumerTargetMetadata(..)]));
    assert_eq!(rig.state(), (String::from("Assigning"), 3, 2));
    assert_eq!(rig.send(beat("c1", 1)).member_epoch, 2);
    // That heartbeat has asked for the next one.
    assert!(matches!(rig.bench.effects()[..], [Effect::ComputeAssignment { group_epoch: 3, .. }]));
}

#[test]
fn k_18_an_assignor_that_fails_off_the_shard_is_reported() {
    let mut rig = large();
    rig.send(joins("c1").names(&["large"]));
    let target = Arc::new(ComputedTarget::Consumer(Err(String::from("no luck"))));
    rig.bench.ask(Command::AssignmentReady { group_id: text(GROUP), group_epoch: 2, target });
    assert_eq!(rig.refused(beat("c1", 1)), ErrorCode::UnknownServerError);
    // Another epoch, another attempt.
    rig.bench.effects();
    rig.send(joins("c2").names(&["large"]));
    assert!(matches!(rig.bench.effects()[..], [Effect::ComputeAssignment { group_epoch: 3, .. }]));
}
