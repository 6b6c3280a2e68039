//! One connection: requests in, responses out, one at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::request_header::RequestHeader;
use wire::messages::response_header::ResponseHeader;
use wire::{ApiKey, Bytes, KStr, Message, Reader, Request, Writer};

use crate::error::ClientError;

/// Larger answers are refused rather than read.
const MAX_RESPONSE_BYTES: i32 = 256 << 20;

/// A connection to one broker, after the exchange of versions.
pub struct Connection {
    address: String,
    stream: TcpStream,
    client_id: KStr,
    next_correlation: i32,
    /// What the broker offers: oldest and newest version by API key.
    offered: BTreeMap<i16, (i16, i16)>,
    timeout: Duration,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to `host:port` and asks for the API versions.
    pub async fn open(address: &str, client_id: &str, timeout: Duration) -> Result<Connection, ClientError> {
        let connect_error = |source| ClientError::Connect { address: address.to_owned(), source };
        let stream = match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(stream) => stream.map_err(connect_error)?,
            Err(_) => {
                return Err(ClientError::TimedOut { address: address.to_owned(), seconds: timeout.as_secs() });
            }
        };
        stream.set_nodelay(true).map_err(connect_error)?;
        let mut connection = Connection {
            address: address.to_owned(),
            stream,
            client_id: KStr::copy(client_id),
            next_correlation: 0,
            offered: BTreeMap::new(),
            timeout,
            buffer: Vec::new(),
        };
        let request = ApiVersionsRequest {
            client_software_name: KStr::from("millstream"),
            client_software_version: KStr::from(env!("CARGO_PKG_VERSION")),
            ..Default::default()
        };
        let response = connection.call_at(&request, 3).await?;
        ClientError::check(response.error_code, None)?;
        connection.offered =
            response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect();
        Ok(connection)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The newest version that both sides speak.
    pub fn version_of<R: Request>(&self) -> Result<i16, ClientError> {
        let (oldest, newest) = *self.offered.get(&R::KEY.code()).ok_or(ClientError::Unsupported(R::KEY))?;
        let ours = R::KEY.versions();
        let version = newest.min(*ours.end());
        if version < oldest.max(*ours.start()) {
            return Err(ClientError::Version(R::KEY));
        }
        Ok(version)
    }

    /// Whether the broker has the API at all.
    pub fn offers(&self, key: ApiKey) -> bool {
        self.offered.contains_key(&key.code())
    }

    /// Sends a request in the newest common version and waits for its response.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let version = self.version_of::<R>()?;
        self.call_at(request, version).await
    }

    /// Sends a request in a given version.
    pub async fn call_at<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, ClientError> {
        let correlation = self.next_correlation;
        self.next_correlation = correlation.wrapping_add(1);
        let frame = self.frame(request, version, correlation)?;
        let exchange = async {
            self.stream.write_all(&frame).await?;
            read_frame(&mut self.stream, &mut self.buffer).await
        };
        let body = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(Ok(body))) => body,
            Ok(Ok(Err(size))) => return Err(ClientError::FrameSize(size)),
            Ok(Err(source)) => {
                return Err(ClientError::Broken { address: self.address.clone(), source });
            }
            Err(_) => {
                return Err(ClientError::TimedOut { address: self.address.clone(), seconds: self.timeout.as_secs() });
            }
        };
        let mut reader = Reader::new(&body);
        let header = ResponseHeader::decode(&mut reader, R::KEY.response_header_version(version))?;
        if header.correlation_id != correlation {
            return Err(ClientError::Correlation);
        }
        Ok(R::Response::decode(&mut reader, version)?)
    }

    fn frame<R: Request>(&self, request: &R, version: i16, correlation_id: i32) -> Result<Bytes, ClientError> {
        let header = RequestHeader {
            request_api_key: R::KEY.code(),
            request_api_version: version,
            correlation_id,
            client_id: Some(self.client_id.clone()),
            ..Default::default()
        };
        let mut writer = Writer::new();
        let length = writer.reserve_i32();
        header.encode(&mut writer, R::KEY.request_header_version(version))?;
        request.encode(&mut writer, version)?;
        let bytes = writer.len() - 4;
        writer.patch_i32(length, i32::try_from(bytes).map_err(|_| ClientError::FrameSize(i32::MAX))?);
        Ok(writer.into_bytes())
    }
}

/// The inner error is a length that is refused.
async fn read_frame(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<Result<Bytes, i32>> {
    let size = stream.read_i32().await?;
    if !(0..=MAX_RESPONSE_BYTES).contains(&size) {
        return Ok(Err(size));
    }
    buffer.clear();
    // `take` lets the buffer grow with what arrives, not with what is claimed.
    stream.take(size as u64).read_to_end(buffer).await?;
    if buffer.len() < size as usize {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Ok(Bytes::copy_from_slice(buffer)))
}
