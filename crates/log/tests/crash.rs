//! Crashes at any point: what was acknowledged under `always` is there afterwards, and the log is a prefix of what was written.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use log::{
    AppendError, AppendParams, Clock, DirConfig, Faults, FlushPolicy, Isolation, LogConfig, LogDir, MemFs,
    PartitionLog, ReadParams, StorageError, TopicId, TopicPartition, TxnProtocol,
};
use proptest::prelude::*;
use wire::batch::{Batch, BatchBuilder, ControlType};

const NOW: i64 = 1_700_000_000_000;

struct TestClock;

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        NOW
    }
}

fn open(fs: &MemFs) -> Arc<LogDir> {
    let config =
        DirConfig { flush_threads: 0, snapshot_interval_bytes: 700, reserved_bytes: 0, ..DirConfig::new("/data") };
    LogDir::open(Arc::new(fs.clone()), Arc::new(TestClock), config).unwrap()
}

fn tp(partition: i32) -> TopicPartition {
    TopicPartition::new("topic", partition)
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 1500, index_interval_bytes: 200, ..LogConfig::default() }
}

fn partition(dir: &LogDir, number: i32) -> Arc<PartitionLog> {
    let log = dir.create_partition(&tp(number), TopicId([1; 16]), config()).unwrap();
    log.set_config(config());
    log
}

fn batch(values: &[String], producer: Option<(i64, i16, i32)>, transactional: bool) -> Bytes {
    let mut builder = BatchBuilder::new().transactional(transactional);
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(id, epoch, sequence);
    }
    for value in values {
        builder.append(NOW, Some(b"key"), Some(value.as_bytes()), &[]);
    }
    builder.build().unwrap()
}

/// Every record of the log as (offset, value); markers as "commit" and "abort".
fn contents(log: &PartitionLog) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    let marks = log.offsets().unwrap();
    let mut from = marks.log_start;
    while from < marks.log_end {
        let params =
            ReadParams { from_offset: from, max_bytes: 4096, isolation: Isolation::LogEnd, min_one_batch: true };
        let data = log.read(&params).unwrap();
        assert!(data.next_offset > from, "no progress at {from} of {marks:?}");
        for bytes in &data.records {
            for batch in Batch::iter(bytes) {
                let batch = batch.unwrap();
                batch.validate_crc().unwrap();
                for record in batch.records().unwrap() {
                    let record = record.unwrap();
                    let control = batch.header().attributes.is_control();
                    let value = match control {
                        true if record.key.as_deref() == Some(&[0, 0, 0, 1]) => "commit".to_owned(),
                        true => "abort".to_owned(),
                        false => String::from_utf8(record.value.unwrap().to_vec()).unwrap(),
                    };
                    all.push((record.offset, value));
                }
            }
        }
        from = data.next_offset;
    }
    all
}

#[derive(Debug, Clone)]
enum Op {
    Append {
        partition: i32,
        records: usize,
        size: usize,
    },
    Txn {
        partition: i32,
        commit: bool,
    },
    Flush,
    Tick,
    /// Deletes the first half of what is visible.
    Delete(i32),
    Retention,
    /// The machine fails.
    Crash(u64),
    /// The process ends.
    Kill,
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..2, 1usize..4, 0usize..300).prop_map(|(partition, records, size)| Op::Append { partition, records, size }),
        3 => (0..2, any::<bool>()).prop_map(|(partition, commit)| Op::Txn { partition, commit }),
        5 => Just(Op::Flush),
        2 => Just(Op::Tick),
        1 => (0..2).prop_map(Op::Delete),
        1 => Just(Op::Retention),
        1 => any::<u64>().prop_map(Op::Crash),
        1 => Just(Op::Kill),
        1 => Just(Op::Close),
    ]
}

#[derive(Default)]
struct Model {
    written: Vec<(i64, String)>,
    acknowledged: Arc<AtomicI64>,
    sequence: i32,
    epoch: i16,
    aborted: Vec<(i64, i64)>,
    /// The log start that was asked for; a crash may lose the newest.
    start: i64,
}

struct World {
    fs: MemFs,
    dir: Arc<LogDir>,
    models: [Model; 2],
    counter: usize,
    tick: i64,
}

impl World {
    fn log(&self, number: i32) -> Arc<PartitionLog> {
        partition(&self.dir, number)
    }

