//! What the APIs of the data path share: finding partitions, waiting for data, fetch sessions.

mod session;
mod waiters;

use std::sync::Arc;

use coordinator::TopicImage;
use log::{PartitionLog, StorageError};
use tokio::sync::oneshot;
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

    /// As a fetch wants it, by name or by the id that a topic of this name once had (F-2, F-16).
    pub fn planned(&self, wanted: &PlannedPartition) -> Result<Arc<PartitionLog>, ErrorCode> {
        let (name, id) = (wanted.name.as_ref().ok_or(ErrorCode::UnknownTopicId)?, &wanted.key.topic_id);
        let log = self.by_name(name, wanted.key.partition)?;
        let same = *id == Uuid::default() || self.image.name_of(id) == Some(name);
        if same { Ok(log) } else { Err(ErrorCode::InconsistentTopicId) }
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

/// Everything that a log has at the time, on its way to consumers.
///
/// With acks=1 the answer to a produce request may be there before its records are committed. Who has that answer must not be told
/// by the next request that the log ends before them, so what asks for the end of a log waits for this.
pub(crate) struct Commit(Option<oneshot::Receiver<Result<(), StorageError>>>);

impl Commit {
    /// Begins to wait; several logs can be waited for at once.
    pub fn of(log: &PartitionLog) -> Result<Commit, StorageError> {
        let offsets = log.offsets()?;
        if offsets.log_end <= offsets.high_watermark {
            return Ok(Commit(None));
        }
        let (done, waiting) = oneshot::channel();
        // The receiver is gone when the client is: nobody to tell.
        log.when_committed(offsets.log_end, Box::new(move |result| drop(done.send(result))));
        Ok(Commit(Some(waiting)))
    }

    /// Returns when consumers see everything, or it is known that they never will.
    pub async fn done(self) -> Result<(), StorageError> {
        match self.0 {
            // A log that ends without an answer is a log that was closed.
            Some(waiting) => waiting.await.unwrap_or(Err(StorageError::Closed)),
            None => Ok(()),
        }
    }
}
