//! Random streams groups, and what every assignment of tasks has to obey.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{
    StreamsInput, StreamsMember, StreamsTarget, Subtopology, TaskAssignment, TaskId, insert_task, tasks_of,
};
use proptest::prelude::*;
use wire::KStr;

pub fn id(text: String) -> KStr {
    KStr::from(text)
}

/// How random groups look.
#[derive(Clone, Copy)]
pub struct Shape {
    pub members: usize,
    pub processes: usize,
    pub replicas: u32,
    /// Values of the client tag `zone`; 0: no tags.
    pub zones: usize,
    /// Members hold something now, in any combination that the protocol allows or not.
    pub history: bool,
}

pub const ANY: Shape = Shape { members: 9, processes: 5, replicas: 3, zones: 0, history: true };

/// Every member a process of its own when `processes` is 0.
pub fn groups(shape: Shape) -> impl Strategy<Value = StreamsInput> {
    let subtopologies = prop::collection::vec((1..12i32, any::<bool>()), 1..5);
    let members = prop::collection::vec((0..shape.processes.max(1), 0..shape.zones.max(1)), 1..=shape.members);
    let dice = prop::collection::vec(any::<u16>(), 200);
    (subtopologies, members, 0..=shape.replicas, dice).prop_map(move |(subtopologies, members, replicas, dice)| {
        let mut input = StreamsInput { num_standby_replicas: replicas, ..StreamsInput::default() };
        for (number, (tasks, stateful)) in subtopologies.into_iter().enumerate() {
            input.subtopologies.push(Subtopology { id: id(number.to_string()), tasks, stateful });
        }
        for (number, (process, zone)) in members.into_iter().enumerate() {
            input.members.push(member(number, if shape.processes == 0 { number } else { process }, zone, shape));
        }
        if shape.zones > 0 {
            input.rack_aware_tags.push(KStr::from("zone"));
        }
        if shape.history {
            remember(&mut input, &dice);
        }
        input
    })
}

fn member(number: usize, process: usize, zone: usize, shape: Shape) -> StreamsMember {
    // Threads of a process share its tags.
    let zone = if shape.processes == 0 { zone } else { process % shape.zones.max(1) };
    let tags = (shape.zones > 0).then(|| (KStr::from("zone"), id(format!("z{zone}"))));
    StreamsMember {
        member_id: id(format!("m{number:02}")),
        process_id: id(format!("p{process:02}")),
        client_tags: tags.into_iter().collect(),
        ..StreamsMember::default()
    }
}

/// Deals a past out over the members: active tasks at one member at most, copies and reports anywhere.
fn remember(input: &mut StreamsInput, dice: &[u16]) {
    let mut dice = dice.iter().copied().cycle().map(usize::from);
    let mut roll = move |sides: usize| dice.next().map_or(0, |die| die % sides);
    let members = input.members.len();
    for task in all_tasks(input) {
        if roll(3) > 0 {
            insert_task(&mut input.members[roll(members)].active, &task);
        }
        if roll(3) == 0 {
            insert_task(&mut input.members[roll(members)].standby, &task);
        }
        if roll(7) == 0 {
            insert_task(&mut input.members[roll(members)].warmup, &task);
        }
        if roll(3) == 0 {
            let offset = roll(100) as i64;
            input.members[roll(members)].task_offsets.insert(task, offset);
        }
    }
}

pub fn all_tasks(input: &StreamsInput) -> Vec<TaskId> {
    let tasks = input
        .subtopologies
        .iter()
        .flat_map(|each| (0..each.tasks).map(|partition| TaskId { subtopology: each.id.clone(), partition }));
    tasks.collect()
}

pub fn is_stateful(input: &StreamsInput, task: &TaskId) -> bool {
    input.subtopologies.iter().any(|each| each.id == task.subtopology && each.stateful)
}

pub fn process_of<'a>(input: &'a StreamsInput, member_id: &KStr) -> &'a KStr {
    &input.members.iter().find(|member| member.member_id == *member_id).expect("a member of the group").process_id
}

pub fn active_of(target: &StreamsTarget) -> BTreeMap<TaskId, KStr> {
    let all = target.iter().flat_map(|(member, tasks)| tasks_of(&tasks.active).map(move |task| (task, member.clone())));
    all.collect()
}

/// Members that hold each task in any role.
pub fn holders_of(target: &StreamsTarget) -> BTreeMap<TaskId, Vec<KStr>> {
    let mut holders: BTreeMap<TaskId, Vec<KStr>> = BTreeMap::new();
    for (member, tasks) in target {
        for set in [&tasks.active, &tasks.standby, &tasks.warmup] {
            tasks_of(set).for_each(|task| holders.entry(task).or_default().push(member.clone()));
        }
    }
    holders
}

/// The group after everybody took over the target.
pub fn carried_out(input: &StreamsInput, target: &StreamsTarget) -> StreamsInput {
    let mut input = input.clone();
    for member in &mut input.members {
        let TaskAssignment { active, standby, warmup } = target[&member.member_id].clone();
        (member.active, member.standby, member.warmup) = (active, standby, warmup);
    }
    input
}

/// What holds of any target, refined or not.
pub fn check_laws(input: &StreamsInput, target: &StreamsTarget) {
    let members: BTreeSet<_> = input.members.iter().map(|member| &member.member_id).collect();
    assert_eq!(target.keys().collect::<BTreeSet<_>>(), members, "every member has an entry");
    let active: Vec<_> = target.values().flat_map(|tasks| tasks_of(&tasks.active)).collect();
    let mut sorted = active.clone();
    sorted.sort();
    let mut all = all_tasks(input);
    all.sort();
    assert_eq!(sorted, all, "each task is active exactly once");
    for tasks in target.values() {
        for task in tasks_of(&tasks.standby).chain(tasks_of(&tasks.warmup)) {
            assert!(is_stateful(input, &task), "{task:?} has no state");
        }
        for set in [&tasks.active, &tasks.standby, &tasks.warmup] {
            assert!(set.values().all(|partitions| !partitions.is_empty()), "an empty subtopology");
        }
    }
    for (task, members) in holders_of(target) {
        let processes: BTreeSet<_> = members.iter().map(|member| process_of(input, member)).collect();
        assert_eq!(processes.len(), members.len(), "a process holds {task:?} twice");
    }
}
