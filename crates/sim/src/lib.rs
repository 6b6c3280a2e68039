//! Tests of the coordinator from outside. Nothing of this is part of the product.
//!
//! [`simulation`]: seeded runs of members against the real coordinator, in virtual time, with everything going wrong that
//! can, and checkers for what has to hold all the same. [`disk`]: the same idea for what lies below: real logs on a disk that
//! goes wrong, with the transaction coordinator and offsets on them. [`oracle`]: a comparison with Kafka's own coordinator.

mod answers;
mod app;
mod broker;
pub mod checkers;
mod classic_assignor;
mod classic_member;
mod consumer_member;
pub mod disk;
mod event;
mod groups;
mod lifecycle;
mod log;
mod member;
mod network;
mod operations;
pub mod oracle;
mod process;
mod readers;
mod rng;
pub mod settings;
mod settling;
pub mod simulation;
mod strays;
mod streams_member;
mod trace;
mod world;
