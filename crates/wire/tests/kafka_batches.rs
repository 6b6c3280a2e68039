//! Batches that Kafka's own Java classes wrote are read, and written again byte for byte where no codec is in between.

use bytes::Bytes;
use wire::batch::{Batch, BatchBuilder, Compression, ControlType, Header, Record, control_batch, parse_control_key};

fn vectors() -> Vec<(&'static str, Bytes)> {
    let lines = include_str!("kafka_batches.txt").lines().filter(|line| !line.starts_with('#'));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    lines
        .map(|line| {
            let (name, hex) = line.split_once(' ').unwrap();
            (name, hex.as_bytes().chunks(2).map(byte).collect::<Vec<u8>>().into())
        })
        .collect()
}

fn vector(name: &str) -> Bytes {
    vectors().into_iter().find(|(found, _)| *found == name).unwrap().1
}

fn bytes(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

fn small(base: i64) -> Vec<Record> {
    let header = |key: &'static str, value| Header { key: Bytes::from_static(key.as_bytes()), value };
    let headers = vec![header("h1", bytes("v1")), header("h2", None)];
    let record = |offset, timestamp, key, value, headers| Record { offset, timestamp, key, value, headers };
    vec![
        record(base, 1000, bytes("k1"), bytes("value one"), headers),
        record(base + 1, 1005, None, bytes("value two"), vec![]),
        record(base + 2, 990, bytes("k3"), None, vec![]),
    ]
}

fn big() -> String {
    (0..9000).map(|i: i64| format!("row {};", i * 7919 % 1000)).collect()
}

fn read(bytes: &Bytes) -> (Batch, Vec<Record>) {
    let (batch, rest) = Batch::parse_next(bytes).unwrap();
    assert!(rest.is_empty());
    batch.validate_crc().unwrap();
    let records = batch.records().unwrap().collect::<Result<_, _>>().unwrap();
    (batch, records)
}

#[test]
fn every_compression_is_read() {
    for kind in Compression::ALL {
        let (batch, records) = read(&vector(&format!("small-{kind}")));
        let header = batch.header();
        assert_eq!(header.attributes.compression().unwrap(), kind);
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (9, 2, 7));
        assert_eq!((header.base_offset, header.partition_leader_epoch, header.max_timestamp), (42, 3, 1005));
        assert_eq!(records, small(42), "{kind}");
        if kind != Compression::None {
            // More than one block of snappy and lz4.
            let (_, records) = read(&vector(&format!("large-{kind}")));
            assert_eq!(records[0].value.as_deref(), Some(big().as_bytes()), "{kind}");
        }
    }
}

#[test]
fn what_is_written_has_the_same_bytes() {
    let builder = BatchBuilder::new().base_offset(42).leader_epoch(3).producer(9, 2, 7);
    let transactional = BatchBuilder::new().base_offset(17).leader_epoch(2).producer(77, 4, 0).transactional(true);
    for (name, mut builder, base) in [("small-none", builder, 42), ("transactional", transactional, 17)] {
        small(base).iter().for_each(|record| builder.append_record(record));
        assert_eq!(builder.build().unwrap(), vector(name), "{name}");
    }
    for (name, kind, base, timestamp, epoch) in
        [("commit", ControlType::Commit, 100, 3000, 7), ("abort", ControlType::Abort, 101, 3001, 8)]
    {
        let (batch, _) = Batch::parse_next(&control_batch(kind, 77, 5, epoch, timestamp).unwrap()).unwrap();
        assert_eq!(batch.with_offset(base, 2).into_bytes(), vector(name), "{name}");
        let (_, records) = read(&vector(name));
        assert_eq!(parse_control_key(records[0].key.as_deref().unwrap()), Some(kind));
    }
}

#[test]
fn append_time_holds_for_all_records() {
    let (batch, records) = read(&vector("append-time"));
    assert!(records.iter().all(|record| record.timestamp == batch.header().max_timestamp));
}
