//! DeleteAcls (31): there is no authoriser, so there are no rules to delete.

use wire::messages::delete_acls_request::DeleteAclsRequest;
use wire::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    request: DeleteAclsRequest,
) -> Result<Handled<DeleteAclsResponse>, HandlerError> {
    let refused = |_| DeleteAclsFilterResult {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(KStr::from_static("No Authorizer is configured.")),
        ..Default::default()
    };
    let filter_results = request.filters.into_iter().map(refused).collect();
    Ok(DeleteAclsResponse { filter_results, ..Default::default() }.into())
}
