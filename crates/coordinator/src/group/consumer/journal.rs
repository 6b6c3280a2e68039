//! What the records of one command mean for a consumer group, for its journal.

use std::collections::{BTreeMap, BTreeSet};

use wire::messages::consumer_group_member_metadata_value::ConsumerGroupMemberMetadataValue;
use wire::messages::consumer_group_target_assignment_member_value::ConsumerGroupTargetAssignmentMemberValue;
use wire::{KStr, Uuid};

use super::Group;
use super::member::{AWAY_EPOCH, Wants};
use crate::assign::PartitionSet;
use crate::group::Group as AnyGroup;
use crate::journal::{Cause, Findings, Kind, MemberRecords, Role, Roster, Shift, Who, identity};
use crate::record::Record;
use crate::shard::Ctx;

/// Records by what they are about.
#[derive(Default)]
struct Written<'a> {
    epoch: Option<(i32, i64)>,
    members: MemberRecords<'a, ConsumerGroupMemberMetadataValue>,
    /// The last one of each member counts.
    targets: BTreeMap<&'a KStr, Option<&'a ConsumerGroupTargetAssignmentMemberValue>>,
    findings: Findings,
}

impl<'a> Written<'a> {
    fn sort(records: &'a [Record]) -> Self {
        let mut written = Written::default();
        for record in records {
            match record {
                Record::ConsumerMetadata(_, Some(value)) => written.epoch = Some((value.epoch, value.metadata_hash)),
                Record::ConsumerMetadata(_, None) => written.findings.deleted = true,
                Record::ConsumerMember(key, Some(value)) => {
                    written.members.written.insert(&key.member_id, value);
                }
                Record::ConsumerMember(key, None) => written.members.removed.push(&key.member_id),
                Record::ConsumerTargetMember(key, value) => {
                    written.targets.insert(&key.member_id, value.as_ref());
                }
                Record::ConsumerTargetMetadata(_, Some(value)) => {
                    written.findings.assigned = value.assignment_timestamp != 0;
                }
                Record::ConsumerCurrentMember(key, Some(value)) if value.member_epoch == AWAY_EPOCH => {
                    written.members.away.push(&key.member_id);
                }
                Record::ConsumerCurrentMember(key, Some(value)) if value.state == 0 => {
                    written.members.arrived.push(&key.member_id);
                }
                _ => {}
            }
        }
        written
    }
}

identity!(ConsumerGroupMemberMetadataValue);
identity!(Wants);

impl Roster for Group {
    type Known = Wants;

    fn known(&self, member_id: &KStr) -> Option<&Wants> {
        self.members.get(member_id).map(|member| &member.wants)
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
        Some(AnyGroup::Consumer(group)) => Some(group),
        _ => None,
    };
    let mut written = Written::sort(records);
    let mut causes = members(&written, group);
    if let Some((epoch, hash)) = written.epoch {
        let old = group.map_or(super::INITIAL_EPOCH, |group| group.epoch);
        if epoch != old {
            written.findings.epoch = Some((old, epoch));
        }
        match group {
            None => ctx.soft.journal.topics_are_known(group_id),
            Some(group) if hash != group.metadata_hash => {
                let resolved = records.iter().any(|record| matches!(record, Record::ConsumerRegex(..)));
                let concerns = |name: &str| group.is_subscribed(name) || resolved;
                match ctx.soft.journal.topics_of(group_id, concerns) {
                    Some(changed) => causes.push(Cause::topics(changed)),
                    // Another subscription has other topics.
                    None if causes.is_empty() => causes.push(Cause::plain(Kind::TopicsChanged)),
                    None => {}
                }
            }
            Some(_) => {}
        }
    }
    let (image, journal) = (ctx.env.topics, &ctx.soft.journal);
    let shifts = shifts(&written, group, &|id| image.name_of(id).or_else(|| journal.deleted_topic(id)));
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
            Some(known) => causes.extend(what_changed(&known.wants, &Wants::of_value(value), &who)),
        }
    }
    causes.extend(written.members.departures(group));
    causes
}

fn what_changed(before: &Wants, after: &Wants, who: &Who) -> Vec<Cause> {
    let mut causes = Vec::new();
    if before.subscribes_differently(after) {
        let names: Vec<&str> = after.names.iter().map(KStr::as_str).collect();
        let pattern = if after.regex.is_empty() { String::new() } else { format!(" and {}", after.regex) };
        let detail = format!("now {}{pattern}", if names.is_empty() { "nothing".to_owned() } else { names.join(", ") });
        causes.push(Cause::of(Kind::SubscriptionChanged, who.clone()).with_detail(detail));
    }
    if before.assignor != after.assignor {
        let assignor = after.assignor.as_ref().map_or("the broker's choice", KStr::as_str);
        causes.push(Cause::of(Kind::AssignorChanged, who.clone()).with_detail(format!("now {assignor}")));
    }
    let changes = [
        (before.rack_id != after.rack_id, "rack"),
        (before.client_id != after.client_id, "client id"),
        (before.client_host != after.client_host, "host"),
        (before.rebalance_timeout_ms != after.rebalance_timeout_ms, "rebalance timeout"),
        (before.classic.is_some() != after.classic.is_some(), "protocol"),
    ];
    let changes: Vec<&str> = changes.iter().filter(|(changed, _)| *changed).map(|(_, what)| *what).collect();
    if !changes.is_empty() {
        causes.push(Cause::of(Kind::MemberChanged, who.clone()).with_detail(changes.join(", ")));
    }
    causes
}

fn shifts<'n>(written: &Written<'_>, group: Option<&Group>, name_of: &dyn Fn(&Uuid) -> Option<&'n KStr>) -> Vec<Shift> {
    let nothing = PartitionSet::new();
    let replaced = written.members.replaced(group);
    let mut shifts = Vec::new();
    for (member_id, value) in &written.targets {
        let predecessor = written.members.predecessor(group, member_id);
        if predecessor.is_none() && value.is_none() && replaced.contains(member_id) {
            continue;
        }
        let before = group.and_then(|group| group.target.members.get(predecessor.unwrap_or(*member_id)));
        let before = before.map_or(&nothing, |target| target);
        let after = value.iter().flat_map(|value| &value.topic_partitions);
        let after: BTreeSet<(Uuid, i32)> = after
            .flat_map(|topic| topic.partitions.iter().map(move |partition| (topic.topic_id, *partition)))
            .collect();
        let before: BTreeSet<(Uuid, i32)> =
            before.iter().flat_map(|(id, partitions)| partitions.iter().map(move |p| (*id, *p))).collect();
        let name = |(id, partition): &(Uuid, i32)| match name_of(id) {
            Some(name) => format!("{name}-{partition}"),
            None => format!("{id}-{partition}"),
        };
        shifts.extend(Shift::between(member_id, Role::Partition, &before, &after, name));
    }
    shifts
}
