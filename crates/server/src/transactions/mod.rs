//! The transaction coordinator of this broker: shards on the partitions of `__transaction_state`, and what they ask for.
//!
//! Every decision about transactions is the shard's; running shards is `crate::hosting`'s. What is here: producer ids, end
//! markers ([`markers`]), settings, and replies in the terms of handlers.

pub(crate) mod markers;

use std::sync::Arc;
use std::time::Duration;

use coordinator::Producer;
use coordinator::txn::{Command, Config, Effect, Env, ListFilter, Reply, TopicPartitions, TxnShard, never_granted};
use log::PartitionLog;
use wire::messages::describe_transactions_response::TransactionState as DescribedTransaction;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::end_txn_response::EndTxnResponse;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::init_producer_id_response::InitProducerIdResponse;
use wire::messages::list_transactions_response::TransactionState as ListedTransaction;
use wire::{ErrorCode, KStr};

use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::features::{Features, TRANSACTION_VERSION};
use crate::hosting::{Host, Hosting, Replied, error_code};
use crate::ids::RandomIds;
use crate::topics::Topics;
use markers::Markers;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Transactions(Host<TxnHosting>);

struct TxnHosting {
    topics: Arc<Topics>,
    markers: Markers,
}

impl Hosting for TxnHosting {
    type Machine = TxnShard;
    type World = Arc<Config>;

    const WHAT: &'static str = "transactions";
    /// Markers must not outlive the decision that they carry out.
    const EFFECTS_WAIT: bool = true;

    fn machine() -> TxnShard {
        TxnShard::new()
    }

    fn env<'a>(world: &'a Arc<Config>, _: &'a mut RandomIds, _: u32) -> Env<'a> {
        Env { config: world }
    }

    fn members(_: &TxnShard) -> u32 {
        0
    }

    fn concerns_loading(_: &Command) -> bool {
        false
    }

    fn happened(&self, event: std::convert::Infallible) {
        match event {}
    }

    fn carry_out(host: &Host<Self>, shard: usize, effect: Effect) {
        let (runtime, host) = (host.runtime().clone(), host.clone());
        match effect {
            Effect::AllocateProducerId { token } => {
                runtime.spawn(async move {
                    let producer_id = producer_id(&host.hosting().topics).await;
                    host.tell(shard, Command::ProducerIdAllocated { token, producer_id });
                });
            }
            Effect::WriteMarkers { transactional_id, producer, commit, raises_epoch, partitions } => {
                // The transaction may be gone with its topic.
                let Some(coordinator_epoch) = host.log(shard).map(|log| log.leader_epoch()) else { return };
                let marker = coordinator::EndMarker { producer, commit, coordinator_epoch, raises_epoch };
                runtime.spawn(async move {
                    let failed = host.hosting().markers.write_until_refused(marker, partitions).await;
                    host.tell(shard, Command::MarkersWritten { transactional_id, producer, failed });
                });
            }
        }
    }
}

/// A producer id that was never used.
pub(crate) async fn producer_id(topics: &Arc<Topics>) -> Result<i64, ErrorCode> {
    topics.next_producer_id().await.map_err(|refusal| {
        tracing::error!("no producer id can be given out: {refusal}");
        ErrorCode::CoordinatorNotAvailable
    })
}

/// The settings of the transaction coordinator (T-4, T-6).
pub(crate) fn settings(config: &ServerConfig, features: &Features) -> Config {
    let wanted = &config.transactions;
    let interval = |ms: i64| u64::try_from(ms).unwrap_or(0).max(1);
    Config {
        transaction_version: features.level(TRANSACTION_VERSION),
        max_timeout_ms: wanted.max_timeout_ms,
        abort_check_interval_ms: interval(wanted.abort_check_interval_ms),
        id_expiration_ms: wanted.id_expiration_ms,
        expiry_check_interval_ms: interval(wanted.expire_check_interval_ms),
    }
}

impl Transactions {
    /// Serves nothing until it is given partitions of `__transaction_state`, of which `planned` are expected.
    /// Must be called on a tokio runtime.
    pub fn new(planned: usize, topics: Arc<Topics>, markers: Markers, config: Config, clock: Clock) -> Self {
        Transactions(Host::new(TxnHosting { topics, markers }, planned, Arc::new(config), clock))
    }

