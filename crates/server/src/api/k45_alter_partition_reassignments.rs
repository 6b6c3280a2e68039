//! AlterPartitionReassignments (45): a partition can be moved to where it is, and nowhere else.

use wire::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use wire::messages::alter_partition_reassignments_response::{
    AlterPartitionReassignmentsResponse, ReassignablePartitionResponse, ReassignableTopicResponse,
};
use wire::{ErrorCode, KStr};

use super::admin::outcome;
use super::{Handled, HandlerError, RequestContext};
use crate::topics::{Refusal, State, check_replicas};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AlterPartitionReassignmentsRequest,
) -> Result<Handled<AlterPartitionReassignmentsResponse>, HandlerError> {
    let state = cx.broker.topics.state();
    let responses = request.topics.into_iter().map(|topic| {
        let ReassignableTopic { name, partitions } = topic;
        let partitions = partitions.into_iter().map(|partition| {
            let (error_code, error_message) = outcome(reassign(&state, &name, &partition, cx.broker.node_id));
            ReassignablePartitionResponse { partition_index: partition.partition_index, error_code, error_message }
        });
        ReassignableTopicResponse { partitions: partitions.collect(), name }
    });
    Ok(AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        error_message: None,
        responses: responses.collect(),
        ..Default::default()
    }
    .into())
}

fn reassign(state: &State, name: &KStr, partition: &ReassignablePartition, node_id: i32) -> Result<(), Refusal> {
    let unknown = |message: String| Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message));
    let Some(topic) = state.topic(name) else {
        return unknown(format!("Unable to find a topic named {name}."));
    };
    if usize::try_from(partition.partition_index).map_or(true, |number| number >= topic.partitions.len()) {
        return unknown(format!("Unable to find partition {name}:{}.", partition.partition_index));
    }
    match &partition.replicas {
        // A reassignment is called off, but there never is one.
        None => Err(Refusal::plain(ErrorCode::NoReassignmentInProgress)),
        Some(replicas) => check_replicas(replicas, node_id),
    }
}
