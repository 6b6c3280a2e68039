//! Warm-ups: holds back the moves of stateful tasks until the new owner has caught up (decision 8).
//!
//! The assignor says where every task shall be in the end. [`refine`] makes of it what members are to run *now*: a
//! stateful task stays active where it runs, the new owner gets a warm-up of it, and the move is let go when the lag of
//! that warm-up is at most the acceptable recovery lag. The caller reconciles members towards the refined target and
//! calls again when a lag was reported, the current assignment or the target changed, or a deadline passed.
//!
//! A pure function: what it has to remember from call to call is a value ([`Warmups`]) that goes in and comes out. It is
//! soft state; after a failover an empty one does, since running warm-ups are seen in the current assignments (their
//! deadlines start anew).
//!
//! Left to the caller: epochs, timers, the step-by-step reconciliation of a member (S 6), and the removal of tasks that
//! a member may not run any more (stale topology, decision 5) from what is passed as its current assignment.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::{StreamsTarget, Subtopology, TaskAssignment, TaskId, TaskSet};

/// How far the state of a task has been restored at one member, in the sums over its changelogs that clients report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Position of the restored state, 0 or more.
    pub offset: i64,
    /// End of the changelogs, if it was reported.
    pub end_offset: Option<i64>,
}

impl Progress {
    /// What is missing; unknown without an end offset.
    pub fn lag(self) -> Option<i64> {
        self.end_offset.map(|end| end.saturating_sub(self.offset).max(0))
    }
}

/// A member as the refinement sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmupMember {
    pub process_id: KStr,
    /// It speaks heartbeat v1 or later, thus reports offsets; moves to other members are not held back.
    pub can_report: bool,
    /// What it was last granted: `assigned`, without what it still has to revoke.
    pub current: TaskAssignment,
    /// Active tasks that it was told to give up and has not given up yet.
    pub revoking: TaskSet,
}

pub struct WarmupInput<'a> {
    /// Of the assignor: where tasks shall be in the end.
    pub target: &'a StreamsTarget,
    /// By member id; every member of the target.
    pub members: &'a BTreeMap<KStr, WarmupMember>,
    pub subtopologies: &'a [Subtopology],
    /// The latest report of a member about a task. Negative offsets must be given as `None`.
    pub progress: &'a dyn Fn(&KStr, &TaskId) -> Option<Progress>,
    /// Warm-ups of the group at a time; 0 turns the refinement off.
    pub max_warmups: usize,
    /// `streams.acceptable.recovery.lag`, 0 or more.
    pub acceptable_lag: i64,
    /// On the monotonic clock.
    pub now_ms: u64,
    /// A warm-up whose lag reached no new low for so long is given up: the task moves anyway.
    pub patience_ms: u64,
    /// What the call before returned; empty at first.
    pub previous: &'a Warmups,
}

/// Moves of stateful tasks that are under way, by task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warmups {
    pub moves: BTreeMap<TaskId, Move>,
}

impl Warmups {
    /// Nothing is held back: the refined target is the assignor's.
    pub fn is_idle(&self) -> bool {
        self.moves.values().all(|each| each.stage == Stage::Released)
    }

    /// When to call [`refine`] again if nothing else happens, on the monotonic clock.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.moves.values().filter_map(|each| each.deadline_ms()).min()
    }

    /// The warm-ups that run, and standbys in the place of one: task and new owner.
    pub fn warming(&self) -> impl Iterator<Item = (&TaskId, &KStr)> {
        self.moves.iter().filter(|(_, each)| each.deadline_ms().is_some()).map(|(task, each)| (task, &each.to))
    }
}

/// One task on its way to another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The member that the assignor wants it on.
    pub to: KStr,
    pub stage: Stage,
}

impl Move {
    fn deadline_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Warming { deadline_ms, .. } => Some(deadline_ms),
            Stage::Waiting | Stage::Released => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// For one of the `max_warmups` places.
    Waiting,
    /// The new owner restores the state.
    Warming {
        /// Lowest lag reported so far.
        lag: Option<i64>,
        deadline_ms: u64,
    },
    /// Let go: it stays so until the new owner runs the task or the target changes.
    Released,
}

