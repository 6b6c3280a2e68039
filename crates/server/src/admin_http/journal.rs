//! Journals: of one group so far, and of all groups as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::Admin;
use super::error::Failure;
use crate::journal::Entry;

/// Entries in one answer, at most.
const LIMIT: usize = 1_000;
/// How often a quiet stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize)]
pub(super) struct Wanted {
    since: Option<String>,
    limit: Option<usize>,
}

/// `GET /groups/GROUP/journal`.
pub(super) async fn of_group(
    State(admin): State<Admin>,
    Path(group): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Failure> {
    let broker = admin.broker()?;
    let now_ms = broker.clock.wall_ms();
    let since_ms = match &wanted.since {
        None => i64::MIN,
        Some(text) => {
            let ago =
                duration_ms(text).ok_or_else(|| Failure::bad_request(format!("since: '{text}' is no duration")))?;
            now_ms.saturating_sub(ago)
        }
    };
    let limit = wanted.limit.unwrap_or(LIMIT).min(LIMIT);
    let entries = match broker.journal.of_group(&group, since_ms, limit) {
        Some(entries) => entries,
        None if broker.groups.brief(&group).is_some() => Vec::new(),
        None => return Err(Failure::not_found(format!("there is no group {group}, and none is remembered"))),
    };
    let entries: Vec<&Entry> = entries.iter().map(Arc::as_ref).collect();
    Ok(Json(json!({ "group": group, "now_ms": now_ms, "events": entries })))
}

/// `30s`, `10m`, `2h`, `1d`; a bare number is seconds.
fn duration_ms(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<u32>().ok().and_then(|number| i64::from(number).checked_mul(unit_ms))
}

#[derive(Deserialize)]
pub(super) struct Of {
    group: Option<String>,
}

/// `GET /events`: entries as they are made, until the broker stops. Who is too slow loses some, and is told how many.
pub(super) async fn stream_of(
    State(admin): State<Admin>,
    Query(of): Query<Of>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let entries = admin.broker()?.journal.listen();
    let shutdown = admin.shutdown.clone();
    let events = stream::unfold((entries, shutdown, of.group), |(mut entries, shutdown, group)| async move {
        loop {
            let entry = tokio::select! {
                entry = entries.recv() => entry,
                () = shutdown.begun() => return None,
            };
            let event = match entry {
                Ok(entry) if group.as_ref().is_some_and(|group| *group != entry.group) => continue,
                Ok(entry) => Event::default().event("journal").json_data(&*entry).unwrap_or_default(),
                Err(RecvError::Lagged(lost)) => Event::default().event("lost").data(lost.to_string()),
                Err(RecvError::Closed) => return None,
            };
            return Some((Ok(event), (entries, shutdown, group)));
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

#[cfg(test)]
mod tests {
    use super::duration_ms;

    #[test]
    fn durations_have_units() {
        let cases = [
            ("10m", Some(600_000)),
            ("30s", Some(30_000)),
            ("45", Some(45_000)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
            ("250ms", Some(250)),
            ("", None),
            ("m", None),
            ("-5m", None),
            ("5 m", None),
            ("5y", None),
        ];
        for (text, expected) in cases {
            assert_eq!(duration_ms(text), expected, "{text}");
        }
    }
}
