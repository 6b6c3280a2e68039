//! EndTxn (E-1 to E-9).

use super::super::Effect;
use super::super::state::{LAST_EPOCH, Status, Txn};
use super::bench::{Bench, FIRST_PRODUCER_ID};
use super::*;

const P: i64 = FIRST_PRODUCER_ID;

/// Epoch that the id has in the tables below.
const STORED: i16 = 5;

/// An id in the given state, as it is right after the request that led there.
fn bench_in(status: Status, client_version: i16) -> Bench {
    let mut bench = Bench::manual();
    let open = matches!(status, Status::Ongoing | Status::PrepareCommit | Status::PrepareAbort);
    let txn = Txn {
        producer_id: P,
        previous_producer_id: P,
        next_producer_id: -1,
        epoch: STORED,
        timeout_ms: TIMEOUT_MS,
        status,
        partitions: if open { partitions(&[0]) } else { TopicPartitions::new() },
        start_ms: 1_000_000,
        last_update_ms: 1_000_000,
        client_version,
    };
    bench.seed("id", txn);
    bench
}

#[test]
fn e_1_protocol_1_answers_by_state() {
    use Status::*;
    // Status, answer to a commit, answer to an abort. Markers are always being written while the end is prepared.
    let table = [
        (Ongoing, NONE, NONE),
        (PrepareCommit, CONCURRENT, CONCURRENT),
        (PrepareAbort, CONCURRENT, CONCURRENT),
        (CompleteCommit, NONE, INVALID_STATE),
        (CompleteAbort, INVALID_STATE, NONE),
        (Empty, INVALID_STATE, INVALID_STATE),
    ];
    for (status, commit, abort) in table {
        for (committed, error) in [(true, commit), (false, abort)] {
            let mut bench = bench_in(status, 0);
            let answer = bench.end(4, "id", (P, STORED), committed);
            assert_eq!(answer, (error, -1, -1), "{status:?}, commit: {committed}");
            let txn = bench.shard().state().get("id").unwrap();
            assert_eq!(txn.epoch, STORED, "protocol 1 leaves the epoch alone");
            if status == Ongoing {
                assert_eq!(txn.status, if committed { PrepareCommit } else { PrepareAbort });
            } else {
                assert_eq!(txn.status, status);
            }
        }
    }
}

#[test]
fn e_1_protocol_1_checks_in_this_order() {
    let mut bench = bench_in(Status::Ongoing, 0);
    let cases = [
        ("", (P, STORED), INVALID_REQUEST),
        ("other", (P, STORED), INVALID_MAPPING),
        ("id", (P + 1, STORED), INVALID_MAPPING),
        ("id", (P, STORED - 1), FENCED),
        ("id", (P, STORED + 1), FENCED),
    ];
    for (id, producer, error) in cases {
        for version in [2, 4] {
            assert_eq!(bench.end(version, id, producer, true).0, error, "v{version} {id} {producer:?}");
        }
    }
    assert_eq!(bench.end(1, "id", (P, STORED - 1), true).0, INVALID_EPOCH, "v1 knows no PRODUCER_FENCED");
    // The producer is looked at before the pending end.
    let mut bench = bench_in(Status::PrepareCommit, 0);
    assert_eq!(bench.end(4, "id", (P, STORED - 1), true).0, FENCED);
    assert_eq!(bench.end(4, "id", (P + 1, STORED), true).0, INVALID_MAPPING);
}

#[test]
fn e_5_protocol_2_answers_by_state_and_epoch() {
    use Status::*;
    const RETRY: i16 = STORED - 1;
    // Status, epoch of the request, answer to a commit, answer to an abort.
    let table = [
        (Ongoing, STORED, NONE, NONE),
        (Ongoing, RETRY, FENCED, FENCED),
        (Ongoing, STORED + 1, FENCED, FENCED),
        (PrepareCommit, RETRY, CONCURRENT, CONCURRENT),
        (PrepareAbort, RETRY, CONCURRENT, CONCURRENT),
        (CompleteCommit, RETRY, NONE, INVALID_STATE),
        (CompleteCommit, STORED, INVALID_STATE, NONE),
        (CompleteCommit, RETRY - 1, FENCED, FENCED),
        (CompleteCommit, STORED + 1, FENCED, FENCED),
        (CompleteAbort, RETRY, INVALID_STATE, NONE),
        (CompleteAbort, STORED, INVALID_STATE, NONE),
        (CompleteAbort, RETRY - 1, FENCED, FENCED),
        (Empty, STORED, INVALID_STATE, NONE),
        (Empty, RETRY, FENCED, FENCED),
    ];
    for (status, epoch, commit, abort) in table {
        for (committed, error) in [(true, commit), (false, abort)] {
            let case = format!("{status:?} epoch {epoch}, commit: {committed}");
            let mut bench = bench_in(status, 2);
            let answer = bench.end(5, "id", (P, epoch), committed);
            if error != NONE {
                assert_eq!(answer, (error, -1, -1), "{case}");
                assert_eq!(bench.shard().state().get("id").unwrap().epoch, STORED, "{case}");
                continue;
            }
            let expected = if epoch == RETRY { STORED } else { STORED + 1 };
            assert_eq!(answer, (NONE, P, expected), "{case}");
            let txn = bench.shard().state().get("id").unwrap();
            assert_eq!(txn.epoch, expected, "{case}");
            let becomes = match (status, epoch == RETRY) {
                (Ongoing, _) if committed => PrepareCommit,
                (Ongoing, _) => PrepareAbort,
                (status, true) => status,
                // E-6: nothing to write markers for.
                _ => CompleteAbort,
            };
            assert_eq!(txn.status, becomes, "{case}");
        }
    }
}

