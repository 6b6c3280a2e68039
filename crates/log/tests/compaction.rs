//! Compaction by the rules of section 12, and retention by those of section 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use log::{
    AppendParams, Clock, DirConfig, FlushPolicy, Isolation, LogConfig, LogDir, MemFs, PartitionLog, ReadParams,
    TopicId, TopicPartition, TxnProtocol,
};
use wire::batch::{Batch, BatchBuilder, BatchHeader, ControlType, Record};

const NOW: i64 = 1_700_000_000_000;

struct TestClock;

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        NOW
    }
}

fn open(fs: &MemFs) -> Arc<LogDir> {
    let config = DirConfig { flush_threads: 0, reserved_bytes: 0, ..DirConfig::new("/data") };
    LogDir::open(Arc::new(fs.clone()), Arc::new(TestClock), config).unwrap()
}

fn compacted() -> LogConfig {
    LogConfig {
        segment_bytes: 400,
        index_interval_bytes: 50,
        compact: true,
        delete: false,
        delete_retention_ms: 3000,
        min_cleanable_dirty_ratio: 0.0,
        ..LogConfig::default()
    }
}

fn partition(dir: &LogDir, config: LogConfig) -> Arc<PartitionLog> {
    let log = dir.create_partition(&TopicPartition::new("topic", 0), TopicId([1; 16]), config.clone()).unwrap();
    log.set_config(config);
    log
}

fn batch(builder: BatchBuilder, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = builder;
    for (key, value) in records {
        builder.append(NOW, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    }
    builder.build().unwrap()
}

fn put(log: &PartitionLog, records: &[(&str, Option<&str>)]) -> i64 {
    log.append(&AppendParams::client(NOW), &batch(BatchBuilder::new(), records)).unwrap().first_offset
}

/// Fills the active segment, so that what came before is closed.
fn close_segment(dir: &LogDir, log: &PartitionLog) {
    let value = "y".repeat(290);
    put(log, &[("filler", Some(&value))]);
    put(log, &[("filler", Some(&value))]);
    dir.flush_now();
}

fn batches(log: &PartitionLog) -> Vec<(BatchHeader, Vec<Record>)> {
    let marks = log.offsets().unwrap();
    let (mut from, mut all) = (marks.log_start, Vec::new());
    while from < marks.log_end {
        let params = ReadParams { from_offset: from, max_bytes: 1, isolation: Isolation::LogEnd, min_one_batch: true };
        let data = log.read(&params).unwrap();
        if data.size == 0 {
            break;
        }
        for batch in data.records.iter().flat_map(Batch::iter) {
            let batch = batch.unwrap();
            batch.validate_crc().unwrap();
            all.push((*batch.header(), batch.records().unwrap().map(Result::unwrap).collect()));
        }
        assert!(data.next_offset > from);
        from = data.next_offset;
    }
    all
}

/// (offset, key, value) of all data records but the fillers.
fn records(log: &PartitionLog) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let data = batches(log).into_iter().filter(|(header, _)| !header.attributes.is_control());
    let all = data
        .flat_map(|(_, records)| records)
        .map(|r| (r.offset, text(r.key.as_ref().unwrap()), r.value.as_ref().map(text)));
    all.filter(|(_, key, _)| key != "filler").collect()
}

fn row(offset: i64, key: &str, value: Option<&str>) -> (i64, String, Option<String>) {
    (offset, key.to_owned(), value.map(str::to_owned))
}

/// CL-01, the part without transactions.
#[test]
fn the_newest_value_stays_and_tombstones_go_after_their_time() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, compacted());
    put(&log, &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]);
    put(&log, &[("a", Some("2")), ("b", None)]);
    close_segment(&dir, &log);
    let end = log.offsets().unwrap().log_end;
    assert_eq!(dir.compact(NOW).len(), 1);
    assert_eq!(records(&log), [row(2, "c", Some("1")), row(3, "a", Some("2")), row(4, "b", None)]);
    let all = batches(&log);
    // C-4: the batch keeps its place; C-3: the tombstone's batch is stamped, its timestamps are as they were.
    assert_eq!((all[0].0.base_offset, all[0].0.last_offset_delta, all[0].0.record_count), (0, 2, 1));
    assert_eq!(all[1].0.delete_horizon(), Some(NOW + 3000));
    assert_eq!(all[1].1[0].timestamp, NOW);
    assert_eq!(log.offsets().unwrap().log_end, end);

    close_segment(&dir, &log);
    dir.compact(NOW + 2999);
    assert_eq!(records(&log).len(), 3);
    close_segment(&dir, &log);
    dir.compact(NOW + 3000);
    assert_eq!(records(&log), [row(2, "c", Some("1")), row(3, "a", Some("2"))]);
    // Offsets in gaps lead to what comes after them.
    let params = ReadParams { from_offset: 4, max_bytes: 1, isolation: Isolation::LogEnd, min_one_batch: true };
    assert!(log.read(&params).unwrap().size > 0);

    let before = records(&log);
    drop((dir, log));
    let dir = open(&fs.crash(3));
    assert_eq!(records(&partition(&dir, compacted())), before);
}

