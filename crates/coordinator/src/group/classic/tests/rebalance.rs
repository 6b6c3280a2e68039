use super::*;

/// Milliseconds until the open join is answered.
#[track_caller]
fn answered_after(rig: &mut Rig, join: CallId) -> u64 {
    rig.bench.advance(0);
    for ms in 0..400_000 {
        if let Some(answer) = rig.answer(join) {
            assert_eq!(join_response(answer.unwrap()).error_code, 0);
            return ms;
        }
        rig.bench.advance(1);
    }
    panic!("no answer");
}

fn rig_with_delay(ms: Option<i32>) -> Rig {
    let mut rig = Rig::new();
    rig.bench.configure(|config| config.classic_initial_rebalance_delay_ms = ms);
    rig
}

fn old(client: &'static str) -> J {
    j("").version(3).client(client)
}

#[test]
fn b4_gx01_a_configured_delay_is_kept() {
    let mut rig = rig_with_delay(Some(1_500));
    let join = rig.send_join(old("a"));
    assert_eq!(answered_after(&mut rig, join), 1_500);
}

#[test]
fn b5_gx01_each_round_with_a_join_is_followed_by_another() {
    let mut rig = rig_with_delay(Some(1_500));
    let first = rig.send_join(old("a"));
    rig.bench.advance(1_000);
    let second = rig.send_join(old("b"));
    assert_eq!(answered_after(&mut rig, first), 2_000);
    assert_eq!(rig.joined(second).generation_id, 1);
}

#[test]
fn b5_gx01_the_delay_is_not_shortened_by_the_rebalance_timeout() {
    let mut rig = rig_with_delay(Some(1_500));
    let join = rig.send_join(old("a").rebalance(1_000));
    rig.bench.advance(1_000);
    rig.send_join(old("b").rebalance(1_000));
    assert_eq!(answered_after(&mut rig, join), 500, "but not extended either");
}

#[test]
fn b5_the_delay_ends_with_the_rebalance_timeout() {
    let mut rig = rig_with_delay(Some(3_000));
    let join = rig.send_join(old("a").rebalance(10_000));
    for _ in 0..9 {
        rig.bench.advance(1_000);
        rig.send_join(old("b").rebalance(10_000));
    }
    assert_eq!(answered_after(&mut rig, join), 1_000, "3 + 3 + 3 + 1 s");
}

#[test]
fn b5_a_join_in_the_last_round_prolongs_the_next_initial_delay() {
    let mut rig = rig_with_delay(Some(1_500));
    let first = rig.send_join(old("a").rebalance(1_000));
    let second = rig.send_join(old("b").rebalance(1_000));
    assert_eq!(answered_after(&mut rig, first), 1_500);
    rig.joined(second);
    rig.bench.advance(60_000);
    assert_eq!(rig.state(), "Empty", "nobody has synced");
    let third = rig.send_join(old("a"));
    assert_eq!(answered_after(&mut rig, third), 3_000);
}

#[test]
fn b5_j11_the_delay_ignores_ids_that_are_pending() {
    let mut rig = rig_with_delay(Some(1_500));
    let join = rig.send_join(old("a"));
    rig.bench.advance(1_000);
    rig.new_id();
    assert_eq!(answered_after(&mut rig, join), 500);
}

#[test]
fn b_14_the_session_of_a_member_that_expires_ends_the_delay_of_those_who_wait() {
    let mut rig = rig_with_delay(Some(5_000));
    let waits = rig.send_join(old("a").rebalance(60_000));
    let expires = rig.send_join(old("b").rebalance(60_000).session(6_000));
    let id = text(&rig.describe().members.iter().find(|member| member.client_id == "b").unwrap().member_id);
    // A heartbeat makes the session of a newcomer the one that it asked for.
    assert_eq!(rig.heartbeat(&id, 0), ErrorCode::RebalanceInProgress);
    rig.bench.advance(1_000);
    rig.send_join(old("c").rebalance(60_000));
    assert_eq!(answered_after(&mut rig, waits), 5_000, "not after 10 s, as the delay would have it");
    assert_eq!(join_response(rig.answer(expires).unwrap().unwrap()).error_code, ErrorCode::UnknownMemberId.code());
}

#[test]
fn b5_a_pending_id_that_expires_ends_the_delay_of_those_who_wait() {
    let mut rig = rig_with_delay(Some(3_000));
    rig.join(j("").session(6_000));
    rig.bench.advance(5_000);
    let join = rig.send_join(js("i1"));
    assert_eq!(answered_after(&mut rig, join), 1_000);
}

#[test]
fn b6_without_delay_the_first_join_is_answered_at_once() {
    let mut rig = rig_with_delay(Some(0));
    let join = rig.send_join(old("a"));
    assert_eq!(answered_after(&mut rig, join), 0);
}

