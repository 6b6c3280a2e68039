//! Crashes, moves and a log that refuses (E-9).

use super::super::state::Status;
use super::bench::{Bench, FIRST_PRODUCER_ID};
use super::*;
use crate::runtime::Unavailable;
use crate::state_log::LogError;
use crate::testing::Durability;

const P: i64 = FIRST_PRODUCER_ID;

#[test]
fn e_9_prepared_transactions_are_brought_to_their_end_after_a_crash() {
    for (version, commit) in [(4, true), (4, false), (5, true), (5, false)] {
        let mut bench = Bench::new();
        let producers = ["b", "a"].map(|id| (id, bench.producer(id)));
        bench.automatic = false;
        for (id, producer) in producers {
            bench.add(id, producer, &[0, 1], 2);
            assert_eq!(bench.end(version, id, producer, commit).0, NONE);
        }
        bench.automatic = true;
        bench.crash();
        let status = if commit { Status::CompleteCommit } else { Status::CompleteAbort };
        assert_eq!((bench.status("a"), bench.status("b")), (status, status));
        let epoch = if version == 5 { 1 } else { 0 };
        let written: Vec<_> = bench.markers.iter().map(|m| (m.producer, m.commit, m.raises_epoch)).collect();
        let expected = |id: i64| (Producer { id, epoch }, commit, version == 5);
        assert_eq!(written, [expected(P + 1), expected(P)], "in the order of ids");
        assert!(bench.markers.iter().all(|marker| marker.partitions == partitions(&[0, 1])));
    }
}

/// TX-34, the coordinator's part.
#[test]
fn e_9_an_open_transaction_survives_a_crash() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.crash();
    assert_eq!(bench.add("id", producer, &[1], 2), NONE);
    assert_eq!(bench.end(5, "id", producer, true), (NONE, P, 1));
    assert_eq!(bench.markers[0].partitions, partitions(&[0, 1]));
}

#[test]
fn e_4_e_5_a_lost_answer_can_be_asked_for_again_after_a_crash() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.end(5, "id", producer, true);
    bench.crash();
    assert_eq!(bench.end(5, "id", producer, true), (NONE, P, 1));
    assert_eq!(bench.init("id", Some(producer)), (NONE, P, 1), "the end raised the epoch, the log says so");
}

#[test]
fn a_decision_that_is_not_durable_never_happened() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.cell.log_mut().set_durability(Durability::Manual);
    bench.automatic = false;
    let (call, answer) = bench.send(end_command(5, "id", producer, true));
    assert_eq!(answer, None);
    bench.crash();
    assert_eq!(bench.answer(call), Some(Err(Unavailable::NotCoordinator)));
    assert_eq!(bench.status("id"), Status::Ongoing);
    assert!(bench.pending.is_empty());
}

#[test]
fn markers_are_not_asked_for_before_the_decision_is_durable() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.cell.log_mut().set_durability(Durability::Manual);
    let end = bench.cell.log().end();
    let mut env = super::super::Env { config: &bench.config };
    let called = bench.cell.call(bench.now, &mut env, end_command(5, "id", producer, true), |_| {});
    assert_eq!((called.effects.len(), called.effects_after), (1, end + 1));
    assert!(called.reply.is_none());
}

#[test]
fn a_refused_decision_leaves_the_transaction_open() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.cell.log_mut().fail_next_append(LogError::NoSpace);
    let (_, answer) = bench.send(end_command(5, "id", producer, true));
    assert_eq!(answer, Some(Err(Unavailable::Refused(LogError::NoSpace))));
    assert_eq!(bench.status("id"), Status::Ongoing);
    assert!(bench.shard().is_idle() && bench.markers.is_empty());
    assert_eq!(bench.end(5, "id", producer, true), (NONE, P, 1));
    assert_eq!(bench.status("id"), Status::CompleteCommit);
}

#[test]
fn a_refused_completion_is_tried_again_without_new_markers() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.automatic = false;
    bench.end(5, "id", producer, true);
    bench.cell.log_mut().fail_next_append(LogError::NoSpace);
    bench.carry_out();
    assert_eq!(bench.status("id"), Status::PrepareCommit);
    bench.automatic = true;
    bench.advance(200);
    assert_eq!(bench.status("id"), Status::CompleteCommit);
    assert_eq!(bench.markers.len(), 1);
    assert!(bench.shard().is_idle());
}

#[test]
fn a_refused_takeover_leaves_the_producer_in_its_place() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    let (_, _, epoch) = bench.init("id", Some(producer));
    for given in [None, Some((P, epoch))] {
        bench.cell.log_mut().fail_next_append(LogError::NoSpace);
        let (_, answer) = bench.send(init_command(5, "id", given));
        assert!(matches!(answer, Some(Err(Unavailable::Refused(_)))));
    }
    // Its last request may still be repeated.
    assert_eq!(bench.init("id", Some(producer)), (NONE, P, epoch));
}

#[test]
fn a_refused_abort_of_a_transaction_over_time_comes_again() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.add("id", producer, &[0], 2);
    bench.advance(69_999);
    bench.cell.log_mut().fail_next_append(LogError::NoSpace);
    bench.advance(1);
    assert_eq!(bench.status("id"), Status::Ongoing);
    bench.advance(10_000);
    assert_eq!(bench.status("id"), Status::CompleteAbort);
}

#[test]
fn a_crash_answers_those_who_wait_for_a_producer_id() {
    let mut bench = Bench::manual();
    let (call, _) = bench.send(init_command(5, "id", None));
    let asked = std::mem::take(&mut bench.pending);
    bench.crash();
    assert_eq!(bench.answer(call), Some(Err(Unavailable::NotCoordinator)));
    // The id that was on its way is of no use to anybody.
    bench.pending = asked;
    bench.carry_out();
    assert!(bench.shard().state().is_empty() && bench.shard().is_idle());
}