/// CL-01, the part with transactions; CL-02.
#[test]
fn aborted_records_go_at_once_and_markers_after_their_time() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, compacted());
    let transaction = |producer: i64, epoch: i16, key: &str, end: Option<ControlType>| {
        let params = AppendParams {
            verification: log.begin_verification(producer, epoch, 0, true, NOW).unwrap(),
            ..AppendParams::client(NOW)
        };
        let builder = BatchBuilder::new().producer(producer, epoch, 0).transactional(true);
        log.append(&params, &batch(builder, &[(key, Some("txn"))])).unwrap();
        if let Some(kind) = end {
            log.append_marker(kind, producer, epoch + 1, 1, TxnProtocol::V2, NOW).unwrap();
        }
    };
    transaction(7, 0, "a", Some(ControlType::Abort));
    transaction(8, 0, "b", Some(ControlType::Commit));
    // Another transaction of both, so that what is above is not the last of its producer.
    transaction(7, 1, "c", Some(ControlType::Commit));
    transaction(8, 1, "d", Some(ControlType::Commit));
    close_segment(&dir, &log);
    dir.compact(NOW);
    let keys = |log: &PartitionLog| records(log).into_iter().map(|(_, key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(&log), ["b", "c", "d"]);
    let markers = |log: &PartitionLog| {
        let control = batches(log).into_iter().filter(|(header, _)| header.attributes.is_control());
        control
            .map(|(header, _)| (header.base_offset, header.attributes.0, header.delete_horizon()))
            .collect::<Vec<_>>()
    };
    // The abort marker has lost its records and gets a horizon; the others stay as they are.
    assert_eq!(markers(&log), [(1, 0x70, Some(NOW + 3000)), (3, 0x30, None), (5, 0x30, None), (7, 0x30, None)]);

    // What comes after a transaction that is open is not touched.
    transaction(9, 0, "open", None);
    put(&log, &[("z", Some("1"))]);
    put(&log, &[("z", Some("2"))]);
    close_segment(&dir, &log);
    dir.compact(NOW + 3000);
    assert_eq!(keys(&log), ["b", "c", "d", "open", "z", "z"]);
    assert_eq!(markers(&log), [(3, 0x30, None), (5, 0x30, None), (7, 0x30, None)]);
    let params =
        ReadParams { from_offset: 0, max_bytes: 1 << 20, isolation: Isolation::LastStable, min_one_batch: true };
    assert_eq!(log.read(&params).unwrap().aborted_transactions, Some(vec![]));
}

#[test]
fn the_last_batch_of_a_producer_is_kept_without_records() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, compacted());
    let params = AppendParams::client(NOW);
    let idempotent = batch(BatchBuilder::new().producer(5, 0, 0), &[("a", Some("1"))]);
    log.append(&params, &idempotent).unwrap();
    put(&log, &[("a", Some("2"))]);
    close_segment(&dir, &log);
    dir.compact(NOW);
    let (header, kept) = &batches(&log)[0];
    assert_eq!((header.base_offset, header.record_count, header.base_timestamp, kept.len()), (0, 0, -1, 0));
    assert!(log.append(&params, &idempotent).unwrap().duplicate);
}

/// Random writes and compactions, with crashes in between: the newest value of every key is what it was.
#[test]
fn compaction_changes_no_value_whenever_the_machine_fails() {
    for seed in 0..60u64 {
        let mut fs = MemFs::new();
        let mut dir = open(&fs);
        let mut log = partition(&dir, compacted());
        let mut expected = BTreeMap::new();
        let mut state = seed;
        for step in 0..120 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let (key, roll) = (format!("k{}", (state >> 40) % 7), (state >> 20) % 20);
            let value = if (state >> 50) % 5 == 0 { None } else { Some(format!("{step}")) };
            put(&log, &[(&key, value.as_deref())]);
            dir.flush_now();
            expected.insert(key, value);
            if roll == 0 {
                dir.compact(NOW + step * 100);
            }
            if roll == 1 {
                fs = fs.crash(state);
                dir = open(&fs);
                log = partition(&dir, compacted());
            }
            if roll == 2 {
                dir.tick(NOW + step * 1000);
            }
        }
        let mut found = BTreeMap::new();
        for (_, key, value) in records(&log) {
            found.insert(key, value);
        }
        found.retain(|_, value| value.is_some());
        expected.retain(|_, value| value.is_some());
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// RT-02 and RT-03.
#[test]
fn retention_by_size_and_by_time() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let config = LogConfig { segment_bytes: 100, retention_bytes: 200, ..LogConfig::default() };
    let log = partition(&dir, config.clone());
    for _ in 0..6 {
        put(&log, &[("a", Some("1"))]);
    }
    let size = log.size_bytes().unwrap() as i64 / 6;
    log.set_config(LogConfig { retention_bytes: 3 * size, ..config.clone() });
    dir.apply_retention(NOW);
    // Nothing is durable yet, so nothing may go.
    assert_eq!(log.offsets().unwrap().log_start, 0);
    dir.flush_now();
    dir.apply_retention(NOW);
    assert_eq!(log.offsets().unwrap().log_start, 3);
    log.set_config(LogConfig { retention_bytes: -1, retention_ms: 1000, ..config.clone() });
    dir.apply_retention(NOW + 1000);
    assert_eq!(log.offsets().unwrap().log_start, 3);
    dir.apply_retention(NOW + 1001);
    assert_eq!((log.offsets().unwrap().log_start, log.offsets().unwrap().log_end), (6, 6));
    assert_eq!(put(&log, &[("a", Some("1"))]), 6);
    dir.flush_now();
    // Deleted files go later, and a restart agrees with the start.
    dir.tick(NOW + 100_000);
    let dir = open(&fs.crash(1));
    assert_eq!(partition(&dir, config).offsets().unwrap().log_start, 6);
}

