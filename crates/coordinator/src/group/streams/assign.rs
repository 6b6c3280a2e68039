//! The target of a group: the assignor's answer, cut to what members may run (decision 5) and with the moves of stateful
//! tasks held back (decision 8). Also what goes on without a heartbeat: an assignment that was computed off the shard, the
//! end of the initial delay, a warm-up without progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;

use super::Group;
use super::configure::{Configured, configure};
use super::eligible::{self, Restricted};
use super::epochs;
use super::error::Failure;
use super::member::Member;
use super::records;
use super::settings::{Assignor, Settings};
use super::soft::{Reported, Soft};
use super::timers;
use super::topology::Topology;
use crate::assign::warmup::{WarmupInput, Warmups, refine};
use crate::assign::{StreamsInput, StreamsMember, StreamsTarget, TaskAssignment, TaskSet};
use crate::env::Moment;
use crate::group::{AssignmentInput, ComputedTarget, Group as AnyGroup};
use crate::outcome::Effect;
use crate::record::Record;
use crate::shard::Ctx;

/// Members and tasks together up to which an assignor runs under the shard's lock.
const INLINE_LIMIT: usize = 4_000;
/// After an assignor failed off the shard it is tried again.
const RETRY_AFTER_MS: u64 = 1_000;

/// An answer that has not come for so long never will.
const LOST_AFTER_MS: u64 = 60_000;

/// Moves of stateful tasks that are held back. Soft state.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Where tasks shall be in the end; only while something is held back.
    pub ideal: Option<Arc<StreamsTarget>>,
    pub warmups: Warmups,
    /// An assignment or a lag changed since `warmups` was made.
    pub dirty: bool,
    /// What was held back is not known (any more): the assignor has to be asked.
    pub recheck: bool,
}

impl Moves {
    /// Something is being warmed up, or waits for it.
    pub(super) fn is_under_way(&self) -> bool {
        !self.warmups.is_idle()
    }

    /// Forgets everything; the assignor will be asked again.
    pub(super) fn reset(&mut self) {
        *self = Moves { recheck: true, ..Moves::default() };
    }
}

/// An assignment that is computed off the shard. Soft state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Computing {
    group_epoch: i32,
    topology_epoch: i32,
    metadata_hash: i64,
    asked_at: u64,
    failed_at: Option<u64>,
}

impl Computing {
    /// Whether nothing more is to be asked for this epoch now.
    fn covers(&self, group_epoch: i32, now_ms: u64) -> bool {
        match self.failed_at {
            None => self.group_epoch <= group_epoch && now_ms < self.asked_at + LOST_AFTER_MS,
            Some(failed_at) => now_ms < failed_at + RETRY_AFTER_MS,
        }
    }
}

/// A group as it will be after the request at hand: hard state with one member put in or replaced.
pub(super) struct View<'a> {
    pub group: Option<&'a Group>,
    pub soft: &'a Soft,
    pub updated: Option<Updated<'a>>,
}

/// The member of the request at hand.
pub(super) struct Updated<'a> {
    pub member_id: &'a KStr,
    pub member: &'a Member,
    pub reported: Option<&'a Arc<Reported>>,
    pub api_version: i16,
    /// The static member that it takes the place of.
    pub replaces: Option<&'a KStr>,
}

impl<'a> View<'a> {
    /// By id, ascending.
    pub(super) fn members(&self) -> Vec<(&'a KStr, &'a Member)> {
        let mut members: Vec<_> = self.group.iter().flat_map(|group| &group.members).collect();
        if let Some(updated) = &self.updated {
            members.retain(|(id, _)| Some(*id) != updated.replaces && *id != updated.member_id);
            let at = members.partition_point(|(id, _)| *id < updated.member_id);
            members.insert(at, (updated.member_id, updated.member));
        }
        members
    }

