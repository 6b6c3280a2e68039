//! One shard with its lock, its log and its place in the life of the broker: loading, serving, failed, closed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use coordinator::runtime::{Called, Released, Unavailable};
use coordinator::{Cell, LogError};
use log::PartitionLog;
use tokio::sync::Notify;

use super::state_log::{Committed, PartitionStateLog};
use super::{CommandOf, EffectOf, Hosting, Replied, ReplyOf};
use crate::clock::Clock;
use crate::ids::RandomIds;

type CellOf<H> = Cell<<H as Hosting>::Machine, PartitionStateLog>;

/// UNKNOWN_SERVER_ERROR: a defect in the shard, which must not become an endless retry.
const DEFECT: Unavailable = Unavailable::Refused(LogError::Refused(-1));

/// See the module.
pub(super) struct Hosted<H: Hosting> {
    number: usize,
    log: Arc<PartitionLog>,
    committed: Arc<Committed>,
    slot: Mutex<Slot<H>>,
    /// Earliest timer of the shard, on the monotonic clock.
    wakeup_ms: AtomicU64,
    /// The log moved while somebody else held the lock.
    moved: AtomicBool,
    loaded: Notify,
}

struct Slot<H: Hosting> {
    phase: Phase<H>,
    world: H::World,
    ids: RandomIds,
    /// Members of broker-driven groups, as last counted.
    members: u32,
}

enum Phase<H: Hosting> {
    /// Nobody has begun to load it.
    New,
    /// It failed, and nobody loads it.
    Down,
    /// What the world tells meanwhile is kept for later.
    Loading {
        missed: Vec<CommandOf<H>>,
    },
    Serving(Box<CellOf<H>>),
    /// For good.
    Closed,
}

/// What a call came to, to be dealt with after the lock.
pub(super) struct Ran<H: Hosting> {
    pub reply: Option<Replied<ReplyOf<H>>>,
    pub effects: Vec<EffectOf<H>>,
    /// What has to be durable before effects that follow from the log.
    pub effects_after: u64,
    pub released: Vec<Released<ReplyOf<H>>>,
    pub wakeup_ms: u64,
    /// To be added to the number of members of the whole broker.
    pub members_change: i32,
    /// The shard has to be loaded again.
    pub broken: bool,
}

/// What a shard leaves behind that stops serving.
pub(super) struct Left<H: Hosting> {
    pub released: Option<Released<ReplyOf<H>>>,
    /// To be taken off the number of members of the whole broker.
    pub members: u32,
}

#[derive(Debug)]
pub(super) enum LoadError {
    /// Somebody else loads it, or it serves.
    Busy,
    Closed,
    Log(LogError),
}

