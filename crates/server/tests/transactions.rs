//! Transactions over real sockets: what producers, readers and tools see. The decisions themselves are tested in the
//! coordinator, in virtual time. `TX-..` are the scenarios of the specification.

mod common;
#[path = "transactions/rig.rs"]
mod rig;

use std::time::{Duration, Instant};

use common::{PATIENCE, TestBroker};
use rig::{Rig, batch, records};
use wire::batch::Batch;

const NONE: i16 = 0;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const UNKNOWN_SERVER_ERROR: i16 = -1;
const NOT_COORDINATOR: i16 = 16;
const INVALID_GROUP_ID: i16 = 24;
const INVALID_REQUEST: i16 = 42;
const OUT_OF_ORDER: i16 = 45;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const INVALID_TXN_STATE: i16 = 48;
const INVALID_MAPPING: i16 = 49;
const INVALID_TIMEOUT: i16 = 50;
const CONCURRENT: i16 = 51;
const UNAUTHORIZED: i16 = 53;
const NOT_ATTEMPTED: i16 = 55;
const PRODUCER_FENCED: i16 = 90;
const NOT_FOUND: i16 = 105;
const ABORTABLE: i16 = 120;
const INVALID_REGEX: i16 = 128;

/// With topic `t` of three partitions.
async fn rig() -> (TestBroker, Rig) {
    let broker = TestBroker::start(&[("transaction.abort.timed.out.transaction.cleanup.interval.ms", "100")]).await;
    let mut rig = Rig::connect(&broker).await;
    rig.create_topic("t", 3).await;
    (broker, rig)
}

#[tokio::test]
async fn tx_01_to_04_producers_get_their_identity() {
    let (_broker, mut rig) = rig().await;
    let (error, _, epoch) = rig.init(5, None, None, -5).await;
    assert_eq!((error, epoch), (NONE, 0), "TX-01");
    for (id, timeout_ms, given, expected) in [
        ("", 60_000, None, INVALID_REQUEST),
        ("id", 0, None, INVALID_TIMEOUT),
        ("id", 900_001, None, INVALID_TIMEOUT),
        ("id", 60_000, Some((5, -1)), INVALID_REQUEST),
        ("id", 60_000, Some((-1, 5)), INVALID_REQUEST),
    ] {
        assert_eq!(rig.init(5, Some(id), given, timeout_ms).await, (expected, -1, -1), "TX-02: {id} {timeout_ms}");
    }
    let (_, p, epoch) = rig.init(5, Some("id"), None, 60_000).await;
    assert_eq!(epoch, 0);
    assert_eq!(rig.init(5, Some("id"), None, 60_000).await, (NONE, p, 1), "TX-03");
    for (version, given, expected) in [
        (5, (p, 1), (NONE, p, 2)),
        (5, (p, 1), (NONE, p, 2)),
        (5, (p, 0), (PRODUCER_FENCED, -1, -1)),
        (5, (p + 99, 0), (PRODUCER_FENCED, -1, -1)),
        (3, (p, 0), (INVALID_PRODUCER_EPOCH, -1, -1)),
    ] {
        assert_eq!(rig.init(version, Some("id"), Some(given), 60_000).await, expected, "TX-04: {given:?}");
    }
    // Producer ids are never given twice.
    let (_, other, _) = rig.init(5, Some("other"), None, 60_000).await;
    assert_ne!(other, p);
}

