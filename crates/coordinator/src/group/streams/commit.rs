//! What a join or heartbeat changes in memory once it has succeeded, and its answer (S 2.2.10 to 2.2.12, 7, 8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_response::{EndpointToPartitions, Status, StreamsGroupHeartbeatResponse};

use super::assign::{self, Computing, Goal};
use super::configure::Configured;
use super::description::{self, Description};
use super::epochs::{Delayed, Look};
use super::heartbeat::Beat;
use super::intervals::{self, Waits};
use super::member::{Member, MemberState};
use super::soft::{Reported, Soft, SoftMember};
use super::topology::Topology;
use super::{endpoints, response, timers};
use crate::outcome::Effect;
use crate::shard::Soft as ShardSoft;

/// What a request came to.
pub(super) struct Outcome<'a> {
    pub member: Member,
    /// The assigned tasks are others than before.
    pub tasks_changed: bool,
    pub state_changed: bool,
    pub endpoint_changed: bool,
    pub replaced: Option<&'a KStr>,
    pub topology: Arc<Topology>,
    pub look: Look,
    /// The member's topology is behind the group's.
    pub is_stale: bool,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    /// The initial delay runs.
    pub delay: Option<Delay>,
    /// Why there is no new assignment.
    pub delayed: Option<Delayed>,
    pub goal: Option<Goal>,
    pub computing: Option<(Computing, Option<Effect>)>,
    pub reported: Option<Arc<Reported>>,
    pub unchanged_since: Option<BTreeMap<i32, BTreeSet<KStr>>>,
}

/// What a request that is refused leaves behind (S 1.4.4): that the topics were looked at, and the offsets that it reported.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// The group's topology resolved anew.
    pub configured: Option<Arc<Configured>>,
    pub reported: Option<Arc<Reported>>,
}

/// Keeps it. The hash of the topics is compared again by the next heartbeat, which can write what follows from it.
pub(super) fn keep_learned(beat: &Beat<'_>, all_soft: &mut ShardSoft, learned: Learned) {
    let soft = beat.group.and_then(|_| all_soft.streams.get_mut(&beat.request.group_id));
    let Some(soft) = soft else { return };
    if let Some(new) = learned.configured {
        if soft.configured.as_ref().is_some_and(|old| **old != *new) {
            soft.endpoints.changed();
        }
        soft.configured = Some(new);
        soft.provisional = false;
    }
    if let Some(member) = soft.members.get_mut(&beat.request.member_id)
        && let Some(reported) = learned.reported
    {
        member.reported = reported;
        soft.moves.dirty = true;
    }
}

/// The initial rebalance delay, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    pub deadline_ms: u64,
    /// Set for the adaptive one: its latest end.
    pub adaptive_until: Option<u64>,
}

pub(super) fn commit(
    beat: &Beat<'_>,
    all_soft: &mut ShardSoft,
    effects: &mut Vec<Effect>,
    mut outcome: Outcome<'_>,
) -> StreamsGroupHeartbeatResponse {
    let ShardSoft { timers, streams, .. } = all_soft;
    let (request, now_ms) = (beat.request, beat.at.mono_ms);
    // What lives long is a copy, never a piece of a frame.
    if !streams.contains_key(&request.group_id) {
        streams.insert(request.group_id.to_owned_detached(), Soft::default());
    }
    let Some((group_id, soft)) = streams.get_key_value_mut(&request.group_id) else {
        unreachable!("the group was put there just now");
    };
    if let Some(old) = outcome.replaced {
        soft.members.remove(old);
        timers::cancel_member(timers, group_id, old);
    }
    if !soft.members.contains_key(&beat.member_id) {
        soft.members.insert(beat.member_id.clone(), SoftMember::default());
    }
    let endpoints_differ = keep_topology(beat, soft, group_id, effects, &mut outcome);
    if let Some((computing, effect)) = outcome.computing.take() {
        soft.computing = Some(computing);
        effects.extend(effect);
    }
    if let Some(goal) = outcome.goal.take() {
        soft.computing = None;
        assign::keep(soft, timers, group_id, goal);
    }
    soft.moves.dirty |= outcome.state_changed;
    if let Some(delay) = outcome.delay {
        timers::set_initial_delay(timers, group_id, delay.deadline_ms);
        soft.delay_ends_at = delay.adaptive_until;
    }
    let shutdown = ask_for_shutdown(beat, soft);
    let list = endpoint_list(beat, soft, &outcome, endpoints_differ);

    let Some((member_id, member)) = soft.members.get_key_value_mut(&request.member_id) else {
        unreachable!("the member was put there just now");
    };
    member.api_version = Some(beat.caller.api_version);
    if let Some(reported) = outcome.reported.take() {
        member.reported = reported;
    }
    member.endpoints_unknown &= list.is_none();
    timers::renew_session(timers, beat.at, &beat.settings, group_id, member_id);
    if outcome.state_changed {
        if outcome.member.state == MemberState::UnrevokedTasks {
            member.revoking_at_epoch = outcome.member.epoch;
            let timeout_ms = outcome.member.metadata.rebalance_timeout_ms;
            timers::arm_rebalance(timers, beat.at, group_id, member_id, timeout_ms);
        } else {
            timers::cancel_rebalance(timers, group_id, member_id);
        }
    }
    let mut answer = answer(beat, soft, &outcome, shutdown, now_ms);
    answer.endpoint_information_epoch = soft.endpoints.epoch;
    answer.partitions_by_user_endpoint = list.map(|list| endpoints::for_client(&list, beat.caller.api_version));
    answer
}

