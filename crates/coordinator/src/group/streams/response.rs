//! Answers to heartbeats (S 1.4.3, 2.5.4, 8).

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_response::{Status, StreamsGroupHeartbeatResponse, TaskIds};

use super::error::Failure;
use super::member::{ActiveTasks, Tasks};
use crate::assign::TaskSet;

/// S 1.4.3.
pub(super) fn error(failure: Failure) -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse {
        error_code: failure.code.code(),
        error_message: failure.message.map(|message| KStr::from(message.into_owned())),
        acceptable_recovery_lag: -1,
        status: Some(Vec::new()),
        ..Default::default()
    }
}

/// S 2.5.4.
pub(super) fn left(request: &StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse {
        member_id: request.member_id.clone(),
        member_epoch: request.member_epoch,
        acceptable_recovery_lag: -1,
        status: Some(Vec::new()),
        ..Default::default()
    }
}

/// Puts the assigned tasks, never the pending ones, into an answer (S 6.7.1).
pub(super) fn show_tasks(response: &mut StreamsGroupHeartbeatResponse, tasks: &Tasks) {
    response.active_tasks = Some(active(&tasks.active));
    response.standby_tasks = Some(copies(&tasks.standby));
    response.warmup_tasks = Some(copies(&tasks.warmup));
}

fn active(tasks: &ActiveTasks) -> Vec<TaskIds> {
    let each = tasks
        .iter()
        .map(|(id, epochs)| TaskIds { subtopology_id: id.clone(), partitions: epochs.keys().copied().collect() });
    each.collect()
}

fn copies(tasks: &TaskSet) -> Vec<TaskIds> {
    let each = tasks.iter().map(|(id, partitions)| TaskIds {
        subtopology_id: id.clone(),
        partitions: partitions.iter().copied().collect(),
    });
    each.collect()
}

/// Codes of S 0.7 that are not about topics.
pub(super) const STALE_TOPOLOGY: i8 = 0;
pub(super) const SHUTDOWN_APPLICATION: i8 = 4;
pub(super) const ASSIGNMENT_DELAYED: i8 = 5;
pub(super) const MISSING_CLIENT_TAGS: i8 = 6;

pub(super) fn status(code: i8, detail: impl Into<KStr>) -> Status {
    Status { status_code: code, status_detail: detail.into() }
}
