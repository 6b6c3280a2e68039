//! SyncGroup (14), C section 4. The answer waits for the leader's.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::sync_group_request::SyncGroupRequest;
use wire::messages::sync_group_response::SyncGroupResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: SyncGroupRequest,
) -> Result<Handled<SyncGroupResponse>, HandlerError> {
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::SyncGroup(caller(cx), Box::new(request))).await;
    let response = reply!(replied, SyncGroup, |error: ErrorCode| {
        Box::new(SyncGroupResponse { error_code: error.code(), ..Default::default() })
    });
    Ok((*response).into())
}
