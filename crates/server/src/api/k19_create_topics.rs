//! CreateTopics (19): M-6, M-7.

use std::collections::BTreeMap;

use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::config::{Entry, ServerConfig, describe_topic};
use crate::topics::{Created, NewTopic, Refusal, is_reserved};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: CreateTopicsRequest,
) -> Result<Handled<CreateTopicsResponse>, HandlerError> {
    let mut count: BTreeMap<KStr, usize> = BTreeMap::new();
    for topic in &request.topics {
        *count.entry(topic.name.clone()).or_default() += 1;
    }
    let wanted =
        request.topics.into_iter().filter(|topic| count.get(&topic.name) == Some(&1) && !is_reserved(&topic.name));
    let wanted: Vec<NewTopic> = wanted.map(new_topic).collect();
    let names: Vec<KStr> = wanted.iter().map(|topic| topic.name.clone()).collect();
    let config = cx.broker.config.current();
    let mut topics: Vec<CreatableTopicResult> = match cx.broker.topics.create(wanted, request.validate_only).await {
        Ok(results) => results.into_iter().map(|(name, result)| answer(name, result, &config)).collect(),
        Err(refusal) => names.into_iter().map(|name| refused(name, refusal.clone())).collect(),
    };
    for (name, count) in count {
        if count > 1 {
            topics.push(refused(name, Refusal::invalid_request("Duplicate topic name.")));
        } else if is_reserved(&name) {
            let message = format!("Creation of internal topic {name} is prohibited.");
            topics.push(refused(name, Refusal::invalid_request(message)));
        }
    }
    Ok(CreateTopicsResponse { topics, ..Default::default() }.into())
}

fn new_topic(topic: CreatableTopic) -> NewTopic {
    NewTopic {
        name: topic.name,
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.into_iter().map(|a| (a.partition_index, a.broker_ids)).collect(),
        configs: topic.configs.into_iter().map(|config| (config.name, config.value)).collect(),
    }
}

fn answer(name: KStr, result: Result<Created, Refusal>, config: &ServerConfig) -> CreatableTopicResult {
    let created = match result {
        Ok(created) => created,
        Err(refusal) => return refused(name, refusal),
    };
    let configs = describe_topic(&created.overrides, &config.layers).into_iter().map(shown);
    CreatableTopicResult {
        name,
        topic_id: created.id,
        error_code: ErrorCode::None.code(),
        error_message: None,
        num_partitions: created.partitions,
        replication_factor: 1,
        configs: Some(configs.collect()),
        ..Default::default()
    }
}

fn shown(entry: Entry) -> CreatableTopicConfigs {
    CreatableTopicConfigs {
        name: KStr::from(entry.name.into_owned()),
        value: entry.value.map(KStr::from),
        read_only: entry.read_only,
        config_source: entry.source as i8,
        is_sensitive: entry.sensitive,
    }
}

fn refused(name: KStr, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: refusal.code.code(),
        error_message: refusal.message.map(KStr::from),
        ..Default::default()
    }
}
