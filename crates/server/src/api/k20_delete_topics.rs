//! DeleteTopics (20): M-8. With a topic of a coordinator go its groups or transactions; it is made again when it is next asked for.

use std::collections::{BTreeMap, BTreeSet};

use wire::messages::delete_topics_request::DeleteTopicsRequest;
use wire::messages::delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse};
use wire::{ErrorCode, KStr, Uuid};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::{Refusal, State};

/// First version that knows TOPIC_DELETION_DISABLED.
const DISABLED_FROM: i16 = 3;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DeleteTopicsRequest,
) -> Result<Handled<DeleteTopicsResponse>, HandlerError> {
    if !cx.broker.config.current().topics.delete_enable {
        return Ok(disabled(cx.api_version, request).into());
    }
    let state = cx.broker.topics.state();
    let mut responses = Vec::new();
    let (names, ids) = sort_out(request, &mut responses);
    let chosen = choose(&state, names, ids, &mut responses);
    let deleted = cx.broker.topics.delete(chosen.keys().copied().collect()).await;
    for (id, name) in chosen {
        let result = match &deleted {
            Ok(deleted) if deleted.contains(&id) => Ok(()),
            Ok(_) => Err(Refusal::plain(ErrorCode::UnknownTopicId)),
            Err(refusal) => Err(refusal.clone()),
        };
        responses.push(answer(Some(name), id, result));
    }
    Ok(DeleteTopicsResponse { responses, ..Default::default() }.into())
}

/// Names and ids that were given once; the rest is answered at once.
fn sort_out(request: DeleteTopicsRequest, responses: &mut Vec<DeletableTopicResult>) -> (Vec<KStr>, Vec<Uuid>) {
    let mut names: BTreeMap<KStr, usize> = BTreeMap::new();
    let mut ids: BTreeMap<Uuid, usize> = BTreeMap::new();
    for name in request.topic_names {
        *names.entry(name).or_default() += 1;
    }
    for topic in request.topics {
        match topic.name {
            None if topic.topic_id.is_zero() => {
                let refusal = Refusal::invalid_request("Neither topic name nor id were specified.");
                responses.push(answer(None, Uuid::ZERO, Err(refusal)));
            }
            None => *ids.entry(topic.topic_id).or_default() += 1,
            Some(name) if topic.topic_id.is_zero() => *names.entry(name).or_default() += 1,
            Some(name) => {
                let refusal = Refusal::invalid_request("You may not specify both topic name and topic id.");
                responses.push(answer(Some(name), topic.topic_id, Err(refusal)));
            }
        }
    }
    for name in names.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name) {
        responses.push(answer(Some(name.clone()), Uuid::ZERO, Err(Refusal::invalid_request("Duplicate topic name."))));
    }
    for id in ids.iter().filter(|(_, count)| **count > 1).map(|(id, _)| id) {
        responses.push(answer(None, *id, Err(Refusal::invalid_request("Duplicate topic id."))));
    }
    let once = |count: usize| count == 1;
    (
        names.into_iter().filter(|(_, count)| once(*count)).map(|(name, _)| name).collect(),
        ids.into_iter().filter(|(_, count)| once(*count)).map(|(id, _)| id).collect(),
    )
}

/// The topics to delete; what cannot be found is answered at once.
fn choose(
    state: &State,
    names: Vec<KStr>,
    ids: Vec<Uuid>,
    responses: &mut Vec<DeletableTopicResult>,
) -> BTreeMap<Uuid, KStr> {
    let mut chosen = BTreeMap::new();
    for id in ids {
        match state.topic_by_id(&id) {
            Some(topic) => {
                chosen.insert(id, topic.name.clone());
            }
            None => responses.push(answer(None, id, Err(Refusal::plain(ErrorCode::UnknownTopicId)))),
        }
    }
    let mut twice = BTreeSet::new();
    for name in names {
        let Some(topic) = state.topic(&name) else {
            responses.push(answer(Some(name), Uuid::ZERO, Err(Refusal::plain(ErrorCode::UnknownTopicOrPartition))));
            continue;
        };
        if chosen.insert(topic.id, name.clone()).is_some() {
            let refusal = Refusal::invalid_request("The provided topic name maps to an ID that was already supplied.");
            responses.push(answer(Some(name), topic.id, Err(refusal)));
            twice.insert(topic.id);
        }
    }
    chosen.retain(|id, _| !twice.contains(id));
    chosen
}

fn answer(name: Option<KStr>, topic_id: Uuid, result: Result<(), Refusal>) -> DeletableTopicResult {
    let (error_code, error_message) = super::admin::outcome(result);
    DeletableTopicResult { name, topic_id, error_code, error_message }
}

fn disabled(version: i16, request: DeleteTopicsRequest) -> DeleteTopicsResponse {
    let code = if version < DISABLED_FROM { ErrorCode::InvalidRequest } else { ErrorCode::TopicDeletionDisabled };
    let named = request.topic_names.into_iter().map(|name| (Some(name), Uuid::ZERO));
    let topics = named.chain(request.topics.into_iter().map(|topic| (topic.name, topic.topic_id)));
    let responses = topics.map(|(name, id)| answer(name, id, Err(Refusal::plain(code)))).collect();
    DeleteTopicsResponse { responses, ..Default::default() }
}
