//! `millstream groups describe`.

use std::collections::{BTreeMap, BTreeSet};

use client::admin::groups::{GroupDescription, GroupKind, Member, StreamsGroup, TaskId};
use client::admin::lag::{self, PartitionLag, Total};
use serde_json::json;

use super::lag::{Level, as_json, known, lag_cell, table as lag_table, time_cell};
use super::{Connect, Which, short_member, topology};
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone, or_dash};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Where the log ends for the group: read_committed at the last stable offset, read_uncommitted at the high watermark
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    isolation: Level,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut client = args.connect.client();
    let mut shown = Vec::new();
    for (number, group_id) in args.which.resolve(&mut client).await?.into_iter().enumerate() {
        let group = known(&mut client, &group_id).await?;
        let rows = lag::of_group(&mut client, &group_id, Some(&group), args.isolation.into()).await?;
        if args.connect.json {
            shown.push(json!({ "description": group, "lag": as_json(&group_id, &rows) }));
            continue;
        }
        if number > 0 {
            out.line("");
        }
        head(&group, &rows, out);
        members(&group, out);
        match &group.streams {
            Some(streams) => {
                tasks(&group, streams, &rows, out);
                topology::show(streams, out);
            }
            None => {
                section("Partitions", out);
                lag_table(&rows, out);
            }
        }
    }
    if args.connect.json {
        out.json(&json!({ "groups": shown }))?;
    }
    Ok(())
}

fn section(name: &str, out: &mut Output) {
    out.line("");
    out.heading(name);
}

fn head(group: &GroupDescription, rows: &[PartitionLag], out: &mut Output) {
    let mut line = |name: &str, value: String| {
        let name = format!("{name:<13}");
        out.line(format!("{name}{value}"));
    };
    line("Group", format!("{} ({})", group.group, group.kind));
    let state = &group.state;
    line("State", state.clone());
    if let Some(epoch) = group.group_epoch {
        let assignment = group.assignment_epoch.map(|epoch| format!(", assignment {epoch}")).unwrap_or_default();
        let topology = group.streams.as_ref().and_then(|streams| streams.topology_epoch);
        let topology = topology.map(|epoch| format!(", topology {epoch}")).unwrap_or_default();
        line("Epochs", format!("group {epoch}{assignment}{topology}"));
    }
    if let Some(assignor) = &group.assignor {
        line("Assignor", assignor.clone());
    }
    let partition = group.coordinator_partition.map(|number| format!(", partition {number}")).unwrap_or_default();
    line("Coordinator", format!("{}{partition}", group.coordinator));
    line("Members", group.members.len().to_string());
    let total = Total::of(rows);
    if let Some(lag) = total.lag {
        let time = total.lag_ms.map(|ms| format!(", {} behind", crate::time::format_duration(ms))).unwrap_or_default();
        line("Lag", format!("{lag} records{time}"));
    }
    let stale = stale_topologies(group);
    if stale > 0 {
        line(
            "Note",
            format!(
                "{stale} members run another topology than the group's: they keep what they know and get nothing new"
            ),
        );
    }
}

/// Members of an application whose topology is not the group's.
fn stale_topologies(group: &GroupDescription) -> usize {
    let Some(epoch) = group.streams.as_ref().and_then(|streams| streams.topology_epoch) else { return 0 };
    group.members.iter().filter(|member| member.streams.as_ref().is_some_and(|s| s.topology_epoch != epoch)).count()
}

fn members(group: &GroupDescription, out: &mut Output) {
    if group.members.is_empty() {
        return;
    }
    section("Members", out);
    match group.kind {
        GroupKind::Streams => streams_members(group, out),
        GroupKind::Classic | GroupKind::Consumer => consumers(group, out),
    }
}

