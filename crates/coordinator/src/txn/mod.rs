//! The transaction coordinator: a second deterministic state machine, on the same runtime as the groups.
//!
//! A [`TxnShard`] owns the transactional ids of one partition of `__transaction_state`. It decides who may produce under
//! an id, which partitions a transaction has, and how it ends; every decision is one record of Kafka's type, and every
//! step of a transaction is replayed from them (T-2, T-3). It asks for two things that it cannot do itself: a fresh
//! producer id, and end markers in the logs that a transaction wrote to. Both come back as commands.
//!
//! What Kafka calls a pending transition does not exist while a record is being written: a command sees what the one
//! before it decided, and its reply waits until that is durable. It exists while markers are written: `PrepareCommit`
//! and `PrepareAbort` answer CONCURRENT_TRANSACTIONS (T-5).

mod abort;
mod add_partitions;
mod allocate;
mod command;
mod complete;
mod config;
mod describe;
mod end_txn;
mod expire;
mod init_producer_id;
mod list;
mod record;
mod soft;
mod state;
#[cfg(test)]
mod tests;

use wire::KStr;

use crate::command::Ticket;
use crate::env::Moment;
use crate::runtime::{Decision, Position, StateMachine};
use crate::state_log::{Producer, RawRecord};

pub use command::{Command, Effect, Reply};
pub use config::{Config, Env, PROTOCOL_2};
pub use init_producer_id::never_granted;
pub use list::ListFilter;
pub use record::Record;
pub use state::{State, Status, TopicPartitions, Txn};

use soft::{Soft, Timer};

/// What one command of a [`TxnShard`] came to.
pub type Outcome = Decision<TxnShard>;

/// The transactional ids of one partition of `__transaction_state`.
#[derive(Debug, Default)]
pub struct TxnShard {
    state: State,
    soft: Soft,
}

/// What handlers work on.
struct Ctx<'a> {
    at: Moment,
    config: &'a Config,
    state: &'a State,
    soft: &'a mut Soft,
    out: &'a mut Outcome,
    /// The command at hand, or the one that waited for a producer id; none for timers.
    ticket: Option<Ticket>,
}

impl Ctx<'_> {
    /// Answers the command at hand.
    fn reply(&mut self, reply: Reply) {
        if let Some(ticket) = self.ticket {
            self.out.reply(ticket, reply);
        }
    }

    /// The state of an id. Whoever looks waits until what they see is durable.
    fn look_up(&mut self, transactional_id: &str) -> Option<Txn> {
        self.out.wait_for = self.out.wait_for.max(self.state.end_of(transactional_id));
        self.state.get(transactional_id).cloned()
    }

    /// Writes the next state of an id; `None` forgets it.
    fn write(&mut self, transactional_id: &KStr, txn: Option<Txn>) {
        self.soft.remember(transactional_id);
        self.out.records.push(Record { transactional_id: transactional_id.clone(), txn });
    }
}

impl TxnShard {
    pub fn new() -> Self {
        TxnShard::default()
    }

    /// For tests and the simulator.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether nothing is under way that an effect or a timer has to bring to its end.
    pub fn is_idle(&self) -> bool {
        self.soft.completing.is_empty() && self.soft.waiting.is_empty()
    }
}

impl StateMachine for TxnShard {
    type Command = Command;
    type Reply = Reply;
    type Record = Record;
    type Effect = Effect;
    type Event = std::convert::Infallible;
    type Env<'e> = Env<'e>;

    fn handle(&mut self, at: Moment, env: &mut Env<'_>, ticket: Ticket, command: Command, out: &mut Outcome) {
        self.soft.unconfirmed = None;
        let config = env.config;
        let mut ctx = Ctx { at, config, state: &self.state, soft: &mut self.soft, out, ticket: Some(ticket) };
        dispatch(&mut ctx, command);
    }

    fn replay(&mut self, position: Position, record: Record) {
        self.state.replay(position, record);
    }

    fn replay_marker(&mut self, _: Position, _: Producer, _: bool) {
        // Nobody writes to this topic in a transaction.
    }

    fn loaded(&mut self, at: Moment, env: &mut Env<'_>) {
        self.soft = Soft::default();
        self.soft.timers.set(&Timer::Timeouts, at.mono_ms + env.config.abort_check_interval_ms);
        self.soft.timers.set(&Timer::Expiry, at.mono_ms + env.config.expiry_check_interval_ms);
        // What was prepared is brought to its end (E-9).
        for (id, _) in self.state.select(|_, txn| txn.is_prepared()) {
            self.soft.timers.set(&Timer::Markers(id.clone()), at.mono_ms);
        }
    }

    fn refused(&mut self, at: Moment, _: &mut Env<'_>) {
        complete::refused(&self.state, &mut self.soft, at);
    }

    fn next_wakeup(&self) -> Option<u64> {
        self.soft.timers.next()
    }

    fn wakeup() -> Command {
        Command::Wakeup
    }

    fn encode(record: &Record) -> Result<RawRecord, String> {
        record.encode()
    }

    fn decode(raw: &RawRecord) -> Result<Option<Record>, String> {
        Record::decode(raw)
    }
}

/// The room for each command.
fn dispatch(ctx: &mut Ctx<'_>, command: Command) {
    match command {
        Command::InitProducerId { api_version, request } => init_producer_id::init(ctx, api_version, request, None),
        Command::AddPartitions { transactional_id, producer, partitions, client_version } => {
            add_partitions::add(ctx, &transactional_id, producer, &partitions, client_version);
        }
        Command::VerifyPartitions { transactional_id, producer, partitions } => {
            add_partitions::verify(ctx, &transactional_id, producer, partitions);
        }
        Command::EndTxn { api_version, request } => end_txn::end(ctx, api_version, request, None),
        Command::Describe { transactional_id } => describe::describe(ctx, transactional_id),
        Command::List(filter) => list::list(ctx, &filter),
        Command::ProducerIdAllocated { token, producer_id } => {
            ctx.reply(Reply::Done);
            allocate::allocated(ctx, token, producer_id);
        }
        Command::MarkersWritten { transactional_id, producer, failed } => {
            complete::markers_written(ctx, &transactional_id, producer, failed);
            ctx.reply(Reply::Done);
        }
        Command::Wakeup => {
            ctx.reply(Reply::Done);
            ctx.ticket = None;
            wakeup(ctx);
        }
    }
}

fn wakeup(ctx: &mut Ctx<'_>) {
    let Some(timer) = ctx.soft.timers.pop_due(ctx.at.mono_ms) else { return };
    match timer {
        Timer::Timeouts => abort::look_for_timeouts(ctx),
        Timer::Abort(id) => abort::timed_out(ctx, &id, None),
        Timer::Expiry => expire::look_for_expired(ctx),
        Timer::Expire(id) => expire::expire(ctx, &id),
        Timer::Markers(id) => complete::write_markers(ctx, &id),
    }
}
