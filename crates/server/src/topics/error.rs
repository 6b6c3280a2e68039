//! Why a change of topics, configurations or features was refused: an error code and what the client is told.

use log::{AppendError, StorageError};
use wire::ErrorCode;

/// A refusal in the protocol's terms. Without a message, clients show their own text for the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .message.as_deref().unwrap_or(.code.message()))]
pub(crate) struct Refusal {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: Some(message.into()) }
    }

    /// Without a text: clients have one of their own for each code.
    pub fn plain(code: ErrorCode) -> Refusal {
        Refusal { code, message: None }
    }

    pub fn invalid_request(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorCode::InvalidRequest, message)
    }

    pub fn invalid_config(message: impl Into<String>) -> Refusal {
        Refusal::new(ErrorCode::InvalidConfig, message)
    }
}

/// Nothing was changed: the disk would not take it.
impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Refusal {
        Refusal::new(ErrorCode::KafkaStorageError, error.to_string())
    }
}

impl From<AppendError> for Refusal {
    fn from(error: AppendError) -> Refusal {
        Refusal::new(ErrorCode::KafkaStorageError, error.to_string())
    }
}
