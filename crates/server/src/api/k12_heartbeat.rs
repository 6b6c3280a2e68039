//! Heartbeat of classic groups (12), C section 5.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::heartbeat_response::HeartbeatResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: HeartbeatRequest,
) -> Result<Handled<HeartbeatResponse>, HandlerError> {
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::Heartbeat(caller(cx), Box::new(request))).await;
    let response = reply!(replied, Heartbeat, |error: ErrorCode| {
        // C H-4: a member need not know that its group is being loaded.
        let error = if error == ErrorCode::CoordinatorLoadInProgress { ErrorCode::None } else { error };
        HeartbeatResponse { error_code: error.code(), ..Default::default() }
    });
    Ok(response.into())
}
