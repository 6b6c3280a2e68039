//! Hands what happens to logs on to those who wait for it: groups, waiting fetches.

use std::sync::{Arc, PoisonError, RwLock};

use log::{Event, Listener, LogDir, TopicPartition};

/// The one listener of a data directory. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct LogEvents(Arc<RwLock<Vec<Listener>>>);

impl LogEvents {
    /// Listens to everything in `logs` from now on.
    pub fn attach(&self, logs: &LogDir) {
        let events = self.clone();
        logs.set_listener(Arc::new(move |partition, event| events.tell(partition, event)));
    }

    /// `listener` is called on threads of the log: it must be quick and must not block.
    pub fn subscribe(&self, listener: Listener) {
        // A listener that panicked while others were told leaves the list whole.
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Forgets all listeners, and what they hold.
    pub fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn tell(&self, partition: &TopicPartition, event: Event) {
        for listener in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(partition, event);
        }
    }
}