#[tokio::test]
async fn tx_05_tx_06_tx_30_partitions_are_added_and_verified() {
    let (_broker, mut rig) = rig().await;
    rig.producer("id").await;
    let (p, e) = rig.producer("id").await;
    for (version, id, producer, expected) in [
        (3, "other", (p, e), INVALID_MAPPING),
        (3, "id", (p + 1, e), INVALID_MAPPING),
        (3, "id", (p, e - 1), PRODUCER_FENCED),
        (3, "id", (p, e + 1), PRODUCER_FENCED),
        (1, "id", (p, e - 1), INVALID_PRODUCER_EPOCH),
        (3, "", (p, e), INVALID_REQUEST),
    ] {
        assert_eq!(rig.add(version, id, producer, &[0, 1]).await, [expected; 2], "TX-05: v{version} {id} {producer:?}");
    }
    let expected = [NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION];
    assert_eq!(rig.add(3, "id", (p, e), &[0, 9]).await, expected, "TX-06");
    assert_eq!(rig.describe("id").await.transaction_state, "Empty");
    assert_eq!(rig.add(3, "id", (p, e), &[0, 1]).await, [NONE; 2]);
    // TX-30, as brokers ask.
    assert_eq!(rig.add_batched("id", (p, e), true, &[0, 1, 2]).await, [NONE, NONE, ABORTABLE]);
    assert_eq!(rig.add_batched("id", (p, e - 1), true, &[0]).await, [PRODUCER_FENCED]);
    assert_eq!(rig.add_batched("id", (p, e), false, &[2]).await, [NONE]);
    assert_eq!(rig.add_batched("id", (p, e), true, &[2]).await, [NONE]);
    // P-6.
    for (version, producer, expected) in
        [(3, (p, e), NONE), (3, (p, e - 1), PRODUCER_FENCED), (1, (p, e - 1), INVALID_PRODUCER_EPOCH)]
    {
        assert_eq!(rig.add_offsets(version, "id", producer, "g").await, expected);
        assert_eq!(rig.add_offsets(version, "id", producer, "").await, expected, "an empty group id is like any other");
    }
}

#[tokio::test]
async fn tx_07_tx_08_tx_31_the_first_batch_of_a_transaction() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    // TX-31: what is not transactional begins no transaction.
    assert_eq!(rig.produce(12, Some("id"), 2, batch(p, e, 0, false, 1)).await.0, NONE);
    assert_eq!(rig.describe("id").await.transaction_state, "Empty");
    // TX-08: who adds no partitions must have added them.
    assert_eq!(rig.produce(11, Some("id"), 0, batch(p, e, 0, true, 1)).await.0, ABORTABLE);
    let (error, _, message) = rig.produce(10, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    assert_eq!(error, INVALID_TXN_STATE);
    assert!(message.unwrap_or_default().contains("not added"));
    // TX-07.
    let (error, offset, _) = rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 2)).await;
    assert_eq!((error, offset), (NONE, 0));
    let described = rig.describe("id").await;
    assert_eq!((described.transaction_state.as_str(), described.producer_id), ("Ongoing", p));
    assert_eq!((described.topics[0].topic.as_str(), &described.topics[0].partitions[..]), ("t", &[0][..]));
    // With an open transaction nobody is asked any more, in no version.
    assert_eq!(rig.produce(10, Some("id"), 0, batch(p, e, 2, true, 1)).await.0, NONE);
}

#[tokio::test]
async fn tx_09_to_11_tx_21_batches_that_are_refused() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    let (other, _) = rig.producer("other").await;
    assert_eq!(rig.produce(12, None, 0, batch(p, e, 0, true, 1)).await.0, UNAUTHORIZED, "TX-09");
    let two = [(0, batch(p, e, 0, true, 1)), (1, batch(other, e, 0, true, 1))];
    let answers = rig.produce_all(12, Some("id"), &two).await;
    assert!(
        answers.iter().all(|(error, _, message)| *error == INVALID_MAPPING && message.is_some()),
        "TX-10: {answers:?}"
    );
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p + 99, e, 0, true, 1)).await.0, INVALID_MAPPING);
    assert_eq!(rig.produce(12, Some("nobody"), 0, batch(p, e, 0, true, 1)).await.0, INVALID_MAPPING);
    assert_eq!(rig.produce(12, Some(""), 0, batch(p, e, 0, true, 1)).await.0, INVALID_REQUEST);
    // TX-21: protocol 2 begins at sequence 0. V-7: the partition is part of the transaction by then.
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 5, true, 1)).await.0, OUT_OF_ORDER, "TX-21");
    assert_eq!(rig.describe("id").await.transaction_state, "Ongoing");
    assert_eq!(rig.produce(12, None, 2, batch(9_999, 0, 5, false, 1)).await.0, NONE, "TX-21: idempotent only");
    // TX-11.
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 2)).await.1, 0);
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 2)).await.1, 0, "the same batch again");
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 9, true, 1)).await.0, OUT_OF_ORDER);
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e - 1, 2, true, 1)).await.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 2, false, 1)).await.0, INVALID_TXN_STATE);
    // V-8: other partitions go on.
    let mixed = [(0, batch(p, e, 9, true, 1)), (1, batch(p, e, 0, true, 1)), (9, batch(p, e, 0, true, 1))];
    let answers: Vec<_> = rig.produce_all(12, Some("id"), &mixed).await.into_iter().map(|(error, ..)| error).collect();
    assert_eq!(answers, [OUT_OF_ORDER, NONE, UNKNOWN_TOPIC_OR_PARTITION]);
}