/// The resolved topology, and what has to be done about its topics. Whether what endpoints show may be different now.
fn keep_topology(
    beat: &Beat<'_>,
    soft: &mut Soft,
    group_id: &KStr,
    effects: &mut Vec<Effect>,
    outcome: &mut Outcome<'_>,
) -> bool {
    let mut differ = false;
    if outcome.look.fresh {
        let new = &outcome.look.configured;
        differ = soft.configured.as_ref().is_some_and(|old| **old != **new);
        soft.configured = Some(Arc::clone(new));
        soft.provisional = beat.group.is_none();
        soft.metadata_fresh = true;
    }
    if let Some(unchanged_since) = outcome.unchanged_since.take() {
        soft.unchanged_since = unchanged_since;
    }
    effects.extend(soft.patterns.ask(group_id, &outcome.topology));
    if !outcome.look.configured.missing.is_empty() {
        let topics = soft.creation.ask(&outcome.look.configured.missing, beat.at.mono_ms);
        if !topics.is_empty() {
            effects.push(Effect::CreateInternalTopics { group_id: group_id.clone(), topics });
        }
    }
    differ
}

/// S 2.7: who asked for a shutdown. The join that makes a group only says it in its own answer.
fn ask_for_shutdown(beat: &Beat<'_>, soft: &mut Soft) -> Option<KStr> {
    let asks = beat.request.shutdown_application;
    if asks && soft.shutdown.is_none() {
        let member_id = beat.request.member_id.to_owned_detached();
        if beat.group.is_none() {
            return Some(member_id);
        }
        soft.shutdown = Some(member_id);
    }
    soft.shutdown.clone()
}

/// Moves the endpoint epoch (S 7.1, decision 27) and yields the list if the member does not have it (S 7.2).
fn endpoint_list(
    beat: &Beat<'_>,
    soft: &mut Soft,
    outcome: &Outcome<'_>,
    topics_differ: bool,
) -> Option<Arc<Vec<EndpointToPartitions>>> {
    let request = beat.request;
    let has_endpoint = outcome.member.metadata.user_endpoint.is_some();
    let others_have = || {
        let mut members = beat.group.iter().flat_map(|group| group.members.values());
        members.any(|member| member.metadata.user_endpoint.is_some())
    };
    let moved = outcome.endpoint_changed
        || (outcome.tasks_changed && has_endpoint)
        || (topics_differ && (has_endpoint || others_have()));
    // The group that a join makes starts at 0 (S 7.7).
    let epoch = soft.endpoints.epoch + i32::from(moved && beat.group.is_some());
    let unknown = soft.members.get(&request.member_id).is_some_and(|member| member.endpoints_unknown);
    let due = epoch != request.endpoint_information_epoch || (unknown && (has_endpoint || others_have()));
    let list = due.then(|| {
        soft.endpoints.known(epoch).cloned().unwrap_or_else(|| {
            let others = beat.group.iter().flat_map(|group| &group.members);
            let others = others.filter(|(id, _)| **id != request.member_id && Some(*id) != outcome.replaced);
            let members = others.map(|(_, member)| member).chain([&outcome.member]);
            Arc::new(endpoints::list(members, &outcome.look.configured, beat.topics))
        })
    });
    soft.endpoints.moved(epoch, list.clone());
    list
}

