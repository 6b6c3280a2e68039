//! CreatePartitions (37): M-9. Topics of the coordinators keep the number that they have: keys are found by it.

use std::collections::BTreeMap;

use wire::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use wire::messages::create_partitions_response::{CreatePartitionsResponse, CreatePartitionsTopicResult};
use wire::{ErrorCode, KStr};

use super::admin::outcome;
use super::{Handled, HandlerError, RequestContext};
use crate::topics::{NewPartitions, Refusal, is_internal};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: CreatePartitionsRequest,
) -> Result<Handled<CreatePartitionsResponse>, HandlerError> {
    let mut count: BTreeMap<KStr, usize> = BTreeMap::new();
    for topic in &request.topics {
        *count.entry(topic.name.clone()).or_default() += 1;
    }
    let mut results = Vec::new();
    for (name, _) in count.iter().filter(|(_, count)| **count > 1) {
        results.push(answer(name.clone(), Err(Refusal::invalid_request("Duplicate topic name."))));
    }
    let mut wanted = Vec::new();
    for topic in request.topics.into_iter().filter(|topic| count.get(&topic.name) == Some(&1)) {
        if is_internal(&topic.name) {
            let message = format!("{} cannot get more partitions: it is in use.", topic.name);
            results.push(answer(topic.name, Err(Refusal::new(ErrorCode::InvalidTopicException, message))));
        } else {
            wanted.push(new_partitions(topic));
        }
    }
    let names: Vec<KStr> = wanted.iter().map(|new: &NewPartitions| new.topic.clone()).collect();
    match cx.broker.topics.grow(wanted, request.validate_only).await {
        Ok(grown) => results.extend(grown.into_iter().map(|(name, result)| answer(name, result))),
        Err(refusal) => results.extend(names.into_iter().map(|name| answer(name, Err(refusal.clone())))),
    }
    Ok(CreatePartitionsResponse { results, ..Default::default() }.into())
}

fn new_partitions(topic: CreatePartitionsTopic) -> NewPartitions {
    NewPartitions {
        topic: topic.name,
        count: topic.count,
        assignments: topic.assignments.map(|list| list.into_iter().map(|a| a.broker_ids).collect()),
    }
}

fn answer(name: KStr, result: Result<(), Refusal>) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = outcome(result);
    CreatePartitionsTopicResult { name, error_code, error_message }
}
