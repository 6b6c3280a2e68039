//! Which subtopologies a member may run after the topology was replaced (decision 5): members whose topology is behind
//! keep what is the same in both, and never see what they do not know. A stock client dies of an unknown subtopology.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::member::Member;
use super::topology::Topology;
use crate::assign::{StreamsInput, StreamsTarget, TaskAssignment, TaskId, TaskSet, insert_task, tasks_of};

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
/// Their standbys there are dropped. A task that nobody may run is left out.
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
        if let Some(tasks) = new_home.and_then(|id| target.get_mut(&id)) {
            crate::assign::remove_task(&mut tasks.standby, &task);
            insert_task(&mut tasks.active, &task);
        }
    }
}

fn count(tasks: &TaskSet) -> usize {
    tasks.values().map(BTreeSet::len).sum()
}
