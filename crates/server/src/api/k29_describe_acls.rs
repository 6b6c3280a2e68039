//! DescribeAcls (29): there is no authoriser, so there are no rules.

use wire::messages::describe_acls_request::DescribeAclsRequest;
use wire::messages::describe_acls_response::DescribeAclsResponse;
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    _: DescribeAclsRequest,
) -> Result<Handled<DescribeAclsResponse>, HandlerError> {
    Ok(DescribeAclsResponse {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(KStr::from_static("No Authorizer is configured on the broker")),
        ..Default::default()
    }
    .into())
}
