//! A consumer group becomes a classic group because its last member of the consumer protocol is gone (C 12.6).

use std::collections::BTreeMap;

use wire::messages::group_metadata_key::GroupMetadataKey;
use wire::messages::group_metadata_value::{GroupMetadataValue, MemberMetadata};
use wire::{Bytes, KStr};

use super::member::{Classic, Member};
use super::{Group, embedded, records, soft, timers};
use crate::config::{BrokerConfig, MigrationPolicy};
use crate::group::classic;
use crate::group::migration::{ClassicMember, Snapshot};
use crate::record::Record;
use crate::shard::Ctx;

const PROTOCOL_TYPE: &str = "consumer";

/// Whether the group has to become a classic one once these members are gone (C G-13).
pub(super) fn is_due(broker: &BrokerConfig, group: &Group, gone: &[&Member]) -> bool {
    let left = group.members.len() - gone.len();
    let classic = group.counts.classic_members() - gone.iter().filter(|member| member.is_classic()).count();
    let policy = broker.consumer_migration_policy;
    left > 0
        && classic == left
        && left <= broker.classic_max_size
        && matches!(policy, MigrationPolicy::Downgrade | MigrationPolicy::Bidirectional)
}

/// Writes the conversion and hands the group over. The assignments are those of the target. `rebalance`: members are
/// to assemble at once.
pub(super) fn convert(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group, gone: &[&Member], rebalance: bool) {
    let stay = |member: &&Member| gone.iter().all(|gone| gone.id != member.id);
    let staying: Vec<&Member> = group.members.values().filter(stay).collect();
    let protocol = choose_protocol(&staying);
    let members: Vec<_> = staying.iter().filter_map(|member| classic_member(ctx, group, member, &protocol)).collect();
    let snapshot = Snapshot {
        protocol_type: KStr::from(PROTOCOL_TYPE),
        generation: group.epoch,
        protocol: Some(protocol),
        leader: members.first().map(|member| member.member_id.clone()),
        members,
    };
    records::group_tombstones(group_id, group, &mut ctx.out.records);
    ctx.out.records.push(group_record(group_id, &snapshot, ctx.at.wall_ms));
    for member in group.members.values() {
        timers::disarm_all(ctx.soft, group_id, &member.id);
    }
    soft::forget(ctx.soft, group_id);
    classic::downgraded(ctx, group_id, snapshot, rebalance);
}

/// The name that most members prefer among those that all support; the first in the order of names among equals.
fn choose_protocol(members: &[&Member]) -> KStr {
    let protocols = |member: &&Member| -> Vec<KStr> {
        let classic = member.wants.classic.iter().flat_map(|classic| &classic.protocols);
        classic.map(|(name, _)| name.clone()).collect()
    };
    let offers: Vec<Vec<KStr>> = members.iter().map(protocols).collect();
    let by_all = |name: &&KStr| offers.iter().all(|offer| offer.contains(name));
    let mut votes: BTreeMap<&KStr, usize> = BTreeMap::new();
    for offer in &offers {
        if let Some(choice) = offer.iter().find(by_all) {
            *votes.entry(choice).or_default() += 1;
        }
    }
    let winner = votes.into_iter().rev().max_by_key(|(_, votes)| *votes);
    winner.map(|(name, _)| name.clone()).unwrap_or_default()
}

fn metadata<'a>(classic: &'a Classic, protocol: &str) -> Option<&'a Bytes> {
    classic.protocols.iter().find(|(name, _)| name == protocol).map(|(_, metadata)| metadata)
}

fn classic_member(ctx: &Ctx<'_, '_>, group: &Group, member: &Member, protocol: &str) -> Option<ClassicMember> {
    let wants = &member.wants;
    let classic = wants.classic.as_ref()?;
    let target = group.target_of(&member.id);
    let version_of = metadata(classic, protocol).cloned().unwrap_or_default();
    Some(ClassicMember {
        member_id: member.id.clone(),
        instance_id: wants.instance_id.clone(),
        client_id: wants.client_id.clone(),
        client_host: wants.client_host.clone(),
        rebalance_timeout_ms: wants.rebalance_timeout_ms,
        session_timeout_ms: classic.session_timeout_ms,
        protocols: classic.protocols.clone(),
        assignment: embedded::encode_assignment(&version_of, &target, ctx.env.topics),
    })
}

fn group_record(group_id: &KStr, snapshot: &Snapshot, now_wall_ms: i64) -> Record {
    let protocol = snapshot.protocol.as_ref();
    let members = snapshot.members.iter().map(|member| {
        let chosen = member.protocols.iter().find(|(name, _)| Some(name) == protocol);
        MemberMetadata {
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: chosen.map(|(_, metadata)| metadata.clone()).unwrap_or_default(),
            assignment: member.assignment.clone(),
        }
    });
    let value = GroupMetadataValue {
        protocol_type: snapshot.protocol_type.clone(),
        generation: snapshot.generation,
        protocol: snapshot.protocol.clone(),
        leader: snapshot.leader.clone(),
        current_state_timestamp: now_wall_ms,
        members: members.collect(),
    };
    Record::GroupMetadata(GroupMetadataKey { group: group_id.clone() }, Some(value))
}