#[test]
fn e_2_protocol_2_checks_in_this_order() {
    let mut bench = bench_in(Status::Ongoing, 2);
    let cases = [
        ("", (P, STORED), INVALID_REQUEST),
        ("other", (P, STORED), INVALID_MAPPING),
        ("id", (P + 1, STORED), INVALID_MAPPING),
        ("id", (P + 1, STORED + 1), INVALID_MAPPING),
        ("id", (P, STORED + 1), FENCED),
    ];
    for (id, producer, error) in cases {
        assert_eq!(bench.end(5, id, producer, true).0, error, "{id} {producer:?}");
    }
    // A pending end comes first.
    let mut bench = bench_in(Status::PrepareCommit, 2);
    assert_eq!(bench.end(5, "id", (P + 1, STORED), true).0, CONCURRENT);
    assert_eq!(bench.end(5, "id", (P, STORED + 9), true).0, CONCURRENT);
}

#[test]
fn e_6_an_abort_of_nothing_sets_the_start_and_writes_no_markers() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.advance(30);
    assert_eq!(bench.end(5, "id", producer, false), (NONE, P, 1));
    let txn = bench.shard().state().get("id").unwrap();
    assert_eq!((txn.status, txn.start_ms, txn.client_version), (Status::CompleteAbort, 1_000_030, 2));
    assert!(bench.markers.is_empty());
    // Both steps are in the log, as one batch.
    let written: Vec<_> = bench.records().into_iter().map(|record| record.txn.unwrap().status).collect();
    assert_eq!(written, [Status::Empty, Status::PrepareAbort, Status::CompleteAbort]);
}

#[test]
fn e_7_e_9_the_answer_comes_with_the_decision_and_the_end_with_the_markers() {
    // Version of EndTxn, epoch of the markers and after, whether it is a raised one.
    for (version, client_version, epoch, raises) in [(4, 0, 0, false), (5, 2, 1, true)] {
        for commit in [true, false] {
            let mut bench = Bench::new();
            let producer = bench.producer("id");
            bench.add("id", producer, &[0, 3], client_version);
            bench.automatic = false;
            bench.records();
            let answer = bench.end(version, "id", producer, commit);
            assert_eq!(answer, if raises { (NONE, P, 1) } else { (NONE, -1, -1) });
            let asked = Effect::WriteMarkers {
                transactional_id: "id".into(),
                producer: Producer { id: P, epoch },
                commit,
                raises_epoch: raises,
                partitions: partitions(&[0, 3]),
            };
            let effects: Vec<_> = bench.pending.iter().map(|(_, effect)| effect.clone()).collect();
            assert_eq!(effects, [asked]);
            let prepared = bench.records().remove(0).txn.unwrap();
            assert_eq!((prepared.epoch, prepared.client_version), (epoch, client_version));
            assert_eq!(prepared.partitions, partitions(&[0, 3]));
            bench.carry_out();
            let done = bench.records().remove(0).txn.unwrap();
            let status = if commit { Status::CompleteCommit } else { Status::CompleteAbort };
            assert_eq!((done.status, done.epoch, done.start_ms), (status, epoch, prepared.start_ms));
            assert!(done.partitions.is_empty());
            // What follows goes on with the epoch of the answer.
            assert_eq!(bench.add("id", (P, epoch), &[0], client_version), NONE);
        }
    }
}

