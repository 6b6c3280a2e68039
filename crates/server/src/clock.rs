//! Both clocks, read here and handed down.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use coordinator::Moment;

/// Monotonic time counts from the start of this broker. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Clock { started: Instant::now() }
    }

    /// Milliseconds since the start.
    pub fn mono_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Milliseconds since 1970.
    pub fn wall_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    pub fn now(&self) -> Moment {
        Moment { mono_ms: self.mono_ms(), wall_ms: self.wall_ms() }
    }

    /// The instant at which `mono_ms` is reached.
    pub fn instant(&self, mono_ms: u64) -> Instant {
        self.started + Duration::from_millis(mono_ms)
    }
}
