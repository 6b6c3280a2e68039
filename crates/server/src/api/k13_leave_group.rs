//! LeaveGroup (13), C section 6.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::leave_group_request::LeaveGroupRequest;
use wire::messages::leave_group_response::LeaveGroupResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: LeaveGroupRequest,
) -> Result<Handled<LeaveGroupResponse>, HandlerError> {
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::LeaveGroup(caller(cx), Box::new(request))).await;
    let response = reply!(replied, LeaveGroup, |error: ErrorCode| {
        Box::new(LeaveGroupResponse { error_code: error.code(), ..Default::default() })
    });
    Ok((*response).into())
}
