//! All settings, typed: what the rest of the server reads.

use std::path::PathBuf;

use coordinator::config::{BrokerConfig, MigrationPolicy};
use wire::KStr;

use super::keys::{groups, network, storage, transactions};
use super::layers::{Layers, Lookup, Values};
use super::listeners::{self, Listener};
use super::load::ConfigError;

/// One snapshot. A dynamic change makes a new one; what can only be set at the start is the same in all of them.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub node_id: i32,
    /// Configured id of the cluster; a data directory has its own.
    pub cluster_id: Option<String>,
    pub rack: Option<String>,
    /// Never empty.
    pub listeners: Vec<Listener>,
    /// Host and port of the admin interface; `None` switches it off.
    pub admin_http: Option<(String, u16)>,
    pub data_dir: PathBuf,
    pub network: NetworkConfig,
    pub topics: TopicDefaults,
    pub storage: StorageConfig,
    pub groups: BrokerConfig,
    pub offsets_topic: InternalTopicConfig,
    pub transactions: TransactionConfig,
    /// Where all of it comes from; also what topics fall back to.
    pub layers: Layers,
}

/// Sizes in bytes, times in milliseconds. `None`: no limit, or what the operating system does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    pub request_max_bytes: usize,
    pub queued_max_request_bytes: Option<usize>,
    pub connections_max_idle_ms: Option<u64>,
    pub max_connections: usize,
    pub max_connections_per_ip: usize,
    pub fetch_max_bytes: i32,
    pub fetch_session_slots: usize,
    /// Partitions in one DescribeTopicPartitions response.
    pub describe_partitions_max: i32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDefaults {
    pub auto_create: bool,
    pub delete_enable: bool,
    pub num_partitions: i32,
    /// As configured; more than the one node has is refused when a topic is created.
    pub replication_factor: i32,
    /// Decision 28.
    pub replication_factor_clamp: bool,
}

/// Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageConfig {
    pub retention_check_interval_ms: i64,
    pub cleaner_backoff_ms: i64,
    pub cleaner_map_bytes: usize,
    pub checkpoint_interval_ms: i64,
    pub producer_id_expiration_ms: i64,
    pub producer_id_check_interval_ms: i64,
}

/// How an internal topic is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopicConfig {
    pub partitions: i32,
    pub segment_bytes: i32,
}

/// Times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionConfig {
    pub state_topic: InternalTopicConfig,
    pub max_timeout_ms: i32,
    pub id_expiration_ms: i64,
    pub abort_check_interval_ms: i64,
    pub expire_check_interval_ms: i64,
    pub verify_partitions: bool,
    pub add_partitions_retry_ms: i64,
    pub add_partitions_retry_max_ms: i64,
}

impl Default for ServerConfig {
    /// What a broker without any argument runs with.
    fn default() -> Self {
        // Cannot fail: a test builds it.
        match ServerConfig::build(Layers::default()) {
            Ok(config) => config,
            Err(error) => unreachable!("the defaults contradict each other: {error}"),
        }
    }
}

impl ServerConfig {
    /// From checked values of the start configuration.
    pub fn from_values(values: Values) -> Result<ServerConfig, ConfigError> {
        ServerConfig::build(Layers::of_static(values))
    }

    /// From all layers. Fails when values contradict each other.
    pub fn build(layers: Layers) -> Result<ServerConfig, ConfigError> {
        let groups = group_config(&layers)?;
        groups.check().map_err(ConfigError::Conflict)?;
        Ok(ServerConfig {
            node_id: node_id(&layers)?,
            cluster_id: layers.text(&network::CLUSTER_ID).filter(|id| !id.is_empty()),
            rack: layers.text(&network::BROKER_RACK).filter(|rack| !rack.is_empty()),
            listeners: listeners::resolve(&layers)?,
            admin_http: admin_http(&layers)?,
            data_dir: data_dir(&layers)?,
            network: network_config(&layers),
            topics: topic_defaults(&layers),
            storage: storage_config(&layers),
            groups,
            offsets_topic: InternalTopicConfig {
                partitions: layers.int(&groups::OFFSETS_TOPIC_NUM_PARTITIONS),
                segment_bytes: layers.int(&groups::OFFSETS_TOPIC_SEGMENT_BYTES),
            },
            transactions: transaction_config(&layers),
            layers,
        })
    }
}

