//! The dry run for a streams group (see [`crate::plan`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::{ErrorCode, KStr};

use super::assign::{self, Assigned, Terms, View};
use super::configure::{configure, required_topics};
use super::member::Metadata;
use super::settings::Settings;
use super::soft::Soft;
use super::{Group, metadata_hash, records};
use crate::assign::{StreamsTarget, TaskAssignment, TaskId, TaskSet, contains_task, tasks_of};
use crate::env::Moment;
use crate::group::Group as AnyGroup;
use crate::journal::Who;
use crate::plan::{Change, Fate, NoPlan, Plan, PlannedMember, Restore, Work, new_member_id};
use crate::shard::State;

pub(crate) fn plan(group: &Group, soft: &Soft, group_id: &KStr, change: &Change, at: Moment) -> Result<Plan, NoPlan> {
    let Some(topology) = group.topology.clone() else {
        return Err(NoPlan::new(ErrorCode::InvalidRequest, "the group has no topology yet"));
    };
    let changed = changed(group, group_id, change)?;
    let settings = Settings::of(&change.config, group_id);
    let matches = soft.patterns.matches();
    let hash = metadata_hash::of_topics(required_topics(&topology, matches).into_iter(), &change.topics);
    let fault = |message: String| NoPlan::new(ErrorCode::InvalidRequest, message);
    let configured = configure(&topology, hash, &change.topics, matches)
        .map_err(|_| fault("the topology cannot work with these topics".to_owned()))?;
    let terms = Terms {
        at,
        settings: &settings,
        topology: &topology,
        configured: &configured,
        unchanged_since: &soft.unchanged_since,
        num_standby_replicas: settings.num_standby_replicas() as u32,
    };
    let view = View { group: Some(&changed), soft, updated: None };
    let assigned = assign::assign(&view, &terms, group_id, changed.epoch + 1, true);
    let Ok(Assigned::Now(goal)) = assigned else { return Err(fault("the assignor failed".to_owned())) };
    let finally = goal.ideal.clone().unwrap_or_else(|| Arc::new(goal.target.clone()));
    let stateful: Vec<KStr> =
        configured.for_assignor().into_iter().filter(|each| each.stateful).map(|each| each.id).collect();
    Ok(Plan {
        protocol: "streams",
        epoch: group.epoch,
        assignor: settings.assignor_name(),
        members: members(group, &changed, &goal.target, &finally),
        restores: restores(group, soft, &finally, &stateful),
        problem: configured.status.as_ref().map(|status| status.detail.clone()),
    })
}

/// The group with other members.
fn changed(group: &Group, group_id: &KStr, change: &Change) -> Result<Group, NoPlan> {
    let mut state = State::default();
    state.groups.insert(group_id.clone(), AnyGroup::Streams(group.clone()));
    for member_id in &change.remove_members {
        if !group.members.contains_key(member_id) {
            return Err(NoPlan::unknown_member(member_id));
        }
        for record in [
            records::current_tombstone(group_id, member_id),
            records::target_tombstone(group_id, member_id),
            records::member_tombstone(group_id, member_id),
        ] {
            super::replay::replay(&mut state, record);
        }
    }
    let models: Vec<&Arc<Metadata>> = group.members.values().map(|member| &member.metadata).collect();
    for number in 1..=change.add_members {
        let id = new_member_id(number);
        let model = models.get((number - 1) % models.len().max(1));
        let epoch = group.topology.as_ref().map_or(0, |topology| topology.epoch);
        let metadata = Metadata {
            instance_id: None,
            client_id: KStr::from_static("new"),
            client_host: KStr::EMPTY,
            process_id: id.clone(),
            user_endpoint: None,
            topology_epoch: epoch,
            ..model.map(|model| (***model).clone()).unwrap_or_default()
        };
        super::replay::replay(&mut state, records::member(group_id, &id, &metadata));
    }
    match state.groups.remove(group_id) {
        Some(AnyGroup::Streams(group)) => Ok(group),
        _ => Err(NoPlan::new(ErrorCode::UnknownServerError, "the copy of the group is gone")),
    }
}

fn members(group: &Group, changed: &Group, after: &StreamsTarget, finally: &StreamsTarget) -> Vec<PlannedMember> {
    let mut all: BTreeMap<&KStr, &Metadata> =
        group.members.iter().map(|(id, member)| (id, &*member.metadata)).collect();
    all.extend(changed.members.iter().map(|(id, member)| (id, &*member.metadata)));
    let planned = all.into_iter().map(|(id, metadata)| {
        let fate = match (group.members.contains_key(id), changed.members.contains_key(id)) {
            (true, false) => Fate::Removed,
            (false, _) => Fate::Added,
            (true, true) => Fate::Stays,
        };
        let there = fate != Fate::Removed;
        PlannedMember {
            who: Who::new(id, metadata.instance_id.as_ref(), &metadata.client_id, &metadata.client_host),
            fate,
            before: group.targets.get(id).map(|target| work(target)).unwrap_or_default(),
            after: there.then(|| after.get(id).map(work).unwrap_or_default()),
            finally: there.then(|| finally.get(id).map(work).unwrap_or_default()),
        }
    });
    planned.collect()
}

fn work(target: &TaskAssignment) -> Work {
    let names = |tasks: &TaskSet| tasks_of(tasks).map(|task| name(&task)).collect();
    Work { active: names(&target.active), standby: names(&target.standby), warmup: names(&target.warmup) }
}

fn name(task: &TaskId) -> String {
    format!("{}_{}", task.subtopology, task.partition)
}

/// Stateful tasks that members will have, in any role but that of a passing warm-up, and have in none now.
fn restores(group: &Group, soft: &Soft, finally: &StreamsTarget, stateful: &[KStr]) -> Vec<Restore> {
    let reported = |member_id: &KStr| soft.members.get(member_id).map(|member| &member.reported);
    let end_of = |task: &TaskId| {
        let ends = soft.members.values().filter_map(|member| member.reported.end_offsets.get(task).copied());
        ends.max()
    };
    let mut restores = Vec::new();
    for (member_id, target) in finally {
        let has = |task: &TaskId| {
            group.members.get(member_id).is_some_and(|member| {
                let assigned = &member.assigned;
                assigned.active_epoch(&task.subtopology, task.partition).is_some()
                    || contains_task(&assigned.standby, task)
                    || contains_task(&assigned.warmup, task)
            })
        };
        let gets = tasks_of(&target.active).chain(tasks_of(&target.standby));
        for task in gets.filter(|task| stateful.contains(&task.subtopology) && !has(task)) {
            let own = reported(member_id).and_then(|reported| reported.offsets.get(&task).copied()).unwrap_or(0);
            let behind = end_of(&task).map(|end| (end - own).max(0));
            restores.push(Restore { what: name(&task), member_id: member_id.clone(), behind });
        }
    }
    restores
}
