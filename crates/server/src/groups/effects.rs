//! Work that shards ask for and that must not be done under their lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use coordinator::group::regex;
use coordinator::{Command, Effect, InternalTopic};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use wire::KStr;

use super::World;
use crate::metrics::Metrics;

/// What became of the creation of internal topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CreationOutcome {
    /// By topic, with an error text.
    pub failures: Vec<(KStr, String)>,
    /// Topics that the principal may not create.
    pub unauthorized: Vec<KStr>,
}

/// Creates internal topics of streams groups, all of one request together (S 4.8). A topic that exists already with
/// that many partitions is no failure.
pub(crate) type CreateInternalTopics =
    Arc<dyn Fn(Vec<InternalTopic>) -> Pin<Box<dyn Future<Output = CreationOutcome> + Send>> + Send + Sync>;

/// Carries effects out.
pub(super) struct Worker {
    create: CreateInternalTopics,
    metrics: Arc<Metrics>,
    /// One assignor per core at a time.
    cores: Arc<Semaphore>,
}

impl Worker {
    pub fn new(create: CreateInternalTopics, metrics: Arc<Metrics>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Worker { create, metrics, cores: Arc::new(Semaphore::new(cores)) }
    }

    /// Starts the work; `answer` takes the command that it comes back as.
    pub fn carry_out(
        &self,
        runtime: &Handle,
        effect: Effect,
        world: &World,
        answer: impl FnOnce(Command) + Send + 'static,
    ) {
        match effect {
            Effect::CreateInternalTopics { group_id, topics } => {
                let created = (self.create)(topics);
                runtime.spawn(async move {
                    let CreationOutcome { failures, unauthorized } = created.await;
                    answer(Command::InternalTopicsCreated { group_id, failures, unauthorized });
                });
            }
            Effect::ComputeAssignment { group_id, group_epoch, input } => {
                let metrics = self.metrics.clone();
                self.on_a_core(runtime, move || {
                    let began = std::time::Instant::now();
                    let target = input.compute();
                    metrics.assignor.record(began.elapsed());
                    answer(Command::AssignmentReady { group_id, group_epoch, target });
                });
            }
            Effect::ResolveRegex { group_id, expressions } => {
                let (topics, image_version) = (world.topics.clone(), world.version);
                self.on_a_core(runtime, move || {
                    let matches = regex::resolve(&expressions, &topics);
                    answer(Command::RegexResolved { group_id, matches, image_version });
                });
            }
        }
    }

    fn on_a_core(&self, runtime: &Handle, work: impl FnOnce() + Send + 'static) {
        let cores = self.cores.clone();
        runtime.spawn(async move {
            let permit = cores.acquire_owned().await;
            let done = tokio::task::spawn_blocking(move || {
                work();
                drop(permit);
            });
            if let Err(panicked) = done.await {
                tracing::error!("work for a group failed: {panicked}");
            }
        });
    }
}
