//! Records as Kafka writes them.

use bytes::Bytes;

use super::super::state::{Status, Txn};
use super::super::{Record, TxnShard};
use super::*;
use crate::runtime::StateMachine;
use crate::state_log::RawRecord;

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn txn(status: Status) -> Txn {
    Txn {
        producer_id: 0x0102,
        previous_producer_id: 0x0103,
        next_producer_id: -1,
        epoch: 4,
        timeout_ms: 60_000,
        status,
        partitions: TopicPartitions::new(),
        start_ms: -1,
        last_update_ms: 0x0506,
        client_version: 0,
    }
}

/// Laid out by hand after the schema: version, producer id, epoch, timeout, status, partitions, update, start, tags.
#[test]
fn records_have_the_bytes_of_the_schema() {
    let mut ongoing = txn(Status::Ongoing);
    ongoing.partitions = [("a".into(), [1, 0].into()), ("b".into(), [7].into())].into();
    ongoing.client_version = 2;
    ongoing.start_ms = 9;
    let mut prepared = txn(Status::PrepareCommit);
    prepared.next_producer_id = 0x0a;
    let cases = [
        (
            // No list of partitions at all.
            txn(Status::Empty),
            "0001 0000000000000102 0004 0000ea60 00 00 0000000000000506 ffffffffffffffff 01 00 08 0000000000000103",
        ),
        (
            ongoing,
            "0001 0000000000000102 0004 0000ea60 01 03 02 61 03 00000000 00000001 00 02 62 02 00000007 00 \
             0000000000000506 0000000000000009 02 00 08 0000000000000103 02 02 0002",
        ),
        (
            prepared,
            "0001 0000000000000102 0004 0000ea60 02 01 0000000000000506 ffffffffffffffff 02 00 08 0000000000000103 \
             01 08 000000000000000a",
        ),
    ];
    for (txn, value) in cases {
        let record = Record { transactional_id: "id".into(), txn: Some(txn) };
        let raw = TxnShard::encode(&record).unwrap();
        assert_eq!(raw.key, bytes("0000 0002 6964"));
        assert_eq!(raw.value, Some(bytes(value)), "{record:?}");
        assert_eq!(TxnShard::decode(&raw), Ok(Some(record)));
    }
    let tombstone = Record { transactional_id: "id".into(), txn: None };
    let raw = TxnShard::encode(&tombstone).unwrap();
    assert_eq!(raw.value, None);
    assert_eq!(TxnShard::decode(&raw), Ok(Some(tombstone)));
}

/// A directory that an older broker wrote, with version 0 of the value.
#[test]
fn old_records_are_read() {
    let raw = RawRecord {
        key: bytes("0000 0002 6964"),
        value: Some(bytes("0000 0000000000000102 0004 0000ea60 04 00000000 0000000000000506 ffffffffffffffff")),
    };
    let mut expected = txn(Status::CompleteCommit);
    expected.previous_producer_id = -1;
    let record = Record { transactional_id: "id".into(), txn: Some(expected) };
    assert_eq!(TxnShard::decode(&raw), Ok(Some(record)));
}

#[test]
fn what_cannot_be_read_is_no_state() {
    let value = |hex: &str| RawRecord { key: bytes("0000 0002 6964"), value: Some(bytes(hex)) };
    let unknown_type = RawRecord { key: bytes("0007 0002 6964"), value: None };
    assert_eq!(TxnShard::decode(&unknown_type), Ok(None), "a type of a newer version is passed over");
    for (what, raw) in [
        ("no type", RawRecord { key: bytes("00"), value: None }),
        ("key cut short", RawRecord { key: bytes("0000 0005 69"), value: None }),
        ("value cut short", value("0001 00")),
        ("unknown version", value("0009 0000000000000102 0004")),
        ("unknown status", value("0001 0000000000000102 0004 0000ea60 06 00 0000000000000506 ffffffffffffffff 00")),
    ] {
        assert!(TxnShard::decode(&raw).is_err(), "{what}");
    }
}
