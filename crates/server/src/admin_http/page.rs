//! The live page: four files in the binary, which need nothing but the routes beside them.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// No script, style or request but our own, and no frame around the page.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The files belong to the binary, and another one may run tomorrow.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

pub(super) async fn index() -> Response {
    file("text/html; charset=utf-8", include_str!("page/index.html"))
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page/page.css"))
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

pub(super) async fn icon() -> Response {
    file("image/svg+xml", include_str!("page/icon.svg"))
}
