//! Runs the simulation: `cargo run -p sim -- --seed N [--world W] [--steps M] [--runs K] [--trace]`.
//!
//! Worlds are streams, consumer, classic, mixed and migration: what the groups are whose members come and go.
//!
//! A seed gives the same run every time. `--runs` goes on with the seeds after it and stops at the first that fails.
//!
//! Or compares with Kafka's coordinator, side by side: `cargo run -p sim -- oracle --family streams --histories 10000`.
//! Families are classic, consumer, migration and streams. Needs Java and the oracle beside the checkout.

use std::process::ExitCode;

use sim::settings::Cast;
use sim::simulation::simulate;

const USAGE: &str = "usage: sim --seed N [--world streams|consumer|classic|mixed|migration] [--steps M] [--runs K] [--trace]\n       sim oracle ...";

struct Options {
    world: &'static str,
    cast: Cast,
    seed: u64,
    steps: u64,
    runs: u64,
    trace: bool,
}

fn options(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { world: "streams", cast: Cast::Streams, seed: 1, steps: 20_000, runs: 1, trace: false };
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--trace" => {
                options.trace = true;
                continue;
            }
            "--world" => {
                let name = words.next()?;
                (options.world, options.cast) = *Cast::ALL.iter().find(|(each, _)| *each == name)?;
                continue;
            }
            "--seed" => &mut options.seed,
            "--steps" => &mut options.steps,
            "--runs" => &mut options.runs,
            _ => return None,
        };
        *number = words.next()?.parse().ok()?;
    }
    Some(options)
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "oracle").is_some() {
        return sim::oracle::cli::main(words);
    }
    let Some(options) = options(words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    for seed in (options.seed..).take(options.runs as usize) {
        match simulate(options.cast, seed, options.steps, options.trace) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(failure) => {
                eprint!("{failure}");
                eprintln!(
                    "again: cargo run -p sim -- --world {} --seed {seed} --steps {} --trace",
                    options.world, options.steps
                );
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
