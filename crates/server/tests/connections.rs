//! Section 1 of the specification of transactions and the log (N-rules), and the limits that protect the broker from
//! its clients: over real sockets.

mod common;

use std::time::{Duration, Instant};

use common::{Client, TestBroker, announcement, frame};
use wire::messages::api_versions_request::ApiVersionsRequest;
use wire::messages::api_versions_response::ApiVersionsResponse;
use wire::messages::find_coordinator_request::FindCoordinatorRequest;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::metadata_request::MetadataRequest;
use wire::messages::sasl_handshake_request::SaslHandshakeRequest;
use wire::{ApiKey, Message, Reader};

fn heartbeat(group: &str) -> HeartbeatRequest {
    HeartbeatRequest { group_id: group.to_owned().into(), member_id: "nobody".into(), ..Default::default() }
}

/// The error of a heartbeat as long as nobody has looked for a coordinator: proof that a request was handled.
const NOT_COORDINATOR: i16 = 16;

async fn assert_serves(client: &mut Client) {
    assert_eq!(client.call(4, &heartbeat("nothing")).await.error_code, NOT_COORDINATOR);
}

#[tokio::test(flavor = "multi_thread")]
async fn n_3_what_cannot_be_read_closes_the_connection_without_an_answer() {
    let broker = TestBroker::start_untouched(&[]).await;
    let no_body = |key, version| frame(key, version, 1, |_| {});
    let garbage = |key, version| frame(key, version, 1, |writer| writer.raw(&[0xff; 40]));
    let mut long_client_id = announcement(60, 12, 4);
    long_client_id.extend(i16::MAX.to_be_bytes());
    long_client_id.extend([b'x'; 50]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("an unknown key", announcement(8, 200, 0)),
        ("a negative key", announcement(8, -1, 0)),
        ("a KRaft key (N-4)", no_body(ApiKey::Vote, 0).to_vec()),
        ("a version that is too new", no_body(ApiKey::Heartbeat, 5).to_vec()),
        ("a version that is too old", no_body(ApiKey::OffsetCommit, 1).to_vec()),
        ("a negative version", no_body(ApiKey::Heartbeat, -1).to_vec()),
        ("a body that is missing", no_body(ApiKey::Heartbeat, 4).to_vec()),
        ("a body of other bytes", garbage(ApiKey::JoinGroup, 9).to_vec()),
        ("a client id that is longer than the frame", long_client_id),
        ("an HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("a TLS greeting", vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
        ("the length 0", vec![0; 16]),
        ("the length 0 and nothing after it", vec![0; 4]),
        ("a negative length and nothing after it", vec![0xff; 4]),
        ("a length below a header's", announcement(7, 12, 4)),
        ("a negative length", announcement(-1, 12, 4)),
        ("the smallest length", announcement(i32::MIN, 12, 4)),
    ];
    for (what, bytes) in cases {
        let mut client = broker.connect().await;
        client.send_raw(&bytes).await;
        assert!(client.is_closed().await, "{what}");
    }
    assert_serves(&mut broker.connect().await).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n_3_a_newer_client_learns_our_versions_of_api_versions() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    // A version that does not exist yet, with a body that nobody here can read.
    let mut request = announcement(8 + 2 + 1 + 5, 18, 99);
    request.extend([0, 0, 0]);
    request.extend(*b"12345");
    client.send_raw(&request).await;
    let answer = client.receive_frame().await.expect("an answer in version 0");
    let mut reader = Reader::new(&answer);
    assert_eq!(reader.i32(), Ok(1));
    let response = ApiVersionsResponse::decode(&mut reader, 0).unwrap();
    assert!(reader.is_empty());
    assert_eq!(response.error_code, 35);
    let ranges: Vec<_> = response.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
    assert_eq!(ranges, [(18, 0, 5)]);
    // The connection lives on: the client now asks in a version that we have.
    let versions = client.call(0, &ApiVersionsRequest::default()).await;
    assert_eq!(versions.error_code, 0);
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n_4_sasl_is_out_of_place() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    let answer = client.call(1, &SaslHandshakeRequest { mechanism: "PLAIN".into() }).await;
    assert_eq!(answer.error_code, 34);
    assert_serves(&mut client).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n_2_requests_that_are_sent_together_are_answered_in_order() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    let (mut bytes, count) = (Vec::new(), 200);
    for id in 0..count {
        bytes.extend(frame(ApiKey::Heartbeat, 4, id, |writer| heartbeat("g").encode(writer, 4).unwrap()));
    }
    client.send_raw(&bytes).await;
    for id in 0..count {
        assert_eq!(client.receive::<HeartbeatRequest>(4, id).await.error_code, NOT_COORDINATOR);
    }
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_may_come_byte_by_byte_and_leave_with_the_client() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    for byte in frame(ApiKey::Heartbeat, 4, 7, |writer| heartbeat("g").encode(writer, 4).unwrap()) {
        client.send_raw(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.receive::<HeartbeatRequest>(4, 7).await.error_code, NOT_COORDINATOR);
    client.send_raw(&announcement(1000, 12, 4)).await;
    drop(client);
    assert_serves(&mut broker.connect().await).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_limited_by_what_the_connection_has_shown_and_by_api() {
    let broker = TestBroker::start_untouched(&[("socket.request.max.bytes", "20000000")]).await;
    let (join, metadata, sasl) = (11, 3, 17);
    // (frames before, key, length, whether more of it is waited for)
    let cases = [
        (0, join, 64 << 10, true),
        (0, join, (64 << 10) + 1, false),
        (1, join, (64 << 10) + 1, true),
        (1, join, 8 << 20, true),
        (1, join, (8 << 20) + 1, false),
        (1, metadata, 20_000_000, true),
        (1, metadata, 20_000_001, false),
        (1, metadata, i32::MAX, false),
        (1, sasl, (64 << 10) + 1, false),
    ];
    for (before, key, length, waits) in cases {
        let mut client = broker.connect().await;
        for _ in 0..before {
            assert_serves(&mut client).await;
        }
        client.send_raw(&announcement(length, key, 1)).await;
        let case = format!("{before} requests, then {length} bytes for key {key}");
        if waits {
            assert!(client.is_silent_for(Duration::from_millis(100)).await, "{case}");
        } else {
            assert!(client.is_closed().await, "{case}");
        }
    }
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_flight_are_limited_for_the_whole_broker() {
    let settings = [("socket.request.max.bytes", "100000"), ("queued.max.request.bytes", "100000")];
    let broker = TestBroker::start_untouched(&settings).await;
    let (mut greedy, mut other) = (broker.connect().await, broker.connect().await);
    assert_serves(&mut greedy).await;
    assert_serves(&mut other).await;
    greedy.send_raw(&announcement(90_000, 3, 1)).await;
    // What is left is enough for small requests, but not for this one.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_serves(&mut other).await;
    let large = frame(ApiKey::FindCoordinator, 6, 9, |writer| {
        let key = wire::KStr::from("k".repeat(100));
        let request = FindCoordinatorRequest { coordinator_keys: vec![key; 500], ..Default::default() };
        request.encode(writer, 6).unwrap();
    });
    assert!(large.len() > 50_000);
    other.send_raw(&large).await;
    assert!(other.is_silent_for(Duration::from_millis(200)).await, "it has to wait for its share");
    drop(greedy);
    assert_eq!(other.receive::<FindCoordinatorRequest>(6, 9).await.coordinators.len(), 500);
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let broker = TestBroker::start_untouched(&[("connections.max.idle.ms", "1000")]).await;
    let (mut idle, mut busy) = (broker.connect().await, broker.connect().await);
    assert_serves(&mut idle).await;
    let started = Instant::now();
    let keep_busy = async {
        while started.elapsed() < Duration::from_secs(5) {
            assert_serves(&mut busy).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let until_closed = async {
        assert!(idle.is_closed().await);
        started.elapsed()
    };
    let (closed_after, ()) = tokio::join!(until_closed, keep_busy);
    assert!(closed_after >= Duration::from_millis(1000), "closed after {closed_after:?}");
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_and_those_of_one_address_are_refused() {
    let broker = TestBroker::start_untouched(&[("max.connections", "2")]).await;
    let (mut first, mut second) = (broker.connect().await, broker.connect().await);
    assert_serves(&mut first).await;
    assert_serves(&mut second).await;
    let mut third = broker.connect().await;
    let id = third.send(4, &heartbeat("g")).await;
    assert!(third.is_silent_for(Duration::from_millis(200)).await, "it is not accepted yet");
    drop(first);
    assert_eq!(third.receive::<HeartbeatRequest>(4, id).await.error_code, NOT_COORDINATOR);
    broker.running.shutdown().await.unwrap();

    let broker = TestBroker::start_untouched(&[("max.connections.per.ip", "1")]).await;
    let mut first = broker.connect().await;
    assert_serves(&mut first).await;
    assert!(broker.connect().await.is_closed().await);
    assert_serves(&mut first).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_the_address_at_which_it_reached_the_broker() {
    let broker = TestBroker::start_untouched(&[("listeners", "PLAINTEXT://localhost:0")]).await;
    let request = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
    // Both loopback addresses, on the same port; the name finds either.
    let port = broker.address().port();
    for address in broker.running.addresses() {
        assert_eq!(address.port(), port);
        let answer = Client::connect(*address).await.call(6, &request).await;
        let told = &answer.coordinators[0];
        assert_eq!((told.host.as_str(), told.port), ("localhost", i32::from(port)));
    }
    broker.running.shutdown().await.unwrap();

    let broker = TestBroker::start_untouched(&[("listeners", "PLAINTEXT://:0")]).await;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], broker.address().port()));
    let answer = Client::connect(address).await.call(6, &request).await;
    assert_eq!(answer.coordinators[0].host, "127.0.0.1");
    broker.running.shutdown().await.unwrap();

    let settings =
        [("listeners", "PLAINTEXT://127.0.0.1:0"), ("advertised.listeners", "PLAINTEXT://broker.example:19092")];
    let broker = TestBroker::start_untouched(&settings).await;
    let answer = broker.connect().await.call(6, &request).await;
    let told = &answer.coordinators[0];
    assert_eq!((told.host.as_str(), told.port, told.node_id), ("broker.example", 19092, 1));
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_stops_answers_what_it_was_asked_and_keeps_its_directory_to_itself() {
    let broker = TestBroker::start_untouched(&[]).await;
    let refused = server::start(common::config(broker.dir.path(), &[])).await;
    assert!(matches!(refused, Err(server::StartError::Open(_))), "two brokers in one directory");
    let cluster = broker.running.cluster_id().to_owned();
    let mut client = broker.connect().await;
    assert_serves(&mut client).await;
    let broker = broker.restart().await;
    assert!(client.is_closed().await);
    assert_eq!(broker.running.cluster_id(), cluster);
    let broker = broker.crash().await;
    assert_serves(&mut broker.connect().await).await;
    broker.running.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_request_arrives_whole() {
    let broker = TestBroker::start_untouched(&[]).await;
    let mut client = broker.connect().await;
    assert_serves(&mut client).await;
    let keys: Vec<_> = (0..20_000).map(|i| wire::KStr::from(format!("group-{i:0100}"))).collect();
    for _ in 0..3 {
        let request = FindCoordinatorRequest { coordinator_keys: keys.clone(), ..Default::default() };
        let answer = client.call(6, &request).await;
        assert!(answer.coordinators.iter().zip(&keys).all(|(found, key)| found.key == *key));
        assert_eq!(answer.coordinators.len(), keys.len());
    }
    let _ = MetadataRequest::default();
    broker.running.shutdown().await.unwrap();
}
