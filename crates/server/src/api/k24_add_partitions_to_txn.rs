//! AddPartitionsToTxn (24): what a transaction will write to (P-1 to P-5).

use coordinator::Producer;
use coordinator::txn::{PROTOCOL_2, TopicPartitions};
use wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse, AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

/// From this version on, one request has several transactions, and it is brokers that ask (P-1).
const BATCHED_FROM: i16 = 4;
/// PRODUCER_FENCED is known from this version on (P-4).
const PRODUCER_FENCED_FROM: i16 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AddPartitionsToTxnRequest,
) -> Result<Handled<AddPartitionsToTxnResponse>, HandlerError> {
    let mut response = AddPartitionsToTxnResponse::default();
    if cx.api_version < BATCHED_FROM {
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            verify_only: false,
            topics: request.v3_and_below_topics,
        };
        response.results_by_topic_v3_and_below = one(cx, &transaction, 0).await;
    } else {
        for transaction in request.transactions {
            let topic_results = one(cx, &transaction, PROTOCOL_2).await;
            let transactional_id = transaction.transactional_id;
            response.results_by_transaction.push(AddPartitionsToTxnResult { transactional_id, topic_results });
        }
    }
    Ok(response.into())
}

async fn one(
    cx: &RequestContext<'_>,
    transaction: &AddPartitionsToTxnTransaction,
    client_version: i16,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let known = |topic: &KStr, partition: i32| cx.broker.topics.partition(topic, partition).is_some();
    let partitions = partitions_of(transaction);
    // P-2: all of them or none.
    if partitions.iter().any(|(topic, partitions)| partitions.iter().any(|partition| !known(topic, *partition))) {
        return results(&transaction.topics, |topic, partition| match known(topic, partition) {
            true => ErrorCode::OperationNotAttempted,
            false => ErrorCode::UnknownTopicOrPartition,
        });
    }
    let id = &transaction.transactional_id;
    let producer = Producer { id: transaction.producer_id, epoch: transaction.producer_epoch };
    let transactions = &cx.broker.transactions;
    if transaction.verify_only {
        let verified = transactions.verify_partitions(id, producer, partitions).await;
        return results(&transaction.topics, |topic, partition| match &verified {
            Err(error) => *error,
            Ok(missing) if missing.get(topic).is_some_and(|missing| missing.contains(&partition)) => {
                ErrorCode::TransactionAbortable
            }
            Ok(_) => ErrorCode::None,
        });
    }
    let error = match transactions.add_partitions(id, producer, partitions, client_version).await {
        ErrorCode::ProducerFenced if cx.api_version < PRODUCER_FENCED_FROM => ErrorCode::InvalidProducerEpoch,
        error => error,
    };
    results(&transaction.topics, |_, _| error)
}

fn partitions_of(transaction: &AddPartitionsToTxnTransaction) -> TopicPartitions {
    let mut partitions = TopicPartitions::new();
    for topic in &transaction.topics {
        partitions.entry(topic.name.clone()).or_default().extend(&topic.partitions);
    }
    partitions
}

fn results(
    topics: &[AddPartitionsToTxnTopic],
    result: impl Fn(&KStr, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let of_partition = |&partition_index: &i32| AddPartitionsToTxnPartitionResult {
            partition_index,
            partition_error_code: result(&topic.name, partition_index).code(),
        };
        let results_by_partition = topic.partitions.iter().map(of_partition).collect();
        AddPartitionsToTxnTopicResult { name: topic.name.clone(), results_by_partition }
    };
    topics.iter().map(of_topic).collect()
}
