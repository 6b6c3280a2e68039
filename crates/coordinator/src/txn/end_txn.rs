//! EndTxn: a producer commits or aborts (E-1 to E-10).

use wire::ErrorCode;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::end_txn_response::EndTxnResponse;

use super::config::PROTOCOL_2;
use super::soft::Waiting;
use super::state::{LAST_EPOCH, NO_PRODUCER_ID, Status, Txn};
use super::{Ctx, Reply, allocate, complete};

/// From this version on, every transaction raises the epoch (T-4).
const PROTOCOL_2_FROM: i16 = 5;
/// Clients know PRODUCER_FENCED from this version on (E-1).
const PRODUCER_FENCED_FROM: i16 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The end is decided now.
    Prepare,
    /// It was decided and carried out before; the answer was lost.
    Repeat,
}

/// `fresh`: a producer id that is there to be used, once the command has waited for one.
pub(super) fn end(ctx: &mut Ctx<'_>, api_version: i16, request: EndTxnRequest, fresh: Option<i64>) {
    let raises_epoch = api_version >= PROTOCOL_2_FROM;
    let id = &request.transactional_id;
    let decided = if id.is_empty() {
        Err(ErrorCode::InvalidRequest)
    } else {
        ctx.look_up(id).ok_or(ErrorCode::InvalidProducerIdMapping).and_then(|txn| {
            let step = if raises_epoch { protocol_2(&txn, &request) } else { protocol_1(&txn, &request) };
            step.map(|step| (txn, step))
        })
    };
    match decided {
        Err(error) => refuse(ctx, api_version, error),
        Ok((txn, Step::Repeat)) => succeed(ctx, api_version, &txn),
        // E-8: the producer goes on under another id, which has to be there before the end is decided.
        Ok((txn, Step::Prepare)) if raises_epoch && txn.is_exhausted() && fresh.is_none() => {
            let ticket = ctx.ticket;
            allocate::allocate(ctx, Waiting::EndTxn { ticket, api_version, request });
        }
        Ok((txn, Step::Prepare)) => {
            let client_version = if raises_epoch { PROTOCOL_2 } else { 0 };
            let prepared = complete::prepare(ctx, id, &txn, request.committed, client_version, fresh);
            succeed(ctx, api_version, &prepared);
        }
    }
}

/// E-1: the epoch stays what it is.
fn protocol_1(txn: &Txn, request: &EndTxnRequest) -> Result<Step, ErrorCode> {
    if txn.producer_id != request.producer_id {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    if txn.epoch != request.producer_epoch {
        return Err(ErrorCode::ProducerFenced);
    }
    match (txn.status, request.committed) {
        (Status::PrepareCommit | Status::PrepareAbort, _) => Err(ErrorCode::ConcurrentTransactions),
        (Status::Ongoing, _) => Ok(Step::Prepare),
        (Status::CompleteCommit, true) | (Status::CompleteAbort, false) => Ok(Step::Repeat),
        _ => Err(ErrorCode::InvalidTxnState),
    }
}

/// E-2 to E-5: the epoch tells a repeated request from the next one.
fn protocol_2(txn: &Txn, request: &EndTxnRequest) -> Result<Step, ErrorCode> {
    // First, because the end may be changing the producer id.
    if txn.is_prepared() {
        return Err(ErrorCode::ConcurrentTransactions);
    }
    let repeats_last_epoch = is_repeat_of_last_epoch(txn, request);
    if txn.producer_id != request.producer_id && !repeats_last_epoch {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    let complete = matches!(txn.status, Status::CompleteCommit | Status::CompleteAbort);
    let repeated = repeats_last_epoch || i32::from(txn.epoch) == i32::from(request.producer_epoch) + 1;
    if txn.epoch != request.producer_epoch && !(complete && repeated) {
        return Err(ErrorCode::ProducerFenced);
    }
    match (txn.status, request.committed, repeated) {
        (Status::Ongoing, _, _) => Ok(Step::Prepare),
        (Status::CompleteCommit, true, true) | (Status::CompleteAbort, false, true) => Ok(Step::Repeat),
        // E-6: an abort of nothing, for the sake of the new epoch.
        (Status::CompleteCommit | Status::CompleteAbort, false, false) | (Status::Empty, false, _) => Ok(Step::Prepare),
        _ => Err(ErrorCode::InvalidTxnState),
    }
}

/// E-4: the last request that was possible under the producer id before this one.
fn is_repeat_of_last_epoch(txn: &Txn, request: &EndTxnRequest) -> bool {
    txn.previous_producer_id != txn.producer_id
        && request.producer_id == txn.previous_producer_id
        && request.producer_epoch == LAST_EPOCH
        && txn.epoch == 0
}

/// E-7, E-8: with what to go on. Older versions have no fields for it.
fn succeed(ctx: &mut Ctx<'_>, api_version: i16, txn: &Txn) {
    let mut response = EndTxnResponse::default();
    if api_version >= PROTOCOL_2_FROM {
        (response.producer_id, response.producer_epoch) = match txn.next_producer_id {
            NO_PRODUCER_ID => (txn.producer_id, txn.epoch),
            next => (next, 0),
        };
    }
    ctx.reply(Reply::EndTxn(response));
}

pub(super) fn refuse(ctx: &mut Ctx<'_>, api_version: i16, error: ErrorCode) {
    let known = match error {
        ErrorCode::ProducerFenced if api_version < PRODUCER_FENCED_FROM => ErrorCode::InvalidProducerEpoch,
        error => error,
    };
    ctx.reply(Reply::EndTxn(EndTxnResponse { error_code: known.code(), ..Default::default() }));
}
