//! Hosts the coordinator: one shard per partition of `__consumer_offsets`, called inline by whoever has a request.
//!
//! What is here is time, threads, loading and effects. Every decision about groups is the shard's; every byte on disk
//! the log's. A steady heartbeat takes one lock and returns; nothing is spawned, sent or woken for it.

mod effects;
mod hosted;
mod state_log;
mod timekeeper;
mod unavailable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use coordinator::config::GroupConfigs;
use coordinator::runtime::{Released, Unavailable};
use coordinator::{Command, Effect, Reply, TopicImage, partition_of};
use log::PartitionLog;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use wire::{KStr, Uuid};

use crate::clock::Clock;
use effects::Worker;
use hosted::Hosted;
use timekeeper::Timekeeper;

pub(crate) use effects::{CreateInternalTopics, CreationOutcome};
pub(crate) use unavailable::error_code;

/// The group coordinator of this broker. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Groups(Arc<Inner>);

struct Inner {
    shards: Vec<Hosted>,
    clock: Clock,
    runtime: Handle,
    timekeeper: Timekeeper,
    worker: Worker,
    /// Members of broker-driven groups on all shards (decision 13).
    members_total: AtomicU32,
}

/// What shards are told about the world; replaced as a whole whenever it changes.
#[derive(Clone)]
pub(crate) struct World {
    pub topics: Arc<TopicImage>,
    /// Counts the pictures of the topics.
    pub version: u64,
    pub config: Arc<GroupConfigs>,
}

/// A reply, or why there is none.
pub(crate) type Replied = Result<Reply, Unavailable>;

impl Groups {
    /// Takes over the partitions of `__consumer_offsets`, in order of their numbers, and begins to load all of them.
    /// Must be called on a tokio runtime.
    pub fn start(partitions: Vec<Arc<PartitionLog>>, world: World, clock: Clock, create: CreateInternalTopics) -> Self {
        let shards = partitions.into_iter().enumerate();
        let inner = Arc::new(Inner {
            shards: shards.map(|(number, log)| Hosted::new(number, log, world.clone())).collect(),
            clock,
            runtime: Handle::current(),
            timekeeper: Timekeeper::default(),
            worker: Worker::new(create),
            members_total: AtomicU32::new(0),
        });
        let groups = Groups(inner);
        groups.0.runtime.spawn(timekeeper::run(groups.clone()));
        for shard in 0..groups.0.shards.len() {
            groups.load(shard);
        }
        groups
    }

    /// The shard that a group lives on (C R-1).
    fn shard_of(&self, group_id: &str) -> usize {
        partition_of(group_id, self.0.shards.len() as u32) as usize
    }

    /// Runs a command for one group and waits for its reply, which may be long in coming (JoinGroup).
    pub async fn call(&self, group_id: &str, command: Command) -> Replied {
        self.begin(self.shard_of(group_id), command).finish().await
    }

    /// Runs the same command on every shard.
    pub async fn call_all(&self, command: impl Fn() -> Command) -> Vec<Replied> {
        let begun: Vec<_> = (0..self.0.shards.len()).map(|shard| self.begin(shard, command())).collect();
        let mut replies = Vec::with_capacity(begun.len());
        for begun in begun {
            replies.push(begun.finish().await);
        }
        replies
    }

    /// Runs a command now; the reply may be there already.
    fn begin(&self, shard: usize, command: Command) -> Begun {
        let (sink, later) = oneshot::channel();
        let now = self.run(shard, command, move |reply| {
            // Whoever asked may have gone; the reply is of no use to anybody else.
            let _ = sink.send(reply);
        });
        Begun { now, later }
    }

    /// A command of the broker itself, whose reply says nothing.
    fn tell(&self, shard: usize, command: Command) {
        self.run(shard, command, |_| {});
    }

    fn run(&self, shard: usize, command: Command, sink: impl FnOnce(Replied) + Send + 'static) -> Option<Replied> {
        let hosted = &self.0.shards[shard];
        let members_total = self.0.members_total.load(Ordering::Relaxed);
        let ran = hosted.run(self.0.clock.now(), members_total, command, sink);
        if ran.members_change != 0 {
            self.0.members_total.fetch_add(ran.members_change as u32, Ordering::Relaxed);
        }
        self.0.timekeeper.wake_at(ran.wakeup_ms);
        ran.released.into_iter().for_each(Released::deliver);
        for effect in ran.effects {
            self.carry_out(shard, effect);
        }
        if ran.broken {
            self.load(shard);
        }
        hosted.catch_up();
        ran.reply
    }

