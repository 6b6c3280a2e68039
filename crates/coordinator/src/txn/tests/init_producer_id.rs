//! InitProducerId (I-3 to I-10).

use wire::{ErrorCode, KStr};

use super::super::state::{LAST_EPOCH, Status, Txn};
use super::super::{Command, Reply};
use super::bench::{Answer, Bench, FIRST_PRODUCER_ID};
use super::*;

const P: i64 = FIRST_PRODUCER_ID;

fn error_of(reply: Reply) -> i16 {
    match reply {
        Reply::InitProducerId(response) => {
            assert_eq!((response.producer_id, response.producer_epoch), (-1, -1), "I-10");
            response.error_code
        }
        other => panic!("not the reply to InitProducerId: {other:?}"),
    }
}

#[test]
fn i_3_an_empty_id_and_a_bad_timeout_are_refused() {
    let mut bench = Bench::new();
    let mut with = |id: &str, timeout_ms: i32| {
        let mut request = init_request(id, None);
        request.transaction_timeout_ms = timeout_ms;
        error_of(bench.ask(Command::InitProducerId { api_version: 5, request }))
    };
    assert_eq!(with("", TIMEOUT_MS), INVALID_REQUEST);
    for timeout_ms in [0, -1, 900_001] {
        assert_eq!(with("id", timeout_ms), ErrorCode::InvalidTransactionTimeout.code(), "{timeout_ms}");
    }
    assert!(bench.records().is_empty());
}

#[test]
fn i_4_an_unknown_id_gets_a_fresh_producer_id_and_epoch_0() {
    let mut bench = Bench::new();
    assert_eq!(bench.init("a", None), (NONE, P, 0));
    // Recovering from an error that an older broker gave: what it believes in is not looked at.
    assert_eq!(bench.init("b", Some((77, 3))), (NONE, P + 1, 0));
    let [first, _] = &bench.records()[..] else { panic!("one record each") };
    assert_eq!(first.transactional_id, "a");
    let expected = Txn {
        producer_id: P,
        previous_producer_id: P,
        next_producer_id: -1,
        epoch: 0,
        timeout_ms: TIMEOUT_MS,
        status: Status::Empty,
        partitions: TopicPartitions::new(),
        start_ms: -1,
        last_update_ms: 1_000_000,
        client_version: 0,
    };
    assert_eq!(first.txn, Some(expected));
}

#[test]
fn i_4_two_newcomers_under_one_id_do_not_get_the_same_epoch() {
    let mut bench = Bench::manual();
    let (first, answer) = bench.send(init_command(5, "id", None));
    assert_eq!(answer, None, "it waits for a producer id");
    let (second, _) = bench.send(init_command(5, "id", None));
    bench.carry_out();
    let granted = |answer: Option<Answer>| match answer {
        Some(Ok(Reply::InitProducerId(r))) => (r.error_code, r.producer_id, r.producer_epoch),
        other => panic!("no answer: {other:?}"),
    };
    assert_eq!(granted(bench.answer(first)), (NONE, P, 0));
    assert_eq!(granted(bench.answer(second)), (NONE, P, 1));
}

#[test]
fn a_producer_id_that_cannot_be_had_fails_the_request_only() {
    let mut bench = Bench::manual();
    let (id, _) = bench.send(init_command(5, "id", None));
    bench.refuse_producer_ids(ErrorCode::CoordinatorLoadInProgress);
    let Some(Ok(reply)) = bench.answer(id) else { panic!("no answer") };
    assert_eq!(error_of(reply), ErrorCode::CoordinatorLoadInProgress.code());
    assert!(bench.shard().is_idle() && bench.shard().state().is_empty());
}

#[test]
fn i_6_i_8_who_may_go_on_and_with_which_epoch() {
    // What the producer gives, and what comes of it, at stored epoch 2 that came from 1 by a request that gave 1.
    let cases: &[(Option<(i64, i16)>, (i16, i64, i16))] = &[
        (None, (NONE, P, 3)),
        (Some((P, 2)), (NONE, P, 3)),
        (Some((P, 1)), (NONE, P, 2)), // a lost answer
        (Some((P, 0)), (FENCED, -1, -1)),
        (Some((P, 3)), (FENCED, -1, -1)),
        (Some((P + 99, 2)), (FENCED, -1, -1)),
        (Some((P + 99, LAST_EPOCH)), (FENCED, -1, -1)),
    ];
    for (given, expected) in cases {
        let mut bench = Bench::new();
        assert_eq!(bench.init("id", None), (NONE, P, 0));
        assert_eq!(bench.init("id", None), (NONE, P, 1));
        assert_eq!(bench.init("id", Some((P, 1))), (NONE, P, 2));
        assert_eq!(bench.init("id", *given), *expected, "{given:?}");
    }
}

#[test]
fn i_8_after_a_newcomer_nobody_may_repeat_a_request() {
    let mut bench = Bench::new();
    bench.producer("id");
    assert_eq!(bench.init("id", Some((P, 0))), (NONE, P, 1));
    assert_eq!(bench.init("id", None), (NONE, P, 2));
    assert_eq!(bench.init("id", Some((P, 0))).0, FENCED);
    assert_eq!(bench.init("id", Some((P, 1))).0, FENCED);
}

