//! What the metadata log says: topics, configurations, features, quotas, producer ids. Changed by replaying records only, at the start and
//! after each append alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use coordinator::Map;
use log::PartitionLog;
use wire::messages::config_record::ConfigRecord;
use wire::messages::feature_level_record::FeatureLevelRecord;
use wire::messages::partition_record::PartitionRecord;
use wire::messages::producer_ids_record::ProducerIdsRecord;
use wire::messages::topic_record::TopicRecord;
use wire::{KStr, Uuid};

use super::quotas::{self, Quotas};
use super::record::MetadataRecord;
use crate::config::Values;

/// Resources that have configurations; the numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub(crate) enum ResourceType {
    Topic = 2,
    Broker = 4,
    Group = 32,
}

impl ResourceType {
    pub fn from_code(code: i8) -> Option<ResourceType> {
        [ResourceType::Topic, ResourceType::Broker, ResourceType::Group].into_iter().find(|t| *t as i8 == code)
    }
}

/// A topic as it is now.
#[derive(Clone)]
pub(crate) struct Topic {
    pub name: KStr,
    pub id: Uuid,
    /// Never empty outside of a replay.
    pub partitions: Vec<Partition>,
}

#[derive(Clone)]
pub(crate) struct Partition {
    /// Broker epoch in which the partition had leader epoch 0: each start of the broker counts as an election.
    born: i64,
    /// `None` only while a change is being made, or if the log could not be opened.
    pub log: Option<Arc<PartitionLog>>,
}

/// One picture. Cheap to clone as long as there are not many topics.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The offset after the last record in here: grows with each change.
    pub offset: i64,
    pub topics: BTreeMap<KStr, Arc<Topic>>,
    names: Map<Uuid, KStr>,
    pub configs: BTreeMap<(ResourceType, KStr), Arc<Values>>,
    pub features: BTreeMap<KStr, i16>,
    pub quotas: Quotas,
    pub broker_epoch: i64,
    /// First producer id that was never handed out.
    pub next_producer_id: i64,
}

impl State {
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    pub fn topic_by_id(&self, id: &Uuid) -> Option<&Arc<Topic>> {
        self.topics.get(self.names.get(id)?)
    }

    /// What was set on a resource; empty if nothing was.
    pub fn config(&self, kind: ResourceType, name: &str) -> Arc<Values> {
        self.configs.get(&(kind, KStr::copy(name))).cloned().unwrap_or_default()
    }

    /// Grows by one with each start of the broker.
    pub fn leader_epoch(&self, partition: &Partition) -> i32 {
        i32::try_from(self.broker_epoch - partition.born).unwrap_or(i32::MAX)
    }

    /// Applies one record. An error is a record that cannot follow those before it.
    pub fn replay(&mut self, record: &MetadataRecord) -> Result<(), String> {
        match record {
            MetadataRecord::Topic(record) => self.replay_topic(record),
            MetadataRecord::Partition(record) => self.replay_partition(record),
            MetadataRecord::RemoveTopic(record) => match self.names.remove(&record.topic_id) {
                Some(name) => {
                    self.topics.remove(&name);
                    self.configs.remove(&(ResourceType::Topic, name));
                    Ok(())
                }
                None => Err(format!("topic id {} is removed, but does not exist", record.topic_id)),
            },
            MetadataRecord::Config(record) => self.replay_config(record),
            MetadataRecord::FeatureLevel(FeatureLevelRecord { name, feature_level }) => {
                self.features.insert(name.to_owned_detached(), *feature_level);
                Ok(())
            }
            MetadataRecord::ProducerIds(record) => {
                self.broker_epoch = record.broker_epoch;
                self.next_producer_id = record.next_producer_id;
                Ok(())
            }
            MetadataRecord::ClientQuota(record) => {
                quotas::replay(&mut self.quotas, record);
                Ok(())
            }
        }
    }

