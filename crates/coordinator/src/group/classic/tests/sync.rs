use super::*;

fn request(member_id: &str, generation_id: i32) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: text(GROUP),
        generation_id,
        member_id: text(member_id),
        protocol_type: Some(text("consumer")),
        protocol_name: Some(text("range")),
        ..Default::default()
    }
}

#[track_caller]
fn sync(rig: &mut Rig, version: i16, request: SyncGroupRequest) -> SyncGroupResponse {
    sync_response(rig.bench.ask(Command::SyncGroup(caller(version), Box::new(request))))
}

#[test]
fn s1_gc09_the_protocol_is_mandatory_before_anything_else() {
    let mut rig = Rig::new();
    for (kind, name) in [(None, Some("range")), (Some("consumer"), None)] {
        let request = SyncGroupRequest {
            group_id: KStr::EMPTY,
            protocol_type: kind.map(text),
            protocol_name: name.map(text),
            ..request("zz", 1)
        };
        let response = sync(&mut rig, 5, request.clone());
        assert_eq!(error(response.error_code), ErrorCode::InconsistentGroupProtocol);
        assert_eq!(error(sync(&mut rig, 4, request).error_code), ErrorCode::InvalidGroupId);
    }
}

#[test]
fn s2_no_group_no_member() {
    let mut rig = Rig::new();
    assert_eq!(rig.sync_error("zz", 1), ErrorCode::UnknownMemberId);
    rig.new_id();
    assert_eq!(rig.sync_error("zz", 0), ErrorCode::UnknownMemberId, "an empty group has none");
}

#[test]
fn s3_gc10_membership_then_generation_then_protocol() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(1);
    let named =
        |name: &str, generation| SyncGroupRequest { protocol_name: Some(text(name)), ..request(&ids[0], generation) };
    let typed = |kind: &str| SyncGroupRequest { protocol_type: Some(text(kind)), ..request(&ids[0], 1) };
    let cases = [
        (request("zz", 5), ErrorCode::UnknownMemberId),
        (named("zz", 5), ErrorCode::IllegalGeneration),
        (named("zz", 1), ErrorCode::InconsistentGroupProtocol),
        (typed("connect"), ErrorCode::InconsistentGroupProtocol),
    ];
    for (request, expected) in cases {
        let response = sync(&mut rig, 5, request);
        assert_eq!(error(response.error_code), expected);
        assert_eq!((response.assignment.len(), response.protocol_name, response.protocol_type), (0, None, None));
    }
    let older = SyncGroupRequest { protocol_type: None, protocol_name: None, ..request(&ids[0], 1) };
    assert_eq!(sync(&mut rig, 4, older).error_code, 0, "older versions carry no protocol");
}

#[test]
fn s3_a_group_that_has_not_chosen_a_protocol_contradicts_nobody() {
    let mut rig = Rig::new();
    rig.bench.configure(|config| config.classic_initial_rebalance_delay_ms = Some(3_000));
    rig.send_join(js("i1"));
    let id = rig.member_ids().remove(0);
    assert_eq!(rig.sync_error(&id, 0), ErrorCode::RebalanceInProgress);
}

#[test]
fn s4_gc17_a_sync_in_a_rebalance_is_told_of_it() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    rig.send_join(j("").version(3));
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
    assert_eq!(rig.sync_error(&ids[0], 1), ErrorCode::RebalanceInProgress);
}

#[test]
fn s5_s6_gc11_followers_wait_for_the_leader() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(3);
    rig.bench.advance(40);
    rig.bench.records();
    let follower = rig.open_sync(&ids[1], 1);
    let response = rig.sync(&ids[0], 1, &[(&ids[0], "AA"), (&ids[1], "BB"), ("nobody", "NN")]);
    assert_eq!((response.error_code, &response.assignment[..]), (0, &b"AA"[..]));
    assert_eq!((response.protocol_type, response.protocol_name), (Some(text("consumer")), Some(text("range"))));
    assert_eq!(rig.synced(follower).assignment, "BB");

    let records = rig.group_records();
    let [Some(record)] = &records[..] else { panic!("{records:?}") };
    assert_eq!((&*record.protocol_type, record.generation), ("consumer", 1));
    assert_eq!((&record.protocol, &record.leader), (&Some(text("range")), &Some(text(&ids[0]))));
    assert_eq!(record.current_state_timestamp, 1_000_000, "since when it was CompletingRebalance");
    let members: Vec<_> = record.members.iter().map(|m| (&*m.member_id, &m.assignment[..])).collect();
    assert_eq!(members, [(&*ids[0], &b"AA"[..]), (&*ids[1], b"BB"), (&*ids[2], b"")]);
    assert!(record.members.iter().all(|m| m.subscription == "meta"));
    assert!(record.members.iter().all(|m| m.client_host == "/127.0.0.1" && m.client_id == "client"));
    assert!(record.members.iter().all(|m| (m.session_timeout, m.rebalance_timeout) == (SESSION_MS, REBALANCE_MS)));

    assert_eq!(rig.sync(&ids[2], 1, &[]).assignment, "", "the leader has forgotten this one");
    let described = rig.describe();
    assert_eq!((&*described.group_state, &*described.protocol_data), ("Stable", "range"));
    assert!(described.members.iter().all(|m| m.member_metadata == "meta"));
}