/// S 8.
fn answer(
    beat: &Beat<'_>,
    soft: &mut Soft,
    outcome: &Outcome<'_>,
    shutdown: Option<KStr>,
    now_ms: u64,
) -> StreamsGroupHeartbeatResponse {
    let settings = &beat.settings;
    let current = beat.caller.api_version >= 1;
    let warms_up = soft.moves.warmups.warming().any(|(_, to)| *to == beat.request.member_id);
    let waits = Waits {
        group: beat.group,
        member: &outcome.member,
        configured: &outcome.look.configured,
        group_epoch: outcome.group_epoch,
        assignment_epoch: outcome.assignment_epoch,
        warms_up,
        members_total: beat.members_total,
    };
    let mut answer = StreamsGroupHeartbeatResponse {
        member_id: beat.request.member_id.clone(),
        member_epoch: outcome.member.epoch,
        task_offset_interval_ms: settings.task_offset_interval_ms(soft.moves.is_under_way()),
        status: Some(statuses(beat, soft, outcome, shutdown, now_ms)),
        ..Default::default()
    };
    if current {
        answer.acceptable_recovery_lag = settings.acceptable_recovery_lag();
        let epoch = outcome.topology.epoch;
        if !outcome.is_stale && description::is_wanted(soft.description.as_ref(), epoch, now_ms) {
            answer.topology_description_required = true;
            soft.description = Some(Description::Asked { topology_epoch: epoch, at_ms: now_ms });
        }
    }
    if beat.joins() || outcome.tasks_changed {
        response::show_tasks(&mut answer, &outcome.member.assigned);
    }
    if let Some(member) = soft.members.get_mut(&beat.request.member_id) {
        let (interval_ms, waiting_since) = intervals::choose(settings, &waits, member.waiting_since, now_ms);
        member.waiting_since = waiting_since;
        answer.heartbeat_interval_ms = interval_ms;
    }
    answer
}

/// In Kafka's order: stale topology, delay, topics, shutdown, tags.
fn statuses(beat: &Beat<'_>, soft: &Soft, outcome: &Outcome<'_>, shutdown: Option<KStr>, now_ms: u64) -> Vec<Status> {
    let mut statuses = Vec::new();
    if outcome.is_stale {
        let (mine, theirs) = (outcome.member.metadata.topology_epoch, outcome.topology.epoch);
        let detail = format!("The member's topology epoch {mine} is behind the group's topology epoch {theirs}.");
        statuses.push(response::status(response::STALE_TOPOLOGY, detail));
    }
    if let Some(delayed) = outcome.delayed.and_then(Delayed::detail) {
        statuses.push(response::status(response::ASSIGNMENT_DELAYED, delayed));
    }
    if let Some((code, detail)) = soft.creation.detail(&outcome.look.configured, now_ms) {
        statuses.push(response::status(code as i8, detail));
    }
    if let Some(member_id) = shutdown {
        let detail = format!(
            "Streams group member {member_id} encountered a fatal error and requested a shutdown for the entire application."
        );
        statuses.push(response::status(response::SHUTDOWN_APPLICATION, detail));
    }
    if beat.caller.api_version >= 1 {
        statuses.extend(missing_tags(beat, &outcome.member));
    }
    statuses
}

/// S 5.4.
fn missing_tags(beat: &Beat<'_>, member: &Member) -> Option<Status> {
    let tags = beat.settings.tags().iter();
    let missing: Vec<&str> =
        tags.filter(|tag| !member.metadata.client_tags.contains_key(*tag)).map(KStr::as_str).collect();
    (!missing.is_empty()).then(|| {
        let detail = format!(
            "Missing required client tags for rack-aware standby assignment: [{}]. Configure them via \
             'client.tag.<tagKey>' in your Streams config.",
            missing.join(", ")
        );
        response::status(response::MISSING_CLIENT_TAGS, detail)
    })
}
