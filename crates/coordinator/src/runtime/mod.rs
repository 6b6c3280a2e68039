//! What runs a state machine over a log: append, replay, hold replies until durable, poison on failure.
//!
//! Synchronous and without a clock of its own. The server calls it inline on a connection's task under one short lock;
//! the simulator calls it from its event queue. The same cell hosts group shards and the transaction coordinator.

mod waiters;

use crate::command::Ticket;
use crate::env::Moment;
use crate::map::Map;
use crate::state_log::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};
use waiters::Waiters;

/// The contract of a deterministic state machine (`architecture.md`, "The core's contract").
pub trait StateMachine: Send {
    type Command: Send;
    type Reply: Send + 'static;
    type Record;
    type Effect: Send;
    /// What people are told of it.
    type Event: Send;
    /// What a command is told about the world.
    type Env<'e>;

    /// Decides. May change soft state only. `at` is never before that of the command before.
    fn handle(
        &mut self,
        at: Moment,
        env: &mut Self::Env<'_>,
        ticket: Ticket,
        command: Self::Command,
        out: &mut Decision<Self>,
    ) where
        Self: Sized;
    /// The only writer of hard state.
    fn replay(&mut self, position: Position, record: Self::Record);
    /// The records of a command were applied; for what is to be told of the state after it. May change soft state only.
    fn applied(&mut self, _at: Moment, _events: &mut Vec<Self::Event>) {}
    /// A transaction of `producer` ended.
    fn replay_marker(&mut self, position: Position, producer: Producer, commit: bool);
    /// After loading: every member gets a full session.
    fn loaded(&mut self, at: Moment, env: &mut Self::Env<'_>);
    /// The records of the latest outcome were refused cleanly: nothing of it happened. Undo what soft state assumed.
    fn refused(&mut self, at: Moment, env: &mut Self::Env<'_>);
    fn next_wakeup(&self) -> Option<u64>;
    /// The command that lets timers fire.
    fn wakeup() -> Self::Command;

    fn encode(record: &Self::Record) -> Result<RawRecord, String>;
    /// `Ok(None)`: a type that is not known here; it is skipped with a warning.
    fn decode(raw: &RawRecord) -> Result<Option<Self::Record>, String>;
}

/// Where a replayed record stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub offset: u64,
    pub timestamp_ms: i64,
    /// Set for records of a transaction that has not ended yet.
    pub producer: Option<Producer>,
}

/// What one command decided; reused from command to command.
#[derive(Debug)]
pub struct Decision<M: StateMachine> {
    pub records: Vec<M::Record>,
    /// Set when the records belong to a transaction.
    pub producer: Option<Producer>,
    /// Asks for the end marker of a transaction to be appended, after the records.
    pub marker: Option<EndMarker>,
    pub replies: Vec<(Ticket, M::Reply)>,
    pub effects: Vec<M::Effect>,
    pub events: Vec<M::Event>,
    /// Log end the replies wait for when nothing is written.
    pub wait_for: u64,
}

impl<M: StateMachine> Default for Decision<M> {
    fn default() -> Self {
        Decision {
            records: Vec::new(),
            producer: None,
            marker: None,
            replies: Vec::new(),
            effects: Vec::new(),
            events: Vec::new(),
            wait_for: 0,
        }
    }
}

impl<M: StateMachine> Decision<M> {
    pub fn clear(&mut self) {
        self.records.clear();
        self.producer = None;
        self.marker = None;
        self.replies.clear();
        self.effects.clear();
        self.events.clear();
        self.wait_for = 0;
    }

    pub fn reply(&mut self, ticket: Ticket, reply: M::Reply) {
        self.replies.push((ticket, reply));
    }
}

/// Why there is no reply. The server turns it into the error of the API in question (C ).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Not loaded yet: COORDINATOR_LOAD_IN_PROGRESS.
    Loading,
    /// The shard was poisoned and has to reload: NOT_COORDINATOR.
    NotCoordinator,
    /// The log refused the write cleanly.
    Refused(LogError),
}

pub type Sink<R> = Box<dyn FnOnce(Result<R, Unavailable>) + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Loading,
    Active { term: u32, end: u64 },
    Poisoned,
}

/// A state machine, its log, and the replies that wait.
pub struct Cell<M: StateMachine, L: StateLog> {
    machine: M,
    log: L,
    phase: Phase,
    next_ticket: u64,
    /// Commands that have no reply yet.
    open: Map<Ticket, Sink<M::Reply>>,
    /// Replies that wait for the log.
    waiters: Waiters<M::Reply>,
    decision: Decision<M>,
    raw: Vec<RawRecord>,
}

