//! Creating topics (M-6, M-7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coordinator::{IdSource, InternalTopic};
use log::{LogConfig, TopicId, TopicPartition};
use wire::messages::topic_record::TopicRecord;
use wire::{ErrorCode, KStr, Uuid};

use super::error::Refusal;
use super::record::MetadataRecord;
use super::state::{ResourceType, State, config_record, partition_record};
use super::{Topics, Writer, names};
use crate::config::{InternalTopicConfig, ServerConfig, TopicOverrides, log_config, validate};

/// Partitions in one request.
pub(super) const MAX_PARTITIONS: usize = 10_000;

/// A topic that somebody wants. -1 in a number asks for the broker's default.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    pub name: KStr,
    pub partitions: i32,
    pub replication_factor: i16,
    /// Partition and its replicas; then both numbers must be -1.
    pub assignments: Vec<(i32, Vec<i32>)>,
    /// A value of `None` is refused.
    pub configs: Vec<(KStr, Option<KStr>)>,
}

impl NewTopic {
    /// With the broker's defaults.
    pub fn named(name: KStr) -> NewTopic {
        NewTopic { name, partitions: -1, replication_factor: -1, assignments: Vec::new(), configs: Vec::new() }
    }
}

/// A topic as it was made, or as it would be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Created {
    pub id: Uuid,
    pub partitions: i32,
    pub overrides: TopicOverrides,
}

/// What became of each topic of a request, in its order.
pub(crate) type Creations = Vec<(KStr, Result<Created, Refusal>)>;

impl Topics {
    /// Creates what can be created, all in one step, and says of each topic what became of it.
    pub async fn create(self: &Arc<Self>, topics: Vec<NewTopic>, validate_only: bool) -> Result<Creations, Refusal> {
        self.change(move |registry, writer| registry.create_now(writer, topics, validate_only)).await
    }

    /// Repartition and changelog topics of a streams group (S 4.8). One that exists with these partitions is no failure. Returns the
    /// topics that are missing now, with the reason.
    pub async fn create_internal(self: &Arc<Self>, topics: Vec<InternalTopic>) -> Vec<(KStr, String)> {
        let wanted: BTreeMap<KStr, i32> = topics.iter().map(|topic| (topic.name.clone(), topic.partitions)).collect();
        let new = topics.into_iter().map(|topic| NewTopic {
            partitions: topic.partitions,
            replication_factor: if topic.replication_factor == 0 { -1 } else { topic.replication_factor },
            configs: topic.configs.into_iter().map(|(name, value)| (name, Some(value))).collect(),
            ..NewTopic::named(topic.name)
        });
        let results = match self.create(new.collect(), false).await {
            Ok(results) => results,
            Err(refusal) => return wanted.into_keys().map(|name| (name, refusal.to_string())).collect(),
        };
        let state = self.state();
        let exists = |name: &KStr| {
            state.topic(name).is_some_and(|topic| wanted.get(name) == Some(&(topic.partitions.len() as i32)))
        };
        let failed = results.into_iter().filter_map(|(name, result)| Some((name, result.err()?)));
        failed.filter(|(name, _)| !exists(name)).map(|(name, refusal)| (name, refusal.to_string())).collect()
    }