#[test]
fn decision_14_an_unset_delay_ends_when_joins_are_quiet() {
    let mut rig = rig_with_delay(None);
    let join = rig.send_join(old("a"));
    assert_eq!(answered_after(&mut rig, join), 150, "alone");

    let mut rig = rig_with_delay(None);
    let first = rig.send_join(old("a"));
    let mut others = Vec::new();
    for _ in 0..20 {
        rig.bench.advance(50);
        others.push(rig.send_join(old("b")));
    }
    assert_eq!(answered_after(&mut rig, first), 150, "not before all twenty have come");
    for other in others {
        assert_eq!(rig.joined(other).generation_id, 1);
    }
}

#[test]
fn decision_14_the_quiet_grows_with_the_gaps() {
    let mut rig = rig_with_delay(None);
    let first = rig.send_join(old("a"));
    rig.bench.advance(120);
    rig.send_join(old("b"));
    assert_eq!(answered_after(&mut rig, first), 240);

    let mut rig = rig_with_delay(None);
    let first = rig.send_join(old("a"));
    rig.bench.advance(149);
    rig.send_join(old("b"));
    rig.bench.advance(290);
    rig.send_join(old("c"));
    assert_eq!(answered_after(&mut rig, first), 300, "but not without end");
}

#[test]
fn decision_14_an_unset_delay_takes_3_s_at_the_latest() {
    let mut rig = rig_with_delay(None);
    let first = rig.send_join(old("a"));
    for _ in 0..29 {
        rig.bench.advance(100);
        rig.send_join(old("b"));
    }
    assert_eq!(answered_after(&mut rig, first), 100);
}

#[test]
fn decision_14_an_id_to_join_with_announces_a_member() {
    let mut rig = rig_with_delay(None);
    let first = rig.send_join(old("a"));
    rig.bench.advance(100);
    rig.new_id();
    assert_eq!(answered_after(&mut rig, first), 200);
}

#[test]
fn decision_14_without_adaptation_an_unset_delay_is_kafkas() {
    let mut rig = rig_with_delay(None);
    rig.bench.configure(|config| config.heartbeat_adaptive = false);
    let first = rig.send_join(old("a"));
    rig.bench.advance(1_000);
    rig.send_join(old("b"));
    assert_eq!(answered_after(&mut rig, first), 5_000);
}

#[test]
fn b1_b2_a_new_join_ends_the_syncs_that_wait() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(3);
    let open = rig.open_sync(&ids[1], 1);
    rig.bench.advance(4_000);
    rig.send_join(old("late"));
    let response = rig.synced(open);
    assert_eq!(error(response.error_code), ErrorCode::RebalanceInProgress);
    assert_eq!((response.assignment.len(), response.protocol_name), (0, None));
    let timers = rig.bench.timers();
    let left = |name: &str| timers.iter().find(|(_, timer)| timer.contains(name)).map(|(left, _)| *left);
    assert_eq!(left("Sync"), None);
    assert_eq!(left("Join"), Some(20_000));
    assert_eq!(left(&ids[1]), Some(10_000), "whoever was answered has a full session");
    assert_eq!(left(&ids[2]), Some(6_000));
}

#[test]
fn b3_the_rebalance_waits_for_the_longest_rebalance_timeout() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    let newcomer = rig.send_join(old("b").rebalance(30_000));
    for _ in 0..6 {
        rig.bench.advance(4_999);
        assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
    }
    assert_eq!(rig.answer(newcomer), None);
    rig.bench.advance(6);
    let response = rig.joined(newcomer);
    assert_eq!((response.generation_id, response.members.len()), (2, 1));
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::UnknownMemberId, "too late");
}

#[test]
fn b7_the_last_one_to_join_completes() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(3);
    let mut joins: Vec<_> = ids[..2].iter().map(|id| rig.send_join(j(id))).collect();
    rig.bench.advance(1_000);
    assert_eq!(rig.bench.completed(), []);
    joins.push(rig.send_join(j(&ids[2])));
    for join in joins {
        assert_eq!(rig.joined(join).generation_id, 2);
    }
}

#[test]
fn b7_a_leave_can_complete() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let join = rig.send_join(j(&ids[0]));
    assert_eq!(rig.leave(&[(&ids[1], None)]), [ErrorCode::None]);
    assert_eq!(rig.joined(join).generation_id, 2);
}

#[test]
fn j11_gc18_a_pending_id_holds_the_others_up_until_it_expires() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    rig.join(j("").session(6_000));
    let join = rig.send_join(j(&ids[0]).session(60_000));
    assert_eq!(answered_after(&mut rig, join), 6_000);
    assert_eq!(rig.heartbeat(&ids[0], 2), ErrorCode::None);
}

#[test]
fn j11_a_pending_id_that_leaves_holds_nobody_up() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    let pending = rig.new_id();
    let join = rig.send_join(j(&ids[0]));
    assert_eq!(rig.leave(&[(&pending, None)]), [ErrorCode::None]);
    assert_eq!(rig.joined(join).generation_id, 2);
    assert!(rig.bench.timers().iter().all(|(_, timer)| !timer.contains(&pending)));
}

#[test]
fn j11_a_pending_id_that_is_used_in_time_joins() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    let pending = rig.new_id();
    let first = rig.send_join(j(&ids[0]));
    let second = rig.send_join(j(&pending));
    assert_eq!(rig.joined(first).members.len(), 2);
    assert_eq!(rig.joined(second).generation_id, 2);
}

