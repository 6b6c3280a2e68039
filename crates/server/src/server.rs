//! Starts a broker in this process, and stops it.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use coordinator::InternalTopic;
use log::{DirConfig, Fs, LogDir, OpenError, PartitionLog, RealFs, StorageError, SystemClock, TopicPartition};
use tokio::sync::watch;
use tokio::task::JoinSet;
use wire::KStr;

use crate::broker::Broker;
use crate::clock::Clock;
use crate::config::{Config, ServerConfig};
use crate::connection::{Budget, ConnectionCaps, ConnectionLimits, Connections};
use crate::data::{FetchSessions, FetchWaiters};
use crate::features::Features;
use crate::groups::{CreateInternalTopics, CreationOutcome, Groups, World};
use crate::ids::fill_random;
use crate::journal::Journal;
use crate::listener::{Bound, Listen, accept, bind};
use crate::log_events::LogEvents;
use crate::maintenance;
use crate::metrics::Metrics;
use crate::os::open_files_limit;
use crate::shutdown::Shutdown;
use crate::topics::{Change, MetadataError, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Topics};
use crate::transactions::markers::Markers;
use crate::transactions::{Transactions, settings};
use crate::{admin_http, advertised};

/// How long the start waits for groups to be loaded. Later, whoever is early is told to try again.
const LOAD_PATIENCE: Duration = Duration::from_millis(500);
/// What requests that are being handled get when the broker stops.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// The part of the open files that logs may keep, one in so many; the rest is for connections.
const FILES_SHARE: u64 = 4;
const MIN_FILES: usize = 64;

