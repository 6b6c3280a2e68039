//! Fetches that wait for data.
//!
//! A waiting fetch registers one `Notify` with each of its partitions; the log's listener wakes those of the partition that moved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use log::TopicPartition;
use tokio::sync::Notify;

/// All that wait, by partition.
#[derive(Debug, Default)]
pub(crate) struct FetchWaiters {
    by_partition: Mutex<HashMap<TopicPartition, Vec<Arc<Notify>>>>,
}

/// One waiting fetch; ends its registration when dropped.
pub(crate) struct Waiting<'a> {
    waiters: &'a FetchWaiters,
    partitions: Vec<TopicPartition>,
    moved: Arc<Notify>,
}

impl FetchWaiters {
    /// Register before reading, so that nothing that comes in between is missed.
    pub fn register(&self, partitions: Vec<TopicPartition>) -> Waiting<'_> {
        let moved = Arc::new(Notify::new());
        let mut by_partition = self.by_partition.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &partitions {
            by_partition.entry(partition.clone()).or_default().push(moved.clone());
        }
        drop(by_partition);
        Waiting { waiters: self, partitions, moved }
    }

    /// Something happened to a partition. Called on threads of the log: quick, and without waiting.
    pub fn wake(&self, partition: &TopicPartition) {
        let by_partition = self.by_partition.lock().unwrap_or_else(PoisonError::into_inner);
        for moved in by_partition.get(partition).into_iter().flatten() {
            moved.notify_one();
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.by_partition.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Waiting<'_> {
    /// Returns when one of the partitions has moved since the registration, or since the last return.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut by_partition = self.waiters.by_partition.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &self.partitions {
            if let Some(waiting) = by_partition.get_mut(partition) {
                waiting.retain(|moved| !Arc::ptr_eq(moved, &self.moved));
                if waiting.is_empty() {
                    by_partition.remove(partition);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn wakes_those_of_the_partition_and_forgets_them_when_they_leave() {
        let waiters = FetchWaiters::default();
        let (a, b) = (TopicPartition::new("t", 0), TopicPartition::new("t", 1));
        let on_a = waiters.register(vec![a.clone()]);
        let on_both = waiters.register(vec![a.clone(), b.clone()]);
        waiters.wake(&b);
        on_both.moved().await;
        assert!(futures_pending(on_a.moved()), "only b moved");
        waiters.wake(&a);
        on_a.moved().await;
        on_both.moved().await;
        drop(on_a);
        drop(on_both);
        assert_eq!(waiters.len(), 0);
    }

    #[tokio::test]
    async fn a_move_before_the_wait_is_not_missed() {
        let waiters = FetchWaiters::default();
        let a = TopicPartition::new("t", 0);
        let waiting = waiters.register(vec![a.clone()]);
        waiters.wake(&a);
        waiting.moved().await;
    }

    fn futures_pending(future: impl Future) -> bool {
        let mut future = std::pin::pin!(future);
        future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
    }
}
