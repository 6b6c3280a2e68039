//! Batches round trip, golden bytes hold, and damage of any kind is an error and not a panic.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn sample(kind: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new().base_offset(42).leader_epoch(3).producer(9, 2, 7).compression(kind);
    let header = Header { key: Bytes::from_static(b"h"), value: None };
    builder.append(1000, Some(b"k1"), Some(&[7; 300]), &[header]);
    builder.append(1005, None, Some(b""), &[]);
    builder.append(990, Some(b""), None, &[]);
    builder
}

#[test]
fn golden_bytes_of_a_hand_computed_batch() {
    let mut builder = BatchBuilder::new().base_offset(5).leader_epoch(1).producer(258, 3, 4);
    builder.append(1000, Some(b"a"), Some(b"bc"), &[]);
    let bytes = builder.build().unwrap();
    // Record: length 9 (zig-zag 0x12), attributes, timestamp delta 0, offset delta 0, key length 1, value length 2, no headers.
    let records = [0x12, 0, 0, 0, 2, b'a', 4, b'b', b'c', 0];
    assert_eq!(&bytes[HEADER_LEN..], records);
    let mut expected = vec![0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 59, 0, 0, 0, 1, 2];
    expected.extend_from_slice(&bytes[field::CRC..field::ATTRIBUTES]);
    expected.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 0, 0, 0, 3, 0xe8]);
    expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1]);
    assert_eq!(&bytes[..HEADER_LEN], expected);
}

#[test]
fn every_compression_round_trips() {
    for kind in Compression::ALL {
        let bytes = sample(kind).build().unwrap();
        let (batch, rest) = Batch::parse_next(&bytes).unwrap();
        assert!(rest.is_empty());
        batch.validate_crc().unwrap();
        let header = batch.header();
        assert_eq!(header.attributes.compression().unwrap(), kind);
        assert_eq!((header.base_offset, header.last_offset(), header.record_count), (42, 44, 3));
        assert_eq!((header.base_timestamp, header.max_timestamp), (1000, 1005));
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (9, 2, 7));
        let records: Vec<Record> = batch.records().unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(
            records.iter().map(|r| (r.offset, r.timestamp)).collect::<Vec<_>>(),
            [(42, 1000), (43, 1005), (44, 990)]
        );
        assert_eq!(records[0].headers, [Header { key: Bytes::from_static(b"h"), value: None }]);
        assert_eq!(records[1].key, None);
        assert_eq!(records[1].value.as_deref(), Some(&b""[..]));
        assert_eq!((records[2].key.as_deref(), records[2].value.as_deref()), (Some(&b""[..]), None));
        assert_eq!(batch.records_limited(100).err(), (kind != Compression::None).then_some(BatchError::TooLarge(100)));
    }
}

#[test]
fn offset_and_epoch_lie_outside_the_crc_and_append_time_renews_it() {
    let mut bytes = sample(Compression::Lz4).build().unwrap().to_vec();
    set_base_offset(&mut bytes, 1 << 40);
    set_leader_epoch(&mut bytes, 77);
    let (batch, _) = Batch::parse_next(&Bytes::from(bytes.clone())).unwrap();
    batch.validate_crc().unwrap();
    assert_eq!((batch.header().base_offset, batch.header().partition_leader_epoch), (1 << 40, 77));
    set_log_append_time(&mut bytes, 5555);
    let (batch, _) = Batch::parse_next(&Bytes::from(bytes.clone())).unwrap();
    batch.validate_crc().unwrap();
    assert_eq!((batch.header().base_timestamp, batch.header().max_timestamp), (1000, 5555));
    assert!(batch.records().unwrap().all(|r| r.unwrap().timestamp == 5555));
    clear_log_append_time(&mut bytes, 1005);
    let (batch, _) = Batch::parse_next(&Bytes::from(bytes)).unwrap();
    batch.validate_crc().unwrap();
    assert_eq!(batch.records().unwrap().next().unwrap().unwrap().timestamp, 1000);
}

#[test]
fn raw_snappy_is_read() {
    let data = vec![3u8; 1000];
    let raw = snap::raw::Encoder::new().compress_vec(&data).unwrap();
    assert_eq!(decompress(Compression::Snappy, &raw, 1000).unwrap(), data);
    assert_eq!(decompress(Compression::Snappy, &raw, 999), Err(BatchError::TooLarge(999)));
    // A block that claims 4 GiB from five bytes is refused before anything is allocated.
    assert!(matches!(
        decompress(Compression::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x0f], usize::MAX),
        Err(BatchError::Decompress(..))
    ));
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0u8; 8 << 20];
    for kind in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let small = compress(kind, &zeros, None).unwrap();
        assert!(small.len() < 1 << 20);
        assert_eq!(decompress(kind, &small, 1 << 20), Err(BatchError::TooLarge(1 << 20)), "{kind}");
        assert_eq!(decompress(kind, &small, 8 << 20).unwrap().len(), 8 << 20);
    }
}

