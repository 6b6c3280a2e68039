//! Histories that are made up as they go, each from a seed.

mod classic;
mod consumer;
mod streams;
mod topics;

pub use classic::Classic;
pub use consumer::Consumer;
pub use streams::Streams;

use serde_json::{Value, json};

use super::duel::History;
use crate::rng::Rng;

/// What a history is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Classic groups and their offsets, with transactions and retention.
    Classic,
    /// Consumer groups and their offsets.
    Consumer,
    /// Members of both protocols in one group: migration online, and group types in each other's way.
    Migration,
    /// Streams groups and their offsets.
    Streams,
}

impl Family {
    pub const ALL: [Family; 4] = [Family::Classic, Family::Consumer, Family::Migration, Family::Streams];

    /// As it is called on the command line and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Family::Classic => "classic",
            Family::Consumer => "consumer",
            Family::Migration => "migration",
            Family::Streams => "streams",
        }
    }

    pub fn of(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }

    /// A history of `steps` commands.
    pub fn history(self, seed: u64, steps: usize) -> Box<dyn History> {
        match self {
            Family::Classic => Box::new(Classic::new(seed, steps)),
            Family::Consumer => Box::new(Consumer::new(seed, steps, false)),
            Family::Migration => Box::new(Consumer::new(seed, steps, true)),
            Family::Streams => Box::new(Streams::new(seed, steps)),
        }
    }
}

/// The log refuses the next write (C R-6).
fn failed_append(rng: &mut Rng) -> Value {
    let error = rng.pick(&["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"]);
    json!({"op": "failNextAppend", "error": error})
}
