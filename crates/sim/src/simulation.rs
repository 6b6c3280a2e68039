//! One run from its seed to its report.

use crate::settings::Cast;
use crate::world::World;

/// A run in which everything held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The same for the same seed and steps.
    pub hash: u64,
    pub events: u64,
    pub operations: u64,
    pub records: u64,
    /// Of the first group: its epoch, or generation.
    pub group_epoch: i32,
    /// Virtual milliseconds.
    pub took_ms: u64,
}

/// A run in which something did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub event: u64,
    pub what: String,
    /// The last lines of the trace.
    pub tail: Vec<String>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.tail {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {}, event {}: {}", self.seed, self.event, self.what)
    }
}

impl std::error::Error for Failure {}

/// Runs `steps` events in which things go wrong, and then to rest.
///
/// # Errors
/// What did not hold, with the events before it.
pub fn simulate(cast: Cast, seed: u64, steps: u64, print: bool) -> Result<Report, Box<Failure>> {
    let failure = |event, what, tail| Box::new(Failure { seed, event, what, tail });
    let mut world = World::new(cast, seed, print).map_err(|what| failure(0, what, Vec::new()))?;
    match world.run(steps).and_then(|()| world.settle()) {
        Ok(()) => Ok(Report {
            hash: world.trace.hash(),
            events: world.events,
            operations: world.operations,
            records: world.broker.log().end(),
            group_epoch: world.epoch(),
            took_ms: world.now_ms,
        }),
        Err(what) => Err(failure(world.events, what, world.trace.tail())),
    }
}
