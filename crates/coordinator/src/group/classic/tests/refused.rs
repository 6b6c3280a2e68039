//! What becomes of a group whose record the log refuses (C J-5, J-31, S-6).

use super::*;
use crate::runtime::Unavailable;
use crate::state_log::LogError;

fn refused() -> Option<Answer> {
    Some(Err(Unavailable::Refused(LogError::TooLarge)))
}

impl Rig {
    /// A command whose records are refused.
    #[track_caller]
    fn refuse(&mut self, command: Command) {
        self.bench.log_mut().fail_next_append(LogError::TooLarge);
        assert_eq!(self.bench.send(command).1, refused());
    }
}

#[test]
fn j5_a_group_that_could_not_be_written_is_not_there() {
    for join in [j(""), j("").version(3), js("i1"), j("").offering(&[])] {
        let mut rig = Rig::new();
        rig.refuse(Rig::join_command(join));
        assert_eq!(rig.describe().group_state, "Dead");
        assert_eq!(rig.bench.timers().len(), 1, "only the clean-up of the shard");
        rig.bench.advance(400_000);
        assert_eq!(rig.list(&[], &[]), []);
        let response = rig.join_soon(js("i1"));
        assert_eq!((response.error_code, response.generation_id), (0, 1));
    }
}

#[test]
fn s6_an_assignment_that_could_not_be_written_is_asked_for_again() {
    let mut rig = Rig::new();
    let ids = rig.joined_group(3);
    let follower = rig.open_sync(&ids[1], 1);
    rig.bench.advance(2_000);
    rig.refuse(Rig::sync_command(&ids[0], 1, &[(&ids[0], "AA")]));
    assert_eq!(rig.bench.answer(follower), refused());
    let described = rig.describe();
    assert_eq!(described.group_state, "PreparingRebalance");
    assert!(described.members.iter().all(|m| m.member_assignment.is_empty()));
    assert_eq!(rig.heartbeat(&ids[0], 1), ErrorCode::RebalanceInProgress);
    let timers = rig.bench.timers();
    assert!(timers.iter().any(|(left, timer)| timer.contains("Join") && *left == 20_000));
    assert!(timers.iter().all(|(_, timer)| !timer.contains("Sync")));

    let joins: Vec<_> = ids.iter().map(|id| rig.send_join(j(id))).collect();
    for join in joins {
        assert_eq!(rig.joined(join).generation_id, 2);
    }
    rig.assign(&ids, 2);
    assert_eq!(rig.state(), "Stable");
}

#[test]
fn j31_a_replacement_that_could_not_be_written_did_not_happen() {
    let mut rig = Rig::new();
    let old = rig.stable_static(js("i1").session(30_000));
    let before = rig.describe();
    rig.bench.advance(20_000);
    rig.refuse(Rig::join_command(js("i1").offering(&[("range", "changed")]).session(6_000)));
    assert_eq!(rig.describe(), before);
    rig.bench.advance(29_999);
    assert_eq!(rig.heartbeat_as(&old, Some("i1"), 1), ErrorCode::None, "the session started anew");
    assert_eq!(rig.sync(&old, 1, &[]).assignment, "X1");
    let response = rig.join_soon(j(&old).instance("i1"));
    assert_eq!((response.generation_id, &*response.leader), (2, &*old), "it leads as before");
}

#[test]
fn b10_a_group_that_became_empty_is_empty_all_the_same() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    let request = LeaveGroupRequest {
        group_id: text(GROUP),
        members: vec![MemberIdentity { member_id: text(&ids[0]), ..Default::default() }],
        ..Default::default()
    };
    rig.refuse(Command::LeaveGroup(caller(4), Box::new(request)));
    assert_eq!(rig.state(), "Empty");
    rig.bench.restart();
    assert_eq!(rig.state(), "Stable", "the record is what a restart knows");
    rig.bench.advance(10_000);
    assert_eq!(rig.state(), "Empty");
}

#[test]
fn a_refusal_concerns_its_own_command_only() {
    let mut rig = Rig::new();
    let ids = rig.stable_group(1);
    rig.bench.set_topic("t", 1);
    rig.join(j("").group("other"));
    rig.bench.log_mut().fail_next_append(LogError::TooLarge);
    let request = OffsetCommitRequest {
        group_id: text(GROUP),
        generation_id_or_member_epoch: 1,
        member_id: text(&ids[0]),
        topics: vec![OffsetCommitRequestTopic {
            name: text("t"),
            partitions: vec![OffsetCommitRequestPartition::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(rig.bench.send(Command::OffsetCommit(caller(9), Box::new(request))).1, refused());
    assert_eq!(rig.list(&[], &[]).len(), 2);
    assert_eq!(rig.state(), "Stable");
}
