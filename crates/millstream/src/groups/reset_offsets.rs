//! `millstream groups reset-offsets`: all of Kafka's forms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use client::admin::TopicPartition;
use client::admin::groups;
use client::admin::reset::{self, Reset, Scope, Target};
use client::{Client, ClientError};
use serde_json::{Value, json};
use wire::ErrorCode;

use super::{Connect, Which, tally};
use crate::failure::{Failure, kind_of_io};
use crate::output::{Cell, Output, Table, Tone, or_dash};
use crate::time::{parse_datetime, parse_duration};

/// A topic, whole or some partitions of it.
pub type TopicScope = (String, Option<Vec<i32>>);

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("target").required(true), group = clap::ArgGroup::new("scope"))]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// To the beginning of each partition
    #[arg(long, group = "target")]
    to_earliest: bool,
    /// To the end of each partition
    #[arg(long, group = "target")]
    to_latest: bool,
    /// To the committed offsets, or the end where there are none
    #[arg(long, group = "target")]
    to_current: bool,
    /// To one offset
    #[arg(long, value_name = "OFFSET", group = "target", value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,
    /// To the first record at or after a time, such as 2026-11-30T20:31:05.000 (UTC unless it says otherwise)
    #[arg(long, value_name = "TIME", group = "target", value_parser = parse_datetime)]
    to_datetime: Option<i64>,
    /// To the first record of the last so many minutes, hours, days: PT1H30M, P1D, 90m
    #[arg(long, value_name = "DURATION", group = "target", value_parser = parse_duration)]
    by_duration: Option<i64>,
    /// So many records on, or back if negative
    #[arg(long, value_name = "N", group = "target", allow_negative_numbers = true)]
    shift_by: Option<i64>,
    /// To the offsets in a file of lines TOPIC,PARTITION,OFFSET, or GROUP,TOPIC,PARTITION,OFFSET
    #[arg(long, value_name = "FILE", group = "target", conflicts_with = "scope")]
    from_file: Option<PathBuf>,
    /// A topic, or some partitions of it; may be given several times
    #[arg(long, value_name = "TOPIC[:P,P...]", value_parser = parse_topic, group = "scope")]
    topic: Vec<TopicScope>,
    /// All topics that the group has committed
    #[arg(long, group = "scope", conflicts_with = "topic")]
    all_topics: bool,
    /// Do it
    #[arg(long, conflicts_with = "dry_run")]
    execute: bool,
    /// Only show what would be done; the default
    #[arg(long)]
    dry_run: bool,
    /// Write the new offsets in the format that --from-file reads
    #[arg(long)]
    export: bool,
    #[command(flatten)]
    connect: Connect,
}

/// `topic` or `topic:0,1,2`.
pub fn parse_topic(text: &str) -> Result<TopicScope, String> {
    // Topic names have no colon.
    let Some((topic, numbers)) = text.split_once(':') else { return Ok((text.to_owned(), None)) };
    let numbers: Result<Vec<i32>, _> = numbers.split(',').map(|number| number.trim().parse()).collect();
    match numbers {
        Ok(numbers) if numbers.iter().all(|number| *number >= 0) => Ok((topic.to_owned(), Some(numbers))),
        _ => Err("it has to be TOPIC or TOPIC:0,1,2".to_owned()),
    }
}

