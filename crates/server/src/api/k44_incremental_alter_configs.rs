//! IncrementalAlterConfigs (44): sets, unsets, appends to and subtracts from single keys (M-12, S 9.6).

use wire::messages::incremental_alter_configs_request::{AlterConfigsResource, IncrementalAlterConfigsRequest};
use wire::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use super::admin::outcome;
use super::alter::{BROKER_LOGGER, Wish, WishedKey, alter};
use super::{Handled, HandlerError, RequestContext};
use crate::topics::Refusal;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: IncrementalAlterConfigsRequest,
) -> Result<Handled<IncrementalAlterConfigsResponse>, HandlerError> {
    let wish = |resource: AlterConfigsResource| Wish {
        kind: resource.resource_type,
        name: resource.resource_name,
        keys: resource
            .configs
            .into_iter()
            .map(|config| WishedKey { name: config.name, operation: config.config_operation, value: config.value })
            .collect(),
    };
    let wishes: Vec<Wish> = request.resources.into_iter().map(wish).collect();
    let results = alter(cx, &wishes, false, request.validate_only).await;
    let responses = wishes.into_iter().zip(results).map(|(wish, result)| {
        let (error_code, error_message) = outcome(no_logger(&wish).unwrap_or(result));
        AlterConfigsResourceResponse { error_code, error_message, resource_type: wish.kind, resource_name: wish.name }
    });
    Ok(IncrementalAlterConfigsResponse { responses: responses.collect(), ..Default::default() }.into())
}

/// Loggers can be named, but none exists.
fn no_logger(wish: &Wish) -> Option<Result<(), Refusal>> {
    let key = wish.keys.first().filter(|_| wish.kind == BROKER_LOGGER)?;
    Some(Err(Refusal::invalid_config(format!("Logger {} does not exist!", key.name))))
}
