//! `millstream groups config`.

use client::admin::configs::{self, Resource};
use serde_json::json;

use super::{Connect, parse_pair};
use crate::failure::Failure;
use crate::output::{Output, Table, Tone, or_dash};

#[derive(Debug, clap::Args)]
pub struct Args {
    group: String,
    /// Set one; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    set: Vec<(String, String)>,
    /// Back to the broker's value; may be given several times
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Only check what would be set
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connect: Connect,
}

pub async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let mut client = args.connect.client();
    let group = Resource::Group(&args.group);
    if !args.set.is_empty() || !args.unset.is_empty() {
        configs::alter(&mut client, group, &args.set, &args.unset, args.dry_run).await?;
    }
    let settings = configs::describe(&mut client, group).await?;
    show(&args.group, "group", &settings, args.connect.json, out)
}

/// Settings with where they were set; those of the resource itself stand out.
pub fn show(
    name: &str,
    kind: &str,
    settings: &[configs::Setting],
    json: bool,
    out: &mut Output,
) -> Result<(), Failure> {
    if json {
        return out.json(&json!({ kind: name, "settings": settings }));
    }
    let mut table = Table::new(&["SETTING", "VALUE", "SET BY"]);
    for setting in settings {
        let tone = if setting.is_own() { Tone::Heading } else { Tone::Plain };
        let name = crate::output::Cell::toned(setting.name.clone(), tone);
        table.row(vec![name, or_dash(setting.value.clone()), setting.source.into()]);
    }
    out.table(&table);
    Ok(())
}
