//! The shard's timers under the names that Kafka's coordinator gives them.

use serde_json::Value;

/// The name of a timer that the shard shows as `shown`.
pub fn name(shown: &str) -> String {
    let Some((kind, fields)) = parse(shown) else {
        return shown.to_owned();
    };
    let joined = fields.join("-");
    let prefix = match kind.as_str() {
        "Expiry" => return "expire-group-metadata".to_owned(),
        "Classic(Join" | "Consumer(Join" => "join",
        "Classic(Sync" | "Consumer(Sync" => "sync",
        "Classic(Session" => "heartbeat",
        "Consumer(Session" | "Streams(Session" => "session-timeout",
        "Consumer(Rebalance" | "Streams(Rebalance" => "rebalance-timeout",
        "Streams(InitialDelay" | "Streams(InitialRebalance" => "initial-rebalance-timeout",
        _ => return shown.to_owned(),
    };
    format!("{prefix}-{joined}")
}

/// Whether several timers of members are due at one moment, `now` at the latest. `timers` as an answer has them.
pub fn coincide(timers: &Value, now: &Value) -> bool {
    let due = |(name, at): (&String, &Value)| {
        let at = at.as_i64().filter(|at| Some(*at) <= now.as_i64())?;
        (name != "expire-group-metadata").then_some(at)
    };
    let mut deadlines: Vec<i64> = timers.as_object().into_iter().flatten().filter_map(due).collect();
    deadlines.sort_unstable();
    deadlines.windows(2).any(|pair| pair[0] == pair[1])
}

/// `Kind(Variant { a: "x", b: "y" })` taken apart: `Kind(Variant` and the texts.
fn parse(shown: &str) -> Option<(String, Vec<String>)> {
    let Some((kind, rest)) = shown.split_once(" { ") else {
        return Some((shown.to_owned(), Vec::new()));
    };
    let rest = rest.strip_suffix(" })")?;
    let mut fields = Vec::new();
    let mut rest = rest;
    while let Some((_, value)) = rest.split_once(": \"") {
        let end = closing_quote(value)?;
        fields.push(serde_json::from_str(&format!("\"{}\"", &value[..end])).ok()?);
        rest = &value[end + 1..];
    }
    Some((kind.to_owned(), fields))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            '"' if !escaped => return Some(index),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn timers_have_the_names_that_kafka_gives_them() {
        let cases = [
            ("Expiry", "expire-group-metadata"),
            ("Classic(Join { group_id: \"g\" })", "join-g"),
            ("Classic(Session { group_id: \"g\", member_id: \"a-b\" })", "heartbeat-g-a-b"),
            ("Streams(Session { group_id: \"g\\\"x\", member_id: \"\" })", "session-timeout-g\"x-"),
        ];
        for (shown, expected) in cases {
            assert_eq!(name(shown), expected);
        }
    }
}
