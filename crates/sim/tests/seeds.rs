//! A bounded number of seeded runs. A failure names its seed; `cargo run -p sim -- --seed N --steps M --trace` repeats it.

use sim::simulation::{Report, simulate};

const STEPS: u64 = 4_000;

fn run(seed: u64) -> Report {
    simulate(seed, STEPS, false).unwrap_or_else(|failure| panic!("{failure}again with --steps {STEPS}"))
}

/// Split, so that they run beside each other.
macro_rules! runs {
    ($($name:ident: $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            for seed in $seeds {
                run(seed);
            }
        }
    )*};
}

runs! {
    all_laws_hold_in_runs_1_to_6: 1..=6;
    all_laws_hold_in_runs_7_to_12: 7..=12;
    all_laws_hold_in_runs_13_to_18: 13..=18;
    all_laws_hold_in_runs_19_to_24: 19..=24;
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in [3, 24] {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(3).hash, run(4).hash);
}

/// Seed 1047: a static member joins and says goodbye before its join is durable. Both answers are true when they go out.
#[test]
fn an_answer_may_be_overtaken_by_the_goodbye_of_its_member() {
    simulate(1047, 20_000, false).unwrap_or_else(|failure| panic!("{failure}"));
}

/// A run in which nothing happens would prove nothing.
#[test]
fn runs_are_eventful() {
    let report = run(6);
    assert!(report.operations > 20, "{report:?}");
    assert!(report.group_epoch > 20, "{report:?}");
    assert!(report.records > 200, "{report:?}");
}
