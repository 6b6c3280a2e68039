//! DescribeTopicPartitions (75): topics by name, a limited number of partitions at a time (M-5).

use std::collections::BTreeSet;

use wire::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use wire::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use wire::{ErrorCode, KStr};

use super::admin::{placement, topic_operations};
use super::{Handled, HandlerError, RequestContext};
use crate::topics::{State, Topic, is_internal, validate_name};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeTopicPartitionsRequest,
) -> Result<Handled<DescribeTopicPartitionsResponse>, HandlerError> {
    let state = cx.broker.topics.state();
    let all = request.topics.is_empty();
    let from = request.cursor.as_ref().map_or(KStr::EMPTY, |cursor| cursor.topic_name.clone());
    let names: BTreeSet<KStr> = if all {
        state.topics.keys().filter(|name| **name >= from).cloned().collect()
    } else {
        request.topics.iter().map(|topic| topic.name.clone()).filter(|name| *name >= from).collect()
    };
    let bad_cursor = request
        .cursor
        .as_ref()
        .is_some_and(|cursor| cursor.partition_index < 0 || (!all && !names.contains(&cursor.topic_name)));
    if bad_cursor {
        return Ok(refused(request).into());
    }
    let limit = request.response_partition_limit.min(cx.broker.config.current().network.describe_partitions_max);
    let first = |name: &KStr| match &request.cursor {
        Some(cursor) if cursor.topic_name == *name => usize::try_from(cursor.partition_index).unwrap_or(0),
        _ => 0,
    };
    Ok(page(cx, &state, &names, limit.max(1) as usize, &first).into())
}

/// One page: topics in order of their names, until the partitions are used up.
fn page(
    cx: &RequestContext<'_>,
    state: &State,
    names: &BTreeSet<KStr>,
    mut left: usize,
    first: &dyn Fn(&KStr) -> usize,
) -> DescribeTopicPartitionsResponse {
    let mut topics = Vec::new();
    let mut next_cursor = None;
    for name in names {
        if left == 0 {
            next_cursor = Some(Cursor { topic_name: name.clone(), partition_index: 0 });
            break;
        }
        let Some(topic) = state.topic(name) else {
            topics.push(unknown(name));
            continue;
        };
        let begin = first(name).min(topic.partitions.len());
        let end = (begin + left).min(topic.partitions.len());
        left -= end - begin;
        topics.push(described(cx, state, topic, begin..end));
        if end < topic.partitions.len() {
            next_cursor = Some(Cursor { topic_name: name.clone(), partition_index: end as i32 });
            break;
        }
    }
    DescribeTopicPartitionsResponse { topics, next_cursor, ..Default::default() }
}

fn unknown(name: &KStr) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: match validate_name(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition.code(),
            Err(refusal) => refusal.code.code(),
        },
        name: Some(name.clone()),
        is_internal: is_internal(name),
        topic_authorized_operations: topic_operations(true),
        ..Default::default()
    }
}

fn described(
    cx: &RequestContext<'_>,
    state: &State,
    topic: &Topic,
    numbers: std::ops::Range<usize>,
) -> DescribeTopicPartitionsResponseTopic {
    let partitions = topic.partitions[numbers.clone()].iter().zip(numbers).map(|(partition, number)| {
        let placement = placement(cx, state, partition);
        DescribeTopicPartitionsResponsePartition {
            error_code: placement.error_code,
            partition_index: number as i32,
            leader_id: placement.leader_id,
            leader_epoch: placement.leader_epoch,
            replica_nodes: placement.replicas,
            isr_nodes: placement.in_sync,
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            offline_replicas: placement.offline,
        }
    });
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: partitions.collect(),
        topic_authorized_operations: topic_operations(true),
    }
}

fn refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let topic = |name: KStr| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some(name),
        ..Default::default()
    };
    let topics = request.topics.into_iter().map(|wanted| topic(wanted.name)).collect();
    DescribeTopicPartitionsResponse { topics, ..Default::default() }
}
