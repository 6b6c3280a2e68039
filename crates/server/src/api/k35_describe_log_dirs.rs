//! DescribeLogDirs (35): how much is stored where (M-13).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use log::PartitionLog;
use wire::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use wire::{ErrorCode, KStr};

use super::{Handled, HandlerError, RequestContext};

pub(crate) async fn handle(
    cx: &RequestContext<'_>,
    request: DescribeLogDirsRequest,
) -> Result<Handled<DescribeLogDirsResponse>, HandlerError> {
    let state = cx.broker.topics.state();
    let mut logs: BTreeMap<KStr, Vec<(i32, Arc<PartitionLog>)>> = BTreeMap::new();
    let mut add = |name: &KStr, number: i32| {
        if let Some(log) = cx.broker.topics.partition(name, number) {
            logs.entry(name.clone()).or_default().push((number, log));
        }
    };
    match request.topics {
        None => state
            .topics
            .values()
            .for_each(|topic| (0..topic.partitions.len() as i32).for_each(|number| add(&topic.name, number))),
        Some(topics) => {
            topics.iter().for_each(|topic| topic.partitions.iter().for_each(|number| add(&topic.topic, *number)))
        }
    }
    let path = log_dir(cx);
    // Looking at a partition may open it.
    let result = tokio::task::spawn_blocking(move || {
        let (total_bytes, usable_bytes) = space(&path);
        DescribeLogDirsResult {
            log_dir: KStr::from(path.to_string_lossy().into_owned()),
            topics: logs.into_iter().map(sizes).collect(),
            total_bytes,
            usable_bytes,
            ..Default::default()
        }
    });
    let result = result.await.unwrap_or_else(|error| {
        tracing::error!("cannot look at the data directory: {error}");
        DescribeLogDirsResult { error_code: ErrorCode::UnknownServerError.code(), ..Default::default() }
    });
    Ok(DescribeLogDirsResponse { results: vec![result], ..Default::default() }.into())
}

/// The data directory, as clients are told.
pub(super) fn log_dir(cx: &RequestContext<'_>) -> PathBuf {
    let path = cx.broker.config.current().data_dir.clone();
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// Bytes of the device and bytes that are free on it; -1 if nobody knows.
fn space(path: &std::path::Path) -> (i64, i64) {
    let bytes = |blocks: u64, size: u64| i64::try_from(blocks.saturating_mul(size)).unwrap_or(i64::MAX);
    match rustix::fs::statvfs(path) {
        Ok(stat) => (bytes(stat.f_blocks, stat.f_frsize), bytes(stat.f_bavail, stat.f_frsize)),
        Err(_) => (-1, -1),
    }
}

/// A partition that cannot be looked at shows no bytes.
fn sizes((name, logs): (KStr, Vec<(i32, Arc<PartitionLog>)>)) -> DescribeLogDirsTopic {
    let partition = |(partition_index, log): (i32, Arc<PartitionLog>)| DescribeLogDirsPartition {
        partition_index,
        partition_size: log.size_bytes().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        ..Default::default()
    };
    DescribeLogDirsTopic { name, partitions: logs.into_iter().map(partition).collect() }
}
