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

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::{
    StreamsInput, StreamsMember, StreamsTarget, TaskId, TaskSet, contains_task, insert_task, remove_task, tasks_of,
};
use crate::map::Map;

/// The client of Kafka 4.4 learns where a changelog ends with the first records it restores. Of one that is empty, or that
/// its disk has already, it never knows, and says so ([`UNKNOWN`]). When its offset stands still for so long meanwhile
/// there is nothing to restore. Five reports at the interval that members are asked for during a warm-up.
const STANDSTILL_MS: u64 = 5_000;
/// How members report an offset that they do not know.
const UNKNOWN: i64 = i64::MAX;

/// What a refinement is made from.
pub struct WarmupInput<'a> {
    /// As for the assignor, with the present assignments and reports; members by id, ascending.
    pub group: &'a StreamsInput,
    /// Of the assignor: where tasks shall be in the end. Every member has an entry.
    pub target: &'a StreamsTarget,
    /// Members that speak heartbeat v0: moves to them are not held back.
    pub cannot_report: &'a BTreeSet<KStr>,
    /// Active tasks that members were told to give up and have not given up yet, by member.
    pub revoking: &'a BTreeMap<KStr, TaskSet>,
    /// `streams.num.warmup.replicas`: warm-ups of the group at a time; 0 turns the refinement off.
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
        /// The offset it has while the end is not known to the one that restores it.
        standing_at: Option<i64>,
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

/// Refines the assignor's target (decision 8):
///
/// - Stateless tasks, tasks that stay, and tasks that move inside a process go where the target has them.
/// - A task whose new owner cannot report its offsets moves at once.
/// - Any other stateful task stays with its present owner until a member of the new owner's process lags by at most
///   `acceptable_lag`, or has nothing to restore, or until the deadline. Meanwhile the new owner has a warm-up, at most `max_warmups` in the
///   group; a standby or warm-up that its process holds already takes the place of one.
/// - A task that nobody runs goes to the member with the least lag, and is warmed up from there.
/// - The process that runs a task meanwhile holds no second copy of it.
pub fn refine(input: &WarmupInput<'_>) -> Refined {
    let mut refined = Refined { target: input.target.clone(), ..Refined::default() };
    if input.max_warmups == 0 {
        return refined;
    }
    let group = Present::new(input);
    let mut held = Vec::new();
    for (member_id, tasks) in input.target {
        let Some(to) = group.members.get(member_id).copied() else {
            continue;
        };
        for task in tasks_of(&tasks.active).filter(|task| group.stateful.contains(&task.subtopology)) {
            if let Some(owner) = group.judge(&task, to, &mut refined) {
                held.push(Held { task, to, owner });
            }
        }
    }
    held.sort_by(|a, b| a.task.cmp(&b.task));
    let standbys = standbys_of(input.target);
    for each in &held {
        group.hold_back(each, &standbys, &mut refined.target);
    }
    group.place_warmups(&held, &mut refined);
    refined
}

/// A move that has to wait.
struct Held<'a> {
    task: TaskId,
    to: &'a StreamsMember,
    /// Runs the task meanwhile.
    owner: &'a StreamsMember,
}

/// Who holds what now, and the rules over it.
struct Present<'a> {
    input: &'a WarmupInput<'a>,
    stateful: BTreeSet<&'a KStr>,
    members: BTreeMap<&'a KStr, &'a StreamsMember>,
    processes: Map<&'a KStr, Vec<&'a StreamsMember>>,
    active: Map<TaskId, &'a StreamsMember>,
    revoking: Map<TaskId, &'a StreamsMember>,
    /// Members that hold the task as standby or warm-up, or reported an offset of it.
    copies: Map<TaskId, Vec<&'a StreamsMember>>,
}

impl<'a> Present<'a> {
    fn new(input: &'a WarmupInput<'a>) -> Self {
        let mut group = Present {
            input,
            stateful: input.group.subtopologies.iter().filter(|each| each.stateful).map(|each| &each.id).collect(),
            members: BTreeMap::new(),
            processes: Map::default(),
            active: Map::default(),
            revoking: Map::default(),
            copies: Map::default(),
        };
        for member in &input.group.members {
            group.members.insert(&member.member_id, member);
            group.processes.entry(&member.process_id).or_default().push(member);
            group.active.extend(tasks_of(&member.active).map(|task| (task, member)));
            if let Some(tasks) = input.revoking.get(&member.member_id) {
                group.revoking.extend(tasks_of(tasks).map(|task| (task, member)));
            }
            let held = tasks_of(&member.standby).chain(tasks_of(&member.warmup));
            let reported = member.task_offsets.keys().filter(|task| !holds(member, task)).cloned();
            for task in held.chain(reported) {
                group.copies.entry(task).or_default().push(member);
            }
        }
        group
    }