#[tokio::test]
async fn tx_12_tx_19_tx_20_tx_32_transactions_as_readers_see_them() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 2)).await;
    // TX-12.
    let seen = rig.fetch(0, 0, false).await;
    assert_eq!((seen.high_watermark, seen.last_stable_offset), (2, 0));
    assert_eq!(seen.aborted_transactions, None);
    assert!(!records(&seen).is_empty());
    let seen = rig.fetch(0, 0, true).await;
    assert_eq!((seen.high_watermark, seen.last_stable_offset), (2, 0));
    assert_eq!(seen.aborted_transactions, Some(Vec::new()));
    assert!(records(&seen).is_empty());
    assert_eq!((rig.latest(0, false).await, rig.latest(0, true).await), (2, 0));
    // TX-32.
    let producers = rig.producers(0).await;
    assert_eq!(producers[0].current_txn_start_offset, 0);
    assert_eq!((producers[0].producer_id, producers[0].coordinator_epoch), (p, -1));
    // TX-19: the marker.
    assert_eq!(rig.end(5, "id", (p, e), true).await, (NONE, p, e + 1));
    rig.settle("id", "CompleteCommit").await;
    let seen = rig.fetch(0, 2, true).await;
    assert_eq!((seen.high_watermark, seen.last_stable_offset), (3, 3));
    let (marker, rest) = Batch::parse_next(&records(&seen)).expect("a batch");
    assert!(rest.is_empty());
    let header = marker.header();
    assert!(header.attributes.is_transactional() && header.attributes.is_control());
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (p, e + 1, -1));
    let record = marker.records().expect("records").next().expect("one").expect("readable");
    assert_eq!(record.key.as_deref(), Some(&[0, 0, 0, 1][..]));
    assert_eq!(record.value.as_deref(), Some(&[0, 0, 0, 0, 0, 0][..]));
    // TX-20.
    rig.produce(12, Some("id"), 0, batch(p, e + 1, 0, true, 1)).await;
    assert_eq!(rig.end(5, "id", (p, e + 1), false).await, (NONE, p, e + 2));
    rig.settle("id", "CompleteAbort").await;
    let seen = rig.fetch(0, 0, true).await;
    let aborted: Vec<_> = seen.aborted_transactions.iter().flatten().map(|a| (a.producer_id, a.first_offset)).collect();
    assert_eq!(aborted, [(p, 3)]);
    let batches = Batch::iter(&records(&seen)).count();
    assert_eq!(batches, 4, "aborted data and both markers are returned");
}

