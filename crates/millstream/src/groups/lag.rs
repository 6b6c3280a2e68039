//! `millstream groups lag`: per partition, per topic, per member and in all.

use std::collections::BTreeMap;

use client::admin::Isolation;
use client::admin::groups::{self, GroupDescription};
use client::admin::lag::{self, PartitionLag, Total};
use client::{Client, ClientError};
use serde_json::{Value, json};
use wire::ErrorCode;

use super::{Connect, Which, short_member};
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone, or_dash};
use crate::time::format_duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Where the log ends for the group: read_committed at the last stable offset, read_uncommitted at the high watermark
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    isolation: Level,
    /// Only the sums per topic and per member
    #[arg(long)]
    totals: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Kafka's `isolation.level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Level {
    ReadUncommitted,
    #[default]
    ReadCommitted,
}

impl From<Level> for Isolation {
    fn from(level: Level) -> Isolation {
        match level {
            Level::ReadUncommitted => Isolation::ReadUncommitted,
            Level::ReadCommitted => Isolation::ReadCommitted,
        }
    }
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut client = args.connect.client();
    let mut shown = Vec::new();
    for group_id in args.which.resolve(&mut client).await? {
        let group = known(&mut client, &group_id).await?;
        let rows = lag::of_group(&mut client, &group_id, Some(&group), args.isolation.into()).await?;
        match args.connect.json {
            true => shown.push(as_json(&group_id, &rows)),
            false => {
                out.heading(&format!("Group {group_id}"));
                if !args.totals {
                    table(&rows, out);
                    out.line("");
                }
                totals(&rows, out);
                out.line("");
            }
        }
    }
    if args.connect.json {
        out.json(&json!({ "groups": shown }))?;
    }
    Ok(())
}

/// The group, which must exist; what is not described may still have offsets.
pub async fn known(client: &mut Client, group_id: &str) -> Result<GroupDescription, Failure> {
    Ok(groups::describe(client, group_id).await.map_err(|error| match error {
        ClientError::Kafka { code: ErrorCode::GroupIdNotFound, .. } => ClientError::Kafka {
            code: ErrorCode::GroupIdNotFound,
            message: Some(format!("there is no group {group_id}")),
        },
        other => other,
    })?)
}

pub fn as_json(group_id: &str, rows: &[PartitionLag]) -> Value {
    let named = |name: &'static str, totals: BTreeMap<String, Total>| -> Vec<Value> {
        let totals = totals.into_iter();
        totals
            .map(|(key, t)| json!({ name: key, "partitions": t.partitions, "lag": t.lag, "lag_ms": t.lag_ms }))
            .collect()
    };
    json!({
        "group": group_id,
        "partitions": rows,
        "topics": named("topic", by(rows, |row| Some(row.topic.clone()))),
        "members": named("member_id", by(rows, |row| row.member_id.clone())),
        "total": Total::of(rows),
    })
}

fn by(rows: &[PartitionLag], key: impl Fn(&PartitionLag) -> Option<String>) -> BTreeMap<String, Total> {
    let mut groups: BTreeMap<String, Vec<&PartitionLag>> = BTreeMap::new();
    for row in rows {
        if let Some(key) = key(row) {
            groups.entry(key).or_default().push(row);
        }
    }
    groups.into_iter().map(|(key, rows)| (key, Total::of(rows))).collect()
}

pub fn lag_cell(lag: Option<i64>) -> Cell {
    lag.map_or_else(|| or_dash(None::<i64>), |lag| Cell::toned(lag.to_string(), tone(lag)))
}

pub fn time_cell(lag_ms: Option<i64>) -> Cell {
    or_dash(lag_ms.map(format_duration))
}

fn tone(lag: i64) -> Tone {
    if lag == 0 { Tone::Good } else { Tone::Busy }
}

pub fn table(rows: &[PartitionLag], out: &mut Output) {
    if rows.is_empty() {
        out.line("Nothing is committed and nothing assigned.");
        return;
    }
    let mut table = Table::new(&["TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG", "BEHIND", "MEMBER", "HOST"]);
    for row in rows {
        table.row(vec![
            row.topic.clone().into(),
            row.partition.into(),
            or_dash(row.committed),
            or_dash(row.start),
            or_dash(row.end),
            lag_cell(row.lag),
            time_cell(row.lag_ms),
            or_dash(row.member_id.as_deref().map(short_member)),
            or_dash(row.host.clone()),
        ]);
    }
    out.table(&table);
}

fn totals(rows: &[PartitionLag], out: &mut Output) {
    let cells = |name: String, total: &Total| {
        vec![name.into(), total.partitions.into(), lag_cell(total.lag), time_cell(total.lag_ms)]
    };
    let mut topics = Table::new(&["TOPIC", "PARTITIONS", "LAG", "BEHIND"]);
    for (topic, total) in by(rows, |row| Some(row.topic.clone())) {
        topics.row(cells(topic, &total));
    }
    topics.row(cells("all topics".to_owned(), &Total::of(rows)));
    out.table(&topics);
    let members = by(rows, |row| row.member_id.clone());
    if !members.is_empty() {
        let mut table = Table::new(&["MEMBER", "PARTITIONS", "LAG", "BEHIND"]);
        for (member, total) in members {
            table.row(cells(short_member(&member), &total));
        }
        out.line("");
        out.table(&table);
    }
}
