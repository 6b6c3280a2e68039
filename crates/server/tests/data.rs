//! The ends of logs as clients see them, over real sockets: ListOffsets, DeleteRecords (L-rules), log directories.

mod common;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Client, PATIENCE, TestBroker};
use wire::KStr;
use wire::batch::{BatchBuilder, Compression};
use wire::messages::alter_replica_log_dirs_request::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use wire::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use wire::messages::describe_producers_request::{DescribeProducersRequest, TopicRequest};
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use wire::messages::list_offsets_response::ListOffsetsPartitionResponse;
use wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};

const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;

/// A broker that syncs everything, with topic `t` of one partition.
async fn topic() -> (TestBroker, Client) {
    topic_with(&[]).await
}

async fn topic_with(settings: &[(&str, &str)]) -> (TestBroker, Client) {
    let always = [("offsets.topic.num.partitions", "1"), ("log.flush.policy", "always")];
    let broker = TestBroker::start(&[&always, settings].concat()).await;
    let mut client = broker.connect().await;
    let topic =
        CreatableTopic { name: KStr::from("t"), num_partitions: 1, replication_factor: -1, ..Default::default() };
    let created = client.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() }).await;
    assert_eq!(created.topics[0].error_code, 0);
    (broker, client)
}

/// One record with acks=1; its offset.
async fn produce(client: &mut Client) -> i64 {
    let mut batch = BatchBuilder::new();
    batch.append(1_000, None, Some(b"value"), &[]);
    produce_batch(client, batch).await
}

async fn produce_batch(client: &mut Client, batch: BatchBuilder) -> i64 {
    let answer =
        client.call(12, &produce_request("t", 1, batch)).await.responses.remove(0).partition_responses.remove(0);
    assert_eq!(answer.error_code, 0);
    answer.base_offset
}

