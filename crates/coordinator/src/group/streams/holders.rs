//! Which processes hold which tasks, over all members of a group: assigned and pending revocation (S 6.1).

use wire::KStr;

use super::member::{Member, Tasks};
use crate::assign::{TaskId, tasks_of};
use crate::map::Map;

/// The three indexes that reconciliation looks into. Kept up to date by replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders {
    pub active: Index,
    pub standby: Index,
    pub warmup: Index,
}

/// Processes by task, each with the number of members that hold the task in this role. There is rarely more than one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(Map<TaskId, Vec<(KStr, u32)>>);

impl Index {
    pub(super) fn is_held(&self, task: &TaskId) -> bool {
        self.0.contains_key(task)
    }

    pub(super) fn holds(&self, task: &TaskId, process_id: &str) -> bool {
        self.0.get(task).is_some_and(|processes| processes.iter().any(|(id, _)| id == process_id))
    }

    pub(super) fn add(&mut self, task: TaskId, process_id: &KStr) {
        let processes = self.0.entry(task).or_default();
        match processes.iter_mut().find(|(id, _)| id == process_id) {
            Some((_, count)) => *count += 1,
            None => processes.push((process_id.clone(), 1)),
        }
    }

    #[cfg(test)]
    pub(super) fn sorted(&self) -> std::collections::BTreeMap<TaskId, std::collections::BTreeMap<KStr, u32>> {
        self.0.iter().map(|(task, processes)| (task.clone(), processes.iter().cloned().collect())).collect()
    }

    fn remove(&mut self, task: &TaskId, process_id: &KStr) {
        let Some(processes) = self.0.get_mut(task) else { return };
        if let Some(at) = processes.iter().position(|(id, _)| id == process_id) {
            processes[at].1 -= 1;
            if processes[at].1 == 0 {
                processes.swap_remove(at);
            }
        }
        if processes.is_empty() {
            self.0.remove(task);
        }
    }
}

impl Holders {
    pub(super) fn add_member(&mut self, member: &Member) {
        for tasks in [&member.assigned, &member.pending] {
            self.each(tasks, |index, task| index.add(task, &member.metadata.process_id));
        }
    }

    pub(super) fn remove_member(&mut self, member: &Member) {
        for tasks in [&member.assigned, &member.pending] {
            self.each(tasks, |index, task| index.remove(&task, &member.metadata.process_id));
        }
    }

    fn each(&mut self, tasks: &Tasks, mut apply: impl FnMut(&mut Index, TaskId)) {
        for (id, partitions) in &tasks.active {
            for partition in partitions.keys() {
                apply(&mut self.active, TaskId { subtopology: id.clone(), partition: *partition });
            }
        }
        tasks_of(&tasks.standby).for_each(|task| apply(&mut self.standby, task));
        tasks_of(&tasks.warmup).for_each(|task| apply(&mut self.warmup, task));
    }
}