fn node_id(layers: &Layers) -> Result<i32, ConfigError> {
    let new = layers.configured_int(&network::NODE_ID);
    let old = layers.configured_int(&network::BROKER_ID).filter(|id| *id >= 0);
    match (new, old) {
        (Some(new), Some(old)) if new != old => {
            Err(ConfigError::Conflict(format!("node.id is {new}, but broker.id is {old}")))
        }
        (Some(id), _) | (None, Some(id)) => Ok(id),
        (None, None) => Ok(layers.int(&network::NODE_ID)),
    }
}

fn admin_http(layers: &Layers) -> Result<Option<(String, u16)>, ConfigError> {
    let text = layers.text(&network::ADMIN_HTTP_LISTENER).unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    match listeners::split_address(&text) {
        Some(address) => Ok(Some(address)),
        None => Err(ConfigError::Conflict(format!("admin.http.listener: '{text}' is not HOST:PORT"))),
    }
}

fn data_dir(layers: &Layers) -> Result<PathBuf, ConfigError> {
    let dirs = Some(layers.list(&storage::LOG_DIRS)).filter(|dirs| !dirs.is_empty());
    let dirs = dirs.unwrap_or_else(|| layers.list(&storage::LOG_DIR));
    match dirs.as_slice() {
        [dir] => Ok(PathBuf::from(dir)),
        _ => Err(ConfigError::Conflict(format!("log.dirs: one data directory is supported, not {}", dirs.len()))),
    }
}

fn network_config(layers: &Layers) -> NetworkConfig {
    let limit = |key| usize::try_from(layers.long(key)).ok();
    NetworkConfig {
        request_max_bytes: layers.unsigned(&network::SOCKET_REQUEST_MAX_BYTES) as usize,
        queued_max_request_bytes: limit(&network::QUEUED_MAX_REQUEST_BYTES).filter(|bytes| *bytes > 0),
        connections_max_idle_ms: u64::try_from(layers.long(&network::CONNECTIONS_MAX_IDLE_MS)).ok(),
        max_connections: layers.unsigned(&network::MAX_CONNECTIONS) as usize,
        max_connections_per_ip: layers.unsigned(&network::MAX_CONNECTIONS_PER_IP) as usize,
        fetch_max_bytes: layers.int(&network::FETCH_MAX_BYTES),
        fetch_session_slots: layers.unsigned(&network::FETCH_SESSION_SLOTS) as usize,
        describe_partitions_max: layers.int(&network::MAX_REQUEST_PARTITION_SIZE_LIMIT),
    }
}

fn topic_defaults(layers: &Layers) -> TopicDefaults {
    TopicDefaults {
        auto_create: layers.boolean(&storage::AUTO_CREATE_TOPICS_ENABLE),
        delete_enable: layers.boolean(&storage::DELETE_TOPIC_ENABLE),
        num_partitions: layers.int(&storage::NUM_PARTITIONS),
        replication_factor: layers.int(&storage::DEFAULT_REPLICATION_FACTOR),
        replication_factor_clamp: layers.boolean(&storage::REPLICATION_FACTOR_CLAMP),
    }
}

fn storage_config(layers: &Layers) -> StorageConfig {
    StorageConfig {
        retention_check_interval_ms: layers.long(&storage::LOG_RETENTION_CHECK_INTERVAL_MS),
        cleaner_backoff_ms: layers.long(&storage::LOG_CLEANER_BACKOFF_MS),
        cleaner_map_bytes: layers.unsigned(&storage::LOG_CLEANER_DEDUPE_BUFFER_SIZE) as usize,
        checkpoint_interval_ms: layers.long(&storage::LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS),
        producer_id_expiration_ms: layers.long(&storage::PRODUCER_ID_EXPIRATION_MS),
        producer_id_check_interval_ms: layers.long(&storage::PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS),
    }
}

