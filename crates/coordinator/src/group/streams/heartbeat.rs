//! A join or heartbeat from beginning to end (S 2.2). Each step is another file's; what is here is their order.
//!
//! Everything is worked out on a view of the group as it will be. Hard state changes when the records are replayed, soft
//! state in [`super::commit`], once nothing can fail any more.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, TaskIds, TaskOffset};
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;

use super::assign::{self, Assigned, Goal, Terms, Updated, View};
use super::commit::{self, Delay, Learned, Outcome};
use super::configure::Configured;
use super::epochs::{self, Delayed};
use super::error::Failure;
use super::join::{Entrant, Place, Topologies, TopologyChange, check_size};
use super::member::{Member, Owned};
use super::reconcile::reconcile;
use super::settings::{InitialDelay, Settings};
use super::soft::{Reported, Soft};
use super::topology::Topology;
use super::{Group, leave, records, response, timers, validate};
use crate::assign::{TaskAssignment, TaskId};
use crate::command::Caller;
use crate::config::GroupConfigs;
use crate::env::Moment;
use crate::outcome::{Effect, Reply};
use crate::record::Record;
use crate::shard::{Ctx, Soft as ShardSoft};
use crate::topics::TopicImage;

/// StreamsGroupHeartbeat.
pub(crate) fn heartbeat(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &StreamsGroupHeartbeatRequest) {
    let answer = validate::request(request, &ctx.env.config.broker).and_then(|()| match request.member_epoch {
        ..0 => leave::leave(ctx, request),
        0.. => join_or_heartbeat(ctx, caller, request),
    });
    let answer = answer.unwrap_or_else(|failure| {
        ctx.out.records.clear();
        response::error(failure)
    });
    ctx.reply(Reply::StreamsGroupHeartbeat(Box::new(answer)));
}

fn join_or_heartbeat(
    ctx: &mut Ctx<'_, '_>,
    caller: &Caller,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<StreamsGroupHeartbeatResponse, Failure> {
    let place = Place::of(ctx.state, ctx.soft, request)?;
    let config: &GroupConfigs = ctx.env.config;
    let known_member = place.group().and_then(|group| group.members.get_key_value(&request.member_id));
    let beat = Beat {
        at: ctx.at,
        caller,
        request,
        settings: Settings::of(config, &request.group_id),
        topics: ctx.env.topics,
        group: place.group(),
        member_id: known_member.map_or_else(|| request.member_id.to_owned_detached(), |(id, _)| id.clone()),
        members_total: ctx.env.members_total,
    };
    check_size(beat.group, request, config.broker.streams_max_size)?;
    let owned = Owned::of(request);
    let known = known_member.map(|(_, member)| member);
    let entrant = Entrant::find(beat.group, known, request, owned.as_ref())?;

    let nothing = Soft::default();
    let soft = ctx.soft.streams.get(&request.group_id).unwrap_or(&nothing);
    let mut learned = Learned::default();
    let worked_out = beat.work_out(ctx.soft, soft, entrant, owned.as_ref(), &mut ctx.out.records, &mut learned);
    let outcome = match worked_out {
        Ok(outcome) => outcome,
        Err(failure) => {
            commit::keep_learned(&beat, ctx.soft, learned);
            return Err(failure);
        }
    };
    let records = &mut ctx.out.records;
    if let Place::Classic(classic) = place {
        // The tombstones of what the group was come first (S 3.5).
        let at = records.len();
        classic.tombstones(&request.group_id, records);
        let tombstones = records.len() - at;
        records.rotate_right(tombstones);
        crate::group::classic::forget(ctx.soft, &request.group_id);
    }
    Ok(commit::commit(&beat, ctx.soft, &mut ctx.out.effects, outcome))
}

/// One join or heartbeat: what it came with and what it meets.
pub(super) struct Beat<'a> {
    pub at: Moment,
    pub caller: &'a Caller,
    pub request: &'a StreamsGroupHeartbeatRequest,
    pub settings: Settings<'a>,
    pub topics: &'a TopicImage,
    /// None: this join makes it.
    pub group: Option<&'a Group>,
    /// The state's own, or a copy: never a piece of a frame.
    pub member_id: KStr,
    pub members_total: u32,
}

/// The epochs and the target after a request.
struct Course {
    group_epoch: i32,
    assignment_epoch: i32,
    delayed: Option<Delayed>,
    goal: Option<Goal>,
    computing: Option<(assign::Computing, Option<Effect>)>,
}

