//! The topics of this broker: what exists, with which id, partitions and configuration; also the dynamic configuration of the
//! broker and of groups, quotas, finalized features and producer ids: everything that a controller's metadata log holds.
//!
//! Readers take immutable pictures. Changes are made one after the other, on blocking threads: a change decides from the present
//! picture, appends its records to the metadata log (`journal`), and when they are synced they are replayed onto a copy
//! (`state`), which becomes the present one; then listeners are told, and then the caller. The same replay builds the picture at
//! the start, so there is no other way for it to come about.
//!
//! Logs of new partitions are made before the records, and those of deleted ones removed after them: whatever a crash leaves in
//! between has no topic, or the id of a removed one, and is cleared away at the next start (`reconcile`).
//!
//! What this leaves to others: the bytes of partitions (crate `log`), which values a key may have (`crate::config`), and the
//! form of requests (`crate::api`).

mod configs;
mod create;
mod delete;
mod error;
mod features;
mod grow;
mod journal;
mod names;
mod producer_ids;
mod quotas;
mod reconcile;
mod record;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use coordinator::config::{BrokerConfig, GroupConfigs};
use coordinator::{TopicImage, TopicMetadata};
use log::{Clock, LogDir, PartitionLog, TopicPartition};
use wire::{ErrorCode, KStr, Uuid};

use crate::config::{Config, Values, group_overrides, log_config};
use crate::features::{Features, GROUP_VERSION, STREAMS_VERSION};
use crate::ids::RandomIds;

pub(crate) use configs::{Alteration, Operation};
pub(crate) use create::{Created, NewTopic, check_replicas, own_topic};
pub(crate) use error::Refusal;
pub(crate) use features::{Direction, FeatureUpdate};
pub(crate) use grow::NewPartitions;
pub use journal::MetadataError;
pub(crate) use names::{OFFSETS_TOPIC, TRANSACTIONS_TOPIC, is_internal, is_reserved, validate as validate_name};
pub(crate) use quotas::{CLIENT_ID as QUOTA_CLIENT_ID, Entity, IP as QUOTA_IP, QuotaAlteration, USER as QUOTA_USER};
pub(crate) use state::{Partition, ResourceType, State, Topic};

use journal::Journal;
use record::MetadataRecord;

/// Rewriting the log pays when most of it is history.
const REWRITE_FACTOR: u64 = 4;
const REWRITE_MIN_RECORDS: u64 = 10_000;

/// What listeners are told after a change, in order of the changes.
pub(crate) struct Change {
    pub image: Arc<TopicImage>,
    /// Topics that appeared, or got more partitions.
    pub changed: Vec<KStr>,
    pub deleted: Vec<(KStr, Uuid)>,
    pub configs: Arc<GroupConfigs>,
    /// Whether the broker's own dynamic configuration changed.
    pub broker_config: bool,
    /// Groups whose own configuration changed.
    pub groups: Vec<KStr>,
}

impl Change {
    pub fn deletes(&self, topic: &str) -> bool {
        self.deleted.iter().any(|(name, _)| name == topic)
    }
}

type Listener = Arc<dyn Fn(&Change) + Send + Sync>;

/// The registry.
pub(crate) struct Topics {
    node_id: i32,
    dir: Arc<LogDir>,
    config: Arc<Config>,
    features: Arc<Features>,
    clock: Arc<dyn Clock>,
    rack: Option<KStr>,
    current: RwLock<Arc<Published>>,
    writer: Mutex<Writer>,
    /// Waiters queue here, and not on blocking threads.
    turn: Arc<tokio::sync::Mutex<()>>,
    listeners: RwLock<Vec<Listener>>,
    /// Producer ids that are allocated, but not handed out.
    producer_ids: Mutex<Range<i64>>,
}

/// A picture, in the forms in which it is asked for.
struct Published {
    state: State,
    image: Arc<TopicImage>,
    groups: Arc<GroupConfigs>,
}

/// Held by whoever makes a change.
struct Writer {
    journal: Journal,
    ids: RandomIds,
}

