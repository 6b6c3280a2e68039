//! GetTelemetrySubscriptions (71), A-2: not advertised, but whoever asks is told that no metrics are wanted.

use coordinator::IdSource;
use wire::messages::get_telemetry_subscriptions_request::GetTelemetrySubscriptionsRequest;
use wire::messages::get_telemetry_subscriptions_response::GetTelemetrySubscriptionsResponse;

use super::{Handled, HandlerError, RequestContext};
use crate::ids::RandomIds;

/// Names the subscription to nothing.
pub(super) const SUBSCRIPTION_ID: i32 = 1;
pub(super) const MAX_BYTES: i32 = 1 << 20;
const PUSH_INTERVAL_MS: i32 = 300_000;
/// zstd, lz4, gzip, snappy.
const COMPRESSION_TYPES: [i8; 4] = [4, 3, 1, 2];

pub(crate) async fn handle(
    _cx: &RequestContext<'_>,
    request: GetTelemetrySubscriptionsRequest,
) -> Result<Handled<GetTelemetrySubscriptionsResponse>, HandlerError> {
    let known = Some(request.client_instance_id).filter(|id| !id.is_zero());
    let response = GetTelemetrySubscriptionsResponse {
        client_instance_id: known.unwrap_or_else(|| RandomIds::default().uuid()),
        subscription_id: SUBSCRIPTION_ID,
        accepted_compression_types: COMPRESSION_TYPES.to_vec(),
        push_interval_ms: PUSH_INTERVAL_MS,
        telemetry_max_bytes: MAX_BYTES,
        delta_temporality: true,
        ..Default::default()
    };
    Ok(response.into())
}