/// Why a move was let go that had been warmed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    CaughtUp,
    Deadline,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refined {
    /// What members are to be reconciled to.
    pub target: StreamsTarget,
    /// To be given to the next call.
    pub warmups: Warmups,
    /// Moves that began to be warmed up with this call: task and new owner.
    pub started: Vec<(TaskId, KStr)>,
    /// Warmed-up moves that this call let go.
    pub finished: Vec<(TaskId, KStr, Finish)>,
}

/// What to do with one task. Every task is active at exactly one member of the result.
enum Verdict<'a> {
    /// As the assignor says.
    Go,
    /// Stays active at this member meanwhile.
    Hold(&'a KStr),
}

/// Refines the assignor's target (decision 8):
///
/// - Stateless tasks, tasks that stay, and tasks that move inside a process go where the target has them.
/// - A task whose new owner cannot report its offsets moves at once.
/// - Any other stateful task stays with its present owner until a member of the new owner's process lags by at most
///   `acceptable_lag`, or until the deadline. Meanwhile the new owner has a warm-up, at most `max_warmups` in the
///   group; a standby or warm-up that its process holds already takes the place of one.
/// - A task that nobody runs goes to the member with the least lag, and is warmed up from there.
/// - The old owner's process holds no second copy while it runs the task.
pub fn refine(input: &WarmupInput<'_>) -> Refined {
    let mut refined = Refined { target: input.target.clone(), ..Refined::default() };
    if input.max_warmups == 0 {
        return refined;
    }
    let holders = Holders::new(input);
    let mut held = Vec::new();
    for (member_id, tasks) in input.target {
        for task in tasks_of(&tasks.active).filter(|task| holders.stateful.contains(&task.subtopology)) {
            if let Verdict::Hold(owner) = holders.judge(&task, member_id, &mut refined) {
                held.push((task, member_id, owner));
            }
        }
    }
    held.sort();
    for (task, to, owner) in &held {
        holders.hold_back(task, to, owner, &mut refined.target);
    }
    holders.place_warmups(&held, &mut refined);
    refined
}

/// Present holders of stateful tasks, and the rules over them.
struct Holders<'a> {
    input: &'a WarmupInput<'a>,
    stateful: BTreeSet<&'a KStr>,
    active: BTreeMap<TaskId, &'a KStr>,
    /// Standbys and warm-ups.
    copies: BTreeMap<TaskId, Vec<&'a KStr>>,
    /// Standbys of the target.
    target_standbys: BTreeMap<TaskId, Vec<&'a KStr>>,
    processes: BTreeMap<&'a KStr, Vec<&'a KStr>>,
}

impl<'a> Holders<'a> {
    fn new(input: &'a WarmupInput<'a>) -> Self {
        let stateful = input.subtopologies.iter().filter(|each| each.stateful).map(|each| &each.id).collect();
        let mut holders = Holders {
            input,
            stateful,
            active: BTreeMap::new(),
            copies: BTreeMap::new(),
            target_standbys: BTreeMap::new(),
            processes: BTreeMap::new(),
        };
        for (id, member) in input.members {
            holders.processes.entry(&member.process_id).or_default().push(id);
            holders.active.extend(tasks_of(&member.current.active).map(|task| (task, id)));
            for task in tasks_of(&member.current.standby).chain(tasks_of(&member.current.warmup)) {
                holders.copies.entry(task).or_default().push(id);
            }
        }
        for (id, tasks) in input.target {
            for task in tasks_of(&tasks.standby) {
                holders.target_standbys.entry(task).or_default().push(id);
            }
        }
        holders
    }

