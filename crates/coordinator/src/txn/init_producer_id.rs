//! InitProducerId with a transactional id: a producer takes the id over (I-3 to I-10).

use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::init_producer_id_response::InitProducerIdResponse;
use wire::{ErrorCode, KStr};

use super::soft::Waiting;
use super::state::{NO_EPOCH, NO_PRODUCER_ID, Status, TopicPartitions, Txn};
use super::{Config, Ctx, Reply, abort, allocate};

/// Clients know PRODUCER_FENCED from this version on (I-10).
const PRODUCER_FENCED_FROM: i16 = 4;

enum Step {
    Refuse(ErrorCode),
    /// A fresh producer id is needed first.
    Allocate,
    /// A transaction is open: it is aborted first.
    Abort(Txn),
    Grant {
        txn: Txn,
        /// What the producer gave, so that it may ask again if the answer is lost.
        last_epoch: Option<i16>,
    },
}

/// What no state of the coordinator could make right (I-3), so that it may be refused where there is none.
pub fn never_granted(transactional_id: &str, timeout_ms: i32, config: &Config) -> Option<ErrorCode> {
    if transactional_id.is_empty() {
        return Some(ErrorCode::InvalidRequest);
    }
    (timeout_ms <= 0 || timeout_ms > config.max_timeout_ms).then_some(ErrorCode::InvalidTransactionTimeout)
}

/// `fresh`: a producer id that is there to be used, once the command has waited for one.
pub(super) fn init(ctx: &mut Ctx<'_>, api_version: i16, request: InitProducerIdRequest, fresh: Option<i64>) {
    let id = request.transactional_id.clone().unwrap_or(KStr::EMPTY);
    match decide(ctx, &id, &request, fresh) {
        Step::Refuse(error) => refuse(ctx, api_version, error),
        Step::Allocate => wait(ctx, api_version, request),
        Step::Abort(txn) => {
            if abort::fence(ctx, &id, &txn, fresh) {
                refuse(ctx, api_version, ErrorCode::ConcurrentTransactions);
            } else {
                wait(ctx, api_version, request);
            }
        }
        Step::Grant { txn, last_epoch } => {
            let (producer_id, producer_epoch) = (txn.producer_id, txn.epoch);
            ctx.write(&id, Some(txn));
            ctx.soft.set_last_epoch(&id, last_epoch);
            let response = InitProducerIdResponse { producer_id, producer_epoch, ..Default::default() };
            ctx.reply(Reply::InitProducerId(response));
        }
    }
}

fn wait(ctx: &mut Ctx<'_>, api_version: i16, request: InitProducerIdRequest) {
    let ticket = ctx.ticket;
    allocate::allocate(ctx, Waiting::InitProducerId { ticket, api_version, request });
}

pub(super) fn refuse(ctx: &mut Ctx<'_>, api_version: i16, error: ErrorCode) {
    let known = match error {
        ErrorCode::ProducerFenced if api_version < PRODUCER_FENCED_FROM => ErrorCode::InvalidProducerEpoch,
        error => error,
    };
    let response = InitProducerIdResponse {
        error_code: known.code(),
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_EPOCH,
        ..Default::default()
    };
    ctx.reply(Reply::InitProducerId(response));
}

fn decide(ctx: &mut Ctx<'_>, id: &KStr, request: &InitProducerIdRequest, fresh: Option<i64>) -> Step {
    let timeout_ms = request.transaction_timeout_ms;
    if let Some(error) = never_granted(id, timeout_ms, ctx.config) {
        return Step::Refuse(error);
    }
    let now_ms = ctx.at.wall_ms;
    let Some(txn) = ctx.look_up(id) else {
        return fresh.map_or(Step::Allocate, |producer_id| Step::Grant {
            txn: created(producer_id, timeout_ms, now_ms),
            last_epoch: None,
        });
    };
    let given = (request.producer_id != NO_PRODUCER_ID).then_some((request.producer_id, request.producer_epoch));
    if txn.is_prepared() {
        return Step::Refuse(ErrorCode::ConcurrentTransactions);
    }
    if given.is_some_and(|(producer_id, epoch)| !is_its_own(&txn, producer_id, epoch)) {
        return Step::Refuse(ErrorCode::ProducerFenced);
    }
    if txn.status == Status::Ongoing {
        return Step::Abort(txn);
    }
    let mut next = txn.next(Status::Empty, now_ms);
    (next.timeout_ms, next.start_ms, next.partitions) = (timeout_ms, -1, TopicPartitions::new());
    let given = given.map(|(_, epoch)| epoch);
    if txn.is_exhausted() && given.is_none_or(|epoch| epoch == txn.epoch) {
        let Some(producer_id) = fresh else { return Step::Allocate };
        (next.producer_id, next.epoch) = (producer_id, 0);
        return Step::Grant { txn: next, last_epoch: given };
    }
    match given {
        Some(epoch) if epoch != txn.epoch => {
            // The producer was given the present epoch already and does not know.
            if last_epoch(ctx, id, &txn) != Some(epoch) {
                return Step::Refuse(ErrorCode::ProducerFenced);
            }
        }
        _ => next.epoch = txn.epoch + 1, // not exhausted
    }
    Step::Grant { txn: next, last_epoch: given }
}

/// I-6: the producer id is the present one, or the one before it if the producer cannot know the new one yet.
fn is_its_own(txn: &Txn, producer_id: i64, epoch: i16) -> bool {
    let of_before = producer_id == txn.previous_producer_id && epoch >= super::state::LAST_EPOCH;
    producer_id == txn.producer_id || of_before
}

/// The epoch before the present one, as the producer knows it.
fn last_epoch(ctx: &Ctx<'_>, id: &KStr, txn: &Txn) -> Option<i16> {
    txn.epoch_before_end().or_else(|| ctx.soft.last_epochs.get(id).copied())
}

/// I-4, with the first epoch.
fn created(producer_id: i64, timeout_ms: i32, now_ms: i64) -> Txn {
    Txn {
        producer_id,
        previous_producer_id: producer_id,
        next_producer_id: NO_PRODUCER_ID,
        epoch: 0,
        timeout_ms,
        status: Status::Empty,
        partitions: TopicPartitions::new(),
        start_ms: -1,
        last_update_ms: now_ms,
        client_version: 0,
    }
}
