//! All connections: how many there are, which of them are idle, and how they end.
//!
//! A connection notes what it waits for in an atomic, without reading a clock; one task looks through all of them about
//! once per second and ends those that waited too long.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::limits::{ConnectionCaps, ConnectionLimits};

/// How often connections are looked at; resolution of every time limit on connections.
const TICK_MS: u64 = 500;
/// What an aborted task gets to end.
const ABORT_TIME: Duration = Duration::from_secs(2);
/// Room for the tick at which a wait ends; the rest of the word says what the connection does.
const STATE_BITS: u32 = 2;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;
const IDLE: u64 = 0;
const READING: u64 = 1;
const BUSY: u64 = 2;
const SENDING: u64 = 3;

/// What the sweeper knows about one connection.
#[derive(Debug)]
pub(crate) struct Tracked {
    clock: Arc<AtomicU64>,
    max_idle_ticks: u64,
    /// Tick at which the present state has lasted too long, and the state.
    word: AtomicU64,
    /// Answers that come later.
    outstanding: AtomicU64,
}

impl Tracked {
    fn new(clock: Arc<AtomicU64>, limits: &ConnectionLimits) -> Self {
        let tracked = Tracked {
            clock,
            max_idle_ticks: ticks(limits.max_idle_ms),
            word: AtomicU64::new(0),
            outstanding: AtomicU64::new(0),
        };
        tracked.idle();
        tracked
    }

    fn set(&self, state: u64, for_ticks: u64) {
        let until = self.clock.load(Ordering::Relaxed).saturating_add(for_ticks);
        self.word.store(until << STATE_BITS | state, Ordering::Relaxed);
    }

    /// Waits for a request.
    pub fn idle(&self) {
        self.set(IDLE, self.max_idle_ticks);
    }

    /// Has a part of a frame, the rest of which must come within that time. Does not move the deadline of a frame that
    /// is being read already.
    pub fn reading(&self, within_ms: u64) {
        if self.word.load(Ordering::Relaxed) & STATE_MASK != READING {
            self.set(READING, ticks(within_ms));
        }
    }

    /// Runs a handler, which has time limits of its own.
    pub fn busy(&self) {
        self.word.store(BUSY, Ordering::Relaxed);
    }

    /// Can go on only when the client takes its answers.
    pub fn sending(&self) {
        self.set(SENDING, self.max_idle_ticks);
    }

    /// The client took some.
    pub fn sent(&self) {
        if self.word.load(Ordering::Relaxed) & STATE_MASK == SENDING {
            self.sending();
        }
    }

    /// How many answers are to come later.
    pub fn outstanding(&self, answers: usize) {
        self.outstanding.store(answers as u64, Ordering::Relaxed);
    }

    fn is_at_work(&self) -> bool {
        matches!(self.word.load(Ordering::Relaxed) & STATE_MASK, BUSY | SENDING)
            || self.outstanding.load(Ordering::Relaxed) > 0
    }

    fn is_overdue(&self) -> Option<&'static str> {
        let word = self.word.load(Ordering::Relaxed);
        let overdue = word >> STATE_BITS < self.clock.load(Ordering::Relaxed);
        match word & STATE_MASK {
            IDLE if overdue => Some("idle for connections.max.idle.ms"),
            READING if overdue => Some("a request did not arrive in full in time"),
            SENDING if overdue => Some("the client does not take its answers"),
            _ => None,
        }
    }
}

fn ticks(ms: u64) -> u64 {
    ms.div_ceil(TICK_MS) + 1
}

struct Entry {
    tracked: Arc<Tracked>,
    remote: std::net::SocketAddr,
    task: Option<AbortHandle>,
}

struct Entries {
    caps: ConnectionCaps,
    next: u64,
    by_id: HashMap<u64, Entry>,
    by_ip: HashMap<IpAddr, usize>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Connections {
    clock: Arc<AtomicU64>,
    limits: Arc<ConnectionLimits>,
    entries: Arc<Mutex<Entries>>,
    left: Arc<Notify>,
}

/// Membership in [`Connections`]; dropped at the end of the connection, however it ends.
pub(crate) struct Registration {
    pub tracked: Arc<Tracked>,
    id: u64,
    ip: IpAddr,
    all: Connections,
}

impl Connections {
    pub fn new(limits: Arc<ConnectionLimits>, caps: ConnectionCaps) -> Self {
        let entries = Entries { caps, next: 0, by_id: HashMap::new(), by_ip: HashMap::new() };
        Connections { clock: Arc::default(), limits, entries: Arc::new(Mutex::new(entries)), left: Arc::default() }
    }

