//! ConsumerGroupDescribe (69), C K-41.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use wire::messages::consumer_group_describe_response::{ConsumerGroupDescribeResponse, DescribedGroup};

use super::group::{authorized_operations, call, caller, reply, unless_off};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ConsumerGroupDescribeRequest,
) -> Result<Handled<ConsumerGroupDescribeResponse>, HandlerError> {
    let enabled = cx.broker.topics.group_configs().broker.consumer_protocol_enabled;
    let mut response = ConsumerGroupDescribeResponse::default();
    for group_id in request.group_ids {
        let command = Command::ConsumerGroupDescribe { caller: caller(cx), group_id: group_id.clone() };
        let mut group = reply!(call(cx, &group_id, command).await, ConsumerGroupDescribe, |error: ErrorCode| {
            Box::new(DescribedGroup { error_code: unless_off(enabled, error).code(), group_id, ..Default::default() })
        });
        group.authorized_operations = authorized_operations(request.include_authorized_operations, group.error_code);
        response.groups.push(*group);
    }
    Ok(response.into())
}
