//! `millstream groups list`.

use client::admin::groups::{self, ListedGroup};
use serde_json::json;

use super::Connect;
use crate::failure::Failure;
use crate::output::{Cell, Output, Table, Tone};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only groups in one of these states, such as Stable or Empty
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<String>,
    /// Only groups of one of these types: classic, consumer, streams
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    kind: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut listed = groups::list(&mut args.connect.client()).await?;
    // Kafka spells states in several ways (`PreparingRebalance`, `preparing_rebalance`).
    let same = |a: &str, b: &str| plain(a) == plain(b);
    let wanted = |group: &ListedGroup| {
        let state = args.state.is_empty() || args.state.iter().any(|state| same(state, &group.state));
        state && (args.kind.is_empty() || args.kind.iter().any(|kind| same(kind, &group.kind)))
    };
    listed.retain(wanted);
    if args.connect.json {
        return out.json(&json!({ "groups": listed }));
    }
    let mut table = Table::new(&["GROUP", "TYPE", "PROTOCOL", "STATE"]);
    for group in listed {
        let state = Cell::toned(group.state.clone(), Tone::of_state(&group.state));
        table.row(vec![group.group.into(), group.kind.into(), group.protocol.into(), state]);
    }
    out.table(&table);
    Ok(())
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
