//! ConsumerGroupHeartbeat (68), C section 11.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;

use super::group::{call, caller, reply, unless_off};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ConsumerGroupHeartbeatRequest,
) -> Result<Handled<ConsumerGroupHeartbeatResponse>, HandlerError> {
    let enabled = cx.broker.topics.group_configs().broker.consumer_protocol_enabled;
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::ConsumerGroupHeartbeat(caller(cx), Box::new(request))).await;
    let response = reply!(replied, ConsumerGroupHeartbeat, |error: ErrorCode| {
        Box::new(ConsumerGroupHeartbeatResponse { error_code: unless_off(enabled, error).code(), ..Default::default() })
    });
    Ok((*response).into())
}
