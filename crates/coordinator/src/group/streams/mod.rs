//! Streams groups (KIP-1071): members of a Kafka Streams application share the tasks of its topology.
//!
//! A heartbeat does everything: it joins (epoch 0), reports and fetches (> 0) or leaves (< 0). Each thing that happens has
//! a file: [`validate`] what needs no state, [`join`] who is in the group, [`topology`] and [`configure`] what it runs,
//! [`epochs`] when it is assigned anew, [`assign`] to whom what, [`reconcile`] how a member gets there, [`heartbeat`] the
//! order of all that. Rules are those of Kafka 4.4 but for the table of decisions.
//!
//! Not here: assignors and the holding back of moves (`crate::assign`), committed offsets (`crate::offsets`),
//! authorisation and the creation of topics (the server).

mod assign;
mod commit;
mod configure;
mod describe;
mod description;
mod eligible;
mod endpoints;
mod epochs;
mod error;
mod heartbeat;
mod holders;
mod internal_topics;
mod intervals;
mod join;
mod journal;
mod leave;
mod member;
mod offsets;
mod patterns;
mod plan;
mod reconcile;
mod records;
mod replay;
mod response;
mod settings;
mod soft;
mod timers;
mod topology;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::messages::list_groups_response::ListedGroup;
use wire::{ErrorCode, KStr};

use super::{Admission, OffsetClient, metadata_hash};
use crate::assign::TaskAssignment;
use crate::env::{Env, Moment};
use crate::map::Map;
use crate::record::Record;
use crate::runtime::Position;
use crate::shard::{Ctx, State};
use holders::Holders;
use member::Member;
use records::AssignmentConfigs;
use topology::Topology;

pub(crate) use assign::assignment_ready;
pub(crate) use describe::describe;
pub(crate) use description::update_topology_description;
pub(crate) use heartbeat::heartbeat;
pub(crate) use internal_topics::internal_topics_created;
pub(crate) use journal::findings;
pub(crate) use patterns::regex_resolved;
pub(crate) use plan::plan;
pub use soft::Soft;
pub(crate) use soft::{forget, loaded, refused, topics_changed};
pub(crate) use timers::{Timer, fired};

/// Hard state: what the log says (S 3).
#[derive(Clone, Debug)]
pub struct Group {
    epoch: i32,
    metadata_hash: i64,
    /// The topology epoch while the topology is ready, else -1.
    validated_topology_epoch: i32,
    /// Those of the last group record (S 3.4.4).
    assignment_configs: Option<AssignmentConfigs>,
    stored_description_epoch: i32,
    failed_description_epoch: i32,
    topology: Option<Arc<Topology>>,
    members: BTreeMap<KStr, Member>,
    /// Member ids by instance id.
    static_members: Map<KStr, KStr>,
    assignment_epoch: i32,
    /// Wall time of the last computation; 0 if it does not count.
    assignment_timestamp_ms: i64,
    /// By member id.
    targets: Map<KStr, Arc<TaskAssignment>>,
    /// Who holds what, over all members.
    holders: Holders,
    /// Number of members in state STABLE by their epoch.
    stable_by_epoch: BTreeMap<i32, usize>,
    /// Warm-ups among the targets.
    warming: usize,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            epoch: 1,
            metadata_hash: 0,
            validated_topology_epoch: -1,
            assignment_configs: None,
            stored_description_epoch: -1,
            failed_description_epoch: -1,
            topology: None,
            members: BTreeMap::new(),
            static_members: Map::default(),
            assignment_epoch: 1,
            assignment_timestamp_ms: 0,
            targets: Map::default(),
            holders: Holders::default(),
            stable_by_epoch: BTreeMap::new(),
            warming: 0,
        }
    }
}

impl Group {
    /// Members that are not at their target.
    fn unsettled(&self) -> usize {
        self.members.len() - self.stable_by_epoch.get(&self.assignment_epoch).copied().unwrap_or(0)
    }

    /// S 3.2; while tasks are being warmed up the group counts as reconciling (decision 8).
    fn state(&self, soft: &Soft) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.topology.as_ref().is_none_or(|topology| topology.epoch != self.validated_topology_epoch) {
            "NotReady"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.unsettled() > 0 || self.warming > 0 || soft.moves.is_under_way() {
            "Reconciling"
        } else {
            "Stable"
        }
    }

    pub(crate) fn admit_commit(&self, client: &OffsetClient<'_>) -> Result<Admission, ErrorCode> {
        offsets::admit_commit(self, client)
    }

    pub(crate) fn may_commit(&self, client: &OffsetClient<'_>, topic: &str, partition: i32) -> bool {
        offsets::may_commit(self, client, topic, partition)
    }

    pub(crate) fn admit_fetch(&self, client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
        offsets::admit_fetch(self, client)
    }

    pub(crate) fn is_subscribed(&self, topic: &str) -> bool {
        offsets::is_subscribed(self, topic)
    }

    pub(crate) fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Every member has arrived, and nothing is held back.
    pub(crate) fn is_settled(&self, soft: &crate::shard::Soft, group_id: &KStr) -> bool {
        let empty = Soft::default();
        self.state(soft.streams.get(group_id).unwrap_or(&empty)) == "Stable"
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn member_count(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn tombstones(&self, group_id: &KStr, out: &mut Vec<Record>) {
        records::tombstones(self, group_id, out);
    }

    pub(crate) fn listed(&self, soft: &crate::shard::Soft, group_id: &KStr) -> ListedGroup {
        let empty = Soft::default();
        describe::listed(self, soft.streams.get(group_id).unwrap_or(&empty), group_id)
    }
}

pub(crate) fn replay(state: &mut State, _position: Position, record: Record) {
    replay::replay(state, record);
}

/// The next heartbeat of a member looks at the configuration (S 3.4.4, 9.6.7); moves that are held back too.
pub(crate) fn config_changed(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    if let Some(soft) = ctx.soft.streams.get_mut(group_id) {
        soft.moves.dirty = true;
    }
}
