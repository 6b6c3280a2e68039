//! Hosts a coordinator: one shard per partition of its topic, called inline by whoever has a request.
//!
//! What is here is time, threads and loading, the same for every state machine. Every decision is the shard's, every byte on
//! disk the log's; what effects do, and what shards are told about the world, is [`Hosting`]'s. A steady heartbeat takes one
//! lock and returns; nothing is spawned, sent or woken for it.

mod hosted;
mod state_log;
mod timekeeper;
mod unavailable;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use coordinator::StateMachine;
use coordinator::runtime::{Released, Unavailable};
use log::PartitionLog;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::ids::RandomIds;
use hosted::{Hosted, Left, LoadError};
use timekeeper::Timekeeper;

pub(crate) use unavailable::error_code;

pub(crate) type CommandOf<H> = <<H as Hosting>::Machine as StateMachine>::Command;
pub(crate) type ReplyOf<H> = <<H as Hosting>::Machine as StateMachine>::Reply;
pub(crate) type EffectOf<H> = <<H as Hosting>::Machine as StateMachine>::Effect;
pub(crate) type EventOf<H> = <<H as Hosting>::Machine as StateMachine>::Event;
pub(crate) type EnvOf<'a, H> = <<H as Hosting>::Machine as StateMachine>::Env<'a>;

/// A reply, or why there is none.
pub(crate) type Replied<R> = Result<R, Unavailable>;

/// What one kind of coordinator has of its own.
pub(crate) trait Hosting: Sized + Send + Sync + 'static {
    type Machine: StateMachine<Command: 'static, Effect: 'static, Record: Send> + 'static;
    /// What shards are told about the world; each has a copy, which is replaced whenever it changes.
    type World: Clone + Send + Sync + 'static;

    /// What shards own, for messages.
    const WHAT: &'static str;
    /// Effects begin only when what the command wrote is durable.
    const EFFECTS_WAIT: bool;

    /// An empty one.
    fn machine() -> Self::Machine;
    fn env<'a>(world: &'a Self::World, ids: &'a mut RandomIds, members_total: u32) -> EnvOf<'a, Self>;
    /// Members whose heartbeats the machine paces (decision 13).
    fn members(machine: &Self::Machine) -> u32;
    /// Whether a shard must hear of it although it is being loaded.
    fn concerns_loading(command: &CommandOf<Self>) -> bool;
    /// Takes what happened; under the shard's lock, so it must be quick.
    fn happened(&self, event: EventOf<Self>);
    /// Begins the work; not under a lock, but it must not block.
    fn carry_out(host: &Host<Self>, shard: usize, effect: EffectOf<Self>);
}

/// A coordinator of this broker. Cheap to clone.
pub(crate) struct Host<H: Hosting>(Arc<Inner<H>>);

impl<H: Hosting> Clone for Host<H> {
    fn clone(&self) -> Self {
        Host(self.0.clone())
    }
}

type Shards<H> = Arc<[Arc<Hosted<H>>]>;

struct Inner<H: Hosting> {
    hosting: H,
    /// None as long as there is no topic to serve.
    shards: RwLock<Shards<H>>,
    /// As long as there are no shards: how many there will be, and what they will be told.
    planned: usize,
    world: Mutex<H::World>,
    clock: Clock,
    runtime: Handle,
    timekeeper: Timekeeper,
    /// Members on all shards (decision 13).
    members_total: AtomicU32,
}

impl<H: Hosting> Host<H> {
    /// Serves nothing until it is given partitions, of which `planned` are expected. Must be called on a tokio runtime.
    pub fn new(hosting: H, planned: usize, world: H::World, clock: Clock) -> Self {
        let host = Host(Arc::new(Inner {
            hosting,
            shards: RwLock::new(Arc::new([])),
            planned: planned.max(1),
            world: Mutex::new(world),
            clock,
            runtime: Handle::current(),
            timekeeper: Timekeeper::default(),
            members_total: AtomicU32::new(0),
        }));
        host.0.runtime.spawn(timekeeper::run(host.clone()));
        host
    }

    /// Takes over the partitions of the topic, in order of their numbers, and begins to load all of them. Does nothing if
    /// it has some.
    pub fn serve(&self, partitions: Vec<Arc<PartitionLog>>) {
        {
            let world = self.0.world.lock().unwrap_or_else(PoisonError::into_inner);
            let mut served = self.0.shards.write().unwrap_or_else(PoisonError::into_inner);
            if !served.is_empty() {
                return;
            }
            let shards = partitions.into_iter().enumerate();
            *served = shards.map(|(number, log)| Arc::new(Hosted::new(number, log, world.clone()))).collect();
        }
        for hosted in self.served().iter() {
            self.load(hosted);
        }
    }

