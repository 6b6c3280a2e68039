//! The ordinary course of things, on the real file system.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use log::{
    AppendError, AppendParams, DirConfig, FetchData, Isolation, LogConfig, LogDir, OpenError, PartitionLog, ReadError,
    ReadParams, RealFs, SystemClock, TopicId, TopicPartition,
};
use wire::batch::{Batch, BatchBuilder};

const NOW: i64 = 1_700_000_000_000;

fn open(path: &Path) -> Arc<LogDir> {
    LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new(path)).unwrap()
}

fn batch(timestamp: i64, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        builder.append(timestamp, Some(b"k"), Some(value.as_bytes()), &[]);
    }
    builder.build().unwrap()
}

fn partition(dir: &LogDir, config: LogConfig) -> Arc<PartitionLog> {
    dir.create_partition(&TopicPartition::new("topic", 0), TopicId([7; 16]), config).unwrap()
}

fn wait_committed(partition: &PartitionLog, offset: i64) {
    let (sender, receiver) = mpsc::channel();
    partition.when_committed(offset, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
}

fn read(partition: &PartitionLog, from_offset: i64) -> Result<FetchData, ReadError> {
    let isolation = Isolation::HighWatermark;
    partition.read(&ReadParams { from_offset, max_bytes: 1 << 20, isolation, min_one_batch: true })
}

fn values(data: &FetchData) -> Vec<(i64, String)> {
    let batches = data.records.iter().flat_map(|bytes| Batch::iter(bytes).map(Result::unwrap).collect::<Vec<_>>());
    let records = batches.flat_map(|batch| batch.records().unwrap().map(Result::unwrap).collect::<Vec<_>>());
    records.map(|r| (r.offset, String::from_utf8(r.value.unwrap().to_vec()).unwrap())).collect()
}

#[test]
fn what_is_appended_is_read_back_also_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(root.path());
    let log = partition(&dir, LogConfig::default());
    let first = log.append(&AppendParams::client(NOW), &batch(NOW, &["a", "b"])).unwrap();
    let second = log.append(&AppendParams::client(NOW), &batch(NOW, &["c"])).unwrap();
    assert_eq!((first.first_offset, first.last_offset, second.first_offset), (0, 1, 2));
    wait_committed(&log, second.next_offset());
    let all = [(0, "a".to_owned()), (1, "b".to_owned()), (2, "c".to_owned())];
    assert_eq!(values(&read(&log, 0).unwrap()), all);
    assert_eq!(values(&read(&log, 2).unwrap()), all[2..]);
    assert_eq!(read(&log, 3).unwrap().size, 0);
    assert!(matches!(read(&log, 4), Err(ReadError::OffsetOutOfRange { offset: 4, start: 0, end: 3 })));
    dir.close().unwrap();
    assert!(matches!(log.append(&AppendParams::client(NOW), &batch(NOW, &["d"])), Err(AppendError::Storage(_))));
    drop((dir, log));

    let dir = open(root.path());
    assert!(dir.was_clean());
    let log = dir.partition(&TopicPartition::new("topic", 0)).unwrap();
    assert_eq!(log.topic_id(), TopicId([7; 16]));
    assert_eq!(values(&read(&log, 0).unwrap()), all);
    assert_eq!(log.append(&AppendParams::client(NOW), &batch(NOW, &["d"])).unwrap().first_offset, 3);
}

#[test]
fn a_second_process_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(root.path());
    let second = LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new(root.path()));
    assert!(matches!(second, Err(OpenError::Locked(_))));
    dir.close().unwrap();
    let config = DirConfig { node_id: 2, ..DirConfig::new(root.path()) };
    let foreign = LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), config);
    assert!(matches!(foreign, Err(OpenError::Foreign { .. })));
}

#[test]
fn many_segments_read_as_one_log() {
    let root = tempfile::tempdir().unwrap();
    let dir = open(root.path());
    let log = partition(&dir, LogConfig { segment_bytes: 1000, index_interval_bytes: 100, ..LogConfig::default() });
    for i in 0..200 {
        log.append(&AppendParams::client(NOW), &batch(NOW + i, &[&i.to_string(), "x"])).unwrap();
    }
    wait_committed(&log, 400);
    dir.close().unwrap();
    drop((dir, log));
    let dir = open(root.path());
    let log = dir.partition(&TopicPartition::new("topic", 0)).unwrap();
    let mut from = 0;
    while from < 400 {
        let data = read(&log, from).unwrap();
        assert!(data.size > 0 && data.next_offset > from);
        assert_eq!(values(&data)[0].0, from);
        from = data.next_offset;
    }
    for offset in 0..400 {
        let data = log
            .read(&ReadParams { from_offset: offset, max_bytes: 1, isolation: Isolation::LogEnd, min_one_batch: true })
            .unwrap();
        assert_eq!(values(&data)[0].0, offset / 2 * 2);
        assert_eq!(values(&data).len(), 2);
    }
    for i in [0, 1, 57, 199] {
        let found = log.offset_for_timestamp(NOW + i, Isolation::HighWatermark).unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (2 * i, NOW + i));
    }
    assert_eq!(log.offset_for_timestamp(NOW + 200, Isolation::HighWatermark).unwrap(), None);
    assert_eq!(log.offset_of_max_timestamp(Isolation::HighWatermark).unwrap().unwrap().offset, 398);
}

/// H-5 with `segment.jitter.ms`: segments begin anew after between `segment.ms` - jitter and `segment.ms`, each at its own time.
#[test]
fn segments_roll_by_their_age_less_some_jitter() {
    let roll_times = |segment_jitter_ms: i64| {
        let root = tempfile::tempdir().unwrap();
        let dir = open(root.path());
        let log = partition(&dir, LogConfig { segment_ms: 1000, segment_jitter_ms, ..LogConfig::default() });
        let segments = || {
            let names = std::fs::read_dir(root.path().join("topic-0")).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
        };
        let (mut began, mut ages) = (NOW, Vec::new());
        for time in (0..12_000).step_by(20).map(|ms| NOW + ms) {
            let before = segments();
            log.append(&AppendParams::client(time), &batch(time, &["x"])).unwrap();
            if before > 0 && segments() > before {
                ages.push(time - began);
                began = time;
            }
        }
        ages
    };
    assert!(roll_times(0).iter().all(|age| *age == 1020), "as soon as it is older");
    let ages = roll_times(500);
    assert!(ages.len() > 11 && ages.iter().all(|age| (500..=1020).contains(age)), "{ages:?}");
    assert!(ages.iter().any(|age| *age != ages[0]), "not all alike: {ages:?}");
    assert_eq!(ages, roll_times(500), "the same for the same segments");
}
