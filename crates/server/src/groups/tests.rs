//! What the host adds to the coordinator: loading, failing, loading again.

use std::time::Instant;

use coordinator::runtime::Unavailable;
use coordinator::{Caller, RawRecord, TopicMetadata};
use log::{
    AppendParams, DirConfig, Isolation, LogConfig, LogDir, ReadParams, RealFs, SystemClock, TopicId, TopicPartition,
};
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};

use super::*;

const SHARDS: i32 = 2;
const PATIENCE: Duration = Duration::from_secs(20);

struct Bench {
    logs: Arc<LogDir>,
    groups: Groups,
    _dir: tempfile::TempDir,
}

fn offsets_log(logs: &LogDir, number: i32) -> Arc<PartitionLog> {
    let partition = TopicPartition::new("__consumer_offsets", number);
    let config = LogConfig { compact: true, delete: false, ..LogConfig::default() };
    logs.create_partition(&partition, TopicId([1; 16]), config).unwrap()
}

async fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let logs = LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new(dir.path())).unwrap();
    let mut image = TopicImage::default();
    image.insert("t".into(), TopicMetadata { id: Uuid([7; 16]), partitions: 1, rack: None });
    let world = World { topics: Arc::new(image), version: 0, config: Arc::default() };
    let create: CreateInternalTopics = Arc::new(|_| Box::pin(async { CreationOutcome::default() }));
    let partitions: Vec<_> = (0..SHARDS).map(|number| offsets_log(&logs, number)).collect();
    let groups =
        Groups::new(partitions.len(), world, Clock::start(), create, Arc::default(), Journal::open(dir.path()).0);
    groups.serve(partitions);
    let hosted = groups.clone();
    logs.set_listener(Arc::new(move |partition, event| hosted.log_moved(partition.partition, event)));
    assert!(groups.loaded(PATIENCE).await);
    Bench { logs, groups, _dir: dir }
}

impl Bench {
    fn log_of(&self, group: &str) -> Arc<PartitionLog> {
        offsets_log(&self.logs, self.groups.partition_of(group))
    }
}

fn caller() -> Caller {
    Caller { client_id: "c".into(), client_host: "/127.0.0.1".into(), api_version: 8 }
}

async fn commit(groups: &Groups, group: &str, offset: i64) -> Result<(), Unavailable> {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest { group_id: KStr::copy(group), topics: vec![topic], ..Default::default() };
    match groups.call(group, Command::OffsetCommit(caller(), Box::new(request))).await? {
        Reply::OffsetCommit(reply) => assert_eq!(reply.topics[0].partitions[0].error_code, 0),
        other => panic!("another reply: {other:?}"),
    }
    Ok(())
}

async fn committed(groups: &Groups, group: &str) -> Result<i64, Unavailable> {
    let topics = OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let asked =
        OffsetFetchRequestGroup { group_id: KStr::copy(group), topics: Some(vec![topics]), ..Default::default() };
    let command = Command::OffsetFetch { caller: caller(), group: Box::new(asked), require_stable: false };
    match groups.call(group, command).await? {
        Reply::OffsetFetch(reply) => Ok(reply.topics[0].partitions[0].committed_offset),
        other => panic!("another reply: {other:?}"),
    }
}

