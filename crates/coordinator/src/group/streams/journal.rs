//! What the records of one command mean for a streams group, for its journal.

use std::collections::BTreeMap;

use wire::KStr;
use wire::messages::streams_group_member_metadata_value::StreamsGroupMemberMetadataValue;
use wire::messages::streams_group_target_assignment_member_value as target;

use super::Group;
use super::member::{LEFT_FOR_NOW, MemberState, Metadata};
use crate::assign::{TaskAssignment, TaskSet};
use crate::group::Group as AnyGroup;
use crate::journal::{Cause, Findings, Kind, MemberRecords, Role, Roster, Shift, identity};
use crate::record::Record;
use crate::shard::Ctx;

/// Records by what they are about.
#[derive(Default)]
struct Written<'a> {
    group: Option<&'a wire::messages::streams_group_metadata_value::StreamsGroupMetadataValue>,
    members: MemberRecords<'a, StreamsGroupMemberMetadataValue>,
    /// The last one of each member counts.
    targets: BTreeMap<&'a KStr, Option<&'a target::StreamsGroupTargetAssignmentMemberValue>>,
    topology: bool,
    findings: Findings,
}

impl<'a> Written<'a> {
    fn sort(records: &'a [Record]) -> Self {
        let mut written = Written::default();
        for record in records {
            match record {
                Record::StreamsMetadata(_, Some(value)) => written.group = Some(value),
                Record::StreamsMetadata(_, None) => written.findings.deleted = true,
                Record::StreamsMember(key, Some(value)) => {
                    written.members.written.insert(&key.member_id, value);
                }
                Record::StreamsMember(key, None) => written.members.removed.push(&key.member_id),
                Record::StreamsTargetMember(key, value) => {
                    written.targets.insert(&key.member_id, value.as_ref());
                }
                Record::StreamsTargetMetadata(_, Some(value)) => {
                    written.findings.assigned = value.assignment_timestamp != 0;
                }
                Record::StreamsCurrentMember(key, Some(value)) if value.member_epoch == LEFT_FOR_NOW => {
                    written.members.away.push(&key.member_id);
                }
                Record::StreamsCurrentMember(key, Some(value)) if value.state == MemberState::Stable as i8 => {
                    written.members.arrived.push(&key.member_id);
                }
                Record::StreamsTopology(_, Some(_)) => written.topology = true,
                _ => {}
            }
        }
        written
    }
}

identity!(StreamsGroupMemberMetadataValue);
identity!(Metadata);

impl Roster for Group {
    type Known = Metadata;

    fn known(&self, member_id: &KStr) -> Option<&Metadata> {
        self.members.get(member_id).map(|member| &*member.metadata)
    }

    fn members(&self) -> usize {
        self.members.len()
    }
}

/// See the module.
pub(crate) fn findings(
    before: Option<&AnyGroup>,
    group_id: &KStr,
    records: &[Record],
    ctx: &mut Ctx<'_, '_>,
) -> Findings {
    let group = match before {
        Some(AnyGroup::Streams(group)) => Some(group),
        _ => None,
    };
    let mut written = Written::sort(records);
    let mut causes = members(&written, group);
    if let Some(value) = written.group {
        let old = group.map_or(Group::default().epoch, |group| group.epoch);
        if value.epoch != old {
            written.findings.epoch = Some((old, value.epoch));
        }
        causes.extend(of_group(&written, group, group_id, ctx));
    }
    let shifts = shifts(&written, group);
    let (arrived, emptied) = (written.members.arrivals(group), written.members.emptied(group));
    let converted_from = before.filter(|_| group.is_none()).and_then(AnyGroup::name_if_used);
    Findings { causes, shifts, arrived, emptied, converted_from, ..written.findings }
}

/// Who came, went, or changed.
fn members(written: &Written<'_>, group: Option<&Group>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (member_id, value) in &written.members.written {
        if let Some(returned) = written.members.return_of(group, member_id) {
            causes.push(returned);
            continue;
        }
        let who = written.members.who(group, member_id);
        match group.and_then(|group| group.members.get(*member_id)) {
            None => causes.push(Cause::of(Kind::MemberJoined, who)),
            Some(known) => {
                let changed = what_changed(&known.metadata, value);
                // A new topology has an entry of its own.
                let told_elsewhere = written.topology && changed == ["topology"];
                if !changed.is_empty() && !told_elsewhere {
                    causes.push(Cause::of(Kind::MemberChanged, who).with_detail(changed.join(", ")));
                }
            }
        }
    }
    causes.extend(written.members.departures(group));
    causes
}