    /// Decides about one task. Yields the member that is to run it meanwhile if it has to wait; notes it as let go if it
    /// has not arrived yet.
    fn judge(&self, task: &TaskId, to: &'a StreamsMember, refined: &mut Refined) -> Option<&'a StreamsMember> {
        let active = self.active.get(task).copied();
        if active.is_some_and(|owner| owner.member_id == to.member_id) {
            return None;
        }
        let previous = self.previous(task, to);
        match self.may_go(task, to, active, previous) {
            Ok(finish) => {
                if let (Some(Stage::Warming { .. }), Some(finish)) = (previous, finish) {
                    refined.finished.push((task.clone(), to.member_id.clone(), finish));
                }
                let released = Move { to: to.member_id.clone(), stage: Stage::Released };
                refined.warmups.moves.insert(task.clone(), released);
                None
            }
            Err(owner) => Some(owner),
        }
    }

    /// What is remembered of this very move.
    fn previous(&self, task: &TaskId, to: &StreamsMember) -> Option<Stage> {
        self.input.previous.moves.get(task).filter(|each| each.to == to.member_id).map(|each| each.stage)
    }

    /// Whether the task may move now, and if warming up came to its end, how; else who runs it meanwhile.
    fn may_go(
        &self,
        task: &TaskId,
        to: &StreamsMember,
        active: Option<&'a StreamsMember>,
        previous: Option<Stage>,
    ) -> Result<Option<Finish>, &'a StreamsMember> {
        if self.input.cannot_report.contains(&to.member_id) || previous == Some(Stage::Released) {
            return Ok(None);
        }
        let revoking = self.revoking.get(task).copied().filter(|_| active.is_none());
        let owner = active.or(revoking);
        if owner.is_some_and(|owner| owner.process_id == to.process_id) {
            return Ok(None);
        }
        let lag = self.lowest_lag(task, to);
        if lag.is_some_and(|lag| lag <= self.input.acceptable_lag) {
            return Ok(Some(Finish::CaughtUp));
        }
        let Some(owner) = owner else {
            return self.furthest(task, to).map_or(Ok(None), Err);
        };
        // After a failover nothing is remembered: somebody told the owner to give the task up, so it had been let go.
        if revoking.is_some() && self.copy_in_process(task, to).is_some() {
            return Ok(None);
        }
        match previous {
            Some(Stage::Warming { lag: lowest, standing_at, deadline_ms })
                if self.input.now_ms >= deadline_ms && !fell(lag, lowest) =>
            {
                let stood_still = standing_at.is_some() && standing_at == self.standing_at(task, to);
                Ok(Some(if stood_still { Finish::CaughtUp } else { Finish::Deadline }))
            }
            _ => Err(owner),
        }
    }

    /// The lowest lag that a member of the new owner's process reported: state on disk is shared by a process.
    fn lowest_lag(&self, task: &TaskId, to: &StreamsMember) -> Option<i64> {
        let copies = self.copies.get(task)?.iter().filter(|member| member.process_id == to.process_id);
        copies.filter_map(|member| reported_lag(member, task)).min()
    }