fn transaction_config(layers: &Layers) -> TransactionConfig {
    TransactionConfig {
        state_topic: InternalTopicConfig {
            partitions: layers.int(&transactions::STATE_LOG_NUM_PARTITIONS),
            segment_bytes: layers.int(&transactions::STATE_LOG_SEGMENT_BYTES),
        },
        max_timeout_ms: layers.int(&transactions::MAX_TIMEOUT_MS),
        id_expiration_ms: layers.long(&transactions::TRANSACTIONAL_ID_EXPIRATION_MS),
        abort_check_interval_ms: layers.long(&transactions::ABORT_CHECK_INTERVAL_MS),
        expire_check_interval_ms: layers.long(&transactions::EXPIRE_CHECK_INTERVAL_MS),
        verify_partitions: layers.boolean(&transactions::PARTITION_VERIFICATION_ENABLE),
        add_partitions_retry_ms: layers.long(&transactions::ADD_PARTITIONS_RETRY_BACKOFF_MS),
        add_partitions_retry_max_ms: layers.long(&transactions::ADD_PARTITIONS_RETRY_BACKOFF_MAX_MS),
    }
}

fn names(layers: &Layers, key: &super::key::Key) -> Vec<KStr> {
    layers.list(key).into_iter().map(KStr::from).collect()
}

/// By name, or by the class that has the name in Kafka.
fn assignors(layers: &Layers, key: &super::key::Key) -> Vec<KStr> {
    const CLASSES: &[(&str, &str)] = &[
        ("org.apache.kafka.coordinator.group.assignor.UniformAssignor", "uniform"),
        ("org.apache.kafka.coordinator.group.assignor.RangeAssignor", "range"),
        ("org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor", "sticky"),
    ];
    let name = |text: String| match CLASSES.iter().find(|(class, _)| *class == text) {
        Some((_, name)) => KStr::from(*name),
        None => KStr::from(text),
    };
    layers.list(key).into_iter().map(name).collect()
}

/// Whoever configures bounds of the consumers' heartbeats has taken their pace into their own hands: it is then Kafka's, exactly.
fn consumer_pace(layers: &Layers, key: &super::key::Key) -> Option<i32> {
    let bounds = [&groups::CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, &groups::CONSUMER_MAX_HEARTBEAT_INTERVAL_MS];
    let bounded = bounds.iter().any(|bound| layers.configured_int(bound).is_some());
    layers.configured_int(key).or_else(|| bounded.then(|| layers.int(key)))
}

