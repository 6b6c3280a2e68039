//! OffsetDelete (47), C D-7, D-8.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::offset_delete_request::OffsetDeleteRequest;
use wire::messages::offset_delete_response::OffsetDeleteResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: OffsetDeleteRequest,
) -> Result<Handled<OffsetDeleteResponse>, HandlerError> {
    let group_id = request.group_id.clone();
    let replied = call(cx, &group_id, Command::OffsetDelete(caller(cx), Box::new(request))).await;
    let response = reply!(replied, OffsetDelete, |error: ErrorCode| {
        Box::new(OffsetDeleteResponse { error_code: error.code(), ..Default::default() })
    });
    Ok((*response).into())
}
