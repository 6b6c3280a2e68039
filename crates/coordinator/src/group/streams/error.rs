//! Why a request is refused, in the protocol's terms.

use std::borrow::Cow;

use wire::ErrorCode;

/// An error answer: nothing of the request happened (S 1.4.4).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code:?}: {}", message.as_deref().unwrap_or("no text"))]
pub(crate) struct Failure {
    pub code: ErrorCode,
    /// For people; no client reads it.
    pub message: Option<Cow<'static, str>>,
}

impl Failure {
    pub(super) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure { code, message: Some(message.into()) }
    }

    pub(super) fn bare(code: ErrorCode) -> Failure {
        Failure { code, message: None }
    }

    /// What Kafka makes of a request that none of its checks caught (S 1.3).
    pub(super) fn unknown() -> Failure {
        Failure::bare(ErrorCode::UnknownServerError)
    }

    pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(ErrorCode::InvalidRequest, message)
    }

    pub(super) fn topology(message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(ErrorCode::StreamsInvalidTopology, message)
    }

    pub(super) fn not_found(message: String) -> Failure {
        Failure::new(ErrorCode::GroupIdNotFound, message)
    }

    pub(super) fn unknown_member(message: String) -> Failure {
        Failure::new(ErrorCode::UnknownMemberId, message)
    }

    pub(super) fn fenced_epoch(relation: &str, received: i32, known: i32) -> Failure {
        Failure::new(
            ErrorCode::FencedMemberEpoch,
            format!(
                "The streams group member has a {relation} member epoch ({received}) than the one known by the group \
                 coordinator ({known}). The member must abandon all its partitions and rejoin."
            ),
        )
    }
}
