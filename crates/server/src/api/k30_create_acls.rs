//! CreateAcls (30): refused, because nobody would enforce the rules.

use wire::messages::create_acls_request::CreateAclsRequest;
use wire::messages::create_acls_response::{AclCreationResult, CreateAclsResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    request: CreateAclsRequest,
) -> Result<Handled<CreateAclsResponse>, HandlerError> {
    let refused = |_| AclCreationResult {
        error_code: ErrorCode::SecurityDisabled.code(),
        error_message: Some(KStr::from_static("No Authorizer is configured.")),
    };
    Ok(CreateAclsResponse { results: request.creations.into_iter().map(refused).collect(), ..Default::default() }
        .into())
}
