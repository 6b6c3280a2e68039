//! Consumer groups (KIP-848): the coordinator assigns, members learn of it through their heartbeats (C section 11).
//!
//! One file per thing that happens. A heartbeat goes through `validate`, `join` (who is it), `heartbeat` (what changed,
//! `regexes`, `target`, `reconcile`) and ends in records; whoever leaves or falls silent goes through `leave`. The
//! classic protocol inside such a group is in `classic_member`, the way from and to classic groups in `upgrade` and
//! `downgrade` (C section 12); classic groups themselves, and offsets, are others' business. Assignors are in `assign`.

pub(crate) mod classic_member;
mod describe;
mod downgrade;
mod embedded;
mod fault;
mod heartbeat;
mod join;
mod journal;
mod leave;
mod member;
mod offsets;
mod plan;
mod reconcile;
mod records;
mod regexes;
mod replay;
mod settings;
mod soft;
mod subscription;
mod target;
mod timers;
mod update;
mod upgrade;
mod validate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{KStr, Uuid};

use crate::assign::PartitionSet;
use crate::group;
use crate::map::Map;
use crate::record::Record;
use crate::shard::Ctx;
use crate::topics::TopicImage;

use member::Member;
use regexes::Resolved;
use subscription::Counts;

pub(crate) use describe::describe;
pub(crate) use heartbeat::heartbeat;
pub(crate) use journal::findings;
pub(crate) use plan::plan;
pub(crate) use regexes::resolved as regex_resolved;
pub(crate) use replay::replay;
pub use soft::Soft;
pub(crate) use soft::{forget, loaded, refused, topics_changed};
pub(crate) use target::ready as assignment_ready;
pub(crate) use timers::{Timer, fired};

/// Epoch of a group that has not been given one, and of its target (C K-1).
const INITIAL_EPOCH: i32 = 1;

/// Hard state.
#[derive(Clone, Debug)]
pub struct Group {
    epoch: i32,
    /// Over the topics that somebody subscribes to, as of the latest epoch.
    metadata_hash: i64,
    members: BTreeMap<KStr, Member>,
    /// Member ids by instance id.
    statics: Map<KStr, KStr>,
    target: Target,
    regexes: BTreeMap<KStr, Resolved>,

    // What follows is derived from the above.
    counts: Counts,
    /// Who holds each partition, those pending revocation included.
    holders: Map<Uuid, BTreeMap<i32, KStr>>,
    /// Members that have arrived at the target.
    reconciled: usize,
}

/// The target assignment (C K-1).
#[derive(Clone, Debug)]
struct Target {
    epoch: i32,
    /// When it was computed, wall clock; 0: not known, so the next one need not wait (C K-19).
    time_ms: i64,
    members: BTreeMap<KStr, Arc<PartitionSet>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    Empty,
    Assigning,
    Reconciling,
    Stable,
}

impl Default for Group {
    fn default() -> Self {
        Group {
            epoch: INITIAL_EPOCH,
            metadata_hash: 0,
            members: BTreeMap::new(),
            statics: Map::default(),
            target: Target { epoch: INITIAL_EPOCH, time_ms: 0, members: BTreeMap::new() },
            regexes: BTreeMap::new(),
            counts: Counts::default(),
            holders: Map::default(),
            reconciled: 0,
        }
    }
}

impl GroupState {
    fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::Assigning => "Assigning",
            GroupState::Reconciling => "Reconciling",
            GroupState::Stable => "Stable",
        }
    }
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn member_count(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn epoch(&self) -> i32 {
        self.epoch
    }

    pub(crate) fn tombstones(&self, group_id: &KStr, records: &mut Vec<Record>) {
        records::group_tombstones(group_id, self, records);
    }

    /// C K-3.
    fn state(&self) -> GroupState {
        if self.members.is_empty() {
            GroupState::Empty
        } else if self.epoch > self.target.epoch {
            GroupState::Assigning
        } else if self.reconciled < self.members.len() {
            GroupState::Reconciling
        } else {
            GroupState::Stable
        }
    }

    /// Whether every member has arrived and no target is outstanding.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.state(), GroupState::Stable | GroupState::Empty)
    }

    /// How many members wait for something.
    fn unsettled(&self, group_epoch: i32) -> u32 {
        let waiting =
            if group_epoch > self.target.epoch { self.members.len() } else { self.members.len() - self.reconciled };
        waiting.max(1) as u32
    }

    fn static_member(&self, instance_id: &str) -> Option<&Member> {
        self.statics.get(instance_id).and_then(|id| self.members.get(id))
    }

    fn target_of(&self, member_id: &str) -> Arc<PartitionSet> {
        self.target.members.get(member_id).cloned().unwrap_or_default()
    }

    fn holder(&self, topic: &Uuid, partition: i32) -> Option<&KStr> {
        self.holders.get(topic)?.get(&partition)
    }
}

/// Over the topics that exist, as Kafka 4.4 computes it (S 3.3.4).
fn metadata_hash(names: BTreeSet<&KStr>, topics: &TopicImage) -> i64 {
    group::metadata_hash::of_topics(names.into_iter(), topics)
}

/// Told of a change of the group's configuration. Every value is read when it is used, so there is nothing to do.
pub(crate) fn config_changed(_ctx: &mut Ctx<'_, '_>, _group_id: &KStr) {}

#[cfg(test)]
mod tests;
