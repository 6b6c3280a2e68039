//! `millstream log dump`: what is in the files of a log, Kafka's or ours. Offline: it reads files, and asks no broker.

mod indexes;
mod internal;
mod segment;
mod structured;

use std::path::{Path, PathBuf};

use crate::failure::{Failure, kind_of_io};
use crate::output::Output;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show segments (.log) and indexes (.index, .timeindex, .txnindex)
    Dump(Args),
}

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only the batches, without their records
    #[arg(long)]
    no_records: bool,
    /// How to read records; by default as the name of the directory tells
    #[arg(long, value_enum, value_name = "WHAT")]
    decoder: Option<Decoder>,
    /// JSON for programs, one object a line for each batch or entry
    #[arg(long)]
    json: bool,
}

/// What the records of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Decoder {
    /// Bytes of clients
    Data,
    /// Records of the group coordinator (__consumer_offsets)
    Offsets,
    /// Records of the transaction coordinator (__transaction_state)
    Transactions,
}

impl Decoder {
    fn of(file: &Path) -> Decoder {
        let dir = file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        match dir.as_deref().and_then(|dir| dir.rsplit_once('-')).map(|(topic, _)| topic) {
            Some("__consumer_offsets") => Decoder::Offsets,
            Some("__transaction_state") => Decoder::Transactions,
            _ => Decoder::Data,
        }
    }
}

/// How a dump is shown.
#[derive(Debug, Clone, Copy)]
struct Show {
    records: bool,
    json: bool,
    decoder: Decoder,
}

pub fn run(command: Command, mut out: Output) -> Result<(), Failure> {
    let Command::Dump(args) = command;
    let mut damaged = Vec::new();
    for file in &args.files {
        let decoder = args.decoder.unwrap_or_else(|| Decoder::of(file));
        let show = Show { records: !args.no_records, json: args.json, decoder };
        if args.files.len() > 1 && !args.json {
            out.heading(&file.display().to_string());
        }
        let dumped = dump(file, show, &mut out);
        // What was read so far is shown, also when the rest is damaged.
        out.flush()?;
        match dumped {
            Ok(()) => {}
            Err(Dump::Io(error)) => {
                let text = format!("cannot read {}: {error}", file.display());
                return Err(Failure::new(kind_of_io(&error), text));
            }
            Err(Dump::Unknown) => {
                return Err(Failure::usage(format!(
                    "{} is none of .log, .index, .timeindex, .txnindex",
                    file.display()
                )));
            }
            Err(Dump::Output(failure)) => return Err(failure),
            Err(Dump::Damaged(what)) => damaged.push(format!("{}: {what}", file.display())),
        }
    }
    match damaged.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(damaged.join("\n"))),
    }
}

/// Why a file was not dumped to its end.
enum Dump {
    Io(std::io::Error),
    Unknown,
    Damaged(String),
    Output(Failure),
}

impl From<std::io::Error> for Dump {
    fn from(error: std::io::Error) -> Dump {
        Dump::Io(error)
    }
}

impl From<Failure> for Dump {
    fn from(failure: Failure) -> Dump {
        Dump::Output(failure)
    }
}

fn dump(file: &Path, show: Show, out: &mut Output) -> Result<(), Dump> {
    let base_offset = file.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("log") => segment::dump(file, show, out),
        Some("index") => indexes::offsets(file, base_offset.unwrap_or(0), show.json, out),
        Some("timeindex") => indexes::times(file, base_offset.unwrap_or(0), show.json, out),
        Some("txnindex") => indexes::aborted(file, show.json, out),
        _ => Err(Dump::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_tells_how_records_are_read() {
        for (file, expected) in [
            ("data/__consumer_offsets-12/00000000000000000000.log", Decoder::Offsets),
            ("__transaction_state-0/00000000000000000000.log", Decoder::Transactions),
            ("orders-0/00000000000000000000.log", Decoder::Data),
            ("00000000000000000000.log", Decoder::Data),
        ] {
            assert_eq!(Decoder::of(Path::new(file)), expected, "{file}");
        }
    }
}
