//! Which subtopologies a member may run after the topology was replaced (decision 5): members whose topology is behind
//! keep what is the same in both, and never see what they do not know. A stock client dies of an unknown subtopology.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::member::Member;
use super::topology::Topology;
use crate::assign::{StreamsInput, StreamsTarget, TaskAssignment, TaskId, TaskSet, insert_task, remove_task, tasks_of};

/// Subtopologies by member that may not run all of them.
pub(super) type Restricted = BTreeMap<KStr, BTreeSet<KStr>>;

/// What a member may run; `None` for everything.
///
/// Which subtopologies are the same is remembered in memory only. After a failover a member that is behind keeps what its
/// target has, which was made with this rule.
pub(super) fn allowed(
    member: &Member,
    target: Option<&TaskAssignment>,
    topology: &Topology,
    unchanged_since: &BTreeMap<i32, BTreeSet<KStr>>,
) -> Option<BTreeSet<KStr>> {
    let epoch = member.metadata.topology_epoch;
    if epoch >= topology.epoch {
        return None;
    }
    let known = unchanged_since.get(&epoch).cloned().unwrap_or_else(|| {
        let target = target.into_iter().flat_map(|target| [&target.active, &target.standby, &target.warmup]);
        target.flat_map(BTreeMap::keys).cloned().collect()
    });
    Some(known.into_iter().filter(|id| topology.subtopologies.contains_key(id)).collect())
}

/// Takes what a member may not run from what it is said to run and to have the state of, so that nothing is left or placed
/// there for that.
pub(super) fn forget_foreign(input: &mut StreamsInput, restricted: &Restricted) {
    for member in &mut input.members {
        if let Some(allowed) = restricted.get(&member.member_id) {
            for tasks in [&mut member.active, &mut member.standby, &mut member.warmup] {
                tasks.retain(|id, _| allowed.contains(id));
            }
            member.task_offsets.retain(|task, _| allowed.contains(&task.subtopology));
            member.task_end_offsets.retain(|task, _| allowed.contains(&task.subtopology));
        }
    }
}

/// Moves active tasks away from members that may not run them: to where they run now, else to the member with the fewest.
/// Standbys in the process where a task finds its home are dropped. A task that nobody may run is left out.
pub(super) fn enforce(target: &mut StreamsTarget, input: &StreamsInput, restricted: &Restricted) {
    if restricted.is_empty() {
        return;
    }
    let mut homeless: BTreeSet<TaskId> = BTreeSet::new();
    for (member_id, allowed) in restricted {
        let Some(tasks) = target.get_mut(member_id) else { continue };
        let foreign: TaskSet = tasks
            .active
            .iter()
            .filter(|(id, _)| !allowed.contains(*id))
            .map(|(id, p)| (id.clone(), p.clone()))
            .collect();
        homeless.extend(tasks_of(&foreign));
        for tasks in [&mut tasks.active, &mut tasks.standby, &mut tasks.warmup] {
            tasks.retain(|id, _| allowed.contains(id));
        }
    }
    let runs_now: BTreeMap<TaskId, &KStr> = input
        .members
        .iter()
        .flat_map(|member| tasks_of(&member.active).map(move |task| (task, &member.member_id)))
        .collect();
    let may_run = |member_id: &KStr, task: &TaskId| {
        restricted.get(member_id).is_none_or(|allowed| allowed.contains(&task.subtopology))
    };
    for task in homeless {
        let present = runs_now.get(&task).filter(|member_id| may_run(member_id, &task)).map(|id| (*id).clone());
        let new_home = present.or_else(|| {
            let able = target.iter().filter(|(member_id, _)| may_run(member_id, &task));
            able.min_by_key(|(id, tasks)| (count(&tasks.active), *id)).map(|(id, _)| id.clone())
        });
        let Some(new_home) = new_home else { continue };
        for member_id in process_of(input, &new_home) {
            if let Some(tasks) = target.get_mut(member_id) {
                remove_task(&mut tasks.standby, &task);
            }
        }
        if let Some(tasks) = target.get_mut(&new_home) {
            insert_task(&mut tasks.active, &task);
        }
    }
}

/// The members of the process that a member belongs to.
fn process_of<'a>(input: &'a StreamsInput, member_id: &KStr) -> impl Iterator<Item = &'a KStr> {
    let member = input.members.iter().find(|member| member.member_id == *member_id);
    let process_id = member.map(|member| &member.process_id);
    let same = input.members.iter().filter(move |other| process_id == Some(&other.process_id));
    same.map(|member| &member.member_id)
}

fn count(tasks: &TaskSet) -> usize {
    tasks.values().map(BTreeSet::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assign::StreamsMember;

    fn tasks(of: &[(&'static str, i32)]) -> TaskSet {
        let mut set = TaskSet::new();
        for (id, partition) in of {
            insert_task(&mut set, &TaskId { subtopology: KStr::from(*id), partition: *partition });
        }
        set
    }

    #[test]
    fn no_standby_is_left_in_the_process_where_a_task_finds_its_home() {
        let member = |id, process| StreamsMember {
            member_id: KStr::from(id),
            process_id: KStr::from(process),
            ..StreamsMember::default()
        };
        let input = StreamsInput {
            members: vec![member("a1", "a"), member("a2", "a"), member("old", "b"), member("c1", "c")],
            ..StreamsInput::default()
        };
        let of =
            |active, standby| TaskAssignment { active: tasks(active), standby: tasks(standby), ..Default::default() };
        let mut target = StreamsTarget::from([
            (KStr::from("a1"), of(&[("0", 1)], &[("0", 0)])),
            (KStr::from("a2"), of(&[], &[])),
            (KStr::from("old"), of(&[("0", 0)], &[("0", 1)])),
            (KStr::from("c1"), of(&[("0", 2)], &[])),
        ]);
        enforce(&mut target, &input, &Restricted::from([(KStr::from("old"), BTreeSet::new())]));
        assert_eq!(target["a2"].active, tasks(&[("0", 0)]));
        assert_eq!(target["a1"], of(&[("0", 1)], &[]), "the other member of the process");
        assert_eq!(target["old"], TaskAssignment::default());
    }
}
