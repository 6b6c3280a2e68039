//! ElectLeaders (43): every partition has the one leader that it can have.

use wire::messages::elect_leaders_request::{ElectLeadersRequest, TopicPartitions};
use wire::messages::elect_leaders_response::{ElectLeadersResponse, PartitionResult, ReplicaElectionResult};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::State;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: ElectLeadersRequest,
) -> Result<Handled<ElectLeadersResponse>, HandlerError> {
    let state = cx.broker.topics.state();
    let replica_election_results = match request.topic_partitions {
        // Asked for all, only those partitions are listed whose leader changed: none.
        None => {
            let none = |topic: &KStr| ReplicaElectionResult { topic: topic.clone(), partition_result: Vec::new() };
            state.topics.keys().map(none).collect()
        }
        Some(topics) => topics.into_iter().map(|topic| elect(&state, topic)).collect(),
    };
    Ok(ElectLeadersResponse { replica_election_results, ..Default::default() }.into())
}

fn elect(state: &State, TopicPartitions { topic, partitions }: TopicPartitions) -> ReplicaElectionResult {
    let count = state.topic(&topic).map(|topic| topic.partitions.len());
    let result = |partition_id: i32| {
        let (code, message) = match count {
            None => (ErrorCode::UnknownTopicOrPartition, format!("No such topic as {topic}")),
            Some(count) if usize::try_from(partition_id).is_ok_and(|number| number < count) => {
                (ErrorCode::ElectionNotNeeded, "Leader election not needed for topic partition.".to_owned())
            }
            Some(_) => (ErrorCode::UnknownTopicOrPartition, format!("No such partition as {topic}-{partition_id}")),
        };
        PartitionResult { partition_id, error_code: code.code(), error_message: Some(KStr::from(message)) }
    };
    let partition_result = partitions.into_iter().map(result).collect();
    ReplicaElectionResult { topic: topic.clone(), partition_result }
}
