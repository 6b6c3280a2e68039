//! The entries of all groups in memory: the last 1,000 of each, and of all of them no more than so many bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::entry::Entry;

/// Entries of one group.
pub(super) const PER_GROUP: usize = 1_000;
/// Bytes of all entries, about. Beyond it the longest journal gives up its oldest ones.
const TOTAL_BYTES: usize = 16 << 20;
/// What an entry takes besides its texts.
const ENTRY_BYTES: usize = 400;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Store {
    groups: BTreeMap<String, VecDeque<Arc<Entry>>>,
    bytes: usize,
    entries: usize,
}

fn weight(entry: &Entry) -> usize {
    let texts = entry.text.len() + entry.detail.as_ref().map_or(0, String::len);
    ENTRY_BYTES + texts + entry.moves.len() * 150
}

impl Store {
    /// Adds an entry, or takes it for a repetition of the group's last one, which is then returned as it has become.
    pub fn add(&mut self, entry: Entry, fold: impl FnOnce(&mut Entry)) -> Arc<Entry> {
        let journal = self.groups.entry(entry.group.clone()).or_default();
        if let Some(last) = journal.back_mut().filter(|last| last.seq == entry.seq || last.repeats(&entry)) {
            self.bytes -= weight(last);
            // Of an entry that was folded the file has every state; the last one counts.
            let folded = if last.seq == entry.seq {
                entry
            } else {
                let mut folded = (**last).clone();
                (folded.times, folded.at_ms) = (folded.times + entry.times, entry.at_ms);
                fold(&mut folded);
                folded
            };
            self.bytes += weight(&folded);
            *last = Arc::new(folded);
            return last.clone();
        }
        let entry = Arc::new(entry);
        self.bytes += weight(&entry);
        self.entries += 1;
        journal.push_back(entry.clone());
        let oldest = if journal.len() > PER_GROUP { journal.pop_front() } else { None };
        self.forget(oldest);
        while self.bytes > TOTAL_BYTES && self.shorten() {}
        entry
    }

    /// The longest journal loses its oldest entry.
    fn shorten(&mut self) -> bool {
        let longest = self.groups.iter().max_by_key(|(_, journal)| journal.len()).map(|(group, _)| group.clone());
        let Some(group) = longest else { return false };
        let Some(journal) = self.groups.get_mut(&group) else { return false };
        let oldest = journal.pop_front();
        if journal.is_empty() {
            self.groups.remove(&group);
        }
        self.forget(oldest);
        true
    }

    fn forget(&mut self, entry: Option<Arc<Entry>>) {
        if let Some(entry) = entry {
            self.bytes -= weight(&entry);
            self.entries -= 1;
        }
    }

    /// The last `limit` entries of a group at or after a time; `None` if it has no journal.
    pub fn of_group(&self, group: &str, since_ms: i64, limit: usize) -> Option<Vec<Arc<Entry>>> {
        let journal = self.groups.get(group)?;
        let recent = journal.iter().rev().take_while(|entry| entry.at_ms >= since_ms).take(limit);
        let mut entries: Vec<_> = recent.cloned().collect();
        entries.reverse();
        Some(entries)
    }

    pub fn len(&self) -> usize {
        self.entries
    }

    /// All of them, in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self.groups.values().flatten().cloned().collect();
        all.sort_by_key(|entry| entry.seq);
        all
    }
}