impl Topics {
    /// Reads the metadata log, makes the data directory agree with it, and notes that the broker has started once more.
    pub fn open(
        dir: Arc<LogDir>,
        config: Arc<Config>,
        features: Arc<Features>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Topics>, MetadataError> {
        let start = config.current();
        let journal = Journal::open(&dir)?;
        let (mut state, mut removed) = (State::default(), BTreeSet::new());
        state.offset = journal.replay(|_, record| {
            if let MetadataRecord::RemoveTopic(gone) = &record {
                removed.insert(gone.topic_id);
            }
            state.replay(&record)
        })?;
        let topics = Topics {
            node_id: start.node_id,
            dir,
            config,
            features,
            clock,
            rack: start.rack.clone().map(KStr::from),
            current: RwLock::new(Arc::new(Published {
                state: State::default(),
                image: Arc::default(),
                groups: Arc::default(),
            })),
            writer: Mutex::new(Writer { journal, ids: RandomIds::default() }),
            turn: Arc::default(),
            listeners: RwLock::default(),
            producer_ids: Mutex::new(0..0),
        };
        topics.begin(state, &removed)?;
        Ok(Arc::new(topics))
    }

    /// The first records of every start: they count the starts, finalize features that are new, and sync what the last run
    /// left unsynced.
    fn begin(&self, mut state: State, removed: &BTreeSet<Uuid>) -> Result<(), MetadataError> {
        let mut records = Vec::new();
        let epoch = state.broker_epoch + 1;
        let mut next = state.clone();
        next.broker_epoch = epoch;
        records.push(next.producer_ids(self.node_id));
        records.extend(features::missing(&state));
        records.extend(configs::missing_cluster_default(&state, &self.config.current().layers.fixed));
        for record in &records {
            state.replay(record).map_err(|reason| MetadataError::Damaged { offset: state.offset, reason })?;
        }
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let appended = writer.journal.append(&records, self.clock.now_ms());
        state.offset = appended.map_err(|refusal| MetadataError::Write(refusal.to_string()))?;
        drop(writer);
        self.apply_broker_config(&state);
        reconcile::reconcile(&self.dir, &mut state, removed, &|name, state| {
            log_config(&state.config(ResourceType::Topic, name), &self.config.current().layers)
        })?;
        self.publish_features(&state);
        let published = self.published(state, None);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(published);
        Ok(())
    }

    fn present(&self) -> Arc<Published> {
        // Writers only store whole pictures, so a poisoned lock still holds one.
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything, as of now. One request should look at one picture.
    pub fn state(&self) -> StateRef {
        StateRef(self.present())
    }

    /// Topics as the coordinator sees them.
    pub fn image(&self) -> Arc<TopicImage> {
        self.present().image.clone()
    }

    /// Settings of the coordinator: the broker's and those of groups.
    pub fn group_configs(&self) -> Arc<GroupConfigs> {
        self.present().groups.clone()
    }

    pub fn partition(&self, topic: &str, partition: i32) -> Option<Arc<PartitionLog>> {
        let present = self.present();
        let topic = present.state.topic(topic)?;
        topic.partitions.get(usize::try_from(partition).ok()?)?.log.clone()
    }

    /// Tells nobody any more: listeners may hold the registry, which else would never go.
    pub fn forget_listeners(&self) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// `listener` is called after each change, on the thread that made it, before its caller has an answer. Must not call back.
    pub fn on_change(&self, listener: Listener) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Runs a change on a blocking thread, one at a time. It is carried out even if the caller goes away.
    async fn change<R: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&Topics, &mut Writer) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, Refusal> {
        let turn = self.turn.clone().lock_owned().await;
        let topics = self.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            // A change that panicked published nothing, so the next one finds everything as it was.
            let mut writer = topics.writer.lock().unwrap_or_else(PoisonError::into_inner);
            change(&topics, &mut writer)
        });
        match changed.await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!("a change of the metadata failed: {error}");
                Err(Refusal::plain(ErrorCode::UnknownServerError))
            }
        }
    }

    /// Appends `records` as one batch, and makes the picture that they lead to the present one.
    fn commit(&self, writer: &mut Writer, records: &[MetadataRecord]) -> Result<(), Refusal> {
        if records.is_empty() {
            return Ok(());
        }
        let before = self.present();
        let mut state = before.state.clone();
        for record in records {
            // Records that do not fit must not get into the log.
            state.replay(record).map_err(|reason| Refusal::new(ErrorCode::UnknownServerError, reason))?;
        }
        state.offset = writer.journal.append(records, self.clock.now_ms())?;
        let touched = Touched::by(records, &before.state, &state);
        if touched.broker_config {
            self.apply_broker_config(&state);
        }
        self.attach_logs(&mut state, &touched);
        self.publish_features(&state);
        let published = Arc::new(self.published(state, Some((&before, &touched))));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = published.clone();
        let deleted: Vec<KStr> = touched.deleted.iter().map(|(name, _)| name.clone()).collect();
        self.tell(&published, touched);
        // Coordinators have let go of theirs by now.
        for topic in &deleted {
            self.delete_logs(&before.state, topic);
        }
        self.rewrite_if_long(writer, &published);
        Ok(())
    }

    /// Gives new partitions their logs, and logs their settings.
    fn attach_logs(&self, state: &mut State, touched: &Touched) {
        let layers = &self.config.current().layers;
        for name in &touched.changed {
            if let Some(topic) = state.topics.get_mut(name) {
                let topic = Arc::make_mut(topic);
                for (number, partition) in (0..).zip(&mut topic.partitions) {
                    let found = || self.dir.partition(&TopicPartition::new(name.as_str(), number));
                    partition.log = partition.log.take().or_else(found);
                }
            }
        }
        let reconfigured = |name: &KStr| touched.broker_config || touched.reconfigured.contains(name);
        for topic in state.topics.values().filter(|topic| reconfigured(&topic.name)) {
            let config = log_config(&state.config(ResourceType::Topic, &topic.name), layers);
            for log in topic.partitions.iter().filter_map(|partition| partition.log.as_ref()) {
                if *log.config() != config {
                    log.set_config(config.clone());
                }
            }
        }
    }

    fn delete_logs(&self, before: &State, name: &KStr) {
        let Some(topic) = before.topic(name) else { return };
        for number in 0..topic.partitions.len() {
            let partition = TopicPartition::new(name.as_str(), number as i32);
            if let Err(error) = self.dir.delete_partition(&partition) {
                // Its id is gone from the metadata, so the next start tries again.
                tracing::error!(%partition, %error, "cannot delete the files of a deleted partition");
            }
        }
    }

    /// The picture in all its forms; from scratch, or from the one before and what was touched since.
    /// A protocol is served if it is configured and its feature is finalized (S 1.1.1, C K-4).
    fn broker_group_config(&self, state: &State) -> BrokerConfig {
        let mut config = self.config.current().groups.clone();
        let finalized = |name: &str| state.features.get(name).is_some_and(|level| *level > 0);
        config.consumer_protocol_enabled &= finalized(GROUP_VERSION);
        config.streams_protocol_enabled &= finalized(STREAMS_VERSION);
        config
    }

    fn published(&self, state: State, change: Option<(&Published, &Touched)>) -> Published {
        let image = match change {
            Some((before, touched)) if touched.changed.is_empty() && touched.deleted.is_empty() => before.image.clone(),
            Some((before, touched)) => {
                let mut image = (*before.image).clone();
                for (name, _) in &touched.deleted {
                    image.remove(name);
                }
                for topic in touched.changed.iter().filter_map(|name| state.topic(name)) {
                    image.insert(topic.name.clone(), self.metadata(topic));
                }
                Arc::new(image)
            }
            None => {
                let mut image = TopicImage::default();
                for topic in state.topics.values() {
                    image.insert(topic.name.clone(), self.metadata(topic));
                }
                Arc::new(image)
            }
        };
        let groups = match change {
            Some((before, touched)) if touched.groups.is_empty() && !touched.broker_config => before.groups.clone(),
            Some((before, touched)) => {
                let mut groups = (*before.groups).clone();
                groups.broker = self.broker_group_config(&state);
                for group in &touched.groups {
                    groups.groups.remove(group);
                    groups.groups.extend(group_entry(&state, group));
                }
                Arc::new(groups)
            }
            None => {
                let resources = state.configs.keys().filter(|(kind, _)| *kind == ResourceType::Group);
                let groups = resources.filter_map(|(_, group)| group_entry(&state, group)).collect();
                Arc::new(GroupConfigs { broker: self.broker_group_config(&state), groups })
            }
        };
        Published { state, image, groups }
    }

    fn metadata(&self, topic: &Topic) -> TopicMetadata {
        TopicMetadata { id: topic.id, partitions: topic.partitions.len() as i32, rack: self.rack.clone() }
    }

    /// Dynamic values of the broker become part of its settings. What contradicts a changed start configuration is left out.
    fn apply_broker_config(&self, state: &State) {
        let values = |name: &str| -> Values { (*state.config(ResourceType::Broker, name)).clone() };
        if let Err(error) = self.config.update(values(&self.node_id.to_string()), values("")) {
            tracing::error!(
                "dynamic settings of the broker do not agree with its configuration, and are left out: {error}"
            );
        }
    }

    fn publish_features(&self, state: &State) {
        for (name, level) in &state.features {
            if !self.features.set(state.offset, name, *level) {
                tracing::warn!("feature {name} is finalized at level {level}, which is not supported here");
            }
        }
    }

    fn tell(&self, published: &Published, touched: Touched) {
        let change = Change {
            image: published.image.clone(),
            changed: touched.changed,
            deleted: touched.deleted,
            configs: published.groups.clone(),
            broker_config: touched.broker_config,
            groups: touched.groups,
        };
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners {
            listener(&change);
        }
    }

    fn rewrite_if_long(&self, writer: &mut Writer, published: &Published) {
        let limit = published.state.weight() * REWRITE_FACTOR + REWRITE_MIN_RECORDS;
        if writer.journal.len().is_ok_and(|records| records <= limit) {
            return;
        }
        if let Err(error) = writer.journal.rewrite(&published.state.records(self.node_id), self.clock.now_ms()) {
            tracing::warn!("cannot shorten the metadata log: {error}");
        }
    }
}

