//! Classic and consumer members in one group, and the way from one kind of group to the other.

use super::*;
use crate::config::MigrationPolicy;

#[test]
fn gm_01_a_consumer_member_joins_a_stable_classic_group() {
    let (mut rig, a) = Rig::classic(join(""));
    assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])));
    assert_eq!(rig.state(), (String::from("Reconciling"), 2, 2));
    let member = rig.member(&a).expect("it was converted");
    assert_eq!((member.member_epoch, member.member_type), (1, 0));
    assert_eq!(member.assignment.topic_partitions[0].partitions, [0, 1, 2, 3]);
    assert_eq!(rig.member("c2").expect("it joined").member_type, 1);
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::RebalanceInProgress);
    assert_eq!(error(rig.sync(&a, 1, &[]).error_code), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.classic_beat(&a, 9), ErrorCode::IllegalGeneration);
    assert_eq!(rig.classic_beat("c2", 2), ErrorCode::UnknownMemberId);
    assert_eq!(error(rig.sync("c2", 2, &[]).error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn gm_02_the_classic_member_rejoins_and_gets_less() {
    let (mut rig, a) = Rig::mixed();
    let response = rig.joined(join(&a));
    assert_eq!((error(response.error_code), response.generation_id), (ErrorCode::None, 2));
    assert_eq!((response.protocol_name, &*response.leader), (Some(text("range")), ""));
    assert!(response.members.is_empty());
    let synced = rig.sync(&a, 2, &[]);
    assert_eq!((error(synced.error_code), assigned(&synced.assignment)), (ErrorCode::None, vec![0, 1]));
    assert_eq!(rig.ok(beat("c2", 2)), (2, Some(vec![2, 3])));
    assert_eq!(rig.classic_beat(&a, 2), ErrorCode::None);
    assert_eq!(rig.state(), (String::from("Stable"), 2, 2));
}

#[test]
fn g_7_a_classic_member_that_owns_too_much_gives_it_up_first() {
    let (mut rig, a) = Rig::mixed();
    let response = rig.joined(join(&a).owns(&[0, 1, 2, 3]));
    assert_eq!(response.generation_id, 1, "it has to revoke before it may go on");
    assert_eq!(assigned(&rig.sync(&a, 1, &[]).assignment), [0, 1]);
    assert_eq!(rig.ok(beat("c2", 2)), (2, None));
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.joined(join(&a).owns(&[0, 1])).generation_id, 2);
    assert_eq!(rig.ok(beat("c2", 2)), (2, Some(vec![2, 3])));
}

/// Kafka 4.4 gives 2 and 3 to `c2` at once.
#[test]
fn g_4_what_a_cooperative_member_still_runs_is_given_up_before_the_upgrade_gives_it_away() {
    let (mut rig, a) = Rig::classic(join(""));
    let leads_again = rig.send_join(join(&a).owns(&[0, 1, 2, 3])).unwrap_or_else(|id| rig.late_join(id));
    assert_eq!(leads_again.generation_id, 2);
    rig.sync(&a, 2, &[(&a, assignment(&[0, 1], None))]);
    assert_eq!(rig.ok(joins("c2")), (3, Some(vec![])));
    rig.bench.restart();
    assert_eq!(rig.ok(beat("c2", 3)), (3, None));
    assert_eq!(rig.classic_beat(&a, 2), ErrorCode::RebalanceInProgress);
    // As long as it says that it runs them it keeps them from others.
    assert_eq!(rig.joined(join(&a).owns(&[0, 1, 2, 3])).generation_id, 2);
    assert_eq!(assigned(&rig.sync(&a, 2, &[]).assignment), [0, 1]);
    assert_eq!(rig.ok(beat("c2", 3)), (3, None));
    assert_eq!(rig.joined(join(&a).owns(&[0, 1])).generation_id, 3);
    assert_eq!(rig.ok(beat("c2", 3)), (3, Some(vec![2, 3])));
}

#[test]
fn g_4_only_what_nobody_is_assigned_is_held_back() {
    let (mut rig, a) = Rig::classic(join("").owns(&[0, 1, 2, 3]));
    assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])));
    assert_eq!(rig.joined(join(&a).owns(&[])).generation_id, 2);
    assert_eq!(rig.ok(beat("c2", 2)), (2, Some(vec![2, 3])));
}

