//! DescribeClientQuotas (48): nobody has one (M-13). They cannot be set either: AlterClientQuotas is not in the table.

use wire::messages::describe_client_quotas_request::DescribeClientQuotasRequest;
use wire::messages::describe_client_quotas_response::DescribeClientQuotasResponse;
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

const ENTITY_TYPES: &[&str] = &["user", "client-id", "ip"];

pub(crate) async fn handle(
    _: &RequestContext<'_>,
    request: DescribeClientQuotasRequest,
) -> Result<Handled<DescribeClientQuotasResponse>, HandlerError> {
    let unknown = request.components.iter().find(|component| !ENTITY_TYPES.contains(&component.entity_type.as_str()));
    let response = match unknown {
        None => DescribeClientQuotasResponse::default(),
        Some(component) => DescribeClientQuotasResponse {
            error_code: ErrorCode::UnsupportedVersion.code(),
            error_message: Some(KStr::from(format!("Unsupported entity type {}", component.entity_type))),
            entries: None,
            ..Default::default()
        },
    };
    Ok(response.into())
}