async fn list(client: &mut Client, version: i16, timestamp: i64) -> ListOffsetsPartitionResponse {
    let partition = ListOffsetsPartition { partition_index: 0, current_leader_epoch: -1, timestamp };
    let topic = ListOffsetsTopic { name: KStr::from("t"), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    client.call(version, &request).await.topics.remove(0).partitions.remove(0)
}

#[tokio::test]
async fn l_3_every_version_is_answered_and_has_an_epoch_from_4_on() {
    let (_broker, mut client) = topic().await;
    produce(&mut client).await;
    for version in 1..=11 {
        for (timestamp, offset) in [(LATEST, 1), (-2, 0), (1_000, 0)] {
            let found = list(&mut client, version, timestamp).await;
            assert_eq!((found.error_code, found.offset), (0, offset), "version {version}, {timestamp}");
            assert_eq!(found.leader_epoch, if version >= 4 { 0 } else { -1 }, "version {version}, {timestamp}");
        }
    }
}

/// L-1: what a version does not know is refused, whatever the partition.
#[tokio::test]
async fn l_1_timestamps_of_later_versions_are_refused_first() {
    let (_broker, mut client) = topic().await;
    for (timestamp, from) in [(-3, 7), (-4, 8), (-5, 9), (-6, 11)] {
        for (version, partition, code) in [(from - 1, 0, 35), (from - 1, 9, 35), (from, 0, 0), (from, 9, 3)] {
            let partition = ListOffsetsPartition { partition_index: partition, current_leader_epoch: -1, timestamp };
            let described = format!("version {version} {partition:?}");
            let topic = ListOffsetsTopic { name: KStr::from("t"), partitions: vec![partition] };
            let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
            let answer = client.call(version, &request).await.topics.remove(0).partitions.remove(0);
            assert_eq!(answer.error_code, code, "{described}");
        }
    }
    assert_eq!(list(&mut client, 11, -7).await.error_code, 35);
}

/// U-3, U-8: exactly one complete batch of the present format; what comes after it and is none is left out.
#[tokio::test]
async fn u_3_a_partition_takes_one_batch() {
    let (_broker, mut client) = topic().await;
    let mut batch = BatchBuilder::new();
    batch.append(1_000, None, Some(b"value"), &[]);
    let batch = batch.build().expect("a batch").to_vec();
    let with = |at: usize, byte: u8| {
        let mut changed = batch.clone();
        changed[at] = byte;
        changed
    };
    let length = batch[11];
    let mut next = 0;
    for (what, records, code, log_start) in [
        ("one", batch.clone(), 0, 0),
        ("nothing", Vec::new(), 87, -1),
        ("a part", batch[..batch.len() - 1].to_vec(), 87, -1),
        ("less than a header", batch[..16].to_vec(), 87, -1),
        ("two", [batch.clone(), batch.clone()].concat(), 87, -1),
        ("one and a part", [&batch[..], &batch[..40]].concat(), 0, 0),
        ("one and what is no batch", [&batch[..], &[0; 12]].concat(), 2, -1),
        ("a length below all formats", with(11, 13), 2, -1),
        ("a length that leaves a byte over", with(11, length - 1), 2, -1),
        ("an older format", with(16, 1), 87, -1),
        ("a format that nobody knows", with(16, 3), 2, -1),
        ("a wrong checksum", with(17, !batch[17]), 2, -1),
        ("one more", batch.clone(), 0, 0),
    ] {
        let partition = PartitionProduceData { index: 0, records: Some(records.into()), ..Default::default() };
        let topic = TopicProduceData { name: KStr::from("t"), partition_data: vec![partition], ..Default::default() };
        let request = ProduceRequest { acks: -1, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() };
        let answer = client.call(12, &request).await.responses.remove(0).partition_responses.remove(0);
        let offset = if code == 0 { next } else { -1 };
        let told = (answer.error_code, answer.base_offset, answer.log_start_offset);
        assert_eq!(told, (code, offset, log_start), "{what}");
        next += i64::from(code == 0);
    }
    assert_eq!(list(&mut client, 11, LATEST).await.offset, next);
}

/// Of partition `t-0`, or of one of a topic that there is not.
fn produce_request(topic: &str, acks: i16, records: BatchBuilder) -> ProduceRequest {
    let records = Some(records.build().expect("a batch"));
    let partition = PartitionProduceData { index: 0, records, ..Default::default() };
    let topic = TopicProduceData { name: KStr::copy(topic), partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() }
}

/// PR-05, U-3: old clients cannot read zstd, so none of them may have written it.
#[tokio::test]
async fn pr_05_zstd_needs_version_7() {
    let (_broker, mut client) = topic().await;
    for (version, code) in [(3, 76), (6, 76), (7, 0), (12, 0)] {
        let mut batch = BatchBuilder::new().compression(Compression::Zstd);
        batch.append(1_000, None, Some(b"value"), &[]);
        let answer = client.call(version, &produce_request("t", 1, batch)).await;
        assert_eq!(answer.responses[0].partition_responses[0].error_code, code, "version {version}");
    }
}

/// PR-07, U-6: whoever wants no answer gets none, and learns of a failure by the end of the connection.
#[tokio::test]
async fn pr_07_without_acks_only_the_connection_tells() {
    let (broker, mut client) = topic().await;
    let batch = || {
        let mut batch = BatchBuilder::new();
        batch.append(1_000, None, Some(b"value"), &[]);
        batch
    };
    client.send(12, &produce_request("t", 0, batch())).await;
    // The next answer is that to the next request.
    let started = Instant::now();
    while list(&mut client, 11, LATEST).await.offset != 1 {
        assert!(started.elapsed() < PATIENCE, "the record never comes");
    }
    client.send(12, &produce_request("none", 0, batch())).await;
    assert!(client.is_closed().await);
    assert_eq!(list(&mut broker.connect().await, 11, LATEST).await.offset, 1);
}

/// OE-01.
#[tokio::test]
async fn oe_01_the_end_of_a_leader_epoch() {
    let (_broker, mut client) = topic().await;
    produce(&mut client).await;
    for (leader_epoch, current_leader_epoch, code, epoch, end) in
        [(0, -1, 0, 0, 1), (1, -1, 0, -1, -1), (-1, -1, 0, -1, -1), (0, 0, 0, 0, 1), (0, 5, 75, -1, -1)]
    {
        let partition = OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch };
        let topic = OffsetForLeaderTopic { topic: "t".into(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
        let answer = client.call(4, &request).await.topics.remove(0).partitions.remove(0);
        let told = (answer.error_code, answer.leader_epoch, answer.end_offset);
        assert_eq!(told, (code, epoch, end), "epoch {leader_epoch}, current {current_leader_epoch}");
    }
}

#[tokio::test]
async fn r_6_who_has_the_answer_to_a_write_finds_it_at_once() {
    let (_broker, mut client) = topic().await;
    // Each write is acknowledged before it is synced: one of so many would be missed.
    for _ in 0..30 {
        let offset = produce(&mut client).await;
        assert_eq!(list(&mut client, 11, LATEST).await.offset, offset + 1);
        let offset = produce(&mut client).await;
        assert_eq!(list(&mut client, 11, 1_000).await.offset, 0, "{offset}");
        assert_eq!(list(&mut client, 11, MAX_TIMESTAMP).await.error_code, 0);
    }
}

#[tokio::test]
async fn l_6_records_that_were_acknowledged_can_be_deleted_at_once() {
    let (_broker, mut client) = topic().await;
    for _ in 0..30 {
        let offset = produce(&mut client).await + 1;
        let partition = DeleteRecordsPartition { partition_index: 0, offset };
        let topic = DeleteRecordsTopic { name: KStr::from("t"), partitions: vec![partition] };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1_000 };
        let deleted = client.call(2, &request).await.topics.remove(0).partitions.remove(0);
        assert_eq!((deleted.error_code, deleted.low_watermark), (0, offset));
    }
}

#[tokio::test]
async fn a_partition_can_be_moved_to_the_directory_that_it_is_in_and_to_no_other() {
    const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    const LOG_DIR_NOT_FOUND: i16 = 57;
    let (_broker, mut client) = topic().await;
    let dirs = client.call(4, &DescribeLogDirsRequest { topics: None }).await;
    let ours = dirs.results[0].log_dir.clone();
    for (path, topic, number, expected) in [
        (ours.clone(), "t", 0, 0),
        (ours.clone(), "t", 1, UNKNOWN_TOPIC_OR_PARTITION),
        (ours, "none", 0, UNKNOWN_TOPIC_OR_PARTITION),
        (KStr::from("/nowhere"), "t", 0, LOG_DIR_NOT_FOUND),
    ] {
        let topics = vec![AlterReplicaLogDirTopic { name: KStr::copy(topic), partitions: vec![number] }];
        let request = AlterReplicaLogDirsRequest { dirs: vec![AlterReplicaLogDir { path, topics }] };
        for version in [1, 2] {
            let answer = client.call(version, &request).await;
            let moved = &answer.results[0].partitions[0];
            assert_eq!((moved.partition_index, moved.error_code), (number, expected), "{request:?}");
        }
    }
    assert_ne!(dirs.results[0].topics.len(), 0);
}

/// D-3: who is idle for longer than `producer.id.expiration.ms` is forgotten at the next search.
#[tokio::test]
async fn d_3_idle_producers_are_forgotten() {
    let settings = [("producer.id.expiration.ms", "300"), ("producer.id.expiration.check.interval.ms", "20")];
    let (_broker, mut client) = topic_with(&settings).await;
    let started = Instant::now();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_millis() as i64;
    let mut batch = BatchBuilder::new().producer(7, 0, 0);
    batch.append(now_ms, None, Some(b"value"), &[]);
    produce_batch(&mut client, batch).await;
    let topic = TopicRequest { name: KStr::from("t"), partition_indexes: vec![0] };
    let request = DescribeProducersRequest { topics: vec![topic] };
    loop {
        let asked = Instant::now();
        let answer = client.call(0, &request).await.topics.remove(0).partitions.remove(0);
        assert_eq!(answer.error_code, 0);
        match &answer.active_producers[..] {
            [] => break assert!(started.elapsed() >= Duration::from_millis(250), "forgotten too early"),
            [producer] => assert_eq!(producer.producer_id, 7),
            more => panic!("{} producers", more.len()),
        }
        assert!(asked.duration_since(started) < PATIENCE, "it is never forgotten");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