    /// A topic of the broker's own, made if it does not exist. Its present number of partitions wins.
    pub async fn ensure(self: &Arc<Self>, topic: NewTopic) -> Result<(), Refusal> {
        if self.state().topic(&topic.name).is_some() {
            return Ok(());
        }
        for (_, result) in self.create(vec![topic], false).await? {
            match result {
                Err(refusal) if refusal.code != ErrorCode::TopicAlreadyExists => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn create_now(
        &self,
        writer: &mut Writer,
        topics: Vec<NewTopic>,
        validate_only: bool,
    ) -> Result<Creations, Refusal> {
        let config = self.config.current();
        let state = self.state();
        if total_partitions(&topics, &config) > MAX_PARTITIONS {
            let refusal =
                Refusal::new(ErrorCode::PolicyViolation, "Excessively large number of partitions per request.");
            return Ok(topics.into_iter().map(|topic| (topic.name, Err(refusal.clone()))).collect());
        }
        let taken: BTreeSet<String> = state.topics.keys().filter_map(|name| names::collision_key(name)).collect();
        let mut results: Creations = Vec::with_capacity(topics.len());
        for topic in topics {
            let name = topic.name.to_owned_detached();
            let planned = plan(&state, &taken, &config, self.node_id, &topic).map(|(partitions, overrides)| Created {
                id: fresh_id(writer, &state),
                partitions,
                overrides,
            });
            results.push((name, planned));
        }
        if validate_only {
            return Ok(results);
        }
        let mut records = Vec::new();
        for (name, result) in &mut results {
            let Ok(created) = result else { continue };
            let settings = log_config(&created.overrides, &config.layers);
            match self.make_logs(name, created.id, 0..created.partitions, &settings) {
                Ok(()) => records.extend(self.topic_records(name, created)),
                Err(refusal) => *result = Err(refusal),
            }
        }
        if let Err(refusal) = self.commit(writer, &records) {
            for (name, result) in &mut results {
                if let Ok(created) = std::mem::replace(result, Err(refusal.clone())) {
                    self.unmake_logs(name, 0..created.partitions);
                }
            }
        }
        Ok(results)
    }

    fn topic_records(&self, name: &KStr, created: &Created) -> Vec<MetadataRecord> {
        let topic = MetadataRecord::Topic(TopicRecord { name: name.clone(), topic_id: created.id });
        let configs = created
            .overrides
            .iter()
            .map(|(key, value)| config_record(ResourceType::Topic, name.clone(), key, Some(value)));
        let partitions = (0..created.partitions).map(|number| partition_record(created.id, number, self.node_id, 0));
        std::iter::once(topic).chain(configs).chain(partitions).collect()
    }

    /// Makes the logs of partitions that no record names yet; either all of them or none.
    pub(super) fn make_logs(
        &self,
        name: &KStr,
        id: Uuid,
        numbers: std::ops::Range<i32>,
        settings: &LogConfig,
    ) -> Result<(), Refusal> {
        for number in numbers.clone() {
            let tp = TopicPartition::new(name.as_str(), number);
            let made = self.dir.create_partition(&tp, TopicId(id.0), settings.clone());
            let refusal = match made {
                Ok(log) if log.topic_id().0 == id.0 => {
                    log.set_leader_epoch(0);
                    continue;
                }
                Ok(other) => Refusal::new(
                    ErrorCode::KafkaStorageError,
                    format!("the directory {tp} holds data of another topic, with id {}", other.topic_id()),
                ),
                Err(error) => error.into(),
            };
            self.unmake_logs(name, numbers.start..number);
            return Err(refusal);
        }
        Ok(())
    }

    pub(super) fn unmake_logs(&self, name: &KStr, numbers: std::ops::Range<i32>) {
        for number in numbers {
            let tp = TopicPartition::new(name.as_str(), number);
            if let Err(error) = self.dir.delete_partition(&tp) {
                tracing::warn!(partition = %tp, %error, "cannot take back a partition");
            }
        }
    }
}

/// Ids that look like an option on a command line are avoided, as Kafka does.
fn fresh_id(writer: &mut Writer, state: &State) -> Uuid {
    loop {
        let id = writer.ids.uuid();
        if !id.to_string().starts_with('-') && state.topic_by_id(&id).is_none() {
            return id;
        }
    }
}

fn total_partitions(topics: &[NewTopic], config: &ServerConfig) -> usize {
    let count = |topic: &NewTopic| match topic.partitions {
        _ if !topic.assignments.is_empty() => topic.assignments.len(),
        -1 => config.topics.num_partitions.max(0) as usize,
        count => usize::try_from(count).unwrap_or(0),
    };
    topics.iter().map(count).fold(0, usize::saturating_add)
}

/// Checks one topic in Kafka's order: name, existence, configuration, partitions and replicas. Returns the number of partitions and
/// what is set on it.
fn plan(
    state: &State,
    taken: &BTreeSet<String>,
    config: &ServerConfig,
    node_id: i32,
    topic: &NewTopic,
) -> Result<(i32, TopicOverrides), Refusal> {
    let name = topic.name.as_str();
    names::validate(name)?;
    if state.topic(name).is_some() {
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, format!("Topic '{name}' already exists.")));
    }
    if let Some(key) = names::collision_key(name).filter(|key| taken.contains(key)) {
        let other = state.topics.keys().find(|other| names::collision_key(other).as_ref() == Some(&key));
        let other = other.map_or(key.as_str(), |other| other.as_str());
        return Err(Refusal::new(
            ErrorCode::InvalidTopicException,
            format!("Topic '{name}' collides with existing topic: {other}"),
        ));
    }
    let overrides = overrides(topic)?;
    validate(&overrides, &config.layers).map_err(|error| Refusal::invalid_config(error.to_string()))?;
    let partitions = if topic.assignments.is_empty() {
        check_factor(topic.replication_factor)?;
        let count = match topic.partitions {
            -1 => config.topics.num_partitions,
            count if count > 0 => count,
            _ => {
                return Err(Refusal::new(
                    ErrorCode::InvalidPartitions,
                    "Number of partitions was set to an invalid non-positive value.",
                ));
            }
        };
        check_brokers(topic.replication_factor, config, name)?;
        count
    } else {
        check_assignments(topic, config, node_id)?;
        topic.assignments.len() as i32
    };
    Ok((partitions, overrides))
}

fn overrides(topic: &NewTopic) -> Result<TopicOverrides, Refusal> {
    let nulls: Vec<&str> =
        topic.configs.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.as_str()).collect();
    if !nulls.is_empty() {
        let nulls = nulls.join(",");
        return Err(Refusal::invalid_config(format!("Null value not supported for topic configs: {nulls}")));
    }
    let pairs = topic.configs.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    Ok(pairs.map(|(key, value)| (key.as_str().to_owned(), value.as_str().to_owned())).collect())
}

