//! What is sent from files: the same as what is read, and nothing that was not compared with its checksums.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use log::{
    AppendParams, DirConfig, FetchData, FlushPolicy, Fs, Isolation, LogConfig, LogDir, MemFs, PartitionLog, ReadError,
    ReadParams, RealFs, StorageError, SystemClock, TopicId, TopicPartition,
};
use wire::batch::{Batch, BatchBuilder};

const NOW: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

/// No recent batches in memory, and nothing happens in the background.
fn open(fs: Arc<dyn Fs>, path: &Path) -> Arc<LogDir> {
    let config = DirConfig { partition_cache_bytes: 0, flush_threads: 0, ..DirConfig::new(path) };
    LogDir::open(fs, Arc::new(SystemClock), config).unwrap()
}

fn partition(dir: &LogDir, config: LogConfig) -> Arc<PartitionLog> {
    let tp = TopicPartition::new("topic", 0);
    let existing = dir.partition(&tp);
    existing.unwrap_or_else(|| dir.create_partition(&tp, TopicId([7; 16]), config).unwrap())
}

fn visible_at_once() -> LogConfig {
    LogConfig { flush: FlushPolicy::Never, ..LogConfig::default() }
}

/// `records` records of `size` bytes that differ from those of other seeds.
fn batch(seed: usize, records: usize, size: usize) -> Bytes {
    let mut builder = BatchBuilder::new();
    for i in 0..records {
        let value: Vec<u8> = (0..size).map(|at| (seed * 31 + i * 7 + at) as u8).collect();
        builder.append(NOW, None, Some(&value), &[]);
    }
    builder.build().unwrap()
}

fn append(log: &PartitionLog, batch: &Bytes) {
    log.append(&AppendParams::client(NOW), batch).unwrap();
}

fn params(from_offset: i64, max_bytes: usize) -> ReadParams {
    ReadParams { from_offset, max_bytes, isolation: Isolation::HighWatermark, min_one_batch: true }
}

/// What a client gets, wherever it comes from.
fn bytes(data: &FetchData) -> Vec<u8> {
    let bytes = match &data.file {
        Some(range) => {
            assert!(data.records.is_empty());
            range.read().unwrap().to_vec()
        }
        None => data.records.concat(),
    };
    assert_eq!(bytes.len(), data.size);
    bytes
}

fn next_of(bytes: &[u8]) -> i64 {
    Batch::iter(&Bytes::copy_from_slice(bytes)).last().unwrap().unwrap().header().next_offset()
}

#[test]
fn what_is_sent_is_what_would_be_read_wherever_it_begins() {
    for (record, records, interval) in [(100, 3, 4096), (5_000, 4, 4096), (100, 200, 100), (60_000, 1, 1 << 20)] {
        let root = tempfile::tempdir().unwrap();
        let dir = open(Arc::new(RealFs), root.path());
        let config = LogConfig { segment_bytes: 1 << 20, index_interval_bytes: interval, ..visible_at_once() };
        let log = partition(&dir, config);
        let mut size = 0;
        for seed in 0.. {
            let batch = batch(seed, records, record);
            append(&log, &batch);
            size += batch.len();
            if size > 3 << 20 {
                break;
            }
        }
        let end = log.offsets().unwrap().log_end;
        let mut sent = 0;
        for max_bytes in [1_000, 40_000, 100_000, 1 << 20, 50 << 20] {
            let step = (end / 40).max(1) as usize;
            for offset in (0..end).step_by(step) {
                let (read, data) = (log.read(&params(offset, max_bytes)), log.read_to_send(&params(offset, max_bytes)));
                let (read, data) = (bytes(&read.unwrap()), data.unwrap());
                let given = bytes(&data);
                // With many small batches it may be less, by about what lies between two entries of the index.
                assert!(read.starts_with(&given), "{record} {max_bytes} {offset}");
                assert!(given.len() + 2 * interval as usize >= read.len(), "{} of {}", given.len(), read.len());
                assert_eq!(data.next_offset, next_of(&given), "{record} {max_bytes} {offset}");
                sent += usize::from(data.file.is_some());
            }
        }
        assert!(sent > 50, "only {sent} reads of {record} bytes were sent from the file");
    }
}

#[test]
fn nothing_beyond_what_may_be_seen_is_sent() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(Arc::new(RealFs), root.path());
    // Visible is what was synced.
    let log = partition(&dir, LogConfig::default());
    for seed in 0..100 {
        append(&log, &batch(seed, 10, 100));
        if seed == 70 {
            dir.flush_now();
        }
    }
    let data = log.read_to_send(&params(0, 1 << 20)).unwrap();
    assert!(data.file.is_some());
    assert_eq!((data.high_watermark, data.next_offset, next_of(&bytes(&data))), (710, 710, 710));
}

