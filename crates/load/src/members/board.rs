//! Who holds what, seen from outside: a partition is held from the response that gives it until the request that gives it back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// All groups, and what is counted over all of them.
pub struct Board {
    pub groups: Vec<Group>,
    pub heartbeats: AtomicU64,
    pub connected: AtomicUsize,
    /// Time that heartbeats took, in microseconds: a bucket for each power of two.
    latency: [AtomicU64; 40],
    /// Errors that no client of a healthy broker would see, by what they are.
    errors: Mutex<BTreeMap<String, u64>>,
}

/// One group.
pub struct Group {
    /// Owners of each partition.
    owners: Vec<AtomicI64>,
    /// Partitions with an owner.
    owned: AtomicUsize,
    /// Members that have what they are to have.
    settled: AtomicUsize,
    /// How often a partition was given to a second member while the first still held it.
    pub double_owned: AtomicU64,
}

impl Board {
    pub fn new(groups: usize, partitions: i32) -> Board {
        let group = |_| Group {
            owners: (0..partitions).map(|_| AtomicI64::new(0)).collect(),
            owned: AtomicUsize::new(0),
            settled: AtomicUsize::new(0),
            double_owned: AtomicU64::new(0),
        };
        Board {
            groups: (0..groups).map(group).collect(),
            heartbeats: AtomicU64::new(0),
            connected: AtomicUsize::new(0),
            latency: [const { AtomicU64::new(0) }; 40],
            errors: Mutex::default(),
        }
    }

    pub fn heartbeat(&self, took: Duration) {
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let bucket = (micros.ilog2() as usize).min(self.latency.len() - 1);
        self.latency[bucket].fetch_add(1, Ordering::Relaxed);
    }

    pub fn error(&self, what: impl ToString) {
        // Only counts are kept, which are whole even if a thread died.
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(what.to_string()).or_default() += 1;
    }

    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Upper bound, in microseconds, of the time that this share (0 to 1) of the heartbeats since `before` took.
    pub fn latency_micros(&self, before: &[u64], share: f64) -> u64 {
        let now = self.latencies();
        let counts: Vec<u64> = now.iter().zip(before).map(|(now, before)| now - before).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return 2 << bucket;
            }
        }
        0
    }

    pub fn latencies(&self) -> Vec<u64> {
        self.latency.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect()
    }

    pub fn double_owned(&self) -> u64 {
        self.groups.iter().map(|group| group.double_owned.load(Ordering::Relaxed)).sum()
    }
}

impl Group {
    pub fn partitions(&self) -> usize {
        self.owners.len()
    }

    pub fn take(&self, partition: i32) {
        let Some(owners) = usize::try_from(partition).ok().and_then(|at| self.owners.get(at)) else { return };
        match owners.fetch_add(1, Ordering::SeqCst) {
            0 => drop(self.owned.fetch_add(1, Ordering::SeqCst)),
            _ => drop(self.double_owned.fetch_add(1, Ordering::Relaxed)),
        }
    }

    pub fn give(&self, partition: i32) {
        let Some(owners) = usize::try_from(partition).ok().and_then(|at| self.owners.get(at)) else { return };
        if owners.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.owned.fetch_sub(1, Ordering::SeqCst);
        }
    }

    pub fn settle(&self) {
        self.settled.fetch_add(1, Ordering::SeqCst);
    }

    pub fn unsettle(&self) {
        self.settled.fetch_sub(1, Ordering::SeqCst);
    }

    /// All members have what they are to have, and together that is everything.
    pub fn is_stable(&self, members: usize) -> bool {
        self.settled.load(Ordering::SeqCst) == members && self.owned.load(Ordering::SeqCst) == self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_seen_and_a_passed_on_partition_is_none() {
        let board = Board::new(1, 2);
        let group = &board.groups[0];
        group.take(0);
        group.give(0);
        group.take(0);
        assert_eq!(board.double_owned(), 0);
        group.take(0);
        assert_eq!(board.double_owned(), 1);
        group.give(0);
        group.settle();
        assert!(!group.is_stable(1), "partition 1 has no owner");
        group.take(1);
        assert!(group.is_stable(1));
        group.take(7);
        group.give(-1);
        assert!(group.is_stable(1), "partitions that do not exist change nothing");
    }

    #[test]
    fn latencies_are_bounded_from_above() {
        let board = Board::new(1, 1);
        let before = board.latencies();
        (0..98).for_each(|_| board.heartbeat(Duration::from_micros(100)));
        (0..2).for_each(|_| board.heartbeat(Duration::from_millis(9)));
        assert_eq!(board.latency_micros(&before, 0.5), 128);
        assert_eq!(board.latency_micros(&before, 0.99), 16_384);
    }
}
