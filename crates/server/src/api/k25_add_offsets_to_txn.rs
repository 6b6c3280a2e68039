//! AddOffsetsToTxn (25): a transaction will commit offsets of a group (P-6).

use coordinator::Producer;
use coordinator::txn::TopicPartitions;
use wire::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use wire::messages::add_offsets_to_txn_response::AddOffsetsToTxnResponse;
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::OFFSETS_TOPIC;

/// PRODUCER_FENCED is known from this version on.
const PRODUCER_FENCED_FROM: i16 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AddOffsetsToTxnRequest,
) -> Result<Handled<AddOffsetsToTxnResponse>, HandlerError> {
    // An empty group id has a partition like any other.
    let partition = cx.broker.groups.partition_of(&request.group_id);
    let partitions = TopicPartitions::from([(KStr::from_static(OFFSETS_TOPIC), [partition].into())]);
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let added = cx.broker.transactions.add_partitions(&request.transactional_id, producer, partitions, 0).await;
    let error = match added {
        ErrorCode::ProducerFenced if cx.api_version < PRODUCER_FENCED_FROM => ErrorCode::InvalidProducerEpoch,
        error => error,
    };
    Ok(AddOffsetsToTxnResponse { error_code: error.code(), ..Default::default() }.into())
}
