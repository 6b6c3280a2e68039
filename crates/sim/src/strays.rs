//! Commits of clients that are behind, ahead, or have lost what they commit: of any member that ever was, in an epoch or
//! generation near its own, of anything. Checkers know which of them have to be accepted (C O-3, O-6, O-7, S 9.5).

use coordinator::Command;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;

use crate::broker::{self, Call};
use crate::checkers::fencing;
use crate::member::{Member, Phase};
use crate::settings::Protocol;
use crate::world::World;
use crate::{app, readers};

/// Nobody waits for the answer.
const NO_FLIGHT: u64 = 0;
/// How many of the members that came last.
const RECENT: usize = 16;

impl World {
    pub(crate) fn stray_commit(&mut self) -> Result<(), String> {
        let oldest = self.members.len().saturating_sub(RECENT);
        if self.members.is_empty() || !self.broker.is_up() {
            return Ok(());
        }
        let number = oldest + self.rng.index(self.members.len() - oldest);
        let member = &self.members[number];
        let member_id = member.id().clone();
        if member_id.is_empty() || *member.phase() == Phase::Joining {
            return Ok(());
        }
        let process = &self.processes[member.process()];
        let group = &self.groups[process.group];
        let mirror = self.broker.mirror.group(&group.id);
        let current = mirror.current.get(&member_id);
        let now = current.map_or(member.epoch(), |current| current.epoch);
        let epoch = (now + self.rng.pick(&[-3, -2, -1, -1, 0, 1])).max(0);
        let everything = match process.protocol {
            Protocol::Streams => app::tasks(process.app_version, |topic| self.broker.partitions(topic)),
            _ => readers::read([process.app_version].into_iter(), |topic| self.broker.partitions(topic)),
        };
        let its_own: Vec<_> = current
            .iter()
            .flat_map(|current| current.active_since.keys().chain(current.pending.keys()))
            .cloned()
            .collect();
        let mut tasks = Vec::new();
        for _ in 0..self.rng.between(1, 2) {
            let of = if its_own.is_empty() || self.rng.chance(200) { &everything } else { &its_own };
            if !of.is_empty() {
                tasks.push(of[self.rng.index(of.len())].clone());
            }
        }
        tasks.sort();
        tasks.dedup();
        self.note(format_args!("{member_id} commits {tasks:?} as of epoch {epoch}"));
        let Some((command, call)) = self.commit(number, epoch, member_id, tasks) else { return Ok(()) };
        let output = self.broker.call(self.at(), command, Some(call))?;
        self.done(output)
    }

    /// A client that everybody takes to have ended is still there, and somebody has its place perhaps (S 2.4, C J-19, K-12).
    pub(crate) fn stray_heartbeat(&mut self) -> Result<(), String> {
        let oldest = self.members.len().saturating_sub(RECENT);
        if self.members.is_empty() || !self.broker.is_up() {
            return Ok(());
        }
        let number = oldest + self.rng.index(self.members.len() - oldest);
        let member = &self.members[number];
        let (member_id, instance_id) = (member.id().clone(), member.instance_id().cloned());
        if !member.is_gone() || member_id.is_empty() {
            return Ok(());
        }
        let group = &self.groups[self.group_of(number)];
        let group_id = group.id.clone();
        let mirror = self.broker.mirror.group(&group_id);
        let epoch = mirror.current.get(&member_id).map_or(member.epoch(), |current| current.epoch).max(1);
        let (command, call) = match member {
            Member::Streams(_) => {
                let request = StreamsGroupHeartbeatRequest {
                    group_id,
                    member_id: member_id.clone(),
                    member_epoch: epoch,
                    instance_id,
                    rebalance_timeout_ms: -1,
                    ..Default::default()
                };
                let due = fencing::due_to_stream(mirror, &request);
                let call =
                    Call::Heartbeat { member: number, flight: NO_FLIGHT, at_ms: self.now_ms, due, member_id, epoch };
                (Command::StreamsGroupHeartbeat(broker::caller(1), Box::new(request)), call)
            }
            Member::Consumer(_) => {
                let request = ConsumerGroupHeartbeatRequest {
                    group_id,
                    member_id,
                    member_epoch: epoch,
                    instance_id,
                    rebalance_timeout_ms: -1,
                    ..Default::default()
                };
                let command = Command::ConsumerGroupHeartbeat(broker::caller(1), Box::new(request));
                self.request(number, NO_FLIGHT, command)
            }
            Member::Classic(member) => {
                let generation_id = member.epoch.max(1);
                let request = HeartbeatRequest { group_id, generation_id, member_id, group_instance_id: instance_id };
                self.request(number, NO_FLIGHT, Command::Heartbeat(broker::caller(4), Box::new(request)))
            }
        };
        let output = self.broker.call(self.at(), command, Some(call))?;
        self.done(output)
    }
}
