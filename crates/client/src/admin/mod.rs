//! What an operator asks of a cluster, in terms of groups, offsets and topics rather than of messages.
//!
//! Every function speaks the Kafka protocol in whatever versions the broker has, so it works against Millstream and, as far as
//! it has the same APIs, against Apache Kafka. The results are plain values that can be written as JSON; how they are shown
//! is left to the caller.

pub mod configs;
mod description;
pub mod groups;
pub mod lag;
pub mod offsets;
pub mod positions;
pub mod reset;
pub mod topics;

use std::fmt;

use serde::Serialize;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TopicPartition {
    pub topic: String,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: &str, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.to_owned(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Which records count: all that are acknowledged, or those below the last stable offset that were not aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    #[default]
    ReadUncommitted,
    ReadCommitted,
}

impl Isolation {
    fn level(self) -> i8 {
        match self {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        }
    }
}
