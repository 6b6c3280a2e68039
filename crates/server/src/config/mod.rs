//! Settings of the broker: keys with Kafka's names, files, dynamic changes.
//!
//! - [`keys`] defines every key once; `key` says what a definition is, `value` parses and checks values against it.
//! - `source` reads `server.properties`, TOML and `--set`; `load` judges what they name; `layers` orders values by where
//!   they were set.
//! - [`ServerConfig`] is all of it, typed; [`Config`] the snapshot that holds now. `topic` and `group` do the same for one topic
//!   and one group, `describe` shows all three as DescribeConfigs
//!   does, and `document` writes the page about them.
//!
//! Dynamic values are kept by the topic registry's metadata log, which gives them to [`Config::update`] at the start and
//! after each change. What a group resource may hold is `coordinator::config`'s to say.

mod describe;
mod document;
mod group;
pub mod key;
pub mod keys;
mod layers;
mod listeners;
mod load;
mod server;
mod source;
#[cfg(test)]
mod tests;
mod topic;
pub mod value;

use std::sync::{Arc, PoisonError, RwLock};

pub use describe::{Entry, SynonymValue, describe_broker, describe_group, describe_topic};
pub use document::document;
pub use group::{GroupConfigError, group_overrides, validate_group};
pub use layers::{Layers, Lookup, Source, Values};
pub use listeners::Listener;
pub use load::{ConfigError, Findings, Sources, load, load_text};
pub use server::{InternalTopicConfig, NetworkConfig, ServerConfig, StorageConfig, TopicDefaults, TransactionConfig};
pub use source::{Format, Setting, SourceError, properties};
pub use topic::{TopicConfigError, TopicOverrides, log_config, validate};

/// Everything that can be configured, as a snapshot that changes over time.
#[derive(Debug)]
pub struct Config {
    current: RwLock<Arc<ServerConfig>>,
}

impl Config {
    pub fn new(start: ServerConfig) -> Config {
        Config { current: RwLock::new(Arc::new(start)) }
    }

    /// The settings that hold now.
    pub fn current(&self) -> Arc<ServerConfig> {
        // Readers only clone and writers only store, so a poisoned lock still holds a whole snapshot.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the dynamic values of this broker and of all brokers. Nothing changes when the result contradicts itself.
    pub fn update(&self, broker: Values, cluster: Values) -> Result<Arc<ServerConfig>, ConfigError> {
        let fixed = self.current().layers.fixed.clone();
        let next = Arc::new(ServerConfig::build(Layers { broker, cluster, fixed })?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next.clone();
        Ok(next)
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::new(ServerConfig::default())
    }
}
