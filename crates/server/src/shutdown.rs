//! The sign to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// Cheap to clone; every clone sees the same sign.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(Arc<watch::Sender<bool>>);

impl Shutdown {
    pub fn new() -> Self {
        Shutdown(Arc::new(watch::Sender::new(false)))
    }

    /// Gives the sign; it cannot be taken back.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the sign was given.
    pub async fn begun(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`, so this only ends with the sign.
        let _ = receiver.wait_for(|begun| *begun).await;
    }
}
