//! Describe, list, delete.

use wire::messages::list_groups_response::ListedGroup;

use super::*;

fn list(rig: &mut Rig, states: &[&str], types: &[&str]) -> Vec<ListedGroup> {
    let texts = |texts: &[&str]| texts.iter().map(|value| text(value)).collect();
    match rig.bench.ask(Command::ListGroups { states: texts(states), types: texts(types) }) {
        Reply::ListGroups(groups) => groups,
        other => panic!("not a list: {other:?}"),
    }
}

fn delete(rig: &mut Rig) -> ErrorCode {
    match rig.bench.ask(Command::DeleteGroup { group_id: text(GROUP) }) {
        Reply::DeleteGroup(result) => error(result.error_code),
        other => panic!("not an answer to a deletion: {other:?}"),
    }
}

#[test]
fn gk_28_describe_and_list() {
    let mut rig = Rig::one();
    for (group_id, expected) in [("none", ErrorCode::GroupIdNotFound), ("", ErrorCode::InvalidGroupId)] {
        let command = Command::ConsumerGroupDescribe { caller: caller(1), group_id: text(group_id) };
        let Reply::ConsumerGroupDescribe(group) = rig.bench.ask(command) else { panic!("not a description") };
        assert_eq!((error(group.error_code), &*group.group_state), (expected, ""));
    }
    let listed = list(&mut rig, &["stable"], &["Consumer"]);
    assert_eq!(listed.len(), 1);
    assert_eq!((&*listed[0].protocol_type, &*listed[0].group_state), ("consumer", "Stable"));
    assert!(list(&mut rig, &["Empty"], &[]).is_empty());
    assert!(list(&mut rig, &[], &["classic"]).is_empty());
}

#[test]
fn k_41_what_is_to_be_given_up_still_shows_as_assigned() {
    let mut rig = Rig::revoking();
    let member = rig.member("c1").expect("it is a member");
    assert_eq!(member.assignment.topic_partitions[0].partitions, [0, 1, 2, 3]);
    assert_eq!(member.target_assignment.topic_partitions[0].partitions, [0, 1]);
}

#[test]
fn d_6_only_an_empty_group_can_be_deleted() {
    let mut rig = Rig::two();
    assert_eq!(delete(&mut rig), ErrorCode::NonEmptyGroup);
    super::offsets::commit(&mut rig, "c1", 3, &[0]).expect("it is a member");
    rig.ok(beat("c1", -1));
    rig.ok(beat("c2", -1));
    assert_eq!(delete(&mut rig), ErrorCode::None);
    assert!(rig.bench.shard().state().group(GROUP).is_none());
    assert_eq!(super::offsets::fetch(&mut rig, None, -1), Ok(-1));
    rig.bench.restart();
    assert!(rig.bench.shard().state().group(GROUP).is_none());
}