    /// The topic was deleted, and what was known from it is gone: whoever waits is told to look for another coordinator.
    pub fn retire(&self) {
        let retired = {
            let mut served = self.0.shards.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *served, Arc::new([]))
        };
        self.close_all(&retired);
    }

    fn served(&self) -> Shards<H> {
        self.0.shards.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `None` if the topic is not there, or has fewer partitions.
    fn hosted(&self, shard: usize) -> Option<Arc<Hosted<H>>> {
        self.0.shards.read().unwrap_or_else(PoisonError::into_inner).get(shard).cloned()
    }

    /// Whether it was given partitions.
    pub fn has_shards(&self) -> bool {
        !self.served().is_empty()
    }

    pub fn hosting(&self) -> &H {
        &self.0.hosting
    }

    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Their number, zero before there are any.
    pub fn shards(&self) -> usize {
        self.served().len()
    }

    /// The shard that a group or transactional id lives on, or will live on (C R-1, T-1).
    pub fn shard_of(&self, key: &str) -> usize {
        let shards = if self.has_shards() { self.shards() } else { self.0.planned };
        wire::partition_of(key, shards as u32) as usize
    }

    /// `None` if the topic was deleted meanwhile.
    pub fn world(&self, shard: usize) -> Option<H::World> {
        Some(self.hosted(shard)?.world())
    }

    /// `None` if the topic was deleted meanwhile.
    pub fn log(&self, shard: usize) -> Option<Arc<PartitionLog>> {
        Some(self.hosted(shard)?.log().clone())
    }

    /// What shards are told, also where there are none yet.
    pub fn current_world(&self) -> H::World {
        self.0.world.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When this returns, no command sees the world as it was.
    pub fn change_world(&self, change: impl Fn(&mut H::World)) {
        let mut world = self.0.world.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut world);
        for shard in self.served().iter() {
            shard.change_world(&change);
        }
    }

    /// Runs a command and waits for its reply, which may be long in coming (JoinGroup).
    pub async fn call(&self, shard: usize, command: CommandOf<H>) -> Replied<ReplyOf<H>> {
        self.begin(shard, command).finish().await
    }

    /// Runs the same command on every shard.
    pub async fn call_all(&self, command: impl Fn() -> CommandOf<H>) -> Vec<Replied<ReplyOf<H>>> {
        let begun: Vec<_> = (0..self.shards()).map(|shard| self.begin(shard, command())).collect();
        let mut replies = Vec::with_capacity(begun.len());
        for begun in begun {
            replies.push(begun.finish().await);
        }
        replies
    }

    /// Runs a command now; the reply may be there already.
    pub fn begin(&self, shard: usize, command: CommandOf<H>) -> Begun<ReplyOf<H>> {
        let (sink, later) = oneshot::channel();
        let now = self.run(shard, command, move |reply| {
            // Whoever asked may have gone; the reply is of no use to anybody else.
            let _ = sink.send(reply);
        });
        Begun { now, later }
    }

    /// A command of the broker itself, whose reply says nothing.
    pub fn tell(&self, shard: usize, command: CommandOf<H>) {
        self.run(shard, command, |_| {});
    }

    fn run(
        &self,
        shard: usize,
        command: CommandOf<H>,
        sink: impl FnOnce(Replied<ReplyOf<H>>) + Send + 'static,
    ) -> Option<Replied<ReplyOf<H>>> {
        let Some(hosted) = self.hosted(shard) else { return Some(Err(Unavailable::NotCoordinator)) };
        let members_total = self.0.members_total.load(Ordering::Relaxed);
        let ran = hosted.run(self.0.clock, members_total, command, sink, &self.0.hosting);
        self.count_members(ran.members_change);
        self.0.timekeeper.wake_at(ran.wakeup_ms);
        ran.released.into_iter().for_each(Released::deliver);
        if !ran.effects.is_empty() {
            self.carry_out(&hosted, ran.effects, ran.effects_after);
        }
        if ran.broken {
            self.load(&hosted);
        }
        hosted.catch_up();
        ran.reply
    }

    fn count_members(&self, change: i32) {
        if change != 0 {
            self.0.members_total.fetch_add(change as u32, Ordering::Relaxed);
        }
    }

    fn carry_out(&self, hosted: &Hosted<H>, effects: Vec<EffectOf<H>>, after: u64) {
        let shard = hosted.number();
        if !H::EFFECTS_WAIT || hosted.is_committed(after) {
            return effects.into_iter().for_each(|effect| H::carry_out(self, shard, effect));
        }
        let host = self.clone();
        let begin = move |committed: Result<(), log::StorageError>| {
            // When the log failed, the shard is loaded again and asks anew for what its log still says.
            if committed.is_ok() {
                // The threads of the log have other things to do.
                host.runtime().clone().spawn(async move {
                    effects.into_iter().for_each(|effect| H::carry_out(&host, shard, effect));
                });
            }
        };
        hosted.log().when_committed(i64::try_from(after).unwrap_or(i64::MAX), Box::new(begin));
    }

    /// The log of a partition moved or failed; called on a thread of the log, or in the middle of a command that appends.
    pub fn log_moved(&self, partition: i32, event: log::Event) {
        let Ok(shard) = usize::try_from(partition) else { return };
        let Some(hosted) = self.hosted(shard) else { return };
        match event {
            log::Event::Advanced => hosted.committed(),
            log::Event::StartMoved => {}
            log::Event::Offline => {
                // Whoever appends holds the shard's lock: to wait for it here could be to wait for oneself.
                let host = self.clone();
                self.0.runtime.spawn(async move {
                    host.leave(hosted.fail());
                    host.load(&hosted);
                });
            }
        }
    }

    /// Loads a shard in the background, again and again until it succeeds or the broker stops.
    fn load(&self, hosted: &Arc<Hosted<H>>) {
        let (host, hosted) = (self.clone(), hosted.clone());
        self.0.runtime.spawn(async move {
            let mut pause = Duration::from_millis(100);
            loop {
                let (loading, shard) = (host.clone(), hosted.clone());
                let loaded = tokio::task::spawn_blocking(move || loading.load_now(&shard)).await;
                match loaded {
                    Ok(Ok(())) => return,
                    Ok(Err(LoadError::Busy | LoadError::Closed)) => return,
                    Ok(Err(LoadError::Log(error))) => {
                        tracing::error!(
                            partition = hosted.number(),
                            "cannot load the {} of a partition: {error}",
                            H::WHAT
                        );
                    }
                    Err(panicked) => tracing::error!(partition = hosted.number(), "loading {}: {panicked}", H::WHAT),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(30));
            }
        });
    }

    fn load_now(&self, hosted: &Hosted<H>) -> Result<(), LoadError> {
        let shard = hosted.number();
        let missed = hosted.load(self.0.clock)?;
        for command in missed {
            self.tell(shard, command);
        }
        // Arms the shard's timers, and counts its members.
        self.tell(shard, H::Machine::wakeup());
        Ok(())
    }

    /// Looks at the state of a shard, which may not be durable yet; `None` while it does not serve.
    pub fn look<R>(&self, shard: usize, look: impl FnOnce(&H::Machine) -> R) -> Option<R> {
        self.hosted(shard)?.look(look)
    }

    pub fn is_serving(&self) -> bool {
        self.served().iter().all(|shard| shard.is_serving())
    }

    /// How many replies wait: for something to happen, and for the log.
    pub fn waiting(&self) -> (usize, usize) {
        self.served().iter().map(|shard| shard.waiting()).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Members whose heartbeats are paced, on all shards.
    pub fn members_total(&self) -> u32 {
        self.0.members_total.load(Ordering::Relaxed)
    }

    /// Waits until every shard serves, but no longer than `limit`.
    pub async fn loaded(&self, limit: Duration) -> bool {
        let all = async {
            for shard in self.served().iter() {
                shard.is_loaded().await;
            }
        };
        tokio::time::timeout(limit, all).await.is_ok()
    }

    /// Stops serving: whoever waits is told to look for another coordinator.
    pub fn close(&self) {
        self.close_all(&self.served());
        self.0.timekeeper.stop();
    }

    fn close_all(&self, shards: &[Arc<Hosted<H>>]) {
        for shard in shards {
            self.leave(shard.close());
        }
    }

    fn leave(&self, left: Left<H>) {
        self.count_members(-(left.members as i32));
        if let Some(released) = left.released {
            released.deliver();
        }
    }
}

/// A command that has run.
pub(crate) struct Begun<R> {
    now: Option<Replied<R>>,
    later: oneshot::Receiver<Replied<R>>,
}

impl<R> Begun<R> {
    pub async fn finish(self) -> Replied<R> {
        match self.now {
            Some(reply) => reply,
            // A sink that is dropped unused belongs to a shard that was dropped.
            None => self.later.await.unwrap_or(Err(Unavailable::NotCoordinator)),
        }
    }
}
