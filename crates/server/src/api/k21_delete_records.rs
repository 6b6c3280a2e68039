//! DeleteRecords (21): moves the log start up (L-6).

use wire::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest};
use wire::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use super::{Handled, HandlerError, RequestContext};
use crate::data::{Commit, Partitions};
use crate::topics::is_internal;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DeleteRecordsRequest,
) -> Result<Handled<DeleteRecordsResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions_of = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let (low_watermark, error_code) = match delete(&partitions, &topic.name, wanted).await {
                Ok(low_watermark) => (low_watermark, 0),
                Err(error_code) => (-1, error_code),
            };
            let partition_index = wanted.partition_index;
            partitions_of.push(DeleteRecordsPartitionResult { partition_index, low_watermark, error_code });
        }
        topics.push(DeleteRecordsTopicResult { partitions: partitions_of, name: topic.name });
    }
    Ok(DeleteRecordsResponse { topics, ..Default::default() }.into())
}

async fn delete(partitions: &Partitions<'_>, topic: &str, wanted: &DeleteRecordsPartition) -> Result<i64, i16> {
    if is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException.code());
    }
    let log = partitions.by_name(topic, wanted.partition_index).map_err(ErrorCode::code)?;
    if !log.config().delete {
        return Err(ErrorCode::PolicyViolation.code());
    }
    let commit = Commit::of(&log).map_err(|error| error.code())?;
    commit.done().await.map_err(|error| error.code())?;
    log.delete_records(wanted.offset).map_err(|error| error.code())
}