#[tokio::test]
async fn tx_13_to_18_tx_23_ends_of_transactions() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    for (version, id, producer, expected) in [
        (5, "id", (p, e - 1), PRODUCER_FENCED),
        (5, "id", (p, e + 1), PRODUCER_FENCED),
        (5, "id", (p + 1, e), INVALID_MAPPING),
        (5, "nobody", (p, e), INVALID_MAPPING),
        (1, "id", (p, e - 1), INVALID_PRODUCER_EPOCH),
    ] {
        assert_eq!(rig.end(version, id, producer, true).await.0, expected, "TX-13: v{version} {id} {producer:?}");
    }
    assert_eq!(rig.end(5, "id", (p, e), true).await, (NONE, p, e + 1), "TX-14");
    let again = rig.end(5, "id", (p, e), true).await;
    assert!(again == (CONCURRENT, -1, -1) || again == (NONE, p, e + 1), "TX-15, unless it is complete: {again:?}");
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.end(5, "id", (p, e), true).await, (NONE, p, e + 1), "TX-16");
    assert_eq!(rig.end(5, "id", (p, e), false).await.0, INVALID_TXN_STATE, "TX-16");
    // TX-18.
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 1, true, 1)).await.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e + 1, 5, true, 1)).await.0, OUT_OF_ORDER);
    assert_eq!(rig.describe("id").await.transaction_state, "Ongoing");
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e + 1, 0, true, 1)).await.0, NONE);
    rig.end(5, "id", (p, e + 1), true).await;
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.end(5, "id", (p, e + 2), true).await.0, INVALID_TXN_STATE, "TX-17");
    assert_eq!(rig.end(5, "id", (p, e + 2), false).await, (NONE, p, e + 3), "TX-17");
    // TX-23: protocol 1.
    let (p, e) = rig.producer("old").await;
    assert_eq!(rig.add(3, "old", (p, e), &[1]).await, [NONE]);
    assert_eq!(rig.produce(11, Some("old"), 1, batch(p, e, 0, true, 1)).await.0, NONE);
    assert_eq!(rig.end(4, "old", (p, e), true).await.0, NONE);
    rig.settle("old", "CompleteCommit").await;
    assert_eq!(rig.end(4, "old", (p, e), true).await.0, NONE);
    assert_eq!(rig.end(4, "old", (p, e), false).await.0, INVALID_TXN_STATE);
    assert_eq!(rig.describe("old").await.producer_epoch, e);
    // The next one has the same epoch.
    assert_eq!(rig.add(3, "old", (p, e), &[1]).await, [NONE]);
    assert_eq!(rig.produce(11, Some("old"), 1, batch(p, e, 1, true, 1)).await.0, NONE);
    assert_eq!(rig.end(4, "old", (p, e), false).await.0, NONE);
    rig.settle("old", "CompleteAbort").await;
    assert_eq!(rig.latest(1, true).await, 4, "two records and two markers");
}

#[tokio::test]
async fn tx_22_tx_25_a_second_producer_takes_the_id_over() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    assert_eq!(rig.init(5, Some("id"), None, 60_000).await.0, CONCURRENT, "TX-22");
    rig.settle("id", "CompleteAbort").await;
    assert_eq!(rig.init(5, Some("id"), None, 60_000).await, (NONE, p, e + 2), "TX-22");
    // TX-25: the first one goes on.
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 1, true, 1)).await.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(rig.add(3, "id", (p, e), &[0]).await, [PRODUCER_FENCED]);
    assert_eq!(rig.add_offsets(3, "id", (p, e), "g").await, PRODUCER_FENCED);
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, PRODUCER_FENCED);
    assert_eq!(rig.init(5, Some("id"), Some((p, e)), 60_000).await.0, PRODUCER_FENCED);
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "g", -1).await, [INVALID_PRODUCER_EPOCH]);
}

#[tokio::test]
async fn tx_24_a_transaction_over_time_is_aborted() {
    let (_broker, mut rig) = rig().await;
    let (_, p, e) = rig.init(5, Some("id"), None, 200).await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    rig.settle("id", "CompleteAbort").await;
    assert_eq!(rig.describe("id").await.producer_epoch, e + 1);
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 1, true, 1)).await.0, INVALID_PRODUCER_EPOCH);
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, INVALID_TXN_STATE);
    assert_eq!(rig.end(4, "id", (p, e), true).await.0, PRODUCER_FENCED);
    assert_eq!(rig.add(3, "id", (p, e), &[0]).await, [PRODUCER_FENCED]);
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "g", -1).await, [INVALID_PRODUCER_EPOCH]);
    assert_eq!(rig.init(5, Some("id"), Some((p, e)), 60_000).await, (NONE, p, e + 1));
    assert_eq!(rig.latest(0, true).await, 2, "nothing keeps readers back");
}

