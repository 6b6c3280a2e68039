//! ApiVersions (18): what this broker can do.

use wire::ErrorCode;
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

use super::{APIS, Handled, HandlerError, RequestContext};
use crate::features::SUPPORTED;

/// First version with the client's software, and with features.
const FIRST_WITH_SOFTWARE: i16 = 3;
/// First version whose clients understand a feature that starts at 0.
const FIRST_WITH_ZERO_FEATURES: i16 = 4;
/// First version that says which broker it means.
const FIRST_WITH_NODE: i16 = 5;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ApiVersionsRequest,
) -> Result<Handled<ApiVersionsResponse>, HandlerError> {
    if let Err(error) = check(cx, &request) {
        return Ok(ApiVersionsResponse { error_code: error.code(), ..Default::default() }.into());
    }
    if cx.api_version >= FIRST_WITH_SOFTWARE {
        cx.peer.introduce(&request.client_software_name, &request.client_software_version);
    }
    let shown = SUPPORTED.iter().filter(|feature| feature.min > 0 || cx.api_version >= FIRST_WITH_ZERO_FEATURES);
    let supported = shown.map(|feature| SupportedFeatureKey {
        name: feature.name.into(),
        min_version: feature.min,
        max_version: feature.max,
    });
    let (epoch, levels) = cx.broker.features.finalized();
    let finalized = levels.into_iter().map(|(name, level)| FinalizedFeatureKey {
        name: name.into(),
        max_version_level: level,
        min_version_level: level,
    });
    let api_keys = APIS.iter().filter(|api| api.advertised).map(|api| ApiVersion {
        api_key: api.key.code(),
        min_version: api.advertised_from,
        max_version: api.max_version,
    });
    let response = ApiVersionsResponse {
        api_keys: api_keys.collect(),
        supported_features: supported.collect(),
        finalized_features_epoch: epoch,
        finalized_features: finalized.collect(),
        ..Default::default()
    };
    Ok(response.into())
}

///
fn check(cx: &RequestContext<'_>, request: &ApiVersionsRequest) -> Result<(), ErrorCode> {
    if cx.api_version >= FIRST_WITH_SOFTWARE {
        let texts = [&request.client_software_name, &request.client_software_version];
        if !texts.iter().all(|text| is_software_text(text)) {
            return Err(ErrorCode::InvalidRequest);
        }
    }
    if cx.api_version >= FIRST_WITH_NODE {
        return match (&request.cluster_id, request.node_id) {
            (None, -1) => Ok(()),
            (None, _) | (Some(_), -1) => Err(ErrorCode::InvalidRequest),
            (Some(cluster), node) if *cluster != cx.broker.cluster_id || node != cx.broker.node_id => {
                Err(ErrorCode::RebootstrapRequired)
            }
            (Some(_), _) => Ok(()),
        };
    }
    Ok(())
}

/// Letters, digits, `-` and `.`, the first and the last of them a letter or digit.
fn is_software_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::is_software_text;

    #[test]
    fn a_5_software_names_are_letters_digits_dashes_and_dots() {
        for good in ["apache-kafka-java", "4.4.0", "a", "librdkafka", "7"] {
            assert!(is_software_text(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".", "a b", "a_b", "größe", "a\0b"] {
            assert!(!is_software_text(bad), "{bad:?}");
        }
    }
}