    /// Takes over the partitions, in order of their numbers, and begins to load all of them. Does nothing if it has some.
    pub fn serve(&self, partitions: Vec<Arc<PartitionLog>>) {
        self.0.serve(partitions);
    }

    /// The topic was deleted.
    pub fn retire(&self) {
        self.0.retire();
    }

    /// Whether the topic is there.
    pub fn has_shards(&self) -> bool {
        self.0.has_shards()
    }

    pub fn markers(&self) -> &Markers {
        &self.0.hosting().markers
    }

    async fn call(&self, transactional_id: &str, command: Command) -> Replied<Reply> {
        self.0.call(self.0.shard_of(transactional_id), command).await
    }

    /// With a transactional id.
    pub async fn init_producer_id(
        &self,
        api_version: i16,
        request: InitProducerIdRequest,
    ) -> Result<InitProducerIdResponse, ErrorCode> {
        let id = request.transactional_id.clone().unwrap_or(KStr::EMPTY);
        // As Kafka does, before anybody asks where the coordinator is.
        if let Some(error) = never_granted(&id, request.transaction_timeout_ms, &self.0.current_world()) {
            return Err(error);
        }
        match self.call(&id, Command::InitProducerId { api_version, request }).await {
            Ok(Reply::InitProducerId(response)) => Ok(response),
            other => Err(failed(other)),
        }
    }

    /// P-3.
    pub async fn add_partitions(
        &self,
        transactional_id: &KStr,
        producer: Producer,
        partitions: TopicPartitions,
        client_version: i16,
    ) -> ErrorCode {
        let transactional_id = transactional_id.clone();
        let command =
            Command::AddPartitions { transactional_id: transactional_id.clone(), producer, partitions, client_version };
        match self.call(&transactional_id, command).await {
            Ok(Reply::Added(error)) => error,
            other => failed(other),
        }
    }

    /// P-5; the partitions that are not part of the transaction.
    pub async fn verify_partitions(
        &self,
        transactional_id: &KStr,
        producer: Producer,
        partitions: TopicPartitions,
    ) -> Result<TopicPartitions, ErrorCode> {
        let command = Command::VerifyPartitions { transactional_id: transactional_id.clone(), producer, partitions };
        match self.call(transactional_id, command).await {
            Ok(Reply::Verified(verified)) => verified,
            other => Err(failed(other)),
        }
    }

    pub async fn end(&self, api_version: i16, request: EndTxnRequest) -> Result<EndTxnResponse, ErrorCode> {
        let id = request.transactional_id.clone();
        match self.call(&id, Command::EndTxn { api_version, request }).await {
            Ok(Reply::EndTxn(response)) => Ok(response),
            other => Err(failed(other)),
        }
    }

    pub async fn describe(&self, transactional_id: &KStr) -> Result<DescribedTransaction, ErrorCode> {
        let command = Command::Describe { transactional_id: transactional_id.clone() };
        match self.call(transactional_id, command).await {
            Ok(Reply::Described(described)) => Ok(*described),
            other => Err(failed(other)),
        }
    }

    /// Of all shards; none if one of them is not there yet (D-2).
    pub async fn list(&self, filter: &ListFilter) -> Result<Vec<ListedTransaction>, ErrorCode> {
        let mut all = Vec::new();
        for replied in self.0.call_all(|| Command::List(filter.clone())).await {
            match replied {
                Ok(Reply::Listed(listed)) => all.extend(listed),
                other => return Err(failed(other)),
            }
        }
        Ok(all)
    }

    /// Settings or features may have changed.
    pub fn configure(&self, config: &Arc<Config>) {
        self.0.change_world(|world| *world = config.clone());
    }

    /// The log of a partition moved or failed; called on a thread of the log.
    pub fn log_moved(&self, partition: i32, event: log::Event) {
        self.0.log_moved(partition, event);
    }

    pub fn is_serving(&self) -> bool {
        self.0.is_serving()
    }

    /// Waits until every shard serves, but no longer than `limit`.
    pub async fn loaded(&self, limit: Duration) -> bool {
        self.0.loaded(limit).await
    }

    /// Stops serving: whoever waits is told to look for another coordinator.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Why there is not the reply that was expected.
fn failed(replied: Replied<Reply>) -> ErrorCode {
    match replied {
        Err(why) => error_code(&why),
        Ok(other) => {
            tracing::error!("the transaction coordinator gave another kind of reply: {other:?}");
            ErrorCode::UnknownServerError
        }
    }
}