#[test]
fn e_9_only_partitions_that_failed_are_tried_again() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0, 1, 2], 2);
    bench.broken = vec![1];
    bench.end(5, "id", producer, true);
    assert_eq!(bench.status("id"), Status::PrepareCommit);
    for _ in 0..10 {
        bench.advance(6_000);
    }
    let tried: Vec<_> = bench.markers.iter().map(|marker| marker.partitions.clone()).collect();
    assert_eq!(tried[0], partitions(&[0, 2]));
    assert!((5..30).contains(&tried.len()), "it goes on, but not in a hurry: {}", tried.len());
    assert!(tried[1..].iter().all(|partitions| partitions["t"].is_empty()));
    bench.broken.clear();
    bench.advance(6_000);
    assert_eq!(bench.status("id"), Status::CompleteCommit);
    assert_eq!(bench.markers.last().unwrap().partitions, partitions(&[1]));
    assert!(bench.shard().is_idle());
}

#[test]
fn e_9_a_late_report_of_markers_concerns_nobody() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.automatic = false;
    bench.end(5, "id", producer, true);
    for (producer_id, epoch) in [(P, 0), (P, 2), (P + 1, 1)] {
        bench.send(Command::MarkersWritten {
            transactional_id: "id".into(),
            producer: Producer { id: producer_id, epoch },
            failed: TopicPartitions::new(),
        });
        assert_eq!(bench.status("id"), Status::PrepareCommit, "{producer_id} {epoch}");
    }
    bench.carry_out();
    assert_eq!(bench.status("id"), Status::CompleteCommit);
    bench.records();
    let late = Command::MarkersWritten {
        transactional_id: "id".into(),
        producer: Producer { id: P, epoch: 1 },
        failed: TopicPartitions::new(),
    };
    bench.send(late);
    assert!(bench.records().is_empty());
}

/// TX-33.
#[test]
fn e_8_when_the_epochs_are_used_up_the_producer_goes_on_under_another_id() {
    for commit in [true, false] {
        let mut bench = bench_in(Status::Empty, 2);
        let mut last = bench.shard().state().get("id").unwrap().clone();
        last.epoch = LAST_EPOCH;
        last.producer_id = 7;
        last.previous_producer_id = 7;
        bench.seed("id", last);
        assert_eq!(bench.add("id", (7, LAST_EPOCH), &[0], 2), NONE);
        let (call, answer) = bench.send(end_command(5, "id", (7, LAST_EPOCH), commit));
        assert_eq!(answer, None, "it waits for a producer id");
        bench.carry_out();
        let Some(Ok(reply)) = bench.answer(call) else { panic!("no answer") };
        assert_eq!(end_result(reply), (NONE, P, 0));
        let prepared = bench.shard().state().get("id").unwrap().clone();
        assert_eq!((prepared.producer_id, prepared.epoch, prepared.next_producer_id), (7, i16::MAX, P));
        assert_eq!(bench.end(5, "id", (7, LAST_EPOCH), commit).0, CONCURRENT);
        bench.carry_out();
        assert_eq!(bench.markers[0].producer, Producer { id: 7, epoch: i16::MAX });
        let done = bench.shard().state().get("id").unwrap().clone();
        assert_eq!((done.producer_id, done.epoch, done.next_producer_id), (P, 0, -1));
        assert_eq!(done.previous_producer_id, 7);
        // E-4: the answer was lost.
        assert_eq!(bench.end(5, "id", (7, LAST_EPOCH), commit), (NONE, P, 0));
        assert_eq!(bench.end(5, "id", (7, LAST_EPOCH), !commit).0, INVALID_STATE);
        assert_eq!(bench.end(5, "id", (7, LAST_EPOCH - 1), commit).0, INVALID_MAPPING);
        // The producer goes on.
        assert_eq!(bench.add("id", (P, 0), &[0], 2), NONE);
        assert_eq!(bench.end(5, "id", (7, LAST_EPOCH), commit).0, INVALID_MAPPING);
    }
}

/// E-14.
#[test]
fn a_producer_that_another_one_took_the_id_from_is_fenced() {
    for version in [4, 5] {
        let mut bench = Bench::new();
        let first = bench.producer("id");
        bench.add("id", first, &[0], 2);
        assert_eq!(bench.init("id", None).0, CONCURRENT);
        let (_, producer_id, epoch) = bench.init("id", None);
        assert_eq!((producer_id, epoch), (P, 2));
        assert_eq!(bench.end(version, "id", first, true).0, FENCED, "v{version}");
        assert_eq!(bench.add("id", first, &[0], 2), FENCED);
        assert_eq!(bench.init("id", Some(first)).0, FENCED);
    }
}
