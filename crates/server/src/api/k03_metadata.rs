//! Metadata (3): topics, their partitions and who leads them (M-1 to M-3); creates topics that clients ask for.

use std::collections::BTreeSet;

use wire::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use wire::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use wire::{ErrorCode, KStr, Uuid};

use super::admin::{cluster_operations, placement, topic_operations};
use super::{Handled, HandlerError, RequestContext};
use crate::topics::{NewTopic, State, Topic, is_internal, is_reserved, own_topic, validate_name};

/// First version in which topics can be named by id.
const IDS_FROM: i16 = 12;
/// First version in which requests have room for ids.
const ID_FIELD_FROM: i16 = 10;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: MetadataRequest,
) -> Result<Handled<MetadataResponse>, HandlerError> {
    if let Some(error) = impossible(cx, &request) {
        return Ok(refused(request, error).into());
    }
    let asked = request.include_topic_authorized_operations;
    let state = cx.broker.topics.state();
    let topics = match wanted(cx.api_version, &request) {
        Wanted::All => state.topics.values().map(|topic| described(cx, &state, topic, asked)).collect(),
        Wanted::Ids(ids) => by_id(cx, &state, ids, asked),
        Wanted::Names(names) => by_name(cx, &state, names, &request).await,
    };
    Ok(MetadataResponse {
        brokers: vec![this_broker(cx)],
        cluster_id: Some(cx.broker.cluster_id.clone()),
        controller_id: cx.broker.node_id,
        topics,
        cluster_authorized_operations: cluster_operations(request.include_cluster_authorized_operations),
        ..Default::default()
    }
    .into())
}

enum Wanted {
    All,
    /// Without repetition, in the order asked for.
    Ids(Vec<Uuid>),
    Names(Vec<KStr>),
}

fn wanted(version: i16, request: &MetadataRequest) -> Wanted {
    let Some(topics) = &request.topics else { return Wanted::All };
    if topics.is_empty() && version == 0 {
        return Wanted::All;
    }
    let ids: Vec<Uuid> = topics.iter().map(|topic| topic.topic_id).filter(|id| !id.is_zero()).collect();
    if version >= IDS_FROM && !ids.is_empty() {
        return Wanted::Ids(unique(ids));
    }
    Wanted::Names(unique(topics.iter().filter_map(|topic| topic.name.clone()).collect()))
}

fn unique<T: Ord + Clone>(list: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    list.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// Requests that name a topic in a way that their version does not have.
fn impossible(cx: &RequestContext<'_>, request: &MetadataRequest) -> Option<ErrorCode> {
    let topics = request.topics.as_deref().unwrap_or_default();
    let early = (ID_FIELD_FROM..IDS_FROM).contains(&cx.api_version);
    let bad = |topic: &MetadataRequestTopic| match &topic.name {
        None => topic.topic_id.is_zero() || early,
        Some(_) => early && !topic.topic_id.is_zero(),
    };
    topics.iter().any(bad).then_some(ErrorCode::InvalidRequest)
}

fn refused(request: MetadataRequest, error: ErrorCode) -> MetadataResponse {
    let topic = |topic: MetadataRequestTopic| MetadataResponseTopic {
        error_code: error.code(),
        name: Some(topic.name.unwrap_or(KStr::EMPTY)),
        topic_id: topic.topic_id,
        ..Default::default()
    };
    MetadataResponse {
        topics: request.topics.unwrap_or_default().into_iter().map(topic).collect(),
        error_code: error.code(),
        ..Default::default()
    }
}

fn this_broker(cx: &RequestContext<'_>) -> MetadataResponseBroker {
    MetadataResponseBroker {
        node_id: cx.broker.node_id,
        host: cx.peer.advertised.host.clone(),
        port: cx.peer.advertised.port.into(),
        rack: cx.broker.config.current().rack.clone().map(KStr::from),
    }
}

fn by_id(cx: &RequestContext<'_>, state: &State, ids: Vec<Uuid>, asked: bool) -> Vec<MetadataResponseTopic> {
    let topic = |id: Uuid| match state.topic_by_id(&id) {
        Some(topic) => described(cx, state, topic, asked),
        None => MetadataResponseTopic {
            error_code: ErrorCode::UnknownTopicId.code(),
            name: None,
            topic_id: id,
            ..Default::default()
        },
    };
    ids.into_iter().map(topic).collect()
}

async fn by_name(
    cx: &RequestContext<'_>,
    state: &State,
    names: Vec<KStr>,
    request: &MetadataRequest,
) -> Vec<MetadataResponseTopic> {
    let asked = request.include_topic_authorized_operations;
    let missing: Vec<&KStr> = names.iter().filter(|name| state.topic(name).is_none()).collect();
    if request.allow_auto_topic_creation {
        create(cx, missing).await;
    }
    let topic = |name: KStr| match state.topic(&name) {
        Some(topic) => described(cx, state, topic, asked),
        // M-2: also what was created just now is unknown in this answer; the client asks again.
        None => MetadataResponseTopic {
            error_code: match validate_name(&name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition.code(),
                Err(refusal) => refusal.code.code(),
            },
            is_internal: is_internal(&name),
            name: Some(name),
            topic_authorized_operations: topic_operations(asked),
            ..Default::default()
        },
    };
    names.into_iter().map(topic).collect()
}

/// Returns when the topics exist, so that the client's next request finds them.
async fn create(cx: &RequestContext<'_>, names: Vec<&KStr>) {
    let config = cx.broker.config.current();
    if !config.topics.auto_create {
        return;
    }
    let wanted = names.into_iter().filter(|name| validate_name(name).is_ok() && !is_reserved(name));
    let new: Vec<NewTopic> = wanted.filter_map(|name| own_topic(name, &config)).collect();
    if new.is_empty() {
        return;
    }
    match cx.broker.topics.create(new, false).await {
        Ok(results) => {
            for (name, result) in results {
                match result {
                    Ok(created) => tracing::info!("created topic {name} with {} partition(s)", created.partitions),
                    Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {}
                    Err(refusal) => tracing::warn!("cannot create topic {name}: {refusal}"),
                }
            }
        }
        Err(refusal) => tracing::warn!("cannot create topics: {refusal}"),
    }
}

fn described(cx: &RequestContext<'_>, state: &State, topic: &Topic, asked: bool) -> MetadataResponseTopic {
    let partitions = (0..).zip(&topic.partitions).map(|(partition_index, partition)| {
        let placement = placement(cx, state, partition);
        MetadataResponsePartition {
            error_code: placement.error_code,
            partition_index,
            leader_id: placement.leader_id,
            leader_epoch: placement.leader_epoch,
            replica_nodes: placement.replicas,
            isr_nodes: placement.in_sync,
            offline_replicas: placement.offline,
        }
    });
    MetadataResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: partitions.collect(),
        topic_authorized_operations: topic_operations(asked),
    }
}
