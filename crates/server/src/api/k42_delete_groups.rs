//! DeleteGroups (42), C D-6.

use std::collections::BTreeSet;

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::delete_groups_request::DeleteGroupsRequest;
use wire::messages::delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse};

use super::group::{call, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DeleteGroupsRequest,
) -> Result<Handled<DeleteGroupsResponse>, HandlerError> {
    let mut response = DeleteGroupsResponse::default();
    // A group that is named twice is deleted once.
    for group_id in request.groups_names.into_iter().collect::<BTreeSet<_>>() {
        let command = Command::DeleteGroup { group_id: group_id.clone() };
        let result = reply!(call(cx, &group_id, command).await, DeleteGroup, |error: ErrorCode| {
            Box::new(DeletableGroupResult { group_id, error_code: error.code(), ..Default::default() })
        });
        response.results.push(*result);
    }
    Ok(response.into())
}
