//! End markers in the logs that a transaction wrote to (E-9, D-4).

use std::sync::Arc;

use coordinator::EndMarker;
use coordinator::txn::TopicPartitions;
use log::{AppendError, StorageError, TxnProtocol};
use tokio::sync::oneshot;
use wire::batch::ControlType;
use wire::{ErrorCode, KStr};

use crate::clock::Clock;
use crate::groups::{Begun, Groups};
use crate::hosting::error_code;
use crate::topics::{OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topics};

/// Writes them.
pub(crate) struct Markers {
    topics: Arc<Topics>,
    groups: Groups,
    clock: Clock,
}

/// A marker on its way.
enum Write {
    Done(ErrorCode),
    /// Written to a log, to be durable soon.
    Log(oneshot::Receiver<Result<(), StorageError>>),
    /// A partition of `__consumer_offsets`: pending offsets come to count, or are dropped.
    Offsets(Begun),
}

impl Markers {
    pub fn new(topics: Arc<Topics>, groups: Groups, clock: Clock) -> Self {
        Markers { topics, groups, clock }
    }

    /// Writes a marker to each of the partitions, and waits until all are durable. Yields the result of each, in their order:
    /// UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or an error of the storage.
    pub async fn write(&self, marker: EndMarker, partitions: &[(KStr, i32)]) -> Vec<ErrorCode> {
        let begun: Vec<_> = partitions.iter().map(|(topic, partition)| self.begin(marker, topic, *partition)).collect();
        let mut results = Vec::with_capacity(begun.len());
        for begun in begun {
            results.push(finish(begun).await);
        }
        results
    }

    /// Yields the partitions that have to be tried again. A partition that is gone needs no marker, and one that refuses it
    /// for good has had a later one: somebody ended the transaction by hand.
    pub async fn write_until_refused(&self, marker: EndMarker, partitions: TopicPartitions) -> TopicPartitions {
        let all: Vec<(KStr, i32)> = partitions
            .into_iter()
            .flat_map(|(topic, partitions)| partitions.into_iter().map(move |partition| (topic.clone(), partition)))
            .collect();
        let mut failed = TopicPartitions::new();
        for ((topic, partition), error) in all.iter().zip(self.write(marker, &all).await) {
            match error {
                ErrorCode::None | ErrorCode::UnknownTopicOrPartition => {}
                ErrorCode::InvalidProducerEpoch | ErrorCode::TransactionCoordinatorFenced => {
                    tracing::warn!("{topic}-{partition}: refuses the end marker of {:?}: {error}", marker.producer);
                }
                error => {
                    tracing::warn!(
                        "{topic}-{partition}: cannot write the end marker of {:?}: {error}",
                        marker.producer
                    );
                    failed.entry(topic.clone()).or_default().insert(*partition);
                }
            }
        }
        failed
    }

    fn begin(&self, marker: EndMarker, topic: &KStr, partition: i32) -> Write {
        match topic.as_str() {
            OFFSETS_TOPIC => match self.groups.end_transaction(partition, marker) {
                Some(begun) => Write::Offsets(begun),
                None => Write::Done(ErrorCode::UnknownTopicOrPartition),
            },
            // Nothing in it belongs to a transaction; its shards alone write there.
            TRANSACTIONS_TOPIC => Write::Done(ErrorCode::None),
            _ => self.append(marker, topic, partition),
        }
    }

    fn append(&self, marker: EndMarker, topic: &KStr, partition: i32) -> Write {
        let Some(log) = self.topics.partition(topic, partition) else {
            return Write::Done(ErrorCode::UnknownTopicOrPartition);
        };
        let EndMarker { producer, commit, coordinator_epoch, raises_epoch } = marker;
        let kind = if commit { ControlType::Commit } else { ControlType::Abort };
        let protocol = if raises_epoch { TxnProtocol::V2 } else { TxnProtocol::V1 };
        let now_ms = self.clock.wall_ms();
        match log.append_marker(kind, producer.id, producer.epoch, coordinator_epoch, protocol, now_ms) {
            Ok(info) => {
                let (done, waiting) = oneshot::channel();
                // Nobody waits when the broker stops.
                log.when_committed(info.next_offset(), Box::new(move |result| drop(done.send(result))));
                Write::Log(waiting)
            }
            // The topic was deleted just now.
            Err(AppendError::Storage(StorageError::Closed)) => Write::Done(ErrorCode::UnknownTopicOrPartition),
            Err(error) => Write::Done(ErrorCode::from_code(error.code())),
        }
    }
}

async fn finish(begun: Write) -> ErrorCode {
    match begun {
        Write::Done(error) => error,
        Write::Log(waiting) => match waiting.await {
            Ok(Ok(())) => ErrorCode::None,
            Ok(Err(StorageError::Closed)) => ErrorCode::UnknownTopicOrPartition,
            Ok(Err(error)) => ErrorCode::from_code(error.code()),
            Err(_) => ErrorCode::NotLeaderOrFollower,
        },
        Write::Offsets(begun) => begun.finish().await.map_or_else(|why| error_code(&why), |_| ErrorCode::None),
    }
}
