//! What can go wrong between a client and a broker.

use wire::{ApiKey, DecodeError, EncodeError, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {source}")]
    Connect { address: String, source: std::io::Error },
    #[error("the connection to {address} broke: {source}")]
    Broken { address: String, source: std::io::Error },
    #[error("no answer from {address} within {seconds} s")]
    TimedOut { address: String, seconds: u64 },
    #[error("the broker and this client have no version of {0} in common")]
    Version(ApiKey),
    #[error("the broker does not have the API {0}")]
    Unsupported(ApiKey),
    #[error("the request cannot be written: {0}")]
    Encode(#[from] EncodeError),
    #[error("the answer cannot be read: {0}")]
    Decode(#[from] DecodeError),
    #[error("an answer of {0} bytes is refused")]
    FrameSize(i32),
    #[error("the answer belongs to another request")]
    Correlation,
    #[error("the answer is not complete: {0}")]
    Incomplete(&'static str),
    #[error("{code}{}", .message.as_deref().map(|m| format!(": {m}")).unwrap_or_default())]
    Kafka { code: ErrorCode, message: Option<String> },
}

impl ClientError {
    /// From an error code and the text beside it; `Ok` for NONE.
    pub fn check(code: i16, message: Option<&str>) -> Result<(), ClientError> {
        match ErrorCode::from_code(code) {
            ErrorCode::None => Ok(()),
            code => Err(ClientError::Kafka { code, message: message.map(str::to_owned) }),
        }
    }

    /// The broker's error code, if it was the broker that refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Kafka { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may succeed a moment later, perhaps at another broker.
    pub fn is_retriable(&self) -> bool {
        match self {
            ClientError::Broken { .. } => true,
            ClientError::Kafka { code, .. } => matches!(
                code,
                ErrorCode::CoordinatorLoadInProgress | ErrorCode::CoordinatorNotAvailable | ErrorCode::NotCoordinator
            ),
            _ => false,
        }
    }
}
