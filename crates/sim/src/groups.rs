//! The groups of a run, and what checkers know of each.

use wire::KStr;

use crate::checkers::classic::Classic;
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
            app_version: 0,
        }
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
