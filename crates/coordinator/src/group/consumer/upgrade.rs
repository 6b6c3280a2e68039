//! A classic group becomes a consumer group because a member of the consumer protocol joins (C 12.2).
//!
//! In one point not as in Kafka, which converts the last assignment and nothing else: a cooperative member may still run what
//! the leader took from it. By the subscription of its last join it does, so nobody else gets that before the member has
//! joined again without it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use wire::{ErrorCode, KStr, Uuid};

use super::fault::Fault;
use super::member::{Classic, Has, Holdings, Progress, Wants};
use super::{Group, embedded, records, timers};
use crate::assign::PartitionSet;
use crate::config::MigrationPolicy;
use crate::group::classic;
use crate::group::migration::{ClassicMember, Snapshot};
use crate::record::Record;
use crate::shard::Ctx;

/// Writes what makes the classic group a consumer group and yields the group that comes of it (C G-2, G-4).
pub(super) fn convert(ctx: &Ctx<'_, '_>, group_id: &KStr, records: &mut Vec<Record>) -> Result<Group, Fault> {
    let Some(old) = classic::snapshot(ctx.state, ctx.soft, group_id) else {
        return Err(Fault::unknown_group(group_id));
    };
    check(ctx, group_id, &old)?;
    let protocol = match &old.protocol {
        Some(protocol) => protocol,
        // Whoever began the first join phase has left.
        None if old.members.is_empty() => &KStr::EMPTY,
        None => {
            // The first join phase is about to end; the client tries again.
            let message = format!("Classic group {group_id} is in its first join phase.");
            return Err(Fault::new(ErrorCode::CoordinatorLoadInProgress, message));
        }
    };
    let mut members = Vec::new();
    for member in &old.members {
        members.push(converted(ctx, member, protocol).map_err(|why| refused(group_id, why))?);
    }
    let names = members.iter().flat_map(|member| &member.wants.names).collect();
    let hash = super::metadata_hash(names, ctx.env.topics);
    let mut made = Vec::new();
    write(group_id, old.generation, hash, &members, &mut made);
    let mut group = Group::default();
    made.iter().for_each(|record| group.apply(record.clone()));
    if let Some(classic) = ctx.state.group(group_id) {
        classic.tombstones(group_id, records);
    }
    records.append(&mut made);
    Ok(group)
}

/// The records are written: open joins and syncs of the classic group end, its members are watched from here.
pub(super) fn finish(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group) {
    classic::upgraded(ctx, group_id);
    for member in group.members.values() {
        timers::arm_session(ctx.soft, ctx.at, ctx.env, group_id, member);
    }
}

fn refused(group_id: &KStr, why: &str) -> Fault {
    let message = format!("Cannot upgrade classic group {group_id} to consumer group because {why}.");
    Fault::new(ErrorCode::GroupIdNotFound, message)
}

fn check(ctx: &Ctx<'_, '_>, group_id: &KStr, old: &Snapshot) -> Result<(), Fault> {
    let broker = &ctx.env.config.broker;
    let policy = broker.consumer_migration_policy;
    let why = if !matches!(policy, MigrationPolicy::Upgrade | MigrationPolicy::Bidirectional) {
        "online upgrade is disabled"
    } else if old.protocol_type != "consumer" {
        "the group does not use the consumer embedded protocol"
    } else if old.members.len() > broker.consumer_max_size {
        "the group size exceeds the consumer group maximum size"
    } else {
        return Ok(());
    };
    Err(refused(group_id, why))
}

/// What a classic member wants and has.
struct Converted<'a> {
    id: &'a KStr,
    wants: Wants,
    /// Its last assignment.
    assigned: PartitionSet,
    /// What it ran when it joined last, in the generation before; -1 if it did not say which.
    owned: PartitionSet,
    owned_in: i32,
}

fn converted<'a>(ctx: &Ctx<'_, '_>, member: &'a ClassicMember, protocol: &KStr) -> Result<Converted<'a>, &'static str> {
    const MALFORMED: &str = "the embedded consumer protocol is malformed";
    let assignment = embedded::assignment(&member.assignment).ok_or(MALFORMED)?;
    if assignment.user_data.is_some_and(|data| !data.is_empty()) {
        return Err("an unsupported custom assignor is in use. \
                    Please refer to the documentation or switch to a default assignor before re-attempting the upgrade");
    }
    let metadata = member.protocols.iter().find(|(name, _)| name == protocol).map(|(_, metadata)| metadata);
    let subscription = metadata.and_then(embedded::subscription).ok_or(MALFORMED)?;
    let topics = assignment.assigned_partitions.iter().map(|topic| (&topic.topic, &topic.partitions[..]));
    let assigned = embedded::by_id(topics, ctx.env.topics);
    let topics = subscription.owned_partitions.iter().map(|topic| (&topic.topic, &topic.partitions[..]));
    let owned = embedded::by_id(topics, ctx.env.topics);
    let wants = Wants {
        instance_id: member.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        names: subscription.topics.into_iter().collect(),
        regex: KStr::EMPTY,
        assignor: None,
        classic: Some(Classic { session_timeout_ms: member.session_timeout_ms, protocols: member.protocols.clone() }),
    };
    Ok(Converted { id: &member.member_id, wants, assigned, owned, owned_in: subscription.generation_id })
}

/// What members have to give up, by member: what they owned when they joined last and nobody is assigned. Of two that say so
/// of one partition the later one has it.
fn pending_revocation<'a>(members: &[Converted<'a>], generation: i32) -> BTreeMap<&'a KStr, Holdings> {
    let each = |partitions: &PartitionSet| -> Vec<(Uuid, i32)> {
        partitions.iter().flat_map(|(topic, set)| set.iter().map(|partition| (*topic, *partition))).collect()
    };
    let mut taken: BTreeSet<(Uuid, i32)> = members.iter().flat_map(|member| each(&member.assigned)).collect();
    let mut latest_first: Vec<&Converted<'a>> = members.iter().collect();
    latest_first.sort_by_key(|member| Reverse(member.owned_in));
    let mut pending: BTreeMap<&KStr, Holdings> = BTreeMap::new();
    for member in latest_first {
        for (topic, partition) in each(&member.owned).into_iter().filter(|partition| taken.insert(*partition)) {
            pending.entry(member.id).or_default().entry(topic).or_default().insert(partition, generation);
        }
    }
    pending
}

/// C G-4: the generation is every epoch, everybody is where the target is, but for what is still to be given up.
fn write(group_id: &KStr, generation: i32, metadata_hash: i64, members: &[Converted<'_>], records: &mut Vec<Record>) {
    records.extend(members.iter().map(|member| records::member(group_id, member.id, &member.wants)));
    records.push(records::epoch(group_id, generation, metadata_hash));
    records.extend(members.iter().map(|member| records::target(group_id, member.id, &member.assigned)));
    records.push(records::target_epoch(group_id, generation, 0));
    let mut pending = pending_revocation(members, generation);
    for member in members {
        let assigned = member
            .assigned
            .iter()
            .map(|(topic, partitions)| (*topic, partitions.iter().map(|partition| (*partition, generation)).collect()));
        let pending_revocation = pending.remove(member.id).unwrap_or_default();
        let has = Has {
            epoch: generation,
            previous_epoch: generation,
            progress: match pending_revocation.is_empty() {
                true => Progress::Stable,
                false => Progress::UnrevokedPartitions,
            },
            assigned: assigned.collect(),
            pending_revocation,
        };
        records.push(records::current(group_id, member.id, &has));
    }
}
