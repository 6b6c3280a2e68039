//! Deadlines of a shard.
//!
//! Moving a deadline further away, which every heartbeat does, touches no queue: the entry in the heap stays where it
//! is and is looked at again when it surfaces. So a member costs one heap operation per session timeout, not per heartbeat.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hash;

use crate::map::Map;

/// Deadlines by key, on the monotonic clock in milliseconds. Keys with equal deadlines fire in the order in which they
/// were set.
#[derive(Debug)]
pub struct Timers<K> {
    wanted: Map<K, Wanted>,
    heap: BinaryHeap<Reverse<(u64, u64, K)>>,
    order: u64,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    deadline_ms: u64,
    /// Order of the latest `set`, for ties.
    order: u64,
    /// The heap entry that is responsible for this key.
    armed_ms: u64,
    armed_order: u64,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Timers { wanted: Map::default(), heap: BinaryHeap::new(), order: 0 }
    }
}

impl<K: Clone + Ord + Hash> Timers<K> {
    /// Arms the timer of `key`, or moves it.
    pub fn set(&mut self, key: &K, deadline_ms: u64) {
        self.order += 1;
        let order = self.order;
        if let Some(wanted) = self.wanted.get_mut(key) {
            wanted.deadline_ms = deadline_ms;
            wanted.order = order;
            if deadline_ms >= wanted.armed_ms {
                return;
            }
            wanted.armed_ms = deadline_ms;
            wanted.armed_order = order;
        } else {
            let wanted = Wanted { deadline_ms, order, armed_ms: deadline_ms, armed_order: order };
            self.wanted.insert(key.clone(), wanted);
        }
        self.heap.push(Reverse((deadline_ms, order, key.clone())));
    }

    /// True if there was one.
    pub fn cancel(&mut self, key: &K) -> bool {
        self.wanted.remove(key).is_some()
    }

    pub fn deadline(&self, key: &K) -> Option<u64> {
        self.wanted.get(key).map(|wanted| wanted.deadline_ms)
    }

    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The next moment at which `pop_due` may have something. Never later than the earliest deadline.
    pub fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes the earliest timer that is due.
    pub fn pop_due(&mut self, now_ms: u64) -> Option<K> {
        while let Some(Reverse((at, order, _))) = self.heap.peek() {
            let (at, order) = (*at, *order);
            if at > now_ms {
                return None;
            }
            let Reverse((_, _, key)) = self.heap.pop()?;
            let Some(wanted) = self.wanted.get_mut(&key) else {
                continue;
            };
            if (wanted.armed_ms, wanted.armed_order) != (at, order) {
                continue; // replaced by an earlier entry, or cancelled and set anew
            }
            if (wanted.deadline_ms, wanted.order) == (at, order) {
                self.wanted.remove(&key);
                return Some(key);
            }
            wanted.armed_ms = wanted.deadline_ms;
            wanted.armed_order = wanted.order;
            self.heap.push(Reverse((wanted.deadline_ms, wanted.order, key)));
        }
        None
    }

    /// All armed timers by deadline; for tests and for comparison with the oracle.
    pub fn snapshot(&self) -> Vec<(u64, K)> {
        let mut all: Vec<_> = self.wanted.iter().map(|(key, wanted)| (wanted.deadline_ms, key.clone())).collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_in_order_of_deadline_then_of_setting() {
        let mut timers = Timers::default();
        timers.set(&"b", 10);
        timers.set(&"a", 10);
        timers.set(&"c", 5);
        assert_eq!(timers.pop_due(4), None);
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_due(10)).collect();
        assert_eq!(fired, ["c", "b", "a"]);
        assert!(timers.is_empty());
    }

    #[test]
    fn a_moved_deadline_fires_once_at_the_new_time() {
        let mut timers = Timers::default();
        timers.set(&1, 10);
        timers.set(&1, 30);
        assert_eq!(timers.pop_due(20), None);
        timers.set(&1, 25);
        assert_eq!(timers.pop_due(24), None);
        assert_eq!(timers.pop_due(25), Some(1));
        assert_eq!(timers.pop_due(100), None);
    }

    #[test]
    fn a_cancelled_timer_set_again_does_not_fire_at_the_old_time() {
        let mut timers = Timers::default();
        timers.set(&1, 10);
        assert!(timers.cancel(&1));
        timers.set(&1, 20);
        assert_eq!(timers.pop_due(15), None);
        assert_eq!(timers.pop_due(20), Some(1));
        assert!(!timers.cancel(&1));
    }

    #[test]
    fn moving_forward_does_not_grow_the_heap() {
        let mut timers = Timers::default();
        for at in 1..1000 {
            timers.set(&"member", 45_000 + at);
        }
        assert_eq!(timers.heap.len(), 1);
    }
}
