//! What the journal has to remember between commands: rebalances that are under way, and topics that changed. Lost with
//! the shard's soft state, at the cost of a vaguer story.

use std::collections::{BTreeMap, VecDeque};

use wire::{KStr, Uuid};

use super::moves::Orphans;
use super::{Kind, Who};
use crate::env::Moment;
use crate::map::Map;
use crate::topics::TopicImage;

/// Members that are named when a group has become stable.
const WAITED_FOR: usize = 3;
/// Changes of topics that are remembered.
const TOPICS: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Soft {
    open: Map<KStr, Open>,
    topics: VecDeque<TopicChange>,
    /// Topics that are gone, so that what was lost with them has a name.
    deleted: VecDeque<(Uuid, KStr)>,
    /// Counts changes of topics.
    topics_seen: u64,
    /// How far each group was told of them.
    topics_told: Map<KStr, u64>,
    /// The group whose state is to be looked at once the records are applied.
    pub(super) touched: Option<KStr>,
    /// Why the timer that fired removes members.
    pub(super) timer: Option<(KStr, Kind)>,
}

/// A rebalance that is under way.
#[derive(Debug)]
pub(super) struct Open {
    pub since_ms: u64,
    /// The epoch before it.
    pub old_epoch: i32,
    /// Members by arrival, the last few.
    arrived: VecDeque<(Who, u64)>,
    pub orphans: Orphans,
}

#[derive(Debug)]
struct TopicChange {
    number: u64,
    name: KStr,
    kind: Kind,
}

impl Soft {
    /// A group that was not rebalancing is from now on.
    pub(super) fn open(&mut self, group_id: &KStr, at: Moment, old_epoch: i32) -> &mut Open {
        let group_id = group_id.to_owned_detached();
        let new = || Open { since_ms: at.mono_ms, old_epoch, arrived: VecDeque::new(), orphans: Orphans::new() };
        self.open.entry(group_id).or_insert_with(new)
    }

    pub(super) fn get(&mut self, group_id: &KStr) -> Option<&mut Open> {
        self.open.get_mut(group_id)
    }

    pub(super) fn is_open(&self, group_id: &KStr) -> bool {
        self.open.contains_key(group_id)
    }

    pub(super) fn close(&mut self, group_id: &KStr) -> Option<Open> {
        self.open.remove(group_id)
    }

    /// As [`Soft::open`], for groups whose rebalances are not logged.
    pub(crate) fn rebalance_begins(&mut self, group_id: &KStr, at: Moment, old_epoch: i32) {
        self.open(group_id, at, old_epoch);
    }

    /// The member has joined again, or has what it shall have.
    pub(crate) fn arrived(&mut self, group_id: &KStr, at: Moment, who: Who) {
        let Some(open) = self.open.get_mut(group_id) else { return };
        open.arrived.retain(|(other, _)| other.member_id != who.member_id);
        open.arrived.push_back((who, at.mono_ms.saturating_sub(open.since_ms)));
        if open.arrived.len() > WAITED_FOR {
            open.arrived.pop_front();
        }
    }

    /// A timer is about to remove a member of the group.
    pub(crate) fn timer_fires(&mut self, group_id: &KStr, kind: Kind) {
        self.timer = Some((group_id.clone(), kind));
    }

    /// Notes how topics changed.
    pub(crate) fn topics_changed(
        &mut self,
        before: &TopicImage,
        after: &TopicImage,
        changed: &[KStr],
        deleted: &[(KStr, Uuid)],
    ) {
        let gone = deleted.iter().map(|(name, _)| (name, Kind::TopicDeleted));
        let others = changed.iter().filter_map(|name| {
            let kind = match (before.get(name), after.get(name)?) {
                (Some(old), new) if old.id == new.id && old.partitions < new.partitions => Kind::TopicGrew,
                (Some(old), new) if old.id == new.id => return None,
                _ => Kind::TopicCreated,
            };
            Some((name, kind))
        });
        for (name, kind) in gone.chain(others) {
            self.topics_seen += 1;
            self.topics.push_back(TopicChange { number: self.topics_seen, name: name.to_owned_detached(), kind });
        }
        while self.topics.len() > TOPICS {
            self.topics.pop_front();
        }
        self.deleted.extend(deleted.iter().map(|(name, id)| (*id, name.to_owned_detached())));
        while self.deleted.len() > TOPICS {
            self.deleted.pop_front();
        }
    }

    /// The name of a topic that was deleted not long ago.
    pub(crate) fn deleted_topic(&self, id: &Uuid) -> Option<&KStr> {
        self.deleted.iter().rev().find(|(gone, _)| gone == id).map(|(_, name)| name)
    }

    /// How topics of a group changed since this was last asked for it: the kind, if all agree, and their names.
    pub(crate) fn topics_of(&mut self, group_id: &KStr, concerns: impl Fn(&str) -> bool) -> Option<(Kind, Vec<KStr>)> {
        let since = self.topics_told.insert(group_id.to_owned_detached(), self.topics_seen).unwrap_or(0);
        let changes = self.topics.iter().filter(|change| change.number > since && concerns(&change.name));
        // The latest change of each topic counts.
        let kinds: BTreeMap<&KStr, Kind> = changes.map(|change| (&change.name, change.kind)).collect();
        let first = *kinds.values().next()?;
        let kind = if kinds.values().all(|kind| *kind == first) { first } else { Kind::TopicsChanged };
        Some((kind, kinds.into_keys().cloned().collect()))
    }

    /// The group knows of all changes so far.
    pub(crate) fn topics_are_known(&mut self, group_id: &KStr) {
        self.topics_told.insert(group_id.to_owned_detached(), self.topics_seen);
    }

    /// The group is gone.
    pub(super) fn forget(&mut self, group_id: &KStr) {
        self.open.remove(group_id);
        self.topics_told.remove(group_id);
    }
}

impl Open {
    /// The last members to arrive, the last one first.
    pub(super) fn waited_for(self) -> Vec<(Who, u64)> {
        self.arrived.into_iter().rev().collect()
    }
}
