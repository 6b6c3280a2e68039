//! PushTelemetry (72): nothing was subscribed to, so what is pushed is dropped.

use wire::ErrorCode;
use wire::messages::push_telemetry_request::PushTelemetryRequest;
use wire::messages::push_telemetry_response::PushTelemetryResponse;

use super::k71_get_telemetry_subscriptions::{MAX_BYTES, SUBSCRIPTION_ID};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    _cx: &RequestContext<'_>,
    request: PushTelemetryRequest,
) -> Result<Handled<PushTelemetryResponse>, HandlerError> {
    let error = if request.client_instance_id.is_zero() {
        ErrorCode::InvalidRequest
    } else if request.subscription_id != SUBSCRIPTION_ID {
        ErrorCode::UnknownSubscriptionId
    } else if request.metrics.len() > MAX_BYTES as usize {
        ErrorCode::TelemetryTooLarge
    } else {
        ErrorCode::None
    };
    Ok(PushTelemetryResponse { error_code: error.code(), ..Default::default() }.into())
}
