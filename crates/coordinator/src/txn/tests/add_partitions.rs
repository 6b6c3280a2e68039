//! Partitions of a transaction (P-3, P-5).

use super::super::state::Status;
use super::bench::{Bench, FIRST_PRODUCER_ID};
use super::*;

const P: i64 = FIRST_PRODUCER_ID;

#[test]
fn p_3_who_may_add() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    let cases = [
        ("", producer, INVALID_REQUEST),
        ("other", producer, INVALID_MAPPING),
        ("id", (P + 1, 0), INVALID_MAPPING),
        ("id", (P, -1), FENCED),
        ("id", (P, 1), FENCED), // newer is no better than older
    ];
    for (id, producer, error) in cases {
        assert_eq!(bench.add(id, producer, &[0], 0), error, "{id} {producer:?}");
        let verified = bench.verify(id, producer, &[0]);
        assert_eq!(verified, Err(error), "P-5: {id} {producer:?}");
    }
    assert_eq!(bench.status("id"), Status::Empty);
    assert_eq!(bench.add("id", producer, &[0], 0), NONE);
}

#[test]
fn p_3_a_pending_end_comes_before_everything_but_the_id() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.automatic = false;
    bench.end(5, "id", producer, true);
    for producer in [producer, (P, 1), (P + 1, 0)] {
        assert_eq!(bench.add("id", producer, &[0], 2), CONCURRENT, "{producer:?}");
    }
    // P-5: verifying has it the other way round.
    assert_eq!(bench.verify("id", (P, 1), &[0]), Err(CONCURRENT));
    assert_eq!(bench.verify("id", (P, 0), &[0]), Err(FENCED));
    assert_eq!(bench.verify("id", (P + 1, 1), &[0]), Err(INVALID_MAPPING));
}

#[test]
fn p_3_the_first_partition_begins_the_transaction_and_known_ones_write_nothing() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.records();
    bench.advance(50);
    assert_eq!(bench.add("id", producer, &[1, 0], 0), NONE);
    let begun = bench.records().remove(0).txn.unwrap();
    assert_eq!((begun.status, begun.start_ms, begun.last_update_ms), (Status::Ongoing, 1_000_050, 1_000_050));
    assert_eq!(begun.partitions, partitions(&[0, 1]));
    bench.advance(50);
    assert_eq!(bench.add("id", producer, &[1], 0), NONE);
    assert!(bench.records().is_empty());
    assert_eq!(bench.add("id", producer, &[1, 2], 0), NONE);
    let more = bench.records().remove(0).txn.unwrap();
    assert_eq!((more.start_ms, more.last_update_ms), (1_000_050, 1_000_100));
    assert_eq!(more.partitions, partitions(&[0, 1, 2]));
}

#[test]
fn p_3_a_complete_transaction_is_followed_by_a_new_one() {
    for commit in [true, false] {
        let mut bench = Bench::new();
        let producer = bench.producer("id");
        bench.add("id", producer, &[0], 0);
        assert_eq!(bench.end(4, "id", producer, commit).0, NONE);
        bench.advance(10);
        assert_eq!(bench.add("id", producer, &[1], 0), NONE);
        let txn = bench.shard().state().get("id").unwrap();
        assert_eq!((txn.status, txn.start_ms), (Status::Ongoing, bench.now.wall_ms));
        assert_eq!(txn.partitions, partitions(&[1]));
    }
}

#[test]
fn p_5_verifying_names_what_is_missing_and_changes_nothing() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    assert_eq!(bench.verify("id", producer, &[0]), Ok(vec![0]));
    bench.add("id", producer, &[0, 1], 0);
    bench.records();
    assert_eq!(bench.verify("id", producer, &[0, 1]), Ok(vec![]));
    assert_eq!(bench.verify("id", producer, &[1, 2, 3]), Ok(vec![2, 3]));
    assert!(bench.records().is_empty());
}

#[test]
fn t_4_the_record_says_which_protocol_the_request_implied() {
    for version in [0, 2] {
        let mut bench = Bench::new();
        let producer = bench.producer("id");
        bench.add("id", producer, &[0], version);
        assert_eq!(bench.shard().state().get("id").unwrap().client_version, version);
    }
}
