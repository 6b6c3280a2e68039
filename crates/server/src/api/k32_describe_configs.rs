//! DescribeConfigs (32): M-10, S 9.6.5.

use wire::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::config::key::Kind;
use crate::config::{Entry, Source, describe_broker, describe_group, describe_topic};
use crate::topics::{Refusal, ResourceType, State, validate_name};

const BROKER_LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeConfigsRequest,
) -> Result<Handled<DescribeConfigsResponse>, HandlerError> {
    let known = |kind: i8| matches!(kind, BROKER_LOGGER | CLIENT_METRICS) || ResourceType::from_code(kind).is_some();
    let all_known = request.resources.iter().all(|resource| known(resource.resource_type));
    let state = cx.broker.topics.state();
    let (synonyms, documentation) = (request.include_synonyms, request.include_documentation);
    let results = request.resources.into_iter().map(|resource| {
        // A type that does not exist spoils the whole request.
        let described =
            if all_known { describe(cx, &state, &resource) } else { Err(Refusal::plain(ErrorCode::InvalidRequest)) };
        answer(resource, described, synonyms, documentation)
    });
    Ok(DescribeConfigsResponse { results: results.collect(), ..Default::default() }.into())
}

fn describe(cx: &RequestContext<'_>, state: &State, resource: &DescribeConfigsResource) -> Result<Vec<Entry>, Refusal> {
    let name = resource.resource_name.as_str();
    let layers = &cx.broker.config.current().layers;
    match ResourceType::from_code(resource.resource_type) {
        Some(ResourceType::Topic) => {
            validate_name(name)?;
            if state.topic(name).is_none() {
                return Err(Refusal::plain(ErrorCode::UnknownTopicOrPartition));
            }
            Ok(describe_topic(&state.config(ResourceType::Topic, name), layers))
        }
        Some(ResourceType::Broker) if name.is_empty() => Ok(describe_broker(layers, true)),
        Some(ResourceType::Broker) => {
            check_broker(name, cx.broker.node_id)?;
            Ok(describe_broker(layers, false))
        }
        Some(ResourceType::Group) if name.is_empty() => Err(Refusal::invalid_request("Group name must not be empty")),
        Some(ResourceType::Group) => Ok(describe_group(&state.config(ResourceType::Group, name), layers)),
        None if name.is_empty() => Err(Refusal::invalid_request(match resource.resource_type {
            BROKER_LOGGER => "Broker id must not be empty",
            _ => "Client metrics subscription name must not be empty",
        })),
        // There are no loggers to show.
        None if resource.resource_type == BROKER_LOGGER => check_broker(name, cx.broker.node_id).map(|()| Vec::new()),
        None => Ok(no_client_metrics()),
    }
}

fn check_broker(name: &str, node_id: i32) -> Result<(), Refusal> {
    match name.parse::<i32>() {
        Ok(id) if id == node_id => Ok(()),
        Ok(_) => Err(Refusal::invalid_request(format!(
            "Unexpected broker id, expected {node_id} or empty string, but received {name}"
        ))),
        Err(_) => Err(Refusal::invalid_request(format!("Broker id must be an integer, but it is: {name}"))),
    }
}

/// A subscription of client metrics that does not exist, as none does here: Kafka shows defaults.
fn no_client_metrics() -> Vec<Entry> {
    let entry = |name: &'static str, value: &str, kind| Entry {
        name: name.into(),
        value: Some(value.to_owned()),
        read_only: false,
        source: Source::Default,
        sensitive: false,
        kind,
        synonyms: Vec::new(),
        documentation: String::new(),
    };
    vec![entry("interval.ms", "300000", Kind::Int), entry("match", "", Kind::List), entry("metrics", "", Kind::List)]
}

fn answer(
    resource: DescribeConfigsResource,
    described: Result<Vec<Entry>, Refusal>,
    synonyms: bool,
    documentation: bool,
) -> DescribeConfigsResult {
    let DescribeConfigsResource { resource_type, resource_name, configuration_keys } = resource;
    // No list and an empty list both ask for everything; unknown names are left out.
    let keys = configuration_keys.filter(|keys| !keys.is_empty());
    let wanted = |entry: &Entry| keys.as_ref().is_none_or(|keys| keys.iter().any(|key| *key == *entry.name));
    let (error_code, error_message, configs) = match described {
        Ok(entries) => {
            let shown = entries.into_iter().filter(wanted).map(|entry| shown(entry, synonyms, documentation));
            (ErrorCode::None.code(), Some(KStr::EMPTY), shown.collect())
        }
        Err(refusal) => (refusal.code.code(), refusal.message.map(KStr::from), Vec::new()),
    };
    DescribeConfigsResult { error_code, error_message, resource_type, resource_name, configs }
}

fn shown(entry: Entry, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult {
    let synonym = |synonym: crate::config::SynonymValue| DescribeConfigsSynonym {
        name: KStr::from(synonym.name.into_owned()),
        value: synonym.value.map(KStr::from),
        source: synonym.source as i8,
    };
    DescribeConfigsResourceResult {
        name: KStr::from(entry.name.into_owned()),
        value: entry.value.map(KStr::from),
        read_only: entry.read_only,
        config_source: entry.source as i8,
        is_sensitive: entry.sensitive,
        synonyms: if synonyms { entry.synonyms.into_iter().map(synonym).collect() } else { Vec::new() },
        config_type: entry.kind as i8,
        documentation: documentation.then(|| KStr::from(entry.documentation)),
        ..Default::default()
    }
}
