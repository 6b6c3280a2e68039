//! KIP-345.

use super::*;

#[test]
fn j12_j14_gs01_a_static_member_joins_without_a_detour() {
    let mut rig = Rig::new();
    let response = rig.join_soon(js("i1"));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    assert_eq!(response.member_id, "i1-00000000-0000-4000-8000-000000000001");
    assert_eq!(response.members[0].group_instance_id, Some(text("i1")));
}

#[test]
fn j13_gs21_the_empty_instance_id_is_one() {
    let mut rig = Rig::new();
    let first = rig.join_soon(js(""));
    assert!(first.member_id.starts_with('-'));
    let second = rig.send_join(js(""));
    assert_eq!(rig.joined(second).generation_id, 2, "it has not synced");
    assert_eq!(rig.describe().members.len(), 1);
}

#[test]
fn j28_j29_gs02_a_restarted_leader_goes_on_without_a_rebalance() {
    let mut rig = Rig::new();
    let old = rig.stable_static(js("i1").client("before"));
    let response = rig.join(js("i1").client("after"));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    let new = response.member_id.to_string();
    assert_ne!(new, old);
    assert_eq!(response.leader, *new);
    assert!(response.skip_assignment);
    assert_eq!((response.members.len(), &*response.members[0].member_id), (1, &*new));
    assert_eq!((response.protocol_type, response.protocol_name), (Some(text("consumer")), Some(text("range"))));

    let records = rig.group_records();
    let [Some(record)] = &records[..] else { panic!("{records:?}") };
    let member = &record.members[0];
    assert_eq!((&*member.member_id, &member.assignment[..]), (&*new, &b"X1"[..]));
    assert_eq!(member.client_id, "before", "J-25: carried over");
    assert_eq!(record.leader, Some(text(&new)));

    let described = rig.describe();
    assert_eq!((&*described.group_state, described.members.len()), ("Stable", 1));
    assert_eq!(described.members[0].client_id, "before");
    assert_eq!(rig.sync(&new, 1, &[]).assignment, "X1", "GS-05");
}

#[test]
fn j35_gs03_gs04_the_old_id_is_fenced() {
    let mut rig = Rig::new();
    let old = rig.stable_static(js("i1"));
    let new = rig.join(js("i1")).member_id.to_string();
    let heartbeats = [
        (&old, Some("i1"), ErrorCode::FencedInstanceId),
        (&old, None, ErrorCode::UnknownMemberId),
        (&new, Some("i1"), ErrorCode::None),
        (&new, None, ErrorCode::None),
        (&new, Some("zz"), ErrorCode::UnknownMemberId),
    ];
    for (member_id, instance_id, expected) in heartbeats {
        assert_eq!(rig.heartbeat_as(member_id, instance_id, 1), expected, "{member_id} {instance_id:?}");
    }
    assert_eq!(rig.heartbeat_as(&old, Some("i1"), 99), ErrorCode::FencedInstanceId, "before the generation");

    let response = rig.join(j(&old).instance("i1"));
    assert_eq!(error(response.error_code), ErrorCode::FencedInstanceId);
    assert_eq!(response.member_id, *old);
    let request = SyncGroupRequest {
        group_id: text(GROUP),
        generation_id: 1,
        member_id: text(&old),
        group_instance_id: Some(text("i1")),
        ..Default::default()
    };
    let reply = rig.bench.ask(Command::SyncGroup(caller(3), Box::new(request)));
    assert_eq!(error(sync_response(reply).error_code), ErrorCode::FencedInstanceId);
}

#[test]
fn j30_gs06_clients_before_v9_take_themselves_for_followers() {
    for version in 5..=8 {
        let mut rig = Rig::new();
        let old = rig.stable_static(js("i1"));
        let response = rig.join(js("i1").version(version));
        assert_eq!((response.error_code, response.generation_id), (0, 1));
        assert_eq!(response.leader, *old, "the leader as it was");
        assert_eq!((response.members.len(), response.skip_assignment), (0, false));
    }
}

#[test]
fn j28_gs07_changed_metadata_does_not_rebalance() {
    let mut rig = Rig::new();
    rig.stable_static(js("i1"));
    let response = rig.join(js("i1").offering(&[("range", "changed")]));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    let described = rig.describe();
    assert_eq!(described.members[0].member_metadata, "changed");
    assert_eq!(described.members[0].member_assignment, "X1");
    assert_eq!(rig.group_records()[0].as_ref().unwrap().members[0].subscription, "changed");
}

