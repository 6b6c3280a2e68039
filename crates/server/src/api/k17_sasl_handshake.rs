//! SaslHandshake (17): no listener asks for it, so it is out of place on each (N-4).

use wire::ErrorCode;
use wire::messages::sasl_handshake_request::SaslHandshakeRequest;
use wire::messages::sasl_handshake_response::SaslHandshakeResponse;

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _cx: &RequestContext<'_>,
    _request: SaslHandshakeRequest,
) -> Result<Handled<SaslHandshakeResponse>, HandlerError> {
    let error_code = ErrorCode::IllegalSaslState.code();
    Ok(SaslHandshakeResponse { error_code, ..Default::default() }.into())
}