/// The settings of a group that has any. What cannot be read any more counts as unset.
fn group_entry(state: &State, group: &KStr) -> Option<(KStr, Arc<coordinator::config::GroupOverrides>)> {
    let values = state.configs.get(&(ResourceType::Group, group.clone()))?;
    match group_overrides(values) {
        Ok(overrides) => Some((group.clone(), Arc::new(overrides))),
        Err(error) => {
            tracing::warn!("the configuration of group {group} is left out: {error}");
            None
        }
    }
}

/// A picture that is being looked at.
pub(crate) struct StateRef(Arc<Published>);

impl std::ops::Deref for StateRef {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

/// What a batch of records concerns.
#[derive(Default)]
struct Touched {
    changed: Vec<KStr>,
    deleted: Vec<(KStr, Uuid)>,
    /// Topics whose settings changed, new ones among them.
    reconfigured: BTreeSet<KStr>,
    groups: Vec<KStr>,
    broker_config: bool,
}

impl Touched {
    fn by(records: &[MetadataRecord], before: &State, after: &State) -> Touched {
        let mut touched = Touched::default();
        for record in records {
            match record {
                MetadataRecord::Partition(record) => {
                    if let Some(topic) = after.topic_by_id(&record.topic_id)
                        && touched.changed.last() != Some(&topic.name)
                    {
                        touched.changed.push(topic.name.clone());
                        touched.reconfigured.insert(topic.name.clone());
                    }
                }
                MetadataRecord::RemoveTopic(record) => {
                    if let Some(topic) = before.topic_by_id(&record.topic_id) {
                        touched.deleted.push((topic.name.clone(), topic.id));
                    }
                }
                MetadataRecord::Config(record) => match ResourceType::from_code(record.resource_type) {
                    Some(ResourceType::Topic) => {
                        touched.reconfigured.insert(record.resource_name.clone());
                    }
                    Some(ResourceType::Broker) => touched.broker_config = true,
                    Some(ResourceType::Group) if touched.groups.last() != Some(&record.resource_name) => {
                        touched.groups.push(record.resource_name.clone());
                    }
                    Some(ResourceType::Group) | None => {}
                },
                // A level decides whether a protocol is served.
                MetadataRecord::FeatureLevel(_) => touched.broker_config = true,
                MetadataRecord::Topic(_) | MetadataRecord::ProducerIds(_) | MetadataRecord::ClientQuota(_) => {}
            }
        }
        touched
    }
}
