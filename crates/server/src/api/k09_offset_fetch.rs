//! OffsetFetch (9), C 10.2: one group before version 8, several from then on.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

const FIRST_WITH_GROUPS: i16 = 8;
/// First version with an error for the group; before it every partition has it.
const FIRST_WITH_GROUP_ERROR: i16 = 2;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: OffsetFetchRequest,
) -> Result<Handled<OffsetFetchResponse>, HandlerError> {
    let require_stable = request.require_stable;
    if cx.api_version >= FIRST_WITH_GROUPS {
        let mut response = OffsetFetchResponse::default();
        for group in request.groups {
            response.groups.push(fetch(cx, group, require_stable).await?);
        }
        return Ok(response.into());
    }
    let topics = request.topics.map(|topics| {
        let by_name = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..Default::default()
        });
        by_name.collect()
    });
    let group = OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() };
    Ok(single(fetch(cx, group, require_stable).await?).into())
}

async fn fetch(
    cx: &RequestContext<'_>,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> Result<OffsetFetchResponseGroup, HandlerError> {
    let (group_id, topics) = (group.group_id.clone(), group.topics.clone());
    let command = Command::OffsetFetch { caller: caller(cx), group: Box::new(group), require_stable };
    let response = reply!(call(cx, &group_id.clone(), command).await, OffsetFetch, |error: ErrorCode| {
        // C R-6: this API has no error for a coordinator that is not available.
        let error = if error == ErrorCode::CoordinatorNotAvailable { ErrorCode::NotCoordinator } else { error };
        let with_topics = cx.api_version < FIRST_WITH_GROUP_ERROR;
        let topics = if with_topics { topics.unwrap_or_default() } else { Vec::new() };
        let topics = topics.into_iter().map(|topic| refused(topic, error)).collect();
        Box::new(OffsetFetchResponseGroup { group_id, topics, error_code: error.code() })
    });
    Ok(*response)
}

fn refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics {
    let partition = |partition_index| OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(wire::KStr::EMPTY),
        error_code: error.code(),
    };
    OffsetFetchResponseTopics {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.into_iter().map(partition).collect(),
    }
}

/// The form of the versions with one group.
fn single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse {
    let topics = group.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
            })
            .collect(),
    });
    OffsetFetchResponse { topics: topics.collect(), error_code: group.error_code, ..Default::default() }
}
