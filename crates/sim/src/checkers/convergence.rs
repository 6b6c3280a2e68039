//! Convergence: when nothing goes wrong any more a group comes to rest, with every task or partition run by one member, and
//! members, log and description at one.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{TaskAssignment, TaskId, TaskSet, tasks_of};
use wire::KStr;
use wire::messages::{consumer_group_describe_response as consumer, streams_group_describe_response as streams};

use super::classic::Classic;
use super::mirror::Mirror;
use crate::classic_assignor::read_assignment;
use crate::process::Held;

/// What a description says.
#[derive(Debug)]
pub struct Described {
    state: KStr,
    group_epoch: i32,
    assignment_epoch: i32,
    members: Vec<DescribedMember>,
}

#[derive(Debug)]
struct DescribedMember {
    id: KStr,
    epoch: i32,
    now: TaskAssignment,
    then: TaskAssignment,
}

impl Described {
    pub fn streams(group: &streams::DescribedGroup) -> Described {
        let set = |lists: &[streams::TaskIds]| -> TaskSet {
            lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
        };
        let flat = |assignment: &streams::Assignment| TaskAssignment {
            active: set(&assignment.active_tasks),
            standby: set(&assignment.standby_tasks),
            warmup: set(&assignment.warmup_tasks),
        };
        let member = |member: &streams::Member| DescribedMember {
            id: member.member_id.clone(),
            epoch: member.member_epoch,
            now: flat(&member.assignment),
            then: flat(&member.target_assignment),
        };
        Described {
            state: group.group_state.clone(),
            group_epoch: group.group_epoch,
            assignment_epoch: group.assignment_epoch,
            members: group.members.iter().map(member).collect(),
        }
    }

    pub fn consumer(group: &consumer::DescribedGroup) -> Described {
        let flat = |assignment: &consumer::Assignment| {
            let topics = assignment.topic_partitions.iter();
            let sets: BTreeMap<_, BTreeSet<_>> =
                topics.map(|topic| (topic.topic_name.clone(), topic.partitions.iter().copied().collect())).collect();
            TaskAssignment { active: sets, ..TaskAssignment::default() }
        };
        let member = |member: &consumer::Member| DescribedMember {
            id: member.member_id.clone(),
            epoch: member.member_epoch,
            now: flat(&member.assignment),
            then: flat(&member.target_assignment),
        };
        Described {
            state: group.group_state.clone(),
            group_epoch: group.group_epoch,
            assignment_epoch: group.assignment_epoch,
            members: group.members.iter().map(member).collect(),
        }
    }
}

/// What is still missing, or nothing.
///
/// `held` is what live members run by their own account, `tasks` all tasks of the application.
pub fn missing(mirror: &Mirror, held: &Held, described: &Described, tasks: &[TaskId]) -> Option<String> {
    if !mirror.members.keys().eq(held.keys()) {
        return Some(format!("members are {:?}, live are {:?}", mirror.members.keys(), held.keys()));
    }
    if let Some(why) = mirror.unsettled() {
        return Some(format!("the log shows an assignment that is under way: {why}"));
    }
    if !held.is_empty() && described.state != "Stable" {
        return Some(format!("the group is {}", described.state));
    }
    if (described.group_epoch, described.assignment_epoch) != (mirror.group_epoch, mirror.assignment_epoch) {
        return Some("the description is of another epoch".to_owned());
    }
    for member in &described.members {
        let (now, then) = (&member.now, &member.then);
        if now != then || held.get(&member.id) != Some(now) || member.epoch != mirror.group_epoch {
            return Some(format!("{} runs {:?}, and is to run {then:?}", member.id, held.get(&member.id)));
        }
        if !now.warmup.is_empty() {
            return Some(format!("{} warms up {:?}", member.id, now.warmup));
        }
    }
    not_once(held, tasks)
}

/// The same for a classic group, of which the log has the generation that was assigned last.
pub fn missing_in_classic(mirror: &Mirror, classic: &Classic, held: &Held, tasks: &[TaskId]) -> Option<String> {
    if !classic.members().keys().eq(held.keys()) {
        return Some(format!("members are {:?}, live are {:?}", classic.members().keys(), held.keys()));
    }
    if held.is_empty() {
        return None;
    }
    if classic.state() != "Stable" {
        return Some(format!("the group is {}", classic.state()));
    }
    let Some(logged) = mirror.classic.as_ref().filter(|logged| logged.generation == classic.generation()) else {
        return Some(format!("the log does not know generation {}", classic.generation()));
    };
    for member in &logged.members {
        let assigned = read_assignment(&member.assignment).ok();
        let runs = held.get(&member.member_id).map(|held| &held.active);
        if assigned.as_ref() != runs {
            return Some(format!("{} runs {runs:?}, and is to run {assigned:?}", member.member_id));
        }
    }
    not_once(held, tasks)
}

/// Whether something is run by nobody, or twice.
fn not_once(held: &Held, tasks: &[TaskId]) -> Option<String> {
    let run: Vec<_> = held.values().flat_map(|assigned| tasks_of(&assigned.active)).collect();
    let distinct: BTreeSet<_> = run.iter().collect();
    let is_right = distinct.len() == run.len() && distinct == tasks.iter().collect();
    (!held.is_empty() && !is_right).then(|| format!("{run:?} run of {tasks:?}"))
}
