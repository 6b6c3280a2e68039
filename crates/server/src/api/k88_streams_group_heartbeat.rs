//! StreamsGroupHeartbeat (88), S sections 1 to 8.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;

use super::group::{call, caller, reply, unless_off};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: StreamsGroupHeartbeatRequest,
) -> Result<Handled<StreamsGroupHeartbeatResponse>, HandlerError> {
    let enabled = cx.broker.topics.group_configs().broker.streams_protocol_enabled;
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::StreamsGroupHeartbeat(caller(cx), Box::new(request))).await;
    let response = reply!(replied, StreamsGroupHeartbeat, |error: ErrorCode| {
        // S 1.4.3: the status of a refusal is an empty list, not null.
        Box::new(StreamsGroupHeartbeatResponse {
            error_code: unless_off(enabled, error).code(),
            status: Some(Vec::new()),
            ..Default::default()
        })
    });
    Ok((*response).into())
}
