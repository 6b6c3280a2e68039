//! `millstream groups`: one file per command.

mod config;
mod delete;
mod describe;
mod explain;
mod lag;
mod list;
mod plan;
mod remove_members;
mod reset_offsets;
mod topology;

use client::Client;
use client::admin::groups;

use crate::connect::{Connect, block_on};
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List groups with type and state
    List(list::Args),
    /// Show groups whole: state, epochs, members, tasks or partitions with their lag, topology
    Describe(describe::Args),
    /// Show how far groups are behind, in records and in time
    Lag(lag::Args),
    /// Move the committed offsets of a group without members; shows what it would do unless told to --execute
    ResetOffsets(reset_offsets::Args),
    /// Delete groups without members, or some of their offsets
    Delete(delete::Args),
    /// Remove members at once instead of waiting for their sessions to end (KIP-345)
    RemoveMembers(remove_members::Args),
    /// Show or change the settings of a group
    Config(config::Args),
    /// Tell why a group rebalanced (Millstream only)
    Explain(explain::Args),
    /// Show what a change would move, without doing it (Millstream only)
    Plan(plan::Args),
}

pub fn run(command: Command, mut out: Output) -> Result<(), Failure> {
    let done = block_on(async {
        match command {
            Command::List(args) => list::run(args, &mut out).await,
            Command::Describe(args) => describe::run(args, &mut out).await,
            Command::Lag(args) => lag::run(args, &mut out).await,
            Command::ResetOffsets(args) => reset_offsets::run(args, &mut out).await,
            Command::Delete(args) => delete::run(args, &mut out).await,
            Command::RemoveMembers(args) => remove_members::run(args, &mut out).await,
            Command::Config(args) => config::run(args, &mut out).await,
            Command::Explain(args) => explain::run(args, &mut out).await,
            Command::Plan(args) => plan::run(args, &mut out).await,
        }
    });
    // What is known is shown, also when not all of it worked.
    out.flush().and(done)
}

pub use config::show as show_settings;

/// Which groups a command is about.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// The groups
    #[arg(value_name = "GROUP")]
    groups: Vec<String>,
    /// All groups there are
    #[arg(long)]
    all_groups: bool,
}

impl Which {
    async fn resolve(&self, client: &mut Client) -> Result<Vec<String>, Failure> {
        match self.all_groups {
            true => Ok(groups::list(client).await?.into_iter().map(|listed| listed.group).collect()),
            false => Ok(self.groups.clone()),
        }
    }
}

/// The ids of members are long; the end that tells them apart is a UUID, of which the beginning is enough for people.
fn short_member(member_id: &str) -> String {
    const UUID: usize = 36;
    const SHOWN: usize = 8;
    let Some(at) = member_id.len().checked_sub(UUID).filter(|at| member_id.is_char_boundary(*at)) else {
        return member_id.to_owned();
    };
    let (name, uuid) = member_id.split_at(at);
    match uuid
        .bytes()
        .enumerate()
        .all(|(i, b)| if [8, 13, 18, 23].contains(&i) { b == b'-' } else { b.is_ascii_hexdigit() })
    {
        true => format!("{name}{}", &uuid[..SHOWN]),
        false => member_id.to_owned(),
    }
}

/// `NAME=VALUE`.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("it has to be NAME=VALUE".to_owned()),
    }
}

/// Fails when something did not work, after all was tried.
fn tally(failed: usize, of: usize, what: &str) -> Result<(), Failure> {
    match failed {
        0 => Ok(()),
        _ => Err(Failure::failed(format!("{failed} of {of} {what}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_ids_are_shortened_where_a_uuid_makes_them_long() {
        for (id, expected) in [
            ("app-1-StreamThread-1-3f2504e0-4f89-11d3-9a0c-0305e82c3301", "app-1-StreamThread-1-3f2504e0"),
            ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3f2504e0"),
            ("N5k0dVbrSfCZ4v4iqv9FXg", "N5k0dVbrSfCZ4v4iqv9FXg"),
            ("a-name-that-is-long-but-has-no-uuid-at-its-end", "a-name-that-is-long-but-has-no-uuid-at-its-end"),
            ("größe-größe-größe-größe-größe-größe", "größe-größe-größe-größe-größe-größe"),
        ] {
            assert_eq!(short_member(id), expected);
        }
    }
}