#[test]
fn what_was_found_is_read_and_compared_before_it_is_sent() {
    let root = tempfile::tempdir().unwrap();
    let log_file = root.path().join("topic-0/00000000000000000000.log");
    let mut dir = open(Arc::new(RealFs), root.path());
    let size = batch(0, 1, 10_000).len();
    let log = partition(&dir, visible_at_once());
    (0..30).for_each(|seed| append(&log, &batch(seed, 1, 10_000)));
    assert!(log.read_to_send(&params(0, 100_000)).unwrap().file.is_some(), "just written");
    dir.flush_now();
    dir.close().unwrap();
    drop((dir, log));

    dir = open(Arc::new(RealFs), root.path());
    let log = partition(&dir, visible_at_once());
    assert!(log.read_to_send(&params(0, 100_000)).unwrap().file.is_none(), "nobody has read it since the start");
    assert!(log.read_to_send(&params(0, 100_000)).unwrap().file.is_some());
    assert!(log.read_to_send(&params(5, 100_000)).unwrap().file.is_none(), "not all of it was read");
    dir.close().unwrap();
    drop((dir, log));

    // A byte of batch 7.
    let file = std::fs::OpenOptions::new().write(true).open(&log_file).unwrap();
    file.write_at(&[0xff], 8 * size as u64 - 1).unwrap();
    dir = open(Arc::new(RealFs), root.path());
    let log = partition(&dir, visible_at_once());
    for _ in 0..2 {
        let before = log.read_to_send(&params(0, 1 << 20)).unwrap();
        assert_eq!(before.next_offset, 7, "up to the damage");
        match log.read_to_send(&params(7, 1 << 20)) {
            Err(ReadError::Storage(StorageError::Damaged { partition, offset: 7, .. })) => {
                assert_eq!(partition, "topic-0");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(log.read_to_send(&params(8, 1 << 20)).unwrap().next_offset, 30);
    }
}

#[test]
fn damage_that_comes_later_is_found_by_who_reads_and_after_an_hour_by_all() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(Arc::new(RealFs), root.path());
    let size = batch(0, 1, 10_000).len();
    let log = partition(&dir, visible_at_once());
    (0..30).for_each(|seed| append(&log, &batch(seed, 1, 10_000)));
    dir.tick(NOW);
    (0..30).for_each(|seed| append(&log, &batch(seed, 1, 10_000)));
    let log_file = root.path().join("topic-0/00000000000000000000.log");
    let file = std::fs::OpenOptions::new().write(true).open(&log_file).unwrap();
    file.write_at(&[0xff], 38 * size as u64 - 1).unwrap();
    let is_damaged = |result: Result<FetchData, ReadError>| {
        matches!(result, Err(ReadError::Storage(StorageError::Damaged { offset: 37, .. })))
    };
    assert!(is_damaged(log.read(&params(37, 1 << 20))));
    assert!(is_damaged(log.read_to_send(&params(37, 20_000))), "little is read");
    dir.tick(NOW + HOUR_MS - 1);
    assert!(log.read_to_send(&params(37, 1 << 20)).unwrap().file.is_some());
    dir.tick(NOW + HOUR_MS);
    assert!(is_damaged(log.read_to_send(&params(37, 1 << 20))));
}

#[test]
fn a_range_outlives_the_segment_that_it_is_of() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(Arc::new(RealFs), root.path());
    let log = partition(&dir, LogConfig { segment_bytes: 200_000, file_delete_delay_ms: 0, ..visible_at_once() });
    (0..60).for_each(|seed| append(&log, &batch(seed, 1, 10_000)));
    let data = log.read_to_send(&params(0, 100_000)).unwrap();
    let range = data.file.clone().unwrap();
    let before = range.read().unwrap();
    dir.flush_now();
    log.delete_records(50).unwrap();
    dir.apply_retention(NOW);
    dir.tick(NOW + HOUR_MS);
    assert!(!root.path().join("topic-0/00000000000000000000.log").exists());
    assert_eq!(range.read().unwrap(), before);
}

#[test]
fn what_is_no_file_of_the_operating_system_is_read() {
    let dir = open(Arc::new(MemFs::new()), Path::new("/data"));
    let log = partition(&dir, visible_at_once());
    (0..30).for_each(|seed| append(&log, &batch(seed, 1, 10_000)));
    let data = log.read_to_send(&params(0, 1 << 20)).unwrap();
    assert!(data.file.is_none() && data.size > 300_000);
}
