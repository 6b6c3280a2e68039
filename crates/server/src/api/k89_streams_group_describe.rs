//! StreamsGroupDescribe (89), S 9.1.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::streams_group_describe_request::StreamsGroupDescribeRequest;
use wire::messages::streams_group_describe_response::{DescribedGroup, StreamsGroupDescribeResponse};

use super::group::{authorized_operations, call, caller, reply, unless_off};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: StreamsGroupDescribeRequest,
) -> Result<Handled<StreamsGroupDescribeResponse>, HandlerError> {
    let enabled = cx.broker.topics.group_configs().broker.streams_protocol_enabled;
    let mut response = StreamsGroupDescribeResponse::default();
    for group_id in request.group_ids {
        let command = Command::StreamsGroupDescribe {
            caller: caller(cx),
            group_id: group_id.clone(),
            include_topology_description: request.include_topology_description,
        };
        let mut group = reply!(call(cx, &group_id, command).await, StreamsGroupDescribe, |error: ErrorCode| {
            Box::new(DescribedGroup { error_code: unless_off(enabled, error).code(), group_id, ..Default::default() })
        });
        group.authorized_operations = authorized_operations(request.include_authorized_operations, group.error_code);
        response.groups.push(*group);
    }
    Ok(response.into())
}
