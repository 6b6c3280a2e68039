//! DescribeGroups (15): classic groups, C section 7.

use coordinator::Command;
use wire::messages::describe_groups_request::DescribeGroupsRequest;
use wire::messages::describe_groups_response::{DescribeGroupsResponse, DescribedGroup};
use wire::{ErrorCode, KStr};

use super::group::{authorized_operations, call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeGroupsRequest,
) -> Result<Handled<DescribeGroupsResponse>, HandlerError> {
    let mut response = DescribeGroupsResponse::default();
    for group_id in request.groups {
        let command = Command::DescribeGroup { caller: caller(cx), group_id: group_id.clone() };
        let mut group = reply!(call(cx, &group_id, command).await, DescribeGroup, |error: ErrorCode| {
            let (error_code, group_state) = (error.code(), KStr::from_static("Dead"));
            Box::new(DescribedGroup { error_code, group_id, group_state, ..Default::default() })
        });
        group.authorized_operations = authorized_operations(request.include_authorized_operations, group.error_code);
        response.groups.push(*group);
    }
    Ok(response.into())
}
