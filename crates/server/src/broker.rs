//! What all handlers share.

use std::sync::Arc;
use std::time::Instant;

use wire::KStr;

use crate::config::Config;
use crate::shutdown::Shutdown;
use crate::topics::Topics;

/// One broker in this process. Everything it owns is reached from here; nothing of it is global.
pub(crate) struct Broker {
    pub node_id: i32,
    /// 22 characters, as `meta.properties` has it.
    pub cluster_id: KStr,
    pub started_at: Instant,
    pub config: Arc<Config>,
    pub topics: Arc<Topics>,
    pub shutdown: Shutdown,
}
