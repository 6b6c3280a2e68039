//! `millstream groups delete`: groups, or offsets of topics that they no longer read.

use client::Client;
use client::admin::{TopicPartition, groups, offsets};
use serde_json::json;

use super::reset_offsets::{TopicScope, parse_topic};
use super::{Connect, Which, tally};
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Delete only the offsets of this topic, or of some partitions of it; may be given several times
    #[arg(long, value_name = "TOPIC[:P,P...]", value_parser = parse_topic)]
    offsets: Vec<TopicScope>,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut client = args.connect.client();
    let mut outcomes = Vec::new();
    for group_id in args.which.resolve(&mut client).await? {
        if args.offsets.is_empty() {
            let outcome = groups::delete(&mut client, &group_id).await;
            outcomes.push((group_id, outcome.map_err(Failure::from)));
            continue;
        }
        for (at, outcome) in delete_offsets(&mut client, &group_id, &args.offsets).await? {
            outcomes.push((format!("{group_id} {at}"), outcome));
        }
    }
    let (all, failed) = (outcomes.len(), outcomes.iter().filter(|(_, outcome)| outcome.is_err()).count());
    // One that failed is all there is to say, with its own exit code.
    if all == 1
        && failed == 1
        && let Some((_, Err(failure))) = outcomes.pop()
    {
        return Err(failure);
    }
    let told = |outcome: &Result<(), Failure>| outcome.as_ref().err().map(Failure::text);
    match args.connect.json {
        true => {
            let list: Vec<_> = outcomes.iter().map(|(what, o)| json!({ "what": what, "error": told(o) })).collect();
            out.json(&json!({ "deleted": list }))?;
        }
        false => {
            let mut table = Table::new(&["DELETE", "OUTCOME"]);
            for (what, outcome) in &outcomes {
                let cell =
                    told(outcome).map_or(Cell::toned("deleted", Tone::Good), |text| Cell::toned(text, Tone::Bad));
                table.row(vec![what.into(), cell]);
            }
            out.table(&table);
        }
    }
    tally(failed, all, "could not be deleted")
}

async fn delete_offsets(
    client: &mut Client,
    group_id: &str,
    topics: &[TopicScope],
) -> Result<Vec<(TopicPartition, Result<(), Failure>)>, Failure> {
    let committed = offsets::committed(client, group_id).await?;
    let wanted: Vec<TopicPartition> = topics
        .iter()
        .flat_map(|(topic, numbers)| match numbers {
            Some(numbers) => numbers.iter().map(|number| TopicPartition::new(topic, *number)).collect::<Vec<_>>(),
            None => committed.keys().filter(|at| at.topic == *topic).cloned().collect(),
        })
        .collect();
    if wanted.is_empty() {
        return Err(Failure::new(crate::failure::Kind::NotFound, format!("{group_id} has no offsets of these topics")));
    }
    let outcomes = offsets::delete(client, group_id, &wanted).await?;
    let outcome = |code: wire::ErrorCode| client::ClientError::check(code.code(), None).map_err(Failure::from);
    Ok(outcomes.into_iter().map(|(at, code)| (at, outcome(code))).collect())
}