#[test]
fn b9_one_who_joined_leads_if_the_leader_did_not() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(3);
    let join = rig.send_join(j(&ids[2]).offering(&[("range", "changed")]));
    rig.bench.advance(20_000);
    let response = rig.joined(join);
    assert_eq!((response.leader, response.members.len()), (text(&ids[2]), 1));
}

#[test]
fn b9_nobody_joined_so_the_phase_is_prolonged() {
    let mut rig = Rig::new();
    let id = rig.stable_static(js("i1").session(100_000));
    rig.send_join(old("b"));
    let pending_gone = rig.member_ids().into_iter().find(|m| *m != id).unwrap();
    assert_eq!(rig.leave(&[(&pending_gone, None)]), [ErrorCode::None]);
    rig.bench.advance(60_000);
    assert_eq!(rig.state(), "PreparingRebalance");
    assert_eq!(rig.member_ids(), [&*id], "the static member stays for its session");
    rig.bench.advance(40_000);
    assert_eq!(rig.state(), "Empty");
}

#[test]
fn b10_the_last_member_leaves_an_empty_group_behind() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    rig.bench.advance(30);
    let both: Vec<_> = ids.iter().map(|id| (&**id, None)).collect();
    assert_eq!(rig.leave(&both), [ErrorCode::None; 2]);
    let records = rig.group_records();
    let [Some(record)] = &records[..] else { panic!("one rebalance for the whole batch: {records:?}") };
    assert_eq!((&*record.protocol_type, record.generation), ("consumer", 2));
    assert_eq!((&record.protocol, &record.leader, record.members.len()), (&None, &None, 0));
    assert_eq!(record.current_state_timestamp, 1_000_030);
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_type), ("Empty", "consumer"));
    assert_eq!(rig.bench.timers().len(), 1, "only the clean-up of the shard is left");
    let next = rig.join_soon(old("c"));
    assert_eq!(next.generation_id, 3);
}

#[test]
fn b14_gc20_a_silent_member_is_removed_after_its_session() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    rig.bench.advance(5_000);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::None);
    rig.bench.advance(4_999);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::None);
    rig.bench.advance(1);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.heartbeat(&ids[1], 1), ErrorCode::UnknownMemberId);
    rig.bench.advance(20_000);
    assert_eq!(rig.state(), "Empty");
}

#[test]
fn b14_whoever_waits_is_alive() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let waiting = rig.send_join(j(&ids[0]));
    for _ in 0..3 {
        rig.bench.advance(6_000);
        assert_eq!(rig.heartbeat(&ids[1], 1), ErrorCode::RebalanceInProgress);
    }
    let other = rig.send_join(j(&ids[1]));
    assert_eq!(rig.joined(waiting).generation_id, 2);
    rig.joined(other);

    let sync = rig.open_sync(&ids[1], 2);
    for _ in 0..2 {
        rig.bench.advance(6_000);
        assert_eq!(rig.heartbeat(&ids[0], 2), ErrorCode::None);
    }
    rig.sync(&ids[0], 2, &[(&ids[1], "BB")]);
    assert_eq!(rig.synced(sync).assignment, "BB");
    rig.bench.advance(9_999);
    assert_eq!(rig.heartbeat(&ids[1], 2), ErrorCode::None, "the session started anew with the answer");
}

#[test]
fn b15_gc19_whoever_does_not_sync_is_removed() {
    let mut rig = Rig::new();
    let id = rig.new_id();
    assert_eq!(rig.join_soon(j(&id).rebalance(2_000)).generation_id, 1);
    for _ in 0..3 {
        rig.bench.advance(500);
        assert_eq!(rig.heartbeat(&id, 1), ErrorCode::None);
    }
    rig.bench.advance(500);
    assert_eq!(rig.heartbeat(&id, 1), ErrorCode::UnknownMemberId);
    assert_eq!(rig.state(), "Empty");
}

#[test]
fn b15_the_others_rebalance() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(3);
    rig.sync(&ids[0], 1, &[]);
    rig.sync(&ids[1], 1, &[]);
    for _ in 0..4 {
        for id in &ids {
            assert_eq!(rig.heartbeat(id, 1), ErrorCode::None);
        }
        rig.bench.advance(5_000);
    }
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.heartbeat(&ids[2], 1), ErrorCode::UnknownMemberId);
}

#[test]
fn b15_all_have_synced_so_the_timer_is_gone() {
    let mut rig = Rig::new();
    rig.stable_group(3);
    assert!(rig.bench.timers().iter().all(|(_, timer)| !timer.contains("Sync")));
}

#[test]
fn b15_the_open_sync_of_a_follower_survives_until_the_leader_is_removed() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let open = rig.open_sync(&ids[1], 1);
    for _ in 0..5 {
        rig.bench.advance(4_000);
        rig.heartbeat(&ids[0], 1);
    }
    assert_eq!(error(rig.synced(open).error_code), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.member_ids(), [&*ids[1]]);
}
