//! Millstream: a Kafka-compatible broker around the group coordinator, and the tools that go with it.
//!
//! Without a subcommand it serves. Logic is elsewhere: the broker's in `server`, the protocol's in `client`.

mod serve;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "millstream", version, about, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker; also the default.
    Serve(serve::Args),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.command {
        None => serve::run(cli.serve),
        Some(Command::Serve(args)) => serve::run(args),
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
