//! Answers to the socket, in the order of the requests (N-2).
//!
//! Answers that are ready gather until the connection would wait for something else, then leave in as few calls as possible;
//! large payloads are never copied, those from files do not even come here (`unsent.rs`). An answer that comes later (Produce) holds back the ones behind it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::tcp::WriteHalf;
use wire::Writer;

use super::CloseReason;
use super::limits::Share;
use super::registry::Tracked;
use super::unsent::Unsent;
use crate::api::{Answer, HandlerError};

/// Unsent bytes above which the next request has to wait.
const UNSENT_BYTES: usize = 256 << 10;
/// Answers that may be outstanding before the next request has to wait.
const OUTSTANDING: usize = 1024;

enum Outstanding {
    Ready(Writer),
    Later {
        answer: Pin<Box<dyn Future<Output = Result<Writer, HandlerError>> + Send>>,
        /// The request counts as in flight until then.
        _share: Share,
    },
}

/// The sending side of a connection.
pub(super) struct Output<'a> {
    socket: WriteHalf<'a>,
    tracked: Arc<Tracked>,
    /// In order of the requests; the first one is `Later`, or there is none.
    outstanding: VecDeque<Outstanding>,
    unsent: Unsent,
}

impl<'a> Output<'a> {
    pub fn new(socket: WriteHalf<'a>, tracked: Arc<Tracked>) -> Self {
        Output { socket, tracked, outstanding: VecDeque::new(), unsent: Unsent::default() }
    }

    /// Takes the answer to the latest request. Nothing is sent yet: see [`Output::drive`].
    pub fn push(&mut self, answer: Answer, share: Share) {
        match answer {
            Answer::NoResponse => {}
            Answer::Ready(writer) if self.outstanding.is_empty() => self.append(writer),
            Answer::Ready(writer) => self.outstanding.push_back(Outstanding::Ready(writer)),
            Answer::Later(answer) => {
                self.outstanding.push_back(Outstanding::Later { answer, _share: share });
                self.tracked.outstanding(self.outstanding.len());
            }
        }
    }

    /// Runs `work`, and sends what can be sent whenever `work` waits.
    pub async fn drive<F: Future>(&mut self, work: F) -> Result<F::Output, CloseReason> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            if !self.is_quiet()
                && let Poll::Ready(Err(error)) = self.poll_progress(cx)
            {
                return Poll::Ready(Err(error));
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until the client has taken enough for another request to make sense.
    pub async fn make_room(&mut self) -> Result<(), CloseReason> {
        if !self.is_crowded() {
            return Ok(());
        }
        self.tracked.sending();
        std::future::poll_fn(|cx| match self.poll_progress(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ if !self.is_crowded() => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        })
        .await
    }

    /// Sends everything there is, outstanding answers included.
    pub async fn finish(&mut self) -> Result<(), CloseReason> {
        self.tracked.sending();
        std::future::poll_fn(|cx| {
            ready!(self.poll_progress(cx))?;
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn is_quiet(&self) -> bool {
        self.outstanding.is_empty() && self.unsent.is_empty()
    }

    fn is_crowded(&self) -> bool {
        self.unsent.bytes() > UNSENT_BYTES || self.outstanding.len() >= OUTSTANDING
    }

    fn append(&mut self, writer: Writer) {
        writer.into_chunks().into_iter().for_each(|chunk| self.unsent.push(chunk));
    }

    /// Ready once nothing is outstanding and nothing unsent.
    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        let mut waits = false;
        while let Some(first) = self.outstanding.front_mut() {
            let writer = match first {
                Outstanding::Ready(writer) => std::mem::take(writer),
                Outstanding::Later { answer, .. } => match answer.as_mut().poll(cx) {
                    Poll::Ready(writer) => writer?,
                    Poll::Pending => {
                        waits = true;
                        break;
                    }
                },
            };
            self.outstanding.pop_front();
            self.tracked.outstanding(self.outstanding.len());
            self.append(writer);
        }
        ready!(self.poll_send(cx))?;
        if waits { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CloseReason>> {
        while !self.unsent.is_empty() {
            ready!(self.unsent.poll_send(&mut self.socket, cx)).map_err(CloseReason::Send)?;
            self.tracked.sent();
        }
        Poll::Ready(Ok(()))
    }
}