/// RT-01.
#[test]
fn a_timestamp_in_the_future_protects_what_comes_after_it() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, LogConfig { segment_bytes: 100, retention_ms: 1000, ..LogConfig::default() });
    for timestamp in [NOW, NOW + 600_000, NOW, NOW] {
        let mut builder = BatchBuilder::new();
        builder.append(timestamp, None, Some(b"v"), &[]);
        log.append(&AppendParams::client(NOW), &builder.build().unwrap()).unwrap();
    }
    dir.flush_now();
    dir.apply_retention(NOW + 5000);
    assert_eq!(log.offsets().unwrap().log_start, 1);
}

/// DR-01.
#[test]
fn delete_records_moves_the_start() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, LogConfig::default());
    for _ in 0..8 {
        put(&log, &[("a", None)]);
    }
    dir.flush_now();
    assert_eq!(log.delete_records(2).unwrap(), 2);
    assert_eq!(log.delete_records(1).unwrap(), 2);
    assert!(log.delete_records(99_999).is_err());
    assert!(log.delete_records(-5).is_err());
    assert_eq!(log.delete_records(-1).unwrap(), 8);
}

/// C-1: a restart does not make clean segments dirty again; Kafka's file says how far they are.
#[test]
fn what_is_compacted_is_remembered() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, compacted());
    put(&log, &[("a", Some("1"))]);
    put(&log, &[("a", Some("2"))]);
    close_segment(&dir, &log);
    assert_eq!(dir.compact(NOW).len(), 1);
    dir.close().unwrap();
    let dir = open(&fs.restart());
    let log = partition(&dir, compacted());
    assert_eq!(dir.compact(NOW).len(), 0, "nothing is dirty");
    put(&log, &[("a", Some("3"))]);
    close_segment(&dir, &log);
    assert_eq!(dir.compact(NOW).len(), 1);
    assert_eq!(records(&log).last(), Some(&row(log.offsets().unwrap().log_end - 3, "a", Some("3"))));
}

/// Under every policy: else a compacted topic would grow for ever, and a restart after a crash would read all of it.
#[test]
fn a_closed_segment_is_synced_and_compacted_also_if_the_policy_is_never() {
    let dir = open(&MemFs::new());
    let log = partition(&dir, LogConfig { flush: FlushPolicy::Never, ..compacted() });
    let value = "y".repeat(220);
    put(&log, &[("a", Some(&value))]);
    dir.flush_now();
    assert_eq!((log.offsets().unwrap().durable, dir.compact(NOW).len()), (0, 0));
    put(&log, &[("a", Some(&value))]);
    put(&log, &[("a", Some("1"))]);
    dir.flush_now();
    assert!(log.offsets().unwrap().durable >= 1);
    assert_eq!(dir.compact(NOW).len(), 1);
}

/// C-7: the end of the log stays where it is even if its last record was compacted away and a crash takes the active segment.
#[test]
fn c_7_a_crash_gives_no_offset_out_again() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, LogConfig { flush: FlushPolicy::Never, ..compacted() });
    put(&log, &[("a", Some(&"y".repeat(220)))]);
    let verification = log.begin_verification(7, 0, 0, true, NOW).unwrap();
    let params = AppendParams { verification, ..AppendParams::client(NOW) };
    let builder = BatchBuilder::new().producer(7, 0, 0).transactional(true);
    log.append(&params, &batch(builder, &[("b", Some("x"))])).unwrap();
    log.set_config(LogConfig { flush: FlushPolicy::Always, ..compacted() });
    dir.flush_now();
    log.set_config(LogConfig { flush: FlushPolicy::Never, ..compacted() });
    // The marker is the first of the next segment, which is not synced.
    log.append_marker(ControlType::Abort, 7, 1, 0, TxnProtocol::V2, NOW).unwrap();
    let marks = log.offsets().unwrap();
    assert_eq!((marks.durable, marks.last_stable, marks.log_end), (2, 3, 3));
    let report = dir.compact(NOW).remove(0).1;
    assert_eq!(report.cleaned_to, 2);
    assert_eq!(records(&log), [row(0, "a", Some(&"y".repeat(220)))], "the aborted record is gone");
    for seed in 0..40 {
        let dir = open(&fs.crash(seed));
        let end = partition(&dir, compacted()).offsets().unwrap().log_end;
        assert!((2..=3).contains(&end), "seed {seed}: the log ends at {end}");
    }
}
