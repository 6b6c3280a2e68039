//! A bounded number of runs on a faulty disk. A failure names its seed; `cargo run -p sim --example disk -- SEED 1 STEPS` repeats it.

use sim::disk::{Report, simulate};

const STEPS: u64 = 1_350;

fn run(seed: u64, steps: u64) -> Report {
    simulate(seed, steps).unwrap_or_else(|what| panic!("{what}; again with {steps} steps"))
}

#[test]
fn promises_hold_on_a_faulty_disk() {
    for seed in 100..104 {
        run(seed, STEPS);
    }
}

/// Seeds that have found something: reads that go wrong while a log recovers (1, 10), a compaction that dies half-way (26), a
/// death while the broker comes up (2, 5), a sync that fails in the end (4, 1018), two deaths that undo what recovery wrote to an index of
/// aborted transactions (122).
#[test]
fn what_was_found_once_stays_mended() {
    for (seed, steps) in
        [(1, 1_350), (2, 1_200), (5, 1_400), (10, 400), (26, 1_700), (4, 2_000), (1018, 400), (122, 2_900)]
    {
        run(seed, steps);
    }
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    assert_eq!(run(7, 600), run(7, 600));
}

/// A run in which nothing goes wrong would prove nothing.
#[test]
fn runs_are_eventful() {
    let report = run(8, STEPS);
    assert!(report.transactions > 50, "{report:?}");
    assert!(report.crashes > 3 && report.kills > 3 && report.closes > 0, "{report:?}");
    assert!(report.full_disks > 0 && report.misreads > 0 && report.compactions > 10, "{report:?}");
}
