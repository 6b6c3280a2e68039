//! What all handlers share.

use std::sync::Arc;

use log::LogDir;
use wire::KStr;

use crate::clock::Clock;
use crate::config::Config;
use crate::connection::{Budget, ConnectionLimits, Connections};
use crate::data::{FetchSessions, FetchWaiters};
use crate::features::Features;
use crate::groups::Groups;
use crate::log_events::LogEvents;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::topics::Topics;
use crate::transactions::Transactions;

/// One broker in this process. Everything it owns is reached from here; nothing of it is global.
pub(crate) struct Broker {
    pub node_id: i32,
    /// 22 characters, as `meta.properties` has it.
    pub cluster_id: KStr,
    pub clock: Clock,
    pub config: Arc<Config>,
    pub features: Arc<Features>,
    pub logs: Arc<LogDir>,
    pub log_events: LogEvents,
    pub topics: Arc<Topics>,
    pub groups: Groups,
    pub transactions: Transactions,
    pub fetch_sessions: FetchSessions,
    pub fetch_waiters: Arc<FetchWaiters>,
    pub limits: Arc<ConnectionLimits>,
    pub budget: Budget,
    pub connections: Connections,
    pub metrics: Arc<Metrics>,
    pub shutdown: Shutdown,
}
