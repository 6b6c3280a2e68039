//! What has to hold, whatever happened to the disk.

use std::collections::{BTreeMap, BTreeSet};

use log::{Isolation, PartitionLog};

use super::model::{Fate, Model, PartitionModel};
use super::reader::{Seen, read_all};

/// Readers of committed data see nothing of a transaction that was not committed.
pub fn committed_only(model: &Model, partition: i32, seen: &[Seen]) -> Result<(), String> {
    let written = &model.partitions[partition as usize].written;
    for record in seen {
        let at = written.binary_search_by_key(&record.offset, |written| written.offset);
        let Some(known) = at.ok().map(|at| &written[at]).filter(|known| known.value == record.value) else {
            return Err(format!("partition {partition}: {record:?} was never written there"));
        };
        if let Some(index) = known.transaction {
            let fate = model.transactions[index].fate;
            if matches!(fate, Fate::Open | Fate::Aborted) {
                return Err(format!("partition {partition}: {record:?} of a transaction that is {fate:?}"));
            }
        }
    }
    Ok(())
}

/// After a restart: a prefix of what was written, with everything that was acknowledged. The model forgets the rest.
pub fn recovered(log: &PartitionLog, model: &mut PartitionModel, compacted: bool, whole: bool) -> Result<(), String> {
    let name = log.topic_partition();
    let marks = log.offsets().map_err(|error| format!("{name}: {error}"))?;
    let end = marks.log_end;
    if end < model.acknowledged_end {
        return Err(format!("{name} ends at {end}, acknowledged was {}", model.acknowledged_end));
    }
    let written_end = model.written.last().map_or(0, |last| last.offset + 1);
    if whole && end < written_end {
        return Err(format!("{name} ends at {end}, written was {written_end}"));
    }
    model.written.retain(|written| written.offset < end);
    let seen = read_all(log, Isolation::LogEnd, 4096)?;
    let found: BTreeMap<i64, &str> = seen.iter().map(|seen| (seen.offset, seen.value.as_str())).collect();
    for record in &seen {
        let at = model.written.binary_search_by_key(&record.offset, |written| written.offset);
        if at.ok().is_none_or(|at| model.written[at].value != record.value) {
            return Err(format!("{name}: {record:?} was never written there"));
        }
    }
    if !compacted && let Some(lost) = model.written.iter().find(|written| !found.contains_key(&written.offset)) {
        return Err(format!("{name}: {lost:?} is missing before the end, {end}"));
    }
    Ok(())
}

/// Nothing is under way: no transaction holds readers back, and committed transactions are there as a whole.
pub fn at_rest(log: &PartitionLog, model: &Model, partition: i32, compacted: bool) -> Result<(), String> {
    let name = log.topic_partition();
    let marks = log.offsets().map_err(|error| format!("{name}: {error}"))?;
    if marks.last_stable != marks.log_end || marks.durable != marks.log_end {
        let open = log.producers().unwrap_or_default().into_iter().filter(|known| known.txn_start_offset.is_some());
        return Err(format!("{name}: readers are held back: {marks:?} by {:?}", open.collect::<Vec<_>>()));
    }
    let seen = read_all(log, Isolation::LastStable, 2000)?;
    committed_only(model, partition, &seen)?;
    let of = &model.partitions[partition as usize];
    if compacted {
        let mut newest = BTreeMap::new();
        for written in of.written.iter().filter(|written| model.is_committed(written)) {
            newest.insert(&written.key, written);
        }
        let found: BTreeSet<_> = seen.iter().map(|seen| (seen.offset, &seen.value)).collect();
        let missing = newest.values().find(|newest| !found.contains(&(newest.offset, &newest.value)));
        return missing.map_or(Ok(()), |missing| Err(format!("{name}: {missing:?} is the newest and is missing")));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &seen {
        *counts.entry(&record.value).or_default() += 1;
    }
    let committed = model.transactions.iter().filter(|transaction| transaction.fate == Fate::Committed);
    let promised = committed.filter_map(|transaction| transaction.acknowledged.get(&partition)).flatten();
    for value in promised.chain(&of.acknowledged) {
        if counts.remove(value.as_str()) != Some(1) {
            return Err(format!("{name}: {value} is not there exactly once"));
        }
    }
    match counts.into_iter().next() {
        Some((value, _)) => Err(format!("{name}: {value} is there and was never acknowledged")),
        None => Ok(()),
    }
}

/// Replay equivalence: what the logs make of empty coordinators is what the live ones had become, compaction or not.
pub fn same_state(live: &[Vec<String>; 2], replayed: &[Vec<String>; 2]) -> Result<(), String> {
    for (live, replayed) in live.iter().zip(replayed) {
        if live != replayed {
            let only = |a: &[String], b: &[String]| {
                let lines = a.iter().filter(|line| b.binary_search(line).is_err()).take(8);
                lines.map(|line| line.trim()).collect::<Vec<_>>().join("\n  ")
            };
            return Err(format!(
                "the log makes another state than the live one\nlive only:\n  {}\nreplayed only:\n  {}",
                only(live, replayed),
                only(replayed, live)
            ));
        }
    }
    Ok(())
}
