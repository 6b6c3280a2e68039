//! What the log says about the group, read record by record, and the laws of every batch: epochs never go back, a task is
//! active at one member at most, and what is granted is part of the target.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{TaskAssignment, TaskId, TaskSet, tasks_of};
use coordinator::{LogEntry, Record};
use wire::KStr;
use wire::messages::streams_group_current_member_assignment_value::{
    StreamsGroupCurrentMemberAssignmentValue as CurrentValue, TaskIds as CurrentTasks,
};
use wire::messages::streams_group_target_assignment_member_value as target_value;

/// The present assignment of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Current {
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: i8,
    pub assigned: TaskAssignment,
    /// Since which epoch it has each active task.
    pub active_since: BTreeMap<TaskId, i32>,
    /// Active tasks that it has to give up, and since when it has had them.
    pub pending: BTreeMap<TaskId, i32>,
}

#[derive(Clone, Debug, Default)]
pub struct Mirror {
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    pub topology_epoch: i32,
    /// Every member with its instance id.
    pub members: BTreeMap<KStr, Option<KStr>>,
    pub targets: BTreeMap<KStr, TaskAssignment>,
    pub current: BTreeMap<KStr, Current>,
    /// Every epoch that a member ever had, with the active tasks it might have had then.
    pub ever: BTreeMap<KStr, BTreeMap<i32, BTreeSet<TaskId>>>,
    /// Log end up to which this is.
    end: u64,
}

impl Mirror {
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads the entries that are new, as one batch.
    ///
    /// # Errors
    /// The law that they break.
    pub fn read(&mut self, entries: &[LogEntry], end: u64) -> Result<(), String> {
        let before = (self.group_epoch, self.assignment_epoch);
        for entry in &entries[self.end as usize..end as usize] {
            let LogEntry::Record { record, .. } = entry else { continue };
            let record = Record::decode(record).map_err(|error| error.to_string())?;
            if let Some(record) = record {
                self.apply(record);
            }
        }
        let is_new = self.end < end;
        self.end = end;
        if is_new { self.check(before) } else { Ok(()) }
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::StreamsMetadata(_, Some(value)) => self.group_epoch = value.epoch,
            Record::StreamsMetadata(_, None) => {
                let ever = std::mem::take(&mut self.ever);
                *self = Mirror { end: self.end, ever, ..Mirror::default() };
            }
            Record::StreamsTopology(_, Some(value)) => self.topology_epoch = value.epoch,
            Record::StreamsMember(key, Some(value)) => {
                self.members.insert(key.member_id, value.instance_id);
            }
            Record::StreamsMember(key, None) => {
                self.members.remove(&key.member_id);
            }
            Record::StreamsTargetMetadata(_, value) => {
                self.assignment_epoch = value.map_or(-1, |value| value.assignment_epoch);
            }
            Record::StreamsTargetMember(key, Some(value)) => {
                let tasks = TaskAssignment {
                    active: target_set(&value.active_tasks),
                    standby: target_set(&value.standby_tasks),
                    warmup: target_set(&value.warmup_tasks),
                };
                self.targets.insert(key.member_id, tasks);
            }
            Record::StreamsTargetMember(key, None) => {
                self.targets.remove(&key.member_id);
            }
            Record::StreamsCurrentMember(key, Some(value)) => {
                let current = current(&value);
                let ever = self.ever.entry(key.member_id.clone()).or_default().entry(current.epoch).or_default();
                ever.extend(current.active_since.keys().chain(current.pending.keys()).cloned());
                self.current.insert(key.member_id, current);
            }
            Record::StreamsCurrentMember(key, None) => {
                self.current.remove(&key.member_id);
            }
            _ => {}
        }
    }

    fn check(&self, (group_epoch, assignment_epoch): (i32, i32)) -> Result<(), String> {
        // 0: the group was deleted, or was not there.
        if self.group_epoch < group_epoch && self.group_epoch != 0 {
            return Err(format!("the group epoch went from {group_epoch} back to {}", self.group_epoch));
        }
        if self.assignment_epoch < assignment_epoch && self.group_epoch != 0 {
            return Err(format!("the assignment epoch went from {assignment_epoch} back to {}", self.assignment_epoch));
        }
        if self.assignment_epoch > self.group_epoch {
            return Err(format!("assignment epoch {} of group epoch {}", self.assignment_epoch, self.group_epoch));
        }
        let mut owners: BTreeMap<&TaskId, &KStr> = BTreeMap::new();
        for (id, current) in &self.current {
            if current.epoch > self.assignment_epoch.max(1) {
                return Err(format!("{id} is at epoch {}, the assignment at {}", current.epoch, self.assignment_epoch));
            }
            for task in current.active_since.keys().chain(current.pending.keys()) {
                if let Some(other) = owners.insert(task, id) {
                    return Err(format!("{task:?} is active at {other} and at {id}"));
                }
            }
        }
        self.check_targets()
    }

    fn check_targets(&self) -> Result<(), String> {
        let mut wanted: BTreeMap<TaskId, &KStr> = BTreeMap::new();
        for (id, target) in &self.targets {
            for task in tasks_of(&target.active) {
                if let Some(other) = wanted.insert(task.clone(), id) {
                    return Err(format!("{task:?} is to be active at {other} and at {id}"));
                }
            }
        }
        Ok(())
    }

    /// Why somebody has not what it is to have, or the target is not that of the group's epoch.
    pub fn unsettled(&self) -> Option<String> {
        if self.group_epoch != self.assignment_epoch {
            return Some(format!("assignment epoch {} of {}", self.assignment_epoch, self.group_epoch));
        }
        let nothing = TaskAssignment::default();
        self.members.keys().find_map(|id| {
            let target = self.targets.get(id).unwrap_or(&nothing);
            let Some(current) = self.current.get(id) else { return Some(format!("{id} has no assignment")) };
            let settled = current.epoch == self.assignment_epoch && current.pending.is_empty();
            (!settled || current.assigned != *target)
                .then(|| format!("{id} is to have {target:?}, and has {current:?}"))
        })
    }

    /// All active tasks of the present assignments.
    pub fn active(&self) -> BTreeSet<TaskId> {
        self.current.values().flat_map(|current| current.active_since.keys().cloned()).collect()
    }
}

fn target_set(lists: &[target_value::TaskIds]) -> TaskSet {
    lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
}

fn current(value: &CurrentValue) -> Current {
    let set = |lists: &[CurrentTasks]| -> TaskSet {
        lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect())).collect()
    };
    Current {
        epoch: value.member_epoch,
        previous_epoch: value.previous_member_epoch,
        state: value.state,
        assigned: TaskAssignment {
            active: set(&value.active_tasks),
            standby: set(&value.standby_tasks),
            warmup: set(&value.warmup_tasks),
        },
        active_since: since(&value.active_tasks, value.member_epoch),
        pending: since(&value.active_tasks_pending_revocation, value.member_epoch),
    }
}

fn since(lists: &[CurrentTasks], member_epoch: i32) -> BTreeMap<TaskId, i32> {
    let each = lists.iter().flat_map(|list| {
        let epochs = list.assignment_epochs.clone().unwrap_or_default();
        list.partitions.iter().enumerate().map(move |(at, partition)| {
            let task = TaskId { subtopology: list.subtopology_id.clone(), partition: *partition };
            (task, epochs.get(at).copied().unwrap_or(member_epoch))
        })
    });
    each.collect()
}
