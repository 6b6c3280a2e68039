//! Convergence: when nothing goes wrong any more the group comes to rest, with every task run by one member, and members,
//! log and description at one.

use std::collections::BTreeSet;

use coordinator::assign::{TaskAssignment, TaskId, TaskSet, tasks_of};
use wire::messages::streams_group_describe_response::{Assignment, DescribedGroup, TaskIds};

use super::mirror::Mirror;
use crate::process::Held;

/// What is still missing, or nothing.
///
/// `held` is what live members run by their own account, `tasks` all tasks of the application.
pub fn missing(mirror: &Mirror, held: &Held, described: &DescribedGroup, tasks: &[TaskId]) -> Option<String> {
    if !mirror.members.keys().eq(held.keys()) {
        return Some(format!("members are {:?}, live are {:?}", mirror.members.keys(), held.keys()));
    }
    if let Some(why) = mirror.unsettled() {
        return Some(format!("the log shows an assignment that is under way: {why}"));
    }
    if !held.is_empty() && described.group_state != "Stable" {
        return Some(format!("the group is {}", described.group_state));
    }
    if (described.group_epoch, described.assignment_epoch) != (mirror.group_epoch, mirror.assignment_epoch) {
        return Some("the description is of another epoch".to_owned());
    }
    for member in &described.members {
        let (now, then) = (flat(&member.assignment), flat(&member.target_assignment));
        if now != then || held.get(&member.member_id) != Some(&now) || member.member_epoch != mirror.group_epoch {
            return Some(format!(
                "{} runs {:?}, and is to run {then:?}",
                member.member_id,
                held.get(&member.member_id)
            ));
        }
        if !now.warmup.is_empty() {
            return Some(format!("{} warms up {:?}", member.member_id, now.warmup));
        }
    }
    let run: Vec<_> = held.values().flat_map(|assigned| tasks_of(&assigned.active)).collect();
    let distinct: BTreeSet<_> = run.iter().collect();
    if !held.is_empty() && (distinct.len() != run.len() || distinct != tasks.iter().collect()) {
        return Some(format!("{run:?} run of {tasks:?}"));
    }
    None
}

fn flat(assignment: &Assignment) -> TaskAssignment {
    let set = |lists: &[TaskIds]| -> TaskSet {
        lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
    };
    TaskAssignment {
        active: set(&assignment.active_tasks),
        standby: set(&assignment.standby_tasks),
        warmup: set(&assignment.warmup_tasks),
    }
}
