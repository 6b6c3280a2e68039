//! What a partition checks about the batches of clients: rules U-8 to U-14 (section 7), as tables of cases.

use std::sync::Arc;

use log::{
    AppendError, AppendParams, Clock, DirConfig, Isolation, LogConfig, LogDir, MemFs, PartitionLog, ReadParams,
    TopicId, TopicPartition,
};
use wire::batch::{
    Attributes, Batch, BatchBuilder, BatchHeader, Compression, ControlType, Record, TimestampType, control_batch,
    field, recompute_crc,
};

const NOW: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

const CORRUPT_MESSAGE: i16 = 2;
const MESSAGE_TOO_LARGE: i16 = 10;
const RECORD_LIST_TOO_LARGE: i16 = 18;
const INVALID_TIMESTAMP: i16 = 32;
const INVALID_RECORD: i16 = 87;

struct TestClock;

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        NOW
    }
}

fn partition(config: LogConfig) -> (Arc<LogDir>, Arc<PartitionLog>) {
    let dir_config = DirConfig { flush_threads: 0, reserved_bytes: 0, ..DirConfig::new("/data") };
    let dir = LogDir::open(Arc::new(MemFs::new()), Arc::new(TestClock), dir_config).unwrap();
    let log = dir.create_partition(&TopicPartition::new("topic", 0), TopicId([1; 16]), config).unwrap();
    (dir, log)
}

fn append(config: LogConfig, bytes: Vec<u8>) -> Result<(), AppendError> {
    let (_dir, log) = partition(config);
    let result = log.append(&AppendParams::client(NOW), &bytes.into()).map(|_| ());
    let end = log.offsets().unwrap().log_end;
    assert_eq!(end > 0, result.is_ok(), "a refusal leaves no trace");
    result
}

fn code(result: Result<(), AppendError>) -> i16 {
    result.map_or_else(|error| error.code(), |()| 0)
}

/// Records (key, timestamp).
fn batch(builder: BatchBuilder, records: &[(Option<&str>, i64)]) -> Vec<u8> {
    let mut builder = builder;
    for (key, timestamp) in records {
        builder.append(*timestamp, key.map(str::as_bytes), Some(b"value"), &[]);
    }
    builder.build().unwrap().to_vec()
}

fn one() -> Vec<u8> {
    batch(BatchBuilder::new(), &[(Some("k"), NOW)])
}

/// Changes a field; its checksum becomes right again.
fn with(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    recompute_crc(&mut bytes);
    bytes
}

fn damaged(mut bytes: Vec<u8>) -> Vec<u8> {
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    bytes
}

/// What is stored.
fn stored(config: LogConfig, bytes: Vec<u8>) -> (BatchHeader, Vec<Record>, i64) {
    let (_dir, log) = partition(config);
    let info = log.append(&AppendParams::client(NOW), &bytes.into()).unwrap();
    let params = ReadParams { from_offset: 0, max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_batch: true };
    let read = log.read(&params).unwrap();
    let batch = Batch::iter(&read.records[0]).next().unwrap().unwrap();
    batch.validate_crc().unwrap();
    (*batch.header(), batch.records().unwrap().map(Result::unwrap).collect(), info.log_append_time_ms)
}

