//! The groups of a run, and what checkers know of each.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use crate::checkers::classic::Classic;
use crate::checkers::mirror::{Deleted, Mirror, Removed};
use crate::checkers::ownership::Ownership;
use crate::event::MemberNo;
use crate::settings::Protocol;
use crate::world::World;

#[derive(Debug)]
pub struct GroupOfRun {
    pub id: KStr,
    /// That its members start with.
    pub protocol: Protocol,
    pub ownership: Ownership,
    pub classic: Classic,
    /// Members of streams and consumer groups that asked to leave, or that an operator removed.
    pub left: BTreeSet<KStr>,
    /// The last sign of life that was accepted of each of their members.
    seen_ms: BTreeMap<KStr, u64>,
    /// The version of the application, or of the subscription, that is being rolled out.
    pub app_version: i32,
}

impl GroupOfRun {
    pub fn new(id: &'static str, protocol: Protocol) -> Self {
        GroupOfRun {
            id: KStr::from_static(id),
            protocol,
            ownership: Ownership::default(),
            classic: Classic::default(),
            left: BTreeSet::new(),
            seen_ms: BTreeMap::new(),
            app_version: 0,
        }
    }

    /// A heartbeat of the member was accepted.
    pub fn was_seen(&mut self, member_id: &KStr, at_ms: u64) {
        self.seen_ms.insert(member_id.clone(), at_ms);
        self.left.remove(member_id);
    }

    /// S 2.6, C K-27: a member goes if it left, was replaced, or was silent for its session.
    ///
    /// # Errors
    /// If there is no reason.
    fn check_removed(&self, removed: &Removed, mirror: &Mirror, now_ms: u64, session_ms: u64) -> Result<(), String> {
        let Removed { member_id, instance_id, has_other_deadlines } = removed;
        let mut instances = mirror.members.values().chain(self.classic.members().values());
        let mut is_taken = |instance_id: &KStr| instances.any(|each| each.as_ref() == Some(instance_id));
        let goes_on = mirror.members.contains_key(member_id) || self.classic.members().contains_key(member_id);
        let is_silent = || self.seen_ms.get(member_id).is_none_or(|seen_ms| now_ms >= seen_ms + session_ms);
        let reason = *has_other_deadlines
            || goes_on
            || self.left.contains(member_id)
            || instance_id.as_ref().is_some_and(&mut is_taken)
            || is_silent();
        if reason { Ok(()) } else { Err(format!("{member_id} is removed for no reason")) }
    }
}

impl World {
    pub(crate) fn group_of(&self, member: MemberNo) -> usize {
        self.processes[self.members[member].process()].group
    }

    /// Epoch or generation of the first group.
    pub(crate) fn epoch(&self) -> i32 {
        let group = &self.groups[0];
        self.broker.mirror.group(&group.id).group_epoch.max(group.classic.generation())
    }

    /// Looks at who the members of classic groups are after something happened to the coordinator.
    pub(crate) fn look_at_classic_groups(&mut self) -> Result<(), String> {
        if !self.broker.is_up() {
            return Ok(());
        }
        let session_ms = self.settings.broker.streams_session_timeout_ms as u64;
        let rebalance_ms = self.settings.rebalance_timeout_ms as u64;
        for group in self.groups.iter_mut().filter(|group| group.protocol != Protocol::Streams) {
            let roster = self.broker.shard().classic_roster(&group.id);
            group
                .classic
                .is_now(roster, self.now_ms, session_ms, rebalance_ms)
                .map_err(|broken| format!("group {}: {broken}", group.id))?;
        }
        Ok(())
    }

    /// Looks at members that were removed and offsets that were deleted.
    pub(crate) fn look_at_losses(&mut self) -> Result<(), String> {
        let session_ms = self.settings.broker.streams_session_timeout_ms as u64;
        let expired_ms = self.at().wall_ms - self.broker.offsets_retention_ms();
        for (group_id, removed, deleted) in self.broker.mirror.take_losses() {
            let mirror = self.broker.mirror.group(&group_id);
            let group = self.groups.iter().find(|group| group.id == group_id);
            for removed in &removed {
                group.map_or(Ok(()), |group| group.check_removed(removed, mirror, self.now_ms, session_ms))?;
            }
            // C E-1, E-4.
            let is_lost = |each: &&Deleted| {
                let is_there = self.broker.topics().name_of(&each.topic_id).is_some();
                is_there && (each.committed_ms > expired_ms || each.is_read)
            };
            if let Some(lost) = deleted.iter().find(is_lost) {
                return Err(format!("group {group_id} lost an offset: {lost:?}"));
            }
        }
        Ok(())
    }

    pub(crate) fn coordinator_is_back(&mut self) {
        for group in &mut self.groups {
            group.classic.restarted(self.broker.shard().classic_roster(&group.id), self.now_ms);
        }
    }

    /// What a member holds is looked at.
    pub(crate) fn look_at_holdings(&mut self, member: MemberNo) -> Result<(), String> {
        let (id, holds, number) = (self.members[member].id(), self.members[member].holds(), self.group_of(member));
        let GroupOfRun { id: group_id, ownership, classic, .. } = &mut self.groups[number];
        let mirror = self.broker.mirror.group(group_id);
        let has_standing = |id: &KStr| match classic.exists() {
            true => classic.has_standing(id),
            // A static member that missed a generation is still listed after a change of protocol, too.
            false if mirror.classic_members.contains(id) => {
                mirror.current.get(id).is_some_and(|current| classic.was_told(id, current.epoch))
            }
            false => mirror.members.contains_key(id),
        };
        ownership.set(member, id, holds, has_standing)
    }
}
