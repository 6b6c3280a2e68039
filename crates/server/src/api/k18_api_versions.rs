//! ApiVersions (18): what this broker can do.

use wire::ErrorCode;
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};

use super::{APIS, Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ApiVersionsRequest,
) -> Result<Handled<ApiVersionsResponse>, HandlerError> {
    if cx.api_version >= 3 {
        if !is_software_text(&request.client_software_name) || !is_software_text(&request.client_software_version) {
            return Ok(refusal(ErrorCode::InvalidRequest).into());
        }
        cx.peer.introduce(&request.client_software_name, &request.client_software_version);
    }
    let api_keys = APIS.iter().filter(|api| api.advertised).map(|api| ApiVersion {
        api_key: api.key.code(),
        min_version: api.advertised_from,
        max_version: api.max_version,
    });
    Ok(ApiVersionsResponse { api_keys: api_keys.collect(), ..Default::default() }.into())
}

fn refusal(error: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse { error_code: error.code(), ..Default::default() }
}

/// letters, digits, `-` and `.`, the first and the last of them a letter or digit.
fn is_software_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}