    fn append(&mut self, number: i32, values: Vec<String>, transactional: bool) -> i64 {
        let log = self.log(number);
        let model = &mut self.models[number as usize];
        let producer @ (id, epoch, sequence) = (100 + i64::from(number), model.epoch, model.sequence);
        let bytes = batch(&values, Some(producer), transactional);
        let mut params = AppendParams::client(NOW);
        if transactional {
            params.verification = log.begin_verification(id, epoch, sequence, true, NOW).unwrap();
        }
        let info = log.append(&params, &bytes).unwrap();
        assert_eq!(info.first_offset, model.written.last().map_or(0, |(offset, _)| offset + 1));
        let again = log.append(&params, &bytes).unwrap();
        assert_eq!((again.first_offset, again.duplicate), (info.first_offset, true));
        model.sequence += values.len() as i32;
        model.written.extend((info.first_offset..).zip(values));
        self.acknowledge(&log, number, info.next_offset());
        info.first_offset
    }

    fn acknowledge(&self, log: &PartitionLog, number: i32, offset: i64) {
        let acknowledged = self.models[number as usize].acknowledged.clone();
        let done = move |result: Result<(), StorageError>| {
            if result.is_ok() {
                acknowledged.fetch_max(offset, Ordering::SeqCst);
            }
        };
        log.when_committed(offset, Box::new(done));
    }

    fn txn(&mut self, number: i32, commit: bool) {
        self.counter += 1;
        let first = self.append(number, vec![format!("t{}", self.counter)], true);
        let log = self.log(number);
        assert!(log.offsets().unwrap().last_stable <= first);
        let model = &mut self.models[number as usize];
        let kind = if commit { ControlType::Commit } else { ControlType::Abort };
        model.epoch += 1;
        model.sequence = 0;
        let info = log.append_marker(kind, 100 + i64::from(number), model.epoch, 1, TxnProtocol::V2, NOW).unwrap();
        model.written.push((info.first_offset, if commit { "commit" } else { "abort" }.to_owned()));
        if !commit {
            model.aborted.push((first, info.first_offset));
        }
        self.acknowledge(&log, number, info.next_offset());
    }

    /// After `fs` came up again: compares with the model, and goes on with what is left.
    fn restart(&mut self, fs: MemFs, all: bool) {
        self.fs = fs;
        self.dir = open(&self.fs);
        for number in 0..2 {
            let log = self.log(number);
            let found = contents(&log);
            let model = &mut self.models[number as usize];
            let acknowledged = model.acknowledged.load(Ordering::SeqCst);
            let marks = log.offsets().unwrap();
            let end = marks.log_end;
            assert!(marks.log_start <= model.start);
            let offset_in = |offset: &i64| (marks.log_start..end).contains(offset);
            // A batch may begin before the log start.
            let found: Vec<_> = found.into_iter().filter(|(offset, _)| offset_in(offset)).collect();
            let expected: Vec<_> = model.written.iter().filter(|(offset, _)| offset_in(offset)).cloned().collect();
            assert_eq!(found, expected, "the log is a prefix");
            model.start = marks.log_start;
            assert!(end >= acknowledged, "acknowledged {acknowledged}, found {end}");
            if all {
                assert_eq!(end, model.written.last().map_or(0, |(offset, _)| offset + 1));
            }
            model.written.retain(|(offset, _)| *offset < end);
            model.aborted.retain(|(_, marker)| *marker < end);
            check_aborted(&log, model, end);
            let known = log.producers().unwrap();
            match known.first() {
                Some(info) => {
                    (model.epoch, model.sequence) = (info.producer_epoch, info.last_sequence + 1);
                    if let Some(first) = info.txn_start_offset {
                        // A crash between data and marker: end it, as the coordinator would.
                        model.epoch += 1;
                        model.sequence = 0;
                        let marker = log
                            .append_marker(ControlType::Abort, info.producer_id, model.epoch, 1, TxnProtocol::V2, NOW)
                            .unwrap();
                        model.written.push((marker.first_offset, "abort".to_owned()));
                        model.aborted.push((first, marker.first_offset));
                    }
                }
                None => (model.epoch, model.sequence) = (0, 0),
            }
        }
    }
}

fn check_aborted(log: &PartitionLog, model: &Model, end: i64) {
    if end == 0 || log.offsets().unwrap().last_stable < end {
        return;
    }
    let log_start = log.offsets().unwrap().log_start;
    let mut from = log_start;
    let mut seen = Vec::new();
    while from < end {
        let params =
            ReadParams { from_offset: from, max_bytes: 1, isolation: Isolation::LastStable, min_one_batch: true };
        let data = log.read(&params).unwrap();
        let aborted = data.aborted_transactions.unwrap();
        // Of one whose records were deleted only the marker can be left, of which no reader has to be told; recovery may not find out.
        for (first, marker) in model.aborted.iter().filter(|(_, marker)| *marker > log_start) {
            let overlaps = *first < data.next_offset && *marker >= from;
            assert_eq!(aborted.iter().any(|txn| txn.first_offset == *first), overlaps, "{first} {marker} at {from}");
        }
        seen.extend(aborted.iter().map(|txn| txn.first_offset));
        from = data.next_offset;
    }
    let known = |first: &i64| model.aborted.iter().any(|(known, _)| known == first);
    assert!(seen.iter().all(known), "{seen:?} {:?} {:?} {:?}", model.aborted, model.written, log.offsets());
}

