//! Requests of producers, readers and tools, with what tests want of the answers.

use std::time::{Duration, Instant};

use wire::batch::BatchBuilder;
use wire::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use wire::messages::add_partitions_to_txn_response::AddPartitionsToTxnTopicResult;
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::api_versions_response::ApiVersionsResponse;
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::delete_topics_request::DeleteTopicsRequest;
use wire::messages::describe_producers_request::{DescribeProducersRequest, TopicRequest};
use wire::messages::describe_producers_response::ProducerState;
use wire::messages::describe_transactions_request::DescribeTransactionsRequest;
use wire::messages::describe_transactions_response::TransactionState;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use wire::messages::fetch_response::PartitionData;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use wire::messages::list_transactions_request::ListTransactionsRequest;
use wire::messages::list_transactions_response::ListTransactionsResponse;
use wire::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use wire::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest};
use wire::{Bytes, KStr};

use crate::common::{Client, PATIENCE, TestBroker};

/// What a fetch brought of a partition.
pub fn records(seen: &PartitionData) -> Bytes {
    seen.records.as_ref().and_then(|records| records.bytes().cloned()).unwrap_or_default()
}

/// `count` records of one producer.
pub fn batch(producer_id: i64, epoch: i16, sequence: i32, transactional: bool, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new().producer(producer_id, epoch, sequence).transactional(transactional);
    for _ in 0..count {
        builder.append(1_700_000_000_000, Some(b"k"), Some(b"v"), &[]);
    }
    builder.build().expect("a small batch")
}

fn text(text: &str) -> KStr {
    KStr::copy(text)
}

fn codes(results: &[AddPartitionsToTxnTopicResult]) -> Vec<i16> {
    results.iter().flat_map(|topic| &topic.results_by_partition).map(|p| p.partition_error_code).collect()
}

/// One client, and one topic, `t`, that most requests are about.
pub struct Rig(Client);

/// Error, base offset and message of one partition.
pub type Produced = (i16, i64, Option<String>);

impl Rig {
    pub async fn connect(broker: &TestBroker) -> Rig {
        Rig(broker.connect().await)
    }

    pub async fn api_versions(&mut self) -> ApiVersionsResponse {
        let request = ApiVersionsRequest {
            client_software_name: text("test"),
            client_software_version: text("1"),
            ..Default::default()
        };
        self.0.call(4, &request).await
    }

    pub async fn create_topic(&mut self, name: &str, num_partitions: i32) {
        let topic = CreatableTopic { name: text(name), num_partitions, replication_factor: 1, ..Default::default() };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(self.0.call(7, &request).await.topics[0].error_code, 0);
    }

    pub async fn delete_topic(&mut self, name: &str) {
        let request = DeleteTopicsRequest { topic_names: vec![text(name)], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(self.0.call(5, &request).await.responses[0].error_code, 0);
    }

    /// Makes the coordinator's topic if it is missing.
    pub async fn find_coordinator(&mut self, id: &str) {
        const TRANSACTION: i8 = 1;
        let coordinator_keys = vec![text(id)];
        let request = FindCoordinatorRequest { key_type: TRANSACTION, coordinator_keys, ..Default::default() };
        assert_eq!(self.0.call(6, &request).await.coordinators[0].error_code, 0);
    }

    /// Error, producer id and epoch.
    pub async fn init(
        &mut self,
        version: i16,
        id: Option<&str>,
        given: Option<(i64, i16)>,
        transaction_timeout_ms: i32,
    ) -> (i16, i64, i16) {
        let (producer_id, producer_epoch) = given.unwrap_or((-1, -1));
        let request = InitProducerIdRequest {
            transactional_id: id.map(text),
            transaction_timeout_ms,
            producer_id,
            producer_epoch,
            ..Default::default()
        };
        let response = self.0.call(version, &request).await;
        (response.error_code, response.producer_id, response.producer_epoch)
    }

    /// A producer under `id`, with a timeout that no test reaches.
    pub async fn producer(&mut self, id: &str) -> (i64, i16) {
        let (error, producer_id, epoch) = self.init(5, Some(id), None, 600_000).await;
        assert_eq!(error, 0);
        (producer_id, epoch)
    }

    /// The error of each partition; versions 0 to 3.
    pub async fn add(&mut self, version: i16, id: &str, producer: (i64, i16), partitions: &[i32]) -> Vec<i16> {
        let topic = AddPartitionsToTxnTopic { name: text("t"), partitions: partitions.to_vec() };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: text(id),
            v3_and_below_producer_id: producer.0,
            v3_and_below_producer_epoch: producer.1,
            v3_and_below_topics: vec![topic],
            ..Default::default()
        };
        codes(&self.0.call(version, &request).await.results_by_topic_v3_and_below)
    }