#[test]
fn gm_03_when_the_last_consumer_member_leaves_the_group_is_classic_again() {
    let (mut rig, a) = Rig::mixed();
    rig.joined(join(&a));
    rig.sync(&a, 2, &[]);
    assert_eq!(rig.ok(beat("c2", -1)), (-1, None));
    assert!(rig.is_classic());
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::IllegalGeneration);
    assert_eq!(rig.classic_beat(&a, 2), ErrorCode::RebalanceInProgress);
    let response = rig.send_join(join(&a)).unwrap_or_else(|id| rig.late_join(id));
    assert_eq!((error(response.error_code), response.generation_id), (ErrorCode::None, 3));
    // A restart finds the classic group as it was handed over.
    rig.bench.restart();
    assert!(rig.is_classic());
    assert_eq!(rig.classic_beat(&a, 2), ErrorCode::None);
}

#[test]
fn g_13_a_session_that_ends_may_be_that_of_the_last_consumer_member() {
    let (mut rig, a) = Rig::mixed();
    rig.joined(join(&a));
    for _ in 0..9 {
        assert!(!rig.is_classic());
        rig.sync(&a, 2, &[]);
        rig.bench.advance(5_000);
    }
    assert!(rig.is_classic(), "c2 has been silent for 45 s");
}

#[test]
fn g_13_a_classic_static_member_may_replace_the_last_consumer_member() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").instance("i1"));
    let response = rig.joined(join("").instance("i1"));
    assert_eq!((error(response.error_code), response.generation_id), (ErrorCode::None, 2));
    assert!(rig.is_classic());
    // The target was not outdated, so the group is stable and the member keeps what it had.
    let synced = rig.sync(&response.member_id, 2, &[]);
    assert_eq!((error(synced.error_code), assigned(&synced.assignment)), (ErrorCode::None, vec![0, 1, 2, 3]));
}

#[test]
fn g_13_the_generation_is_the_epoch_that_the_group_had_before_the_replacement() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").instance("i1"));
    let others =
        |request: &mut JoinGroupRequest| request.protocols[0].metadata = subscription(&["orders", "users"], &[]);
    let response = rig.joined(join("").instance("i1").with(others));
    assert_eq!(error(response.error_code), ErrorCode::None);
    assert!(rig.is_classic());
    // What it subscribes to moved the epoch to 3, so the members assemble, from the generation that they had.
    assert_eq!(rig.classic_beat(&response.member_id, 2), ErrorCode::RebalanceInProgress);
    let again = rig.send_join(join(&response.member_id).with(others)).unwrap_or_else(|id| rig.late_join(id));
    assert_eq!((error(again.error_code), again.generation_id), (ErrorCode::None, 3));
}