#[test]
fn j28_gs08_another_protocol_rebalances() {
    let mut rig = Rig::new();
    rig.stable_static(js("i1").offering(&[("range", ""), ("rr", "")]));
    let response = rig.join_soon(js("i1").offering(&[("rr", ""), ("range", "")]));
    assert_eq!((response.generation_id, response.protocol_name), (2, Some(text("rr"))));
    assert_eq!(rig.bench.records(), [], "it is not persisted: the rebalance will be");
}

#[test]
fn j32_gs09_a_restart_before_the_assignment_rebalances() {
    let mut rig = Rig::new();
    rig.join_soon(js("i1"));
    let join = rig.send_join(js("i1"));
    assert_eq!(rig.joined(join).generation_id, 2);
    assert_eq!(rig.state(), "CompletingRebalance");
}

#[test]
fn j26_j33_gs10_the_open_join_of_a_duplicate_is_fenced() {
    let mut rig = Rig::new();
    let leader = rig.stable_static(js("i1"));
    let first = rig.send_join(js("i2"));
    let second = rig.send_join(js("i2"));
    let fenced = rig.joined(first);
    assert_eq!(error(fenced.error_code), ErrorCode::FencedInstanceId);
    assert!(fenced.member_id.starts_with("i2-"));
    assert_eq!((fenced.leader, fenced.generation_id, fenced.protocol_name), (KStr::EMPTY, -1, None));
    let rejoin = rig.send_join(j(&leader).instance("i1"));
    assert_eq!(rig.joined(rejoin).members.len(), 2);
    let second = rig.joined(second);
    assert_eq!((second.error_code, second.generation_id), (0, 2));
    assert_ne!(second.member_id, fenced.member_id);
}

#[test]
fn j26_j32_gs11_the_open_sync_of_a_duplicate_is_fenced() {
    let mut rig = Rig::new();
    let first = rig.send_join(js("i1"));
    let second = rig.send_join(js("i2"));
    rig.bench.advance(0);
    let leader = rig.joined(first).member_id.to_string();
    let follower = rig.joined(second).member_id.to_string();
    let open = rig.open_sync(&follower, 1);
    rig.send_join(js("i2"));
    let fenced = rig.synced(open);
    assert_eq!(error(fenced.error_code), ErrorCode::FencedInstanceId);
    assert_eq!(fenced.assignment, "");
    assert_eq!(rig.heartbeat(&leader, 1), ErrorCode::RebalanceInProgress);
}

/// Two static members, Stable in generation 1; the first one leads.
fn stable_pair(rig: &mut Rig, session_ms: i32, rebalance_ms: i32) -> [String; 2] {
    let joins = ["i1", "i2"].map(|instance| rig.send_join(js(instance).session(session_ms).rebalance(rebalance_ms)));
    rig.bench.advance(0);
    let ids = joins.map(|join| rig.joined(join).member_id.to_string());
    rig.assign(&ids, 1);
    ids
}

#[test]
fn j29_gs12_a_restarted_follower_goes_on() {
    let mut rig = Rig::new();
    let [leader, follower] = stable_pair(&mut rig, 60_000, 20_000);
    let response = rig.join(js("i2"));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    assert_eq!((response.leader, response.members.len()), (text(&leader), 0));
    assert!(!response.skip_assignment);
    assert_eq!(rig.sync(&response.member_id, 1, &[]).assignment, *follower.as_bytes());
}

#[test]
fn j27_the_new_id_has_the_session_of_the_new_request() {
    let mut rig = Rig::new();
    rig.stable_static(js("i1").session(10_000));
    let id = rig.join(js("i1").session(30_000)).member_id.to_string();
    rig.bench.advance(9_000);
    assert_eq!(rig.heartbeat(&id, 1), ErrorCode::None);
    rig.bench.advance(29_000);
    assert_eq!(rig.heartbeat(&id, 1), ErrorCode::None);
    rig.bench.advance(30_000);
    assert_eq!(rig.heartbeat(&id, 1), ErrorCode::UnknownMemberId);
}

#[test]
fn j27_a_replaced_newcomer_that_waits_is_alive() {
    let mut rig = Rig::new();
    let leader = rig.stable_static(js("i1").session(60_000).rebalance(60_000));
    rig.send_join(js("i2").session(6_000));
    let second = rig.send_join(js("i2").session(6_000));
    rig.bench.advance(50_000);
    assert_eq!(rig.answer(second), None);
    rig.send_join(j(&leader).instance("i1"));
    assert_eq!(rig.joined(second).generation_id, 2);
}

