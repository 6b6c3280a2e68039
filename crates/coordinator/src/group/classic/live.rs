//! A classic group as it lives in memory (C section 1): members, who waits for what, the state.
//!
//! Keeps the group consistent with itself and knows no requests: answers, timers and records are the business of the
//! files around it. What of this survives a failover is what the last record says (C T-3, T-4).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wire::{ErrorCode, KStr};

use crate::command::Ticket;
use crate::map::Map;

/// C M-3. `Dead` is missing: an unloaded shard answers nothing, and a removed group is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl GroupState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

/// A request that is answered later, in the version it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub ticket: Ticket,
    pub api_version: i16,
}

/// A protocol that a member offers, with what the member says about itself in it.
pub(super) type Protocol = (KStr, Bytes);

/// C M-2. Its id is the key in the group. Owns its memory: nothing in it is a slice of a frame.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub instance_id: Option<KStr>,
    pub client_id: KStr,
    pub client_host: KStr,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// In the member's order of preference.
    pub protocols: Vec<Protocol>,
    pub assignment: Bytes,
    pub awaiting_join: Option<Waiting>,
    pub awaiting_sync: Option<Waiting>,
    /// It has not completed a join yet (C J-17).
    pub is_new: bool,
}

impl Member {
    /// What it says about itself in `protocol`; empty if it does not offer that.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let offered = self.protocols.iter().find(|(name, _)| *name == *protocol);
        offered.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }
}

/// How a rebalance that began with an empty group decides that enough have joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitialDelay {
    /// The configured delay, extended while members come (C B-4, B-5).
    Fixed { delay_ms: u64, remaining_ms: u64, joined: bool },
    /// Until joins have been quiet for a while (decision 14). Moments are monotonic.
    Quiet { at_most_until_ms: u64, last_join_ms: u64, longest_gap_ms: u64 },
}

/// C M-1.
#[derive(Clone, Debug)]
pub struct Live {
    pub(super) group_id: KStr,
    state: GroupState,
    /// Wall clock of the latest change of state; -1 if it is not known.
    state_since_ms: i64,
    pub(super) protocol_type: Option<KStr>,
    pub(super) protocol: Option<KStr>,
    pub(super) generation: i32,
    leader: Option<KStr>,
    members: BTreeMap<KStr, Member>,
    /// Member ids by instance id.
    instances: BTreeMap<KStr, KStr>,
    /// Ids that were handed out with MEMBER_ID_REQUIRED and have not joined yet (C J-8).
    pub(super) pending_joins: BTreeSet<KStr>,
    /// Members that have not synced in this generation (C B-11).
    pub(super) pending_syncs: BTreeSet<KStr>,
    /// How many members offer each protocol.
    supported: Map<KStr, usize>,
    open_joins: usize,
    /// Set while the rebalance that runs began with an empty group.
    pub(super) initial_delay: Option<InitialDelay>,
    /// Somebody joined in the last round of a fixed initial delay; the next one takes it for its own, as in Kafka (M-1, B-5).
    pub(super) joined_last: bool,
    /// Topics that the members read, as of the latest generation (C D-9).
    pub(super) subscribed: Option<BTreeSet<KStr>>,
}

impl Live {
    /// An empty group.
    pub(super) fn new(group_id: KStr, now_wall_ms: i64) -> Self {
        Live {
            group_id,
            state: GroupState::Empty,
            state_since_ms: now_wall_ms,
            protocol_type: None,
            protocol: None,
            generation: 0,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            supported: Map::default(),
            open_joins: 0,
            initial_delay: None,
            joined_last: false,
            subscribed: None,
        }
    }

    pub(super) fn state(&self) -> GroupState {
        self.state
    }

    pub(super) fn state_since_ms(&self) -> i64 {
        self.state_since_ms
    }

    pub(super) fn enter(&mut self, state: GroupState, now_wall_ms: i64) {
        self.state = state;
        self.state_since_ms = now_wall_ms;
    }

