//! Consumers as operators run them (field cases SM-11, SM-12, C8-05, C8-11): pods that overlap, scale, are replaced one by one,
//! and keep their places while the broker dies.

use std::time::Duration;

use crate::broker::{Broker, Program};
use crate::java::Java;

/// Small groups settle without waiting for others; consumers learn quickly what has changed.
const SETTINGS: [&str; 4] = [
    "group.initial.rebalance.delay.ms=0",
    "group.consumer.migration.policy=bidirectional",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.consumer.heartbeat.interval.ms=400",
];

#[test]
fn pods_that_overlap_scale_and_migrate() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let broker = Broker::start(&dir.path().join("data"), &SETTINGS);
    Program::start(java.application("Pods", &[&broker.bootstrap(), "overlap", "scaling", "rolling"])).expect_pass();
}

#[test]
fn static_members_keep_their_places_while_the_broker_is_killed() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut broker = Broker::start(&dir.path().join("data"), &SETTINGS);
    let mut application = Program::start(java.application("Pods", &[&broker.bootstrap(), "restarts"]));
    application.wait_for(&["READY"]);
    for round in 0..5 {
        // Real time on purpose: the clients have to notice, and to be at different points of their heartbeats.
        std::thread::sleep(Duration::from_millis(300 + 170 * round));
        broker.kill();
        broker.restart();
    }
    application.say("STOP");
    application.expect_pass();
}
