//! UpdateFeatures (57): moves finalized features, all of a request or none.

use wire::messages::update_features_request::{FeatureUpdateKey, UpdateFeaturesRequest};
use wire::messages::update_features_response::{UpdatableFeatureResult, UpdateFeaturesResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::{Direction, FeatureUpdate};

/// Last version that answers feature by feature.
const RESULTS_UNTIL: i16 = 1;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: UpdateFeaturesRequest,
) -> Result<Handled<UpdateFeaturesResponse>, HandlerError> {
    let updates: Vec<FeatureUpdate> = request.feature_updates.into_iter().map(update).collect();
    let names: Vec<KStr> = updates.iter().map(|update| update.name.clone()).collect();
    let response = match cx.broker.topics.update_features(updates, request.validate_only).await {
        Ok(()) => {
            let results = names.into_iter().map(|feature| UpdatableFeatureResult {
                feature,
                error_code: ErrorCode::None.code(),
                error_message: Some(KStr::from_static("NONE")),
            });
            let results = if cx.api_version <= RESULTS_UNTIL { results.collect() } else { Vec::new() };
            UpdateFeaturesResponse { error_message: None, results, ..Default::default() }
        }
        Err(refusal) => {
            let message =
                format!("The update failed for all features since the following feature had an error: {refusal}");
            UpdateFeaturesResponse {
                error_code: refusal.code.code(),
                error_message: Some(KStr::from(message)),
                ..Default::default()
            }
        }
    };
    Ok(response.into())
}

/// Version 0's wish for a downgrade is not looked at, as with Kafka.
fn update(key: FeatureUpdateKey) -> FeatureUpdate {
    let direction = match key.upgrade_type {
        1 => Direction::Up,
        2 => Direction::SafeDown,
        3 => Direction::UnsafeDown,
        _ => Direction::Unknown,
    };
    FeatureUpdate { name: key.feature, level: key.max_version_level, direction }
}
