//! What a restart brings back (C T-3 to T-6).

use super::*;
use wire::messages::group_metadata_key::GroupMetadataKey;
use wire::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};

#[test]
fn t3_gx05_a_stable_group_is_as_before() {
    let mut rig = Rig::new();
    let id = rig.stable_static(js("i1").reading(&["t"]));
    let before = rig.describe();
    rig.bench.restart();
    assert_eq!(rig.describe(), before);
    assert_eq!(rig.list(&["stable"], &[]).len(), 1);
    assert_eq!(rig.heartbeat(&id, 1), ErrorCode::None);
    assert_eq!(rig.sync(&id, 1, &[]).assignment, "X1");
    let response = rig.join(js("i1").reading(&["t"]));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    assert!(response.skip_assignment);
    assert_eq!(response.leader, response.member_id);
    assert_eq!(rig.heartbeat_as(&id, Some("i1"), 1), ErrorCode::FencedInstanceId);
}

#[test]
fn t3_members_have_a_full_session_from_the_restart_on() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    rig.bench.advance(9_000);
    rig.bench.restart();
    rig.bench.advance(9_999);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::None);
    rig.bench.advance(1);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress, "the other one has expired");
}

#[test]
fn t3_an_empty_group_keeps_its_generation_and_type() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    rig.leave(&[(&ids[0], None)]);
    rig.bench.restart();
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_type), ("Empty", "consumer"));
    let join = rig.send_join(j("").version(3));
    rig.bench.advance(0);
    assert_eq!(rig.joined(join).generation_id, 3);
}

#[test]
fn t4_gx06_a_rebalance_is_forgotten() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    assert_eq!(rig.join_soon(j(&ids[0])).generation_id, 2);
    assert_eq!(rig.state(), "CompletingRebalance");
    rig.bench.restart();
    assert_eq!(rig.state(), "Stable");
    assert_eq!(rig.heartbeat(&ids[0], 2), ErrorCode::IllegalGeneration);
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::None);
    assert_eq!(rig.sync(&ids[0], 1, &[]).assignment, *ids[0].as_bytes());
}

#[test]
fn t4_gx07_ids_that_were_handed_out_are_forgotten() {
    let mut rig = Rig::new();
    let pending = rig.new_id();
    rig.bench.restart();
    assert_eq!(error(rig.join(j(&pending)).error_code), ErrorCode::UnknownMemberId);
    assert_eq!(rig.state(), "Empty", "the group is there");
}

#[test]
fn t5_parked_requests_are_told_to_look_for_the_coordinator() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let sync = rig.open_sync(&ids[1], 1);
    rig.bench.restart();
    assert_eq!(rig.bench.answer(sync), Some(Err(crate::runtime::Unavailable::NotCoordinator)));
}

#[test]
fn t3_a_group_that_is_larger_than_now_allowed_rebalances() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(3);
    rig.bench.configure(|config| config.classic_max_size = 2);
    rig.bench.restart();
    assert_eq!(rig.state(), "PreparingRebalance");
    let joins = [rig.send_join(j(&ids[0])), rig.send_join(j(&ids[1]))];
    assert_eq!(error(rig.join(j(&ids[2])).error_code), ErrorCode::GroupMaxSizeReached);
    for join in joins {
        assert_eq!(rig.joined(join).generation_id, 2);
    }
}

#[test]
fn t3_old_records_have_no_rebalance_timeout() {
    let mut rig = Rig::new();
    let member = MemberMetadata {
        member_id: text("m"),
        client_id: text("client"),
        client_host: text("/127.0.0.1"),
        rebalance_timeout: -1,
        session_timeout: 7_000,
        subscription: subscription(&["t"]),
        ..Default::default()
    };
    let value = GroupMetadataValue {
        protocol_type: text("consumer"),
        generation: 4,
        protocol: Some(text("range")),
        leader: Some(text("m")),
        current_state_timestamp: -1,
        members: vec![member],
    };
    let key = GroupMetadataKey { group: text(GROUP) };
    rig.bench.log_mut().seed(&[Record::GroupMetadata(key, Some(value))]);
    rig.bench.restart();
    let newcomer = rig.send_join(j("").version(3).rebalance(0).reading(&["t"]));
    for _ in 0..2 {
        rig.bench.advance(3_500);
        rig.heartbeat("m", 4);
    }
    assert_eq!(rig.joined(newcomer).generation_id, 5);
}

#[test]
fn a_crash_takes_back_what_was_not_durable() {
    let mut rig = Rig::new();
    let id = rig.stable_static(js("i1"));
    rig.bench.log_mut().set_durability(crate::testing::Durability::Manual);
    rig.bench.park(Rig::join_command(js("i1")));
    rig.bench.crash();
    assert_eq!(rig.heartbeat_as(&id, Some("i1"), 1), ErrorCode::None);
}
