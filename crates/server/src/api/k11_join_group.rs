//! JoinGroup (11), C section 2. The answer may be long in coming.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::join_group_request::JoinGroupRequest;
use wire::messages::join_group_response::JoinGroupResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

/// First version in which a missing protocol name is null.
const NULL_PROTOCOL_NAME: i16 = 7;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: JoinGroupRequest,
) -> Result<Handled<JoinGroupResponse>, HandlerError> {
    let (group_id, member_id) = (request.group_id.clone(), request.member_id.clone());
    let replied = call(cx, &group_id, Command::JoinGroup(caller(cx), Box::new(request))).await;
    let mut response = reply!(replied, JoinGroup, |error: ErrorCode| {
        Box::new(JoinGroupResponse { error_code: error.code(), member_id, ..Default::default() })
    });
    if cx.api_version < NULL_PROTOCOL_NAME {
        response.protocol_name.get_or_insert_default();
    }
    Ok((*response).into())
}
