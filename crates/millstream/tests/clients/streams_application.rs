//! An unmodified Kafka Streams application with `group.protocol=streams`, for every client version that speaks the protocol.

use crate::broker::{Broker, Program};
use crate::java::Java;

fn orders(version: &str) {
    let Some(java) = Java::with_clients(version) else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let broker = Broker::start(&dir.path().join("data"), &[]);
    Program::start(java.application("Orders", &[&broker.bootstrap(), "at_least_once", "streams"])).expect_pass();
}

#[test]
fn runs_with_clients_4_4_0() {
    orders("4.4.0");
}

#[test]
fn runs_with_clients_4_3_1() {
    orders("4.3.1");
}

#[test]
fn runs_with_clients_4_2_1() {
    orders("4.2.1");
}

#[test]
fn runs_with_clients_4_1_2() {
    orders("4.1.2");
}