    fn carry_out(&self, shard: usize, effect: Effect) {
        let world = self.0.shards[shard].world();
        let groups = self.clone();
        self.0.worker.carry_out(&self.0.runtime, effect, &world, move |command| groups.tell(shard, command));
    }

    /// Topics appeared, changed or vanished. When this returns, every shard knows.
    pub fn topics_changed(&self, image: &Arc<TopicImage>, changed: &[KStr], deleted: &[(KStr, Uuid)]) {
        for (number, shard) in self.0.shards.iter().enumerate() {
            shard.change_world(|world| {
                world.topics = image.clone();
                world.version += 1;
            });
            self.tell(number, Command::TopicsChanged { changed: changed.to_vec(), deleted: deleted.to_vec() });
        }
    }

    /// Settings changed; `groups` are those whose own configuration did.
    pub fn config_changed(&self, config: &Arc<GroupConfigs>, groups: &[KStr]) {
        for shard in &self.0.shards {
            shard.change_world(|world| world.config = config.clone());
        }
        for group_id in groups {
            self.tell(self.shard_of(group_id), Command::GroupConfigChanged { group_id: group_id.clone() });
        }
    }

    /// The log of a partition moved or failed; called on a thread of the log.
    pub fn log_moved(&self, partition: i32, event: log::Event) {
        let Some(shard) = usize::try_from(partition).ok().filter(|shard| *shard < self.0.shards.len()) else { return };
        let hosted = &self.0.shards[shard];
        match event {
            log::Event::Advanced => hosted.committed(),
            log::Event::StartMoved => {}
            log::Event::Offline => {
                hosted.fail().into_iter().for_each(Released::deliver);
                self.load(shard);
            }
        }
    }

    /// Loads a shard in the background, again and again until it succeeds or the broker stops.
    fn load(&self, shard: usize) {
        let groups = self.clone();
        self.0.runtime.spawn(async move {
            let mut pause = std::time::Duration::from_millis(100);
            loop {
                let loading = groups.clone();
                let loaded = tokio::task::spawn_blocking(move || loading.load_now(shard)).await;
                match loaded {
                    Ok(Ok(())) => return,
                    Ok(Err(hosted::LoadError::Busy | hosted::LoadError::Closed)) => return,
                    Ok(Err(hosted::LoadError::Log(error))) => {
                        tracing::error!(partition = shard, "cannot load the groups of a partition: {error}");
                    }
                    Err(panicked) => tracing::error!(partition = shard, "loading groups: {panicked}"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(std::time::Duration::from_secs(30));
            }
        });
    }

    fn load_now(&self, shard: usize) -> Result<(), hosted::LoadError> {
        let hosted = &self.0.shards[shard];
        let missed = hosted.load(self.0.clock)?;
        for command in missed {
            self.tell(shard, command);
        }
        // Arms the shard's timers, and counts its members.
        self.tell(shard, Command::Wakeup);
        Ok(())
    }

    /// Waits until every shard serves, but no longer than `limit`.
    pub async fn loaded(&self, limit: std::time::Duration) -> bool {
        let all = async {
            for shard in &self.0.shards {
                shard.is_loaded().await;
            }
        };
        tokio::time::timeout(limit, all).await.is_ok()
    }

    /// Stops serving: whoever waits is told to look for another coordinator.
    pub fn close(&self) {
        for shard in &self.0.shards {
            shard.close().into_iter().for_each(Released::deliver);
        }
        self.0.timekeeper.stop();
    }
}

/// A command that has run.
struct Begun {
    now: Option<Replied>,
    later: oneshot::Receiver<Replied>,
}

impl Begun {
    async fn finish(self) -> Replied {
        match self.now {
            Some(reply) => reply,
            // A sink that is dropped unused belongs to a shard that was dropped.
            None => self.later.await.unwrap_or(Err(Unavailable::NotCoordinator)),
        }
    }
}
