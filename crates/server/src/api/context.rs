//! What a handler is given, and what it gives back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use wire::{DecodeError, EncodeError, KStr, Writer};

use crate::broker::Broker;
use crate::connection::Peer;

/// One request, as far as its header and its connection tell.
pub(crate) struct RequestContext<'a> {
    pub broker: &'a Arc<Broker>,
    /// The other end, and the address at which it reached us.
    pub peer: &'a Arc<Peer>,
    /// Null in the header is the empty string here, as everywhere in Kafka's groups.
    pub client_id: KStr,
    pub api_version: i16,
    pub correlation_id: i32,
}

/// What a handler made of a request.
pub(crate) enum Handled<R> {
    /// The answer. A handler may wait before it returns this; later requests of the connection wait too (N-2).
    Ready(R),
    /// The answer comes later, later requests are handled meanwhile; answers still leave in the order of the requests.
    /// The future is polled only when its answer is the next to leave: it may wait, but must not be what does the work.
    Later(Pin<Box<dyn Future<Output = Result<R, HandlerError>> + Send>>),
    /// Nothing is sent (Produce with acks 0).
    NoResponse,
}

impl<R> From<R> for Handled<R> {
    fn from(response: R) -> Self {
        Handled::Ready(response)
    }
}

/// Why a request has no answer. The connection is closed, with one line in the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandlerError {
    /// The body is not what the schema says (N-3).
    #[error("cannot read the request: {0}")]
    Decode(#[from] DecodeError),
    /// The handler's answer does not exist in this version: a defect of the handler.
    #[error("cannot write the answer: {0}")]
    Encode(#[from] EncodeError),
    /// The protocol has no other way to say it (an error under acks 0, a KRaft request).
    #[error("{0}")]
    Close(String),
}

/// `Handled` without its type: framed bytes, now or later.
pub(crate) enum Answer {
    Ready(Writer),
    Later(Pin<Box<dyn Future<Output = Result<Writer, HandlerError>> + Send>>),
    NoResponse,
}
