//! AlterConfigs (33): replaces everything that is set on a resource (M-12).

use wire::messages::alter_configs_request::AlterConfigsRequest;
use wire::messages::alter_configs_response::{AlterConfigsResourceResponse, AlterConfigsResponse};

use super::admin::outcome;
use super::alter::{Wish, WishedKey, alter};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AlterConfigsRequest,
) -> Result<Handled<AlterConfigsResponse>, HandlerError> {
    let wish = |resource: wire::messages::alter_configs_request::AlterConfigsResource| Wish {
        kind: resource.resource_type,
        name: resource.resource_name,
        keys: resource
            .configs
            .into_iter()
            .map(|config| WishedKey { name: config.name, operation: 0, value: config.value })
            .collect(),
    };
    let wishes: Vec<Wish> = request.resources.into_iter().map(wish).collect();
    let results = alter(cx, &wishes, true, request.validate_only).await;
    let responses = wishes.into_iter().zip(results).map(|(wish, result)| {
        let (error_code, error_message) = outcome(result);
        AlterConfigsResourceResponse { error_code, error_message, resource_type: wish.kind, resource_name: wish.name }
    });
    Ok(AlterConfigsResponse { responses: responses.collect(), ..Default::default() }.into())
}