#[tokio::test]
async fn tx_26_tx_27_offsets_in_a_transaction() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    // TX-26.
    assert_eq!(rig.txn_offset_commit(4, "id", (p, e), "g", -1).await, [ABORTABLE]);
    assert_eq!(rig.txn_offset_commit(3, "id", (p, e), "g", -1).await, [INVALID_TXN_STATE]);
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "", -1).await, [INVALID_GROUP_ID]);
    assert_eq!(rig.txn_offset_commit(5, "id", (p + 1, e), "g", -1).await, [INVALID_MAPPING]);
    assert_eq!(rig.describe("id").await.transaction_state, "Empty");
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "g", -1).await, [NONE]);
    let described = rig.describe("id").await;
    assert_eq!(
        (described.transaction_state.as_str(), described.topics[0].topic.as_str()),
        ("Ongoing", "__consumer_offsets")
    );
    // Pending until the end.
    const UNSTABLE: i16 = 88;
    assert_eq!(rig.offset("g", true).await, (UNSTABLE, -1));
    assert_eq!(rig.offset("g", false).await, (NONE, -1));
    rig.end(5, "id", (p, e), true).await;
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.offset("g", true).await, (NONE, 7));
    // TX-27: OffsetDelete takes pending ones along.
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e + 1), "g", -1).await, [NONE]);
    rig.delete_offset("g").await;
    rig.end(5, "id", (p, e + 1), true).await;
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.offset("g", true).await, (NONE, -1));
    // An abort drops them; the group is there all the same (C X-8).
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e + 2), "h", -1).await, [NONE]);
    rig.end(5, "id", (p, e + 2), false).await;
    rig.settle("id", "CompleteAbort").await;
    assert_eq!(rig.offset("h", true).await, (NONE, -1));
    // C X-3: a generation needs a group; the transaction has begun by then.
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e + 3), "nobody", 3).await, [22]);
    assert_eq!(rig.describe("id").await.transaction_state, "Ongoing");
    // Protocol 1: added by hand.
    let (p, e) = rig.producer("old").await;
    assert_eq!(rig.add_offsets(3, "old", (p, e), "k").await, NONE);
    assert_eq!(rig.txn_offset_commit(3, "old", (p, e), "k", -1).await, [NONE]);
    assert_eq!(rig.end(3, "old", (p, e), true).await.0, NONE);
    rig.settle("old", "CompleteCommit").await;
    assert_eq!(rig.offset("k", true).await, (NONE, 7));
}

#[tokio::test]
async fn tx_28_tx_29_transactions_are_described_and_listed() {
    let (_broker, mut rig) = rig().await;
    assert_eq!(rig.describe("nobody").await.error_code, NOT_FOUND, "TX-28");
    assert_eq!(rig.describe("").await.error_code, INVALID_REQUEST, "TX-28");
    let (p, e) = rig.producer("a").await;
    rig.producer("b").await;
    rig.produce(12, Some("a"), 0, batch(p, e, 0, true, 1)).await;
    let all = rig.list(&[], None).await;
    assert_eq!(all.transaction_states.len(), 2);
    let ongoing = rig.list(&["Ongoing"], None).await;
    assert_eq!(ongoing.transaction_states.iter().map(|t| t.transactional_id.as_str()).collect::<Vec<_>>(), ["a"]);
    let unknown = rig.list(&["Zed"], None).await;
    assert_eq!((unknown.error_code, unknown.transaction_states.len()), (NONE, 0), "TX-29");
    assert_eq!(unknown.unknown_state_filters, ["Zed"]);
    assert_eq!(rig.list(&[], Some("[x")).await.error_code, INVALID_REGEX, "TX-29");
    assert_eq!(rig.list(&[], Some("b|c")).await.transaction_states.len(), 1);
}

#[tokio::test]
async fn tx_34_an_open_transaction_survives_a_crash() {
    let (broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "g", -1).await, [NONE]);
    let broker = broker.crash().await;
    let mut rig = Rig::connect(&broker).await;
    assert_eq!(rig.produce(12, Some("id"), 0, batch(p, e, 1, true, 1)).await.0, NONE);
    assert_eq!(rig.end(5, "id", (p, e), true).await, (NONE, p, e + 1));
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.offset("g", true).await, (NONE, 7));
    assert_eq!(rig.latest(0, true).await, 3);
}

