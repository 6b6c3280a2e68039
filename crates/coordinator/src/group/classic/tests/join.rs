use super::*;

#[test]
fn j1_gc01_a_group_id_is_required() {
    let response = Rig::new().join(j("zz").group(""));
    assert_eq!(error(response.error_code), ErrorCode::InvalidGroupId);
    assert_eq!(response.member_id, "zz");
}

#[test]
fn j2_gc02_the_session_timeout_has_bounds_that_count() {
    let mut rig = Rig::new();
    for (ms, ok) in [(5_999, false), (6_000, true), (1_800_000, true), (1_800_001, false), (-1, false)] {
        let response = rig.join(j("").session(ms));
        let expected = if ok { ErrorCode::MemberIdRequired } else { ErrorCode::InvalidSessionTimeout };
        assert_eq!(error(response.error_code), expected, "{ms}");
    }
    let response = rig.join(j("zz").session(5_999));
    assert_eq!(error(response.error_code), ErrorCode::InvalidSessionTimeout);
    assert_eq!(response.member_id, "zz", "checked before the group is looked at");
}

#[test]
fn j4_gc03_a_member_id_needs_a_group() {
    let mut rig = Rig::new();
    let response = rig.join(j("zz"));
    assert_eq!(error(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!(response.member_id, "zz");
    assert_eq!((response.generation_id, response.protocol_name), (-1, None));
    assert_eq!(rig.list(&[], &[]), []);
    assert_eq!(rig.bench.records(), []);
}

#[test]
fn j5_gc04_the_group_exists_even_if_the_join_fails() {
    for join in [j("").offering(&[]), j("").kind(""), j("")] {
        let mut rig = Rig::new();
        let response = rig.join(join);
        assert_ne!(response.error_code, 0);
        let records = rig.group_records();
        let [Some(record)] = &records[..] else { panic!("{records:?}") };
        assert_eq!((&*record.protocol_type, record.generation, &record.protocol), ("", 0, &None));
        assert_eq!((record.current_state_timestamp, record.members.len()), (1_000_000, 0));
        let described = rig.describe();
        assert_eq!((described.error_code, &*described.group_state), (0, "Empty"));
        assert_eq!(described.protocol_type, "");
    }
}

#[test]
fn j5_a_group_that_exists_is_not_written_again() {
    let mut rig = Rig::new();
    rig.new_id();
    rig.bench.records();
    rig.new_id();
    assert_eq!(rig.bench.records(), []);
}

#[test]
fn j7_an_empty_group_wants_a_type_and_a_protocol() {
    let mut rig = Rig::new();
    for join in [j("").kind(""), j("").offering(&[])] {
        let response = rig.join(join);
        assert_eq!(error(response.error_code), ErrorCode::InconsistentGroupProtocol);
        assert_eq!(response.member_id, "");
    }
}

#[test]
fn j7_gc16_the_protocol_has_to_be_common_to_all() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    for join in [j("").offering(&[("other", "meta")]), j("").kind("connect")] {
        let response = rig.join(join);
        assert_eq!(error(response.error_code), ErrorCode::InconsistentGroupProtocol);
        assert_eq!(response.member_id, "");
    }
    let response = rig.join(j(&ids[1]).offering(&[("other", "meta")]));
    assert_eq!(error(response.error_code), ErrorCode::InconsistentGroupProtocol);
    assert_eq!(response.member_id, *ids[1], "a known member is named");
    assert_eq!(rig.state(), "Stable");
}

#[test]
fn j8_gc05_a_dynamic_member_is_given_an_id_first() {
    let mut rig = Rig::new();
    let response = rig.join(j("").client("some-client").session(7_000));
    assert_eq!(error(response.error_code), ErrorCode::MemberIdRequired);
    assert_eq!(response.member_id, "some-client-00000000-0000-4000-8000-000000000001");
    assert_eq!(response.generation_id, -1);
    assert_eq!((response.leader, response.protocol_name), (KStr::EMPTY, None));
    assert_eq!(response.members, []);
    let expected = format!("Classic(Session {{ group_id: \"g\", member_id: {:?} }})", response.member_id);
    assert!(rig.bench.timers().contains(&(7_000, expected)), "it is kept for its session timeout");
}

#[test]
fn versions_before_7_have_an_empty_protocol_name_instead_of_null() {
    let mut rig = Rig::new();
    assert_eq!(rig.join(j("").version(6)).protocol_name, Some(KStr::EMPTY));
    assert_eq!(rig.join(j("").version(7)).protocol_name, None);
}

#[test]
fn j9_gc13_older_clients_join_at_once() {
    for version in 0..=3 {
        let mut rig = Rig::new();
        let response = rig.join_soon(j("").version(version));
        assert_eq!((response.error_code, response.generation_id), (0, 1));
        assert_eq!(response.members.len(), 1);
        assert_eq!(response.protocol_name, Some(text("range")));
    }
}

#[test]
fn version_0_has_the_session_timeout_for_the_rebalance_timeout() {
    let mut rig = Rig::new();
    let response = rig.join_soon(j("").version(0).session(7_000).rebalance(-1));
    rig.sync(&response.member_id, 1, &[]);
    let record = rig.group_records().pop().flatten().unwrap();
    assert_eq!(record.members[0].rebalance_timeout, 7_000);
}

#[test]
fn j10_gc06_a_pending_id_is_no_member() {
    let mut rig = Rig::new();
    let id = rig.new_id();
    assert_eq!(rig.heartbeat(&id, 0), ErrorCode::UnknownMemberId);
    assert_eq!(rig.sync_error(&id, 0), ErrorCode::UnknownMemberId);
    assert_eq!(rig.member_ids(), [""; 0]);
}

#[test]
fn j16_gc07_the_first_member_leads_and_names_the_type() {
    let mut rig = Rig::new();
    let id = rig.new_id();
    let response = rig.join_soon(j(&id));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
    assert_eq!((&*response.leader, &*response.member_id), (&*id, &*id));
    assert_eq!((response.protocol_type, response.protocol_name), (Some(text("consumer")), Some(text("range"))));
    assert!(!response.skip_assignment);
    let [member] = &response.members[..] else { panic!("one member") };
    assert_eq!((&*member.member_id, &member.group_instance_id, &member.metadata[..]), (&*id, &None, &b"meta"[..]));
}

#[test]
fn b11_only_the_leader_is_told_the_members() {
    let mut rig = Rig::new();
    let ids: Vec<String> = (0..3).map(|_| rig.new_id()).collect();
    let joins: Vec<_> = ids.iter().map(|id| rig.send_join(j(id))).collect();
    rig.bench.advance(0);
    let listed: Vec<_> = joins.into_iter().map(|join| rig.joined(join).members.len()).collect();
    assert_eq!(listed, [3, 0, 0]);
}

#[test]
fn j17_a_join_that_never_completes_ends_after_five_minutes() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    // The others never join again, but stay alive and have a long time to.
    let newcomer = rig.new_id();
    let open = rig.send_join(j(&newcomer).rebalance(1_000_000));
    for _ in 0..59 {
        rig.bench.advance(5_000);
        for id in &ids {
            assert_eq!(rig.heartbeat(id, 1), ErrorCode::RebalanceInProgress);
        }
    }
    assert_eq!(rig.answer(open), None, "a session timeout of 10 s does not matter");
    rig.bench.advance(5_000);
    let response = rig.joined(open);
    assert_eq!(error(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!(response.member_id, "");
}

#[test]
fn j18_gs20_a_pending_id_cannot_turn_static() {
    let mut rig = Rig::new();
    let id = rig.new_id();
    let response = rig.join(j(&id).instance("i1"));
    assert_eq!(error(response.error_code), ErrorCode::UnknownServerError);
    assert_eq!(response.member_id, "");
}

#[test]
fn j19_an_unknown_id_is_echoed() {
    let mut rig = Rig::new();
    rig.stable_group(1);
    let response = rig.join(j("zz"));
    assert_eq!(error(response.error_code), ErrorCode::UnknownMemberId);
    assert_eq!((&*response.member_id, response.generation_id), ("zz", -1));
    assert_eq!((response.protocol_type, response.protocol_name), (None, None));
}

#[test]
fn j21_a_member_that_joins_again_in_a_rebalance_replaces_what_it_offered() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let leader = rig.send_join(j(&ids[0]));
    let first = rig.send_join(j(&ids[1]).offering(&[("range", "new")]));
    let response = rig.joined(leader);
    assert_eq!(response.generation_id, 2);
    let metadata: Vec<_> = response.members.iter().map(|m| &m.metadata[..]).collect();
    assert_eq!(metadata, [b"meta", &b"new"[..]]);
    assert_eq!(rig.joined(first).generation_id, 2);
}

#[test]
fn a_join_that_its_own_member_has_given_up_is_answered() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let first = rig.send_join(j(&ids[0]));
    let second = rig.send_join(j(&ids[0]));
    assert_eq!(error(rig.joined(first).error_code), ErrorCode::RebalanceInProgress);
    let other = rig.send_join(j(&ids[1]));
    assert_eq!(rig.joined(second).generation_id, 2);
    assert_eq!(rig.joined(other).generation_id, 2);
}

