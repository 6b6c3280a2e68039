//! Members of groups: each a connection and a task, all of them on few threads.

mod board;
mod classic;
mod modern;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use client::admin::topics::{self, NewTopic};
use client::{Client, ClientError, Connection};
use tokio::sync::Semaphore;
use wire::{ErrorCode, Uuid};

use self::board::Board;
use crate::process::raise_open_files_limit;

/// Connections that are opened at the same time; more only fill the backlog of the listener.
const CONNECTING: usize = 256;
/// How often progress is looked at.
const GLANCE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[arg(long, value_enum, default_value = "classic")]
    protocol: Protocol,
    #[arg(long, default_value_t = 100)]
    groups: usize,
    /// In all groups together
    #[arg(long, default_value_t = 10_000)]
    members: usize,
    #[arg(long, default_value = "localhost:9092")]
    bootstrap: String,
    /// The broker's process, for CPU and memory
    #[arg(long)]
    pid: Option<u32>,
    /// The topic that all groups read; created if it is not there. By default load-N, for N partitions
    #[arg(long, default_value = "")]
    topic: String,
    /// Its partitions; by default one for each member of a group
    #[arg(long)]
    partitions: Option<i32>,
    /// How long steady heartbeats are measured, in seconds
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// How long the groups may take to form, in seconds
    #[arg(long, default_value_t = 120)]
    form_timeout: u64,
    /// Of classic members, which choose it themselves
    #[arg(long, default_value_t = 3_000)]
    heartbeat_interval_ms: u64,
    #[arg(long, default_value_t = 45_000)]
    session_timeout_ms: i32,
    /// Threads of this program; the broker beside it needs the rest of the machine
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    Classic,
    Consumer,
    Streams,
}

/// What all members share.
struct Shared {
    args: Args,
    board: Board,
    topic_id: Uuid,
    /// `host:port` of the coordinator of each group.
    coordinators: Vec<String>,
    connecting: Semaphore,
}

/// One member's place.
#[derive(Clone)]
struct Seat {
    shared: Arc<Shared>,
    group: usize,
    number: usize,
}

impl Seat {
    fn group_id(&self) -> String {
        group_id(&self.shared.args, self.group)
    }

    fn args(&self) -> &Args {
        &self.shared.args
    }

    fn group(&self) -> &board::Group {
        &self.shared.board.groups[self.group]
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        // Never closed.
        let _permit = self.shared.connecting.acquire().await;
        let patience = Duration::from_secs(self.args().form_timeout.max(60));
        Connection::open(&self.shared.coordinators[self.group], &format!("load-{}", self.number), patience).await
    }
}

/// The process id keeps runs apart, so that none meets the groups of another.
fn group_id(args: &Args, group: usize) -> String {
    format!("load-{:?}-{}-{group}", args.protocol, std::process::id()).to_lowercase()
}

pub fn run(args: Args) -> Result<()> {
    if args.groups == 0 || args.members < args.groups {
        bail!("each group needs a member");
    }
    let files = raise_open_files_limit();
    if files < args.members as u64 + 64 {
        bail!("{} members need as many open files, and the limit is {files}", args.members);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads.max(1))
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let outcome = runtime.block_on(drive(args));
    // Members wait for answers that nobody needs any more.
    runtime.shutdown_background();
    outcome
}

async fn drive(mut args: Args) -> Result<()> {
    let mut client = Client::new(&args.bootstrap, "load", Duration::from_secs(30));
    let partitions = args.partitions.unwrap_or(args.members.div_ceil(args.groups) as i32);
    if args.topic.is_empty() {
        args.topic = format!("load-{partitions}");
    }
    let (topic_id, partitions) = topic(&mut client, &args.topic, partitions).await?;
    let mut coordinators = Vec::new();
    for group in 0..args.groups {
        // One after the other, which is soon done.
        coordinators.push(coordinator(&mut client, &group_id(&args, group)).await?);
    }
    let board = Board::new(args.groups, partitions);
    let shared = Arc::new(Shared { board, topic_id, coordinators, connecting: Semaphore::new(CONNECTING), args });
    let used = report::before(&shared, partitions)?;
    let start = Instant::now();
    for number in 0..shared.args.members {
        let seat = Seat { shared: shared.clone(), group: number % shared.args.groups, number };
        match shared.args.protocol {
            Protocol::Classic => drop(tokio::spawn(classic::run(seat))),
            Protocol::Consumer | Protocol::Streams => drop(tokio::spawn(modern::run(seat))),
        }
    }
    let formed = wait_until_formed(&shared, start).await;
    report::formed(&shared, start.elapsed(), &used)?;
    formed?;
    report::steady(&shared).await
}

async fn topic(client: &mut Client, name: &str, partitions: i32) -> Result<(Uuid, i32)> {
    let new = NewTopic { name: name.to_owned(), partitions: Some(partitions), ..Default::default() };
    match topics::create(client, &new, false).await {
        Err(error) if error.code() != Some(ErrorCode::TopicAlreadyExists) => return Err(error.into()),
        _ => {}
    }
    let topic = topics::get(client, name).await?;
    Ok((topic.id.parse().context("the broker has no topic ids")?, topic.partitions.len() as i32))
}

/// Asked once per group, not per member: a client of ten thousand members would keep it too.
async fn coordinator(client: &mut Client, group: &str) -> Result<String> {
    for _ in 0..100 {
        match client.coordinator(group).await {
            Err(error) if error.is_retriable() => tokio::time::sleep(Duration::from_millis(100)).await,
            found => return Ok(found?),
        }
    }
    bail!("no coordinator for {group}")
}

async fn wait_until_formed(shared: &Shared, start: Instant) -> Result<()> {
    let patience = Duration::from_secs(shared.args.form_timeout);
    let wanted: Vec<usize> =
        (0..shared.args.groups).map(|group| (group..shared.args.members).step_by(shared.args.groups).count()).collect();
    loop {
        let stable =
            shared.board.groups.iter().zip(&wanted).filter(|(group, wanted)| group.is_stable(**wanted)).count();
        if stable == wanted.len() {
            return Ok(());
        }
        if start.elapsed() > patience {
            bail!("only {stable} of {} groups formed within {} s", wanted.len(), patience.as_secs());
        }
        tokio::time::sleep(GLANCE).await;
    }
}