/// The decision was acknowledged; whatever the crash interrupted, it is carried out.
/// The records of one partition as READ_COMMITTED sees them: data by its epoch, a run of markers by theirs.
async fn committed(rig: &mut Rig, partition: i32) -> Vec<(&'static str, i16, usize)> {
    let mut found: Vec<(&'static str, i16, usize)> = Vec::new();
    let mut from = 0;
    loop {
        let seen = rig.fetch(partition, from, true).await;
        assert_eq!(seen.aborted_transactions.as_deref(), Some(&[][..]), "nothing was aborted");
        assert_eq!(seen.last_stable_offset, seen.high_watermark, "no transaction is open");
        if from == seen.high_watermark {
            return found;
        }
        for batch in Batch::iter(&records(&seen)) {
            let batch = batch.expect("a whole batch");
            let header = batch.header();
            from = header.next_offset();
            let what = if header.attributes.is_control() { "marker" } else { "data" };
            match found.last_mut() {
                Some((last, epoch, count)) if (*last, *epoch) == (what, header.producer_epoch) => *count += 1,
                _ => found.push((what, header.producer_epoch, 1)),
            }
        }
    }
}

/// A crash between the markers and the note that they are written makes recovery write them again, each with the same
/// epoch, as Kafka's does. Nobody sees it: the record is there once, the transaction is closed, and once `CompleteCommit`
/// was seen no crash brings another marker.
#[tokio::test]
async fn e_9_an_acknowledged_commit_survives_a_crash() {
    let (mut broker, mut rig) = rig().await;
    let (p, mut e) = rig.producer("id").await;
    let mut expected = Vec::new();
    for round in 0..4 {
        for partition in 0..3 {
            assert_eq!(rig.produce(12, Some("id"), partition, batch(p, e, 0, true, 1)).await.0, NONE, "round {round}");
        }
        assert_eq!(rig.txn_offset_commit(5, "id", (p, e), "g", -1).await, [NONE]);
        assert_eq!(rig.end(5, "id", (p, e), true).await, (NONE, p, e + 1));
        broker = broker.crash().await;
        rig = Rig::connect(&broker).await;
        rig.settle("id", "CompleteCommit").await;
        expected.extend([("data", e, 1), ("marker", e + 1, 1)]);
        e += 1;
        let mut settled = Vec::new();
        for partition in 0..3 {
            let found = committed(&mut rig, partition).await;
            let at_least = |(what, epoch, count): &(&'static str, i16, usize)| (*what, *epoch, (*count).min(1));
            assert_eq!(found.iter().map(at_least).collect::<Vec<_>>(), expected, "round {round}: {found:?}");
            for (what, epoch, count) in &found {
                assert!(
                    *count == 1 || (*what, *count) == ("marker", 2),
                    "round {round}: {count} {what}s of epoch {epoch}"
                );
            }
            settled.push(found);
        }
        assert_eq!(rig.offset("g", true).await, (NONE, 7));
        broker = broker.crash().await;
        rig = Rig::connect(&broker).await;
        rig.settle("id", "CompleteCommit").await;
        for (partition, before) in settled.into_iter().enumerate() {
            assert_eq!(committed(&mut rig, partition as i32).await, before, "round {round}: nothing was left to do");
        }
    }
}

#[tokio::test]
async fn d_4_transactions_are_ended_by_hand() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    // Partition, epoch, coordinator epoch, transaction version, result.
    for (partition, epoch, coordinator_epoch, version, expected) in [
        (9, e, 0, 0, UNKNOWN_TOPIC_OR_PARTITION),
        (1, e, 5, 0, NONE), // nothing is open there
        (1, e, 4, 0, 52),
        (0, -1, 0, 0, UNKNOWN_SERVER_ERROR),
        (0, e, 0, 2, INVALID_PRODUCER_EPOCH), // W-9: protocol 2 raises the epoch
        (0, e, 0, 0, NONE),
        (0, e + 1, 0, 2, NONE),
        (0, e, 0, 0, INVALID_PRODUCER_EPOCH),
    ] {
        let result = rig.write_markers(partition, (p, epoch), coordinator_epoch, version).await;
        assert_eq!(result, expected, "partition {partition} epoch {epoch} of {coordinator_epoch}, version {version}");
    }
    let producers = rig.producers(0).await;
    assert_eq!((producers[0].current_txn_start_offset, producers[0].last_sequence), (-1, -1));
    // The coordinator brings its transaction to an end nevertheless.
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, NONE);
    rig.settle("id", "CompleteCommit").await;
}

