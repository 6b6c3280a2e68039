//! `millstream groups plan`: what a change would move. The broker computes it with the code that would do it.

use client::http::encode;
use serde_json::Value;

use super::explain::ask;
use super::{Connect, parse_pair, short_member};
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone, or_dash};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct Args {
    group: String,
    /// So many more members like those that are there, each a process of its own
    #[arg(long, value_name = "N", group = "change", value_parser = clap::value_parser!(u32).range(1..=1000))]
    add_members: Option<u32>,
    /// Without this member; may be given several times
    #[arg(long, value_name = "ID", group = "change")]
    remove_member: Vec<String>,
    /// With this assignor
    #[arg(long, value_name = "NAME", group = "change")]
    assignor: Option<String>,
    /// With this setting of the group; may be given several times
    #[arg(long, value_name = "KEY=VALUE", group = "change", value_parser = parse_pair)]
    set: Vec<(String, String)>,
    /// With so many partitions of a topic; may be given several times
    #[arg(long, value_name = "TOPIC=N", group = "change", value_parser = parse_pair)]
    partitions: Vec<(String, String)>,
    /// Address of the broker's admin HTTP interface; by default as the broker's settings say
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

impl Args {
    fn query(&self) -> Vec<String> {
        let mut query = Vec::new();
        query.extend(self.add_members.map(|count| format!("add-members={count}")));
        query.extend(self.remove_member.iter().map(|id| format!("remove-member={}", encode(id))));
        query.extend(self.assignor.iter().map(|name| format!("assignor={}", encode(name))));
        let pairs = |name: &'static str, pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(key, value)| format!("{name}={}", encode(&format!("{key}={value}")))).collect()
        };
        query.extend(pairs("set", &self.set));
        query.extend(pairs("partitions", &self.partitions));
        query
    }
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let plan = ask(&args.connect, args.http.as_deref(), &args.group, "plan", &args.query()).await?;
    if args.connect.json {
        return out.json(&plan);
    }
    for line in texts(&plan["text"]) {
        out.line(line);
    }
    if let Some(problem) = plan["problem"].as_str() {
        out.line(out.paint(problem, Tone::Bad));
    }
    let mut table = Table::new(&["MEMBER", "CLIENT", "CHANGE", "BEFORE", "AFTER", "IN THE END"]);
    for member in plan["members"].as_array().into_iter().flatten() {
        let text = |name: &str| member[name].as_str().map(str::to_owned);
        let change = match member["change"].as_str() {
            Some("added") => Cell::toned("added", Tone::Good),
            Some(other) => Cell::toned(other, Tone::Bad),
            None => or_dash(None::<i32>),
        };
        table.row(vec![
            short_member(&text("member_id").unwrap_or_default()).into(),
            or_dash(text("client_id")),
            change,
            tasks(&member["before"]).into(),
            tasks(&member["after"]).into(),
            tasks(&member["finally"]).into(),
        ]);
    }
    out.line("");
    out.table(&table);
    moves(&plan, out);
    Ok(())
}

fn moves(plan: &Value, out: &mut Output) {
    let mut table = Table::new(&["MOVES", "AS", "FROM", "TO", "RESTORES"]);
    let restores = plan["restores"].as_array().map(Vec::as_slice).unwrap_or_default();
    for step in plan["moves"].as_array().into_iter().flatten() {
        let member = |name: &str| step[name].as_str().map(short_member);
        let restored = restores.iter().find(|r| r["what"] == step["what"] && r["member_id"] == step["to"]);
        let restored = restored.map(|r| r["behind"].as_i64().map_or("yes".to_owned(), |n| format!("{n} records")));
        table.row(vec![
            step["what"].as_str().unwrap_or_default().into(),
            step["role"].as_str().unwrap_or_default().into(),
            or_dash(member("from")),
            or_dash(member("to")),
            or_dash(restored),
        ]);
    }
    out.line("");
    out.table(&table);
}

/// How many of each role, such as `3 active, 1 standby`.
fn tasks(tasks: &Value) -> String {
    let count = |role: &str| tasks[role].as_array().map_or(0, Vec::len);
    let roles = ["active", "standby", "warmup"].map(|role| (role, count(role)));
    let told: Vec<_> = roles.iter().filter(|(_, n)| *n > 0).map(|(role, n)| format!("{n} {role}")).collect();
    if told.is_empty() { "-".to_owned() } else { told.join(", ") }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned)).collect()
}
