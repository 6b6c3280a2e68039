//! Millstream: a Kafka-compatible broker around the group coordinator, and the tools that go with it.
//!
//! Without a subcommand it serves. Logic is elsewhere: the broker's in `server`, the protocol's in `client`. Here are
//! arguments, output and exit codes.

mod connect;
mod failure;
mod groups;
mod log_dump;
mod manual;
mod output;
mod serve;
mod time;
mod topics;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use output::Output;

/// Kafka-compatible broker around the group coordinator, and its tools
#[derive(Debug, Parser)]
#[command(name = "millstream", version, args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 refused or failed, 2 wrong arguments or configuration, \
                          3 broker not reached, 4 group, topic or file not found.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker; also the default
    Serve(serve::Args),
    /// Look at groups, explain them, and change their offsets, members and settings
    #[command(subcommand)]
    Groups(groups::Command),
    /// Look at topics, create, change and delete them
    #[command(subcommand)]
    Topics(topics::Command),
    /// Look into the files of a log
    #[command(subcommand)]
    Log(log_dump::Command),
    /// Write shell completions to standard output
    Completions {
        /// The shell that will read them
        shell: clap_complete::Shell,
    },
    /// Write the manual page of a command to standard output, or all pages into a directory
    Man {
        /// The command, such as `groups lag`; none: millstream itself
        command: Vec<String>,
        /// Write all pages here
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        dir: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let out = Output::to_stdout();
    match cli.command {
        None => serve::run(cli.serve),
        Some(Command::Serve(args)) => serve::run(args),
        Some(Command::Groups(command)) => groups::run(command, out),
        Some(Command::Topics(command)) => topics::run(command, out),
        Some(Command::Log(command)) => log_dump::run(command, out),
        Some(Command::Completions { shell }) => manual::completions(shell, out),
        Some(Command::Man { command, dir }) => manual::man(&command, dir.as_deref(), out),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
