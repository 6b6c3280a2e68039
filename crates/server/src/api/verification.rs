//! Asking the transaction coordinator before the first batch of a transaction reaches a partition (V-4 to V-9): the same for
//! records and for offsets.

use std::time::Duration;

use coordinator::Producer;
use coordinator::txn::{PROTOCOL_2, TopicPartitions};
use wire::{ErrorCode, KStr};

use super::RequestContext;

/// What the version of the request implies (T-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Implies {
    /// Protocol 2: the partitions become part of the transaction.
    Add,
    /// They have to be part of it already. Who knows TRANSACTION_ABORTABLE aborts and goes on; others must not go on.
    Verify { knows_abortable: bool },
}

impl Implies {
    /// `abortable_from`: first version that knows TRANSACTION_ABORTABLE; the one after it adds.
    pub fn of(api_version: i16, abortable_from: i16) -> Self {
        if api_version > abortable_from {
            Implies::Add
        } else {
            Implies::Verify { knows_abortable: api_version == abortable_from }
        }
    }

    /// Whether the coordinator has to be asked at all, whatever the log knows.
    pub fn asks(self, cx: &RequestContext<'_>) -> bool {
        self == Implies::Add || cx.broker.config.current().transactions.verify_partitions
    }

    /// The error of a partition that is not part of the transaction.
    pub fn not_part(self) -> ErrorCode {
        match self {
            Implies::Verify { knows_abortable: false } => ErrorCode::InvalidTxnState,
            _ => ErrorCode::TransactionAbortable,
        }
    }

    /// Yields the partitions that are not part of the transaction.
    ///
    /// # Errors
    /// What all of them fail with, in the terms of the producer (V-6).
    pub async fn ask(
        self,
        cx: &RequestContext<'_>,
        transactional_id: &KStr,
        producer: Producer,
        partitions: TopicPartitions,
    ) -> Result<TopicPartitions, ErrorCode> {
        let transactions = &cx.broker.transactions;
        let asked = match self {
            Implies::Verify { .. } => transactions.verify_partitions(transactional_id, producer, partitions).await,
            Implies::Add => match add(cx, transactional_id, producer, &partitions).await {
                ErrorCode::None => Ok(TopicPartitions::new()),
                error => Err(error),
            },
        };
        asked.map_err(|error| self.in_terms_of_producers(error))
    }

    fn in_terms_of_producers(self, error: ErrorCode) -> ErrorCode {
        match error {
            ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
            // Every producer tries these again.
            ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::NetworkException => ErrorCode::NotEnoughReplicas,
            // Only newer ones try this one again.
            ErrorCode::ConcurrentTransactions if self != Implies::Add => ErrorCode::NotEnoughReplicas,
            error => error,
        }
    }
}

/// The end of the transaction before is often a matter of milliseconds: it is waited for, a little.
async fn add(
    cx: &RequestContext<'_>,
    transactional_id: &KStr,
    producer: Producer,
    partitions: &TopicPartitions,
) -> ErrorCode {
    let settings = cx.broker.config.current().transactions.clone();
    let pause_ms = settings.add_partitions_retry_ms.max(1);
    let mut left_ms = settings.add_partitions_retry_max_ms;
    loop {
        let transactions = &cx.broker.transactions;
        let error = transactions.add_partitions(transactional_id, producer, partitions.clone(), PROTOCOL_2).await;
        if error != ErrorCode::ConcurrentTransactions || left_ms <= 0 {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(pause_ms as u64)).await;
        left_ms -= pause_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v_6_what_the_coordinator_says_in_terms_of_producers() {
        use ErrorCode as E;
        let (add, verify) = (Implies::Add, Implies::Verify { knows_abortable: true });
        for (said, added, verified) in [
            (E::ProducerFenced, E::InvalidProducerEpoch, E::InvalidProducerEpoch),
            (E::InvalidProducerIdMapping, E::InvalidProducerIdMapping, E::InvalidProducerIdMapping),
            (E::InvalidRequest, E::InvalidRequest, E::InvalidRequest),
            (E::CoordinatorLoadInProgress, E::NotEnoughReplicas, E::NotEnoughReplicas),
            (E::CoordinatorNotAvailable, E::NotEnoughReplicas, E::NotEnoughReplicas),
            (E::NotCoordinator, E::NotEnoughReplicas, E::NotEnoughReplicas),
            (E::ConcurrentTransactions, E::ConcurrentTransactions, E::NotEnoughReplicas),
        ] {
            assert_eq!(
                (add.in_terms_of_producers(said), verify.in_terms_of_producers(said)),
                (added, verified),
                "{said}"
            );
        }
    }

    #[test]
    fn v_4_v_9_what_versions_imply() {
        for (version, abortable_from, expected) in [
            (12, 11, Implies::Add),
            (13, 11, Implies::Add),
            (11, 11, Implies::Verify { knows_abortable: true }),
            (10, 11, Implies::Verify { knows_abortable: false }),
            (5, 4, Implies::Add),
            (4, 4, Implies::Verify { knows_abortable: true }),
            (3, 4, Implies::Verify { knows_abortable: false }),
        ] {
            assert_eq!(Implies::of(version, abortable_from), expected, "{version}");
        }
        assert_eq!(Implies::of(11, 11).not_part(), ErrorCode::TransactionAbortable);
        assert_eq!(Implies::of(10, 11).not_part(), ErrorCode::InvalidTxnState);
    }
}
