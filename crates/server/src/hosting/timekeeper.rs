//! Lets the timers of all shards fire: one task, which sleeps until the earliest of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coordinator::StateMachine;
use tokio::sync::Notify;

use super::{Host, Hosting};

/// Timers that fire in a row before other tasks get a turn.
const BURST: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Timekeeper {
    /// When the task will wake up, on the monotonic clock.
    sleeps_until_ms: AtomicU64,
    earlier: Notify,
    stopped: AtomicBool,
}

impl Default for Timekeeper {
    fn default() -> Self {
        Timekeeper { sleeps_until_ms: AtomicU64::new(0), earlier: Notify::new(), stopped: AtomicBool::new(false) }
    }
}

impl Timekeeper {
    /// Some shard has a timer then. Costs one load unless it is earlier than all others.
    pub fn wake_at(&self, at_ms: u64) {
        if at_ms < self.sleeps_until_ms.load(Ordering::SeqCst) {
            self.earlier.notify_one();
        }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.earlier.notify_one();
    }
}

/// Runs until [`Timekeeper::stop`].
pub(super) async fn run<H: Hosting>(host: Host<H>) {
    let keeper = &host.0.timekeeper;
    while !keeper.stopped.load(Ordering::SeqCst) {
        // The order matters: whoever arms a timer after this line finds a value to compare with, or wakes us for nothing.
        keeper.sleeps_until_ms.store(u64::MAX, Ordering::SeqCst);
        let next = host.served().iter().map(|shard| shard.wakeup_ms()).min().unwrap_or(u64::MAX);
        keeper.sleeps_until_ms.store(next, Ordering::SeqCst);
        if next > host.0.clock.mono_ms() {
            sleep(&host, next).await;
        }
        for shard in 0..host.shards() {
            fire(&host, shard).await;
        }
    }
}

async fn sleep<H: Hosting>(host: &Host<H>, until_ms: u64) {
    let earlier = host.0.timekeeper.earlier.notified();
    if until_ms == u64::MAX {
        return earlier.await;
    }
    let until = tokio::time::Instant::from_std(host.0.clock.instant(until_ms));
    tokio::select! {
        () = earlier => {}
        () = tokio::time::sleep_until(until) => {}
    }
}

/// Each firing must see the state after the one before, so they go one by one.
async fn fire<H: Hosting>(host: &Host<H>, shard: usize) {
    let mut fired = 0;
    while host.hosted(shard).is_some_and(|hosted| hosted.wakeup_ms() <= host.0.clock.mono_ms()) {
        host.tell(shard, H::Machine::wakeup());
        fired += 1;
        if fired % BURST == 0 {
            tokio::task::yield_now().await;
        }
    }
}