/// As Kafka 4.4: the answer names the joiner's first protocol (C G-7) though the classic group that comes of it takes the one
/// that most prefer (C B-13), so that the sync is refused. A client joins with the others' order or not at all.
#[test]
fn g_13_a_replacement_is_told_its_own_protocol_and_held_to_the_voted_one() {
    let mut rig = Rig::new();
    rig.ok(joins("c1").instance("i1"));
    let offering = |instance: &str, names: [&str; 2]| {
        let protocol =
            |name: &str| JoinGroupRequestProtocol { name: text(name), metadata: subscription(&["orders"], &[]) };
        join("").instance(instance).with(|request| request.protocols = names.map(protocol).into())
    };
    for instance in ["i2", "i3"] {
        assert_eq!(rig.joined(offering(instance, ["rr", "range"])).protocol_name, Some(text("rr")));
    }
    let replacement = rig.joined(offering("i1", ["range", "rr"]));
    assert_eq!((rig.is_classic(), replacement.protocol_name), (true, Some(text("range"))));
    let synced = rig.sync(&replacement.member_id, replacement.generation_id, &[]);
    assert_eq!(error(synced.error_code), ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn g_7_what_a_member_says_it_owns_counts_though_part_of_it_is_not_its_own() {
    let (mut rig, a) = Rig::mixed();
    rig.joined(join(&a));
    rig.sync(&a, 2, &[]);
    assert_eq!(rig.ok(beat("c2", 2)), (2, Some(vec![2, 3])));
    rig.ok(joins("c3"));
    let target = rig.member(&a).expect("it is there").target_assignment.topic_partitions[0].partitions.clone();
    assert_eq!(target.len(), 1, "{target:?}");
    assert_eq!(rig.joined(join(&a).owns(&[0, 1, 2])).generation_id, 2, "it has to give up one of its two first");
    assert_eq!(rig.joined(join(&a).owns(&target)).generation_id, 3);
}

#[test]
fn g_1_a_join_that_the_policy_forbids_draws_no_id() {
    let mut rig = Rig::one();
    rig.bench.configure(|config| config.consumer_migration_policy = MigrationPolicy::Disabled);
    rig.joined(join("").version(3));
    rig.bench.configure(|config| config.consumer_migration_policy = MigrationPolicy::Bidirectional);
    let mut other = Rig::one();
    assert_eq!(rig.joined(join("")).member_id, other.joined(join("")).member_id);
}

#[test]
fn g_15_without_permission_the_group_stays_what_it_is() {
    let (mut rig, a) = Rig::mixed();
    rig.bench.configure(|config| config.consumer_migration_policy = MigrationPolicy::Upgrade);
    rig.ok(beat("c2", -1));
    assert!(!rig.is_classic());
    assert_eq!(rig.member_ids(), [a]);
}

#[test]
fn gm_04_classic_groups_that_cannot_be_converted() {
    let mut rig = Rig::new();
    let id = rig.send_join(join("").version(3)).expect_err("the join waits for the group");
    rig.bench.advance(1);
    let a = String::from(&rig.late_join(id).member_id);
    rig.sync(&a, 1, &[(&a, assignment(&[0], Some(b"mine")))]);
    assert_eq!(rig.refused(joins("c2")), ErrorCode::GroupIdNotFound);
    assert!(rig.is_classic());

    let mut rig = Rig::new();
    let connect = |request: &mut JoinGroupRequest| request.protocol_type = text("connect");
    rig.send_join(join("").version(3).with(connect)).expect_err("the join waits for the group");
    rig.bench.advance(1);
    assert_eq!(rig.refused(joins("c2")), ErrorCode::GroupIdNotFound);
}

#[test]
fn gx_10_the_policy_forbids_each_direction() {
    use MigrationPolicy::{Bidirectional, Disabled, Downgrade, Upgrade};
    for (policy, upgrade) in [(Bidirectional, true), (Upgrade, true), (Downgrade, false), (Disabled, false)] {
        let (mut rig, _) = Rig::classic(join(""));
        rig.bench.configure(|config| config.consumer_migration_policy = policy);
        if upgrade {
            rig.ok(joins("c2"));
        } else {
            assert_eq!(rig.refused(joins("c2")), ErrorCode::GroupIdNotFound);
        }
        let mut rig = Rig::one();
        rig.bench.configure(|config| config.consumer_migration_policy = policy);
        let joined = rig.joined(join("").version(3));
        let refused = error(joined.error_code) == ErrorCode::InconsistentGroupProtocol;
        assert_eq!(refused, policy == Disabled, "{policy:?}");
    }
}

#[test]
fn g_3_open_joins_are_told_to_join_again() {
    let (mut rig, a) = Rig::classic(join(""));
    let waiting = rig.send_join(join("").instance("i9")).expect_err("it waits for the others");
    rig.ok(joins("c2"));
    assert_eq!(error(rig.late_join(waiting).error_code), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.member_ids().len(), 3);
    assert!(rig.member(&a).is_some());
}

#[test]
fn g_2_a_group_in_its_first_join_phase_is_not_converted_yet() {
    let mut rig = Rig::with(|config| config.classic_initial_rebalance_delay_ms = Some(3_000));
    rig.send_join(join("").version(3)).expect_err("it waits for the delay");
    let refused = rig.refused(joins("c2"));
    assert!(refused.is_retriable(), "{refused}");
    rig.bench.advance(3_000);
    rig.ok(joins("c2"));
}

#[test]
fn g_3_a_group_whose_first_join_phase_everybody_left_is_converted() {
    let mut rig = Rig::with(|config| config.classic_initial_rebalance_delay_ms = Some(3_000));
    let id = rig.send_join(join("").instance("i1")).expect_err("it waits for the delay");
    assert_eq!(rig.leave_group(&[("", Some("i1"))]), [ErrorCode::None]);
    assert_eq!(error(rig.late_join(id).error_code), ErrorCode::UnknownMemberId);
    assert_eq!(rig.ok(joins("c2")), (1, Some(vec![0, 1, 2, 3])), "the generation was 0");
}

#[test]
fn gm_05_new_classic_members_of_a_mixed_group() {
    let (mut rig, _) = Rig::mixed();
    let response = rig.joined(join(""));
    assert_eq!(error(response.error_code), ErrorCode::MemberIdRequired);
    assert_eq!(response.member_id.len(), 22);
    assert_eq!(rig.member_ids().len(), 2, "nothing is remembered");
    let zz = |request: &mut JoinGroupRequest| request.protocols[0].name = text("zz");
    assert_eq!(error(rig.joined(join("").with(zz)).error_code), ErrorCode::InconsistentGroupProtocol);
    let connect = |request: &mut JoinGroupRequest| request.protocol_type = text("connect");
    assert_eq!(error(rig.joined(join("").with(connect)).error_code), ErrorCode::InconsistentGroupProtocol);
    let broken = |request: &mut JoinGroupRequest| request.protocols[0].metadata = Bytes::from_static(&[0]);
    let joined = rig.joined(join(&response.member_id).with(broken));
    assert_eq!(error(joined.error_code), ErrorCode::InconsistentGroupProtocol);
    assert_eq!(rig.joined(join(&response.member_id)).generation_id, 3);
}

#[test]
fn gm_06_a_consumer_member_replaces_a_classic_static_one() {
    let (mut rig, a) = Rig::classic(join("").instance("i1"));
    assert_eq!(rig.ok(joins("c2").instance("i1")), (1, Some(vec![0, 1, 2, 3])));
    assert_eq!(rig.member_ids(), ["c2"]);
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::UnknownMemberId);
}

#[test]
fn g_6_static_members_of_the_classic_protocol() {
    let mut rig = Rig::one();
    let first = rig.joined(join("").instance("i1"));
    assert_eq!((error(first.error_code), first.generation_id), (ErrorCode::None, 3));
    let second = rig.joined(join("").instance("i1"));
    assert_eq!((error(second.error_code), second.generation_id), (ErrorCode::None, 3), "no rebalance");
    assert_ne!(second.member_id, first.member_id);
    let fenced = rig.joined(join(&first.member_id).instance("i1"));
    assert_eq!(error(fenced.error_code), ErrorCode::FencedInstanceId);
    assert_eq!(error(rig.joined(join("zz").instance("i2")).error_code), ErrorCode::UnknownMemberId);
    assert_eq!(rig.leave_group(&[("", Some("i1"))]), [ErrorCode::None]);
}

#[test]
fn gm_07_leave_group_works_for_members_of_both_protocols() {
    let (mut rig, _) = Rig::mixed();
    rig.joined(join("").instance("i1"));
    let entries = [("zz", None), ("", None), ("zz", Some("i1")), ("c2", None), ("c2", None), ("", Some("i9"))];
    let (unknown, fenced) = (ErrorCode::UnknownMemberId, ErrorCode::FencedInstanceId);
    assert_eq!(rig.leave_group(&entries), [unknown, unknown, fenced, ErrorCode::None, unknown, unknown]);
    assert!(rig.is_classic(), "only members of the classic protocol are left");
}

#[test]
fn g_8_a_member_that_joins_and_does_not_sync_is_removed() {
    let (mut rig, a) = Rig::mixed();
    rig.joined(join(&a));
    for _ in 0..19 {
        rig.bench.advance(1_000);
        assert_eq!(rig.classic_beat(&a, 2), ErrorCode::None);
    }
    rig.bench.advance(1_000);
    assert_eq!(rig.classic_beat(&a, 2), ErrorCode::UnknownMemberId);
}

#[test]
fn g_11_a_member_that_does_not_rejoin_is_removed() {
    let (mut rig, a) = Rig::mixed();
    for _ in 0..20 {
        assert_eq!(rig.classic_beat(&a, 1), ErrorCode::RebalanceInProgress);
        rig.bench.advance(1_000);
    }
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::UnknownMemberId);
    assert_eq!(rig.ok(beat("c2", 2)), (3, Some(vec![0, 1, 2, 3])));
}

