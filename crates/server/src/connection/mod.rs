//! One task per connection: frames in, answers out, in order and within limits.
//!
//! Requests run one after the other on this task (N-2); an answer that comes later does not hold up the next request.
//! Whatever cannot be read ends this connection with one line in the log, and nothing else (N-3).

mod input;
pub(crate) mod limits;
mod output;
mod peer;
mod registry;
mod unsent;

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use wire::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use wire::{ApiKey, DecodeError, ErrorCode, KStr, Reader};

use crate::api::{self, Answer, HandlerError, RequestContext};
use crate::broker::Broker;
use input::{Frame, Input};
use output::Output;

pub(crate) use limits::Budget;
pub use limits::{ConnectionCaps, ConnectionLimits};
pub(crate) use peer::{Advertised, Peer};
pub(crate) use registry::{Connections, Registration};

/// Why a connection ends before the client ends it.
#[derive(Debug, thiserror::Error)]
enum CloseReason {
    #[error("receiving failed: {0}")]
    Receive(io::Error),
    #[error("sending failed: {0}")]
    Send(io::Error),
    #[error("the client left in the middle of a request")]
    CutOff,
    #[error("API key {key} is not served (frame of {length} bytes)")]
    UnknownApi { key: i16, length: i32 },
    #[error("version {version} of {key} is not served")]
    Version { key: ApiKey, version: i16 },
    #[error("a request of {length} bytes, which is less than a header has")]
    TooShort { length: i32 },
    #[error("a {key} request of {length} bytes, where at most {limit} are read")]
    FrameLength { key: ApiKey, length: i32, limit: usize },
    #[error("the request header cannot be read: {0}")]
    Header(DecodeError),
    #[error("{key} version {version}: {error}")]
    Handler { key: ApiKey, version: i16, error: HandlerError },
    #[error("{0}")]
    Later(#[from] HandlerError),
}

impl CloseReason {
    /// Connections break all the time; that is nobody's fault.
    fn is_ordinary(&self) -> bool {
        matches!(self, CloseReason::Receive(_) | CloseReason::Send(_) | CloseReason::CutOff)
    }
}

/// Serves one client until it leaves.
pub(crate) async fn serve(broker: Arc<Broker>, mut stream: TcpStream, peer: Arc<Peer>, registration: Registration) {
    match run(&broker, &mut stream, &peer, &registration).await {
        Ok(()) => tracing::debug!(remote = %peer.remote, "connection closed by the client"),
        Err(reason) if reason.is_ordinary() => tracing::debug!(remote = %peer.remote, "connection closed: {reason}"),
        Err(reason) => {
            tracing::warn!(remote = %peer.remote, software = peer.software(), "connection closed: {reason}")
        }
    }
}

async fn run(
    broker: &Arc<Broker>,
    stream: &mut TcpStream,
    peer: &Arc<Peer>,
    registration: &Registration,
) -> Result<(), CloseReason> {
    let (receiver, sender) = stream.split();
    let mut input = Input::new(receiver, &broker.limits, &broker.budget, &registration.tracked);
    let mut output = Output::new(sender, registration.tracked.clone());
    loop {
        let Some(Frame { bytes, share }) = output.drive(input.next()).await?? else {
            return output.finish().await;
        };
        let answer = output.drive(handle(broker, peer, &bytes)).await??;
        input.understood();
        output.push(answer, share);
        output.make_room().await?;
    }
}

/// Header, then the handler. Key, version and length were checked when the frame began.
async fn handle(broker: &Arc<Broker>, peer: &Arc<Peer>, frame: &bytes::Bytes) -> Result<Answer, CloseReason> {
    let mut reader = Reader::new(frame);
    let header = Header::read(&mut reader).map_err(CloseReason::Header)?;
    broker.metrics.requests.arrived(header.key, frame.len());
    if header.is_newer_api_versions() {
        let writer = api::frame(ApiKey::ApiVersions, 0, header.correlation_id, &only_api_versions());
        return Ok(Answer::Ready(writer.map_err(HandlerError::from)?));
    }
    let cx = RequestContext {
        broker,
        peer,
        client_id: header.client_id,
        api_version: header.version,
        correlation_id: header.correlation_id,
    };
    api::dispatch(&cx, header.key.code(), &mut reader).await.map_err(|error| CloseReason::Handler {
        key: header.key,
        version: header.version,
        error,
    })
}

/// A request header, version 1 or 2 (N-1).
struct Header {
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: KStr,
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (key, version, correlation_id) = (reader.i16()?, reader.i16()?, reader.i32()?);
        // The key was found in the table before the frame was read.
        let key = ApiKey::try_from(key).map_err(|_| DecodeError::Length(key.into()))?;
        let client_id = reader.nullable_string(false)?.unwrap_or_default();
        if key.request_header_version(version) >= 2 {
            reader.skip_tagged_fields()?;
        }
        Ok(Header { key, version, correlation_id, client_id })
    }

    fn is_newer_api_versions(&self) -> bool {
        self.key == ApiKey::ApiVersions && api::api(self.key.code()).is_some_and(|api| self.version > api.max_version)
    }
}

/// N-3: a client that is newer than we are gets this in version 0, and asks again in a version that we have.
fn only_api_versions() -> ApiVersionsResponse {
    let own = api::api(ApiKey::ApiVersions.code()).map(|api| ApiVersion {
        api_key: api.key.code(),
        min_version: api.advertised_from,
        max_version: api.max_version,
    });
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: own.into_iter().collect(),
        ..Default::default()
    }
}
