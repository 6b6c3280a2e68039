//! A bench for tests: a shard on a log in memory, in virtual time.
//!
//! [`Bench`] plays the part of the server: it owns the clock, the topics, the configuration and the source of ids, and
//! lets timers fire one at a time at their deadlines. [`MemoryLog`] is the log, durable at once or when the test says
//! so, and fails on demand. Nothing here decides anything about groups. Built for tests only (feature `testing`).

mod draw;
mod memory_log;

use std::sync::{Arc, Mutex, PoisonError};

use wire::{KStr, Uuid};

use crate::command::{Caller, Command};
use crate::config::{BrokerConfig, GroupConfigs, GroupOverrides};
use crate::env::{Env, Moment, SeededIds};
use crate::outcome::{Effect, Reply};
use crate::record::Record;
use crate::runtime::{Cell, StateMachine, Unavailable};
use crate::shard::Shard;
use crate::state_log::LogEntry;
use crate::topics::{TopicImage, TopicMetadata};

pub use draw::Draw;
pub use memory_log::{Durability, MemoryLog};

/// What a command came to, at once or later.
pub type Answer = Result<Reply, Unavailable>;

/// Names a command that the bench was given; 1 is the first.
pub type CallId = u64;

/// Timers that may fire within one `advance`; more means that one re-arms itself without end.
const MAX_FIRINGS: usize = 1_000_000;

/// A shard, its log and everything around it.
pub struct Bench {
    cell: Cell<Shard, MemoryLog>,
    now: Moment,
    topics: Arc<TopicImage>,
    config: Arc<GroupConfigs>,
    ids: SeededIds,
    topic_ids: u64,
    members_total: u32,
    calls: CallId,
    completed: Arc<Mutex<Vec<(CallId, Answer)>>>,
    effects: Vec<Effect>,
    /// Log entries that `records` has shown already.
    shown: usize,
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new()
    }
}

impl Bench {
    /// The clock shows 1000000 ms since 1970 and 10000 ms since start, so that code that mixes the two is found out.
    pub fn new() -> Self {
        Bench::with_config(BrokerConfig::default())
    }

    pub fn with_config(broker: BrokerConfig) -> Self {
        let mut bench = Bench {
            cell: Cell::new(Shard::new(), MemoryLog::default()),
            now: Moment { mono_ms: 10_000, wall_ms: 1_000_000 },
            topics: Arc::default(),
            config: Arc::new(GroupConfigs { broker, ..GroupConfigs::default() }),
            ids: SeededIds::default(),
            topic_ids: 0,
            members_total: 0,
            calls: 0,
            completed: Arc::default(),
            effects: Vec::new(),
            shown: 0,
        };
        bench.reload();
        bench
    }

    pub fn now(&self) -> Moment {
        self.now
    }

    /// Sets both clocks, before the first command.
    pub fn set_now(&mut self, now: Moment) {
        self.now = now;
        self.reload();
    }

    pub fn cell(&self) -> &Cell<Shard, MemoryLog> {
        &self.cell
    }

    pub fn shard(&self) -> &Shard {
        self.cell.machine()
    }

    pub fn log(&self) -> &MemoryLog {
        self.cell.log()
    }

    pub fn log_mut(&mut self) -> &mut MemoryLog {
        self.cell.log_mut()
    }

    /// Members on the whole broker, as commands are told.
    pub fn set_members_total(&mut self, members_total: u32) {
        self.members_total = members_total;
    }

    /// Runs a command; `None` while it is parked or waits for the log.
    ///
    /// # Panics
    /// If the coordinator is not available; `send` is for tests of that.
    #[track_caller]
    pub fn call(&mut self, command: Command) -> Option<Reply> {
        match self.send(command).1 {
            None => None,
            Some(Ok(reply)) => Some(reply),
            Some(Err(why)) => panic!("the command was not served: {why:?}"),
        }
    }

    /// Runs a command that has to be answered at once.
    #[track_caller]
    pub fn ask(&mut self, command: Command) -> Reply {
        self.call(command).expect("the command was parked")
    }

    /// Runs a command that has to be parked, and names it for `answer`.
    #[track_caller]
    pub fn park(&mut self, command: Command) -> CallId {
        let (id, answer) = self.send(command);
        assert_eq!(answer, None, "the command was not parked");
        id
    }