impl<'a> Beat<'a> {
    pub(super) fn joins(&self) -> bool {
        self.request.member_epoch == 0
    }

    fn group_id(&self) -> &'a KStr {
        &self.request.group_id
    }

    /// Steps 3 to 9 of S 2.2. Writes records in the order of S 3.5; what stays known if a later step fails goes to `learned`.
    fn work_out(
        &self,
        all_soft: &ShardSoft,
        soft: &Soft,
        entrant: Entrant<'a>,
        owned: Option<&Owned>,
        records: &mut Vec<Record>,
        learned: &mut Learned,
    ) -> Result<Outcome<'a>, Failure> {
        let (group_id, member_id) = (self.group_id(), &self.member_id);
        let mut member = entrant.member.clone();
        if let Some((old_id, old)) = entrant.replaced {
            self.replace_static(old_id, old, &member, records);
        }
        let metadata = member.metadata.updated(self.request, self.caller)?;
        let static_request = self.request.instance_id.is_some();
        let is_new = entrant.known.is_none() && entrant.replaced.is_none();
        let mut counts = is_new;
        if let Some(metadata) = metadata {
            counts |= member.metadata.change_counts(&metadata, static_request);
            records.push(records::member(group_id, member_id, &metadata));
            member.metadata = Arc::new(metadata);
        }

        let topologies = Topologies::of(self.group, self.request)?;
        let topology = &topologies.topology;
        if topologies.change != TopologyChange::Kept
            && let Some(sent) = &self.request.topology
        {
            records.push(records::topology(group_id, sent));
        }
        let is_new_topology = topologies.change != TopologyChange::Kept;
        let look = epochs::look_at_topics(self.group, soft, topology, is_new_topology, self.topics)?;
        learned.configured = (look.fresh && !is_new_topology).then(|| Arc::clone(&look.configured));
        let is_stale = member.metadata.topology_epoch < topology.epoch;
        if let Some(owned) = owned.filter(|_| look.configured.is_ready() && !is_stale) {
            check_owned(self.request, owned, &look.configured)?;
        }
        let reported = reported_offsets(self.request, soft, topology)?;
        learned.reported.clone_from(&reported);

        let updated = Updated {
            member_id,
            member: &member,
            reported: reported.as_ref(),
            api_version: self.caller.api_version,
            replaces: entrant.replaced.map(|(id, _)| id),
        };
        let view = View { group: self.group, soft, updated: Some(updated) };
        let unchanged_since = self.unchanged_since(soft, topology, topologies.change);
        let delay = self.initial_delay(all_soft, soft);
        let terms = Terms {
            at: self.at,
            settings: &self.settings,
            topology,
            configured: &look.configured,
            unchanged_since: &unchanged_since,
            num_standby_replicas: self.settings.num_standby_replicas() as u32,
        };
        let needs_epoch = counts || is_new_topology;
        let replaced = topologies.change == TopologyChange::Replaced;
        let course = self.course(&view, &terms, needs_epoch, replaced, delay.is_some(), records)?;
        let next = self.reconciled(&view, &member, &course, delay.is_some(), owned)?;
        if let Some(next) = &next {
            records.push(records::current(group_id, member_id, next));
        }
        let unchanged_since = match unchanged_since {
            Cow::Owned(changed) => Some(changed),
            Cow::Borrowed(_) => None,
        };
        Ok(Outcome {
            // A change of the tasks counts for the answer, not one of the epoch alone (S 6.7.1).
            tasks_changed: next.as_ref().is_some_and(|next| next.assigned != entrant.member.assigned),
            state_changed: next.is_some(),
            endpoint_changed: member.metadata.user_endpoint != entrant.member.metadata.user_endpoint,
            member: next.unwrap_or(member),
            replaced: entrant.replaced.map(|(id, _)| id),
            topology: topologies.topology,
            look,
            is_stale,
            group_epoch: course.group_epoch,
            assignment_epoch: course.assignment_epoch,
            delay,
            delayed: course.delayed,
            goal: course.goal,
            computing: course.computing,
            reported,
            unchanged_since,
        })
    }

    /// S 2.4.3: the new member takes over what the old one had.
    fn replace_static(&self, old_id: &KStr, old: &Member, member: &Member, records: &mut Vec<Record>) {
        let (group_id, member_id) = (self.group_id(), &self.request.member_id);
        records.push(records::current_tombstone(group_id, old_id));
        records.push(records::target_tombstone(group_id, old_id));
        records.push(records::member_tombstone(group_id, old_id));
        records.push(records::member(group_id, member_id, &old.metadata));
        let nothing = TaskAssignment::default();
        let target = self.group.and_then(|group| group.targets.get(old_id));
        records.push(records::target(group_id, member_id, target.map_or(&nothing, |target| target)));
        records.push(records::current(group_id, member_id, member));
    }

    /// The subtopologies that older members still have, after a replacement of the topology (decision 5).
    fn unchanged_since<'s>(
        &self,
        soft: &'s Soft,
        topology: &Topology,
        change: TopologyChange,
    ) -> Cow<'s, BTreeMap<i32, BTreeSet<KStr>>> {
        let before = self.group.and_then(|group| group.topology.as_ref());
        let Some(before) = before.filter(|_| change == TopologyChange::Replaced) else {
            return Cow::Borrowed(&soft.unchanged_since);
        };
        let common = before.common(topology);
        let mut since = soft.unchanged_since.clone();
        since.values_mut().for_each(|ids| ids.retain(|id| common.contains(id)));
        since.insert(before.epoch, common);
        let members = self.group.iter().flat_map(|group| group.members.values());
        let epochs: BTreeSet<i32> = members.map(|member| member.metadata.topology_epoch).collect();
        since.retain(|epoch, _| epochs.contains(epoch));
        Cow::Owned(since)
    }

    /// S 3.6.1, decision 14: armed by a join that meets an empty group; an adaptive one moves with each join.
    fn initial_delay(&self, all_soft: &ShardSoft, soft: &Soft) -> Option<Delay> {
        let now_ms = self.at.mono_ms;
        let running = timers::initial_delay_deadline(&all_soft.timers, self.group_id());
        if let Some(deadline_ms) = running {
            let quiet = match (self.settings.initial_delay(), soft.delay_ends_at) {
                (InitialDelay::Quiet { quiet_ms, .. }, Some(most_ms)) if self.joins() => {
                    Some(((now_ms + quiet_ms).min(most_ms), most_ms))
                }
                _ => None,
            };
            let (deadline_ms, most_ms) = quiet.unwrap_or((deadline_ms, soft.delay_ends_at.unwrap_or(deadline_ms)));
            return Some(Delay { deadline_ms, adaptive_until: soft.delay_ends_at.map(|_| most_ms) });
        }
        if !self.joins() || self.group.is_some_and(|group| !group.members.is_empty()) {
            return None;
        }
        match self.settings.initial_delay() {
            InitialDelay::Fixed(0) => None,
            InitialDelay::Fixed(delay_ms) => Some(Delay { deadline_ms: now_ms + delay_ms, adaptive_until: None }),
            InitialDelay::Quiet { quiet_ms, most_ms } => {
                Some(Delay { deadline_ms: now_ms + quiet_ms, adaptive_until: Some(now_ms + most_ms) })
            }
        }
    }

    /// Decides on a new group epoch (S 3.4) and computes the target (S 3.7).
    fn course(
        &self,
        view: &View<'_>,
        terms: &Terms<'_>,
        needs_epoch: bool,
        topology_replaced: bool,
        waits: bool,
        records: &mut Vec<Record>,
    ) -> Result<Course, Failure> {
        let fresh = Group::default();
        let before = self.group.unwrap_or(&fresh);
        let mut course = Course {
            group_epoch: before.epoch,
            assignment_epoch: before.assignment_epoch,
            delayed: None,
            goal: None,
            computing: None,
        };
        let assigned = before.epoch == before.assignment_epoch;
        let outdated = needs_epoch
            || epochs::outdated(self.group, terms.configured, terms.settings)
            || (assigned && assign::lost_sight(view, terms));
        let up_to_date = !outdated && assigned;
        let progress = if up_to_date { assign::progress(view, terms) } else { None };
        let progressed = progress.as_ref().is_some_and(|goal| goal.differs(view));
        if outdated || progressed {
            course.group_epoch += 1;
            let configs = terms.settings.assignment_configs();
            let (hash, validated) = (terms.configured.metadata_hash, terms.configured.validated_epoch());
            let epoch = course.group_epoch;
            records.push(records::group(self.group_id(), epoch, hash, validated, Some(&configs), self.group));
        }
        if let Some(goal) = progress {
            self.set_target(view, &mut course, goal, progressed, records);
            return Ok(course);
        }
        if waits {
            course.delayed = Some(Delayed::InitialDelay);
        } else if course.group_epoch > course.assignment_epoch {
            let members = before.members.len().max(1);
            let wall_ms = self.at.wall_ms;
            let delayed = epochs::assignment_delayed(before, terms.settings, terms.configured, members, wall_ms);
            if let Some(delayed) = delayed.filter(|_| !topology_replaced) {
                course.delayed = Some(delayed);
                return Ok(course);
            }
            match assign::assign(view, terms, self.group_id(), course.group_epoch, topology_replaced)? {
                Assigned::Now(goal) => self.set_target(view, &mut course, goal, true, records),
                Assigned::Later(effect, computing) => course.computing = Some((computing, effect)),
            }
        }
        Ok(course)
    }

    fn set_target(&self, view: &View<'_>, course: &mut Course, goal: Goal, write: bool, records: &mut Vec<Record>) {
        if write {
            goal.write(view, self.group_id(), records);
            course.assignment_epoch = course.group_epoch;
            records.push(records::target_metadata(self.group_id(), course.assignment_epoch, self.at.wall_ms));
        }
        course.goal = Some(goal);
    }

    /// One step towards the target; while the initial delay runs that is an empty one (S 3.6.2).
    fn reconciled(
        &self,
        view: &View<'_>,
        member: &Member,
        course: &Course,
        waits: bool,
        owned: Option<&Owned>,
    ) -> Result<Option<Member>, Failure> {
        // The steady case: nothing to look up (S 6.3.1).
        if member.is_settled_at(course.assignment_epoch) {
            return Ok(None);
        }
        let nothing = TaskAssignment::default();
        let member_id = &self.member_id;
        let computed = course.goal.as_ref().and_then(|goal| goal.target.get(member_id));
        let target = match computed {
            Some(target) => target,
            None if waits => &nothing,
            None => view.target(member_id).map_or(&nothing, |target| target),
        };
        let fresh = Group::default();
        let holders = &self.group.unwrap_or(&fresh).holders;
        reconcile(member, course.assignment_epoch, target, owned, holders)
    }
}

