//! DeleteRecords (21): moves the log start up (L-6).

use wire::ErrorCode;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest};
use wire::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use super::{Handled, HandlerError, RequestContext};
use crate::data::Partitions;
use crate::topics::is_internal;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DeleteRecordsRequest,
) -> Result<Handled<DeleteRecordsResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let topics = request.topics.into_iter().map(|topic| {
        let results = topic.partitions.iter().map(|wanted| {
            let (low_watermark, error_code) = match delete(&partitions, &topic.name, wanted) {
                Ok(low_watermark) => (low_watermark, 0),
                Err(error_code) => (-1, error_code),
            };
            DeleteRecordsPartitionResult { partition_index: wanted.partition_index, low_watermark, error_code }
        });
        DeleteRecordsTopicResult { partitions: results.collect(), name: topic.name }
    });
    Ok(DeleteRecordsResponse { topics: topics.collect(), ..Default::default() }.into())
}

fn delete(partitions: &Partitions<'_>, topic: &str, wanted: &DeleteRecordsPartition) -> Result<i64, i16> {
    if is_internal(topic) {
        return Err(ErrorCode::InvalidTopicException.code());
    }
    let log = partitions.by_name(topic, wanted.partition_index).map_err(ErrorCode::code)?;
    if !log.config().delete {
        return Err(ErrorCode::PolicyViolation.code());
    }
    log.delete_records(wanted.offset).map_err(|error| error.code())
}
