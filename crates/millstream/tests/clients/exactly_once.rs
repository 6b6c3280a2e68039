//! Exactly once, with unmodified clients: Kafka Streams applications, and a consume-transform-produce loop through `kill -9`
//! of the broker.

use std::time::Duration;

use crate::broker::{Broker, Program};
use crate::java::Java;

fn orders(version: &str, protocol: &str) {
    let Some(java) = Java::with_clients(version) else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let broker = Broker::start(&dir.path().join("data"), &[]);
    Program::start(java.application("Orders", &[&broker.bootstrap(), "exactly_once_v2", protocol])).expect_pass();
}

#[test]
fn a_streams_group_of_clients_4_4_0() {
    orders("4.4.0", "streams");
}

#[test]
fn a_classic_group_of_clients_4_4_0() {
    orders("4.4.0", "classic");
}

/// Transactions survive what kills the broker: what was committed stays, what was not is as if it had never been.
fn ledger(version: &str, protocol: &str) {
    let Some(java) = Java::with_clients(version) else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut broker = Broker::start(&dir.path().join("data"), &[]);
    let mut application = Program::start(java.application("Ledger", &[&broker.bootstrap(), protocol]));
    application.wait_for(&["READY"]);
    for round in 0..5 {
        // Real time on purpose: transactions have to be open when the broker dies, and clients have to notice.
        std::thread::sleep(Duration::from_millis(1_000 + 130 * round));
        broker.kill();
        std::thread::sleep(Duration::from_millis(100 * round));
        broker.restart();
    }
    std::thread::sleep(Duration::from_secs(1));
    application.say("STOP");
    application.expect_pass();
}

#[test]
fn transactions_with_a_consumer_group_survive_kill_9_of_the_broker() {
    ledger("4.4.0", "consumer");
}

#[test]
fn transactions_of_clients_4_1_2_with_a_classic_group_survive_kill_9_of_the_broker() {
    ledger("4.1.2", "classic");
}