    fn replay_topic(&mut self, TopicRecord { name, topic_id }: &TopicRecord) -> Result<(), String> {
        match self.topics.get(name) {
            // A rewritten log says what it said before.
            Some(topic) if topic.id == *topic_id => Ok(()),
            Some(topic) => Err(format!("topic {name} gets id {topic_id}, but has {}", topic.id)),
            None => {
                let name = name.to_owned_detached();
                self.names.insert(*topic_id, name.clone());
                let topic = Topic { name: name.clone(), id: *topic_id, partitions: Vec::new() };
                self.topics.insert(name, Arc::new(topic));
                Ok(())
            }
        }
    }

    fn replay_partition(&mut self, record: &PartitionRecord) -> Result<(), String> {
        let born = self.broker_epoch - i64::from(record.leader_epoch);
        let name = self.names.get(&record.topic_id);
        let Some(topic) = name.and_then(|name| self.topics.get_mut(name)) else {
            return Err(format!("partition of topic id {}, which does not exist", record.topic_id));
        };
        let topic = Arc::make_mut(topic);
        let count = topic.partitions.len();
        match usize::try_from(record.partition_id) {
            Ok(number) if number < count => topic.partitions[number].born = born,
            Ok(number) if number == count => topic.partitions.push(Partition { born, log: None }),
            _ => return Err(format!("partition {} of {} after {count}", record.partition_id, topic.name)),
        }
        Ok(())
    }

    fn replay_config(&mut self, record: &ConfigRecord) -> Result<(), String> {
        let Some(kind) = ResourceType::from_code(record.resource_type) else {
            return Err(format!("configuration of resource type {}", record.resource_type));
        };
        let resource = (kind, record.resource_name.to_owned_detached());
        let values = Arc::make_mut(self.configs.entry(resource.clone()).or_default());
        match &record.value {
            Some(value) => {
                values.insert(record.name.as_str().to_owned(), value.as_str().to_owned());
            }
            None => {
                values.remove(record.name.as_str());
            }
        }
        if values.is_empty() {
            self.configs.remove(&resource);
        }
        Ok(())
    }

    /// The records that lead from nothing to this state, in an order that can be replayed over it as well.
    pub fn records(&self, node_id: i32) -> Vec<MetadataRecord> {
        let mut records = vec![self.producer_ids(node_id)];
        for (name, level) in &self.features {
            let (name, feature_level) = (name.clone(), *level);
            records.push(MetadataRecord::FeatureLevel(FeatureLevelRecord { name, feature_level }));
        }
        for topic in self.topics.values() {
            records.push(MetadataRecord::Topic(TopicRecord { name: topic.name.clone(), topic_id: topic.id }));
            for (number, partition) in (0..).zip(&topic.partitions) {
                records.push(partition_record(topic.id, number, node_id, self.leader_epoch(partition)));
            }
        }
        for ((kind, resource), values) in &self.configs {
            for (name, value) in values.iter() {
                records.push(config_record(*kind, resource.clone(), name, Some(value)));
            }
        }
        records.extend(quotas::records(&self.quotas));
        records
    }

    pub fn producer_ids(&self, node_id: i32) -> MetadataRecord {
        MetadataRecord::ProducerIds(ProducerIdsRecord {
            broker_id: node_id,
            broker_epoch: self.broker_epoch,
            next_producer_id: self.next_producer_id,
        })
    }

    /// About how many records it takes to say all this.
    pub fn weight(&self) -> u64 {
        let partitions: usize = self.topics.values().map(|topic| topic.partitions.len() + 1).sum();
        let configs: usize = self.configs.values().map(|values| values.len()).sum();
        let quotas: usize = self.quotas.values().map(|values| values.len()).sum();
        (1 + self.features.len() + partitions + configs + quotas) as u64
    }
}

/// A partition with one replica, here.
pub(super) fn partition_record(topic_id: Uuid, partition_id: i32, node_id: i32, leader_epoch: i32) -> MetadataRecord {
    MetadataRecord::Partition(PartitionRecord {
        partition_id,
        topic_id,
        replicas: vec![node_id],
        isr: vec![node_id],
        leader: node_id,
        leader_epoch,
        partition_epoch: leader_epoch,
        ..PartitionRecord::default()
    })
}

pub(super) fn config_record(kind: ResourceType, resource: KStr, name: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::Config(ConfigRecord {
        resource_type: kind as i8,
        resource_name: resource,
        name: KStr::copy(name),
        value: value.map(KStr::copy),
    })
}
