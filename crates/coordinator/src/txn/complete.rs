//! From the decision to its end: the prepared state, the markers, the complete state (E-6 to E-9).

use wire::KStr;

use super::config::PROTOCOL_2;
use super::soft::{Completing, Soft, Timer};
use super::state::{NO_PRODUCER_ID, State, Status, TopicPartitions, Txn};
use super::{Ctx, Effect};
use crate::env::Moment;
use crate::state_log::Producer;

/// Pause before markers that could not be written are tried again; doubled with each failure.
const RETRY_MS: u64 = 100;
const MAX_RETRY_MS: u64 = 5_000;

/// Decides the end of a transaction and asks for its markers. One without partitions needs none and is complete at once.
/// `fresh`: the producer id to go on with if the epochs of the present one are used up (E-8).
pub(super) fn prepare(
    ctx: &mut Ctx<'_>,
    id: &KStr,
    txn: &Txn,
    commit: bool,
    client_version: i16,
    fresh: Option<i64>,
) -> Txn {
    let now_ms = ctx.at.wall_ms;
    let mut prepared = txn.next(if commit { Status::PrepareCommit } else { Status::PrepareAbort }, now_ms);
    prepared.client_version = client_version;
    prepared.next_producer_id = NO_PRODUCER_ID;
    if txn.status != Status::Ongoing {
        prepared.start_ms = now_ms;
    }
    if client_version >= PROTOCOL_2 {
        // The last epoch of all is for this only; a producer never gets it.
        prepared.epoch = txn.epoch.saturating_add(1);
        prepared.next_producer_id = fresh.filter(|_| txn.is_exhausted()).unwrap_or(NO_PRODUCER_ID);
    }
    ctx.write(id, Some(prepared.clone()));
    if client_version >= PROTOCOL_2 {
        ctx.soft.set_last_epoch(id, None);
    }
    if prepared.partitions.is_empty() {
        finish(ctx, id, &prepared);
    } else {
        let remaining = prepared.partitions.clone();
        ask_for_markers(ctx, id, &prepared, &remaining);
        ctx.soft.completing.insert(id.to_owned_detached(), Completing { remaining, failures: 0 });
    }
    prepared
}

/// The timer of a prepared transaction: after recovery, or because markers could not be written.
pub(super) fn write_markers(ctx: &mut Ctx<'_>, id: &KStr) {
    let Some(txn) = ctx.look_up(id).filter(Txn::is_prepared) else {
        ctx.soft.completing.remove(id);
        return;
    };
    let all = || Completing { remaining: txn.partitions.clone(), failures: 0 };
    let remaining = ctx.soft.completing.entry(id.clone()).or_insert_with(all).remaining.clone();
    if remaining.is_empty() {
        finish(ctx, id, &txn);
    } else {
        ask_for_markers(ctx, id, &txn, &remaining);
    }
}

fn ask_for_markers(ctx: &mut Ctx<'_>, id: &KStr, txn: &Txn, partitions: &TopicPartitions) {
    ctx.out.effects.push(Effect::WriteMarkers {
        transactional_id: id.to_owned_detached(),
        producer: Producer { id: txn.producer_id, epoch: txn.epoch },
        commit: txn.status == Status::PrepareCommit,
        raises_epoch: txn.raises_epoch(),
        partitions: partitions.clone(),
    });
}

/// `producer` tells an answer to the present transaction from one that is late.
pub(super) fn markers_written(ctx: &mut Ctx<'_>, id: &KStr, producer: Producer, failed: TopicPartitions) {
    let Some(txn) = ctx.state.get(id).filter(|txn| txn.is_prepared()).cloned() else { return };
    if (txn.producer_id, txn.epoch) != (producer.id, producer.epoch) {
        return;
    }
    let completing = ctx.soft.completing.entry(id.clone()).or_default();
    completing.remaining = failed;
    if completing.remaining.is_empty() {
        finish(ctx, id, &txn);
    } else {
        completing.failures += 1;
        let pause_ms = (RETRY_MS << completing.failures.min(16)).min(MAX_RETRY_MS);
        ctx.soft.timers.set(&Timer::Markers(id.to_owned_detached()), ctx.at.mono_ms + pause_ms);
    }
}

/// All markers are written.
fn finish(ctx: &mut Ctx<'_>, id: &KStr, prepared: &Txn) {
    let status = if prepared.status == Status::PrepareCommit { Status::CompleteCommit } else { Status::CompleteAbort };
    let mut done = prepared.next(status, ctx.at.wall_ms);
    if prepared.next_producer_id != NO_PRODUCER_ID {
        (done.producer_id, done.epoch) = (prepared.next_producer_id, 0);
    }
    done.next_producer_id = NO_PRODUCER_ID;
    done.partitions.clear();
    ctx.write(id, Some(done));
    ctx.soft.completing.remove(id);
    ctx.soft.timers.cancel(&Timer::Markers(id.clone()));
}

/// Nothing of the latest command happened. If it was the completion of a transaction, it is tried again.
pub(super) fn refused(state: &State, soft: &mut Soft, at: Moment) {
    if let Some(id) = soft.undo()
        && state.get(&id).is_some_and(Txn::is_prepared)
    {
        soft.timers.set(&Timer::Markers(id.to_owned_detached()), at.mono_ms + RETRY_MS);
    }
}
