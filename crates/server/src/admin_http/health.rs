//! Whether a client that comes now can join its group.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Admin;

/// Ready means that every shard of groups and of transactions serves: the first join or commit of a client succeeds.
pub(super) async fn health(State(admin): State<Admin>) -> Response {
    let (status, word) = match admin.broker.upgrade() {
        None => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        Some(broker) if broker.shutdown.has_begun() => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        Some(broker) if broker.groups.is_serving() && broker.transactions.is_serving() => (StatusCode::OK, "ready"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    (status, Json(json!({ "status": word }))).into_response()
}
