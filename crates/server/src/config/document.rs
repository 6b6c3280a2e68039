//! The page about configuration, written from the definitions.

use std::fmt::Write;

use super::key::{Check, Key, Update};
use super::keys;

/// Markdown: every key that has an effect, and those of Kafka's that have none.
pub fn document() -> String {
    let mut out = String::from(INTRODUCTION);
    section(&mut out, "Who and where", &sorted(keys::network::ALL));
    section(&mut out, "Topics and their logs", &sorted(keys::storage::ALL));
    section(&mut out, "Groups", &sorted(keys::groups::ALL));
    section(&mut out, "Transactions", &sorted(keys::transactions::ALL));
    section(&mut out, "Of one topic", &sorted(keys::topic::ALL));
    section(&mut out, "Of one group", &sorted(keys::group::ALL));
    refused(&mut out);
    inert(&mut out);
    out
}

const INTRODUCTION: &str = "\
# Configuration

Generated from the definitions of the keys. To renew: `UPDATE_DOCS=1 cargo test -p server documented`.

`millstream --config FILE` reads Kafka's `server.properties`, or TOML with the same names (`log.retention.ms = 1000`, or \
`retention.ms = 1000` under `[log]`; a key that is the beginning of another is quoted: `\"log.dir\" = \"/data\"`). \
`--set KEY=VALUE` wins over the file.

- Names are Kafka's. A key of Kafka's that means nothing here is accepted and named in one log line.
- An unknown key is a warning in a `.properties` file, which was written for Kafka, and an error in TOML and `--set`.
- A key that asks for encryption, authentication, authorisation or a policy is an error: none of them is built, and what \
was meant to be closed is never served in the open.
- *Dynamic* keys can be changed while the broker runs (`kafka-configs --alter --entity-type brokers`).
- Where the default of an interval or a delay of groups is adaptive, any configured value, also the default, is obeyed as given.
";

fn sorted(keys: &[&'static Key]) -> Vec<&'static Key> {
    let mut keys = keys.to_vec();
    keys.sort_by_key(|key| key.name);
    keys
}

fn section(out: &mut String, title: &str, keys: &[&'static Key]) {
    let _ = write!(out, "\n## {title}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = match key.default {
            Some("") => "(empty)".to_owned(),
            Some(text) => format!("`{}`", text.replace(',', ", ")),
            None => "unset".to_owned(),
        };
        let dynamic = if key.update == Update::ReadOnly { "" } else { " *Dynamic.*" };
        let kind = key.kind.name().to_lowercase();
        let (name, doc, allowed) = (key.name, key.doc, allowed(key));
        let _ = writeln!(out, "| `{name}` | {kind} | {default} | {doc}{allowed}{dynamic} |");
    }
}

fn allowed(key: &Key) -> String {
    match key.check {
        Check::AtLeast(min) => format!(" At least {min}."),
        Check::Between(min, max) => format!(" {min} to {max}."),
        Check::BetweenOr(min, max, other) => format!(" {min} to {max}, or {other}."),
        Check::OneOf(values) | Check::OneOfAnyCase(values) => {
            format!(" One of {}.", values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", "))
        }
        Check::OffsetReset => " `earliest`, `latest` or `by_duration:DURATION`.".to_owned(),
        Check::Anything | Check::NotEmpty | Check::Distinct | Check::Replicas => String::new(),
    }
}

fn refused(out: &mut String) {
    out.push_str(
        "\n## Refused\n\nThe broker does not start with any of these, unless the value is empty or the one named.\n\n",
    );
    for key in keys::refused::ALL {
        match key.support {
            super::key::Support::Refused(Some(harmless)) => {
                let _ = writeln!(out, "- `{}` (`{harmless}` is accepted)", key.name);
            }
            _ => {
                let _ = writeln!(out, "- `{}`", key.name);
            }
        }
    }
    for prefix in keys::refused::PREFIXES {
        let _ = writeln!(out, "- `{prefix}*`, also under `listener.name.*.`");
    }
}

fn inert(out: &mut String) {
    out.push_str("\n## Accepted without effect\n\n");
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for key in keys::inert::ALL {
        let super::key::Support::Inert(why) = key.support else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(key.name),
            None => reasons.push((why, vec![key.name])),
        }
    }
    for (why, names) in reasons {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "Because {why}: {}.\n", names.join(", "));
    }
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push('\n');
}
