use log::{DirConfig, LogConfig, LogDir, RealFs, SystemClock, TopicId, TopicPartition};

use super::*;

fn record(key: &'static str, value: Option<&'static str>) -> RawRecord {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    RawRecord { key: bytes(key), value: value.map(bytes) }
}

#[test]
fn batches_are_those_of_kafkas_coordinator_and_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let logs = LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new(dir.path())).unwrap();
    let partition = TopicPartition::new("__consumer_offsets", 0);
    let log = logs.create_partition(&partition, TopicId([1; 16]), LogConfig::default()).unwrap();
    let mut state_log = PartitionStateLog::new(log.clone(), Arc::default());
    let plain = [record("a", Some("1")), record("b", None)];
    let producer = Producer { id: 9, epoch: 3 };
    let marker = EndMarker { producer, commit: true, coordinator_epoch: 0, raises_epoch: false };
    assert_eq!(state_log.append(0, 0, 1000, None, &plain), Ok(2));
    assert_eq!(state_log.append(0, 2, 1001, Some(producer), &[record("c", Some("2"))]), Ok(3));
    assert_eq!(state_log.append_marker(0, 3, 1002, &marker), Ok(4));
    assert_eq!(state_log.append(0, 3, 1003, None, &plain), Err(LogError::Fenced));

    let params = ReadParams { from_offset: 0, max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_batch: true };
    let read = log.read(&params).unwrap();
    let headers: Vec<_> = read.records.iter().flat_map(Batch::iter).map(|batch| *batch.unwrap().header()).collect();
    let seen: Vec<_> = headers
        .iter()
        .map(|h| (h.attributes.0, h.producer_id, h.producer_epoch, h.base_sequence, h.max_timestamp))
        .collect();
    assert_eq!(seen, [(0, -1, -1, -1, 1000), (0x10, 9, 3, -1, 1001), (0x30, 9, 3, -1, 1002)]);

    let mut loaded = Vec::new();
    assert_eq!(state_log.load(&mut |entry| loaded.push(entry)), Ok((0, 4)));
    let at = |offset, timestamp_ms, producer, record| LogEntry::Record { offset, timestamp_ms, producer, record };
    assert_eq!(
        loaded,
        [
            at(0, 1000, None, record("a", Some("1"))),
            at(1, 1000, None, record("b", None)),
            at(2, 1001, Some(producer), record("c", Some("2"))),
            LogEntry::Marker { offset: 3, producer, commit: true },
        ]
    );
}

#[test]
fn what_the_log_refuses_cleanly_leaves_the_shard_alone() {
    use log::AppendError;
    for (error, expected) in [
        (AppendError::TooLarge { size: 2, limit: 1 }, LogError::TooLarge),
        (AppendError::LargerThanSegment { size: 2, limit: 1 }, LogError::TooLarge),
        (AppendError::Storage(StorageError::NoSpace), LogError::NoSpace),
        (AppendError::UnexpectedEnd { expected: 1, end: 2 }, LogError::Fenced),
        (AppendError::InvalidProducerEpoch { producer_id: 1, got: 0, current: 1 }, LogError::Refused(47)),
    ] {
        assert_eq!(append_error(error), expected);
    }
    assert!(!append_error(AppendError::Storage(StorageError::Closed)).is_clean());
}
