//! Topics and their partitions.

use std::collections::BTreeMap;

use serde::Serialize;
use wire::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use wire::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use wire::messages::metadata_response::{MetadataResponse, MetadataResponseTopic};
use wire::{ErrorCode, KStr, Uuid};

use crate::error::ClientError;
use crate::router::Client;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Topic {
    pub name: String,
    /// 22 characters; zeros from a broker that has no topic ids.
    pub id: String,
    pub internal: bool,
    pub partitions: Vec<Partition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Partition {
    pub partition: i32,
    /// `host:port`, if there is a leader.
    pub leader: Option<String>,
    pub leader_id: i32,
    pub leader_epoch: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
}

impl Topic {
    fn of(topic: &MetadataResponseTopic, addresses: &BTreeMap<i32, String>) -> Topic {
        let partition = |partition: &wire::messages::metadata_response::MetadataResponsePartition| Partition {
            partition: partition.partition_index,
            leader: addresses.get(&partition.leader_id).cloned(),
            leader_id: partition.leader_id,
            leader_epoch: partition.leader_epoch,
            replicas: partition.replica_nodes.clone(),
            isr: partition.isr_nodes.clone(),
        };
        let mut partitions: Vec<Partition> = topic.partitions.iter().map(partition).collect();
        partitions.sort_by_key(|partition| partition.partition);
        Topic {
            name: topic.name.as_deref().unwrap_or_default().to_owned(),
            id: topic.topic_id.to_string(),
            internal: topic.is_internal,
            partitions,
        }
    }

    pub(super) fn uuid(&self) -> Uuid {
        self.id.parse().unwrap_or(Uuid::ZERO)
    }
}

fn addresses(metadata: &MetadataResponse) -> BTreeMap<i32, String> {
    metadata.brokers.iter().map(|broker| (broker.node_id, format!("{}:{}", broker.host, broker.port))).collect()
}

/// All topics, by name.
pub async fn list(client: &mut Client) -> Result<Vec<Topic>, ClientError> {
    let metadata = client.metadata(None).await?;
    let addresses = addresses(&metadata);
    let mut topics: Vec<Topic> = metadata.topics.iter().map(|topic| Topic::of(topic, &addresses)).collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(topics)
}

/// The named topics; those that do not exist are left out.
pub async fn find(client: &mut Client, names: &[&str]) -> Result<BTreeMap<String, Topic>, ClientError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let metadata = client.metadata(Some(names)).await?;
    let addresses = addresses(&metadata);
    let mut found = BTreeMap::new();
    for topic in &metadata.topics {
        match ErrorCode::from_code(topic.error_code) {
            ErrorCode::UnknownTopicOrPartition | ErrorCode::InvalidTopicException => {}
            ErrorCode::None => {
                let topic = Topic::of(topic, &addresses);
                found.insert(topic.name.clone(), topic);
            }
            code => return Err(ClientError::Kafka { code, message: text(topic.name.as_ref()) }),
        }
    }
    Ok(found)
}

/// A topic that must exist. Fails with UNKNOWN_TOPIC_OR_PARTITION.
pub async fn get(client: &mut Client, name: &str) -> Result<Topic, ClientError> {
    let missing = || ClientError::Kafka {
        code: ErrorCode::UnknownTopicOrPartition,
        message: Some(format!("topic {name} does not exist")),
    };
    find(client, &[name]).await?.remove(name).ok_or_else(missing)
}

/// What a topic is to be created with; `None` is the broker's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewTopic {
    pub name: String,
    pub partitions: Option<i32>,
    pub replication_factor: Option<i16>,
    pub configs: Vec<(String, String)>,
}

/// With `validate_only` nothing is created.
pub async fn create(client: &mut Client, topic: &NewTopic, validate_only: bool) -> Result<(), ClientError> {
    let config = |(name, value): &(String, String)| CreatableTopicConfig {
        name: KStr::copy(name),
        value: Some(KStr::copy(value)),
        ..Default::default()
    };
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: KStr::copy(&topic.name),
            num_partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replication_factor.unwrap_or(-1),
            configs: topic.configs.iter().map(config).collect(),
            ..Default::default()
        }],
        timeout_ms: timeout_ms(client),
        validate_only,
        ..Default::default()
    };
    let response = client.call(&request).await?;
    let result = response.topics.first().ok_or(MISSING)?;
    ClientError::check(result.error_code, result.error_message.as_deref())
}

pub async fn delete(client: &mut Client, name: &str) -> Result<(), ClientError> {
    let version = client.any().await?.version_of::<DeleteTopicsRequest>()?;
    let mut request = DeleteTopicsRequest { timeout_ms: timeout_ms(client), ..Default::default() };
    match version >= 6 {
        true => request.topics = vec![DeleteTopicState { name: Some(KStr::copy(name)), ..Default::default() }],
        false => request.topic_names = vec![KStr::copy(name)],
    }
    let response = client.call(&request).await?;
    let result = response.responses.first().ok_or(MISSING)?;
    ClientError::check(result.error_code, result.error_message.as_deref())
}

/// Grows a topic to `count` partitions; refused by the broker if it has as many.
pub async fn grow(client: &mut Client, name: &str, count: i32, validate_only: bool) -> Result<(), ClientError> {
    let request = CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic { name: KStr::copy(name), count, assignments: None, ..Default::default() }],
        timeout_ms: timeout_ms(client),
        validate_only,
        ..Default::default()
    };
    let response = client.call(&request).await?;
    let result = response.results.first().ok_or(MISSING)?;
    ClientError::check(result.error_code, result.error_message.as_deref())
}

const MISSING: ClientError = ClientError::Incomplete("the topic is missing in the answer");

fn timeout_ms(client: &Client) -> i32 {
    i32::try_from(client.timeout().as_millis()).unwrap_or(i32::MAX)
}

fn text(text: Option<&KStr>) -> Option<String> {
    text.map(KStr::to_string)
}
