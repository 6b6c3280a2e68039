//! The dry run for a consumer group (see [`crate::plan`]).

use std::collections::BTreeMap;

use wire::KStr;

use super::member::{Member, Wants};
use super::{Group, records, target};
use crate::assign::{ConsumerTarget, PartitionSet};
use crate::journal::Who;
use crate::plan::{Change, Fate, NoPlan, Plan, PlannedMember, Work, new_member_id};
use crate::topics::TopicImage;
use wire::ErrorCode;

pub(crate) fn plan(group: &Group, group_id: &KStr, change: &Change) -> Result<Plan, NoPlan> {
    let changed = changed(group, group_id, change)?;
    let configured = &change.config.broker.consumer_assignors;
    let assignor = changed.counts.assignor(configured).cloned().unwrap_or_default();
    let target = target::of_group(&changed, &change.topics, configured)
        .map_err(|message| NoPlan::new(ErrorCode::InvalidRequest, message))?;
    Ok(Plan {
        protocol: "consumer",
        epoch: group.epoch,
        assignor,
        members: members(group, &changed, &target, &change.topics),
        restores: Vec::new(),
        problem: None,
    })
}

/// The group with other members, or with another choice of theirs.
fn changed(group: &Group, group_id: &KStr, change: &Change) -> Result<Group, NoPlan> {
    let mut changed = group.clone();
    for member_id in &change.remove_members {
        if !group.members.contains_key(member_id) {
            return Err(NoPlan::unknown_member(member_id));
        }
        records::member_tombstones(group_id, member_id).into_iter().for_each(|record| changed.apply(record));
    }
    if let Some(assignor) = &change.consumer_assignor {
        let ids: Vec<KStr> = changed.members.keys().cloned().collect();
        for id in ids {
            let wants = Wants { assignor: Some(assignor.clone()), ..changed.members[&id].wants.clone() };
            changed.apply(records::member(group_id, &id, &wants));
        }
    }
    let models: Vec<Member> = changed.members.values().cloned().collect();
    for number in 1..=change.add_members {
        let Some(model) = models.get((number - 1) % models.len().max(1)) else {
            return Err(NoPlan::new(ErrorCode::InvalidRequest, "there is no member that others could be like"));
        };
        let wants = Wants {
            instance_id: None,
            client_id: KStr::from_static("new"),
            client_host: KStr::EMPTY,
            classic: None,
            ..model.wants.clone()
        };
        changed.apply(records::member(group_id, &new_member_id(number), &wants));
    }
    Ok(changed)
}

fn members(group: &Group, changed: &Group, target: &ConsumerTarget, image: &TopicImage) -> Vec<PlannedMember> {
    let mut all: BTreeMap<&KStr, &Member> = group.members.iter().collect();
    all.extend(&changed.members);
    let planned = all.into_iter().map(|(id, member)| {
        let fate = match (group.members.contains_key(id), changed.members.contains_key(id)) {
            (true, false) => Fate::Removed,
            (false, _) => Fate::Added,
            (true, true) => Fate::Stays,
        };
        let wants = &member.wants;
        let after = (fate != Fate::Removed).then(|| target.get(id).map(|set| work(set, image)).unwrap_or_default());
        PlannedMember {
            who: Who::new(id, wants.instance_id.as_ref(), &wants.client_id, &wants.client_host),
            fate,
            before: work(&group.target_of(id), image),
            finally: after.clone(),
            after,
        }
    });
    planned.collect()
}

fn work(partitions: &PartitionSet, image: &TopicImage) -> Work {
    let mut active: Vec<(KStr, i32)> = Vec::new();
    for (topic, partitions) in partitions {
        let name = image.name_of(topic).cloned().unwrap_or_else(|| KStr::from(topic.to_string()));
        active.extend(partitions.iter().map(|partition| (name.clone(), *partition)));
    }
    active.sort();
    let active = active.into_iter().map(|(topic, partition)| format!("{topic}-{partition}")).collect();
    Work { active, ..Work::default() }
}
