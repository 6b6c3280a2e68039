//! Cases from the field that are a matter of placing tasks (`crates/millstream/tests/field-cases` has the others).

use coordinator::assign::{
    StreamsInput, StreamsMember, Subtopology, TaskId, TaskSet, balanced, contains_task, insert_task, sticky, tasks_of,
};
use wire::KStr;

fn name(text: String) -> KStr {
    KStr::from(text)
}

fn task(subtopology: &str, partition: i32) -> TaskId {
    TaskId { subtopology: name(subtopology.to_owned()), partition }
}

/// Members `m0`.. that are each a process of their own.
fn group(members: usize, subtopologies: &[(&str, i32, bool)]) -> StreamsInput {
    let member = |n| StreamsMember {
        member_id: name(format!("m{n}")),
        process_id: name(format!("p{n}")),
        ..StreamsMember::default()
    };
    let subtopology =
        |&(id, tasks, stateful): &(&str, i32, bool)| Subtopology { id: name(id.to_owned()), tasks, stateful };
    StreamsInput {
        members: (0..members).map(member).collect(),
        subtopologies: subtopologies.iter().map(subtopology).collect(),
        ..StreamsInput::default()
    }
}

fn spread(counts: impl Iterator<Item = usize> + Clone) -> usize {
    counts.clone().max().unwrap_or_default() - counts.min().unwrap_or_default()
}

fn count(active: &TaskSet, subtopology: &str) -> usize {
    tasks_of(active).filter(|task| task.subtopology == subtopology).count()
}

/// SG-17: neither all tasks together nor those with state may pile up on one member.
#[test]
fn sg_17_stateful_and_stateless_work_are_both_spread() {
    for assign in [sticky::assign, balanced::assign] {
        for members in 2..=4 {
            let input = group(members, &[("0", 6, true), ("1", 6, false)]);
            let target = assign(&input).expect("members and ids are unique");
            let all = target.values().map(|member| tasks_of(&member.active).count());
            assert!(spread(all) <= 1, "{members} members: {target:?}");
            let stateful = target.values().map(|member| count(&member.active, "0"));
            assert!(spread(stateful) <= 1, "{members} members, with state: {target:?}");
        }
    }
}

/// SG-18: after a cold start nobody runs anything and all member ids are new; who has the state on disk says so.
#[test]
fn sg_18_at_a_cold_start_tasks_go_to_the_member_that_reports_their_state() {
    for assign in [sticky::assign, balanced::assign] {
        let mut input = group(3, &[("0", 6, true)]);
        // Not in the order that an assignor would choose by itself; of task 0 another member has an older copy.
        let holds = [[5, 2], [0, 4], [3, 1]];
        for (member, holds) in input.members.iter_mut().zip(holds) {
            member.task_offsets = holds.iter().map(|partition| (task("0", *partition), 100)).collect();
        }
        input.members[0].task_offsets.insert(task("0", 0), 40);
        let target = assign(&input).expect("members and ids are unique");
        for (member, holds) in input.members.iter().zip(holds) {
            let active = &target[&member.member_id].active;
            assert!(holds.iter().all(|partition| contains_task(active, &task("0", *partition))), "{target:?}");
        }
    }
}

/// SG-19: B warms task 2 up when C joins.
#[test]
fn sg_19_a_newcomer_does_not_take_what_another_member_is_warming_up() {
    for assign in [sticky::assign, balanced::assign] {
        let mut input = group(2, &[("0", 6, true)]);
        for partition in 0..6 {
            insert_task(&mut input.members[0].active, &task("0", partition));
        }
        let planned = assign(&input).expect("members and ids are unique");
        let b = name("m1".to_owned());
        let warming: Vec<TaskId> = tasks_of(&planned[&b].active).collect();
        assert_eq!(warming.len(), 3, "{planned:?}");
        for task in &warming {
            insert_task(&mut input.members[1].warmup, task);
        }
        input.members.extend(group(3, &[]).members.pop());
        let target = assign(&input).expect("members and ids are unique");
        assert!(target.values().all(|member| tasks_of(&member.active).count() == 2), "{target:?}");
        let keeps: Vec<TaskId> = tasks_of(&target[&b].active).collect();
        assert!(
            keeps.iter().all(|task| warming.contains(task)),
            "balance needs one of the three, and no more: {target:?}"
        );
    }
}
