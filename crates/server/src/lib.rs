//! The tokio shell around the coordinator and the log: listeners, connections, dispatch, one file per API key, topics,
//! configuration.
//!
//! - [`api`] has the table of APIs and a file per key; `connection` frames, limits and orders requests and answers;
//!   `listener` accepts and knows the addresses that clients are told.
//! - [`broker`] is what handlers share. `groups` hosts the coordinator's shards on partitions of `__consumer_offsets`.
//! - `config` and `topics` own settings and the topic registry.
//! - `admin_http` is for people and their tools; `metrics` counts, `journal` tells why groups rebalanced, `lag` compares commits with logs.
//!
//! What is absent on purpose: decisions about groups (crate `coordinator`), bytes of segments (crate `log`).

mod admin_http;
mod advertised;
mod api;
mod broker;
mod clock;
pub mod config;
mod connection;
mod data;
mod features;
mod groups;
mod hosting;
mod ids;
mod journal;
mod lag;
mod listener;
mod log_events;
mod maintenance;
mod metrics;
mod os;
mod server;
mod shutdown;
mod topics;
mod transactions;

pub use os::raise_open_files_limit;
pub use server::{RunningServer, StartError, start, start_on};
