//! How much a connection, and all of them together, may ask of this process.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::{Api, FrameLimit};

/// Before a connection has sent one request that makes sense, it gets no more than this, unless it produces.
pub(crate) const FIRST_FRAME_BYTES: usize = 64 << 10;
const SMALL_FRAME_BYTES: usize = 64 << 10;
const GROUP_FRAME_BYTES: usize = 8 << 20;
/// Time a client has to send the rest of a frame: this, and what the slowest link that is served needs.
const FRAME_GRACE_MS: u64 = 30_000;
const SLOWEST_BYTES_PER_MS: u64 = 16;

/// Limits that are settings. Bytes and milliseconds; fixed while the broker runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// `socket.request.max.bytes`
    pub request_max_bytes: usize,
    /// `queued.max.request.bytes`: requests that are read or handled, on all connections together.
    pub in_flight_bytes: usize,
    /// `connections.max.idle.ms`
    pub max_idle_ms: u64,
}

/// How many connections there may be; changed while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCaps {
    /// `max.connections`
    pub all: usize,
    /// `max.connections.per.ip`
    pub per_ip: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits { request_max_bytes: 100 << 20, in_flight_bytes: 256 << 20, max_idle_ms: 600_000 }
    }
}

impl ConnectionLimits {
    /// Largest frame, without its length, that is read for this API.
    pub(crate) fn frame_bytes(&self, api: &Api, first: bool) -> usize {
        let limit = match api.limit {
            FrameLimit::Small => SMALL_FRAME_BYTES,
            FrameLimit::Group => GROUP_FRAME_BYTES,
            FrameLimit::Configured => self.request_max_bytes,
        };
        // A client of fixed version may open a connection and produce at once; nothing else starts with much.
        let first_limit = if api.key == wire::ApiKey::Produce { usize::MAX } else { FIRST_FRAME_BYTES };
        limit.min(self.request_max_bytes).min(if first { first_limit } else { usize::MAX })
    }
}

/// Time within which a frame of `bytes` must have arrived, from its first byte on.
pub(crate) fn frame_time_ms(bytes: usize) -> u64 {
    FRAME_GRACE_MS + bytes as u64 / SLOWEST_BYTES_PER_MS
}

/// Bytes of requests in flight, for the whole broker. Taken before the body of a frame is read, given back when the
/// answer is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    free: Arc<Semaphore>,
    total: usize,
}

/// A share of the budget; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share {
    _permit: OwnedSemaphorePermit,
}

impl Budget {
    /// `total` is raised to what one request may have, or that request could never be read.
    pub fn new(limits: &ConnectionLimits) -> Self {
        let total = limits.in_flight_bytes.max(limits.request_max_bytes).min(u32::MAX as usize);
        Budget { free: Arc::new(Semaphore::new(total)), total }
    }

    /// Waits, first come first served, until that much is free.
    pub async fn take(&self, bytes: usize) -> Share {
        let amount = bytes.min(self.total) as u32;
        let permit = match self.free.clone().try_acquire_many_owned(amount) {
            Ok(permit) => Some(permit),
            Err(_) => self.free.clone().acquire_many_owned(amount).await.ok(),
        };
        match permit {
            Some(_permit) => Share { _permit },
            // Only a closed semaphore refuses, and nobody closes this one.
            None => std::future::pending().await,
        }
    }
}
