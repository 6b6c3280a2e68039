//! One HTTP request: what the command line needs of the admin interface of a broker.
//!
//! HTTP/1.1 with a connection per request. No TLS, no redirects, no proxies: the other side is the broker itself.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::ClientError;

/// Larger answers are refused.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: String,
}

/// `GET` of a path (with its query, both percent-encoded) at `host:port`.
pub async fn get(address: &str, path: &str, timeout: Duration) -> Result<Response, ClientError> {
    let exchange = async {
        let connect = |source| ClientError::Connect { address: address.to_owned(), source };
        let broken = |source| ClientError::Broken { address: address.to_owned(), source };
        let mut stream = TcpStream::connect(address).await.map_err(connect)?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let mut bytes = Vec::new();
        stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut bytes).await.map_err(broken)?;
        parse(&bytes).ok_or(ClientError::Incomplete("it is not an HTTP response"))
    };
    match tokio::time::timeout(timeout, exchange).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ClientError::TimedOut { address: address.to_owned(), seconds: timeout.as_secs() }),
    }
}

/// Encodes one segment of a path or one value of a query.
pub fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `None` if it is none, or cut short.
fn parse(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let body = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let header = |wanted: &str| {
        let mut pairs = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let body = match header("content-length") {
        Some(length) => body.get(..length.parse().ok()?)?.to_vec(),
        None if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) => {
            unchunk(body)?
        }
        None => body.to_vec(),
    };
    Some(Response { status, body: String::from_utf8(body).ok()? })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..end]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_every_framing_are_read_and_cut_ones_are_not() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Some((200, "ok"))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", None),
            ("HTTP/1.0 404 Not Found\r\n\r\nno such group", Some((404, "no such group"))),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n",
                Some((200, "abc")),
            ),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", None),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nab", None),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some((204, ""))),
            ("\0\0\0\u{1}", None),
            ("HTTP/1.1 200 OK\r\n", None),
        ] {
            let expected = expected.map(|(status, body)| Response { status, body: body.to_owned() });
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn names_are_encoded_for_paths() {
        assert_eq!(encode("a/b c?ü&="), "a%2Fb%20c%3F%C3%BC%26%3D");
        assert_eq!(encode("orders-app_1.x~"), "orders-app_1.x~");
    }
}
