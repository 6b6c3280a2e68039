//! A Kafka Streams application with exactly-once processing, while the broker is killed again and again and instances come
//! and go: every record of the input is counted once.
//!
//! `MILLSTREAM_CHAOS_KILLS` says how often the broker is killed; 20 without it.

use std::time::Duration;

use crate::broker::{Broker, Program};
use crate::java::Java;

const KILLS: u64 = 20;

#[test]
fn every_record_is_counted_once_whatever_is_killed() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let kills = match std::env::var("MILLSTREAM_CHAOS_KILLS") {
        Ok(text) => text.parse().expect("MILLSTREAM_CHAOS_KILLS is a number"),
        Err(_) => KILLS,
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    // Transactions of threads that are gone hold readers back no longer than they must.
    let settings = ["transaction.abort.timed.out.transaction.cleanup.interval.ms=1000"];
    let mut broker = Broker::start(&dir.path().join("data"), &settings);
    let mut application = Program::start(java.application("Counting", &[&broker.bootstrap(), "streams"]));
    application.wait_for(&["READY"]);
    for round in 0..kills {
        // Real time on purpose: transactions have to be open when the broker dies, and clients have to notice. The times
        // differ, so that it dies in the middle of different things.
        std::thread::sleep(Duration::from_millis(1_500 + 370 * (round % 5)));
        match round % 8 {
            2 => application.say("JOIN"),
            6 => application.say("LEAVE"),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(53 * (round % 7)));
        broker.kill();
        std::thread::sleep(Duration::from_millis(90 * (round % 4)));
        broker.restart();
    }
    std::thread::sleep(Duration::from_secs(1));
    application.say("STOP");
    application.expect_pass();
}