/// What a call came to.
pub struct Called<M: StateMachine> {
    /// The reply, if it may go out at once. Else the sink gets it later.
    pub reply: Option<Result<M::Reply, Unavailable>>,
    /// To be carried out after the lock is released.
    pub effects: Vec<M::Effect>,
    /// In the order in which things happened.
    pub events: Vec<M::Event>,
    /// The log end that the command wrote or looked at. An effect that must not outlive what it follows from waits until
    /// this is durable.
    pub effects_after: u64,
    /// Replies to earlier commands that this call set free; to be delivered after the lock is released.
    pub released: Released<M::Reply>,
}

/// Replies with the sinks they belong in.
pub struct Released<R>(Vec<(Sink<R>, Result<R, Unavailable>)>);

impl<R> Released<R> {
    /// Hands every reply over.
    pub fn deliver(self) {
        for (sink, reply) in self.0 {
            sink(reply);
        }
    }
}

impl<M: StateMachine, L: StateLog> Cell<M, L> {
    pub fn new(machine: M, log: L) -> Self {
        Cell {
            machine,
            log,
            phase: Phase::Loading,
            next_ticket: 0,
            open: Map::default(),
            waiters: Waiters::default(),
            decision: Decision::default(),
            raw: Vec::new(),
        }
    }

    /// For the simulator and for tests; never to change it from outside.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    pub fn log(&self) -> &L {
        &self.log
    }

    pub fn log_mut(&mut self) -> &mut L {
        &mut self.log
    }

    pub fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Active { .. })
    }

    pub fn is_poisoned(&self) -> bool {
        self.phase == Phase::Poisoned
    }

    /// Reads the whole log into `empty`, a fresh state machine, and starts to serve.
    /// An entry that cannot be read fails the load: it is corruption or a bug, never to be passed over in silence.
    pub fn load(&mut self, empty: M, at: Moment, env: &mut M::Env<'_>) -> Result<(), LogError> {
        self.machine = empty;
        let machine = &mut self.machine;
        let mut broken = None;
        let (term, end) = self.log.load(&mut |entry| {
            if broken.is_none()
                && let Err(error) = replay_entry(machine, entry)
            {
                broken = Some(error);
            }
        })?;
        if let Some(error) = broken {
            return Err(LogError::Failed(error));
        }
        self.phase = Phase::Active { term, end };
        self.machine.loaded(at, env);
        Ok(())
    }

    /// Runs one command. `sink` is used only if the reply cannot be given at once.
    pub fn call(
        &mut self,
        at: Moment,
        env: &mut M::Env<'_>,
        command: M::Command,
        sink: impl FnOnce(Result<M::Reply, Unavailable>) + Send + 'static,
    ) -> Called<M> {
        let (term, end) = match self.phase {
            Phase::Active { term, end } => (term, end),
            Phase::Loading => return Called::unavailable(Unavailable::Loading),
            Phase::Poisoned => return Called::unavailable(Unavailable::NotCoordinator),
        };
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        let mut decision = std::mem::take(&mut self.decision);
        self.machine.handle(at, env, ticket, command, &mut decision);
        let written = self.write(term, end, at, &decision);
        let called = match written {
            Ok(new_end) => {
                self.apply(at, end, new_end, &mut decision);
                if new_end > end {
                    self.machine.applied(at, &mut decision.events);
                }
                let wait_for = if new_end > end { new_end } else { decision.wait_for };
                self.answer(ticket, wait_for, &mut decision, sink)
            }
            Err(error) if error.is_clean() => {
                self.machine.refused(at, env);
                self.refuse(ticket, Unavailable::Refused(error), &mut decision)
            }
            Err(_) => {
                let mut called = self.refuse(ticket, Unavailable::NotCoordinator, &mut decision);
                called.released.0.extend(self.poison().0);
                called
            }
        };
        decision.clear();
        self.decision = decision;
        called
    }

    /// How many replies wait: for something to happen, and for the log.
    pub fn waiting(&self) -> (usize, usize) {
        (self.open.len(), self.waiters.len())
    }

    /// The log has become durable up to its `durable_end`. Yields the replies that waited for it.
    pub fn durable(&mut self) -> Released<M::Reply> {
        Released(self.waiters.release(self.log.durable_end()))
    }

    /// The log failed underneath: nobody waits any longer, and nothing is served until `load`.
    pub fn poison(&mut self) -> Released<M::Reply> {
        self.phase = Phase::Poisoned;
        let mut released: Vec<_> = self.waiters.drain().map(|sink| (sink, Err(Unavailable::NotCoordinator))).collect();
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_by_key(|(ticket, _)| *ticket);
        released.extend(open.into_iter().map(|(_, sink)| (sink, Err(Unavailable::NotCoordinator))));
        Released(released)
    }

    /// When to call with `StateMachine::wakeup` next, on the monotonic clock.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.is_active().then(|| self.machine.next_wakeup()).flatten()
    }

    fn write(&mut self, term: u32, end: u64, at: Moment, decision: &Decision<M>) -> Result<u64, LogError> {
        let mut end = end;
        if !decision.records.is_empty() {
            self.raw.clear();
            for record in &decision.records {
                // Only a value that does not fit its schema can fail here: refuse the command, the shard is sound.
                self.raw.push(M::encode(record).map_err(|_| LogError::Refused(-1))?);
            }
            end = self.log.append(term, end, at.wall_ms, decision.producer, &self.raw)?;
        }
        if let Some(marker) = &decision.marker {
            end = self.log.append_marker(term, end, at.wall_ms, marker)?;
        }
        Ok(end)
    }

    fn apply(&mut self, at: Moment, end: u64, new_end: u64, decision: &mut Decision<M>) {
        let mut position = Position { offset: end, timestamp_ms: at.wall_ms, producer: decision.producer };
        for record in decision.records.drain(..) {
            self.machine.replay(position, record);
            position.offset += 1;
        }
        if let Some(marker) = &decision.marker {
            position.producer = None;
            self.machine.replay_marker(position, marker.producer, marker.commit);
        }
        if let Phase::Active { end, .. } = &mut self.phase {
            *end = new_end;
        }
    }

    fn answer(
        &mut self,
        own: Ticket,
        wait_for: u64,
        decision: &mut Decision<M>,
        sink: impl FnOnce(Result<M::Reply, Unavailable>) + Send + 'static,
    ) -> Called<M> {
        let durable = self.log.durable_end() >= wait_for;
        let mut called = Called {
            reply: None,
            effects: std::mem::take(&mut decision.effects),
            events: std::mem::take(&mut decision.events),
            effects_after: wait_for,
            released: Released(Vec::new()),
        };
        let mut own_sink = Some(sink);
        for (ticket, reply) in decision.replies.drain(..) {
            if ticket == own && durable {
                own_sink = None;
                called.reply = Some(Ok(reply));
                continue;
            }
            let sink: Option<Sink<M::Reply>> = if ticket == own {
                own_sink.take().map(|sink| Box::new(sink) as Sink<M::Reply>)
            } else {
                self.open.remove(&ticket)
            };
            let Some(sink) = sink else { continue };
            if durable {
                called.released.0.push((sink, Ok(reply)));
            } else {
                self.waiters.push(wait_for, sink, reply);
            }
        }
        // No reply yet: the command parked, a later outcome completes its ticket.
        if let Some(sink) = own_sink {
            self.open.insert(own, Box::new(sink));
        }
        called
    }

    /// Every reply of the outcome becomes an error, those to earlier commands included.
    fn refuse(&mut self, own: Ticket, why: Unavailable, decision: &mut Decision<M>) -> Called<M> {
        let mut released = Vec::new();
        for (ticket, _) in decision.replies.drain(..) {
            if ticket != own
                && let Some(sink) = self.open.remove(&ticket)
            {
                released.push((sink, Err(why.clone())));
            }
        }
        Called {
            reply: Some(Err(why)),
            effects: Vec::new(),
            events: Vec::new(),
            effects_after: 0,
            released: Released(released),
        }
    }
}

