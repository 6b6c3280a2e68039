//! A small Kafka client: what the command line, the load generator and the tests need.
//!
//! It connects, learns which versions the broker speaks, finds coordinators and leaders and repeats what can be repeated;
//! [`admin`] asks about groups, offsets, topics and settings. It is no consumer and no producer, and knows nothing of the
//! inside of a broker.
#![forbid(unsafe_code)]

pub mod admin;
mod connection;
mod error;
pub mod http;
mod router;

pub use connection::Connection;
pub use error::ClientError;
pub use router::Client;
