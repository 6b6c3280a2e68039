//! The admin HTTP interface: health, metrics, the journals of groups, plans, the live page (`docs/http-api.md`).
//!
//! It only reads. Handlers hold the broker weakly, so that a connection that stays open does not keep a stopped broker's data
//! directory. What is answered comes from elsewhere: `metrics`, `journal`, the coordinator.

mod error;
mod groups;
mod health;
mod journal;
mod page;
mod plan;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::broker::Broker;
use crate::config::ServerConfig;
use crate::listener::{Bound, Listen, bind};
use crate::shutdown::Shutdown;
use error::Failure;

/// Port of the default address; see [`listen`].
const DEFAULT: (&str, u16) = ("localhost", 8090);

/// What handlers share.
#[derive(Clone)]
struct Admin {
    broker: Weak<Broker>,
    /// Of its own, since streams wait for the end without holding the broker.
    shutdown: Shutdown,
}

impl Admin {
    fn broker(&self) -> Result<Arc<Broker>, Failure> {
        self.broker.upgrade().ok_or_else(|| Failure::unavailable("the broker stops"))
    }
}

/// Listens where the configuration says. An address that nobody chose may be taken: the broker does without then.
pub(crate) async fn listen(config: &ServerConfig) -> io::Result<Vec<Bound>> {
    let Some((host, port)) = config.admin_http.clone() else { return Ok(Vec::new()) };
    let is_default = config.layers.configured(&crate::config::keys::network::ADMIN_HTTP_LISTENER).is_none();
    match bind(&Listen { host, port, advertised: None }).await {
        Ok(bound) => Ok(bound),
        Err(error) if is_default => {
            tracing::warn!("no admin HTTP interface on {}:{}: {error}", DEFAULT.0, DEFAULT.1);
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// Serves until the broker stops.
pub(crate) async fn serve(broker: Weak<Broker>, shutdown: Shutdown, bound: Bound) {
    let address = bound.address;
    let mut router = routes(Admin { broker, shutdown: shutdown.clone() });
    if address.ip().is_loopback() {
        router = router.layer(from_fn_with_state(address, only_local_names));
    }
    let stop = async move { shutdown.begun().await };
    if let Err(error) = axum::serve(bound.into_socket(), router).with_graceful_shutdown(stop).await {
        tracing::error!(%address, "the admin HTTP interface failed: {error}");
    }
}

fn routes(admin: Admin) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/page.css", get(page::style))
        .route("/page.js", get(page::script))
        .route("/icon.svg", get(page::icon))
        .route("/health", get(health::health))
        .route("/metrics", get(metrics))
        .route("/groups", get(groups::list))
        .route("/groups/{group}", get(groups::one))
        .route("/groups/{group}/journal", get(journal::of_group))
        .route("/groups/{group}/plan", get(plan::plan))
        .route("/events", get(journal::stream_of))
        .fallback(|| async { Failure::not_found("there is nothing here") })
        .with_state(admin)
}

async fn metrics(State(admin): State<Admin>) -> Result<Response, Failure> {
    let text = crate::metrics::scrape(&admin.broker()?).await;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// A page on another site could make a browser ask a loopback address under a name of its own (DNS rebinding) and read the answers.
async fn only_local_names(State(_): State<SocketAddr>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(is_local_name) {
        return next.run(request).await;
    }
    Failure::forbidden("ask for localhost or an IP address").into_response()
}

fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_local_name;

    #[test]
    fn only_localhost_and_addresses_are_local_names() {
        for (host, local) in [
            ("localhost", true),
            ("LOCALHOST:8090", true),
            ("127.0.0.1:1", true),
            ("[::1]:8090", true),
            ("[::1]", true),
            ("10.1.2.3", true),
            ("evil.example:8090", false),
            ("localhost.evil.example", false),
            ("", false),
            (":8090", false),
        ] {
            assert_eq!(is_local_name(host), local, "{host}");
        }
    }
}
