//! What a command is told about the world: time, topics, configuration, fresh identifiers.

use std::sync::Arc;

use wire::{KStr, Uuid};

use crate::config::GroupConfigs;
use crate::topics::TopicImage;

/// One instant on both clocks, read by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic milliseconds; every deadline of the core is on this clock.
    pub mono_ms: u64,
    /// Wall clock, milliseconds since 1970; for what is written to the log (commit times, assignment times).
    pub wall_ms: i64,
}

/// The surroundings of one command. Cheap to build: two pointers to immutable snapshots and the source of ids.
pub struct Env<'a> {
    pub topics: &'a Arc<TopicImage>,
    pub config: &'a Arc<GroupConfigs>,
    pub ids: &'a mut dyn IdSource,
    /// Members of broker-driven groups on the whole broker, for the heartbeat budget (decision 13).
    pub members_total: u32,
}

/// Where identifiers come from: random in the server, seeded in the simulator, counted beside the oracle.
pub trait IdSource {
    /// A random (version 4) UUID.
    fn uuid(&mut self) -> Uuid;

    /// A UUID in its usual text form with dashes, as classic member ids use it (C M-7).
    fn uuid_text(&mut self) -> String {
        let b = self.uuid().0;
        let hex = |r: std::ops::Range<usize>| b[r].iter().map(|x| format!("{x:02x}")).collect::<String>();
        format!("{}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16))
    }

    /// `prefix` + "-" + UUID text.
    fn member_id(&mut self, prefix: &str) -> KStr {
        KStr::from(format!("{prefix}-{}", self.uuid_text()))
    }
}

/// Ids that count, in the form the coordinator oracle draws them: `00000000-0000-4000-8000-<n in 12 hex digits>`.
#[derive(Clone, Debug, Default)]
pub struct SeededIds(pub u64);

impl IdSource for SeededIds {
    fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        let mut bytes = [0; 16];
        bytes[6] = 0x40;
        bytes[8] = 0x80;
        bytes[10..].copy_from_slice(&self.0.to_be_bytes()[2..]);
        Uuid(bytes)
    }
}