#[test]
fn g_8_a_classic_member_has_its_own_session() {
    let (mut rig, a) = Rig::mixed();
    rig.joined(join(&a));
    rig.sync(&a, 2, &[]);
    rig.bench.advance(9_999);
    assert!(rig.member(&a).is_some());
    rig.bench.advance(1);
    assert!(rig.member(&a).is_none());
}

#[test]
fn g_11_a_member_that_waits_is_told_to_rejoin_once_it_need_not() {
    let mut rig = Rig::one();
    let joined = rig.joined(join("").version(3));
    assert_eq!(joined.generation_id, 3);
    let b = String::from(&joined.member_id);
    assert_eq!(assigned(&rig.sync(&b, 3, &[]).assignment), [] as [i32; 0]);
    assert_eq!(rig.classic_beat(&b, 3), ErrorCode::None, "c1 holds it");
    rig.ok(beat("c1", 2).owns(&[0, 1, 2, 3]));
    assert_eq!(rig.classic_beat(&b, 3), ErrorCode::None);
    let kept = rig.member("c1").expect("it joined").target_assignment.topic_partitions[0].partitions.clone();
    rig.ok(beat("c1", 2).owns(&kept));
    assert_eq!(rig.classic_beat(&b, 3), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.joined(join(&b)).generation_id, 3);
    assert_eq!(assigned(&rig.sync(&b, 3, &[]).assignment).len(), 2);
    assert_eq!(rig.classic_beat(&b, 3), ErrorCode::None);
}

