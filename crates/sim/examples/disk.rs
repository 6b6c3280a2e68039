//! Runs the simulation of a faulty disk: `cargo run -p sim --example disk -- FIRST_SEED RUNS STEPS`. Stops at the first failure.

use std::process::ExitCode;

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [first, runs, steps] = numbers[..] else {
        eprintln!("usage: disk FIRST_SEED RUNS STEPS");
        return ExitCode::FAILURE;
    };
    let mut total = 0;
    for seed in first..first + runs {
        match sim::disk::simulate(seed, steps) {
            Ok(report) => {
                total += report.steps;
                println!("{seed}: {report:?}");
            }
            Err(what) => {
                println!("{what}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{total} steps without a violation");
    ExitCode::SUCCESS
}
