//! Frames from the socket. Memory grows with what has arrived, never with what a length field claims, and a connection
//! that waits for its next request holds no buffer at all.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::tcp::ReadHalf;
use wire::ApiKey;

use super::CloseReason;
use super::limits::{Budget, ConnectionLimits, Share, frame_time_ms};
use super::registry::Tracked;
use crate::api::api;

const SCRATCH_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;
/// Length, key and version: what must be seen before anything is decided about a frame.
const PREFIX_BYTES: usize = LENGTH_BYTES + 4;
/// Key, version and correlation id.
const MIN_FRAME_BYTES: usize = 8;
/// Frames below this are copied out of a shared buffer, so that they do not keep it alive.
const COPY_BELOW_BYTES: usize = 16 << 10;
/// First step when a buffer grows for one large frame.
const GROW_BYTES: usize = 64 << 10;

thread_local! {
    /// Where a read lands first. One per worker thread, whatever the number of connections.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// A request that has arrived in full.
pub(super) struct Frame {
    /// Without the length.
    pub bytes: Bytes,
    pub share: Share,
}

/// Checked prefix of a frame that has not arrived in full.
struct Announced {
    bytes: usize,
    share: Share,
}

/// The receiving side of a connection.
pub(super) struct Input<'a> {
    socket: ReadHalf<'a>,
    limits: &'a ConnectionLimits,
    budget: &'a Budget,
    tracked: &'a Tracked,
    /// Received, not yet handed on. Empty and without capacity while the connection is quiet.
    buffer: BytesMut,
    /// The largest frame that came in full: one of that size is believed.
    trusted_bytes: usize,
    first: bool,
}

impl<'a> Input<'a> {
    pub fn new(socket: ReadHalf<'a>, limits: &'a ConnectionLimits, budget: &'a Budget, tracked: &'a Tracked) -> Self {
        Input { socket, limits, budget, tracked, buffer: BytesMut::new(), trusted_bytes: 0, first: true }
    }

    /// The next request, or nothing when the client is done. Not safe to drop half-way.
    pub async fn next(&mut self) -> Result<Option<Frame>, CloseReason> {
        if self.buffer.is_empty() {
            self.tracked.idle();
        } else {
            self.tracked.reading(frame_time_ms(0));
        }
        while self.buffer.len() < PREFIX_BYTES {
            self.check_length()?;
            if self.receive(0).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(CloseReason::CutOff) };
            }
            self.tracked.reading(frame_time_ms(0));
        }
        let frame_bytes = self.check_prefix()?;
        // It is not the client's fault if this takes long.
        self.tracked.busy();
        let announced = Announced { bytes: frame_bytes, share: self.budget.take(LENGTH_BYTES + frame_bytes).await };
        self.tracked.reading(frame_time_ms(frame_bytes));
        while self.buffer.len() < LENGTH_BYTES + announced.bytes {
            if self.receive(LENGTH_BYTES + announced.bytes).await? == 0 {
                return Err(CloseReason::CutOff);
            }
        }
        self.tracked.busy();
        Ok(Some(self.cut(announced)))
    }

    /// Marks that the client has sent something that made sense.
    pub fn understood(&mut self) {
        self.first = false;
    }

    /// A length that no request can have is not worth waiting for what comes after it.
    fn check_length(&self) -> Result<(), CloseReason> {
        match self.buffer.first_chunk::<LENGTH_BYTES>().map(|bytes| i32::from_be_bytes(*bytes)) {
            Some(length) if length < MIN_FRAME_BYTES as i32 => Err(CloseReason::TooShort { length }),
            _ => Ok(()),
        }
    }

    /// Length, key and version against the table and the limits (N-3).
    fn check_prefix(&self) -> Result<usize, CloseReason> {
        let at = |i: usize| [self.buffer[i], self.buffer[i + 1]];
        let length = i32::from_be_bytes([self.buffer[0], self.buffer[1], self.buffer[2], self.buffer[3]]);
        let key = i16::from_be_bytes(at(LENGTH_BYTES));
        let version = i16::from_be_bytes(at(LENGTH_BYTES + 2));
        let Some(api) = api(key) else { return Err(CloseReason::UnknownApi { key, length }) };
        // A client that is newer than we are learns our versions from the answer (N-3).
        let too_new_but_answered = api.key == ApiKey::ApiVersions && version > api.max_version;
        if !api.handles(version) && !too_new_but_answered {
            return Err(CloseReason::Version { key: api.key, version });
        }
        let limit = self.limits.frame_bytes(api, self.first);
        match usize::try_from(length) {
            Ok(bytes) if (MIN_FRAME_BYTES..=limit).contains(&bytes) => Ok(bytes),
            _ => Err(CloseReason::FrameLength { key: api.key, length, limit }),
        }
    }

    /// Reads once, towards a buffer of `wanted` bytes in all (0: not known yet). Returns 0 at the end of the stream.
    async fn receive(&mut self, wanted: usize) -> Result<usize, CloseReason> {
        let missing = wanted.saturating_sub(self.buffer.len());
        std::future::poll_fn(|cx| {
            if missing > SCRATCH_BYTES / 2 { self.poll_direct(cx, missing) } else { self.poll_scratch(cx) }
        })
        .await
        .map_err(CloseReason::Receive)
    }

    /// Small reads go through the thread's scratch space: most of the time it holds one whole request.
    fn poll_scratch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut target = ReadBuf::new(scratch);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut target))?;
            self.buffer.extend_from_slice(target.filled());
            Poll::Ready(Ok(target.filled().len()))
        })
    }

    /// The rest of a large frame goes straight into the buffer, which at most doubles each time it is full.
    fn poll_direct(&mut self, cx: &mut Context<'_>, missing: usize) -> Poll<io::Result<usize>> {
        let spare = self.buffer.capacity() - self.buffer.len();
        if spare == 0 {
            let believed = self.buffer.len().max(self.trusted_bytes).max(GROW_BYTES);
            self.buffer.reserve(missing.min(believed));
        }
        let before = self.buffer.len();
        let mut future = std::pin::pin!(tokio::io::AsyncReadExt::read_buf(&mut self.socket, &mut self.buffer));
        ready!(std::future::Future::poll(future.as_mut(), cx))?;
        Poll::Ready(Ok(self.buffer.len() - before))
    }

    fn cut(&mut self, announced: Announced) -> Frame {
        let end = LENGTH_BYTES + announced.bytes;
        self.trusted_bytes = self.trusted_bytes.max(end);
        let bytes = if self.buffer.len() == end {
            let mut frame = std::mem::take(&mut self.buffer);
            bytes::Buf::advance(&mut frame, LENGTH_BYTES);
            frame.freeze()
        } else if announced.bytes < COPY_BELOW_BYTES {
            let copy = Bytes::copy_from_slice(&self.buffer[LENGTH_BYTES..end]);
            bytes::Buf::advance(&mut self.buffer, end);
            copy
        } else {
            let mut frame = self.buffer.split_to(end);
            bytes::Buf::advance(&mut frame, LENGTH_BYTES);
            frame.freeze()
        };
        Frame { bytes, share: announced.share }
    }
}