/// What is to be done to one group.
struct Planned {
    group: String,
    resets: Vec<Reset>,
    /// In the order of `resets`; `None` if it was not done.
    outcomes: Option<Vec<ErrorCode>>,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    if args.from_file.is_none() && args.topic.is_empty() && !args.all_topics {
        return Err(Failure::usage("say which topics: --all-topics, or --topic TOPIC"));
    }
    let mut client = args.connect.client();
    let group_ids = args.which.resolve(&mut client).await?;
    let from_file = args.from_file.as_deref().map(|file| read_file(file, &group_ids)).transpose()?;
    let scope = if args.all_topics { Scope::AllTopics } else { Scope::Topics(args.topic.clone()) };
    let mut all = Vec::new();
    for group in group_ids {
        let target = match &from_file {
            Some(offsets) => Target::Each(offsets.get(&group).cloned().unwrap_or_default()),
            None => args.target(),
        };
        ensure_inactive(&mut client, &group).await?;
        let resets = reset::plan(&mut client, &group, &scope, &target).await?;
        let outcomes = match args.execute && !resets.is_empty() {
            true => Some(reset::apply(&mut client, &group, &resets).await?),
            false => None,
        };
        all.push(Planned { group, resets, outcomes });
    }
    match (args.export, args.connect.json) {
        (true, _) => export(&all, out),
        (false, true) => out.json(&as_json(&all, args.execute))?,
        (false, false) => show(&all, args.execute, out),
    }
    let codes = || all.iter().filter_map(|planned| planned.outcomes.as_ref()).flatten();
    tally(codes().filter(|code| !code.is_none()).count(), codes().count(), "offsets were not reset")
}