/// Why a broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error("{topic} cannot be used: {why}")]
    InternalTopic { topic: &'static str, why: String },
    #[error(transparent)]
    Listen(#[from] io::Error),
}

/// A broker that serves. Dropping it leaves it running until the runtime ends; see [`RunningServer::shutdown`].
pub struct RunningServer {
    broker: Arc<Broker>,
    addresses: Vec<SocketAddr>,
    admin_addresses: Vec<SocketAddr>,
    tasks: JoinSet<()>,
    /// Why the data directory cannot be trusted any more, once it cannot.
    failure: watch::Receiver<Option<String>>,
}

/// Opens the data directory, loads what it holds and listens. Must be called on a tokio runtime.
pub async fn start(config: ServerConfig) -> Result<RunningServer, StartError> {
    start_on(config, Arc::new(RealFs)).await
}

/// The same with the logs on `fs`, which a test may make fail.
pub async fn start_on(config: ServerConfig, fs: Arc<dyn Fs>) -> Result<RunningServer, StartError> {
    let clock = Clock::start();
    // First, so that a port that is taken leaves no trace in the directory. Who connects early waits in the backlog.
    let bound = bind_all(&config).await?;
    let admin_bound = admin_http::listen(&config).await?;
    let dir = dir_config(&config);
    let logs = blocking(move || LogDir::open(fs, Arc::new(SystemClock), dir)).await?;
    let (failed, failure) = watch::channel(None);
    logs.set_failure_listener(Arc::new(move |reason| drop(failed.send_replace(Some(reason.to_owned())))));
    let log_events = LogEvents::default();
    log_events.attach(&logs);
    let limits = Arc::new(connection_limits(&config));
    let fetch_session_slots = config.network.fetch_session_slots;
    let (node_id, config, features) = (config.node_id, Arc::new(Config::new(config)), Arc::default());
    let topics = open_topics(&logs, &config, &features).await?;
    let metrics = Arc::<Metrics>::default();
    let (journal, journal_worker) = Journal::open(&config.current().data_dir);
    let groups = start_groups(&config, &topics, &log_events, clock, &metrics, &journal).await?;
    let groups_loaded = groups.loaded(LOAD_PATIENCE).await;
    let transactions = start_transactions(&config, &features, &topics, &groups, &log_events, clock).await?;
    let fetch_waiters = Arc::<FetchWaiters>::default();
    let waiters = fetch_waiters.clone();
    log_events.subscribe(Arc::new(move |partition, _| waiters.wake(partition)));
    let caps = connection_caps(&config.current());
    let broker = Arc::new(Broker {
        node_id,
        cluster_id: KStr::from(logs.cluster_id().to_owned()),
        clock,
        config,
        features,
        logs,
        log_events,
        topics,
        groups,
        transactions,
        fetch_sessions: FetchSessions::new(fetch_session_slots),
        fetch_waiters,
        budget: Budget::new(&limits),
        connections: Connections::new(limits.clone(), caps),
        limits,
        metrics,
        journal,
        shutdown: Shutdown::new(),
    });
    let (connections, current) = (broker.connections.clone(), broker.config.clone());
    broker.topics.on_change(Arc::new(move |change| {
        if change.broker_config {
            connections.set_caps(connection_caps(&current.current()));
        }
    }));
    if !groups_loaded || !broker.transactions.loaded(LOAD_PATIENCE).await {
        tracing::info!("groups or transactions are still being loaded");
    }
    let mut tasks = JoinSet::new();
    let addresses = bound.iter().map(|bound| bound.address).collect();
    let admin_addresses = admin_bound.iter().map(|bound| bound.address).collect();
    for bound in admin_bound {
        tasks.spawn(admin_http::serve(Arc::downgrade(&broker), broker.shutdown.clone(), bound));
    }
    let mut listens: Vec<Listen> = bound.iter().map(|bound| bound.listen().clone()).collect();
    listens.dedup();
    tasks.spawn(advertised::look_at(listens));
    for bound in bound {
        tasks.spawn(accept(broker.clone(), bound));
    }
    let (metrics, shutdown) = (broker.metrics.clone(), broker.shutdown.clone());
    tasks.spawn(journal_worker.run(metrics, async move { shutdown.begun().await }));
    tasks.spawn(broker.connections.clone().sweep());
    tasks.spawn(maintenance::retain(broker.logs.clone(), broker.config.clone(), clock));
    tasks.spawn(maintenance::compact(broker.logs.clone(), broker.config.clone(), clock));
    Ok(RunningServer { broker, addresses, admin_addresses, tasks, failure })
}

impl RunningServer {
    /// Where it listens: ports that were 0 are known by now.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the admin HTTP interface listens; empty if it is switched off.
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        &self.admin_addresses
    }

    /// 22 characters.
    pub fn cluster_id(&self) -> &str {
        &self.broker.cluster_id
    }

    /// Milliseconds since the start was begun.
    pub fn uptime_ms(&self) -> u64 {
        self.broker.clock.mono_ms()
    }

    /// Returns, with the reason, when the data directory has failed: a write or sync went wrong, or it was taken away. What it holds is
    /// in doubt until it is opened again, so the broker should end, as Kafka does when its only directory fails. A full disk is no
    /// failure.
    pub async fn storage_failed(&self) -> String {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The directory is closed, and will not fail any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// Stops in order: takes no connection, lets requests at work finish, tells those that wait to look elsewhere, and
    /// closes the data directory so that the next start has nothing to recover.
    pub async fn shutdown(mut self) -> Result<(), StorageError> {
        self.broker.shutdown.begin();
        self.broker.transactions.close();
        self.broker.groups.close();
        self.broker.connections.close_all(STOP_GRACE).await;
        self.tasks.shutdown().await;
        self.broker.log_events.clear();
        self.broker.topics.forget_listeners();
        let logs = self.broker.logs.clone();
        blocking(move || logs.close()).await
    }

    /// Stops at once, as if the process had ended: what was not synced stays so, and the next start recovers. Returns
    /// when the directory is free again.
    pub async fn abort(mut self) {
        self.broker.shutdown.begin();
        self.broker.transactions.close();
        self.broker.groups.close();
        self.broker.connections.close_all(Duration::ZERO).await;
        self.tasks.shutdown().await;
        self.broker.log_events.clear();
        self.broker.topics.forget_listeners();
        let logs = Arc::downgrade(&self.broker.logs);
        drop(self);
        let deadline = tokio::time::Instant::now() + STOP_GRACE;
        while logs.strong_count() > 0 {
            if tokio::time::Instant::now() >= deadline {
                tracing::warn!("something still holds the data directory");
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Files and locks do not belong on the threads that serve connections.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking tasks are cancelled only when the runtime ends, and this one with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn dir_config(config: &ServerConfig) -> DirConfig {
    let mut seed = [0; 8];
    fill_random(&mut seed);
    let open_files = usize::try_from(open_files_limit() / FILES_SHARE).unwrap_or(usize::MAX);
    let default = DirConfig::new(Path::new(&config.data_dir));
    DirConfig {
        node_id: config.node_id,
        cluster_id: config.cluster_id.clone(),
        seed: u64::from_ne_bytes(seed),
        checkpoint_interval_ms: config.storage.checkpoint_interval_ms,
        producer_id_expiration_ms: config.storage.producer_id_expiration_ms,
        producer_id_check_interval_ms: config.storage.producer_id_check_interval_ms,
        verify_transactions: config.transactions.verify_partitions,
        compaction_map_bytes: config.storage.cleaner_map_bytes,
        open_files: default.open_files.min(open_files.max(MIN_FILES)),
        ..default
    }
}

fn connection_limits(config: &ServerConfig) -> ConnectionLimits {
    let (network, default) = (&config.network, ConnectionLimits::default());
    ConnectionLimits {
        request_max_bytes: network.request_max_bytes,
        in_flight_bytes: network.queued_max_request_bytes.unwrap_or(default.in_flight_bytes),
        // Ticks of a clock that starts at 0 never get there.
        max_idle_ms: network.connections_max_idle_ms.unwrap_or(u64::MAX >> 8),
    }
}

fn connection_caps(config: &ServerConfig) -> ConnectionCaps {
    ConnectionCaps { all: config.network.max_connections, per_ip: config.network.max_connections_per_ip }
}

async fn bind_all(config: &ServerConfig) -> io::Result<Vec<Bound>> {
    let mut bound = Vec::new();
    let configured = config.layers.configured(&crate::config::keys::network::ADVERTISED_LISTENERS).is_some();
    for listener in &config.listeners {
        let advertised = configured.then(|| (listener.advertised_host.clone(), listener.advertised_port));
        let listen = Listen { host: listener.host.clone(), port: listener.port, advertised };
        bound.extend(bind(&listen).await?);
    }
    Ok(bound)
}

/// Opens the registry of topics, and with it their logs.
async fn open_topics(
    logs: &Arc<LogDir>,
    config: &Arc<Config>,
    features: &Arc<Features>,
) -> Result<Arc<Topics>, StartError> {
    let (logs, config, features) = (logs.clone(), config.clone(), features.clone());
    Ok(blocking(move || Topics::open(logs, config, features, Arc::new(SystemClock))).await?)
}

/// The coordinator on its partitions, if they exist, and what it has to hear of.
async fn start_groups(
    config: &Config,
    topics: &Arc<Topics>,
    log_events: &LogEvents,
    clock: Clock,
    metrics: &Arc<Metrics>,
    journal: &Arc<Journal>,
) -> Result<Groups, StartError> {
    let planned = planned(config.current().offsets_topic.partitions);
    let world = World { topics: topics.image(), version: 0, config: topics.group_configs() };
    let groups = Groups::new(planned, world, clock, internal_topics(topics), metrics.clone(), journal.clone());
    if let Some(logs) = logs_of(topics, OFFSETS_TOPIC)? {
        groups.serve(logs);
    }
    let hosted = groups.clone();
    log_events.subscribe(Arc::new(move |partition: &TopicPartition, event| {
        if &*partition.topic == OFFSETS_TOPIC {
            hosted.log_moved(partition.partition, event);
        }
    }));
    let (hosted, registry) = (groups.clone(), Arc::downgrade(topics));
    topics.on_change(Arc::new(move |change| {
        if change.broker_config || !change.groups.is_empty() {
            hosted.config_changed(&change.configs, &change.groups);
        }
        if !change.changed.is_empty() || !change.deleted.is_empty() {
            hosted.topics_changed(&change.image, &change.changed, &change.deleted);
        }
        if change.deletes(OFFSETS_TOPIC) {
            hosted.retire();
        }
        if !hosted.has_shards()
            && let Some(logs) = appeared(&registry, change, OFFSETS_TOPIC)
        {
            hosted.serve(logs);
        }
    }));
    Ok(groups)
}

/// The transaction coordinator on its partitions, if they exist, and what it has to hear of.
async fn start_transactions(
    config: &Arc<Config>,
    features: &Arc<Features>,
    topics: &Arc<Topics>,
    groups: &Groups,
    log_events: &LogEvents,
    clock: Clock,
) -> Result<Transactions, StartError> {
    let planned = planned(config.current().transactions.state_topic.partitions);
    let markers = Markers::new(topics.clone(), groups.clone(), clock);
    let now = settings(&config.current(), features);
    let transactions = Transactions::new(planned, topics.clone(), markers, now, clock);
    if let Some(logs) = logs_of(topics, TRANSACTIONS_TOPIC)? {
        transactions.serve(logs);
    }
    let hosted = transactions.clone();
    log_events.subscribe(Arc::new(move |partition: &TopicPartition, event| {
        if &*partition.topic == TRANSACTIONS_TOPIC {
            hosted.log_moved(partition.partition, event);
        }
    }));
    let (hosted, config, features) = (transactions.clone(), config.clone(), features.clone());
    let registry = Arc::downgrade(topics);
    topics.on_change(Arc::new(move |change| {
        hosted.configure(&Arc::new(settings(&config.current(), &features)));
        if change.deletes(TRANSACTIONS_TOPIC) {
            hosted.retire();
        }
        if !hosted.has_shards()
            && let Some(logs) = appeared(&registry, change, TRANSACTIONS_TOPIC)
        {
            hosted.serve(logs);
        }
    }));
    Ok(transactions)
}

fn planned(partitions: i32) -> usize {
    usize::try_from(partitions).unwrap_or(1)
}

/// The logs of a coordinator's topic, by number; `None` if there is no such topic yet.
fn logs_of(topics: &Topics, topic: &'static str) -> Result<Option<Vec<Arc<PartitionLog>>>, StartError> {
    // A directory keeps the number it was made with: what it holds is found by it.
    let Some(partitions) = topics.state().topic(topic).map(|topic| topic.partitions.len()) else { return Ok(None) };
    let logs = (0..partitions).filter_map(|number| topics.partition(topic, number as i32));
    let logs: Vec<Arc<PartitionLog>> = logs.collect();
    if logs.is_empty() || logs.len() != partitions {
        let why = format!("{} of {partitions} partitions have a log", logs.len());
        return Err(StartError::InternalTopic { topic, why });
    }
    Ok(Some(logs))
}

/// The logs of a coordinator's topic, if a change has made it.
fn appeared(registry: &Weak<Topics>, change: &Change, topic: &'static str) -> Option<Vec<Arc<PartitionLog>>> {
    if !change.changed.iter().any(|changed| changed == topic) {
        return None;
    }
    let logs = logs_of(&*registry.upgrade()?, topic);
    logs.inspect_err(|error| tracing::error!("the new topic cannot be used: {error}")).ok().flatten()
}

/// How streams groups get their repartition and changelog topics.
fn internal_topics(topics: &Arc<Topics>) -> CreateInternalTopics {
    // The registry tells groups of changes, so it holds them; the other way round would keep both for ever.
    let topics = Arc::downgrade(topics);
    Arc::new(move |wanted: Vec<InternalTopic>| {
        let topics = topics.upgrade();
        Box::pin(async move {
            let failures = match topics {
                Some(topics) => topics.create_internal(wanted).await,
                None => wanted.into_iter().map(|topic| (topic.name, "the broker stops".to_owned())).collect(),
            };
            // Nobody is unauthorized without an authorizer.
            CreationOutcome { failures, unauthorized: Vec::new() }
        })
    })
}
