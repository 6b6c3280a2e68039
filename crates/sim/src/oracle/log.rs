//! What compaction leaves of a log of the coordinator.

use std::collections::HashMap;

use coordinator::{LogEntry, Producer};

/// The last record of each key, without tombstones, aborted records and markers. Records of open transactions stay as
/// they are, those of committed ones count as plain ones.
pub fn compacted(entries: &[LogEntry]) -> Vec<LogEntry> {
    let mut kept: Vec<Option<LogEntry>> = Vec::new();
    let mut open: HashMap<i64, Vec<usize>> = HashMap::new();
    for entry in entries {
        match entry {
            LogEntry::Record { producer, .. } => {
                if let Some(Producer { id, .. }) = producer {
                    open.entry(*id).or_default().push(kept.len());
                }
                kept.push(Some(entry.clone()));
            }
            LogEntry::Marker { producer, commit, .. } => {
                for index in open.remove(&producer.id).unwrap_or_default() {
                    match &mut kept[index] {
                        Some(LogEntry::Record { producer, .. }) if *commit => *producer = None,
                        slot => *slot = None,
                    }
                }
            }
        }
    }
    let mut last = HashMap::new();
    for (index, entry) in kept.iter().enumerate() {
        if let Some(LogEntry::Record { record, producer, .. }) = entry {
            last.insert((record.key.clone(), producer.map(|producer| producer.id)), index);
        }
    }
    let keep = |(index, entry): (usize, Option<LogEntry>)| match &entry {
        Some(LogEntry::Record { record, producer, .. }) => {
            let key = (record.key.clone(), producer.map(|producer| producer.id));
            (record.value.is_some() && last[&key] == index).then_some(entry).flatten()
        }
        _ => None,
    };
    kept.into_iter().enumerate().filter_map(keep).collect()
}
