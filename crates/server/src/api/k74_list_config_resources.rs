//! ListConfigResources (74): what has, or can have, a configuration (M-13).

use wire::messages::list_config_resources_request::ListConfigResourcesRequest;
use wire::messages::list_config_resources_response::{ConfigResource, ListConfigResourcesResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::ResourceType;

const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ListConfigResourcesRequest,
) -> Result<Handled<ListConfigResourcesResponse>, HandlerError> {
    // Version 0 lists client metrics only, and there are none.
    let all = vec![ResourceType::Group as i8, BROKER_LOGGER, ResourceType::Broker as i8, ResourceType::Topic as i8];
    let kinds = match request.resource_types {
        _ if cx.api_version == 0 => Vec::new(),
        kinds if kinds.is_empty() => all,
        kinds => kinds,
    };
    let exists =
        |kind: &i8| matches!(*kind, BROKER_LOGGER | CLIENT_METRICS) || ResourceType::from_code(*kind).is_some();
    if !kinds.iter().all(exists) {
        let error_code = ErrorCode::UnsupportedVersion.code();
        return Ok(ListConfigResourcesResponse { error_code, ..Default::default() }.into());
    }
    let state = cx.broker.topics.state();
    let mut config_resources = Vec::new();
    let mut list = |kind: i8, names: Vec<KStr>| {
        if kinds.contains(&kind) {
            config_resources
                .extend(names.into_iter().map(|resource_name| ConfigResource { resource_name, resource_type: kind }));
        }
    };
    let this_broker = vec![KStr::from(cx.broker.node_id.to_string())];
    let groups = state.configs.keys().filter(|(kind, _)| *kind == ResourceType::Group);
    list(ResourceType::Group as i8, groups.map(|(_, name)| name.clone()).collect());
    list(BROKER_LOGGER, this_broker.clone());
    list(ResourceType::Broker as i8, this_broker);
    list(ResourceType::Topic as i8, state.topics.keys().cloned().collect());
    Ok(ListConfigResourcesResponse { config_resources, ..Default::default() }.into())
}
