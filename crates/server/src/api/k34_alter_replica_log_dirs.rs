//! AlterReplicaLogDirs (34): there is one directory, so a partition can only be moved to where it is.

use wire::ErrorCode;
use wire::messages::alter_replica_log_dirs_request::AlterReplicaLogDirsRequest;
use wire::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsResponse,
};

use super::k35_describe_log_dirs::log_dir;
use super::{Handled, HandlerError, RequestContext};
use crate::data::Partitions;

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: AlterReplicaLogDirsRequest,
) -> Result<Handled<AlterReplicaLogDirsResponse>, HandlerError> {
    let partitions = Partitions::now(cx.broker);
    let ours = log_dir(cx);
    let mut response = AlterReplicaLogDirsResponse::default();
    for dir in request.dirs {
        let is_ours = std::path::Path::new(dir.path.as_str()) == ours;
        for topic in dir.topics {
            let results = topic.partitions.iter().map(|&partition_index| {
                let error = match partitions.by_name(&topic.name, partition_index) {
                    _ if !is_ours => ErrorCode::LogDirNotFound,
                    Ok(_) => ErrorCode::None,
                    Err(error) => error,
                };
                AlterReplicaLogDirPartitionResult { partition_index, error_code: error.code() }
            });
            response
                .results
                .push(AlterReplicaLogDirTopicResult { partitions: results.collect(), topic_name: topic.name });
        }
    }
    Ok(response.into())
}