fn run(ops: Vec<Op>) {
    let fs = MemFs::new();
    let dir = open(&fs);
    let mut world = World { fs, dir, models: Default::default(), counter: 0, tick: 0 };
    for op in ops {
        match op {
            Op::Append { partition, records, size } => {
                world.counter += 1;
                let counter = world.counter;
                let values = (0..records).map(|i| format!("{counter}.{i}.{}", "x".repeat(size))).collect();
                world.append(partition, values, false);
            }
            Op::Txn { partition, commit } => world.txn(partition, commit),
            Op::Flush => world.dir.flush_now(),
            Op::Tick => {
                world.tick += 2000;
                world.dir.tick(NOW + world.tick);
            }
            Op::Delete(partition) => {
                let log = world.log(partition);
                let marks = log.offsets().unwrap();
                let start = log.delete_records((marks.log_start + marks.high_watermark) / 2).unwrap();
                world.models[partition as usize].start = start;
            }
            Op::Retention => world.dir.apply_retention(NOW),
            Op::Crash(seed) => world.restart(world.fs.crash(seed), false),
            Op::Kill => world.restart(world.fs.restart(), true),
            Op::Close => {
                world.dir.close().unwrap();
                world.restart(world.fs.crash(1), true);
                assert!(world.dir.was_clean());
            }
        }
    }
    world.dir.flush_now();
    world.restart(world.fs.crash(7), true);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_data_survives_and_the_log_is_a_prefix(ops in proptest::collection::vec(op(), 1..60)) {
        run(ops);
    }
}

fn read_all(log: &PartitionLog) -> usize {
    contents(log).len()
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    let bytes = batch(&["v".repeat(400)], None, false);
    log.append(&AppendParams::client(NOW), &bytes).unwrap();
    dir.flush_now();
    dir.checkpoint().unwrap();
    fs.set_faults(Faults { capacity: Some(1100), ..Faults::default() });
    let mut count = 1;
    let error = loop {
        match log.append(&AppendParams::client(NOW), &bytes) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AppendError::Storage(StorageError::NoSpace)), "{error}");
    assert_eq!(error.code(), 56);
    dir.flush_now();
    assert_eq!(read_all(&log), count);
    assert_eq!(log.offline_reason(), None);
    // The process comes up on a full disk, too.
    let after = fs.restart();
    after.set_faults(Faults { capacity: Some(1100), ..Faults::default() });
    let dir = open(&after);
    let log = partition(&dir, 0);
    assert_eq!(read_all(&log), count);
    assert!(log.append(&AppendParams::client(NOW + 5000), &bytes).is_err());
    after.set_faults(Faults::default());
    assert_eq!(log.append(&AppendParams::client(NOW + 10_000), &bytes).unwrap().first_offset, count as i64);
    dir.flush_now();
    assert_eq!(read_all(&log), count + 1);
}

#[test]
fn a_failed_sync_is_never_answered_with_success() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    let first = log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false)).unwrap();
    dir.flush_now();
    fs.set_faults(Faults { fail_syncs: true, ..Faults::default() });
    let second = log.append(&AppendParams::client(NOW), &batch(&["b".to_owned()], None, false)).unwrap();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let sink = answers.clone();
    log.when_committed(second.next_offset(), Box::new(move |result| sink.lock().unwrap().push(result.is_ok())));
    dir.flush_now();
    assert_eq!(*answers.lock().unwrap(), [false]);
    fs.set_faults(Faults::default());
    let refused = log.append(&AppendParams::client(NOW), &batch(&["c".to_owned()], None, false));
    assert!(matches!(refused, Err(AppendError::Storage(StorageError::Offline(_)))));
    // A restart finds what was acknowledged, and nothing that the disk may not have.
    let dir = open(&fs.restart());
    let log = partition(&dir, 0);
    assert_eq!(log.offsets().unwrap().log_end, first.next_offset());
    assert_eq!(log.append(&AppendParams::client(NOW), &batch(&["d".to_owned()], None, false)).unwrap().first_offset, 1);
}

