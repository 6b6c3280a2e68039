//! Runs the simulation: `cargo run -p sim -- --seed N [--steps M] [--runs K] [--trace]`.
//!
//! A seed gives the same run every time. `--runs` goes on with the seeds after it and stops at the first that fails.

use std::process::ExitCode;

use sim::simulation::simulate;

const USAGE: &str = "usage: sim --seed N [--steps M] [--runs K] [--trace]";

struct Options {
    seed: u64,
    steps: u64,
    runs: u64,
    trace: bool,
}

fn options(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { seed: 1, steps: 20_000, runs: 1, trace: false };
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--trace" => {
                options.trace = true;
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
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    for seed in (options.seed..).take(options.runs as usize) {
        match simulate(seed, options.steps, options.trace) {
            Ok(report) => println!("seed {seed}: {report:?}"),
            Err(failure) => {
                eprint!("{failure}");
                eprintln!("again: cargo run -p sim -- --seed {seed} --steps {} --trace", options.steps);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