#[tokio::test]
async fn r_4_readers_at_the_last_stable_offset_are_woken_by_the_end() {
    let (broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    let mut reader = Rig::connect(&broker).await;
    let waiting = tokio::spawn(async move {
        let seen = reader.fetch_waiting(0, 0, true, 15_000).await;
        (Instant::now(), seen)
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    let ended = Instant::now();
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, NONE);
    let (woken, seen) = waiting.await.expect("the reader gets an answer");
    assert!(woken >= ended, "there was nothing to see before");
    assert!(woken - ended < Duration::from_secs(10), "it did not wait in vain");
    assert_eq!(seen.last_stable_offset, 2);
    assert!(!records(&seen).is_empty());
}

/// A producer does not wait for its markers: the first batch of the next transaction may come before them.
#[tokio::test]
async fn v_4_transactions_follow_each_other_without_a_pause() {
    let (_broker, mut rig) = rig().await;
    let (p, mut e) = rig.producer("id").await;
    for round in 0..60 {
        for partition in 0..3 {
            let begun = Instant::now();
            loop {
                match rig.produce(12, Some("id"), partition, batch(p, e, 0, true, 1)).await.0 {
                    NONE => break,
                    CONCURRENT if begun.elapsed() < PATIENCE => {}
                    error => panic!("round {round}: {error}"),
                }
            }
        }
        assert_eq!(rig.end(5, "id", (p, e), round % 3 > 0).await, (NONE, p, e + 1), "round {round}");
        e += 1;
    }
}

#[tokio::test]
async fn e_9_markers_for_deleted_topics_are_dropped() {
    let (_broker, mut rig) = rig().await;
    rig.create_topic("gone", 1).await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    rig.add_batched_to("id", (p, e), false, "gone", &[0]).await;
    rig.delete_topic("gone").await;
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, NONE);
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.latest(0, true).await, 2);
}

/// M-8: what the coordinator knew goes with its topic; what the transaction wrote is there, open, until somebody ends it.
#[tokio::test]
async fn transactions_go_with_their_topic() {
    let (_broker, mut rig) = rig().await;
    let (p, e) = rig.producer("id").await;
    rig.produce(12, Some("id"), 0, batch(p, e, 0, true, 1)).await;
    rig.delete_topic("__transaction_state").await;
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, NOT_COORDINATOR);
    assert_eq!((rig.latest(0, true).await, rig.latest(0, false).await), (0, 1));
    rig.find_coordinator("id").await;
    assert_eq!(rig.end(5, "id", (p, e), true).await.0, INVALID_MAPPING);
    let (other, first) = rig.producer("id").await;
    assert!(other != p && first == 0, "nobody knows the id any more");
    rig.produce(12, Some("id"), 1, batch(other, first, 0, true, 1)).await;
    assert_eq!(rig.end(5, "id", (other, first), true).await.0, NONE);
    rig.settle("id", "CompleteCommit").await;
    assert_eq!(rig.latest(1, true).await, 2);
    assert_eq!(rig.write_markers(0, (p, e), 0, 1).await, NONE);
    assert_eq!(rig.latest(0, true).await, 2);
}

#[tokio::test]
async fn a_6_clients_are_told_of_protocol_2() {
    let (_broker, mut rig) = rig().await;
    let versions = rig.api_versions().await;
    let finalized = versions.finalized_features.iter().find(|f| f.name == "transaction.version").expect("finalized");
    assert_eq!((finalized.min_version_level, finalized.max_version_level), (2, 2));
    for (key, min, max) in [(24, 0, 5), (25, 0, 4), (26, 0, 5), (27, 1, 2), (28, 0, 6), (65, 0, 0), (66, 0, 2)] {
        let api = versions.api_keys.iter().find(|api| api.api_key == key).unwrap_or_else(|| panic!("{key} is missing"));
        assert_eq!((api.min_version, api.max_version), (min, max), "{key}");
    }
}

/// I-1, I-3: what is never right is refused as such, also before there is a coordinator to ask.
#[tokio::test]
async fn tx_02_what_is_never_granted_is_refused_by_a_fresh_broker_too() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    for (id, transaction_timeout_ms, code) in
        [("", 60_000, INVALID_REQUEST), ("t", 0, INVALID_TIMEOUT), ("t", 900_001, INVALID_TIMEOUT)]
    {
        let request = wire::messages::init_producer_id_request::InitProducerIdRequest {
            transactional_id: Some(id.into()),
            transaction_timeout_ms,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let answer = client.call(4, &request).await;
        assert_eq!((answer.error_code, answer.producer_id, answer.producer_epoch), (code, -1, -1), "{id:?}");
    }
}
