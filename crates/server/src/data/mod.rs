//! What the APIs of the data path share: finding partitions, waiting for data, fetch sessions.

mod session;
mod waiters;

use std::sync::Arc;

use coordinator::TopicImage;
use log::PartitionLog;
use wire::{ErrorCode, KStr, Uuid};

use crate::broker::Broker;

pub(crate) use session::{FetchPlan, FetchSessions, PlannedPartition, Seen};
pub(crate) use waiters::FetchWaiters;

/// Largest `Produce` and `Fetch` versions that still name topics by name.
pub(crate) const PRODUCE_NAMES_UNTIL: i16 = 12;
pub(crate) const FETCH_NAMES_UNTIL: i16 = 12;

/// Looks partitions up in one picture of the topics, so that one request sees one state.
pub(crate) struct Partitions<'a> {
    broker: &'a Broker,
    image: Arc<TopicImage>,
}

impl<'a> Partitions<'a> {
    pub fn now(broker: &'a Broker) -> Self {
        Partitions { broker, image: broker.topics.image() }
    }

    /// UNKNOWN_TOPIC_OR_PARTITION when there is no such topic or partition.
    pub fn by_name(&self, topic: &str, partition: i32) -> Result<Arc<PartitionLog>, ErrorCode> {
        self.broker.topics.partition(topic, partition).ok_or(ErrorCode::UnknownTopicOrPartition)
    }

    /// UNKNOWN_TOPIC_ID when there is no such topic.
    pub fn name_of(&self, id: &Uuid) -> Result<KStr, ErrorCode> {
        self.image.name_of(id).cloned().ok_or(ErrorCode::UnknownTopicId)
    }

    /// By id where `by_id` says that the request has ids, else by name.
    pub fn find(&self, by_id: bool, name: &KStr, id: &Uuid, partition: i32) -> Result<Arc<PartitionLog>, ErrorCode> {
        if by_id {
            let name = self.name_of(id)?;
            return self.by_name(&name, partition);
        }
        self.by_name(name, partition)
    }
}

/// Compares the leader epoch that a client knows with ours (F-3): -1 is not compared.
pub(crate) fn check_leader_epoch(log: &PartitionLog, known: i32) -> Result<(), ErrorCode> {
    let current = log.leader_epoch();
    match known {
        -1 => Ok(()),
        known if known < current => Err(ErrorCode::FencedLeaderEpoch),
        known if known > current => Err(ErrorCode::UnknownLeaderEpoch),
        _ => Ok(()),
    }
}
