//! Replay equivalence: what the log makes of an empty shard is what the live shard has become.

use coordinator::runtime::Position;
use coordinator::{LogEntry, Shard, StateMachine};

/// # Errors
/// If the states differ, with what differs.
pub fn check(live: &Shard, entries: &[LogEntry]) -> Result<(), String> {
    let replayed = replayed(entries)?;
    let (live, replayed) = (canonical(live), canonical(&replayed));
    if live == replayed {
        return Ok(());
    }
    let only = |a: &[String], b: &[String]| {
        let lines = a.iter().filter(|line| b.binary_search(line).is_err()).take(10);
        lines.map(|line| line.trim()).collect::<Vec<_>>().join("\n  ")
    };
    Err(format!(
        "the log makes another state than the live one\nlive only:\n  {}\nreplayed only:\n  {}",
        only(&live, &replayed),
        only(&replayed, &live)
    ))
}

fn replayed(entries: &[LogEntry]) -> Result<Shard, String> {
    let mut shard = Shard::new();
    for entry in entries {
        match entry {
            LogEntry::Record { offset, timestamp_ms, producer, record } => {
                let position = Position { offset: *offset, timestamp_ms: *timestamp_ms, producer: *producer };
                if let Some(record) = Shard::decode(record)? {
                    shard.replay(position, record);
                }
            }
            LogEntry::Marker { offset, producer, commit } => {
                let position = Position { offset: *offset, timestamp_ms: 0, producer: None };
                shard.replay_marker(position, *producer, *commit);
            }
        }
    }
    Ok(shard)
}

/// The hard state line by line, sorted: hash maps show their entries in any order.
fn canonical(shard: &Shard) -> Vec<String> {
    let mut lines: Vec<_> = format!("{:#?}", shard.state()).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}
