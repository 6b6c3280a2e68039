//! `millstream groups explain`: the journal of a group as a story. The story itself is the broker's.

use client::http;
use serde_json::Value;

use super::Connect;
use crate::connect::{http_address, http_hint};
use crate::failure::{Failure, Kind};
use crate::output::{Output, Tone};
use crate::time::{format_duration, format_time, parse_duration};

#[derive(Debug, clap::Args)]
pub struct Args {
    group: String,
    /// Only the last 30s, 10m, 2h, 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<i64>,
    /// Only the last N events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Address of the broker's admin HTTP interface; by default as the broker's settings say
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut query = Vec::new();
    if let Some(ms) = args.since {
        // The broker counts in seconds; a part of one is rounded up so that nothing is left out.
        query.push(format!("since={}s", (ms + 999) / 1000));
    }
    if let Some(limit) = args.limit {
        query.push(format!("limit={limit}"));
    }
    let journal = ask(&args.connect, args.http.as_deref(), &args.group, "journal", &query).await?;
    if args.connect.json {
        return out.json(&journal);
    }
    let events = journal["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    if events.is_empty() {
        out.line(format!("Nothing happened to {}.", args.group));
    }
    for event in events {
        let time = out.paint(&format_time(event["at_ms"].as_i64().unwrap_or(-1)), Tone::Faint);
        let text = event["text"].as_str().unwrap_or_default();
        out.line(format!("{time}  {}", out.paint(text, tone(event["kind"].as_str().unwrap_or_default()))));
        for waited in event["waited_for"].as_array().into_iter().flatten() {
            let name = waited["client_id"].as_str().unwrap_or_default();
            let ms = waited["ms"].as_i64().map(format_duration).unwrap_or_default();
            let line = format!("{:25}waited for {name} {ms}", "");
            out.line(out.paint(&line, Tone::Faint));
        }
    }
    Ok(())
}

fn tone(kind: &str) -> Tone {
    match kind {
        "stable" => Tone::Good,
        "session-expired" | "too-slow" | "refused" | "deleted" => Tone::Bad,
        "assigned" | "warmup-progress" => Tone::Plain,
        _ => Tone::Heading,
    }
}

/// Asks the broker's admin HTTP interface about a group.
pub async fn ask(
    connect: &Connect,
    address: Option<&str>,
    group: &str,
    what: &str,
    query: &[String],
) -> Result<Value, Failure> {
    let address = http_address(connect, &mut connect.client(), address).await?;
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let path = format!("/groups/{}/{what}{query}", http::encode(group));
    let response = http::get(&address, &path, connect.timeout()).await.map_err(|error| http_hint(error, &address))?;
    let body: Value = serde_json::from_str(&response.body).unwrap_or_default();
    if response.status == 200 && body.is_object() {
        return Ok(body);
    }
    let kind = match response.status {
        400 => Kind::Usage,
        404 => Kind::NotFound,
        503 => Kind::Unreachable,
        _ => Kind::Failed,
    };
    let text = match body["error"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            format!("{address} answers {} to {path}; is it the admin HTTP interface of Millstream?", response.status)
        }
    };
    Err(Failure::new(kind, text))
}
