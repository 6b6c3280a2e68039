//! Comparison with Kafka's own group coordinator.
//!
//! The oracle (`../shared/harness/coordinator-oracle`) is Kafka 4.4's coordinator behind a protocol of JSON lines. Here is
//! ours behind the same protocol ([`Session`]), what compares the answers of both ([`compare`]), and what makes
//! histories to compare them on ([`history`]). Requests and responses go through an interpreter of Kafka's schemas
//! ([`codec`]), not through the codec of `wire`.
//!
//! A [`Duel`](duel::Duel) goes step by step. Kafka is asked first; the targets that it computed take the place of ours, which
//! are judged by [`laws`] ([`referee`]); then answers, records and timers have to be the same. What may differ is written
//! down in [`known`]; where the two part, ours is loaded from Kafka's log and goes on from there. So is it at every restart
//! of a history.

pub mod broker;
pub mod cli;
pub mod codec;
pub mod compare;
mod coverage;
pub mod duel;
mod failure;
pub mod history;
mod housemates;
pub mod known;
pub mod laws;
mod log;
pub mod process;
pub mod referee;
pub mod schema;
mod session;
pub mod settings;
pub mod source;
mod timers;
mod votes;

pub use compare::{Difference, answers};
pub use process::Oracle;
pub use schema::Schemas;
pub use session::Session;