impl<M: StateMachine> Called<M> {
    fn unavailable(why: Unavailable) -> Self {
        Called {
            reply: Some(Err(why)),
            effects: Vec::new(),
            events: Vec::new(),
            effects_after: 0,
            released: Released(Vec::new()),
        }
    }
}

fn replay_entry<M: StateMachine>(machine: &mut M, entry: LogEntry) -> Result<(), String> {
    match entry {
        LogEntry::Record { offset, timestamp_ms, producer, record } => {
            if let Some(record) = M::decode(&record).map_err(|error| format!("offset {offset}: {error}"))? {
                machine.replay(Position { offset, timestamp_ms, producer }, record);
            }
        }
        LogEntry::Marker { offset, producer, commit } => {
            machine.replay_marker(Position { offset, timestamp_ms: 0, producer: None }, producer, commit);
        }
    }
    Ok(())
}

/// Sorts ids in the order in which Kafka's coordinator lists them, that of its hash tables: slots are the highest bits of the
/// string hash times a constant. Kafka's own tests compare such lists.
pub fn listing_order(id: &str) -> (u64, &str) {
    /// 2^64 divided by the golden ratio.
    const FIBONACCI: i64 = -7_046_029_254_386_353_131;
    (i64::from(wire::string_hash(id)).wrapping_mul(FIBONACCI) as u64, id)
}

#[cfg(test)]
mod tests;
