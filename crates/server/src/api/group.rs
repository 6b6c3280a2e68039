//! What the group APIs have in common: who calls, and how a reply of the coordinator becomes an answer.

use coordinator::{Caller, Command};
use wire::ErrorCode;

use super::{HandlerError, RequestContext};
use crate::groups::{Replied, error_code};

/// All operations on a group: read, delete, describe, describe and alter configs (C R-8). There is no authoriser.
const AUTHORIZED_OPERATIONS: i32 = 3400;

pub(super) fn caller(cx: &RequestContext<'_>) -> Caller {
    Caller { client_id: cx.client_id.clone(), client_host: cx.peer.client_host.clone(), api_version: cx.api_version }
}

/// Operations on a described group, when asked for; the schema's default else.
pub(super) fn authorized_operations(asked: bool, error_code: i16) -> i32 {
    if asked && error_code == ErrorCode::None.code() { AUTHORIZED_OPERATIONS } else { i32::MIN }
}

/// One group in one command. `Err` is the error that the API in question has to express.
pub(super) async fn call(cx: &RequestContext<'_>, group_id: &str, command: Command) -> Replied {
    cx.broker.groups.call(group_id, command).await
}

/// A protocol that is switched off is refused wherever the group is (C K-4, S 1.1.1); the shard knows it, but may not be there yet.
pub(super) fn unless_off(enabled: bool, error: ErrorCode) -> ErrorCode {
    if enabled { error } else { ErrorCode::UnsupportedVersion }
}

/// Takes the expected reply, or the error that it gives in its place.
macro_rules! reply {
    ($replied:expr, $kind:ident, $error:expr) => {
        match $replied {
            Ok(coordinator::Reply::$kind(reply)) => reply,
            Ok(other) => return Err($crate::api::group::mismatch(&other)),
            Err(why) => $error($crate::api::group::error_of(&why)),
        }
    };
}
pub(super) use reply;

pub(super) fn error_of(why: &coordinator::runtime::Unavailable) -> ErrorCode {
    error_code(why)
}

pub(super) fn mismatch(reply: &coordinator::Reply) -> HandlerError {
    HandlerError::Close(format!("the coordinator gave another kind of reply: {reply:?}"))
}
