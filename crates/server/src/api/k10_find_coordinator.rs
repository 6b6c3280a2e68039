//! FindCoordinator (10), C R-2: everything is coordinated here. The first question makes the topic of the coordinator (C R-3).

use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

const FIRST_WITH_LIST: i16 = 4;
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: FindCoordinatorRequest,
) -> Result<Handled<FindCoordinatorResponse>, HandlerError> {
    // Share partitions (2) have a coordinator only where there are share groups.
    let opened = match request.key_type {
        GROUP => cx.broker.open_groups().await,
        TRANSACTION => cx.broker.open_transactions().await,
        _ => Err(ErrorCode::InvalidRequest),
    };
    let of = |key: KStr| opened.map_or_else(|error| refused(key.clone(), error), |()| here(cx, key.clone()));
    if cx.api_version >= FIRST_WITH_LIST {
        let coordinators = request.coordinator_keys.into_iter().map(of).collect();
        return Ok(FindCoordinatorResponse { coordinators, ..Default::default() }.into());
    }
    let Coordinator { node_id, host, port, error_code, error_message, .. } = of(request.key);
    Ok(FindCoordinatorResponse { node_id, host, port, error_code, error_message, ..Default::default() }.into())
}

fn here(cx: &RequestContext<'_>, key: KStr) -> Coordinator {
    Coordinator {
        key,
        node_id: cx.broker.node_id,
        host: cx.peer.advertised.host.clone(),
        port: cx.peer.advertised.port.into(),
        error_code: ErrorCode::None.code(),
        error_message: Some(KStr::EMPTY),
    }
}

fn refused(key: KStr, error: ErrorCode) -> Coordinator {
    Coordinator {
        key,
        node_id: -1,
        host: KStr::EMPTY,
        port: -1,
        error_code: error.code(),
        error_message: Some(KStr::from_static(error.message())),
    }
}