    /// For connections that are to come: none is closed.
    pub fn set_caps(&self, caps: ConnectionCaps) {
        self.lock().caps = caps;
        self.left.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        // Nothing that can panic runs under this lock.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Returns when there are fewer than `max.connections`.
    pub async fn room(&self) {
        loop {
            {
                let entries = self.lock();
                if entries.by_id.len() < entries.caps.all {
                    return;
                }
            }
            self.left.notified().await;
        }
    }

    /// Admits a connection, or says which limit it would exceed.
    pub fn admit(&self, remote: std::net::SocketAddr) -> Result<Registration, &'static str> {
        let ip = remote.ip();
        let mut entries = self.lock();
        let caps = entries.caps;
        if entries.by_id.len() >= caps.all {
            return Err("max.connections");
        }
        let from_ip = entries.by_ip.entry(ip).or_default();
        if *from_ip >= caps.per_ip {
            return Err("max.connections.per.ip");
        }
        *from_ip += 1;
        let id = entries.next;
        entries.next += 1;
        let tracked = Arc::new(Tracked::new(self.clock.clone(), &self.limits));
        entries.by_id.insert(id, Entry { tracked: tracked.clone(), remote, task: None });
        Ok(Registration { tracked, id, ip, all: self.clone() })
    }

    /// Tells how to end the connection, once its task exists.
    pub fn started(&self, id: u64, task: AbortHandle) {
        if let Some(entry) = self.lock().by_id.get_mut(&id) {
            entry.task = Some(task);
        }
    }

    /// Ends overdue connections, for as long as the broker runs.
    pub async fn sweep(self) {
        let mut interval = tokio::time::interval(Duration::from_millis(TICK_MS));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.clock.fetch_add(1, Ordering::Relaxed);
            for entry in self.lock().by_id.values() {
                if let (Some(why), Some(task)) = (entry.tracked.is_overdue(), &entry.task) {
                    tracing::info!(remote = %entry.remote, "connection closed: {why}");
                    task.abort();
                }
            }
        }
    }

    /// Ends what only waits for a request, at once; what is at work gets `grace` to answer.
    pub async fn close_all(&self, grace: Duration) {
        let started = tokio::time::Instant::now();
        loop {
            let expired = started.elapsed() >= grace;
            let mut left = 0;
            for entry in self.lock().by_id.values() {
                left += 1;
                if let Some(task) = entry.task.as_ref().filter(|_| expired || !entry.tracked.is_at_work()) {
                    task.abort();
                }
            }
            // A task that was aborted is gone as soon as it would wait for something.
            if left == 0 || started.elapsed() >= grace + ABORT_TIME {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Registration {
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut entries = self.all.lock();
        entries.by_id.remove(&self.id);
        if let Some(from_ip) = entries.by_ip.get_mut(&self.ip) {
            *from_ip -= 1;
            if *from_ip == 0 {
                entries.by_ip.remove(&self.ip);
            }
        }
        self.all.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(limits: ConnectionLimits, caps: ConnectionCaps) -> Connections {
        Connections::new(Arc::new(limits), caps)
    }

    fn pass(connections: &Connections, ms: u64) {
        connections.clock.fetch_add(ms / TICK_MS, Ordering::Relaxed);
    }

    #[test]
    fn limits_count_open_connections_in_all_and_per_address() {
        let all = connections(ConnectionLimits::default(), ConnectionCaps { all: 3, per_ip: 2 });
        let from = |last: u8| std::net::SocketAddr::from(([127, 0, 0, last], 1000));
        let first = all.admit(from(1)).unwrap();
        let _second = all.admit(from(1)).unwrap();
        assert_eq!(all.admit(from(1)).err(), Some("max.connections.per.ip"));
        let _third = all.admit(from(2)).unwrap();
        assert_eq!(all.admit(from(3)).err(), Some("max.connections"));
        drop(first);
        assert!(all.admit(from(1)).is_ok());
        assert_eq!(all.len(), 2);
        all.set_caps(ConnectionCaps { all: 2, per_ip: 1 });
        assert_eq!(all.admit(from(4)).err(), Some("max.connections"), "nobody is sent away");
        all.set_caps(ConnectionCaps { all: 3, per_ip: 1 });
        assert_eq!(all.admit(from(2)).err(), Some("max.connections.per.ip"));
        assert!(all.admit(from(4)).is_ok());
    }

    #[test]
    fn each_state_has_its_own_time() {
        let caps = ConnectionCaps { all: 1, per_ip: 1 };
        let all = connections(ConnectionLimits { max_idle_ms: 10_000, ..Default::default() }, caps);
        let registration = all.admit(std::net::SocketAddr::from(([127, 0, 0, 1], 1000))).unwrap();
        let tracked = &registration.tracked;
        pass(&all, 9_000);
        assert_eq!(tracked.is_overdue(), None);
        pass(&all, 3_000);
        assert!(tracked.is_overdue().is_some());
        tracked.busy();
        pass(&all, 3_600_000);
        assert_eq!(tracked.is_overdue(), None, "a handler is never idle");
        tracked.reading(30_000);
        pass(&all, 20_000);
        tracked.reading(30_000);
        pass(&all, 20_000);
        assert!(tracked.is_overdue().is_some(), "bytes that trickle in do not move the deadline of a frame");
        tracked.sending();
        pass(&all, 8_000);
        tracked.sent();
        pass(&all, 8_000);
        assert_eq!(tracked.is_overdue(), None, "a slow client is not a dead one");
        pass(&all, 8_000);
        assert!(tracked.is_overdue().is_some());
    }
}
