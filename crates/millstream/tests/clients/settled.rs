//! What must not excite a group, or an application: a static member that is back within its session, a source topic that is
//! not there; and a stateful task that moves only to an instance that is warm.

use crate::broker::{Broker, Program};
use crate::java::Java;

#[test]
fn a_static_restart_keeps_epoch_and_tasks_and_a_missing_source_is_told_in_time() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let broker = Broker::start(&dir.path().join("data"), &["auto.create.topics.enable=false"]);
    Program::start(java.application("Settled", &[&broker.bootstrap()])).expect_pass();
}

/// Decision 8. How long the tasks are without an owner is measured by `bench/handover.py`.
#[test]
fn stateful_tasks_move_to_a_second_instance_once_it_is_warm() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let broker = Broker::start(&dir.path().join("data"), &["group.streams.acceptable.recovery.lag=100"]);
    Program::start(java.application("Handover", &[&broker.bootstrap(), "1", "50", "warm"])).expect_pass();
}
