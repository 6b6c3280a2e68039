//! Work that shards ask for and that must not be done under their lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use coordinator::{Command, Effect, InternalTopic, TopicImage};
use regex::RegexBuilder;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use wire::KStr;

use super::World;

/// Compiled size of one expression (decision 25): a client must not be able to take memory with it.
const REGEX_BYTES: usize = 1 << 20;

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
    /// One assignor per core at a time.
    cores: Arc<Semaphore>,
}

impl Worker {
    pub fn new(create: CreateInternalTopics) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Worker { create, cores: Arc::new(Semaphore::new(cores)) }
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
                self.on_a_core(runtime, move || {
                    answer(Command::AssignmentReady { group_id, group_epoch, target: input.compute() });
                });
            }
            Effect::ResolveRegex { group_id, expressions } => {
                let (topics, image_version) = (world.topics.clone(), world.version);
                self.on_a_core(runtime, move || {
                    let matches = expressions.into_iter().map(|expression| {
                        let matches = matching_topics(&expression, &topics);
                        (expression, matches)
                    });
                    let matches = matches.collect();
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

/// The topics whose whole name matches (C K-33), by name.
fn matching_topics(expression: &str, topics: &TopicImage) -> Result<Vec<KStr>, String> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(REGEX_BYTES).build().map_err(|e| e.to_string());
    // By itself first: `a)|(b` makes sense in parentheses only.
    compile(expression)?;
    let regex = compile(&format!("^(?:{expression})$"))?;
    Ok(topics.iter().map(|(name, _)| name).filter(|name| regex.is_match(name)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use coordinator::TopicMetadata;
    use wire::Uuid;

    use super::*;

    #[test]
    fn k_33_expressions_match_whole_names() {
        let mut image = TopicImage::default();
        for (i, name) in ["orders", "orders-eu", "old-orders", "__consumer_offsets"].into_iter().enumerate() {
            image.insert(name.into(), TopicMetadata { id: Uuid([i as u8 + 1; 16]), partitions: 1, rack: None });
        }
        let names = |expression: &str| matching_topics(expression, &image).map(|all| all.join(" "));
        assert_eq!(names("orders"), Ok("orders".into()));
        assert_eq!(names("orders.*"), Ok("orders orders-eu".into()));
        assert_eq!(names("orders|old-orders"), Ok("old-orders orders".into()));
        assert_eq!(names("__.*"), Ok("__consumer_offsets".into()));
        assert_eq!(names("nothing"), Ok(String::new()));
        for invalid in ["[abc", "a)|(b", "(?!x).*", "(?:a{500}){500}{500}"] {
            assert!(names(invalid).is_err(), "{invalid}");
        }
    }
}
