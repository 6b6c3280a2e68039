//! The admin HTTP interface over real sockets: health, metrics, errors. Journals and plans have tests of their own.

mod common;

use common::{TestBroker, http_get, metric};
use wire::KStr;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};

#[tokio::test(flavor = "multi_thread")]
async fn health_says_ready_and_the_switch_switches_off() {
    let broker = TestBroker::start(&[("admin.http.listener", "127.0.0.1:0")]).await;
    let answer = http_get(&broker, "/health").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ready"}"#));
    assert_eq!(http_get(&broker, "/nothing").await.status, 404);
    let off = TestBroker::start(&[("admin.http.listener", "")]).await;
    assert!(off.running.admin_addresses().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_address_that_is_taken_stops_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let settings = [("admin.http.listener".to_owned(), address.clone())];
    let error = server::start(common::config(dir.path(), &settings)).await.err().expect("no start").to_string();
    assert!(error.contains(&address), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_api_error_and_bytes() {
    let broker = TestBroker::start(&[("admin.http.listener", "127.0.0.1:0")]).await;
    let mut client = broker.connect().await;
    let heartbeat = HeartbeatRequest { group_id: "nobody".into(), member_id: "x".into(), ..Default::default() };
    for _ in 0..3 {
        assert_eq!(client.call(4, &heartbeat).await.error_code, 25);
    }
    let partition = |partition_index| OffsetCommitRequestPartition { partition_index, ..Default::default() };
    let topic =
        |name: &str, partitions| OffsetCommitRequestTopic { name: KStr::copy(name), partitions, ..Default::default() };
    let topics = vec![topic("missing", vec![partition(0), partition(1)])];
    let commit = OffsetCommitRequest { group_id: "simple".into(), topics, ..Default::default() };
    client.call(8, &commit).await;
    let text = http_get(&broker, "/metrics").await.body;
    assert_eq!(metric(&text, r#"millstream_requests_total{api="Heartbeat"}"#), Some(3.0));
    assert_eq!(metric(&text, r#"millstream_responses_total{api="Heartbeat"}"#), Some(3.0));
    assert!(metric(&text, r#"millstream_request_bytes_total{api="Heartbeat"}"#) > Some(60.0));
    let errors = r#"millstream_response_errors_total{api="Heartbeat",error="UNKNOWN_MEMBER_ID"}"#;
    assert_eq!(metric(&text, errors), Some(3.0));
    let commits = |result: &str| {
        metric(&text, &format!(r#"millstream_offset_commits_total{{transactional="false",result="{result}"}}"#))
    };
    assert_eq!(commits("NONE").unwrap_or_default() + commits("UNKNOWN_TOPIC_OR_PARTITION").unwrap_or_default(), 2.0);
    assert_eq!(metric(&text, r#"millstream_heartbeats_total{protocol="classic"}"#), Some(3.0));
    assert!(metric(&text, "millstream_connections") >= Some(1.0));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(name.starts_with("millstream_") || name.starts_with("process_"), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}