/// Found by the disk simulation (seed 4): who closes has to learn that something that was written is not there any more.
#[test]
fn a_close_whose_sync_fails_says_so_and_the_partition_stays_offline() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    // So that the checkpoints are written before the fault: the sync of the partition is all that fails.
    dir.checkpoint().unwrap();
    log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false)).unwrap();
    fs.set_faults(Faults { fail_syncs: true, ..Faults::default() });
    dir.flush_now();
    fs.set_faults(Faults::default());
    let closed = dir.close();
    assert!(matches!(closed, Err(StorageError::Offline(_))), "{closed:?}");
    assert!(log.offline_reason().is_some());
    let dir = open(&fs.restart());
    assert!(!dir.was_clean());
    assert_eq!(partition(&dir, 0).offsets().unwrap().log_end, 0);
}

/// The owner is told once, and only of what is a failure.
#[test]
fn a_failed_directory_is_reported_and_a_full_one_is_not() {
    let reports = |faults: Option<Faults>| {
        let fs = MemFs::new();
        let dir = open(&fs);
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        dir.set_failure_listener(Arc::new(move |reason| sink.lock().unwrap().push(reason.to_owned())));
        let logs = [partition(&dir, 0), partition(&dir, 1)];
        match faults {
            Some(faults) => fs.set_faults(faults),
            None => log::Fs::remove_dir_all(&fs, Path::new("/data")).unwrap(),
        }
        for log in &logs {
            _ = log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false));
        }
        dir.flush_now();
        dir.tick(NOW);
        let told = told.lock().unwrap();
        told.len()
    };
    assert_eq!(reports(Some(Faults { fail_writes: true, ..Faults::default() })), 1);
    assert_eq!(reports(Some(Faults { fail_syncs: true, ..Faults::default() })), 1);
    assert_eq!(reports(None), 1);
    assert_eq!(reports(Some(Faults { capacity: Some(0), ..Faults::default() })), 0);
    assert_eq!(reports(Some(Faults::default())), 0);
}

#[test]
fn a_failed_write_takes_the_partition_offline_without_harm() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false)).unwrap();
    dir.flush_now();
    fs.set_faults(Faults { fail_writes: true, ..Faults::default() });
    let error = log.append(&AppendParams::client(NOW), &batch(&["b".to_owned()], None, false)).unwrap_err();
    assert_eq!(error.code(), 56);
    assert!(log.offline_reason().is_some());
    let dir = open(&fs.restart());
    assert_eq!(contents(&partition(&dir, 0)), [(0, "a".to_owned())]);
}

#[test]
fn one_sync_serves_all_that_came_in_meanwhile() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    let before = fs.syncs();
    let done = Arc::new(AtomicI64::new(0));
    for i in 0..5 {
        let info = log.append(&AppendParams::client(NOW), &batch(&[i.to_string()], None, false)).unwrap();
        let done = done.clone();
        log.when_committed(info.next_offset(), Box::new(move |_| _ = done.fetch_add(1, Ordering::SeqCst)));
    }
    assert_eq!(done.load(Ordering::SeqCst), 0);
    assert_eq!(log.offsets().unwrap().high_watermark, 0);
    dir.flush_now();
    assert_eq!(done.load(Ordering::SeqCst), 5);
    assert_eq!(log.offsets().unwrap().high_watermark, 5);
    // The log file, and once per epoch the epochs' file.
    assert!(fs.syncs() - before <= 3, "{}", fs.syncs() - before);
}

#[test]
fn other_policies_answer_at_once_and_sync_by_time() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    log.set_config(LogConfig { flush: FlushPolicy::IntervalMs(500), ..config() });
    dir.flush_now();
    let info = log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false)).unwrap();
    let answered = Arc::new(AtomicI64::new(0));
    let sink = answered.clone();
    log.when_committed(info.next_offset(), Box::new(move |_| sink.store(1, Ordering::SeqCst)));
    assert_eq!(answered.load(Ordering::SeqCst), 1);
    assert_eq!(log.offsets().unwrap().high_watermark, 1);
    dir.tick(NOW + 499);
    dir.flush_now();
    assert_eq!(log.offsets().unwrap().durable, 0);
    dir.tick(NOW + 500);
    dir.flush_now();
    assert_eq!(log.offsets().unwrap().durable, 1);
}

