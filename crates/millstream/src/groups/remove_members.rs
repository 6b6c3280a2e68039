//! `millstream groups remove-members`: what KIP-345 asks for, for groups of every protocol.

use client::admin::groups::{self, Removal};
use serde_json::json;
use wire::ErrorCode;

use super::lag::known;
use super::{Connect, short_member, tally};
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("whom").required(true).multiple(true))]
pub struct Args {
    group: String,
    /// A static member by its group.instance.id; may be given several times
    #[arg(long, value_name = "ID", group = "whom", num_args = 1..)]
    instance: Vec<String>,
    /// A member by its member id; may be given several times
    #[arg(long, value_name = "ID", group = "whom", num_args = 1..)]
    member: Vec<String>,
    /// All members
    #[arg(long, group = "whom", conflicts_with_all = ["instance", "member"])]
    all: bool,
    /// Why; the members and the journal of the group are told
    #[arg(long, default_value = "removed by an administrator")]
    reason: String,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut client = args.connect.client();
    let group = known(&mut client, &args.group).await?;
    let removals: Vec<Removal> = match args.all {
        // By member id: who joins in between under the same instance id stays.
        true => group.members.iter().map(|member| Removal::Member(member.member_id.clone())).collect(),
        false => {
            let instances = args.instance.iter().cloned().map(Removal::Instance);
            instances.chain(args.member.iter().cloned().map(Removal::Member)).collect()
        }
    };
    if removals.is_empty() {
        match args.connect.json {
            true => out.json(&json!({ "group": args.group, "members": [] }))?,
            false => out.line(format!("{} has no members", args.group)),
        }
        return Ok(());
    }
    let outcomes = groups::remove_members(&mut client, &group, &removals, &args.reason).await?;
    let failed = outcomes.iter().filter(|code| !code.is_none()).count();
    match args.connect.json {
        true => {
            let member = |(removal, code): (&Removal, &ErrorCode)| {
                let error = (!code.is_none()).then(|| code.name());
                match removal {
                    Removal::Instance(id) => json!({ "instance_id": id, "error": error }),
                    Removal::Member(id) => json!({ "member_id": id, "error": error }),
                }
            };
            let members: Vec<_> = removals.iter().zip(&outcomes).map(member).collect();
            out.json(&json!({ "group": args.group, "members": members }))?;
        }
        false => {
            let mut table = Table::new(&["MEMBER", "BY", "OUTCOME"]);
            for (removal, code) in removals.iter().zip(&outcomes) {
                let (by, id) = match removal {
                    Removal::Instance(id) => ("instance", id.clone()),
                    Removal::Member(id) => ("member", short_member(id)),
                };
                let outcome = match code.is_none() {
                    true => Cell::toned("removed", Tone::Good),
                    false => Cell::toned(code.to_string(), Tone::Bad),
                };
                table.row(vec![id.into(), by.into(), outcome]);
            }
            out.table(&table);
        }
    }
    tally(failed, outcomes.len(), "members were not removed")
}
