//! Load for a broker, over real sockets and from few threads. It knows nothing of the broker but the Kafka protocol and,
//! where it runs beside it, its process id.

mod members;
mod process;

use std::process::ExitCode;

use clap::Parser;

/// Drives load against a Kafka broker and measures what it costs
#[derive(Debug, Parser)]
#[command(name = "load")]
enum Command {
    /// Many members of groups, a connection each: how long they take to form, and what their heartbeats cost
    Members(members::Args),
}

fn main() -> ExitCode {
    let Command::Members(args) = Command::parse();
    match members::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
