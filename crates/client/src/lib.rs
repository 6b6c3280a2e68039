//! A small Kafka client: what the command line, the load generator and the tests need.
//!
//! It connects, learns which versions the broker speaks, finds coordinators and repeats what can be repeated. It is no
//! consumer and no producer, and knows nothing of the inside of a broker.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod router;

pub use connection::Connection;
pub use error::ClientError;
pub use router::Client;
