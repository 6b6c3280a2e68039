//! Aborts that the coordinator begins: of transactions that are over time, and of those that a new producer finds open
//! (I-9, E-11). Both fence the producer that began them.

use wire::KStr;

use super::config::PROTOCOL_2;
use super::soft::{Timer, Waiting};
use super::state::{Status, Txn};
use super::{Ctx, allocate, complete};

/// The timeout of transactions that an external coordinator ends: they are never over time.
const TWO_PHASE_TIMEOUT_MS: i32 = i32::MAX;

/// Each transaction that is over time gets a turn of its own.
pub(super) fn look_for_timeouts(ctx: &mut Ctx<'_>) {
    ctx.soft.timers.set(&Timer::Timeouts, ctx.at.mono_ms + ctx.config.abort_check_interval_ms.max(1));
    let now_ms = ctx.at.wall_ms;
    for (id, _) in ctx.state.select(|_, txn| is_over_time(txn, now_ms)) {
        ctx.soft.timers.set(&Timer::Abort(id.clone()), ctx.at.mono_ms);
    }
}

fn is_over_time(txn: &Txn, now_ms: i64) -> bool {
    txn.status == Status::Ongoing
        && txn.timeout_ms != TWO_PHASE_TIMEOUT_MS
        && txn.start_ms.saturating_add(i64::from(txn.timeout_ms)) < now_ms
}

/// Aborts the transaction if that is still due.
pub(super) fn timed_out(ctx: &mut Ctx<'_>, id: &KStr, fresh: Option<i64>) {
    let now_ms = ctx.at.wall_ms;
    let Some(txn) = ctx.look_up(id).filter(|txn| is_over_time(txn, now_ms)) else { return };
    if !fence(ctx, id, &txn, fresh) {
        allocate::allocate(ctx, Waiting::Abort(id.clone()));
    }
}

/// Aborts an open transaction and raises the epoch above its producer's. False: a fresh producer id is needed for it, and
/// nothing was done.
pub(super) fn fence(ctx: &mut Ctx<'_>, id: &KStr, txn: &Txn, fresh: Option<i64>) -> bool {
    let version = ctx.config.transaction_version;
    if version >= PROTOCOL_2 {
        // The end of the transaction raises the epoch by itself.
        if txn.is_exhausted() && fresh.is_none() {
            return false;
        }
        complete::prepare(ctx, id, txn, false, version, fresh);
    } else {
        let fenced = Txn { epoch: txn.epoch.saturating_add(1), ..txn.clone() };
        complete::prepare(ctx, id, &fenced, false, version, None);
        ctx.soft.set_last_epoch(id, None);
    }
    true
}