/// PR-02, PR-03, in the order in which the first failure wins.
#[test]
fn u_8_batches() {
    let size = one().len();
    let limit = |bytes: usize| LogConfig { max_message_bytes: bytes, ..LogConfig::default() };
    let control = control_batch(ControlType::Commit, 1, 0, 0, NOW).unwrap().to_vec();
    let offset_5 = |bytes| with(bytes, field::BASE_OFFSET, &5_i64.to_be_bytes());
    let count_2 = |bytes| with(bytes, field::RECORD_COUNT, &2_i32.to_be_bytes());
    let two_batches = [one(), one()].concat();
    let transactional = with(one(), field::ATTRIBUTES, &Attributes::TRANSACTIONAL.to_be_bytes());
    for (case, bytes, config, expected) in [
        ("sound", one(), LogConfig::default(), 0),
        ("base offset 5", offset_5(one()), LogConfig::default(), INVALID_RECORD),
        ("the largest allowed", one(), limit(size), 0),
        ("one byte more", one(), limit(size - 1), MESSAGE_TOO_LARGE),
        ("a flipped bit", damaged(one()), LogConfig::default(), CORRUPT_MESSAGE),
        ("count 2 for one record", count_2(one()), LogConfig::default(), INVALID_RECORD),
        ("count 0", with(one(), field::RECORD_COUNT, &[0; 4]), LogConfig::default(), INVALID_RECORD),
        ("count -1", with(one(), field::RECORD_COUNT, &[255; 4]), LogConfig::default(), INVALID_RECORD),
        ("last delta 3", with(one(), field::LAST_OFFSET_DELTA, &[0, 0, 0, 3]), LogConfig::default(), INVALID_RECORD),
        ("last delta -1", with(one(), field::LAST_OFFSET_DELTA, &[255; 4]), LogConfig::default(), INVALID_RECORD),
        ("magic 1", with(one(), field::MAGIC, &[1]), LogConfig::default(), INVALID_RECORD),
        ("two batches", two_batches, LogConfig::default(), INVALID_RECORD),
        ("no batch", Vec::new(), LogConfig::default(), INVALID_RECORD),
        ("half a batch", one()[..size - 1].to_vec(), LogConfig::default(), CORRUPT_MESSAGE),
        ("control", control, LogConfig::default(), INVALID_RECORD),
        (
            "no sequence",
            batch(BatchBuilder::new().producer(1, 0, -1), &[(None, NOW)]),
            LogConfig::default(),
            INVALID_RECORD,
        ),
        ("transactional without a producer", transactional, LogConfig::default(), INVALID_RECORD),
        ("base offset before size", offset_5(one()), limit(10), INVALID_RECORD),
        ("size before checksum", damaged(one()), limit(10), MESSAGE_TOO_LARGE),
        ("checksum before counts", damaged(count_2(one())), LogConfig::default(), CORRUPT_MESSAGE),
    ] {
        assert_eq!(code(append(config, bytes)), expected, "{case}");
    }
}

/// PR-04, PR-08.
#[test]
fn u_9_records() {
    let compact = || LogConfig { compact: true, ..LogConfig::default() };
    let before = || LogConfig { timestamp_before_max_ms: 1000, ..LogConfig::default() };
    let small = || LogConfig { max_decompressed_message_bytes: 40, ..LogConfig::default() };
    let append_time = || LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let keyless = |timestamp| batch(BatchBuilder::new(), &[(None, timestamp)]);
    let compressed = |builder: BatchBuilder| builder.compression(Compression::Gzip);
    let large = || {
        let mut builder = compressed(BatchBuilder::new());
        builder.append(NOW, None, Some(&[b'x'; 1000]), &[]);
        builder.build().unwrap().to_vec()
    };
    for (case, bytes, config, expected) in [
        ("no key", keyless(NOW), LogConfig::default(), 0),
        ("no key in a compacted topic", keyless(NOW), compact(), INVALID_RECORD),
        ("an empty key in a compacted topic", batch(BatchBuilder::new(), &[(Some(""), NOW)]), compact(), 0),
        ("no time", keyless(-1), before(), 0),
        ("the latest time", keyless(NOW + HOUR_MS), LogConfig::default(), 0),
        ("later", keyless(NOW + HOUR_MS + 1), LogConfig::default(), INVALID_TIMESTAMP),
        ("the earliest time", keyless(NOW - 1000), before(), 0),
        ("earlier", keyless(NOW - 1001), before(), INVALID_TIMESTAMP),
        ("any time, if the broker sets it", keyless(NOW + 2 * HOUR_MS), append_time(), 0),
        ("compressed", batch(compressed(BatchBuilder::new()), &[(None, NOW)]), small(), 0),
        ("larger than may be decompressed", large(), small(), INVALID_RECORD),
        (
            "compressed, later",
            batch(compressed(BatchBuilder::new()), &[(None, NOW + 2 * HOUR_MS)]),
            LogConfig::default(),
            INVALID_TIMESTAMP,
        ),
    ] {
        assert_eq!(code(append(config, bytes)), expected, "{case}");
    }
}