    /// The target that is in force; a static member has that of the one it replaces.
    pub(super) fn target(&self, member_id: &KStr) -> Option<&'a Arc<TaskAssignment>> {
        let targets = &self.group?.targets;
        let replaced = self.updated.as_ref().filter(|updated| updated.member_id == member_id);
        targets.get(replaced.and_then(|updated| updated.replaces).unwrap_or(member_id))
    }

    fn reported(&self, member_id: &KStr) -> Option<&Arc<Reported>> {
        match &self.updated {
            Some(updated) if updated.member_id == member_id && updated.reported.is_some() => updated.reported,
            _ => self.soft.members.get(member_id).map(|soft| &soft.reported),
        }
    }

    fn api_version(&self, member_id: &KStr) -> Option<i16> {
        match &self.updated {
            Some(updated) if updated.member_id == member_id => Some(updated.api_version),
            _ => self.soft.members.get(member_id).and_then(|soft| soft.api_version),
        }
    }
}

/// What an assignment is made for.
pub(super) struct Terms<'a> {
    pub at: Moment,
    pub settings: &'a Settings<'a>,
    pub topology: &'a Topology,
    pub configured: &'a Configured,
    pub unchanged_since: &'a BTreeMap<i32, BTreeSet<KStr>>,
    pub num_standby_replicas: u32,
}

/// A target to be written.
pub(super) struct Goal {
    pub target: StreamsTarget,
    /// Set while something is held back.
    pub ideal: Option<Arc<StreamsTarget>>,
    pub warmups: Warmups,
}

impl Goal {
    /// Nobody has anything (S 3.7.3).
    fn nothing(view: &View<'_>) -> Goal {
        let target = view.members().into_iter().map(|(id, _)| (id.clone(), TaskAssignment::default()));
        Goal { target: target.collect(), ideal: None, warmups: Warmups::default() }
    }

    /// Whether some member's target is another one than before.
    pub(super) fn differs(&self, view: &View<'_>) -> bool {
        self.target.iter().any(|(id, target)| view.target(id).is_none_or(|before| **before != *target))
    }

    /// Target records for those whose target changed or who had none (S 3.7.3).
    pub(super) fn write(&self, view: &View<'_>, group_id: &KStr, records: &mut Vec<Record>) {
        for (member_id, target) in &self.target {
            if view.target(member_id).is_none_or(|before| **before != *target) {
                records.push(records::target(group_id, member_id, target));
            }
        }
    }
}

/// How a new target comes about.
pub(super) enum Assigned {
    Now(Goal),
    /// It is being computed; the old one stays in force.
    Later(Option<Effect>, Computing),
}

/// The target for `group_epoch`. Small groups, and those whose topology was just replaced, get it at once.
///
/// # Errors
/// UNKNOWN_SERVER_ERROR if the assignor fails (S 5).
pub(super) fn assign(
    view: &View<'_>,
    terms: &Terms<'_>,
    group_id: &KStr,
    group_epoch: i32,
    at_once: bool,
) -> Result<Assigned, Failure> {
    if !terms.configured.is_ready() {
        return Ok(Assigned::Now(Goal::nothing(view)));
    }
    if !at_once && size(view, terms) > INLINE_LIMIT {
        return Ok(later(view, terms, group_id, group_epoch));
    }
    let (input, restricted) = input(view, terms);
    let ideal = terms.settings.assignor().assign(&input).map_err(|_| Failure::unknown())?;
    Ok(Assigned::Now(aim(view, terms, &input, &restricted, ideal)))
}

fn later(view: &View<'_>, terms: &Terms<'_>, group_id: &KStr, group_epoch: i32) -> Assigned {
    if let Some(computing) = view.soft.computing.filter(|each| each.covers(group_epoch, terms.at.mono_ms)) {
        return Assigned::Later(None, computing);
    }
    let computing = Computing {
        group_epoch,
        topology_epoch: terms.topology.epoch,
        metadata_hash: terms.configured.metadata_hash,
        asked_at: terms.at.mono_ms,
        failed_at: None,
    };
    let work = Work { assignor: terms.settings.assignor(), input: input(view, terms).0 };
    let group_id = group_id.clone();
    let effect = Effect::ComputeAssignment { group_id, group_epoch, input: Arc::new(work) };
    Assigned::Later(Some(effect), computing)
}

/// An assignor with its input, to run on any thread.
#[derive(Debug)]
struct Work {
    assignor: Assignor,
    input: StreamsInput,
}