/// All batches of a log, one after the other.
fn batches(log: &PartitionLog) -> Vec<wire::batch::Batch> {
    let params = ReadParams { from_offset: 0, max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_batch: true };
    let read = log.read(&params).unwrap();
    read.records.iter().flat_map(wire::batch::Batch::iter).map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn r_7_a_reply_waits_until_its_records_are_on_disk() {
    let bench = bench().await;
    for offset in 1..20 {
        commit(&bench.groups, "g", offset).await.unwrap();
        let offsets = bench.log_of("g").offsets().unwrap();
        assert!(offsets.log_end >= offset && offsets.durable == offsets.log_end);
        assert_eq!(committed(&bench.groups, "g").await, Ok(offset));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_whose_log_somebody_else_wrote_to_loads_it_again() {
    let bench = bench().await;
    commit(&bench.groups, "g", 42).await.unwrap();
    let log = bench.log_of("g");
    let before = log.offsets().unwrap().log_end;
    // Another owner writes what this one has written, once more.
    for batch in batches(&log) {
        log.append(&AppendParams::coordinator(1), batch.bytes()).unwrap();
    }
    let others = log.offsets().unwrap().log_end;
    assert!(others > before);
    assert_eq!(commit(&bench.groups, "g", 43).await, Err(Unavailable::NotCoordinator));
    let started = Instant::now();
    while let Err(why) = commit(&bench.groups, "g", 44).await {
        assert!(matches!(why, Unavailable::Loading | Unavailable::NotCoordinator), "{why:?}");
        assert!(started.elapsed() < PATIENCE, "it is never loaded again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(committed(&bench.groups, "g").await, Ok(44));
    assert_eq!(log.offsets().unwrap().log_end, others + 1, "what was refused is not in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_whose_log_is_gone_says_so_and_leaves_the_others_alone() {
    let bench = bench().await;
    let on = |partition| {
        let names = (0..).map(|i| format!("g{i}"));
        names.into_iter().find(|name| bench.groups.partition_of(name) == partition).unwrap()
    };
    let (lost, other) = (on(0), on(1));
    commit(&bench.groups, &lost, 1).await.unwrap();
    commit(&bench.groups, &other, 1).await.unwrap();
    bench.logs.delete_partition(&TopicPartition::new("__consumer_offsets", 0)).unwrap();
    assert_eq!(commit(&bench.groups, &lost, 2).await, Err(Unavailable::NotCoordinator));
    commit(&bench.groups, &other, 2).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_coordinator_answers_and_stays_closed() {
    let bench = bench().await;
    bench.groups.close();
    assert_eq!(commit(&bench.groups, "g", 1).await, Err(Unavailable::NotCoordinator));
    bench.groups.log_moved(bench.groups.partition_of("g"), log::Event::Offline);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(commit(&bench.groups, "g", 1).await, Err(Unavailable::NotCoordinator));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_those_of_kafkas_coordinator() {
    let bench = bench().await;
    commit(&bench.groups, "g", 1).await.unwrap();
    for batch in batches(&bench.log_of("g")) {
        let header = batch.header();
        let producer = (header.producer_id, header.producer_epoch, header.base_sequence);
        assert_eq!((header.attributes.0, producer), (0, (-1, -1, -1)));
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            let raw = RawRecord { key: record.key.unwrap(), value: record.value };
            assert!(coordinator::Record::decode(&raw).unwrap().is_some());
            assert_eq!(record.timestamp, header.max_timestamp);
            assert!(record.headers.is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_waited_for_the_shard_is_told_the_time_at_which_it_runs() {
    let now_ms = || Clock::start().wall_ms();
    let bench = bench().await;
    let (locked, is_locked) = std::sync::mpsc::channel();
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    let groups = bench.groups.clone();
    // What new shards are told is changed first, then the shards are in turn; the first of them is held.
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let holder = std::thread::spawn(move || {
        groups.0.change_world(|_| {
            if calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
                let _ = locked.send(());
                let _ = is_released.recv();
            }
        });
    });
    is_locked.recv().unwrap();
    let group = (0..).map(|i| format!("g{i}")).find(|name| bench.groups.partition_of(name) == 0).unwrap();
    let (groups, asked) = (bench.groups.clone(), group.clone());
    let committing = tokio::spawn(async move { commit(&groups, &asked, 1).await });
    // Time for the command to come to the lock.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let released_ms = now_ms();
    drop(release);
    committing.await.unwrap().unwrap();
    holder.join().unwrap();
    let written_ms = batches(&bench.log_of(&group)).remove(0).header().max_timestamp;
    assert!(written_ms >= released_ms, "it ran after {released_ms}, and was told {written_ms}");
}
