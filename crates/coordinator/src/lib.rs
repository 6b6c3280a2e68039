//! The group coordinator as a deterministic state machine.
//!
//! A [`Shard`] owns the groups of one partition of `__consumer_offsets`. It has no clock, no randomness and no I/O:
//! time, identifiers and topic metadata are arguments. A [`Command`] reads the state and yields an [`Outcome`]
//! (records, replies, effects); hard state changes only in `replay`, so live operation, recovery and simulation are
//! one path. [`runtime::Cell`] puts a shard on top of a [`StateLog`]: it appends the records, replays them at once
//! and holds every reply until what it shows is durable.
//!
//! What is absent on purpose: tokio, threads, `std::time`, `std::fs`, random numbers, sockets, the segment log.
#![forbid(unsafe_code)]

pub mod assign;
mod command;
pub mod config;
mod env;
pub mod group;
pub mod journal;
mod map;
pub mod offsets;
mod outcome;
pub mod plan;
mod record;
pub mod runtime;
mod shard;
mod state_log;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timer;
mod topics;
pub mod txn;

pub use command::{Caller, Command, Ticket};
pub use env::{Env, IdSource, Moment, SeededIds};
pub use map::Map;
pub use outcome::{Effect, InternalTopic, Outcome, Reply};
pub use record::{Record, RecordError};
pub use runtime::{Cell, StateMachine};
pub use shard::{Brief, Shard, Soft, State};
pub use state_log::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};
pub use timer::Timers;
pub use topics::{TopicImage, TopicMetadata};
