//! What comes next: events by time, those of one moment in the order in which they were set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use coordinator::InternalTopic;
use wire::KStr;

use crate::member::Answer;
use crate::network::Request;

/// Names a member of a run, of all that ever were.
pub type MemberNo = usize;

/// Names a request on the network. A repeated request has the number of the first.
pub type FlightNo = u64;

#[derive(Debug)]
pub enum Event {
    /// Something of a member is due. Void unless `wake` is its latest one.
    Member { member: MemberNo, wake: u64 },
    /// A request reaches the coordinator.
    Request { member: MemberNo, flight: FlightNo, request: Request },
    /// An answer reaches the member.
    Answer { member: MemberNo, flight: FlightNo, answer: Answer },
    /// A paused process goes on.
    Resume { process: usize },
    /// A process that was stopped or killed comes back.
    Start { process: usize },
    /// What was written becomes durable.
    Flush,
    /// A timer of the coordinator may be due.
    Wakeup,
    /// The coordinator has found its log again.
    Load,
    /// Internal topics were asked for.
    CreateTopics { group_id: KStr, topics: Vec<InternalTopic> },
    /// A topic that was deleted is made again, as large as it was.
    RestoreTopic { name: &'static str, partitions: i32 },
    /// The bad time of the network is over.
    Calm,
    /// Somebody does something to the system.
    Operation,
}

#[derive(Debug, Default)]
pub struct Queue {
    events: BinaryHeap<Reverse<Entry>>,
    order: u64,
}

#[derive(Debug)]
struct Entry {
    at_ms: u64,
    order: u64,
    event: Event,
}

impl Queue {
    pub fn push(&mut self, at_ms: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Entry { at_ms, order: self.order, event }));
    }

    pub fn pop(&mut self) -> Option<(u64, Event)> {
        self.events.pop().map(|Reverse(entry)| (entry.at_ms, entry.event))
    }

    pub fn next_ms(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(entry)| entry.at_ms)
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.order).cmp(&(other.at_ms, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ms, self.order) == (other.at_ms, other.order)
    }
}

impl Eq for Entry {}
