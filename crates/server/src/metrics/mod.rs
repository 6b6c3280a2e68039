//! What the broker counts, and how `/metrics` is written.
//!
//! Counters are plain values that belong to one broker; nothing is global. What can be asked for when it is wanted (states
//! of groups, lag, connections) is not counted but collected for each scrape, by [`scrape`].

mod exposition;
mod groups;
mod histogram;
mod process;
mod requests;
mod scrape;

pub(crate) use histogram::Histogram;
pub(crate) use scrape::scrape;

use groups::GroupCounters;
use requests::Requests;

/// Counters of one broker.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub requests: Requests,
    pub groups: GroupCounters,
    /// How long assignors took that ran off the shard.
    pub assignor: Histogram,
    /// Connections that were accepted.
    pub accepted: std::sync::atomic::AtomicU64,
}
