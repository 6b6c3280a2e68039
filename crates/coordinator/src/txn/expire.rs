//! Transactional ids that nobody uses any more are forgotten (E-13).

use wire::KStr;

use super::Ctx;
use super::soft::Timer;
use super::state::{Status, Txn};

/// Each expired id gets a turn of its own.
pub(super) fn look_for_expired(ctx: &mut Ctx<'_>) {
    ctx.soft.timers.set(&Timer::Expiry, ctx.at.mono_ms + ctx.config.expiry_check_interval_ms.max(1));
    let expired_since_ms = expired_since_ms(ctx);
    for (id, _) in ctx.state.select(|_, txn| is_expired(txn, expired_since_ms)) {
        ctx.soft.timers.set(&Timer::Expire(id.clone()), ctx.at.mono_ms);
    }
}

/// Forgets the id if that is still due.
pub(super) fn expire(ctx: &mut Ctx<'_>, id: &KStr) {
    let expired_since_ms = expired_since_ms(ctx);
    if ctx.state.get(id).is_some_and(|txn| is_expired(txn, expired_since_ms)) {
        ctx.write(id, None);
        ctx.soft.set_last_epoch(id, None);
    }
}

fn expired_since_ms(ctx: &Ctx<'_>) -> i64 {
    ctx.at.wall_ms.saturating_sub(ctx.config.id_expiration_ms)
}

fn is_expired(txn: &Txn, expired_since_ms: i64) -> bool {
    let idle = matches!(txn.status, Status::Empty | Status::CompleteCommit | Status::CompleteAbort);
    idle && txn.last_update_ms <= expired_since_ms
}