impl AssignmentInput for Work {
    fn compute(&self) -> Arc<ComputedTarget> {
        let target = self.assignor.assign(&self.input).map_err(|error| error.to_string());
        Arc::new(ComputedTarget::Streams(target))
    }
}

/// The group as assignors see it, and which members may not run everything.
fn input(view: &View<'_>, terms: &Terms<'_>) -> (StreamsInput, Restricted) {
    let mut restricted = Restricted::new();
    let mut members = Vec::new();
    for (member_id, member) in view.members() {
        let target = view.target(member_id).map(|target| &**target);
        if let Some(allowed) = eligible::allowed(member, target, terms.topology, terms.unchanged_since) {
            restricted.insert(member_id.clone(), allowed);
        }
        let reported = view.reported(member_id);
        members.push(StreamsMember {
            member_id: member_id.clone(),
            process_id: member.metadata.process_id.clone(),
            instance_id: member.metadata.instance_id.clone(),
            rack_id: member.metadata.rack_id.clone(),
            client_tags: member.metadata.client_tags.clone(),
            active: member.assigned.active_set(),
            standby: member.assigned.standby.clone(),
            warmup: member.assigned.warmup.clone(),
            task_offsets: reported.map(|reported| reported.offsets.clone()).unwrap_or_default(),
            task_end_offsets: reported.map(|reported| reported.end_offsets.clone()).unwrap_or_default(),
        });
    }
    let mut input = StreamsInput {
        members,
        subtopologies: terms.configured.for_assignor(),
        num_standby_replicas: terms.num_standby_replicas,
        rack_aware_tags: terms.settings.tags().to_vec(),
    };
    eligible::forget_foreign(&mut input, &restricted);
    (input, restricted)
}

/// From where tasks shall be in the end to what members are to run now.
fn aim(
    view: &View<'_>,
    terms: &Terms<'_>,
    input: &StreamsInput,
    restricted: &Restricted,
    mut ideal: StreamsTarget,
) -> Goal {
    only_members(&mut ideal, input);
    eligible::enforce(&mut ideal, input, restricted);
    held_back(view, terms, input, restricted, Arc::new(ideal))
}

/// Members may have joined or left since the target was computed.
fn only_members(target: &mut StreamsTarget, input: &StreamsInput) {
    target.retain(|id, _| input.members.binary_search_by(|member| member.member_id.cmp(id)).is_ok());
    for member in &input.members {
        if !target.contains_key(&member.member_id) {
            target.insert(member.member_id.clone(), TaskAssignment::default());
        }
    }
}

/// Decision 8.
fn held_back(
    view: &View<'_>,
    terms: &Terms<'_>,
    input: &StreamsInput,
    restricted: &Restricted,
    ideal: Arc<StreamsTarget>,
) -> Goal {
    let members = view.members();
    let cannot_report: BTreeSet<KStr> =
        members.iter().map(|(id, _)| (*id).clone()).filter(|id| view.api_version(id) == Some(0)).collect();
    let mut revoking: BTreeMap<KStr, TaskSet> = members
        .iter()
        .filter(|(_, member)| !member.pending.active.is_empty())
        .map(|(id, member)| ((*id).clone(), member.pending.active_set()))
        .collect();
    for (member_id, allowed) in restricted {
        if let Some(tasks) = revoking.get_mut(member_id) {
            tasks.retain(|id, _| allowed.contains(id));
        }
    }
    let refined = refine(&WarmupInput {
        group: input,
        target: &ideal,
        cannot_report: &cannot_report,
        revoking: &revoking,
        max_warmups: terms.settings.num_warmup_replicas(),
        acceptable_lag: terms.settings.acceptable_recovery_lag(),
        now_ms: terms.at.mono_ms,
        patience_ms: terms.settings.warmup_patience_ms(),
        previous: &view.soft.moves.warmups,
    });
    let ideal = (!refined.warmups.is_idle()).then_some(ideal);
    Goal { target: refined.target, ideal, warmups: refined.warmups }
}