/// Values that are adaptive unless somebody configured them are taken only if somebody did (decisions 13, 13b, 14, 14b).
fn group_config(layers: &Layers) -> Result<BrokerConfig, ConfigError> {
    let protocols = layers.list(&groups::REBALANCE_PROTOCOLS);
    let serves = |name: &str| protocols.iter().any(|p| p == name);
    if !serves("classic") {
        return Err(ConfigError::Conflict("Disabling the 'classic' protocol is not supported.".to_owned()));
    }
    if serves("share") {
        return Err(ConfigError::Conflict(
            "group.coordinator.rebalance.protocols: share groups are not built".to_owned(),
        ));
    }
    let size = |key| layers.unsigned(key) as usize;
    Ok(BrokerConfig {
        consumer_protocol_enabled: serves("consumer"),
        streams_protocol_enabled: serves("streams"),
        classic_min_session_timeout_ms: layers.int(&groups::CLASSIC_MIN_SESSION_TIMEOUT_MS),
        classic_max_session_timeout_ms: layers.int(&groups::CLASSIC_MAX_SESSION_TIMEOUT_MS),
        classic_initial_rebalance_delay_ms: layers.configured_int(&groups::CLASSIC_INITIAL_REBALANCE_DELAY_MS),
        classic_max_size: size(&groups::CLASSIC_MAX_SIZE),
        consumer_session_timeout_ms: layers.int(&groups::CONSUMER_SESSION_TIMEOUT_MS),
        consumer_min_session_timeout_ms: layers.int(&groups::CONSUMER_MIN_SESSION_TIMEOUT_MS),
        consumer_max_session_timeout_ms: layers.int(&groups::CONSUMER_MAX_SESSION_TIMEOUT_MS),
        consumer_heartbeat_interval_ms: consumer_pace(layers, &groups::CONSUMER_HEARTBEAT_INTERVAL_MS),
        consumer_min_heartbeat_interval_ms: layers.int(&groups::CONSUMER_MIN_HEARTBEAT_INTERVAL_MS),
        consumer_max_heartbeat_interval_ms: layers.int(&groups::CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
        consumer_assignment_interval_ms: consumer_pace(layers, &groups::CONSUMER_ASSIGNMENT_INTERVAL_MS),
        consumer_min_assignment_interval_ms: layers.int(&groups::CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS),
        consumer_max_assignment_interval_ms: layers.int(&groups::CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS),
        consumer_max_size: size(&groups::CONSUMER_MAX_SIZE),
        consumer_assignors: assignors(layers, &groups::CONSUMER_ASSIGNORS),
        consumer_migration_policy: migration_policy(layers),
        consumer_regex_refresh_interval_ms: layers.int(&groups::CONSUMER_REGEX_REFRESH_INTERVAL_MS),
        streams_session_timeout_ms: layers.int(&groups::STREAMS_SESSION_TIMEOUT_MS),
        streams_min_session_timeout_ms: layers.int(&groups::STREAMS_MIN_SESSION_TIMEOUT_MS),
        streams_max_session_timeout_ms: layers.int(&groups::STREAMS_MAX_SESSION_TIMEOUT_MS),
        streams_heartbeat_interval_ms: layers.configured_int(&groups::STREAMS_HEARTBEAT_INTERVAL_MS),
        streams_min_heartbeat_interval_ms: layers.int(&groups::STREAMS_MIN_HEARTBEAT_INTERVAL_MS),
        streams_max_heartbeat_interval_ms: layers.int(&groups::STREAMS_MAX_HEARTBEAT_INTERVAL_MS),
        streams_max_size: size(&groups::STREAMS_MAX_SIZE),
        streams_num_standby_replicas: layers.int(&groups::STREAMS_NUM_STANDBY_REPLICAS),
        streams_max_standby_replicas: layers.int(&groups::STREAMS_MAX_STANDBY_REPLICAS),
        streams_initial_rebalance_delay_ms: layers.configured_int(&groups::STREAMS_INITIAL_REBALANCE_DELAY_MS),
        streams_assignment_interval_ms: layers.configured_int(&groups::STREAMS_ASSIGNMENT_INTERVAL_MS),
        streams_min_assignment_interval_ms: layers.int(&groups::STREAMS_MIN_ASSIGNMENT_INTERVAL_MS),
        streams_max_assignment_interval_ms: layers.int(&groups::STREAMS_MAX_ASSIGNMENT_INTERVAL_MS),
        streams_assignors: assignors(layers, &groups::STREAMS_ASSIGNORS),
        streams_rack_aware_assignment_tags: names(layers, &groups::STREAMS_RACK_AWARE_TAGS),
        streams_task_offset_interval_ms: layers.configured_int(&groups::STREAMS_TASK_OFFSET_INTERVAL_MS),
        streams_min_task_offset_interval_ms: layers.int(&groups::STREAMS_MIN_TASK_OFFSET_INTERVAL_MS),
        streams_num_warmup_replicas: layers.int(&groups::STREAMS_NUM_WARMUP_REPLICAS),
        streams_max_warmup_replicas: layers.int(&groups::STREAMS_MAX_WARMUP_REPLICAS),
        streams_acceptable_recovery_lag: layers.long(&groups::STREAMS_ACCEPTABLE_RECOVERY_LAG),
        heartbeat_adaptive: layers.boolean(&groups::HEARTBEAT_ADAPTIVE),
        heartbeat_cpu_share: layers.double(&groups::HEARTBEAT_CPU_SHARE),
        offset_metadata_max_chars: size(&groups::OFFSET_METADATA_MAX_BYTES),
        offsets_retention_ms: layers.long(&groups::OFFSETS_RETENTION_MINUTES) * 60_000,
        offsets_retention_check_interval_ms: layers.long(&groups::OFFSETS_RETENTION_CHECK_INTERVAL_MS),
    })
}

fn migration_policy(layers: &Layers) -> MigrationPolicy {
    match layers.text(&groups::CONSUMER_MIGRATION_POLICY).unwrap_or_default().to_ascii_lowercase().as_str() {
        "disabled" => MigrationPolicy::Disabled,
        "upgrade" => MigrationPolicy::Upgrade,
        "downgrade" => MigrationPolicy::Downgrade,
        _ => MigrationPolicy::Bidirectional,
    }
}
