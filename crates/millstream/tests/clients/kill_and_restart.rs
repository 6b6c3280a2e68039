//! The broker is killed while records flow: nothing acknowledged is lost or repeated, and the application goes on.

use std::time::Duration;

use crate::broker::{Broker, Program};
use crate::java::Java;

#[test]
fn an_application_survives_kill_9_of_the_broker() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut broker = Broker::start(&dir.path().join("data"), &[]);
    let mut application = Program::start(java.application("Survivor", &[&broker.bootstrap()]));
    application.wait_for(&["READY"]);
    for round in 0..5 {
        // Real time on purpose: records have to be in flight when the broker dies, and clients have to notice.
        std::thread::sleep(Duration::from_millis(1_000 + 150 * round));
        broker.kill();
        std::thread::sleep(Duration::from_millis(100 * round));
        broker.restart();
    }
    std::thread::sleep(Duration::from_secs(1));
    application.say("STOP");
    application.expect_pass();
}