#[test]
fn b8_b15_gs13_a_silent_static_member_stays_for_a_join_and_a_sync_phase() {
    let mut rig = Rig::new();
    let old = rig.stable_static(js("i1").session(60_000).rebalance(2_000));
    let newcomer = rig.new_id();
    let join = rig.send_join(j(&newcomer).rebalance(2_000));
    rig.bench.advance(1_999);
    assert_eq!(rig.answer(join), None);
    rig.bench.advance(1);
    let response = rig.joined(join);
    assert_eq!((response.members.len(), &*response.leader), (2, &*newcomer));
    assert_eq!(rig.sync(&newcomer, 2, &[]).error_code, 0);
    rig.bench.advance(1_999);
    assert_eq!(rig.heartbeat(&newcomer, 2), ErrorCode::None);
    rig.bench.advance(1);
    assert_eq!(rig.heartbeat(&newcomer, 2), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.heartbeat(&old, 2), ErrorCode::UnknownMemberId);
}

#[test]
fn decision_22_gs14_a_restart_before_the_first_sync_causes_no_rebalance() {
    let mut rig = Rig::new();
    let joins = ["i1", "i2"].map(|instance| rig.send_join(js(instance).rebalance(3_000)));
    rig.bench.advance(0);
    let [leader, _] = joins.map(|join| rig.joined(join).member_id.to_string());
    rig.sync(&leader, 1, &[]);
    let follower = rig.join(js("i2").rebalance(3_000)).member_id.to_string();
    assert_eq!(rig.sync(&follower, 1, &[]).error_code, 0);
    rig.bench.advance(3_000);
    assert_eq!(rig.heartbeat(&leader, 1), ErrorCode::None);
    assert_eq!(rig.state(), "Stable");
    assert!(rig.bench.timers().iter().all(|(_, timer)| !timer.contains("Sync")));
}

#[test]
fn l3_gs15_a_leave_names_what_is_wrong_with_each_entry() {
    let mut rig = Rig::new();
    rig.stable_static(js("i1"));
    let errors = rig.leave(&[("wrong", Some("i1")), ("", Some("i9")), ("zzz", None), ("", None), ("", Some(""))]);
    let unknown = ErrorCode::UnknownMemberId;
    assert_eq!(errors, [ErrorCode::FencedInstanceId, unknown, unknown, unknown, unknown]);
    assert_eq!(rig.state(), "Stable");
}

#[test]
fn l5_gs16_a_static_member_can_be_removed_by_its_member_id() {
    let mut rig = Rig::new();
    let [leader, follower] = stable_pair(&mut rig, 60_000, 20_000);
    assert_eq!(rig.leave(&[(&follower, None)]), [ErrorCode::None]);
    assert_eq!(rig.state(), "PreparingRebalance");
    assert_eq!(rig.member_ids(), [&*leader]);
    let again = rig.send_join(js("i2"));
    let rejoin = rig.send_join(j(&leader).instance("i1"));
    rig.joined(rejoin);
    assert_eq!(rig.joined(again).generation_id, 2, "the instance is a new member");
}

#[test]
fn l3_l7_gs17_an_administrator_removes_by_instance() {
    let mut rig = Rig::new();
    rig.stable_static(js("i1"));
    assert_eq!(rig.leave(&[("", Some("i1"))]), [ErrorCode::None]);
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_type), ("Empty", "consumer"));
}

#[test]
fn l6_gs18_the_same_instance_twice() {
    let mut rig = Rig::new();
    stable_pair(&mut rig, 60_000, 20_000);
    let errors = rig.leave(&[("", Some("i1")), ("", Some("i1"))]);
    assert_eq!(errors, [ErrorCode::None, ErrorCode::UnknownMemberId]);
}

#[test]
fn l3_member_and_instance_together_have_to_match() {
    let mut rig = Rig::new();
    let [leader, follower] = stable_pair(&mut rig, 60_000, 20_000);
    let errors = rig.leave(&[(&leader, Some("i2")), (&follower, Some("i9")), (&follower, Some("i2"))]);
    assert_eq!(errors, [ErrorCode::FencedInstanceId, ErrorCode::UnknownMemberId, ErrorCode::None]);
}

#[test]
fn j19_gs22_commits_are_fenced_too() {
    let mut rig = Rig::new();
    rig.bench.set_topic("t", 1);
    let id = rig.stable_static(js("i1"));
    let commits = [
        ("wrong", Some("i1"), 1, ErrorCode::FencedInstanceId),
        (&*id, Some("zz"), 1, ErrorCode::UnknownMemberId),
        ("wrong", Some("i1"), 9, ErrorCode::FencedInstanceId),
        (&*id, Some("i1"), 9, ErrorCode::IllegalGeneration),
        (&*id, Some("i1"), 1, ErrorCode::None),
        (&*id, None, 1, ErrorCode::None),
    ];
    for (member_id, instance_id, generation, expected) in commits {
        assert_eq!(
            rig.commit(member_id, instance_id, generation),
            expected,
            "{member_id} {instance_id:?} {generation}"
        );
    }
}
