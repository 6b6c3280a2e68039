//! What the admin APIs have in common: refusals on the wire, operations that everybody is allowed, one partition as Metadata
//! shows it.

use wire::{ErrorCode, KStr};

use super::RequestContext;
use crate::topics::{Partition, Refusal, State};

/// All operations on a topic, and on the cluster: there is no authoriser (M-3, M-4).
const TOPIC_OPERATIONS: i32 = 3576;
const CLUSTER_OPERATIONS: i32 = 8096;
/// "Nobody asked."
const NOT_ASKED: i32 = i32::MIN;

pub(super) fn topic_operations(asked: bool) -> i32 {
    if asked { TOPIC_OPERATIONS } else { NOT_ASKED }
}

pub(super) fn cluster_operations(asked: bool) -> i32 {
    if asked { CLUSTER_OPERATIONS } else { NOT_ASKED }
}

/// Code and message; none and null for success.
pub(super) fn outcome(result: Result<(), Refusal>) -> (i16, Option<KStr>) {
    match result {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(Refusal { code, message }) => (code.code(), message.map(KStr::from)),
    }
}

/// A partition's leader and replicas, of which there is one.
pub(super) struct Placement {
    pub error_code: i16,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub replicas: Vec<i32>,
    pub in_sync: Vec<i32>,
    pub offline: Vec<i32>,
}

/// A partition whose storage failed has no leader.
pub(super) fn placement(cx: &RequestContext<'_>, state: &State, partition: &Partition) -> Placement {
    let node_id = cx.broker.node_id;
    let online = partition.log.as_ref().is_some_and(|log| log.offline_reason().is_none());
    let replicas = vec![node_id];
    Placement {
        error_code: if online { ErrorCode::None.code() } else { ErrorCode::LeaderNotAvailable.code() },
        leader_id: if online { node_id } else { -1 },
        leader_epoch: state.leader_epoch(partition),
        in_sync: if online { replicas.clone() } else { Vec::new() },
        offline: if online { Vec::new() } else { replicas.clone() },
        replicas,
    }
}
