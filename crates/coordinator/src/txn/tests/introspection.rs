//! DescribeTransactions and ListTransactions (D-1, D-2).

use wire::messages::describe_transactions_response::{TopicData, TransactionState};
use wire::messages::list_transactions_request::ListTransactionsRequest;

use super::super::ListFilter;
use super::bench::{Bench, FIRST_PRODUCER_ID};
use super::*;

const P: i64 = FIRST_PRODUCER_ID;

fn describe(bench: &mut Bench, id: &str) -> TransactionState {
    match bench.ask(Command::Describe { transactional_id: KStr::copy(id) }) {
        Reply::Described(described) => *described,
        other => panic!("not the reply to Describe: {other:?}"),
    }
}

/// TX-28.
#[test]
fn d_1_what_cannot_be_described_leaves_everything_at_zero() {
    let mut bench = Bench::new();
    for (id, error) in [("", INVALID_REQUEST), ("nobody", ErrorCode::TransactionalIdNotFound.code())] {
        let described = describe(&mut bench, id);
        let empty = TransactionState { error_code: error, transactional_id: id.into(), ..Default::default() };
        assert_eq!(described, empty);
        assert_eq!((described.transaction_state.as_str(), described.producer_id), ("", 0));
    }
}

#[test]
fn d_1_the_start_is_kept_when_the_partitions_are_gone() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    let empty = describe(&mut bench, "id");
    assert_eq!((empty.transaction_state.as_str(), empty.transaction_start_time_ms), ("Empty", -1));
    assert_eq!((empty.producer_id, empty.producer_epoch, empty.transaction_timeout_ms), (P, 0, TIMEOUT_MS));
    bench.advance(5);
    bench.add("id", producer, &[2, 0], 2);
    let ongoing = describe(&mut bench, "id");
    assert_eq!((ongoing.transaction_state.as_str(), ongoing.transaction_start_time_ms), ("Ongoing", 1_000_005));
    assert_eq!(ongoing.topics, [TopicData { topic: "t".into(), partitions: vec![0, 2] }]);
    bench.broken = vec![2];
    bench.end(5, "id", producer, true);
    let prepared = describe(&mut bench, "id");
    assert_eq!(prepared.transaction_state, "PrepareCommit");
    assert_eq!(prepared.topics, [TopicData { topic: "t".into(), partitions: vec![2] }], "what still waits");
    bench.broken.clear();
    bench.advance(1_000);
    let complete = describe(&mut bench, "id");
    assert_eq!(
        (complete.transaction_state.as_str(), complete.transaction_start_time_ms),
        ("CompleteCommit", 1_000_005)
    );
    assert_eq!((complete.producer_epoch, complete.topics), (1, vec![]));
}

#[test]
fn t_3_states_have_the_names_and_numbers_of_kafka() {
    let all: Vec<_> = Status::ALL.iter().map(|status| (status.code(), status.name())).collect();
    let expected = [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
    ];
    assert_eq!(all, expected);
}

/// Ids `a` (Empty), `b` (Ongoing for 100 ms), `c1` (CompleteCommit).
fn listed(request: ListTransactionsRequest) -> (Vec<String>, Vec<KStr>) {
    let mut bench = Bench::new();
    for id in ["c1", "b", "a"] {
        let producer = bench.producer(id);
        if id != "a" {
            bench.add(id, producer, &[0], 2);
        }
        if id == "c1" {
            bench.end(5, id, producer, true);
        }
    }
    bench.advance(100);
    let (filter, unknown) = ListFilter::new(&request).expect("a filter");
    let Reply::Listed(listed) = bench.ask(Command::List(filter)) else { panic!("not the reply to List") };
    let show = |t: wire::messages::list_transactions_response::TransactionState| {
        format!("{} {} {}", t.transactional_id, t.producer_id - P, t.transaction_state)
    };
    (listed.into_iter().map(show).collect(), unknown)
}

#[test]
fn d_2_filters() {
    const A: &str = "a 2 Empty";
    const B: &str = "b 1 Ongoing";
    const C: &str = "c1 0 CompleteCommit";
    let request = || ListTransactionsRequest { duration_filter: -1, ..Default::default() };
    let states = |names: &[&str]| ListTransactionsRequest {
        state_filters: names.iter().map(|name| KStr::copy(name)).collect(),
        ..request()
    };
    let pattern =
        |pattern: &str| ListTransactionsRequest { transactional_id_pattern: Some(KStr::copy(pattern)), ..request() };
    let longer_than = |duration_filter| ListTransactionsRequest { duration_filter, ..request() };
    let cases = [
        (request(), vec![A, B, C], vec![]),
        (states(&["Ongoing", "CompleteCommit"]), vec![B, C], vec![]),
        (states(&["Zed"]), vec![], vec!["Zed"]),
        (states(&["Zed", "Empty"]), vec![A], vec!["Zed"]),
        (states(&["ongoing"]), vec![], vec!["ongoing"]),
        (states(&["Dead", "PrepareEpochFence"]), vec![], vec![]),
        (ListTransactionsRequest { producer_id_filters: vec![P, P + 2, 99], ..request() }, vec![A, C], vec![]),
        // One that never began counts as having begun before everything.
        (longer_than(99), vec![A, B, C], vec![]),
        (longer_than(100), vec![A], vec![]),
        (pattern("c."), vec![C], vec![]),
        (pattern("c"), vec![], vec![]),
        (pattern("a|b"), vec![A, B], vec![]),
        (pattern(""), vec![A, B, C], vec![]),
    ];
    for (request, expected, unknown) in cases {
        let (shown, unknown_states) = listed(request.clone());
        assert_eq!(shown, expected, "{request:?}");
        assert_eq!(unknown_states, unknown, "{request:?}");
    }
    for bad in ["[x", "a)|(b"] {
        assert_eq!(ListFilter::new(&pattern(bad)).unwrap_err(), ErrorCode::InvalidRegularExpression, "{bad}");
    }
}

#[test]
fn what_is_not_durable_is_not_shown() {
    let mut bench = Bench::new();
    let producer = bench.producer("id");
    bench.cell.log_mut().set_durability(crate::testing::Durability::Manual);
    let (added, answer) = bench.send(add_command("id", producer, &[0], 2));
    assert_eq!(answer, None);
    let verify = Command::VerifyPartitions {
        transactional_id: "id".into(),
        producer: Producer { id: producer.0, epoch: producer.1 },
        partitions: partitions(&[0]),
    };
    let (filter, _) = ListFilter::new(&ListTransactionsRequest::default()).unwrap();
    let reads = [Command::Describe { transactional_id: "id".into() }, Command::List(filter), verify];
    let waiting: Vec<u64> = reads
        .into_iter()
        .map(|read| bench.send(read))
        .map(|(id, answer)| {
            assert_eq!(answer, None);
            id
        })
        .collect();
    let (_, other) = bench.send(Command::Describe { transactional_id: "other".into() });
    assert!(other.is_some(), "other ids have nothing to wait for");
    bench.make_durable();
    for id in std::iter::once(added).chain(waiting) {
        assert!(bench.answer(id).is_some());
    }
}