/// The target as it should be now that assignments or lags changed, without asking the assignor; none if nothing is held
/// back. After a failover the assignor is asked once, since what was held back is not known any more.
pub(super) fn progress(view: &View<'_>, terms: &Terms<'_>) -> Option<Goal> {
    let moves = &view.soft.moves;
    if !terms.configured.is_ready() {
        return None;
    }
    if let Some(ideal) = &moves.ideal {
        let news = view.updated.as_ref();
        let news = news.is_some_and(|updated| updated.reported.is_some() || updated.replaces.is_some());
        if !moves.dirty && !news {
            return None;
        }
        let (input, restricted) = input(view, terms);
        let mut ideal = Arc::clone(ideal);
        // A static member that came back under another id stands where the one before stood.
        if let Some(updated) = &view.updated
            && let Some(replaced) = updated.replaces
            && let Some(target) = Arc::make_mut(&mut ideal).remove(replaced)
        {
            Arc::make_mut(&mut ideal).insert(updated.member_id.clone(), target);
        }
        if ideal.len() != input.members.len() || input.members.iter().any(|each| !ideal.contains_key(&each.member_id)) {
            only_members(Arc::make_mut(&mut ideal), &input);
        }
        return Some(held_back(view, terms, &input, &restricted, ideal));
    }
    if !moves.recheck || terms.settings.num_warmup_replicas() == 0 || size(view, terms) > INLINE_LIMIT {
        return None;
    }
    let (input, restricted) = input(view, terms);
    let ideal = terms.settings.assignor().assign(&input).ok()?;
    Some(aim(view, terms, &input, &restricted, ideal))
}

/// Whether a group that is too large for `progress` has to be assigned anew after a failover, since tasks are being warmed
/// up and for whom is not known any more.
pub(super) fn lost_sight(view: &View<'_>, terms: &Terms<'_>) -> bool {
    view.soft.moves.recheck
        && view.group.is_some_and(|group| group.warming > 0)
        && terms.configured.is_ready()
        && size(view, terms) > INLINE_LIMIT
}

fn size(view: &View<'_>, terms: &Terms<'_>) -> usize {
    view.group.map_or(0, |group| group.members.len()) + 1 + terms.configured.tasks()
}

/// Keeps what was found out for the next time, and arms the timer of the earliest warm-up without progress.
pub(super) fn keep(
    soft: &mut Soft,
    timers: &mut crate::timer::Timers<crate::shard::Timer>,
    group_id: &KStr,
    goal: Goal,
) -> StreamsTarget {
    timers::set_warmup(timers, group_id, goal.warmups.next_deadline_ms());
    soft.moves = Moves { ideal: goal.ideal, warmups: goal.warmups, dirty: false, recheck: false };
    goal.target
}

/// The answer to `Effect::ComputeAssignment`. It is used as long as the topology is the one it was computed for; if the
/// group moved on meanwhile it is the assignment of the epoch it was computed for, and another one follows.
pub(crate) fn assignment_ready(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    group_epoch: i32,
    target: &Result<StreamsTarget, String>,
) {
    let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { return };
    let Some(soft) = ctx.soft.streams.get_mut(group_id) else { return };
    let Some(computing) = soft.computing.filter(|computing| computing.group_epoch == group_epoch) else { return };
    let Ok(ideal) = target else {
        soft.computing = Some(Computing { failed_at: Some(ctx.at.mono_ms), ..computing });
        return;
    };
    soft.computing = None;
    let (Some(topology), Some(configured)) = (group.topology.clone(), soft.configured.clone()) else { return };
    let hashes = [group.metadata_hash, configured.metadata_hash];
    let same = topology.epoch == computing.topology_epoch && hashes == [computing.metadata_hash; 2];
    if !same || !configured.is_ready() || group_epoch <= group.assignment_epoch || group_epoch > group.epoch {
        return;
    }
    let settings = Settings::of(ctx.env.config, group_id);
    let goal = {
        let view = View { group: Some(group), soft, updated: None };
        let terms = Terms {
            at: ctx.at,
            settings: &settings,
            topology: &topology,
            configured: &configured,
            unchanged_since: &soft.unchanged_since,
            num_standby_replicas: settings.num_standby_replicas() as u32,
        };
        let (input, restricted) = input(&view, &terms);
        let goal = aim(&view, &terms, &input, &restricted, ideal.clone());
        goal.write(&view, group_id, &mut ctx.out.records);
        goal
    };
    ctx.out.records.push(records::target_metadata(group_id, group_epoch, ctx.at.wall_ms));
    keep(soft, &mut ctx.soft.timers, group_id, goal);
}