fn check_factor(factor: i16) -> Result<(), Refusal> {
    if factor == 0 || factor < -1 {
        return Err(Refusal::new(
            ErrorCode::InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ));
    }
    Ok(())
}

/// One node has one replica (decision 28).
fn check_brokers(factor: i16, config: &ServerConfig, name: &str) -> Result<(), Refusal> {
    let factor = if factor == -1 { config.topics.replication_factor } else { factor.into() };
    if factor <= 1 {
        return Ok(());
    }
    if config.topics.replication_factor_clamp {
        tracing::info!("topic {name} is created with replication factor 1 instead of {factor}");
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::InvalidReplicationFactor,
        format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be \
             reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
        ),
    ))
}

fn check_assignments(topic: &NewTopic, config: &ServerConfig, node_id: i32) -> Result<(), Refusal> {
    let given = |what: &str| {
        Refusal::invalid_request(format!("A manual partition assignment was specified, but {what} was not set to -1."))
    };
    if topic.replication_factor != -1 {
        return Err(given("replication factor"));
    }
    if topic.partitions != -1 {
        return Err(given("numPartitions"));
    }
    let bad = |message: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, message);
    let mut numbers = BTreeSet::new();
    for (number, replicas) in &topic.assignments {
        if !numbers.insert(*number) {
            return Err(bad(format!("Found multiple manual partition assignments for partition {number}")));
        }
        if !config.topics.replication_factor_clamp {
            check_replicas(replicas, node_id)?;
        }
    }
    if (0..).zip(&numbers).any(|(expected, number)| *number != expected) {
        return Err(bad("partitions should be a consecutive 0-based integer sequence".to_owned()));
    }
    Ok(())
}

/// The only assignment that one node can have.
pub(crate) fn check_replicas(replicas: &[i32], node_id: i32) -> Result<(), Refusal> {
    let bad = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    if replicas.is_empty() {
        return bad("The manual partition assignment includes an empty replica list.".to_owned());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    let mut before = None;
    for broker in sorted {
        if broker != node_id {
            return bad(format!(
                "The manual partition assignment includes broker {broker}, but no such broker is registered."
            ));
        }
        if before == Some(broker) {
            return bad(format!("The manual partition assignment includes the broker {broker} more than once."));
        }
        before = Some(broker);
    }
    Ok(())
}

/// What is created for a name that somebody merely mentions: the coordinators' topics with their own settings, any other with the
/// broker's defaults. `None` for a topic whose coordinator is not built.
pub(crate) fn own_topic(name: &str, config: &ServerConfig) -> Option<NewTopic> {
    let topic = NewTopic::named(KStr::copy(name));
    let compacted = |own: &InternalTopicConfig, compression: &'static str| NewTopic {
        partitions: own.partitions,
        configs: vec![
            ("cleanup.policy".into(), Some("compact".into())),
            ("compression.type".into(), Some(compression.into())),
            ("segment.bytes".into(), Some(KStr::from(own.segment_bytes.to_string()))),
        ],
        ..topic.clone()
    };
    match name {
        names::OFFSETS_TOPIC => Some(compacted(&config.offsets_topic, "producer")),
        names::TRANSACTIONS_TOPIC => Some(compacted(&config.transactions.state_topic, "uncompressed")),
        _ if names::is_internal(name) => None,
        _ => Some(topic),
    }
}