    fn process_of(&self, member_id: &KStr) -> Option<&'a KStr> {
        self.input.members.get(member_id).map(|member| &member.process_id)
    }

    /// The members of the process that `member_id` belongs to.
    fn siblings(&self, member_id: &KStr) -> &[&'a KStr] {
        let process = self.process_of(member_id).and_then(|process| self.processes.get(process));
        process.map_or(&[], |members| members)
    }

    /// Decides about one task and records the move in `refined.warmups` unless the task is where it belongs.
    fn judge(&self, task: &TaskId, to: &'a KStr, refined: &mut Refined) -> Verdict<'a> {
        let owner = self.active.get(task).copied();
        if owner == Some(to) {
            return Verdict::Go;
        }
        let previous = self.input.previous.moves.get(task).filter(|each| each.to == *to).map(|each| each.stage);
        let (verdict, finish) = self.may_go(task, to, owner, previous);
        if matches!(verdict, Verdict::Go) {
            if let (Some(Stage::Warming { .. }), Some(finish)) = (previous, finish) {
                refined.finished.push((task.clone(), to.clone(), finish));
            }
            refined.warmups.moves.insert(task.clone(), Move { to: to.clone(), stage: Stage::Released });
        }
        verdict
    }

    fn may_go(
        &self,
        task: &TaskId,
        to: &KStr,
        owner: Option<&'a KStr>,
        previous: Option<Stage>,
    ) -> (Verdict<'a>, Option<Finish>) {
        let reports = self.input.members.get(to).is_some_and(|member| member.can_report);
        let same_process = owner.is_some_and(|owner| self.process_of(owner) == self.process_of(to));
        if !reports || same_process || previous == Some(Stage::Released) {
            return (Verdict::Go, None);
        }
        let lag = self.lowest_lag(task, to);
        if lag.is_some_and(|lag| lag <= self.input.acceptable_lag) {
            return (Verdict::Go, Some(Finish::CaughtUp));
        }
        let Some(owner) = owner else {
            return match self.furthest(task, to) {
                Some(best) => (Verdict::Hold(best), None),
                None => (Verdict::Go, None),
            };
        };
        if let Some(Stage::Warming { lag: lowest, deadline_ms }) = previous
            && self.input.now_ms >= deadline_ms
            && !fell(lag, lowest)
        {
            return (Verdict::Go, Some(Finish::Deadline));
        }
        (Verdict::Hold(owner), None)
    }

    /// The lowest lag that a member of the new owner's process reported: state on disk is shared by a process.
    fn lowest_lag(&self, task: &TaskId, to: &KStr) -> Option<i64> {
        self.siblings(to).iter().filter_map(|id| (self.input.progress)(id, task)?.lag()).min()
    }

    /// The member that is to run a task that nobody runs, unless that is a member of the new owner's process. All restore
    /// from the same changelogs, so the highest offset is the least lag, also when some ends are not known. A holder that
    /// has reported nothing counts as at offset 0.
    fn furthest(&self, task: &TaskId, to: &KStr) -> Option<&'a KStr> {
        let copies = self.copies.get(task).map_or(&[][..], |copies| copies);
        let standing = |id: &KStr| {
            let offset = (self.input.progress)(id, task).map(|progress| progress.offset);
            let holds = copies.iter().any(|copy| *copy == id);
            (holds || offset.is_some()).then(|| (offset.unwrap_or(0), holds))
        };
        let own = self.siblings(to).iter().filter_map(|id| standing(id)).max();
        let best = self.input.members.keys().filter_map(|id| Some((standing(id)?, std::cmp::Reverse(id)))).max()?;
        (Some(best.0) > own).then_some(best.1.0)
    }

    /// Keeps a task active at `owner` instead of `to`, and drops the standby that its process would hold beside it.
    fn hold_back(&self, task: &TaskId, to: &KStr, owner: &KStr, target: &mut StreamsTarget) {
        if let Some(tasks) = target.get_mut(to) {
            remove(&mut tasks.active, task);
        }
        let tasks = target.entry(owner.clone()).or_default();
        insert(&mut tasks.active, task);
        for id in self.target_standbys.get(task).map_or(&[][..], |ids| ids) {
            if self.process_of(id) == self.process_of(owner)
                && let Some(tasks) = target.get_mut(*id)
            {
                remove(&mut tasks.standby, task);
            }
        }
    }

    /// Gives the held tasks their warm-ups: running ones first, then to the new owners with the fewest, in task order.
    fn place_warmups(&self, held: &[(TaskId, &'a KStr, &'a KStr)], refined: &mut Refined) {
        let mut running: BTreeMap<&KStr, usize> = BTreeMap::new();
        let mut places = self.input.max_warmups;
        let mut queues: BTreeMap<&KStr, Vec<&TaskId>> = BTreeMap::new();
        for (task, to, owner) in held {
            let copy = self.copy_in_process(task, to, owner);
            match copy {
                Some((id, Role::Standby)) => self.warm(task, to, id, Role::Standby, refined),
                Some((id, Role::Warmup)) if places > 0 => {
                    places -= 1;
                    *running.entry(*to).or_default() += 1;
                    self.warm(task, to, id, Role::Warmup, refined);
                }
                Some(_) | None => queues.entry(*to).or_default().push(task),
            }
        }
        queues.values_mut().for_each(|queue| queue.reverse());
        while places > 0 {
            let next = queues.iter().filter_map(|(to, queue)| {
                Some((running.get(to).copied().unwrap_or(0), *queue.last()?, *to))
            });
            let Some((_, task, to)) = next.min() else { break };
            places -= 1;
            *running.entry(to).or_default() += 1;
            if let Some(queue) = queues.get_mut(to) {
                queue.pop();
            }
            self.warm(task, to, to, Role::Warmup, refined);
        }
        for (to, queue) in queues {
            for task in queue {
                refined.warmups.moves.insert(task.clone(), Move { to: to.clone(), stage: Stage::Waiting });
            }
        }
    }

    /// A standby or warm-up that the new owner's process holds already, the new owner's own before others.
    fn copy_in_process(&self, task: &TaskId, to: &KStr, owner: &KStr) -> Option<(&'a KStr, Role)> {
        let siblings = self.siblings(to);
        let copies = self.copies.get(task)?.iter().copied().filter(|id| *id != owner && siblings.contains(id));
        let id = copies.min_by_key(|id| (*id != to, *id))?;
        let standby = contains(&self.input.members.get(id)?.current.standby, task);
        Some((id, if standby { Role::Standby } else { Role::Warmup }))
    }

    /// Puts the copy that is warmed up into the target of `holder` and notes the move.
    fn warm(&self, task: &TaskId, to: &KStr, holder: &KStr, role: Role, refined: &mut Refined) {
        let tasks = refined.target.entry(holder.clone()).or_default();
        insert(if role == Role::Standby { &mut tasks.standby } else { &mut tasks.warmup }, task);
        let lag = self.lowest_lag(task, to);
        let previous = self.input.previous.moves.get(task).filter(|each| each.to == *to).map(|each| each.stage);
        let stage = match previous {
            Some(Stage::Warming { lag: lowest, deadline_ms }) if !fell(lag, lowest) => {
                Stage::Warming { lag: lowest, deadline_ms }
            }
            _ => Stage::Warming { lag, deadline_ms: self.input.now_ms.saturating_add(self.input.patience_ms) },
        };
        if !matches!(previous, Some(Stage::Warming { .. })) {
            refined.started.push((task.clone(), to.clone()));
        }
        match refined.warmups.moves.entry(task.clone()) {
            Entry::Vacant(entry) => _ = entry.insert(Move { to: to.clone(), stage }),
            Entry::Occupied(mut entry) => entry.get_mut().stage = stage,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Standby,
    Warmup,
}

/// Whether a lag is a new low.
fn fell(lag: Option<i64>, lowest: Option<i64>) -> bool {
    match (lag, lowest) {
        (Some(lag), Some(lowest)) => lag < lowest,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

fn tasks_of(tasks: &TaskSet) -> impl Iterator<Item = TaskId> {
    tasks.iter().flat_map(|(subtopology, partitions)| {
        partitions.iter().map(|partition| TaskId { subtopology: subtopology.clone(), partition: *partition })
    })
}

fn contains(tasks: &TaskSet, task: &TaskId) -> bool {
    tasks.get(&task.subtopology).is_some_and(|partitions| partitions.contains(&task.partition))
}

fn insert(tasks: &mut TaskSet, task: &TaskId) {
    tasks.entry(task.subtopology.clone()).or_default().insert(task.partition);
}

fn remove(tasks: &mut TaskSet, task: &TaskId) {
    if let Some(partitions) = tasks.get_mut(&task.subtopology) {
        partitions.remove(&task.partition);
        if partitions.is_empty() {
            tasks.remove(&task.subtopology);
        }
    }
}

#[cfg(test)]
mod tests;