#[test]
fn i_8_the_timeout_is_taken_over_and_the_start_forgotten() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 0);
    bench.end(4, "id", producer, true);
    let mut request = init_request("id", None);
    request.transaction_timeout_ms = 7;
    bench.ask(Command::InitProducerId { api_version: 5, request });
    let txn = bench.shard().state().get("id").unwrap();
    assert_eq!((txn.timeout_ms, txn.start_ms, txn.status), (7, -1, Status::Empty));
}

fn seeded(epoch: i16, status: Status) -> Bench {
    let mut bench = Bench::new();
    let txn = Txn {
        producer_id: 7,
        previous_producer_id: 7,
        next_producer_id: -1,
        epoch,
        timeout_ms: TIMEOUT_MS,
        status,
        partitions: TopicPartitions::new(),
        start_ms: 1,
        last_update_ms: 1_000_000,
        client_version: 0,
    };
    bench.seed("id", txn);
    bench
}

#[test]
fn i_8_when_the_epochs_are_used_up_the_producer_id_changes() {
    for epoch in [LAST_EPOCH, i16::MAX] {
        for given in [None, Some((7, epoch))] {
            let mut bench = seeded(epoch, Status::CompleteCommit);
            assert_eq!(bench.init("id", given), (NONE, P, 0), "{given:?}");
            assert_eq!(bench.shard().state().get("id").unwrap().previous_producer_id, 7);
            // I-6, third case: the producer that gave its exhausted epoch may ask again, and nobody else.
            let again = bench.init("id", Some((7, epoch)));
            assert_eq!(again, if given.is_some() { (NONE, P, 0) } else { (FENCED, -1, -1) });
        }
    }
    let mut bench = seeded(LAST_EPOCH, Status::Empty);
    assert_eq!(bench.init("id", Some((7, 5))).0, FENCED);
    let mut bench = seeded(LAST_EPOCH - 1, Status::Empty);
    assert_eq!(bench.init("id", None), (NONE, 7, LAST_EPOCH), "the last epoch may be given out");
}

#[test]
fn i_9_an_open_transaction_is_aborted_first() {
    // transaction.version, the epoch after the abort and whether the markers raise it, the epoch in the end.
    for (version, fenced, raises, returned) in [(2, 1, true, 2), (1, 1, false, 2), (0, 1, false, 2)] {
        let mut bench = Bench::manual();
        bench.config.transaction_version = version;
        bench.automatic = true;
        let producer = bench.producer("id");
        bench.automatic = false;
        bench.add("id", producer, &[0, 1], 2);
        assert_eq!(bench.init("id", None).0, CONCURRENT);
        assert_eq!(bench.status("id"), Status::PrepareAbort);
        assert_eq!(bench.init("id", None).0, CONCURRENT, "I-7: markers are being written");
        bench.carry_out();
        assert_eq!(bench.status("id"), Status::CompleteAbort);
        let marker = &bench.markers[0];
        assert_eq!((marker.producer, marker.commit), (Producer { id: P, epoch: fenced }, false), "version {version}");
        assert_eq!(marker.raises_epoch, raises, "version {version}");
        assert_eq!(bench.init("id", None), (NONE, P, returned), "version {version}");
        assert_eq!(bench.add("id", producer, &[0], 2), FENCED);
    }
}

#[test]
fn i_9_fencing_never_passes_the_last_epoch_of_all() {
    for version in [1, 2] {
        let mut bench = seeded(LAST_EPOCH, Status::Empty);
        bench.config.transaction_version = version;
        assert_eq!(bench.add("id", (7, LAST_EPOCH), &[0], 2), NONE);
        assert_eq!(bench.init("id", None).0, CONCURRENT);
        assert_eq!(bench.markers[0].producer, Producer { id: 7, epoch: i16::MAX });
        // With protocol 2 the id changed at the end of the abort already.
        let expected = if version == 2 { (NONE, P, 1) } else { (NONE, P, 0) };
        assert_eq!(bench.init("id", None), expected);
    }
}

#[test]
fn i_5_pending_ends_come_before_the_producer_is_looked_at() {
    let mut bench = Bench::manual();
    bench.automatic = true;
    let producer = bench.producer("id");
    bench.automatic = false;
    bench.add("id", producer, &[0], 2);
    bench.end(5, "id", producer, true);
    for given in [None, Some((P, 0)), Some((P + 99, 0))] {
        assert_eq!(bench.init("id", given).0, CONCURRENT, "{given:?}");
    }
}

#[test]
fn i_10_old_clients_know_no_producer_fenced() {
    let mut bench = Bench::new();
    bench.producer("id");
    for (version, error) in [(3, INVALID_EPOCH), (4, FENCED), (5, FENCED)] {
        assert_eq!(error_of(bench.ask(init_command(version, "id", Some((P + 1, 0))))), error, "v{version}");
    }
}

#[test]
fn an_id_that_came_in_a_frame_does_not_keep_the_frame() {
    let mut bench = Bench::new();
    let frame = wire::KStr::from(format!("id{}", "x".repeat(10_000)));
    let id = KStr::from_utf8(frame.as_shared_bytes().slice(..2)).unwrap();
    let request = wire::messages::init_producer_id_request::InitProducerIdRequest {
        transactional_id: Some(id),
        ..init_request("", None)
    };
    bench.ask(Command::InitProducerId { api_version: 5, request });
    let kept = bench.shard().state().select(|_, _| true)[0].0.clone();
    assert_ne!(kept.as_ptr(), frame.as_ptr());
}
