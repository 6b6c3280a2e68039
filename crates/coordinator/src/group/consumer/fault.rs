//! Why a request is refused, and the answer to it (C K-6).

use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
use wire::{ErrorCode, KStr};

/// An error with the text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}: {message}")]
pub(super) struct Fault {
    pub error: ErrorCode,
    /// Empty for none.
    pub message: String,
}

impl Fault {
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Fault { error, message: message.into() }
    }

    pub fn unknown_member(group_id: &str, member_id: &str) -> Self {
        let message = format!("Member {member_id} is not a member of group {group_id}.");
        Fault::new(ErrorCode::UnknownMemberId, message)
    }

    pub fn unknown_instance(instance_id: &str) -> Self {
        Fault::new(ErrorCode::UnknownMemberId, format!("Instance id {instance_id} is unknown."))
    }

    pub fn fenced_instance(member_id: &str, instance_id: &str, holder: &str) -> Self {
        let message =
            format!("Static member {member_id} with instance id {instance_id} was fenced by member {holder}.");
        Fault::new(ErrorCode::FencedInstanceId, message)
    }

    pub fn unknown_group(group_id: &str) -> Self {
        Fault::new(ErrorCode::GroupIdNotFound, format!("Consumer group {group_id} not found."))
    }

    pub fn other_type(group_id: &str) -> Self {
        Fault::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a consumer group."))
    }

    pub fn into_response(self) -> ConsumerGroupHeartbeatResponse {
        ConsumerGroupHeartbeatResponse {
            error_code: self.error.code(),
            error_message: (!self.message.is_empty()).then(|| KStr::from(self.message)),
            ..Default::default()
        }
    }
}
