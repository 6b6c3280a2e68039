//! `millstream serve`: configuration, runtime, signals. The broker itself is the crate `server`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use server::config::{self, ServerConfig, Sources};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Kind, usage};

/// More threads than this do not make a broker faster; fewer than two let one slow request delay all others.
const WORKERS: std::ops::RangeInclusive<usize> = 2..=8;
/// Threads for assignors, loading and files.
const BLOCKING_THREADS: usize = 32;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Address to listen on, HOST:PORT; may be given several times. No host: all addresses.
    /// [default: localhost:9092]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// Address that clients are told, one for each --listen in the same order. By default a client is told the address
    /// at which it reached the broker.
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Vec<String>,
    /// Where the data is kept. [default: ./millstream-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration: Kafka's server.properties, or TOML with the same names.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting; wins over the file. May be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Args {
    /// Options are settings with a shorter name.
    fn sources(self) -> anyhow::Result<Sources> {
        anyhow::ensure!(self.advertise.len() <= self.listen.len().max(1), "there are more --advertise than --listen");
        let mut set = Vec::new();
        if !self.listen.is_empty() {
            set.push(format!("listeners={}", named(&self.listen)));
            let protocols: Vec<_> = (0..self.listen.len()).map(|i| format!("{}:PLAINTEXT", name(i))).collect();
            set.push(format!("listener.security.protocol.map={}", protocols.join(",")));
        }
        if !self.advertise.is_empty() {
            set.push(format!("advertised.listeners={}", named(&self.advertise)));
        }
        if let Some(dir) = self.data_dir {
            let dir = dir.into_os_string().into_string();
            let dir = dir.map_err(|dir| anyhow::anyhow!("the data directory {dir:?} is not UTF-8"))?;
            set.push(format!("log.dirs={dir}"));
        }
        set.extend(self.set);
        Ok(Sources { file: self.config, set })
    }
}

/// Names are needed only to tell listeners apart.
fn name(number: usize) -> String {
    if number == 0 { "PLAINTEXT".to_owned() } else { format!("PLAINTEXT_{number}") }
}

fn named(addresses: &[String]) -> String {
    let named: Vec<_> = addresses.iter().enumerate().map(|(i, address)| format!("{}://{address}", name(i))).collect();
    named.join(",")
}

/// Serves until SIGTERM or SIGINT, or until the data directory fails.
pub fn run(args: Args) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .init();
    let sources = args.sources().map_err(|error| Failure { kind: Kind::Usage, error })?;
    let (values, findings) = config::load(&sources).map_err(usage)?;
    findings.log();
    let config = ServerConfig::from_values(values).map_err(usage)?;
    let open_files = server::raise_open_files_limit();
    tracing::debug!("up to {open_files} open files");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(*WORKERS.start(), *WORKERS.end()))
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("millstream")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    Ok(runtime.block_on(serve(config))?)
}

async fn serve(config: ServerConfig) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let data_dir = config.data_dir.display().to_string();
    let running = server::start(config).await?;
    let addresses: Vec<_> = running.addresses().iter().map(ToString::to_string).collect();
    tracing::info!(
        "ready after {} ms: listening on {}, data in {data_dir}, cluster {}",
        running.uptime_ms(),
        addresses.join(" and "),
        running.cluster_id()
    );
    // On standard output, for whoever started it by hand or waits for the line.
    let first = addresses.first().map_or("", String::as_str);
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "millstream {} listens on {}", env!("CARGO_PKG_VERSION"), addresses.join(" and "));
    let _ = writeln!(out, "connect with bootstrap.servers={first}; stop with Ctrl-C").and_then(|()| out.flush());
    drop(out);
    let failure = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        reason = running.storage_failed() => Some(reason),
    };
    if let Some(reason) = failure {
        // Nothing more can be promised; the next start finds out what the disk holds.
        running.abort().await;
        anyhow::bail!("the data directory {data_dir} has failed, and the broker stops: {reason}");
    }
    tracing::info!("stopping");
    running.shutdown().await.context("the data directory was not closed cleanly")?;
    tracing::info!("stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(args: Args) -> Vec<String> {
        args.sources().unwrap().set
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| text.to_string()).collect()
    }

    #[test]
    fn options_are_settings_and_explicit_settings_come_last() {
        assert_eq!(sources(Args::default()), Vec::<String>::new());
        let args = Args {
            listen: texts(&["localhost:9092", ":9093"]),
            advertise: texts(&["a:1", "b:2"]),
            data_dir: Some("/data".into()),
            set: texts(&["log.dirs=/other"]),
            ..Args::default()
        };
        assert_eq!(
            sources(args),
            texts(&[
                "listeners=PLAINTEXT://localhost:9092,PLAINTEXT_1://:9093",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PLAINTEXT_1:PLAINTEXT",
                "advertised.listeners=PLAINTEXT://a:1,PLAINTEXT_1://b:2",
                "log.dirs=/data",
                "log.dirs=/other",
            ])
        );
        let too_many = Args { advertise: texts(&["a:1", "b:2"]), ..Args::default() };
        assert!(too_many.sources().is_err());
    }
}
