//! A broker in this process and a client that speaks frames, for tests over real sockets.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::time::Duration;

use server::RunningServer;
use server::config::{Format, ServerConfig, Setting, load_text};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::{ApiKey, Bytes, KStr, Message, Reader, Request, Writer};

/// Longer than anything here should take, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A broker with a data directory of its own.
pub struct TestBroker {
    pub running: RunningServer,
    pub dir: TempDir,
    settings: Vec<(String, String)>,
}

/// Settings as on the command line.
pub fn config(dir: &std::path::Path, settings: &[(String, String)]) -> ServerConfig {
    let mut all = vec![
        setting("listeners", "PLAINTEXT://127.0.0.1:0"),
        setting("log.dirs", dir.to_str().expect("temporary directories have UTF-8 names")),
        setting("admin.http.listener", ""),
    ];
    all.extend(settings.iter().map(|(name, value)| setting(name, value)));
    let (values, _) = load_text(Format::Toml, all).expect("the settings of a test are valid");
    ServerConfig::from_values(values).expect("the settings of a test agree")
}

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.to_owned() }
}

impl TestBroker {
    /// Both coordinators can be asked at once.
    pub async fn start(settings: &[(&str, &str)]) -> TestBroker {
        let broker = TestBroker::start_untouched(settings).await;
        let mut client = broker.connect().await;
        for key_type in [0, 1] {
            let request = FindCoordinatorRequest {
                key_type,
                coordinator_keys: vec![KStr::from("any")],
                ..FindCoordinatorRequest::default()
            };
            let found = client.call(6, &request).await.coordinators.remove(0);
            assert_eq!(found.error_code, 0, "{:?}", found.error_message);
        }
        // Tests count connections: this one is gone when the broker has closed its end, too.
        client.stream.shutdown().await.expect("the broker listens");
        assert!(client.is_closed().await);
        broker
    }

    /// Nobody has looked for a coordinator yet.
    pub async fn start_untouched(settings: &[(&str, &str)]) -> TestBroker {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let dir = tempfile::tempdir().expect("a temporary directory");
        TestBroker::start_in(dir, settings).await
    }

    async fn start_in(dir: TempDir, settings: Vec<(String, String)>) -> TestBroker {
        let running = server::start(config(dir.path(), &settings)).await.expect("the broker starts");
        TestBroker { running, dir, settings }
    }

    /// Stops in order and starts again on the same data.
    pub async fn restart(self) -> TestBroker {
        self.running.shutdown().await.expect("the broker stops cleanly");
        TestBroker::start_in(self.dir, self.settings).await
    }

    /// As if the process had died.
    pub async fn crash(self) -> TestBroker {
        self.running.abort().await;
        TestBroker::start_in(self.dir, self.settings).await
    }

    pub fn address(&self) -> SocketAddr {
        self.running.addresses()[0]
    }

    pub async fn connect(&self) -> Client {
        Client::connect(self.address()).await
    }
}

/// One connection.
pub struct Client {
    pub stream: TcpStream,
    /// What it calls itself.
    pub client_id: String,
    next_id: i32,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.expect("the broker listens");
        Client { stream, client_id: "test".to_owned(), next_id: 100 }
    }

    /// A request and its answer.
    pub async fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request).await;
        self.receive::<R>(version, id).await
    }

    /// Sends without waiting; returns the correlation id.
    pub async fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        self.next_id += 1;
        let frame = frame_of(&self.client_id, R::KEY, version, self.next_id, |writer| {
            request.encode(writer, version).expect("a test's request can be encoded");
        });
        self.send_raw(&frame).await;
        self.next_id
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the broker reads");
    }

    /// The answer to request `id`, which must be the next one.
    pub async fn receive<R: Request>(&mut self, version: i16, id: i32) -> R::Response {
        let frame = self.receive_frame().await.expect("an answer");
        let mut reader = Reader::new(&frame);
        assert_eq!(reader.i32(), Ok(id), "answers come in the order of the requests");
        if R::KEY.response_header_version(version) > 0 {
            reader.skip_tagged_fields().expect("a response header");
        }
        let response = R::Response::decode(&mut reader, version).expect("an answer in the version asked for");
        reader.finish().expect("nothing after the answer");
        response
    }

    /// The next frame without its length; none if the broker closed the connection.
    pub async fn receive_frame(&mut self) -> Option<Bytes> {
        let read = async {
            let length = self.stream.read_u32().await.ok()?;
            let mut frame = vec![0; length as usize];
            self.stream.read_exact(&mut frame).await.ok()?;
            Some(Bytes::from(frame))
        };
        tokio::time::timeout(PATIENCE, read).await.expect("an answer or the end of the connection in time")
    }

    /// True if the broker closes the connection without a word.
    pub async fn is_closed(&mut self) -> bool {
        self.receive_frame().await.is_none()
    }

    /// True if nothing comes for a while, neither an answer nor the end.
    pub async fn is_silent_for(&mut self, time: Duration) -> bool {
        let mut byte = [0];
        tokio::time::timeout(time, self.stream.peek(&mut byte)).await.is_err()
    }
}

/// A whole frame with header version 1 or 2.
pub fn frame(key: ApiKey, version: i16, id: i32, body: impl FnOnce(&mut Writer)) -> Bytes {
    frame_of("test", key, version, id, body)
}

fn frame_of(client_id: &str, key: ApiKey, version: i16, id: i32, body: impl FnOnce(&mut Writer)) -> Bytes {
    let mut writer = Writer::new();
    let length = writer.reserve_i32();
    writer.i16(key.code());
    writer.i16(version);
    writer.i32(id);
    writer.string(client_id, false).expect("a short string");
    if key.request_header_version(version) >= 2 {
        writer.unsigned_varint(0);
    }
    body(&mut writer);
    let bytes = writer.len() as i32 - 4;
    writer.patch_i32(length, bytes);
    writer.into_bytes()
}

/// Length, key, version and correlation id of a frame of `length` bytes, the rest of which does not come.
pub fn announcement(length: i32, key: i16, version: i16) -> Vec<u8> {
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(key.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(1i32.to_be_bytes());
    bytes
}

/// What an HTTP request came to.
pub struct HttpAnswer {
    pub status: u16,
    pub body: String,
}

/// GET over a connection of its own.
pub async fn http_get(broker: &TestBroker, path: &str) -> HttpAnswer {
    let address = *broker.running.admin_addresses().first().expect("an admin interface");
    let mut stream = TcpStream::connect(address).await.expect("the admin interface listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is read");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, read).await.expect("an answer in time").expect("an answer in UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    assert!(!head.to_ascii_lowercase().contains("chunked"), "bodies have a length");
    HttpAnswer { status, body: body.to_owned() }
}

/// The value of one sample.
pub fn metric(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}