/// S 2.2.7: owned tasks have to exist.
fn check_owned(request: &StreamsGroupHeartbeatRequest, owned: &Owned, configured: &Configured) -> Result<(), Failure> {
    if owned.is_empty() {
        return Ok(());
    }
    let lists: [&[TaskIds]; 3] = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks]
        .map(|list| list.as_deref().unwrap_or(&[]));
    for tasks in lists.into_iter().flatten() {
        let id = &tasks.subtopology_id;
        let Some(subtopology) = configured.subtopologies.as_ref().and_then(|all| all.get(id)) else {
            return Err(Failure::invalid(format!("Subtopology {id} does not exist in the topology.")));
        };
        let count = subtopology.tasks;
        if let Some(task) = tasks.partitions.iter().find(|task| !(0..count).contains(*task)) {
            return Err(Failure::invalid(format!(
                "Task {task} for subtopology {id} is invalid. Number of tasks for this subtopology: {count}"
            )));
        }
    }
    Ok(())
}

/// S 2.2.8: the offsets that the member reports now, beside those it reported before; none if it reports none.
fn reported_offsets(
    request: &StreamsGroupHeartbeatRequest,
    soft: &Soft,
    topology: &Topology,
) -> Result<Option<Arc<Reported>>, Failure> {
    if request.task_offsets.is_none() && request.task_end_offsets.is_none() {
        return Ok(None);
    }
    let before = soft.members.get(&request.member_id);
    let mut reported = before.map(|member| (*member.reported).clone()).unwrap_or_default();
    for (sent, kept) in
        [(&request.task_offsets, &mut reported.offsets), (&request.task_end_offsets, &mut reported.end_offsets)]
    {
        if let Some(sent) = sent {
            kept.clear();
            for offset in sent {
                keep_offset(offset, topology, kept)?;
            }
        }
    }
    Ok(Some(Arc::new(reported)))
}

fn keep_offset(sent: &TaskOffset, topology: &Topology, kept: &mut BTreeMap<TaskId, i64>) -> Result<(), Failure> {
    let known = topology.subtopologies.get_key_value(&sent.subtopology_id).map(|(id, _)| id.clone());
    let subtopology = known.unwrap_or_else(|| sent.subtopology_id.to_owned_detached());
    let task = TaskId { subtopology, partition: sent.partition };
    if kept.insert(task, sent.offset).is_some() {
        return Err(Failure::invalid(format!(
            "Task offsets contain a duplicate entry for subtopology {} and partition {}.",
            sent.subtopology_id, sent.partition
        )));
    }
    Ok(())
}
