//! Large answers to Fetch, which the kernel sends from the files of the log.

mod common;

use std::path::PathBuf;

use common::{Client, TestBroker};
use tokio::io::AsyncReadExt;
use wire::batch::BatchBuilder;
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use wire::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use wire::messages::fetch_response::{FetchResponse, PartitionData};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use wire::{KStr, Message, Reader};

/// More than the buffers of two sockets hold, so that a client that does not read holds the answer up.
const BATCHES: usize = 60;
const BATCH_BYTES: usize = 500_000;
const ALL_BYTES: i32 = 40 << 20;

/// A broker with topic `t` of two partitions, of which the first has much and the second a little.
async fn broker() -> TestBroker {
    let settings = [("offsets.topic.num.partitions", "1"), ("log.flush.policy", "never")];
    let broker = TestBroker::start(&settings).await;
    let mut client = broker.connect().await;
    let topic =
        CreatableTopic { name: KStr::from("t"), num_partitions: 2, replication_factor: -1, ..Default::default() };
    let created = client.call(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() }).await;
    assert_eq!(created.topics[0].error_code, 0);
    for at in 0..BATCHES {
        let value: Vec<u8> = (0..BATCH_BYTES).map(|i| (at * 31 + i) as u8).collect();
        produce(&mut client, 0, &value).await;
    }
    produce(&mut client, 1, b"a little").await;
    broker
}

async fn produce(client: &mut Client, index: i32, value: &[u8]) {
    let mut batch = BatchBuilder::new();
    batch.append(1_000, None, Some(value), &[]);
    let partition = PartitionProduceData { index, records: Some(batch.build().expect("a batch")) };
    let topic = TopicProduceData { name: KStr::from("t"), partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: 1, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() };
    let answer = client.call(12, &request).await.responses.remove(0).partition_responses.remove(0);
    assert_eq!(answer.error_code, 0);
}

fn fetch(partitions: &[(i32, i64, i32)]) -> FetchRequest {
    let partitions = partitions.iter().map(|&(partition, fetch_offset, partition_max_bytes)| FetchPartition {
        partition,
        fetch_offset,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        partition_max_bytes,
        ..Default::default()
    });
    let topic = FetchTopic { topic: KStr::from("t"), partitions: partitions.collect(), ..Default::default() };
    let (replica_id, session_epoch) = (-1, -1);
    FetchRequest { replica_id, session_epoch, max_bytes: ALL_BYTES, topics: vec![topic], ..Default::default() }
}

fn log_file(broker: &TestBroker, partition: i32) -> PathBuf {
    broker.dir.path().join(format!("t-{partition}/00000000000000000000.log"))
}

fn records(data: &PartitionData) -> &[u8] {
    assert_eq!(data.error_code, 0);
    data.records.as_ref().and_then(|records| records.bytes()).expect("records")
}

#[tokio::test]
async fn a_large_answer_has_the_bytes_of_the_files() {
    let broker = broker().await;
    let stored = [0, 1].map(|partition| std::fs::read(log_file(&broker, partition)).expect("a segment"));
    let mut client = broker.connect().await;
    let answer = client.call(12, &fetch(&[(1, 0, 1000), (0, 0, ALL_BYTES), (1, 0, 1000), (0, 3, 2_000_000)])).await;
    let parts = &answer.responses[0].partitions;
    let batch = stored[0].len() / BATCHES;
    let expected = [&stored[1], &stored[0], &stored[1], &stored[0][3 * batch..6 * batch]];
    for (part, expected) in parts.iter().zip(expected) {
        // Not assert_eq, which would print it all.
        assert!(records(part) == expected, "partition {}", part.partition_index);
    }
    // The connection goes on with the next answer.
    let answer = client.call(12, &fetch(&[(1, 0, 1000)])).await;
    assert!(records(&answer.responses[0].partitions[0]) == stored[1]);
}

/// The first part of the answer to `client`, which then does not read on.
async fn begin(client: &mut Client) -> (usize, Vec<u8>) {
    client.send(12, &fetch(&[(0, 0, ALL_BYTES)])).await;
    let length = client.stream.read_u32().await.expect("the length of an answer") as usize;
    assert!(length > BATCHES * BATCH_BYTES);
    let mut begun = vec![0; 100_000];
    client.stream.read_exact(&mut begun).await.expect("the beginning");
    (length, begun)
}

#[tokio::test]
async fn a_topic_that_is_deleted_while_it_is_sent_slowly_arrives_whole_and_holds_up_nobody() {
    let broker = broker().await;
    let stored = std::fs::read(log_file(&broker, 0)).expect("a segment");
    let mut slow = broker.connect().await;
    let (length, begun) = begin(&mut slow).await;

    let mut other = broker.connect().await;
    let answer = other.call(12, &fetch(&[(0, 0, ALL_BYTES)])).await;
    assert!(records(&answer.responses[0].partitions[0]) == stored);
    let topics = vec![DeleteTopicState { name: Some(KStr::from("t")), ..Default::default() }];
    let request = DeleteTopicsRequest { topics, timeout_ms: 1_000, ..Default::default() };
    assert_eq!(other.call(6, &request).await.responses[0].error_code, 0);
    assert_eq!(other.call(12, &fetch(&[(0, 0, 1000)])).await.responses[0].partitions[0].error_code, 3);

    let mut frame = begun;
    let at = frame.len();
    frame.resize(length, 0);
    let rest = slow.stream.read_exact(&mut frame[at..]);
    tokio::time::timeout(common::PATIENCE, rest).await.expect("in time").expect("the rest");
    let frame = frame.into();
    let mut reader = Reader::new(&frame);
    reader.i32().expect("a correlation id");
    reader.skip_tagged_fields().expect("a header");
    let answer = FetchResponse::decode(&mut reader, 12).expect("an answer");
    assert!(records(&answer.responses[0].partitions[0]) == stored);
}

#[tokio::test]
async fn a_file_that_is_cut_while_it_is_sent_ends_the_connection() {
    let broker = broker().await;
    let mut slow = broker.connect().await;
    let (length, begun) = begin(&mut slow).await;
    let file = std::fs::OpenOptions::new().write(true).open(log_file(&broker, 0)).expect("a segment");
    file.set_len(1000).expect("it can be cut");
    let mut rest = Vec::new();
    let all = slow.stream.read_to_end(&mut rest);
    // An orderly end or a reset, but an end.
    let _ = tokio::time::timeout(common::PATIENCE, all).await.expect("an end in time");
    assert!(begun.len() + rest.len() < length);
    // Nobody else is concerned.
    let mut other = broker.connect().await;
    let answer = other.call(12, &fetch(&[(1, 0, 1000)])).await;
    assert!(!records(&answer.responses[0].partitions[0]).is_empty());
}