#[test]
fn lengths_and_magic_are_checked() {
    let bytes = sample(Compression::None).build().unwrap();
    let incomplete = |cut: usize| Batch::parse_next(&bytes.slice(..cut)).err();
    assert_eq!(incomplete(5), Some(BatchError::Incomplete { needed: PREFIX_LEN, available: 5 }));
    assert_eq!(incomplete(30), Some(BatchError::Incomplete { needed: bytes.len(), available: 30 }));
    assert_eq!(
        incomplete(bytes.len() - 1),
        Some(BatchError::Incomplete { needed: bytes.len(), available: bytes.len() - 1 })
    );
    let with = |at: usize, value: &[u8]| {
        let mut copy = bytes.to_vec();
        copy[at..at + value.len()].copy_from_slice(value);
        Batch::parse_next(&Bytes::from(copy)).err()
    };
    assert_eq!(with(field::MAGIC, &[1]), Some(BatchError::UnsupportedMagic(1)));
    assert_eq!(with(field::LENGTH, &[0, 0, 0, 0]), Some(BatchError::InvalidLength(0)));
    assert_eq!(with(field::LENGTH, &[0xff; 4]), Some(BatchError::InvalidLength(-1)));
    assert_eq!(with(field::LENGTH, &[0, 0, 0, 20]), Some(BatchError::InvalidLength(20)));
    assert_eq!(Batch::parse_next(&Bytes::from(vec![0; 100])).err(), Some(BatchError::InvalidLength(0)));
}

#[test]
fn the_last_sequence_wraps_to_zero() {
    let mut builder = BatchBuilder::new().producer(1, 0, i32::MAX - 1);
    (0..3).for_each(|_| builder.append(0, None, None, &[]));
    let bytes = builder.build().unwrap();
    assert_eq!(BatchHeader::parse(&bytes).unwrap().last_sequence(), 0);
}

#[test]
fn markers_have_kafkas_bytes() {
    let bytes = control_batch(ControlType::Commit, 5, 3, 7, 1000).unwrap();
    let (batch, _) = Batch::parse_next(&bytes).unwrap();
    let header = batch.header();
    assert_eq!((header.attributes.0, header.base_sequence, header.record_count), (0x30, -1, 1));
    let record = batch.records().unwrap().next().unwrap().unwrap();
    assert_eq!(record.key.as_deref(), Some(&[0, 0, 0, 1][..]));
    assert_eq!(record.value.as_deref(), Some(&[0, 0, 0, 0, 0, 7][..]));
    assert_eq!(parse_control_key(&[0, 0, 0, 0]), Some(ControlType::Abort));
    assert_eq!(parse_control_key(&[0, 0, 0, 2]), None);
    assert_eq!(parse_control_key(&[0, 0, 0]), None);
    assert_eq!(parse_end_txn_value(&[0, 0, 0, 0, 0, 7]), Some(7));
}

#[test]
fn a_compacted_batch_keeps_offsets_horizon_and_timestamps() {
    let mut builder = BatchBuilder::new().base_offset(10).delete_horizon(9999).last_offset_delta(5);
    builder.append_record(&Record {
        offset: 13,
        timestamp: 1234,
        key: Some(Bytes::from_static(b"k")),
        value: None,
        headers: vec![],
    });
    let (batch, _) = Batch::parse_next(&builder.build().unwrap()).unwrap();
    assert_eq!(batch.header().delete_horizon(), Some(9999));
    assert_eq!((batch.header().base_offset, batch.header().last_offset(), batch.header().record_count), (10, 15, 1));
    let record = batch.records().unwrap().next().unwrap().unwrap();
    assert_eq!((record.offset, record.timestamp), (13, 1234));
}

type Field = Option<Vec<u8>>;
type RawRecord = (i64, Field, Field, Vec<(Vec<u8>, Field)>);

fn raw_field() -> impl Strategy<Value = Field> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40))
}

fn raw_record() -> impl Strategy<Value = RawRecord> {
    let header = (proptest::collection::vec(any::<u8>(), 0..5), raw_field());
    (-1..i64::MAX / 4, raw_field(), raw_field(), proptest::collection::vec(header, 0..3))
}

fn build(kind: Compression, records: &[RawRecord]) -> Bytes {
    let mut builder = BatchBuilder::new().compression(kind);
    for (timestamp, key, value, headers) in records {
        let headers: Vec<Header> =
            headers.iter().map(|(k, v)| Header { key: k.clone().into(), value: v.clone().map(Bytes::from) }).collect();
        builder.append(*timestamp, key.as_deref(), value.as_deref(), &headers);
    }
    builder.build().unwrap()
}

proptest! {
    #[test]
    fn whatever_is_built_is_read_back(kind in 0u8..5, records in proptest::collection::vec(raw_record(), 1..20)) {
        let bytes = build(Compression::from_id(kind).unwrap(), &records);
        let (batch, rest) = Batch::parse_next(&bytes).unwrap();
        prop_assert!(rest.is_empty());
        batch.validate_crc().unwrap();
        let read: Vec<Record> = batch.records().unwrap().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), records.len());
        for (i, (record, (timestamp, key, value, headers))) in read.iter().zip(&records).enumerate() {
            prop_assert_eq!(record.offset, i as i64);
            prop_assert_eq!(record.timestamp, *timestamp);
            prop_assert_eq!(record.key.as_deref(), key.as_deref());
            prop_assert_eq!(record.value.as_deref(), value.as_deref());
            prop_assert_eq!(record.headers.len(), headers.len());
        }
    }

    #[test]
    fn mutated_batches_never_panic(
        kind in 0u8..5,
        records in proptest::collection::vec(raw_record(), 1..6),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = build(Compression::from_id(kind).unwrap(), &records).to_vec();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let cut = cut.index(bytes.len() + 1);
        for bytes in [Bytes::from(bytes.clone()), Bytes::from(bytes[..cut].to_vec())] {
            for batch in Batch::iter(&bytes).flatten() {
                let _ = batch.validate_crc();
                let _ = (batch.header().last_sequence(), batch.header().last_offset());
                if let Ok(records) = batch.records_limited(1 << 20) {
                    records.for_each(drop);
                }
            }
        }
    }
}