impl Args {
    /// Clap sees to it that there is exactly one.
    fn target(&self) -> Target {
        if self.to_earliest {
            Target::Earliest
        } else if self.to_latest {
            Target::Latest
        } else if let Some(offset) = self.to_offset {
            Target::Offset(offset)
        } else if let Some(time) = self.to_datetime {
            Target::Time(time)
        } else if let Some(duration) = self.by_duration {
            Target::Time(now_ms().saturating_sub(duration))
        } else if let Some(by) = self.shift_by {
            Target::Shift(by)
        } else {
            Target::Current
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Members would overwrite what is set here, so the broker refuses; this says who they are.
async fn ensure_inactive(client: &mut Client, group: &str) -> Result<(), Failure> {
    match groups::describe(client, group).await {
        Ok(found) if found.members.is_empty() => Ok(()),
        Ok(found) => Err(Failure::failed(format!(
            "{group} is {} with {} members: offsets can be reset only while nobody uses them. Stop its clients, or see \
             `millstream groups remove-members`",
            found.state,
            found.members.len()
        ))),
        // A group that is not there gets its first offsets.
        Err(ClientError::Kafka { code: ErrorCode::GroupIdNotFound, .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Offsets by group.
type Offsets = BTreeMap<String, BTreeMap<TopicPartition, i64>>;

fn read_file(file: &Path, groups: &[String]) -> Result<Offsets, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(kind_of_io(&error), format!("cannot read {}: {error}", file.display())))?;
    parse_file(&text, groups).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

/// Lines of three columns belong to the only group; those of four name theirs.
fn parse_file(text: &str, groups: &[String]) -> Result<Offsets, String> {
    let mut offsets = Offsets::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split(',').map(|column| column.trim().trim_matches('"')).collect();
        let (group, rest) = match (columns.as_slice(), groups) {
            ([group, rest @ ..], _) if rest.len() == 3 => (*group, rest),
            (rest, [group]) if rest.len() == 3 => (group.as_str(), rest),
            _ => return Err(format!("line {} is not [GROUP,]TOPIC,PARTITION,OFFSET: {line}", number + 1)),
        };
        let wrong = |what: &str| format!("line {} has no {what}: {line}", number + 1);
        let partition = rest[1].parse().ok().filter(|p: &i32| *p >= 0).ok_or_else(|| wrong("partition"))?;
        let offset = rest[2].parse().ok().filter(|o: &i64| *o >= 0).ok_or_else(|| wrong("offset"))?;
        if groups.iter().any(|wanted| wanted == group) {
            offsets.entry(group.to_owned()).or_default().insert(TopicPartition::new(rest[0], partition), offset);
        }
    }
    Ok(offsets)
}

fn export(all: &[Planned], out: &mut Output) {
    let several = all.len() > 1;
    for planned in all {
        for reset in &planned.resets {
            let group = if several { format!("{},", planned.group) } else { String::new() };
            out.line(format!("{group}{},{},{}", reset.topic, reset.partition, reset.new));
        }
    }
}

fn as_json(all: &[Planned], executed: bool) -> Value {
    let offset = |planned: &Planned, i: usize, reset: &Reset| {
        let code = planned.outcomes.as_ref().and_then(|codes| codes.get(i)).filter(|code| !code.is_none());
        json!({
            "topic": reset.topic, "partition": reset.partition, "current": reset.current, "new": reset.new,
            "wanted": reset.wanted.unwrap_or(reset.new), "error": code.map(|code| code.name()),
        })
    };
    let group = |planned: &Planned| {
        let offsets: Vec<_> = planned.resets.iter().enumerate().map(|(i, reset)| offset(planned, i, reset)).collect();
        json!({ "group": planned.group, "offsets": offsets })
    };
    json!({ "executed": executed, "groups": all.iter().map(group).collect::<Vec<_>>() })
}

fn show(all: &[Planned], executed: bool, out: &mut Output) {
    let mut table = Table::new(&["GROUP", "TOPIC", "PARTITION", "CURRENT", "NEW", "OUTCOME"]);
    for planned in all {
        for (i, reset) in planned.resets.iter().enumerate() {
            let code = planned.outcomes.as_ref().and_then(|codes| codes.get(i));
            let (outcome, tone) = match code {
                None => ("would be set".to_owned(), Tone::Faint),
                Some(code) if code.is_none() => ("set".to_owned(), Tone::Good),
                Some(code) => (code.to_string(), Tone::Bad),
            };
            let outcome = match reset.wanted {
                Some(wanted) => format!("{outcome} ({wanted} is outside of the log)"),
                None => outcome,
            };
            table.row(vec![
                planned.group.clone().into(),
                reset.topic.clone().into(),
                reset.partition.into(),
                or_dash(reset.current),
                reset.new.into(),
                Cell::toned(outcome, tone),
            ]);
        }
    }
    out.table(&table);
    if all.iter().all(|planned| planned.resets.is_empty()) {
        out.line("Nothing to reset.");
    } else if !executed {
        out.line("");
        out.line("Nothing was changed. With --execute it will be.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_named_whole_or_in_part() {
        for (text, expected) in [
            ("in", Some(("in", None))),
            ("in:0", Some(("in", Some(vec![0])))),
            ("in:0,2, 5", Some(("in", Some(vec![0, 2, 5])))),
            ("in:", None),
            ("in:x", None),
            ("in:-1", None),
        ] {
            let expected = expected.map(|(topic, numbers)| (topic.to_owned(), numbers));
            assert_eq!(parse_topic(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn files_have_three_columns_for_one_group_and_four_for_any() {
        let one = || vec!["g".to_owned()];
        let two = || vec!["g".to_owned(), "h".to_owned()];
        for (text, groups, expected) in [
            ("in,0,5\n\nin,1,6\n", one(), Some(vec![("g", "in", 0, 5), ("g", "in", 1, 6)])),
            ("\"g\",\"in\",0,5\n", one(), Some(vec![("g", "in", 0, 5)])),
            ("g,in,0,5\nh,in,0,7\nother,in,0,9\n", two(), Some(vec![("g", "in", 0, 5), ("h", "in", 0, 7)])),
            ("in,0,5\n", two(), None),
            ("in,0\n", one(), None),
            ("in,-1,5\n", one(), None),
            ("in,0,-5\n", one(), None),
            ("in,0,many\n", one(), None),
        ] {
            let found = parse_file(text, &groups).ok().map(|offsets| {
                let rows =
                    offsets.iter().flat_map(|(group, offsets)| offsets.iter().map(move |(at, o)| (group, at, o)));
                rows.map(|(group, at, o)| (group.clone(), at.topic.clone(), at.partition, *o)).collect::<Vec<_>>()
            });
            let expected = expected.map(|rows: Vec<(&str, &str, i32, i64)>| {
                rows.into_iter().map(|(g, t, p, o)| (g.to_owned(), t.to_owned(), p, o)).collect::<Vec<_>>()
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
