//! Timeouts and expiry (E-10 to E-13).

use super::super::state::{LAST_EPOCH, Status};
use super::bench::{Bench, FIRST_PRODUCER_ID};
use super::*;

const P: i64 = FIRST_PRODUCER_ID;

fn init_with_timeout(bench: &mut Bench, id: &str, timeout_ms: i32) -> (i64, i16) {
    let mut request = init_request(id, None);
    request.transaction_timeout_ms = timeout_ms;
    match bench.ask(Command::InitProducerId { api_version: 5, request }) {
        Reply::InitProducerId(r) => (r.producer_id, r.producer_epoch),
        other => panic!("not the reply to InitProducerId: {other:?}"),
    }
}

#[test]
fn e_11_transactions_over_time_are_aborted_at_the_next_look() {
    let mut bench = Bench::new();
    bench.config.max_timeout_ms = i32::MAX;
    let mut begin = |id: &str, timeout_ms: i32| {
        let producer = init_with_timeout(&mut bench, id, timeout_ms);
        assert_eq!(bench.add(id, producer, &[0], 2), NONE);
    };
    begin("short", 1_000);
    begin("exact", 10_000);
    begin("long", 15_000);
    begin("two-phase", i32::MAX);
    init_with_timeout(&mut bench, "idle", 1);
    bench.advance(9_999);
    assert_eq!(bench.status("short"), Status::Ongoing, "nobody has looked yet");
    bench.advance(1);
    assert_eq!(bench.status("short"), Status::CompleteAbort);
    assert_eq!(bench.status("exact"), Status::Ongoing, "it is over time from the next millisecond on");
    bench.advance(10_000);
    assert_eq!(bench.status("exact"), Status::CompleteAbort);
    assert_eq!(bench.status("long"), Status::CompleteAbort);
    bench.advance(10_000_000);
    assert_eq!(bench.status("two-phase"), Status::Ongoing);
    assert_eq!(bench.status("idle"), Status::Empty);
    assert!(bench.markers.iter().all(|marker| !marker.commit));
    assert_eq!(bench.markers.len(), 3);
}

/// TX-24.
#[test]
fn e_10_e_12_what_the_old_producer_is_told_then() {
    let mut bench = Bench::new();
    let old = init_with_timeout(&mut bench, "id", 1_000);
    bench.add("id", old, &[0], 2);
    bench.advance(10_000);
    let txn = bench.shard().state().get("id").unwrap();
    assert_eq!((txn.status, txn.epoch, txn.client_version), (Status::CompleteAbort, 1, 2));
    assert_eq!(bench.markers[0].producer, Producer { id: P, epoch: 1 });
    assert!(bench.markers[0].raises_epoch);
    assert_eq!(bench.end(5, "id", old, true).0, INVALID_STATE);
    assert_eq!(bench.end(4, "id", old, true).0, FENCED);
    assert_eq!(bench.add("id", old, &[0], 2), FENCED);
    assert_eq!(bench.verify("id", old, &[0]), Err(FENCED));
    assert_eq!(bench.end(5, "id", old, false), (NONE, P, 1), "it is aborted, as the producer wants");
    assert_eq!(bench.init("id", Some(old)), (NONE, P, 1), "the present epoch, for the one it was raised from");
    assert_eq!(bench.init("id", Some(old)), (NONE, P, 1), "also when that answer is lost");
}

#[test]
fn e_11_before_protocol_2_the_old_producer_cannot_go_on() {
    let mut bench = Bench::new();
    bench.config.transaction_version = 1;
    let old = init_with_timeout(&mut bench, "id", 1_000);
    // It may repeat its last request, until it is fenced.
    let (_, producer_id, epoch) = bench.init("id", Some(old));
    let mut request = init_request("id", Some((producer_id, epoch)));
    request.transaction_timeout_ms = 1_000;
    bench.ask(Command::InitProducerId { api_version: 5, request });
    bench.add("id", (P, 2), &[0], 0);
    bench.advance(10_000);
    let txn = bench.shard().state().get("id").unwrap();
    assert_eq!((txn.status, txn.epoch, txn.client_version), (Status::CompleteAbort, 3, 1));
    assert!(!bench.markers[0].raises_epoch);
    for given in [1, 2] {
        assert_eq!(bench.init("id", Some((P, given))).0, FENCED, "{given}");
    }
}

#[test]
fn e_11_a_transaction_at_the_last_epoch_gets_a_new_producer_id() {
    let mut bench = Bench::new();
    init_with_timeout(&mut bench, "id", 1_000);
    let mut last = bench.shard().state().get("id").unwrap().clone();
    last.epoch = LAST_EPOCH;
    bench.seed("id", last);
    bench.add("id", (P, LAST_EPOCH), &[0], 2);
    bench.automatic = false;
    bench.advance(10_000);
    bench.refuse_producer_ids(wire::ErrorCode::CoordinatorLoadInProgress);
    assert_eq!(bench.status("id"), Status::Ongoing);
    bench.automatic = true;
    bench.advance(10_000);
    let txn = bench.shard().state().get("id").unwrap();
    assert_eq!((txn.status, txn.producer_id, txn.epoch), (Status::CompleteAbort, P + 1, 0));
    assert_eq!(bench.markers[0].producer, Producer { id: P, epoch: i16::MAX });
}

#[test]
fn e_11_an_end_that_came_just_in_time_counts() {
    let mut bench = Bench::manual();
    bench.automatic = true;
    let producer = init_with_timeout(&mut bench, "id", 1_000);
    bench.automatic = false;
    bench.add("id", producer, &[0], 2);
    assert_eq!(bench.end(5, "id", producer, true).0, NONE);
    bench.advance(100_000);
    assert_eq!(bench.status("id"), Status::PrepareCommit);
    bench.carry_out();
    assert_eq!(bench.status("id"), Status::CompleteCommit);
}

#[test]
fn e_13_ids_that_nobody_uses_are_forgotten() {
    let mut bench = Bench::new();
    bench.config.id_expiration_ms = 20_000;
    bench.config.expiry_check_interval_ms = 7_000;
    bench.config.max_timeout_ms = i32::MAX;
    bench.crash();
    bench.producer("empty");
    let producer = bench.producer("complete");
    bench.add("complete", producer, &[0], 2);
    bench.end(5, "complete", producer, true);
    let open = init_with_timeout(&mut bench, "open", i32::MAX);
    bench.add("open", open, &[0], 2);
    bench.advance(10_000);
    bench.producer("young");
    bench.records();
    bench.advance(10_999);
    assert!(bench.records().is_empty(), "the third look is at 21 s");
    bench.advance(1);
    let written = bench.records();
    let forgotten: Vec<_> =
        written.iter().map(|record| (record.transactional_id.as_str(), record.txn.is_none())).collect();
    assert_eq!(forgotten, [("complete", true), ("empty", true)]);
    assert_eq!(bench.shard().state().len(), 2);
    bench.advance(1_000_000);
    assert_eq!(bench.shard().state().len(), 1, "an open transaction is never idle");
    // Whoever comes back starts anew, under another producer id.
    assert_eq!(bench.init("empty", None), (NONE, P + 4, 0));
}
