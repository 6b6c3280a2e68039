//! TxnOffsetCommit (28): offsets as part of a transaction (C 10.3, V-9).

use coordinator::offsets::{reaches_group, refused_by_transaction};
use coordinator::txn::TopicPartitions;
use coordinator::{Command, Producer};
use wire::messages::txn_offset_commit_request::TxnOffsetCommitRequest;
use wire::messages::txn_offset_commit_response::TxnOffsetCommitResponse;
use wire::{ErrorCode, KStr};

use super::group::{call, caller, reply};
use super::verification::Implies;
use super::{Handled, HandlerError, RequestContext};
use crate::topics::OFFSETS_TOPIC;

/// First version that knows TRANSACTION_ABORTABLE; later ones add the offsets to the transaction.
const ABORTABLE_FROM: i16 = 4;
/// First version that knows COORDINATOR_LOAD_IN_PROGRESS (C X-2).
const LOADING_FROM: i16 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: TxnOffsetCommitRequest,
) -> Result<Handled<TxnOffsetCommitResponse>, HandlerError> {
    let image = cx.broker.topics.image();
    // What would not reach the group does not concern the transaction either (C X-1).
    if !request.group_id.is_empty()
        && reaches_group(&image, cx.api_version, &request)
        && let Err(error) = enter(cx, &request).await
    {
        return Ok(refused_by_transaction(&image, cx.api_version, &request, known(cx, error)).into());
    }
    let group_id = request.group_id.clone();
    let unanswered = request.clone();
    let replied = call(cx, &group_id, Command::TxnOffsetCommit(caller(cx), Box::new(request))).await;
    let response = reply!(replied, TxnOffsetCommit, |error: ErrorCode| {
        Box::new(refused_by_transaction(&image, cx.api_version, &unanswered, known(cx, error)))
    });
    Ok((*response).into())
}

/// The partition of the group's offsets becomes part of the transaction, or has to be part of it (V-9).
async fn enter(cx: &RequestContext<'_>, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    let implies = Implies::of(cx.api_version, ABORTABLE_FROM);
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let partition = cx.broker.groups.partition_of(&request.group_id);
    let log = cx.broker.topics.partition(OFFSETS_TOPIC, partition).ok_or(ErrorCode::NotCoordinator)?;
    let (adds, now_ms) = (implies == Implies::Add, cx.broker.clock.wall_ms());
    let guard = log.begin_verification(producer.id, producer.epoch, 0, adds, now_ms);
    if guard.map_err(|error| ErrorCode::from_code(error.code()))?.is_none() || !implies.asks(cx) {
        return Ok(());
    }
    let partitions = TopicPartitions::from([(KStr::from_static(OFFSETS_TOPIC), [partition].into())]);
    match implies.ask(cx, &request.transactional_id, producer, partitions).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(_) => Err(implies.not_part()),
        // As the coordinator of a group says it (C R-6).
        Err(ErrorCode::NotEnoughReplicas) => Err(ErrorCode::CoordinatorNotAvailable),
        Err(error) => Err(error),
    }
}

fn known(cx: &RequestContext<'_>, error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::CoordinatorLoadInProgress if cx.api_version < LOADING_FROM => ErrorCode::CoordinatorNotAvailable,
        error => error,
    }
}