#[test]
fn j22_completing_a_repeated_join_is_answered_at_once() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(2);
    let leader = rig.join(j(&ids[0]));
    assert_eq!((leader.generation_id, leader.members.len(), leader.skip_assignment), (1, 2, false));
    let follower = rig.join(j(&ids[1]));
    assert_eq!((follower.generation_id, follower.members.len()), (1, 0));
    assert_eq!(follower.leader, *ids[0]);
    assert_eq!(rig.state(), "CompletingRebalance");
}

#[test]
fn j22_completing_a_changed_join_rebalances() {
    for changed in [j("").offering(&[("range", "other")]), j("").offering(&[("range", "meta"), ("rr", "meta")])] {
        let mut rig = Rig::new();
        let ids = rig.joined_group(2);
        let mut join = changed;
        join.request.member_id = text(&ids[1]);
        rig.send_join(join);
        assert_eq!(rig.state(), "PreparingRebalance");
    }
}

#[test]
fn j23_gc14_the_leader_can_always_rebalance() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    let response = rig.join_soon(j(&ids[0]));
    assert_eq!((response.generation_id, response.members.len()), (2, 1));
}

#[test]
fn j23_gc15_a_follower_that_repeats_itself_changes_nothing() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(2);
    let response = rig.join(j(&ids[1]));
    assert_eq!((response.error_code, response.generation_id, response.members.len()), (0, 1, 0));
    assert_eq!(rig.state(), "Stable");
    let open = rig.send_join(j(&ids[1]).offering(&[("range", "changed")]));
    assert_eq!(rig.state(), "PreparingRebalance");
    rig.send_join(j(&ids[0]));
    assert_eq!(rig.joined(open).generation_id, 2);
}

