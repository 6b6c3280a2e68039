//! Why there is no answer: a status and a sentence.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use coordinator::runtime::Unavailable;

/// Becomes `{"error": "..."}`.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    text: String,
}

impl Failure {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Failure { status, text: text.into() }
    }

    pub fn not_found(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::NOT_FOUND, text)
    }

    pub fn bad_request(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }

    pub fn forbidden(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::FORBIDDEN, text)
    }

    pub fn unavailable(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Self {
        match why {
            Unavailable::Loading => Failure::unavailable("the group is being loaded"),
            Unavailable::NotCoordinator => Failure::unavailable("the group cannot be reached now"),
            Unavailable::Refused(error) => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(serde_json::json!({ "error": self.text }))).into_response()
    }
}
