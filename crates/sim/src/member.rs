//! What members of all protocols have in common, as the world sees them.

use std::collections::BTreeSet;

use coordinator::assign::{TaskAssignment, TaskId};
use coordinator::{Command, Reply, TopicImage};
use wire::KStr;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;

use crate::classic_member::ClassicMember;
use crate::consumer_member::ConsumerMember;
use crate::event::FlightNo;
use crate::process::Process;
use crate::rng::Rng;
use crate::streams_member::StreamsMember;

/// What comes back from the coordinator.
#[derive(Clone, Debug)]
pub enum Answer {
    Heartbeat(Box<StreamsGroupHeartbeatResponse>),
    /// To consumers of both protocols.
    Reply(Box<Reply>),
    /// The coordinator is not there: an error code of the broker.
    Unavailable(i16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// On its way into the group.
    Joining,
    Member,
    /// Has given everything up and says goodbye.
    Leaving,
    /// The thread has ended.
    Gone(End),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Left,
    Killed,
    /// An error that ends the thread: its code.
    Fatal(i16),
}

/// What a member wants to have sent.
#[derive(Debug)]
pub enum Wish {
    Heartbeat(Box<StreamsGroupHeartbeatRequest>),
    /// Of consumers of both protocols.
    Request(Box<Command>),
    /// Offsets of the tasks or partitions, before they are closed, with the epoch or generation in which it had them.
    Commit(Vec<TaskId>, i32),
}

/// Times of a member, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub request_ms: u64,
    pub rebalance_ms: i32,
    pub session_ms: i32,
}

/// How long it takes to close what was revoked, or else to take over what is new. Now and then it takes too long.
pub fn revocation_ms(rng: &mut Rng, revokes: bool, rebalance_timeout_ms: i32) -> u64 {
    match revokes {
        false => rng.below(20),
        true if rng.chance(20) => rng.between(1_000, 2 * rebalance_timeout_ms as u64),
        true => rng.below(300),
    }
}

/// A member of a group, by the protocol that it speaks.
#[derive(Debug)]
pub enum Member {
    Streams(Box<StreamsMember>),
    Consumer(Box<ConsumerMember>),
    Classic(Box<ClassicMember>),
}

/// Does the same with a member of any protocol.
macro_rules! of_each {
    ($self:ident, $member:ident => $what:expr) => {
        match $self {
            Member::Streams($member) => $what,
            Member::Consumer($member) => $what,
            Member::Classic($member) => $what,
        }
    };
}

impl Member {
    /// Its member id; empty while it has none.
    pub fn id(&self) -> &KStr {
        of_each!(self, member => &member.id)
    }

    pub fn instance_id(&self) -> Option<&KStr> {
        of_each!(self, member => member.instance_id.as_ref())
    }

    pub fn process(&self) -> usize {
        of_each!(self, member => member.process)
    }

    pub fn phase(&self) -> &Phase {
        of_each!(self, member => &member.phase)
    }

    /// Its epoch or generation.
    pub fn epoch(&self) -> i32 {
        of_each!(self, member => member.epoch)
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.phase(), Phase::Gone(_))
    }

    /// What it runs by its own account.
    pub fn assigned(&self) -> TaskAssignment {
        match self {
            Member::Streams(member) => member.assigned.clone(),
            Member::Consumer(member) => TaskAssignment { active: member.assigned.clone(), ..TaskAssignment::default() },
            Member::Classic(member) => TaskAssignment { active: member.assigned.clone(), ..TaskAssignment::default() },
        }
    }

    /// What it runs, will run, or has not yet said that it gave up.
    pub fn holds(&self) -> BTreeSet<TaskId> {
        of_each!(self, member => member.holds())
    }

    /// Nothing is left to be done for it.
    pub fn is_at_rest(&self) -> bool {
        of_each!(self, member => member.is_at_rest())
    }

    /// When to call `act` next.
    pub fn due_ms(&self) -> Option<u64> {
        of_each!(self, member => member.due_ms())
    }

    /// Does what is due.
    pub fn act(&mut self, now_ms: u64, process: &mut Process, topics: &TopicImage) -> Vec<Wish> {
        match self {
            Member::Streams(member) => member.act(now_ms, process),
            Member::Consumer(member) => member.act(now_ms, process, topics),
            Member::Classic(member) => member.act(now_ms, process, topics),
        }
    }

    /// The request of the latest wish is under way.
    pub fn sent(&mut self, flight: FlightNo, now_ms: u64, timeouts: Timeouts) {
        let deadline_ms = now_ms + timeouts.request_ms;
        match self {
            Member::Streams(member) => member.sent(flight, deadline_ms),
            Member::Consumer(member) => member.sent(flight, deadline_ms),
            Member::Classic(member) => member.sent(flight, now_ms, timeouts),
        }
    }

    /// Starts to revoke and take over if that is due.
    pub fn reconcile(&mut self, now_ms: u64, rng: &mut Rng) {
        of_each!(self, member => member.reconcile(now_ms, rng));
    }

    /// Reads an answer; false if it is none to the request under way.
    ///
    /// # Errors
    /// What a client would fail on though it did nothing wrong.
    pub fn answered(
        &mut self,
        now_ms: u64,
        flight: FlightNo,
        answer: &Answer,
        topics: &TopicImage,
    ) -> Result<bool, String> {
        match self {
            Member::Streams(member) => member.answered(now_ms, flight, answer),
            Member::Consumer(member) => member.answered(now_ms, flight, answer, topics),
            Member::Classic(member) => member.answered(now_ms, flight, answer, topics),
        }
    }

    /// The thread ends at once, without a word.
    pub fn kill(&mut self) {
        of_each!(self, member => member.kill());
    }

    /// Gives everything up and leaves with the next request.
    pub fn leave(&mut self, now_ms: u64) {
        of_each!(self, member => member.leave(now_ms));
    }

    /// Makes it notice what it might have missed: the last part of a run starts from there. False if there is nothing.
    pub fn refresh(&mut self, now_ms: u64) -> bool {
        match self {
            Member::Streams(member) => member.refresh(now_ms),
            Member::Consumer(_) => false,
            Member::Classic(member) => member.refresh(now_ms),
        }
    }
}