#[test]
fn j6_gx02_a_full_group_takes_nobody() {
    let mut rig = Rig::new();
    rig.bench.configure(|config| config.classic_max_size = 2);
    let ids = rig.joined_group(2);
    for state in ["CompletingRebalance", "Stable"] {
        assert_eq!(rig.state(), state);
        for join in [j(""), j("").version(3), js("i1")] {
            let response = rig.join(join);
            assert_eq!(error(response.error_code), ErrorCode::GroupMaxSizeReached);
            assert_eq!(response.member_id, "");
        }
        assert_eq!(rig.join(j(&ids[1])).error_code, 0, "members stay");
        if state == "CompletingRebalance" {
            rig.assign(&ids, 1);
        }
    }
}

#[test]
fn decision_23_gx03_newcomers_do_not_take_the_place_of_members() {
    let mut rig = Rig::new();
    rig.bench.configure(|config| config.classic_max_size = 2);
    let ids = rig.stable_group(1);
    let pending = [rig.new_id(), rig.new_id()];
    let first = rig.send_join(j(&pending[0]));
    assert_eq!(rig.state(), "PreparingRebalance");
    let second = rig.join(j(&pending[1]));
    assert_eq!(error(second.error_code), ErrorCode::GroupMaxSizeReached, "one waits, one has a place");
    let old = rig.send_join(j(&ids[0]));
    assert_eq!(rig.joined(old).error_code, 0, "the id that was refused holds nobody up");
    assert_eq!(rig.joined(first).error_code, 0);
    assert_eq!(rig.describe().members.len(), 2);
}

#[test]
fn decision_23_a_static_member_comes_back_to_a_full_group() {
    let mut rig = Rig::new();
    rig.bench.configure(|config| config.classic_max_size = 1);
    rig.stable_static(js("i1"));
    let response = rig.join(js("i1"));
    assert_eq!((response.error_code, response.generation_id), (0, 1));
}

#[test]
fn j6_the_limit_of_a_group_that_has_grown_too_large_is_met_in_the_next_rebalance() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(3);
    rig.bench.configure(|config| config.classic_max_size = 2);
    rig.send_join(j(&ids[0]));
    rig.send_join(j(&ids[1]));
    let response = rig.join(j(&ids[2]));
    assert_eq!(error(response.error_code), ErrorCode::GroupMaxSizeReached);
    assert_eq!(rig.state(), "CompletingRebalance");
    assert_eq!(rig.describe().members.len(), 2);
}

#[test]
fn b13_gc21_most_votes_choose_the_protocol() {
    let mut rig = Rig::new();
    let offers = [[("x", "1"), ("y", "1")], [("y", "2"), ("x", "2")], [("y", "3"), ("x", "3")]];
    let joins: Vec<_> = offers.iter().map(|offer| rig.send_join(j("").version(3).offering(offer))).collect();
    rig.bench.advance(0);
    for join in joins {
        assert_eq!(rig.joined(join).protocol_name, Some(text("y")));
    }
}

#[test]
fn b13_only_what_all_support_is_chosen() {
    let mut rig = Rig::new();
    let offers: [&[(&str, &str)]; 3] =
        [&[("x", "1"), ("y", "1"), ("z", "1")], &[("x", "2"), ("z", "2")], &[("y", "3"), ("z", "3")]];
    let joins: Vec<_> = offers.iter().map(|offer| rig.send_join(j("").version(3).offering(offer))).collect();
    rig.bench.advance(0);
    for join in joins {
        assert_eq!(rig.joined(join).protocol_name, Some(text("z")));
    }
}

#[test]
fn b13_of_equal_votes_the_leader_decides() {
    for leader in [["x", "y"], ["y", "x"]] {
        let mut rig = Rig::new();
        let offer = |names: [&str; 2]| j("").version(3).offering(&[(names[0], ""), (names[1], "")]);
        let first = rig.send_join(offer(leader));
        rig.send_join(offer([leader[1], leader[0]]));
        rig.bench.advance(0);
        assert_eq!(rig.joined(first).protocol_name, Some(text(leader[0])));
    }
}
