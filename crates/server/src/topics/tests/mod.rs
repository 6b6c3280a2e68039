//! The registry on a real directory.

mod configs;
mod creation;
mod restart;

use std::sync::{Arc, Mutex};

use log::{DirConfig, Isolation, LogDir, PartitionLog, ReadParams, RealFs, SystemClock, TopicPartition};
use tempfile::TempDir;
use wire::KStr;
use wire::batch::Batch;

use super::create::Creations;
use super::{Alteration, NewTopic, Operation, Refusal, ResourceType, Topics};
use crate::config::{Config, Format, ServerConfig, load_text, properties};
use crate::features::Features;

/// A registry in a directory that can be closed, crashed and opened again.
struct Bench {
    dir: TempDir,
    settings: String,
    logs: Arc<LogDir>,
    config: Arc<Config>,
    features: Arc<Features>,
    topics: Arc<Topics>,
}

impl Bench {
    fn new(settings: &str) -> Bench {
        Bench::open(tempfile::tempdir().expect("a temporary directory"), settings)
    }

    fn open(dir: TempDir, settings: &str) -> Bench {
        match Bench::try_open(dir, settings) {
            Ok(bench) => bench,
            Err(error) => panic!("{error}"),
        }
    }

    fn try_open(dir: TempDir, settings: &str) -> Result<Bench, super::MetadataError> {
        let (values, _) = load_text(Format::Properties, properties(settings)).expect("settings");
        let config = Arc::new(Config::new(ServerConfig::from_values(values).expect("settings")));
        let features = Arc::<Features>::default();
        let logs =
            LogDir::open(Arc::new(RealFs), Arc::new(SystemClock), DirConfig::new(dir.path())).expect("a directory");
        let topics = Topics::open(logs.clone(), config.clone(), features.clone(), Arc::new(SystemClock))?;
        Ok(Bench { dir, settings: settings.to_owned(), logs, config, features, topics })
    }

    /// Closes properly and starts again.
    fn restart(self) -> Bench {
        self.logs.close().expect("closes");
        self.crash()
    }

    /// Starts again without having closed.
    fn crash(self) -> Bench {
        let (dir, settings) = self.kill();
        Bench::open(dir, &settings)
    }

    /// Ends without having closed; returns once nobody holds the directory any more.
    fn kill(self) -> (TempDir, String) {
        let Bench { dir, settings, logs, topics, .. } = self;
        let held = Arc::downgrade(&logs);
        drop((logs, topics));
        while held.strong_count() > 0 {
            // The log's own thread lets go at the end of its round.
            std::thread::yield_now();
        }
        (dir, settings)
    }

    async fn create(&self, topics: Vec<NewTopic>) -> Creations {
        self.topics.create(topics, false).await.expect("a result per topic")
    }

    /// One topic, which must come about.
    async fn created(&self, name: &str, partitions: i32) {
        let new = NewTopic { partitions, ..topic(name) };
        for (name, result) in self.create(vec![new]).await {
            result.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        }
    }

    async fn alter(&self, kind: ResourceType, name: &str, operations: &[(&str, Operation)]) -> Result<(), Refusal> {
        let operations = operations.iter().map(|(key, operation)| (KStr::copy(key), operation.clone())).collect();
        let alteration = Alteration { kind, name: KStr::copy(name), operations, replace: false };
        self.topics.alter_configs(vec![alteration], false).await.expect("a result").remove(0)
    }

    /// What is set on a resource, as `key=value,...`.
    fn set_on(&self, kind: ResourceType, name: &str) -> String {
        let values = self.topics.state().config(kind, name);
        values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";")
    }

    /// Names and partition counts.
    fn listing(&self) -> String {
        let image = self.topics.image();
        image.iter().map(|(name, topic)| format!("{name}:{}", topic.partitions)).collect::<Vec<_>>().join(" ")
    }

    fn metadata_log(&self) -> Arc<PartitionLog> {
        self.logs.partition(&TopicPartition::new("__cluster_metadata", 0)).expect("a log")
    }

    /// Batches in the metadata log.
    fn metadata_batches(&self) -> usize {
        let log = self.metadata_log();
        let from_offset = log.offsets().expect("readable").log_start;
        let params =
            ReadParams { from_offset, max_bytes: usize::MAX, isolation: Isolation::LogEnd, min_one_batch: true };
        let data = log.read(&params).expect("readable");
        data.records.iter().map(|bytes| Batch::iter(bytes).count()).sum()
    }

    /// Directories of partitions, deleted ones left out.
    fn directories(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("a directory");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|n| n.contains('-') && !n.contains("checkpoint") && !n.ends_with("-delete")).collect();
        names.retain(|name| name != "__cluster_metadata-0");
        names.sort();
        names
    }
}

fn topic(name: &str) -> NewTopic {
    NewTopic::named(KStr::copy(name))
}

fn set(value: &str) -> Operation {
    Operation::Set(KStr::copy(value))
}

/// Collects what listeners are told, as text.
fn listen(topics: &Topics) -> Arc<Mutex<Vec<String>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    topics.on_change(Arc::new(move |change| {
        let deleted: Vec<_> = change.deleted.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!(
            "changed {:?} deleted {deleted:?} groups {:?} broker {}",
            change.changed, change.groups, change.broker_config
        );
        sink.lock().expect("no listener panics").push(text);
    }));
    told
}