    pub(super) fn members(&self) -> &BTreeMap<KStr, Member> {
        &self.members
    }

    pub(super) fn member(&self, member_id: &str) -> Option<&Member> {
        self.members.get(member_id)
    }

    pub(super) fn member_mut(&mut self, member_id: &str) -> Option<&mut Member> {
        self.members.get_mut(member_id)
    }

    pub(super) fn members_mut(&mut self) -> impl Iterator<Item = (&KStr, &mut Member)> {
        self.members.iter_mut()
    }

    pub(super) fn member_of_instance(&self, instance_id: &str) -> Option<&KStr> {
        self.instances.get(instance_id)
    }

    pub(super) fn leader(&self) -> Option<&KStr> {
        self.leader.as_ref()
    }

    /// A restored group is led by whom the record names, if that is a member.
    pub(super) fn set_leader(&mut self, leader: Option<KStr>) {
        let known = leader.filter(|leader| self.members.contains_key(leader));
        if known.is_some() {
            self.leader = known;
        }
    }

    pub(super) fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_ref().is_some_and(|leader| *leader == *member_id)
    }

    /// C M-4.
    pub(super) fn can_rebalance(&self) -> bool {
        self.state != GroupState::PreparingRebalance
    }

    /// C M-5.
    pub(super) fn all_joined(&self) -> bool {
        self.open_joins == self.members.len() && self.pending_joins.is_empty()
    }

    pub(super) fn open_joins(&self) -> usize {
        self.open_joins
    }

    /// C M-6, in milliseconds. Negative timeouts count as none.
    pub(super) fn rebalance_timeout_ms(&self) -> u64 {
        let longest = self.members.values().map(|m| m.rebalance_timeout_ms).max();
        longest.unwrap_or(0).max(0) as u64
    }

    /// Checks who sent a request (C J-19).
    pub(super) fn validate(&self, member_id: &str, instance_id: Option<&KStr>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.instances.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(holder) if *holder != *member_id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member_id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Whether one of the offered protocols is supported by every member; in an empty group, whether there is any (C J-7).
    pub(super) fn supports<'a>(&self, protocol_type: &str, mut offered: impl Iterator<Item = &'a KStr>) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && offered.next().is_some();
        }
        self.protocol_type.as_ref().is_some_and(|own| *own == *protocol_type)
            && offered.any(|name| self.supported_by_all(name))
    }

    fn supported_by_all(&self, protocol: &str) -> bool {
        self.supported.get(protocol).is_some_and(|count| *count == self.members.len()) || self.members.is_empty()
    }

    /// Adds a member. The first one gives the group its protocol type, and leads it (C J-16, M-8).
    pub(super) fn add(&mut self, member_id: KStr, protocol_type: &KStr, member: Member) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.to_owned_detached());
        }
        self.pending_joins.remove(&member_id);
        self.leader.get_or_insert_with(|| member_id.clone());
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), member_id.clone());
        }
        self.count_protocols(&member.protocols, true);
        self.open_joins += usize::from(member.awaiting_join.is_some());
        self.members.insert(member_id, member);
    }

    /// Removes a member or a pending id wherever it is known. The leadership passes on (C M-8, B-16).
    pub(super) fn remove(&mut self, member_id: &str) -> Option<Member> {
        self.pending_joins.remove(member_id);
        self.pending_syncs.remove(member_id);
        let member = self.members.remove(member_id)?;
        self.count_protocols(&member.protocols, false);
        self.open_joins -= usize::from(member.awaiting_join.is_some());
        if let Some(instance_id) = &member.instance_id {
            self.instances.remove(instance_id);
        }
        if self.is_leader(member_id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives the member of an instance another id; everything else stays (C J-25). Returns the open requests of the old
    /// id. A sync that is owed under the old id is not owed by the new one (decision 22).
    pub(super) fn replace_id(&mut self, old_id: &str, new_id: KStr) -> (Option<Waiting>, Option<Waiting>) {
        let Some(mut member) = self.members.remove(old_id) else {
            return (None, None);
        };
        let waiting = (member.awaiting_join.take(), member.awaiting_sync.take());
        // The restarted process is there: it waits like any other member, without the limit of newcomers (J-17).
        member.is_new = false;
        self.open_joins -= usize::from(waiting.0.is_some());
        self.pending_syncs.remove(old_id);
        if self.is_leader(old_id) {
            self.leader = Some(new_id.clone());
        }
        if let Some(instance_id) = &member.instance_id {
            self.instances.insert(instance_id.clone(), new_id.clone());
        }
        self.members.insert(new_id, member);
        waiting
    }

    /// Replaces what a member offers.
    pub(super) fn set_protocols(&mut self, member_id: &str, protocols: Vec<Protocol>) {
        let Some(member) = self.members.get_mut(member_id) else {
            return;
        };
        let old = std::mem::replace(&mut member.protocols, protocols);
        let new = std::mem::take(&mut member.protocols);
        self.count_protocols(&old, false);
        self.count_protocols(&new, true);
        if let Some(member) = self.members.get_mut(member_id) {
            member.protocols = new;
        }
    }

    /// Keeps a join of the member open. Returns the one that was open before.
    pub(super) fn open_join(&mut self, member_id: &str, waiting: Waiting) -> Option<Waiting> {
        let member = self.members.get_mut(member_id)?;
        let before = member.awaiting_join.replace(waiting);
        self.open_joins += usize::from(before.is_none());
        before
    }

    /// Takes the open join of the member, to answer it.
    pub(super) fn take_join(&mut self, member_id: &str) -> Option<Waiting> {
        let waiting = self.members.get_mut(member_id)?.awaiting_join.take();
        self.open_joins -= usize::from(waiting.is_some());
        waiting
    }

    /// If the leader has no open join, the first member that has one leads. False if nobody has one (C B-9).
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |member: &Member| member.awaiting_join.is_some();
        let Some(leader) = &self.leader else {
            return false;
        };
        if self.members.get(leader).is_some_and(has_joined) {
            return true;
        }
        let joined = self.members.iter().find(|(_, member)| has_joined(member));
        match joined {
            Some((member_id, _)) => {
                self.leader = Some(member_id.clone());
                true
            }
            None => false,
        }
    }

    /// The protocol that the members would choose now: each votes for the first in its order that all support, the most
    /// votes win (C B-13). Of equals the one that the leader prefers.
    pub(super) fn choose_protocol(&self) -> Option<KStr> {
        let mut votes: BTreeMap<&KStr, usize> = BTreeMap::new();
        for member in self.members.values() {
            let names = member.protocols.iter().map(|(name, _)| name);
            if let Some(vote) = names.into_iter().find(|name| self.supported_by_all(name)) {
                *votes.entry(vote).or_default() += 1;
            }
        }
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        let preference = |name: &KStr| {
            let order = leader.map_or(&[][..], |leader| &leader.protocols);
            order.iter().position(|(other, _)| other == name).unwrap_or(usize::MAX)
        };
        let best = votes
            .into_iter()
            .max_by(|(a, votes_a), (b, votes_b)| votes_a.cmp(votes_b).then_with(|| preference(b).cmp(&preference(a))));
        best.map(|(name, _)| name.clone())
    }

    fn count_protocols(&mut self, protocols: &[Protocol], up: bool) {
        // A name that one member lists twice counts once.
        for (index, (name, _)) in protocols.iter().enumerate() {
            if protocols[..index].iter().any(|(other, _)| other == name) {
                continue;
            }
            let count = self.supported.entry(name.clone()).or_default();
            if up {
                *count += 1;
            } else {
                *count -= 1;
                if *count == 0 {
                    self.supported.remove(name);
                }
            }
        }
    }
}
