//! OffsetCommit (8), C 10.1.

use coordinator::Command;
use coordinator::offsets::refused_commit;
use wire::ErrorCode;
use wire::messages::offset_commit_request::OffsetCommitRequest;
use wire::messages::offset_commit_response::OffsetCommitResponse;

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: OffsetCommitRequest,
) -> Result<Handled<OffsetCommitResponse>, HandlerError> {
    let (group_id, unanswered) = (request.group_id.clone(), request.clone());
    let replied = call(cx, &group_id, Command::OffsetCommit(caller(cx), Box::new(request))).await;
    let response = reply!(replied, OffsetCommit, |error: ErrorCode| {
        Box::new(refused_commit(&cx.broker.topics.image(), cx.api_version, &unanswered, error))
    });
    Ok((*response).into())
}