#[test]
fn o_6_stale_commits_are_told_in_the_words_of_the_members_protocol() {
    let (mut rig, a) = Rig::mixed();
    assert_eq!(super::offsets::commit(&mut rig, &a, 1, &[0]), Ok(()));
    assert_eq!(super::offsets::commit(&mut rig, &a, 7, &[0]), Err(vec![ErrorCode::IllegalGeneration]));
    assert_eq!(super::offsets::fetch(&mut rig, Some(&a), 7), Err(ErrorCode::IllegalGeneration));
}

#[test]
fn a_refused_upgrade_leaves_the_classic_group() {
    let (mut rig, a) = Rig::classic(join(""));
    rig.unwritten(joins("c2"));
    assert!(rig.is_classic());
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::None);
    assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])));
}

#[test]
fn a_refused_downgrade_leaves_the_consumer_group() {
    let (mut rig, a) = Rig::mixed();
    rig.unwritten(beat("c2", -1));
    assert!(!rig.is_classic());
    assert_eq!(rig.member_ids().len(), 2);
    assert_eq!(rig.joined(join(&a)).generation_id, 2);
    rig.ok(beat("c2", -1));
    assert!(rig.is_classic());
}

#[test]
fn a_mixed_group_survives_a_restart() {
    let (mut rig, a) = Rig::mixed();
    let before = rig.describe();
    rig.bench.restart();
    assert_eq!(rig.describe(), before);
    assert_eq!(rig.classic_beat(&a, 1), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.joined(join(&a)).generation_id, 2);
}