#[test]
fn s6_the_answers_wait_until_the_assignment_is_durable() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let follower = rig.open_sync(&ids[1], 1);
    rig.bench.log_mut().set_durability(crate::testing::Durability::Manual);
    let leader = rig.bench.park(Rig::sync_command(&ids[0], 1, &[(&ids[1], "BB")]));
    let late = rig.bench.park(Rig::sync_command(&ids[1], 1, &[]));
    assert_eq!(rig.bench.completed(), []);
    rig.bench.make_durable();
    assert_eq!(rig.synced(leader).error_code, 0);
    assert_eq!(rig.synced(follower).assignment, "BB");
    assert_eq!(rig.synced(late).assignment, "BB");
}

#[test]
fn s7_gc12_a_stable_group_repeats_its_answers() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    for _ in 0..2 {
        assert_eq!(rig.sync(&ids[0], 1, &[(&ids[0], "other")]).assignment, *ids[0].as_bytes());
        assert_eq!(rig.sync(&ids[1], 1, &[]).assignment, *ids[1].as_bytes());
    }
    assert_eq!(rig.bench.records(), []);
    assert_eq!(rig.state(), "Stable");
}

#[test]
fn s9_decision_21_the_sync_of_a_member_that_leaves_is_answered() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let open = rig.open_sync(&ids[1], 1);
    assert_eq!(rig.leave(&[(&ids[1], None)]), [ErrorCode::None]);
    let response = rig.synced(open);
    assert_eq!(error(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!((response.assignment.len(), response.protocol_name), (0, None));
}

#[test]
fn a_sync_that_its_own_member_has_given_up_is_answered() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let first = rig.open_sync(&ids[1], 1);
    let second = rig.open_sync(&ids[1], 1);
    assert_eq!(error(rig.synced(first).error_code), ErrorCode::RebalanceInProgress);
    rig.sync(&ids[0], 1, &[(&ids[1], "BB")]);
    assert_eq!(rig.synced(second).assignment, "BB");
}

#[test]
fn h1_h2_gc08_heartbeats_name_member_then_generation() {
    let mut rig = Rig::new();
    assert_eq!(rig.heartbeat("zz", 1), ErrorCode::UnknownMemberId);
    let ids = rig.joined_group(1);
    for state in ["CompletingRebalance", "Stable"] {
        assert_eq!(rig.state(), state);
        assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::None);
        assert_eq!(rig.heartbeat(&ids[0], 99), ErrorCode::IllegalGeneration);
        assert_eq!(rig.heartbeat("zz", 99), ErrorCode::UnknownMemberId);
        assert_eq!(rig.heartbeat_as(&ids[0], Some("zz"), 1), ErrorCode::UnknownMemberId);
        if state == "CompletingRebalance" {
            rig.assign(&ids, 1);
        }
    }
    let request = HeartbeatRequest::default();
    let reply = rig.bench.ask(Command::Heartbeat(caller(4), Box::new(request)));
    assert!(matches!(reply, Reply::Heartbeat(r) if error(r.error_code) == ErrorCode::InvalidGroupId));
}

#[test]
fn h3_a_steady_heartbeat_moves_its_timer_and_nothing_else() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let before = rig.bench.timers().len();
    for _ in 0..100 {
        rig.bench.advance(3_000);
        for id in &ids {
            assert_eq!(rig.heartbeat(id, 1), ErrorCode::None);
        }
    }
    assert_eq!(rig.bench.records(), []);
    assert_eq!(rig.bench.timers().len(), before);
    assert_eq!(rig.state(), "Stable");
}
