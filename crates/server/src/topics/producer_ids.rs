//! Producer ids. They are allocated in blocks, so that few of them cost a write; a block that was begun is lost with the process.

use std::sync::{Arc, PoisonError};

use super::Topics;
use super::error::Refusal;

const BLOCK: i64 = 1000;

impl Topics {
    /// An id that was never handed out before and never will be again.
    pub async fn next_producer_id(self: &Arc<Self>) -> Result<i64, Refusal> {
        if let Some(id) = self.take_producer_id() {
            return Ok(id);
        }
        self.change(|registry, writer| {
            // Somebody else may have had the same wish.
            if let Some(id) = registry.take_producer_id() {
                return Ok(id);
            }
            let mut next = registry.state().clone();
            let first = next.next_producer_id;
            next.next_producer_id = first + BLOCK;
            registry.commit(writer, &[next.producer_ids(registry.node_id)])?;
            *registry.producer_ids.lock().unwrap_or_else(PoisonError::into_inner) = first + 1..first + BLOCK;
            Ok(first)
        })
        .await
    }

    fn take_producer_id(&self) -> Option<i64> {
        self.producer_ids.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}