    /// The member that is to run a task that nobody runs, unless that is one of the new owner's process. All restore from
    /// the same changelogs, so the highest offset is the least lag, also where ends are not known. A holder that has
    /// reported nothing counts as at offset 0.
    fn furthest(&self, task: &TaskId, to: &StreamsMember) -> Option<&'a StreamsMember> {
        let standing =
            |member: &StreamsMember| (known(member.task_offsets.get(task)).unwrap_or(0), holds(member, task));
        let copies = self.copies.get(task)?;
        let own = copies.iter().filter(|each| each.process_id == to.process_id).map(|each| standing(each)).max();
        let best = copies.iter().copied().max_by_key(|each| (standing(each), Reverse(&each.member_id)))?;
        (Some(standing(best)) > own).then_some(best)
    }

    /// Where the copy in the new owner's process is, if the one that restores it does not know how far it has to go.
    fn standing_at(&self, task: &TaskId, to: &StreamsMember) -> Option<i64> {
        let copies = self.copies.get(task)?.iter().filter(|member| member.process_id == to.process_id);
        let of_unknown_end = copies.filter(|member| member.task_end_offsets.get(task) == Some(&UNKNOWN));
        of_unknown_end.filter_map(|member| known(member.task_offsets.get(task))).max()
    }

    /// A standby or warm-up that the new owner's process holds already, the new owner's own before others.
    fn copy_in_process(&self, task: &TaskId, to: &StreamsMember) -> Option<&'a StreamsMember> {
        let copies = self.copies.get(task)?.iter().copied();
        let held = copies.filter(|member| member.process_id == to.process_id && holds(member, task));
        held.min_by_key(|member| (member.member_id != to.member_id, &member.member_id))
    }

    /// Keeps a task active at its owner, and drops the standby that the owner's process would hold beside it.
    fn hold_back(&self, held: &Held<'_>, standbys: &Map<TaskId, Vec<&KStr>>, target: &mut StreamsTarget) {
        if let Some(tasks) = target.get_mut(&held.to.member_id) {
            remove_task(&mut tasks.active, &held.task);
        }
        insert_task(&mut target.entry(held.owner.member_id.clone()).or_default().active, &held.task);
        for id in standbys.get(&held.task).into_iter().flatten() {
            if self.members.get(id).is_some_and(|member| member.process_id == held.owner.process_id)
                && let Some(tasks) = target.get_mut(*id)
            {
                remove_task(&mut tasks.standby, &held.task);
            }
        }
    }

    /// Gives held moves their warm-ups: running ones first, then to the new owners with the fewest, in task order.
    fn place_warmups(&self, held: &[Held<'_>], refined: &mut Refined) {
        let mut places = self.input.max_warmups;
        let mut running: BTreeMap<&KStr, usize> = BTreeMap::new();
        let mut queues: BTreeMap<&KStr, Vec<&Held<'_>>> = BTreeMap::new();
        for each in held {
            let to = &each.to.member_id;
            let copy = self.copy_in_process(&each.task, each.to);
            let was_warming = matches!(self.previous(&each.task, each.to), Some(Stage::Warming { .. }));
            if let Some(holder) = copy
                && contains_task(&holder.standby, &each.task)
            {
                self.warm(each, holder, Role::Standby, refined);
            } else if places > 0 && (copy.is_some() || was_warming) {
                places -= 1;
                *running.entry(to).or_default() += 1;
                self.warm(each, copy.unwrap_or(each.to), Role::Warmup, refined);
            } else {
                queues.entry(to).or_default().push(each);
            }
        }
        queues.values_mut().for_each(|queue| queue.reverse());
        for _ in 0..places {
            let heads = queues.iter().filter_map(|(to, queue)| Some((to, &queue.last()?.task)));
            let next = heads.min_by_key(|(to, task)| (running.get(*to).copied().unwrap_or(0), *task));
            let Some(to) = next.map(|(to, _)| *to) else {
                break;
            };
            *running.entry(to).or_default() += 1;
            if let Some(each) = queues.get_mut(to).and_then(Vec::pop) {
                self.warm(each, each.to, Role::Warmup, refined);
            }
        }
        for each in queues.into_values().flatten() {
            let waiting = Move { to: each.to.member_id.clone(), stage: Stage::Waiting };
            refined.warmups.moves.insert(each.task.clone(), waiting);
        }
    }

    /// Gives the copy that is warmed up to `holder`, and notes the move.
    fn warm(&self, held: &Held<'_>, holder: &StreamsMember, role: Role, refined: &mut Refined) {
        let tasks = refined.target.entry(holder.member_id.clone()).or_default();
        insert_task(if role == Role::Standby { &mut tasks.standby } else { &mut tasks.warmup }, &held.task);
        let lag = self.lowest_lag(&held.task, held.to);
        let standing_at = self.standing_at(&held.task, held.to).filter(|_| lag.is_none());
        let stage = match self.previous(&held.task, held.to) {
            Some(stage @ Stage::Warming { lag: lowest, standing_at: before, .. })
                if !fell(lag, lowest) && standing_at == before =>
            {
                stage
            }
            previous => {
                if !matches!(previous, Some(Stage::Warming { .. })) {
                    refined.started.push((held.task.clone(), held.to.member_id.clone()));
                }
                let patience_ms = match standing_at {
                    Some(_) => STANDSTILL_MS.min(self.input.patience_ms),
                    None => self.input.patience_ms,
                };
                let deadline_ms = self.input.now_ms.saturating_add(patience_ms);
                Stage::Warming { lag, standing_at, deadline_ms }
            }
        };
        let warming = Move { to: held.to.member_id.clone(), stage };
        refined.warmups.moves.insert(held.task.clone(), warming);
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

/// What is missing of the state; unknown unless both ends were reported.
fn reported_lag(member: &StreamsMember, task: &TaskId) -> Option<i64> {
    let (offset, end) = (known(member.task_offsets.get(task))?, known(member.task_end_offsets.get(task))?);
    Some(end.saturating_sub(offset).max(0))
}

fn known(reported: Option<&i64>) -> Option<i64> {
    reported.copied().filter(|offset| *offset != UNKNOWN)
}

/// As standby or warm-up.
fn holds(member: &StreamsMember, task: &TaskId) -> bool {
    contains_task(&member.standby, task) || contains_task(&member.warmup, task)
}

fn standbys_of(target: &StreamsTarget) -> Map<TaskId, Vec<&KStr>> {
    let mut standbys: Map<TaskId, Vec<&KStr>> = Map::default();
    for (id, tasks) in target {
        for task in tasks_of(&tasks.standby) {
            standbys.entry(task).or_default().push(id);
        }
    }
    standbys
}