fn consumers(group: &GroupDescription, out: &mut Output) {
    let mut table =
        Table::new(&["MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "TO COME", "SUBSCRIPTION"]);
    for member in &group.members {
        let owned: BTreeSet<_> = member.assignment.iter().collect();
        let coming = member.target.iter().filter(|at| !owned.contains(at)).count();
        let mut subscription = member.subscription.join(",");
        if let Some(regex) = &member.subscription_regex {
            subscription = format!("{subscription}{}/{regex}/", if subscription.is_empty() { "" } else { " " });
        }
        let client = match member.is_classic && group.kind == GroupKind::Consumer {
            true => format!("{} (classic)", member.client_id),
            false => member.client_id.clone(),
        };
        table.row(vec![
            short_member(&member.member_id).into(),
            or_dash(member.instance_id.clone()),
            client.into(),
            member.host.clone().into(),
            or_dash(member.epoch),
            member.assignment.len().into(),
            coming.into(),
            subscription.into(),
        ]);
    }
    out.table(&table);
}

fn streams_members(group: &GroupDescription, out: &mut Output) {
    let mut table = Table::new(&[
        "MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PROCESS", "ENDPOINT", "RACK", "TAGS", "ACTIVE", "STANDBY",
        "WARM-UP",
    ]);
    for member in &group.members {
        let Some(streams) = &member.streams else { continue };
        let tags: Vec<_> = streams.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        table.row(vec![
            short_member(&member.member_id).into(),
            or_dash(member.instance_id.clone()),
            member.client_id.clone().into(),
            member.host.clone().into(),
            or_dash(member.epoch),
            short_member(&streams.process_id).into(),
            or_dash(streams.endpoint.clone()),
            or_dash(member.rack.clone()),
            or_dash(Some(tags.join(",")).filter(|tags| !tags.is_empty())),
            streams.tasks.active.len().into(),
            streams.tasks.standby.len().into(),
            streams.tasks.warmup.len().into(),
        ]);
    }
    out.table(&table);
}

/// A task on a member.
struct Placed<'a> {
    task: &'a TaskId,
    role: &'static str,
    member: &'a Member,
    /// In the assignment, and in the target.
    has: bool,
    wanted: bool,
}

fn placed(group: &GroupDescription) -> Vec<Placed<'_>> {
    let mut all = Vec::new();
    for member in &group.members {
        let Some(streams) = &member.streams else { continue };
        let (now, target) = (&streams.tasks, &streams.target);
        for (role, now, target) in [
            ("active", &now.active, &target.active),
            ("standby", &now.standby, &target.standby),
            ("warm-up", &now.warmup, &target.warmup),
        ] {
            let tasks: BTreeSet<&TaskId> = now.iter().chain(target).collect();
            all.extend(tasks.into_iter().map(|task| Placed {
                task,
                role,
                member,
                has: now.contains(task),
                wanted: target.contains(task),
            }));
        }
    }
    all.sort_by(|a, b| (a.task, a.role, &a.member.member_id).cmp(&(b.task, b.role, &b.member.member_id)));
    all
}

fn tasks(group: &GroupDescription, streams: &StreamsGroup, rows: &[PartitionLag], out: &mut Output) {
    let placed = placed(group);
    if placed.is_empty() {
        return;
    }
    let lags = task_lags(streams, rows);
    section("Tasks", out);
    let mut table = Table::new(&["TASK", "ROLE", "MEMBER", "STATE", "LAG", "BEHIND"]);
    for placed in placed {
        let (state, tone) = match (placed.has, placed.wanted) {
            (true, true) => ("here".to_owned(), Tone::Good),
            (true, false) => ("leaving".to_owned(), Tone::Busy),
            _ => ("to come".to_owned(), Tone::Busy),
        };
        let (state, tone) = match progress(&placed) {
            Some((text, lag)) if lag > 0 => (text, Tone::Busy),
            Some((text, _)) => (text, tone),
            None => (state, tone),
        };
        let total = lags.get(placed.task).copied().unwrap_or_default();
        let is_active = placed.role == "active";
        table.row(vec![
            placed.task.into(),
            placed.role.into(),
            short_member(&placed.member.member_id).into(),
            Cell::toned(state, tone),
            lag_cell(total.lag.filter(|_| is_active)),
            time_cell(total.lag_ms.filter(|_| is_active)),
        ]);
    }
    out.table(&table);
}

/// How much of a task's state a standby or warm-up has, as it was last reported, and what is missing.
fn progress(placed: &Placed<'_>) -> Option<(String, i64)> {
    let reported = placed.member.streams.as_ref()?.progress.iter().find(|progress| progress.task == *placed.task)?;
    if placed.role == "active" {
        return None;
    }
    let (end, lag) = (reported.end_offset?, reported.lag()?);
    let percent = if end <= 0 { 100 } else { reported.offset.clamp(0, end).saturating_mul(100) / end };
    Some((format!("{percent}% restored, {lag} to go"), lag))
}

/// What the active task of each number has before it: all source partitions of that number.
fn task_lags(streams: &StreamsGroup, rows: &[PartitionLag]) -> BTreeMap<TaskId, Total> {
    let mut of_task: BTreeMap<TaskId, Vec<&PartitionLag>> = BTreeMap::new();
    for subtopology in &streams.subtopologies {
        for row in rows {
            let sources = || subtopology.source_topics.iter().chain(&subtopology.repartition_source_topics);
            if sources().any(|topic| *topic == row.topic) {
                let task = TaskId { subtopology: subtopology.id.clone(), partition: row.partition };
                of_task.entry(task).or_default().push(row);
            }
        }
    }
    of_task.into_iter().map(|(task, rows)| (task, Total::of(rows))).collect()
}