/// ST-06: whatever happens to the end of the active segment while the broker is down, it starts, keeps all before the damage, and hands
/// out nothing unsound.
#[test]
fn damage_at_the_end_is_cut_off() {
    use log::{Fs, OpenMode};
    let path = Path::new("/data/topic-0/00000000000000000000.log");
    let index = Path::new("/data/topic-0/00000000000000000000.index");
    type Damage = fn(&dyn log::File, u64);
    let damages: [Damage; 8] = [
        |file, len| file.truncate(len - 1).unwrap(),
        |file, len| file.truncate(len - 60).unwrap(),
        |file, len| file.write_at(&[0xff], len - 1).unwrap(),
        |file, len| file.write_at(&[0; 40], len).unwrap(),
        |file, len| {
            file.write_at(b"garbage after the end, more than a header of a batch has, so that it is looked at", len)
                .unwrap()
        },
        |file, len| file.write_at(&[0x7f, 0xff, 0xff, 0xff], len - 75 + 8).unwrap(),
        |file, len| file.write_at(&[9], len - 75 + 16).unwrap(),
        |file, _| file.truncate(0).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        for clean in [true, false] {
            let fs = MemFs::new();
            let dir = open(&fs);
            let log = partition(&dir, 0);
            let bytes = batch(&["0123".to_owned()], None, false);
            assert_eq!(bytes.len(), 75);
            for _ in 0..10 {
                log.append(&AppendParams::client(NOW), &bytes).unwrap();
            }
            dir.flush_now();
            if clean {
                dir.close().unwrap()
            } else {
                dir.checkpoint().unwrap()
            }
            let fs = fs.restart();
            let file = fs.open(path, OpenMode::Existing).unwrap();
            damage(&*file, file.len().unwrap());
            if number % 2 == 0 && fs.open(index, OpenMode::Existing).is_ok() {
                fs.remove_file(index).unwrap();
            }
            let dir = open(&fs);
            let log = partition(&dir, 0);
            let left = contents(&log);
            assert!(number == 7 || left.len() >= 9, "damage {number}: {left:?}");
            let next = log.append(&AppendParams::client(NOW), &bytes).unwrap();
            assert_eq!(next.first_offset, left.len() as i64);
            dir.flush_now();
            assert_eq!(contents(&log).len(), left.len() + 1);
        }
    }
}

/// A directory that cannot be renamed is removed; one that can neither way stays a partition, so that nobody finds its records under
/// another topic's name.
#[test]
fn a_deletion_that_fails_leaves_the_partition() {
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    log.append(&AppendParams::client(NOW), &batch(&["a".to_owned()], None, false)).unwrap();
    dir.flush_now();
    fs.set_faults(Faults { fail_directories: true, ..Faults::default() });
    assert!(dir.delete_partition(&tp(0)).is_err());
    assert!(dir.create_partition(&tp(0), TopicId([2; 16]), config()).is_err());
    assert_eq!(contents(&log), [(0, "a".to_owned())]);
    fs.set_faults(Faults::default());
    assert!(dir.delete_partition(&tp(0)).unwrap());
    let new = dir.create_partition(&tp(0), TopicId([2; 16]), config()).unwrap();
    assert_eq!(new.offsets().unwrap().log_end, 0);
}

/// ST-06 in the middle: the partition serves what is around the damage, and says where it is.
#[test]
fn damage_in_the_middle_is_reported_with_its_place() {
    use log::{Fs, OpenMode, ReadError};
    let fs = MemFs::new();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    let bytes = batch(&["0123".to_owned()], None, false);
    for _ in 0..18 {
        log.append(&AppendParams::client(NOW), &bytes).unwrap();
    }
    dir.flush_now();
    dir.close().unwrap();
    let fs = fs.restart();
    let file = fs.open(Path::new("/data/topic-0/00000000000000000000.log"), OpenMode::Existing).unwrap();
    let last_of_4 = 5 * bytes.len() as u64 - 1;
    file.write_at(&[0xff], last_of_4).unwrap();
    let dir = open(&fs);
    let log = partition(&dir, 0);
    assert_eq!(log.offsets().unwrap().log_end, 18);
    let read = |from_offset| {
        log.read(&ReadParams { from_offset, max_bytes: 200, isolation: Isolation::HighWatermark, min_one_batch: true })
    };
    for offset in (0..4).chain(5..18) {
        assert_eq!(
            read(offset).map(|data| data.size > 0).map_err(|error| error.to_string()),
            Ok(true),
            "offset {offset}"
        );
    }
    match read(4) {
        Err(ReadError::Storage(StorageError::Damaged { partition, offset: 4, .. })) => assert_eq!(partition, "topic-0"),
        other => panic!("{other:?}"),
    }
    assert_eq!(log.append(&AppendParams::client(NOW), &bytes).unwrap().first_offset, 18);
}