    /// Runs a command and takes whatever comes of it.
    pub fn send(&mut self, command: Command) -> (CallId, Option<Answer>) {
        self.calls += 1;
        let id = self.calls;
        let completed = Arc::clone(&self.completed);
        let mut env =
            Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total: self.members_total };
        let called = self.cell.call(self.now, &mut env, command, move |answer| {
            completed.lock().unwrap_or_else(PoisonError::into_inner).push((id, answer));
        });
        called.released.deliver();
        self.effects.extend(called.effects);
        (id, called.reply)
    }

    /// Moves both clocks. Timers fire at their deadlines, each as a command of its own.
    pub fn advance(&mut self, ms: u64) {
        let target = self.now.mono_ms + ms;
        for _ in 0..MAX_FIRINGS {
            match self.cell.next_wakeup() {
                Some(at) if at <= target => {
                    self.move_to(at.max(self.now.mono_ms));
                    self.send(Shard::wakeup());
                }
                _ => {
                    self.move_to(target);
                    return;
                }
            }
        }
        panic!("timers fire without end: {:?}", self.timers());
    }

    fn move_to(&mut self, mono_ms: u64) {
        self.now.wall_ms += (mono_ms - self.now.mono_ms) as i64;
        self.now.mono_ms = mono_ms;
    }

    /// The answers that came late since the last look, in their order.
    pub fn completed(&mut self) -> Vec<(CallId, Answer)> {
        std::mem::take(&mut *self.completed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the late answer to one command, if it came.
    pub fn answer(&mut self, id: CallId) -> Option<Answer> {
        let mut completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
        let index = completed.iter().position(|(of, _)| *of == id)?;
        Some(completed.remove(index).1)
    }

    /// Takes the late reply to one command, which has to be there.
    #[track_caller]
    pub fn reply(&mut self, id: CallId) -> Reply {
        self.answer(id).expect("the command is still parked").expect("the command was not served")
    }

    /// The records written since the last look.
    pub fn records(&mut self) -> Vec<Record> {
        let entries = &self.cell.log().entries()[self.shown..];
        let records = entries.iter().filter_map(memory_log::record).collect();
        self.shown = self.cell.log().entries().len();
        records
    }

    /// The effects asked for since the last look. The bench carries out none of them.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Armed timers with the milliseconds that are left, by deadline.
    pub fn timers(&self) -> Vec<(u64, String)> {
        let left = |at: u64| at.saturating_sub(self.now.mono_ms);
        self.shard().timers().into_iter().map(|(at, name)| (left(at), name)).collect()
    }

    /// The topic image that commands see.
    pub fn topics(&self) -> &Arc<TopicImage> {
        &self.topics
    }

    /// Creates a topic, or gives it another number of partitions, and tells the shard. Returns its id.
    pub fn set_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        let id = self.topics.get(name).map_or_else(
            || {
                self.topic_ids += 1;
                Uuid(u128::from(self.topic_ids).to_be_bytes())
            },
            |topic| topic.id,
        );
        self.set_topic_metadata(name, TopicMetadata { id, partitions, rack: None });
        id
    }

    /// Sets a topic as given and tells the shard.
    pub fn set_topic_metadata(&mut self, name: &str, metadata: TopicMetadata) {
        Arc::make_mut(&mut self.topics).insert(KStr::copy(name), metadata);
        self.send(Command::TopicsChanged { changed: vec![KStr::copy(name)], deleted: Vec::new() });
    }

    /// Sets and deletes topics in one image, and tells the shard once.
    pub fn update_topics(&mut self, set: Vec<(KStr, TopicMetadata)>, delete: &[KStr]) {
        let image = Arc::make_mut(&mut self.topics);
        let deleted = delete.iter().filter_map(|name| Some((name.clone(), image.remove(name)?.id))).collect();
        let changed = set.iter().map(|(name, _)| name.clone()).collect();
        for (name, metadata) in set {
            image.insert(name, metadata);
        }
        self.send(Command::TopicsChanged { changed, deleted });
    }

    /// Deletes a topic and tells the shard.
    pub fn delete_topic(&mut self, name: &str) {
        if let Some(old) = Arc::make_mut(&mut self.topics).remove(name) {
            self.send(Command::TopicsChanged { changed: Vec::new(), deleted: vec![(KStr::copy(name), old.id)] });
        }
    }

    pub fn config(&self) -> &GroupConfigs {
        &self.config
    }

    /// Changes the broker's configuration. It counts from the next command on.
    pub fn configure(&mut self, change: impl FnOnce(&mut BrokerConfig)) {
        change(&mut Arc::make_mut(&mut self.config).broker);
    }

    /// Replaces the configuration of a group and tells the shard.
    pub fn configure_group(&mut self, group_id: &str, overrides: GroupOverrides) {
        let group_id = KStr::copy(group_id);
        Arc::make_mut(&mut self.config).groups.insert(group_id.clone(), Arc::new(overrides));
        self.send(Command::GroupConfigChanged { group_id });
    }

    /// What was written becomes durable, and the answers that waited for it go out.
    pub fn make_durable(&mut self) {
        self.cell.log_mut().make_durable();
        self.cell.durable().deliver();
    }

    /// The coordinator moves away and comes back: parked commands are failed, the shard is rebuilt from the log.
    pub fn restart(&mut self) {
        self.cell.poison().deliver();
        self.reload();
    }

    /// As `restart`, with `entries` for the log.
    pub fn restart_from(&mut self, entries: Vec<LogEntry>) {
        self.cell.poison().deliver();
        self.cell.log_mut().replace(entries);
        self.shown = self.cell.log().entries().len();
        self.reload();
    }

    /// As `restart`, but what was not durable is lost.
    pub fn crash(&mut self) {
        self.cell.log_mut().lose_unsynced();
        self.restart();
        self.shown = self.shown.min(self.cell.log().entries().len());
    }

    fn reload(&mut self) {
        let mut env =
            Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total: self.members_total };
        self.cell.load(Shard::new(), self.now, &mut env).expect("what the shard wrote can be read");
    }
}

/// A caller of version `api_version`, as most tests need it.
pub fn caller(api_version: i16) -> Caller {
    Caller { client_id: KStr::from("client"), client_host: KStr::from("/127.0.0.1"), api_version }
}