fn what_changed(before: &Metadata, after: &StreamsGroupMemberMetadataValue) -> Vec<&'static str> {
    let tags = after.client_tags.iter().map(|tag| (&tag.key, &tag.value));
    let endpoint = after.user_endpoint.as_ref().map(|endpoint| (&endpoint.host, endpoint.port));
    let changes = [
        (before.process_id != after.process_id, "process"),
        (before.rack_id != after.rack_id, "rack"),
        (!before.client_tags.iter().eq(tags), "client tags"),
        (before.topology_epoch != after.topology_epoch, "topology"),
        (before.client_id != after.client_id, "client id"),
        (before.client_host != after.client_host, "host"),
        (before.user_endpoint.as_ref().map(|(host, port)| (host, *port)) != endpoint, "endpoint"),
        (before.rebalance_timeout_ms != after.rebalance_timeout_ms, "rebalance timeout"),
    ];
    changes.iter().filter(|(changed, _)| *changed).map(|(_, what)| *what).collect()
}

/// What changed around the members: topology, topics, configuration.
fn of_group(written: &Written<'_>, group: Option<&Group>, group_id: &KStr, ctx: &mut Ctx<'_, '_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (Some(group), Some(value)) = (group, written.group) else {
        ctx.soft.journal.topics_are_known(group_id);
        return causes;
    };
    let who = written.members.written.keys().next().map(|id| written.members.who(Some(group), id));
    if written.topology && group.topology.is_some() {
        causes.push(Cause { who, ..Cause::plain(Kind::TopologyChanged) });
        ctx.soft.journal.topics_are_known(group_id);
    } else if value.metadata_hash != group.metadata_hash
        || value.validated_topology_epoch != group.validated_topology_epoch
    {
        let patterns = ctx.soft.streams.get(group_id).map(|soft| &soft.patterns);
        let topology = group.topology.as_ref();
        let concerns = |name: &str| {
            topology.is_some_and(|topology| topology.required().contains(name))
                || patterns.is_some_and(|patterns| patterns.matched(name))
        };
        let changed = ctx.soft.journal.topics_of(group_id, concerns);
        // The first look at the topics of a new group changes the hash too.
        if let Some(changed) = changed {
            causes.push(Cause::topics(changed));
        } else if !written.members.written.keys().any(|id| !group.members.contains_key(*id))
            && written.members.removed.is_empty()
        {
            causes.push(Cause::plain(Kind::TopicsChanged));
        }
    }
    let configs = value.last_assignment_configs.as_ref();
    let same = match (&group.assignment_configs, configs) {
        (Some(old), Some(new)) => old.iter().eq(new.iter().map(|config| (&config.key, &config.value))),
        // The first ones are no change.
        _ => true,
    };
    if !same {
        let new = configs.into_iter().flatten();
        let told = |key: &KStr| group.assignment_configs.as_ref().and_then(|old| old.get(key)).cloned();
        let changed = new.filter(|config| told(&config.key).as_ref() != Some(&config.value));
        let detail: Vec<String> = changed.map(|config| format!("{} is now {}", config.key, config.value)).collect();
        causes.push(Cause::plain(Kind::ConfigChanged).with_detail(detail.join(", ")));
    }
    causes
}

fn shifts(written: &Written<'_>, group: Option<&Group>) -> Vec<Shift> {
    let nothing = TaskAssignment::default();
    let mut shifts = Vec::new();
    let replaced = written.members.replaced(group);
    for (member_id, value) in &written.targets {
        let predecessor = written.members.predecessor(group, member_id);
        if predecessor.is_none() && value.is_none() && replaced.contains(member_id) {
            continue;
        }
        let before = group.and_then(|group| group.targets.get(predecessor.unwrap_or(*member_id)));
        let before = before.map_or(&nothing, |target| target);
        let empty = Vec::new();
        let of = |list: fn(&target::StreamsGroupTargetAssignmentMemberValue) -> &Vec<target::TaskIds>| {
            value.map_or(&empty, list)
        };
        shifts.extend(shift(member_id, Role::Active, &before.active, of(|value| &value.active_tasks)));
        shifts.extend(shift(member_id, Role::Standby, &before.standby, of(|value| &value.standby_tasks)));
        shifts.extend(shift(member_id, Role::Warmup, &before.warmup, of(|value| &value.warmup_tasks)));
    }
    shifts
}

fn shift(member_id: &KStr, role: Role, before: &TaskSet, after: &[target::TaskIds]) -> Option<Shift> {
    let had = before.iter().flat_map(|(id, set)| set.iter().map(move |partition| (id, *partition)));
    let has = after.iter().flat_map(|list| list.partitions.iter().map(move |p| (&list.subtopology_id, *p)));
    let name = |(id, partition): &(&KStr, i32)| format!("{id}_{partition}");
    Shift::between(member_id, role, &had.collect(), &has.collect(), name)
}
