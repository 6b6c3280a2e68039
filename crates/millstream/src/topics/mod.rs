//! `millstream topics`.

mod describe;

use client::admin::configs::{self, Resource};
use client::admin::topics::{self, NewTopic};
use serde_json::json;

use crate::connect::{Connect, block_on};
use crate::failure::Failure;
use crate::groups::parse_pair;
use crate::output::{Cell, Output, Table, Tone};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List topics
    List {
        /// Also those of the broker itself
        #[arg(long)]
        internal: bool,
        #[command(flatten)]
        connect: Connect,
    },
    /// Show topics with their partitions, offsets and own settings
    Describe {
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
        #[command(flatten)]
        connect: Connect,
    },
    /// Create a topic
    Create {
        topic: String,
        /// How many partitions; by default as the broker is configured
        #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        partitions: Option<i32>,
        /// How many replicas; by default as the broker is configured
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
        replication_factor: Option<i16>,
        /// A setting; may be given several times
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
        set: Vec<(String, String)>,
        /// It is no failure if the topic is there already
        #[arg(long)]
        if_not_exists: bool,
        /// Only check whether it could be created
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        connect: Connect,
    },
    /// Delete topics and all of their records
    Delete {
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
        /// It is no failure if a topic is not there
        #[arg(long)]
        if_exists: bool,
        #[command(flatten)]
        connect: Connect,
    },
    /// Give a topic more partitions
    Alter {
        topic: String,
        /// How many it is to have
        #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        partitions: i32,
        /// Only check whether it could be done
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        connect: Connect,
    },
    /// Show or change the settings of a topic
    Config {
        topic: String,
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
    },
}

pub fn run(command: Command, mut out: Output) -> Result<(), Failure> {
    let done = block_on(perform(command, &mut out));
    // What is known is shown, also when not all of it worked.
    out.flush().and(done)
}

async fn perform(command: Command, out: &mut Output) -> Result<(), Failure> {
    match command {
        Command::List { internal, connect } => list(internal, &connect, out).await,
        Command::Describe { topics, connect } => describe::run(&topics, &connect, out).await,
        Command::Create { topic, partitions, replication_factor, set, if_not_exists, dry_run, connect } => {
            let new = NewTopic { name: topic, partitions, replication_factor, configs: set };
            let created = topics::create(&mut connect.client(), &new, dry_run).await;
            let done = if dry_run { "could be created" } else { "created" };
            outcome(
                &new.name,
                done,
                created,
                if_not_exists.then_some(wire::ErrorCode::TopicAlreadyExists),
                &connect,
                out,
            )
        }
        Command::Delete { topics: names, if_exists, connect } => {
            let mut client = connect.client();
            let fine = if_exists.then_some(wire::ErrorCode::UnknownTopicOrPartition);
            for name in names {
                let deleted = topics::delete(&mut client, &name).await;
                outcome(&name, "deleted", deleted, fine, &connect, out)?;
            }
            Ok(())
        }
        Command::Alter { topic, partitions, dry_run, connect } => {
            let grown = topics::grow(&mut connect.client(), &topic, partitions, dry_run).await;
            let done = if dry_run { "could be altered" } else { "altered" };
            outcome(&topic, done, grown, None, &connect, out)
        }
        Command::Config { topic, set, unset, dry_run, connect } => {
            let mut client = connect.client();
            let resource = Resource::Topic(&topic);
            if !set.is_empty() || !unset.is_empty() {
                configs::alter(&mut client, resource, &set, &unset, dry_run).await?;
            }
            let settings = configs::describe(&mut client, resource).await?;
            crate::groups::show_settings(&topic, "topic", &settings, connect.json, out)
        }
    }
}

/// Says what was done. One error may be what was hoped for.
fn outcome(
    topic: &str,
    done: &str,
    result: Result<(), client::ClientError>,
    fine: Option<wire::ErrorCode>,
    connect: &Connect,
    out: &mut Output,
) -> Result<(), Failure> {
    let done = match result {
        Ok(()) => done,
        Err(error) if fine.is_some() && error.code() == fine => "unchanged",
        Err(error) => return Err(Failure::from(error).context(format!("topic {topic} was not {done}"))),
    };
    match connect.json {
        true => out.json(&json!({ "topic": topic, "outcome": done })),
        false => {
            out.line(format!("{topic} {done}"));
            Ok(())
        }
    }
}

async fn list(internal: bool, connect: &Connect, out: &mut Output) -> Result<(), Failure> {
    let mut topics = topics::list(&mut connect.client()).await?;
    topics.retain(|topic| internal || !topic.internal);
    if connect.json {
        let topic = |topic: &topics::Topic| {
            let partitions = topic.partitions.len();
            json!({ "topic": topic.name, "id": topic.id, "internal": topic.internal, "partitions": partitions })
        };
        return out.json(&json!({ "topics": topics.iter().map(topic).collect::<Vec<_>>() }));
    }
    let mut table = Table::new(&["TOPIC", "PARTITIONS", "REPLICAS", "ID"]);
    for topic in topics {
        let replicas = topic.partitions.iter().map(|partition| partition.replicas.len()).max().unwrap_or(0);
        let tone = if topic.internal { Tone::Faint } else { Tone::Plain };
        table.row(vec![Cell::toned(topic.name, tone), topic.partitions.len().into(), replicas.into(), topic.id.into()]);
    }
    out.table(&table);
    Ok(())
}