    /// As brokers ask, in version 5.
    pub async fn add_batched(
        &mut self,
        id: &str,
        producer: (i64, i16),
        verify_only: bool,
        partitions: &[i32],
    ) -> Vec<i16> {
        self.add_batched_to(id, producer, verify_only, "t", partitions).await
    }

    pub async fn add_batched_to(
        &mut self,
        id: &str,
        (producer_id, producer_epoch): (i64, i16),
        verify_only: bool,
        topic: &str,
        partitions: &[i32],
    ) -> Vec<i16> {
        let topic = AddPartitionsToTxnTopic { name: text(topic), partitions: partitions.to_vec() };
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: text(id),
            producer_id,
            producer_epoch,
            verify_only,
            topics: vec![topic],
        };
        let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
        codes(&self.0.call(5, &request).await.results_by_transaction[0].topic_results)
    }

    pub async fn add_offsets(&mut self, version: i16, id: &str, producer: (i64, i16), group: &str) -> i16 {
        let request = AddOffsetsToTxnRequest {
            transactional_id: text(id),
            producer_id: producer.0,
            producer_epoch: producer.1,
            group_id: text(group),
        };
        self.0.call(version, &request).await.error_code
    }

    pub async fn produce(&mut self, version: i16, id: Option<&str>, partition: i32, records: Bytes) -> Produced {
        self.produce_all(version, id, &[(partition, records)]).await.remove(0)
    }

    /// Versions that name topics.
    pub async fn produce_all(&mut self, version: i16, id: Option<&str>, data: &[(i32, Bytes)]) -> Vec<Produced> {
        let partition_data = data
            .iter()
            .map(|(index, records)| PartitionProduceData { index: *index, records: Some(records.clone()) })
            .collect();
        let topic = TopicProduceData { name: text("t"), partition_data, ..Default::default() };
        let request =
            ProduceRequest { transactional_id: id.map(text), acks: -1, timeout_ms: 10_000, topic_data: vec![topic] };
        let response = self.0.call(version, &request).await;
        let produced = response.responses.into_iter().flat_map(|topic| topic.partition_responses);
        produced.map(|p| (p.error_code, p.base_offset, p.error_message.map(|m| m.to_string()))).collect()
    }

    /// Error, producer id and epoch to go on with.
    pub async fn end(&mut self, version: i16, id: &str, producer: (i64, i16), committed: bool) -> (i16, i64, i16) {
        let request = EndTxnRequest {
            transactional_id: text(id),
            producer_id: producer.0,
            producer_epoch: producer.1,
            committed,
        };
        let response = self.0.call(version, &request).await;
        (response.error_code, response.producer_id, response.producer_epoch)
    }

    pub async fn describe(&mut self, id: &str) -> TransactionState {
        let request = DescribeTransactionsRequest { transactional_ids: vec![text(id)] };
        self.0.call(0, &request).await.transaction_states.remove(0)
    }

    /// Returns when the transaction is in `state`.
    pub async fn settle(&mut self, id: &str, state: &str) {
        let begun = Instant::now();
        loop {
            let described = self.describe(id).await;
            if described.transaction_state == state {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{id} stays {}", described.transaction_state);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn list(&mut self, states: &[&str], pattern: Option<&str>) -> ListTransactionsResponse {
        let request = ListTransactionsRequest {
            state_filters: states.iter().map(|state| text(state)).collect(),
            duration_filter: -1,
            transactional_id_pattern: pattern.map(text),
            ..Default::default()
        };
        self.0.call(2, &request).await
    }

    pub async fn producers(&mut self, partition: i32) -> Vec<ProducerState> {
        let topic = TopicRequest { name: text("t"), partition_indexes: vec![partition] };
        let request = DescribeProducersRequest { topics: vec![topic] };
        self.0.call(0, &request).await.topics.remove(0).partitions.remove(0).active_producers
    }

    /// The error of the one partition.
    pub async fn write_markers(
        &mut self,
        partition: i32,
        (producer_id, producer_epoch): (i64, i16),
        coordinator_epoch: i32,
        transaction_version: i8,
    ) -> i16 {
        let topic = WritableTxnMarkerTopic { name: text("t"), partition_indexes: vec![partition] };
        let marker = WritableTxnMarker {
            producer_id,
            producer_epoch,
            transaction_result: false,
            topics: vec![topic],
            coordinator_epoch,
            transaction_version,
        };
        let response = self.0.call(2, &WriteTxnMarkersRequest { markers: vec![marker] }).await;
        response.markers[0].topics[0].partitions[0].error_code
    }

    /// Offset 7 of `t-0` for the group; the errors of the partitions.
    pub async fn txn_offset_commit(
        &mut self,
        version: i16,
        id: &str,
        (producer_id, producer_epoch): (i64, i16),
        group: &str,
        generation: i32,
    ) -> Vec<i16> {
        let partition = TxnOffsetCommitRequestPartition { committed_offset: 7, ..Default::default() };
        let topic = TxnOffsetCommitRequestTopic { name: text("t"), partitions: vec![partition], ..Default::default() };
        let request = TxnOffsetCommitRequest {
            transactional_id: text(id),
            group_id: text(group),
            producer_id,
            producer_epoch,
            generation_id_or_member_epoch: generation,
            topics: vec![topic],
            ..Default::default()
        };
        let response = self.0.call(version, &request).await;
        response.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code).collect()
    }

    /// Error and committed offset of `t-0`.
    pub async fn offset(&mut self, group: &str, require_stable: bool) -> (i16, i64) {
        let topic = OffsetFetchRequestTopics { name: text("t"), partition_indexes: vec![0], ..Default::default() };
        let group = OffsetFetchRequestGroup {
            group_id: text(group),
            member_epoch: -1,
            topics: Some(vec![topic]),
            ..Default::default()
        };
        let request = OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() };
        let response = self.0.call(8, &request).await;
        let partition = &response.groups[0].topics[0].partitions[0];
        (partition.error_code, partition.committed_offset)
    }

    pub async fn delete_offset(&mut self, group: &str) {
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
        let topic = OffsetDeleteRequestTopic { name: text("t"), partitions };
        let response = self.0.call(0, &OffsetDeleteRequest { group_id: text(group), topics: vec![topic] }).await;
        assert_eq!(response.error_code, 0);
        assert_eq!(response.topics[0].partitions[0].error_code, 0);
    }

    pub async fn fetch(&mut self, partition: i32, offset: i64, committed: bool) -> PartitionData {
        self.fetch_waiting(partition, offset, committed, 0).await
    }

    pub async fn fetch_waiting(
        &mut self,
        partition: i32,
        fetch_offset: i64,
        committed: bool,
        max_wait_ms: i32,
    ) -> PartitionData {
        let partition = FetchPartition {
            partition,
            fetch_offset,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let topic = FetchTopic { topic: text("t"), partitions: vec![partition], ..Default::default() };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            isolation_level: i8::from(committed),
            session_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        self.0.call(12, &request).await.responses.remove(0).partitions.remove(0)
    }

    /// The latest offset.
    pub async fn latest(&mut self, partition_index: i32, committed: bool) -> i64 {
        let partition = ListOffsetsPartition { partition_index, current_leader_epoch: -1, timestamp: -1 };
        let topic = ListOffsetsTopic { name: text("t"), partitions: vec![partition] };
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: i8::from(committed),
            topics: vec![topic],
            ..Default::default()
        };
        self.0.call(6, &request).await.topics[0].partitions[0].offset
    }
}
