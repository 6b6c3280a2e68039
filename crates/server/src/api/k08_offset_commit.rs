//! OffsetCommit (8), C 10.1.

use coordinator::Command;
use wire::ErrorCode;
use wire::messages::offset_commit_request::{OffsetCommitRequest, OffsetCommitRequestTopic};
use wire::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::group::{call, caller, reply};
use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: OffsetCommitRequest,
) -> Result<Handled<OffsetCommitResponse>, HandlerError> {
    let (group_id, topics) = (request.group_id.clone(), request.topics.clone());
    let replied = call(cx, &group_id, Command::OffsetCommit(caller(cx), Box::new(request))).await;
    let response = reply!(replied, OffsetCommit, |error: ErrorCode| Box::new(refused(topics, error)));
    Ok((*response).into())
}

/// There is no error for the whole request: every partition gets it.
fn refused(topics: Vec<OffsetCommitRequestTopic>, error: ErrorCode) -> OffsetCommitResponse {
    let partition = |partition_index| OffsetCommitResponsePartition { partition_index, error_code: error.code() };
    let topics = topics.into_iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|asked| partition(asked.partition_index)).collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
