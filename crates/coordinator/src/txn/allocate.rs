//! Commands that wait for a fresh producer id. When it comes they are decided anew: much may have happened meanwhile.

use wire::ErrorCode;

use super::soft::Waiting;
use super::{Ctx, Effect, abort, end_txn, init_producer_id};

/// Asks for a producer id and parks what needs it.
pub(super) fn allocate(ctx: &mut Ctx<'_>, waiting: Waiting) {
    let token = ctx.soft.next_token;
    ctx.soft.next_token += 1;
    ctx.soft.waiting.insert(token, waiting);
    ctx.out.effects.push(Effect::AllocateProducerId { token });
}

/// A producer id came, or none can be had. One that nobody waits for any more is simply never used.
pub(super) fn allocated(ctx: &mut Ctx<'_>, token: u64, producer_id: Result<i64, ErrorCode>) {
    match ctx.soft.waiting.remove(&token) {
        None => {}
        Some(Waiting::InitProducerId { ticket, api_version, request }) => {
            ctx.ticket = ticket;
            match producer_id {
                Ok(fresh) => init_producer_id::init(ctx, api_version, request, Some(fresh)),
                Err(error) => init_producer_id::refuse(ctx, api_version, error),
            }
        }
        Some(Waiting::EndTxn { ticket, api_version, request }) => {
            ctx.ticket = ticket;
            match producer_id {
                Ok(fresh) => end_txn::end(ctx, api_version, request, Some(fresh)),
                Err(error) => end_txn::refuse(ctx, api_version, error),
            }
        }
        Some(Waiting::Abort(id)) => {
            ctx.ticket = None;
            // Without an id, the next look at timeouts tries again.
            if let Ok(fresh) = producer_id {
                abort::timed_out(ctx, &id, Some(fresh));
            }
        }
    }
}
