//! The same broker, with a disk that goes wrong: real logs with the transaction coordinator and a shard of groups on them, and
//! clients that write in transactions and without.
//!
//! Crashes of the machine at any change of the disk (torn and lost writes, lost names), ends of the process, writes and syncs
//! that fail, a full disk, reads of other bytes than asked for; beside that, compaction, retention, checkpoints, timeouts. What
//! has to hold (`checks`): what was acknowledged is there, once; readers of committed data see whole transactions and no other;
//! nothing holds them back for ever; a state that is read from its log is the one that was written, compacted or not.

mod broker;
mod checks;
mod client;
mod faulty;
mod model;
mod reader;
mod state_log;
mod world;

use world::World;

const START_MS: i64 = 1_700_000_000_000;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub steps: u64,
    pub transactions: u64,
    /// Of the machine, of the process, and in order.
    pub crashes: u64,
    pub kills: u64,
    pub closes: u64,
    pub full_disks: u64,
    pub misreads: u64,
    pub compactions: u64,
}

/// Runs `steps` steps from a seed; the same seed gives the same run.
///
/// # Errors
/// What does not hold, with the seed and the step.
pub fn simulate(seed: u64, steps: u64) -> Result<Report, String> {
    let mut world = World::new(seed).map_err(|what| format!("seed {seed}: {what}"))?;
    world.run(steps).map_err(|what| format!("seed {seed}, step {}: {what}", world.report.steps))?;
    Ok(world.report)
}
