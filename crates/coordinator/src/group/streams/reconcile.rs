//! One step of a member towards its target (S 6): what it has to give up, what it gets, what it waits for.
//!
//! A pure function over the member, its target, what it says it owns, and who holds which task now.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{ErrorCode, KStr};

use super::error::Failure;
use super::holders::{Holders, Index};
use super::member::{Member, MemberState, Owned, Tasks};
use crate::assign::{TaskAssignment, TaskId, TaskSet, insert_task, tasks_of};

/// The member after one step; `None` if it stays as it is.
///
/// # Errors
/// FENCED_MEMBER_EPOCH for a member in a state this coordinator does not know (S 6.3.4), UNKNOWN_SERVER_ERROR if the
/// owned lists name a subtopology twice (S 1.3.5).
pub(crate) fn reconcile(
    member: &Member,
    target_epoch: i32,
    target: &TaskAssignment,
    owned: Option<&Owned>,
    holders: &Holders,
) -> Result<Option<Member>, Failure> {
    let base_epoch = match member.state {
        _ if member.is_settled_at(target_epoch) => return Ok(None),
        MemberState::Stable | MemberState::UnreleasedTasks => member.epoch,
        MemberState::UnrevokedTasks => {
            let pending = Roles::of(&member.pending);
            if checked(owned)?.is_none_or(|owned| pending.held_by(owned)) {
                return Ok(None);
            }
            member.epoch + 1
        }
        MemberState::Unknown => {
            if owned.is_none_or(|owned| !owned.is_empty()) {
                return Err(Failure::new(
                    ErrorCode::FencedMemberEpoch,
                    "The streams group member is in a unknown state. The member must abandon all its partitions and rejoin.",
                ));
            }
            target_epoch
        }
    };
    let step = Step { member, target_epoch, base_epoch, holders, owned: checked(owned)? };
    let next = step.compute(target);
    Ok((next != *member).then_some(next))
}

fn checked(owned: Option<&Owned>) -> Result<Option<&Owned>, Failure> {
    match owned {
        Some(owned) if owned.ambiguous => Err(Failure::unknown()),
        owned => Ok(owned),
    }
}

struct Step<'a> {
    member: &'a Member,
    target_epoch: i32,
    base_epoch: i32,
    holders: &'a Holders,
    owned: Option<&'a Owned>,
}