#[test]
fn u_10_every_bad_record_is_listed_and_the_message_sums_up() {
    let compact = LogConfig { compact: true, ..LogConfig::default() };
    let (good, keyless, late) = ((Some("k"), NOW), (None, NOW), (Some("k"), NOW + 2 * HOUR_MS));
    for (records, expected, bad) in [
        (vec![good, keyless], INVALID_RECORD, vec![1]),
        (vec![keyless, good, keyless, keyless, keyless], INVALID_RECORD, vec![0, 2, 3, 4]),
        (vec![late, good], INVALID_TIMESTAMP, vec![0]),
        (vec![keyless, late], INVALID_TIMESTAMP, vec![0, 1]),
    ] {
        let error = append(compact.clone(), batch(BatchBuilder::new(), &records)).unwrap_err();
        assert_eq!(error.code(), expected, "{records:?}");
        assert_eq!(error.record_errors().iter().map(|e| e.index).collect::<Vec<_>>(), bad);
        let quoted = error.to_string().matches("Compacted topic").count();
        assert_eq!(quoted, if expected == INVALID_RECORD { bad.len().min(3) } else { 0 }, "{error}");
    }
    let error = append(LogConfig::default(), damaged(one())).unwrap_err();
    assert!(error.record_errors().is_empty(), "batch-level failures have no list");
}

#[test]
fn u_11_a_broken_compressed_payload_is_an_unknown_error() {
    let mut bytes = batch(BatchBuilder::new().compression(Compression::Gzip), &[(None, NOW)]);
    bytes[wire::batch::HEADER_LEN..].fill(0xaa);
    recompute_crc(&mut bytes);
    assert_eq!(code(append(LogConfig::default(), bytes)), -1);
}

#[test]
fn u_12_the_mark_of_log_append_time_is_the_brokers_to_set() {
    let marked = |timestamp| batch(BatchBuilder::new().log_append_time(timestamp), &[(None, timestamp)]);
    let (header, records, time) = stored(LogConfig::default(), marked(NOW - 5));
    assert_eq!(header.attributes.timestamp_type(), TimestampType::CreateTime);
    assert_eq!((header.max_timestamp, records[0].timestamp, time), (NOW - 5, NOW - 5, -1));
    assert_eq!(code(append(LogConfig::default(), marked(-1))), INVALID_TIMESTAMP);
}

/// PR-10.
#[test]
fn u_13_sizes_before_and_after_compression() {
    let gzip = |max_message_bytes| LogConfig {
        compression: Some(Compression::Gzip),
        max_message_bytes,
        ..LogConfig::default()
    };
    let mut builder = BatchBuilder::new();
    builder.append(NOW, None, Some(&[b'x'; 1000]), &[]);
    let bytes = builder.build().unwrap().to_vec();
    let (header, records, _) = stored(gzip(1 << 20), bytes.clone());
    assert_eq!(header.attributes.compression(), Ok(Compression::Gzip));
    assert_eq!(records[0].value.as_deref(), Some(&[b'x'; 1000][..]));
    assert_eq!(code(append(gzip(200), bytes.clone())), MESSAGE_TOO_LARGE, "too large as it came");
    let uncompressed =
        LogConfig { compression: Some(Compression::None), max_message_bytes: 500, ..LogConfig::default() };
    let mut builder = BatchBuilder::new().compression(Compression::Gzip);
    builder.append(NOW, None, Some(&[b'x'; 1000]), &[]);
    let small = builder.build().unwrap().to_vec();
    assert_eq!(code(append(uncompressed, small)), MESSAGE_TOO_LARGE, "too large as it would be stored");
    let segments = LogConfig { segment_bytes: 500, ..LogConfig::default() };
    assert_eq!(code(append(segments, bytes)), RECORD_LIST_TOO_LARGE);
}

/// PR-09.
#[test]
fn u_14_append_time_changes_the_header_only() {
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let (header, records, time) = stored(config, batch(BatchBuilder::new(), &[(None, 5), (None, 9)]));
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!((header.base_timestamp, header.max_timestamp, time), (5, NOW, NOW));
    assert!(records.iter().all(|record| record.timestamp == NOW));
}
