//! Histories made up on the way, on Kafka's coordinator and ours side by side. Needs Java and the oracle beside the
//! checkout; `ORACLE_HISTORIES` and `ORACLE_SEED` choose how many of each family and which. For many more there is the
//! command line, `cargo run -p sim -- oracle --family streams --histories 10000`.

use std::sync::Arc;

use sim::oracle::cli::{self, Options};
use sim::oracle::history::Family;
use sim::oracle::{Oracle, Schemas};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn histories_are_answered_as_by_kafka() {
    let Some(script) = Oracle::script() else {
        let required = std::env::var("MILLSTREAM_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
        assert!(!required, "no Java, or no coordinator oracle beside the checkout");
        eprintln!("SKIPPED: no Java, or no coordinator oracle beside the checkout");
        return;
    };
    let schemas = Arc::new(Schemas::load());
    let mut oracle = Oracle::start(&script).unwrap();
    for family in Family::ALL {
        let (histories, seed) = (setting("ORACLE_HISTORIES", 4), setting("ORACLE_SEED", 1));
        let options = Options { family, histories, seed, steps: 60, defects: 3, record: None };
        let summary = cli::compare(&mut oracle, &schemas, &options).unwrap();
        assert!(summary.defects.is_empty(), "{summary}");
        println!("{}: {summary}", family.name());
    }
}