impl Step<'_> {
    /// S 6.4, with the changes of role of S 6.6.
    fn compute(&self, target: &TaskAssignment) -> Member {
        let assigned = Roles::of(&self.member.assigned);
        let wanted = Roles::of_target(target);
        let mut keep = assigned.zip(&wanted, |a, t| a.intersection(t).cloned().collect());
        let mut revoke = assigned.zip(&wanted, |a, t| a.difference(t).cloned().collect());
        let wanted_now = wanted.zip(&assigned, |t, a| t.difference(a).cloned().collect());
        let mut grant = Roles {
            active: wanted_now.active.iter().filter(|task| self.active_is_free(task, &assigned)).cloned().collect(),
            standby: wanted_now.standby.iter().filter(|task| self.standby_is_free(task, &assigned)).cloned().collect(),
            warmup: wanted_now.warmup.iter().filter(|task| self.warmup_is_free(task, &assigned)).cloned().collect(),
        };
        let blocked = grant != wanted_now;

        // S 6.6.1, 6.6.2: a task that becomes a standby here does so together with its revocation, standby and
        // warm-up change places without one.
        move_between(&assigned.active, &mut grant.standby, &mut keep.standby, None);
        move_between(&assigned.standby, &mut grant.warmup, &mut keep.warmup, Some(&mut revoke.standby));
        move_between(&assigned.warmup, &mut grant.standby, &mut keep.standby, Some(&mut revoke.warmup));
        // S 6.6.3: what is to become active stays in its old role until the active task is granted.
        revoke.standby.retain(|task| !wanted.active.contains(task));
        revoke.warmup.retain(|task| !wanted.active.contains(task));

        let revoking = !revoke.is_empty() && self.owned.is_none_or(|owned| revoke.held_by(owned));
        for (held, keep) in [(&assigned.standby, &mut keep.standby), (&assigned.warmup, &mut keep.warmup)] {
            let promoted = held.iter().filter(|task| wanted.active.contains(*task));
            keep.extend(promoted.filter(|task| revoking || !grant.active.contains(*task)).cloned());
        }
        self.next(&keep, &revoke, &grant, revoking, blocked)
    }

    fn next(&self, keep: &Roles, revoke: &Roles, grant: &Roles, revoking: bool, blocked: bool) -> Member {
        let mut assigned = self.tasks(keep);
        let mut next = Member {
            metadata: Arc::clone(&self.member.metadata),
            epoch: self.target_epoch,
            previous_epoch: self.member.epoch,
            state: if blocked { MemberState::UnreleasedTasks } else { MemberState::Stable },
            assigned: Arc::default(),
            pending: Arc::default(),
        };
        if revoking {
            next.epoch = self.base_epoch;
            next.state = MemberState::UnrevokedTasks;
            next.pending = Arc::new(self.tasks(revoke));
        } else {
            for task in &grant.active {
                let epochs = assigned.active.entry(task.subtopology.clone()).or_default();
                epochs.insert(task.partition, self.target_epoch);
            }
            grant.standby.iter().for_each(|task| insert_task(&mut assigned.standby, task));
            grant.warmup.iter().for_each(|task| insert_task(&mut assigned.warmup, task));
        }
        next.assigned = Arc::new(assigned);
        next
    }

    /// Tasks that the member has, with their assignment epochs.
    fn tasks(&self, roles: &Roles) -> Tasks {
        let mut tasks = Tasks::default();
        for task in &roles.active {
            let epoch = self.member.assigned.active_epoch(&task.subtopology, task.partition);
            let epochs = tasks.active.entry(task.subtopology.clone()).or_default();
            epochs.insert(task.partition, epoch.unwrap_or(self.target_epoch));
        }
        roles.standby.iter().for_each(|task| insert_task(&mut tasks.standby, task));
        roles.warmup.iter().for_each(|task| insert_task(&mut tasks.warmup, task));
        tasks
    }

    fn process(&self) -> &KStr {
        &self.member.metadata.process_id
    }

    // S 6.5: one task, one process at a time.

    fn active_is_free(&self, task: &TaskId, assigned: &Roles) -> bool {
        !self.holders.active.is_held(task)
            && !self.others_hold(&self.holders.standby, task, &assigned.standby)
            && !self.others_hold(&self.holders.warmup, task, &assigned.warmup)
    }

    fn standby_is_free(&self, task: &TaskId, assigned: &Roles) -> bool {
        !self.others_hold(&self.holders.active, task, &assigned.active)
            && !self.holders.standby.holds(task, self.process())
            && !self.others_hold(&self.holders.warmup, task, &assigned.warmup)
    }

    fn warmup_is_free(&self, task: &TaskId, assigned: &Roles) -> bool {
        !self.holders.active.holds(task, self.process())
            && !self.others_hold(&self.holders.standby, task, &assigned.standby)
            && !self.holders.warmup.holds(task, self.process())
    }

    /// Another member of the same process holds the task in the role of `index`; `own` is what this member has of it.
    fn others_hold(&self, index: &Index, task: &TaskId, own: &BTreeSet<TaskId>) -> bool {
        index.holds(task, self.process()) && !own.contains(task)
    }
}

/// Moves what the member holds in one role and is granted in another over to `keep`, without a revocation if `revoke` is given.
fn move_between(
    from: &BTreeSet<TaskId>,
    grant: &mut BTreeSet<TaskId>,
    keep: &mut BTreeSet<TaskId>,
    mut revoke: Option<&mut BTreeSet<TaskId>>,
) {
    let moved: Vec<TaskId> = from.intersection(grant).cloned().collect();
    for task in moved {
        grant.remove(&task);
        if let Some(revoke) = revoke.as_deref_mut() {
            revoke.remove(&task);
        }
        keep.insert(task);
    }
}

/// Sets of tasks by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Roles {
    active: BTreeSet<TaskId>,
    standby: BTreeSet<TaskId>,
    warmup: BTreeSet<TaskId>,
}

impl Roles {
    fn of(tasks: &Tasks) -> Roles {
        let active = tasks.active.iter().flat_map(|(id, partitions)| {
            partitions.keys().map(|partition| TaskId { subtopology: id.clone(), partition: *partition })
        });
        Roles { active: active.collect(), standby: flat(&tasks.standby), warmup: flat(&tasks.warmup) }
    }

    fn of_target(target: &TaskAssignment) -> Roles {
        Roles { active: flat(&target.active), standby: flat(&target.standby), warmup: flat(&target.warmup) }
    }

    fn zip(&self, other: &Roles, each: impl Fn(&BTreeSet<TaskId>, &BTreeSet<TaskId>) -> BTreeSet<TaskId>) -> Roles {
        Roles {
            active: each(&self.active, &other.active),
            standby: each(&self.standby, &other.standby),
            warmup: each(&self.warmup, &other.warmup),
        }
    }

    fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// Whether the member says it still runs any of these in the same role.
    fn held_by(&self, owned: &Owned) -> bool {
        !self.active.is_disjoint(&owned.active)
            || !self.standby.is_disjoint(&owned.standby)
            || !self.warmup.is_disjoint(&owned.warmup)
    }
}

fn flat(tasks: &TaskSet) -> BTreeSet<TaskId> {
    tasks_of(tasks).collect()
}
