//! DescribeQuorum (55): the metadata log has one voter, this node, which leads.

use wire::ErrorCode;
use wire::messages::describe_quorum_request::{self as asked, DescribeQuorumRequest};
use wire::messages::describe_quorum_response::{DescribeQuorumResponse, PartitionData, ReplicaState, TopicData};

use super::{Handled, HandlerError, RequestContext};
use crate::topics::{State, is_reserved};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeQuorumRequest,
) -> Result<Handled<DescribeQuorumResponse>, HandlerError> {
    let state = cx.broker.topics.state();
    let topics = request.topics.into_iter().map(|topic| {
        let asked::TopicData { topic_name, partitions } = topic;
        let partitions = partitions.into_iter().map(|partition| {
            let exists = is_reserved(&topic_name) && partition.partition_index == 0;
            if exists { quorum(cx, &state) } else { unknown(partition.partition_index) }
        });
        TopicData { partitions: partitions.collect(), topic_name }
    });
    Ok(DescribeQuorumResponse { topics: topics.collect(), ..Default::default() }.into())
}

fn quorum(cx: &RequestContext<'_>, state: &State) -> PartitionData {
    let now = cx.broker.clock.wall_ms();
    PartitionData {
        leader_id: cx.broker.node_id,
        leader_epoch: i32::try_from(state.broker_epoch).unwrap_or(i32::MAX),
        high_watermark: state.offset,
        current_voters: vec![ReplicaState {
            replica_id: cx.broker.node_id,
            log_end_offset: state.offset,
            last_fetch_timestamp: now,
            last_caught_up_timestamp: now,
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn unknown(partition_index: i32) -> PartitionData {
    let error_code = ErrorCode::UnknownTopicOrPartition.code();
    PartitionData { partition_index, error_code, error_message: None, ..Default::default() }
}