impl<H: Hosting> Hosted<H> {
    pub fn new(number: usize, log: Arc<PartitionLog>, world: H::World) -> Self {
        Hosted {
            number,
            log,
            committed: Arc::default(),
            slot: Mutex::new(Slot { phase: Phase::New, world, ids: RandomIds::default(), members: 0 }),
            wakeup_ms: AtomicU64::new(u64::MAX),
            moved: AtomicBool::new(false),
            loaded: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot<H>> {
        // Panics of the shard are caught inside; nothing else that runs under this lock leaves it half-done.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn wakeup_ms(&self) -> u64 {
        self.wakeup_ms.load(Ordering::SeqCst)
    }

    pub fn log(&self) -> &Arc<PartitionLog> {
        &self.log
    }

    pub fn is_committed(&self, end: u64) -> bool {
        self.committed.get() >= end
    }

    pub fn world(&self) -> H::World {
        self.lock().world.clone()
    }

    pub fn change_world(&self, change: impl FnOnce(&mut H::World)) {
        change(&mut self.lock().world);
    }

    /// Runs one command. `sink` is used only if the reply cannot be given at once.
    /// The clock is read under the lock: no command may see an earlier time than the one before it.
    pub fn run(
        &self,
        clock: Clock,
        members_total: u32,
        command: CommandOf<H>,
        sink: impl FnOnce(Replied<ReplyOf<H>>) + Send + 'static,
        hosting: &H,
    ) -> Ran<H> {
        let mut slot = self.lock();
        let at = clock.now();
        let Slot { phase, world, ids, members } = &mut *slot;
        let cell = match phase {
            Phase::Serving(cell) => cell,
            Phase::Loading { missed } => {
                if H::concerns_loading(&command) {
                    missed.push(command);
                }
                return Ran::unavailable(Unavailable::Loading, self.wakeup_ms());
            }
            Phase::New => return Ran::unavailable(Unavailable::Loading, self.wakeup_ms()),
            Phase::Down | Phase::Closed => return Ran::unavailable(Unavailable::NotCoordinator, self.wakeup_ms()),
        };
        let mut env = H::env(world, ids, members_total);
        let called = catch_unwind(AssertUnwindSafe(|| cell.call(at, &mut env, command, sink)));
        let mut ran = match called {
            Ok(Called { reply, effects, events, effects_after, released }) => {
                // Under the lock, so that they keep their order.
                events.into_iter().for_each(|event| hosting.happened(event));
                Ran { reply, effects, effects_after, released: vec![released], ..Ran::nothing() }
            }
            Err(_) => {
                tracing::error!(
                    partition = self.number,
                    "a command made the coordinator panic; its {} are loaded again",
                    H::WHAT
                );
                Ran { reply: Some(Err(DEFECT)), released: vec![cell.poison()], ..Ran::nothing() }
            }
        };
        ran.broken = cell.is_poisoned();
        ran.wakeup_ms = if ran.broken { u64::MAX } else { cell.next_wakeup().unwrap_or(u64::MAX) };
        let counted = if ran.broken { 0 } else { H::members(cell.machine()) };
        ran.members_change = counted as i32 - *members as i32;
        *members = counted;
        self.wakeup_ms.store(ran.wakeup_ms, Ordering::SeqCst);
        if ran.broken {
            *phase = Phase::Down;
        }
        ran
    }

    /// Looks at the state machine; `None` while it does not serve.
    pub fn look<R>(&self, look: impl FnOnce(&H::Machine) -> R) -> Option<R> {
        match &self.lock().phase {
            Phase::Serving(cell) => Some(look(cell.machine())),
            _ => None,
        }
    }

    pub fn is_serving(&self) -> bool {
        matches!(self.lock().phase, Phase::Serving(_))
    }

    /// How many replies wait: for something to happen, and for the log.
    pub fn waiting(&self) -> (usize, usize) {
        match &self.lock().phase {
            Phase::Serving(cell) => cell.waiting(),
            _ => (0, 0),
        }
    }

    /// The log has moved; called on a thread of the log.
    pub fn committed(&self) {
        if self.committed.refresh(&self.log) {
            self.moved.store(true, Ordering::SeqCst);
            self.catch_up();
        }
    }

    /// Delivers what waited for the log, unless somebody holds the lock: then it is up to them.
    pub fn catch_up(&self) {
        while self.moved.load(Ordering::SeqCst) {
            let released = {
                let mut slot = match self.slot.try_lock() {
                    Ok(slot) => slot,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => return,
                };
                self.moved.store(false, Ordering::SeqCst);
                match &mut slot.phase {
                    Phase::Serving(cell) => cell.durable(),
                    _ => continue,
                }
            };
            released.deliver();
        }
    }

    /// Stops serving until it is loaded again; whoever waits learns it.
    pub fn fail(&self) -> Left<H> {
        self.leave(Phase::Down)
    }

    /// Stops serving for good.
    pub fn close(&self) -> Left<H> {
        self.leave(Phase::Closed)
    }

    fn leave(&self, next: Phase<H>) -> Left<H> {
        let mut slot = self.lock();
        self.wakeup_ms.store(u64::MAX, Ordering::SeqCst);
        let closed = matches!(slot.phase, Phase::Closed);
        let before = std::mem::replace(&mut slot.phase, if closed { Phase::Closed } else { next });
        let members = std::mem::take(&mut slot.members);
        drop(slot);
        self.loaded.notify_waiters();
        let released = match before {
            Phase::Serving(mut cell) => Some(cell.poison()),
            _ => None,
        };
        Left { released, members }
    }

    /// Reads the log, outside the lock, and begins to serve. Returns the commands that came meanwhile.
    pub fn load(&self, clock: Clock) -> Result<Vec<CommandOf<H>>, LoadError> {
        let (world, mut ids) = {
            let mut slot = self.lock();
            match slot.phase {
                Phase::New | Phase::Down => slot.phase = Phase::Loading { missed: Vec::new() },
                Phase::Closed => return Err(LoadError::Closed),
                Phase::Loading { .. } | Phase::Serving(_) => return Err(LoadError::Busy),
            }
            (slot.world.clone(), RandomIds::default())
        };
        let started = std::time::Instant::now();
        let mut cell = Cell::new(H::machine(), PartitionStateLog::new(self.log.clone(), self.committed.clone()));
        let load = || cell.load(H::machine(), clock.now(), &mut H::env(&world, &mut ids, 0));
        let loaded = catch_unwind(AssertUnwindSafe(load))
            .unwrap_or_else(|_| Err(LogError::Failed("the coordinator panicked".to_owned())));
        let mut slot = self.lock();
        let missed = match std::mem::replace(&mut slot.phase, Phase::Down) {
            Phase::Loading { missed } => missed,
            // It was closed, or its log failed again and somebody else sees to it.
            phase => {
                let closed = matches!(phase, Phase::Closed);
                slot.phase = phase;
                return Err(if closed { LoadError::Closed } else { LoadError::Busy });
            }
        };
        loaded.map_err(LoadError::Log)?;
        slot.phase = Phase::Serving(Box::new(cell));
        drop(slot);
        self.loaded.notify_waiters();
        tracing::debug!(partition = self.number, "{} loaded in {} ms", H::WHAT, started.elapsed().as_millis());
        Ok(missed)
    }

    /// Returns once the shard serves, or will not any more.
    pub async fn is_loaded(&self) {
        loop {
            let loaded = self.loaded.notified();
            tokio::pin!(loaded);
            loaded.as_mut().enable();
            if matches!(self.lock().phase, Phase::Serving(_) | Phase::Closed) {
                return;
            }
            loaded.await;
        }
    }
}

impl<H: Hosting> Ran<H> {
    fn nothing() -> Self {
        Ran {
            reply: None,
            effects: Vec::new(),
            effects_after: 0,
            released: Vec::new(),
            wakeup_ms: u64::MAX,
            members_change: 0,
            broken: false,
        }
    }

    fn unavailable(why: Unavailable, wakeup_ms: u64) -> Self {
        Ran { reply: Some(Err(why)), wakeup_ms, ..Ran::nothing() }
    }
}