/// The initial rebalance delay is over: the target is computed for all members, with the configuration of the last group
/// record (S 3.6.3). Without a resolved topology in memory the next heartbeat computes (S 3.6.4), unless the delay is the
/// adaptive one (decision 14).
pub(super) fn initial_delay_ended(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { return };
    let Some(soft) = ctx.soft.streams.get_mut(group_id) else { return };
    let adaptive = soft.delay_ends_at.take().is_some();
    if group.members.is_empty() || group.assignment_epoch >= group.epoch {
        return;
    }
    let Some(topology) = group.topology.clone() else { return };
    let known = if adaptive { soft.configured.clone() } else { soft.configured().cloned() };
    let configured = match known {
        Some(configured) => configured,
        None if adaptive => {
            let matches = soft.patterns.matches();
            match configure(&topology, group.metadata_hash, ctx.env.topics, matches) {
                Ok(configured) if soft.patterns.cover(&topology) => Arc::new(configured),
                _ => return,
            }
        }
        None => return,
    };
    let settings = Settings::of(ctx.env.config, group_id);
    if epochs::assignment_delayed(group, &settings, &configured, group.members.len(), ctx.at.wall_ms).is_some() {
        return;
    }
    let outcome = {
        let view = View { group: Some(group), soft, updated: None };
        let terms = Terms {
            at: ctx.at,
            settings: &settings,
            topology: &topology,
            configured: &configured,
            unchanged_since: &soft.unchanged_since,
            num_standby_replicas: epochs::recorded_standby_replicas(group, &settings),
        };
        // An assignor that fails is asked again by the next heartbeat, which can answer with the error.
        let Ok(outcome) = assign(&view, &terms, group_id, group.epoch, false) else { return };
        if let Assigned::Now(goal) = &outcome {
            goal.write(&view, group_id, &mut ctx.out.records);
        }
        outcome
    };
    match outcome {
        Assigned::Now(goal) => {
            ctx.out.records.push(records::target_metadata(group_id, group.epoch, ctx.at.wall_ms));
            keep(soft, &mut ctx.soft.timers, group_id, goal);
        }
        Assigned::Later(effect, computing) => {
            soft.computing = Some(computing);
            ctx.out.effects.extend(effect);
        }
    }
}

/// A warm-up made no progress for too long: its task moves anyway, with a new group epoch (decision 8).
pub(super) fn warmup_overdue(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { return };
    let Some(soft) = ctx.soft.streams.get_mut(group_id) else { return };
    soft.moves.dirty = true;
    let (Some(topology), Some(configured)) = (group.topology.clone(), soft.configured.clone()) else { return };
    // The next heartbeat computes anew anyway.
    if group.epoch > group.assignment_epoch || configured.metadata_hash != group.metadata_hash {
        return;
    }
    let settings = Settings::of(ctx.env.config, group_id);
    let view = View { group: Some(group), soft, updated: None };
    let terms = Terms {
        at: ctx.at,
        settings: &settings,
        topology: &topology,
        configured: &configured,
        unchanged_since: &soft.unchanged_since,
        num_standby_replicas: epochs::recorded_standby_replicas(group, &settings),
    };
    let Some(goal) = progress(&view, &terms) else { return };
    if goal.differs(&view) {
        let epoch = group.epoch + 1;
        let configs = group.assignment_configs.as_ref();
        let (hash, validated) = (group.metadata_hash, group.validated_topology_epoch);
        ctx.out.records.push(records::group(group_id, epoch, hash, validated, configs, Some(group)));
        goal.write(&view, group_id, &mut ctx.out.records);
        ctx.out.records.push(records::target_metadata(group_id, epoch, ctx.at.wall_ms));
    }
    keep(soft, &mut ctx.soft.timers, group_id, goal);
}
