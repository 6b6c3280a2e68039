//! The group coordinator of this broker: shards on the partitions of `__consumer_offsets`, and what they are told.
//!
//! Every decision about groups is the shard's, every byte on disk the log's; running shards is `crate::hosting`'s.

mod effects;

use std::sync::Arc;
use std::time::Duration;

use coordinator::config::GroupConfigs;
use coordinator::journal::Event;
use coordinator::{Brief, Command, Effect, EndMarker, Env, Reply, Shard, TopicImage};
use log::PartitionLog;
use wire::{KStr, Uuid};

use crate::clock::Clock;
use crate::hosting::{self, Host, Hosting};
use crate::ids::RandomIds;
use crate::journal::Journal;
use crate::metrics::Metrics;
use effects::Worker;

pub(crate) use crate::hosting::error_code;
pub(crate) use effects::{CreateInternalTopics, CreationOutcome};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Groups(Host<GroupHosting>);

struct GroupHosting {
    worker: Worker,
    journal: Arc<Journal>,
}

/// What shards are told about the world; replaced as a whole whenever it changes.
#[derive(Clone)]
pub(crate) struct World {
    pub topics: Arc<TopicImage>,
    /// Counts the pictures of the topics.
    pub version: u64,
    pub config: Arc<GroupConfigs>,
}

pub(crate) type Replied = hosting::Replied<Reply>;
pub(crate) type Begun = hosting::Begun<Reply>;

impl Hosting for GroupHosting {
    type Machine = Shard;
    type World = World;

    const WHAT: &'static str = "groups";
    /// They lead to nothing that would be wrong without the command's records.
    const EFFECTS_WAIT: bool = false;

    fn machine() -> Shard {
        Shard::new()
    }

    fn env<'a>(world: &'a World, ids: &'a mut RandomIds, members_total: u32) -> Env<'a> {
        Env { topics: &world.topics, config: &world.config, ids, members_total }
    }

    fn members(machine: &Shard) -> u32 {
        machine.state().broker_driven_members()
    }

    fn concerns_loading(command: &Command) -> bool {
        matches!(command, Command::TopicsChanged { .. } | Command::GroupConfigChanged { .. })
    }

    fn happened(&self, event: Event) {
        self.journal.happened(event);
    }

    fn carry_out(host: &Host<Self>, shard: usize, effect: Effect) {
        // The groups that it is for may be gone with their topic.
        let Some(world) = host.world(shard) else { return };
        let answered = host.clone();
        let answer = move |command| answered.tell(shard, command);
        host.hosting().worker.carry_out(host.runtime(), effect, &world, answer);
    }
}

impl Groups {
    /// Serves nothing until it is given partitions of `__consumer_offsets`, of which `planned` are expected.
    /// Must be called on a tokio runtime.
    pub fn new(
        planned: usize,
        world: World,
        clock: Clock,
        create: CreateInternalTopics,
        metrics: Arc<Metrics>,
        journal: Arc<Journal>,
    ) -> Self {
        let hosting = GroupHosting { worker: Worker::new(create, metrics), journal };
        Groups(Host::new(hosting, planned, world, clock))
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

    /// The partition that a group lives on (C R-1).
    pub fn partition_of(&self, group_id: &str) -> i32 {
        self.0.shard_of(group_id) as i32
    }

    /// Runs a command for one group and waits for its reply, which may be long in coming (JoinGroup).
    pub async fn call(&self, group_id: &str, command: Command) -> Replied {
        self.0.call(self.0.shard_of(group_id), command).await
    }

    /// Runs the same command on every shard.
    pub async fn call_all(&self, command: impl Fn() -> Command) -> Vec<Replied> {
        self.0.call_all(command).await
    }

    /// Ends a transaction on a partition: its pending offsets count from then on, or are dropped (C X-7). `None` if there is
    /// no such partition.
    pub fn end_transaction(&self, partition: i32, marker: EndMarker) -> Option<Begun> {
        let shard = usize::try_from(partition).ok().filter(|shard| *shard < self.0.shards())?;
        Some(self.0.begin(shard, Command::TxnMarker(marker)))
    }

    /// Topics appeared, changed or vanished. When this returns, every shard knows.
    pub fn topics_changed(&self, image: &Arc<TopicImage>, changed: &[KStr], deleted: &[(KStr, Uuid)]) {
        self.0.change_world(|world| {
            world.topics = image.clone();
            world.version += 1;
        });
        for shard in 0..self.0.shards() {
            self.0.tell(shard, Command::TopicsChanged { changed: changed.to_vec(), deleted: deleted.to_vec() });
        }
    }

    /// Settings changed; `groups` are those whose own configuration did.
    pub fn config_changed(&self, config: &Arc<GroupConfigs>, groups: &[KStr]) {
        self.0.change_world(|world| world.config = config.clone());
        for group_id in groups {
            let command = Command::GroupConfigChanged { group_id: group_id.clone() };
            self.0.tell(self.0.shard_of(group_id), command);
        }
    }

    /// The log of a partition moved or failed; called on a thread of the log.
    pub fn log_moved(&self, partition: i32, event: log::Event) {
        self.0.log_moved(partition, event);
    }

    /// What there is to know of a group at a glance; `None` if there is none, or it is being loaded.
    pub fn brief(&self, group_id: &str) -> Option<Brief> {
        self.0.look(self.0.shard_of(group_id), |shard| shard.brief(group_id)).flatten()
    }

    /// Whether every group can be joined.
    pub fn is_serving(&self) -> bool {
        self.0.is_serving()
    }

    /// How many replies wait: for something to happen in a group, and for the log.
    pub fn waiting(&self) -> (usize, usize) {
        self.0.waiting()
    }

    /// Members of consumer and streams groups.
    pub fn members_total(&self) -> u32 {
        self.0.members_total()
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

#[cfg(test)]
mod tests;
