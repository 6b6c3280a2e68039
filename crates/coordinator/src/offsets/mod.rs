//! Committed offsets of every kind of group: commit, fetch, delete, expiry (C section 10).
//!
//! Owns what was committed and what transactions hold open; `replay` is its only writer. Whether a client may commit,
//! fetch or delete is the group's business (`group::Group`), whether its transaction is in order the transaction
//! coordinator's: the server asks there first (C X-2).

mod commit;
mod delete;
mod expire;
mod fetch;
mod replay;
mod txn;

use std::collections::{BTreeMap, BTreeSet};

use wire::{KStr, Uuid};

use crate::map::Map;

pub(crate) use commit::commit;
pub use commit::refused_commit;
pub(crate) use delete::{delete, tombstones_of_group};
pub(crate) use expire::{Soft, expire, refused, topics_deleted};
pub(crate) use fetch::fetch;
pub(crate) use replay::{replay, replay_marker};
pub(crate) use txn::commit_in_transaction;
pub use txn::{reaches_group, refused_by_transaction};

/// Hard state: the offsets of all groups of a shard.
#[derive(Debug, Default)]
pub struct Offsets {
    groups: Map<KStr, GroupOffsets>,
    /// Where each producer has offsets open: group, topic, partition.
    open: Map<i64, BTreeSet<(KStr, KStr, i32)>>,
}

/// By topic name, then partition. A topic without slots is not kept.
type GroupOffsets = BTreeMap<KStr, BTreeMap<i32, Slot>>;

/// One partition of one group. A slot with nothing in it is not kept.
#[derive(Debug, Default)]
struct Slot {
    committed: Option<Committed>,
    /// By producer id; hardly ever more than one.
    pending: Vec<(i64, Committed)>,
}

/// One committed offset (C O-10).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Committed {
    offset: i64,
    /// -1: none.
    leader_epoch: i32,
    metadata: KStr,
    commit_time_ms: i64,
    /// When it expires whatever the group does (v2 to v4 with a retention time).
    expire_time_ms: Option<i64>,
    /// Zero: not known.
    topic_id: Uuid,
    /// Where the record stands in the log: of two offsets the later one counts (C X-7).
    position: u64,
}

impl Offsets {
    fn topics(&self, group_id: &str) -> impl Iterator<Item = (&KStr, &BTreeMap<i32, Slot>)> {
        self.groups.get(group_id).into_iter().flatten()
    }

    fn slots(&self, group_id: &str, topic: &str) -> impl Iterator<Item = (&i32, &Slot)> {
        let topics = self.groups.get(group_id);
        topics.and_then(|topics| topics.get(topic)).into_iter().flatten()
    }

    fn slot(&self, group_id: &str, topic: &str, partition: i32) -> Option<&Slot> {
        self.groups.get(group_id)?.get(topic)?.get(&partition)
    }
}

impl Slot {
    fn is_vacant(&self) -> bool {
        self.committed.is_none() && self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests;
