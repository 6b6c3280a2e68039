//! What all handlers share.

use std::sync::Arc;
use std::time::Duration;

use log::LogDir;
use wire::{ErrorCode, KStr};

use crate::clock::Clock;
use crate::config::Config;
use crate::connection::{Budget, ConnectionLimits, Connections};
use crate::data::{FetchSessions, FetchWaiters};
use crate::features::Features;
use crate::groups::Groups;
use crate::journal::Journal;
use crate::log_events::LogEvents;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::topics::{OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topics, own_topic};
use crate::transactions::Transactions;

/// How long a new coordinator may take to load nothing; clients repeat what comes too early.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

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
    pub journal: Arc<Journal>,
    pub shutdown: Shutdown,
}

impl Broker {
    /// Makes the topic of the group coordinator if it is missing (C R-3). When this returns, its groups can be asked for.
    pub async fn open_groups(&self) -> Result<(), ErrorCode> {
        if !self.groups.has_shards() {
            self.make_topic(OFFSETS_TOPIC).await?;
            self.groups.loaded(OPEN_PATIENCE).await;
        }
        Ok(())
    }

    /// The same for the transaction coordinator.
    pub async fn open_transactions(&self) -> Result<(), ErrorCode> {
        if !self.transactions.has_shards() {
            self.make_topic(TRANSACTIONS_TOPIC).await?;
            self.transactions.loaded(OPEN_PATIENCE).await;
        }
        Ok(())
    }

    async fn make_topic(&self, name: &'static str) -> Result<(), ErrorCode> {
        let Some(topic) = own_topic(name, &self.config.current()) else {
            return Err(ErrorCode::CoordinatorNotAvailable);
        };
        self.topics.ensure(topic).await.map_err(|refusal| {
            tracing::error!("cannot create {name}: {refusal}");
            ErrorCode::CoordinatorNotAvailable
        })
    }
}
