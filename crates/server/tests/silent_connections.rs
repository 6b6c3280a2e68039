//! What connections cost that do nothing, or claim much and send little. By itself in its process, whose memory it
//! measures.

mod common;

use common::{Client, TestBroker, announcement};
use wire::messages::heartbeat_request::HeartbeatRequest;

/// Resident memory of this process, client sides included.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line for resident memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number of KiB")
}

async fn serves(client: &mut Client) {
    let request = HeartbeatRequest { group_id: "nothing".into(), member_id: "nobody".into(), ..Default::default() };
    assert_eq!(client.call(4, &request).await.error_code, 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_cost_what_they_send_and_not_what_they_claim() {
    const COUNT: usize = 1000;
    server::raise_open_files_limit();
    let broker = TestBroker::start(&[("queued.max.request.bytes", "2147483647")]).await;
    serves(&mut broker.connect().await).await;
    let before = resident_kib();
    let mut silent = Vec::with_capacity(COUNT);
    for i in 0..COUNT {
        let mut client = broker.connect().await;
        // Half of them have been busy once, and must have given back what they needed for it.
        if i % 2 == 0 {
            serves(&mut client).await;
        }
        silent.push(client);
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 12 * COUNT, "{grown} KiB for {COUNT} silent connections");

    let before = resident_kib();
    for client in silent.iter_mut().step_by(2).take(20) {
        client.send_raw(&announcement(100_000_000, 3, 1)).await;
        client.send_raw(&[0; 1000]).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB for 20 claims of 100 MB each");
    serves(&mut silent[1]).await;
    broker.running.shutdown().await.unwrap();
}
