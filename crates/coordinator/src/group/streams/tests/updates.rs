//! Decisions 1 to 5: the topology of a running group is replaced.

use wire::messages::streams_group_heartbeat_request as hb;
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;

use super::app::{App, immediate, names, subtopology};
use crate::record::Record;

fn codes(answer: &StreamsGroupHeartbeatResponse) -> Vec<i8> {
    answer.status.iter().flatten().map(|status| status.status_code).collect()
}

/// Subtopologies 0 (`in`, 2 tasks) and 1 (`other`, 4 tasks); the group has topology 0 with subtopology 0 only.
fn app() -> (App, hb::Topology) {
    let mut app = App::new(immediate(), 2, false);
    app.bench.set_topic("other", 4);
    let next =
        hb::Topology { epoch: 1, subtopologies: vec![subtopology("0", "in", false), subtopology("1", "other", false)] };
    (app, next)
}

#[test]
fn the_next_epoch_replaces_the_topology_with_a_record_and_a_new_group_epoch() {
    let (mut app, next) = app();
    app.join("m1", "p1");
    app.bench.records();
    app.topology = next;
    let answer = app.join("m2", "p2");
    assert_eq!((answer.error_code, answer.member_epoch), (0, 3));
    let records = app.bench.records();
    assert!(matches!(&records[1], Record::StreamsTopology(_, Some(value)) if value.epoch == 1), "{records:?}");
    assert_eq!(app.describe().group_epoch, 3);
}

#[test]
fn the_same_content_at_the_next_epoch_replaces_it_too() {
    let (mut app, _) = app();
    app.join("m1", "p1");
    app.topology.epoch = 1;
    let answer = app.join("m1", "p1");
    assert_eq!((answer.error_code, answer.member_epoch), (0, 3));
    assert_eq!(names(answer.active_tasks.as_deref().expect("tasks")).len(), 2);
}

#[test]
fn other_epochs_are_refused_in_words() {
    let (mut app, next) = app();
    app.topology.epoch = 5;
    app.join("m1", "p1");
    let join = |app: &mut App, epoch, subtopologies: &[hb::Subtopology]| {
        let mut client = app.client("m2", "p2");
        client.topology_epoch = epoch;
        app.add(client);
        let mut request = app.request("m2");
        request.topology = Some(hb::Topology { epoch, subtopologies: subtopologies.to_vec() });
        let answer = app.send(1, request);
        (answer.error_code, answer.error_message.map(|message| message.to_string()).unwrap_or_default())
    };
    let same = app.topology.subtopologies.clone();
    let (code, message) = join(&mut app, 5, &next.subtopologies);
    assert_eq!(code, 131);
    assert!(message.contains("subtopology 1 is new"), "{message}");
    let (code, message) = join(&mut app, 5, &[subtopology("0", "other", false)]);
    assert_eq!(code, 131);
    assert!(message.contains("the source topics of subtopology 0"), "{message}");
    let (code, message) = join(&mut app, 7, &same);
    assert_eq!(code, 131);
    assert!(message.contains("more than one ahead"), "{message}");
    let (code, message) = join(&mut app, 4, &same);
    assert_eq!(code, 132);
    assert!(message.contains("behind"), "{message}");
    assert_eq!(app.describe().group_epoch, 2, "a refused join changes nothing");
}

#[test]
fn a_member_that_is_behind_keeps_what_is_the_same_and_never_sees_the_rest() {
    let (mut app, next) = app();
    app.join("m1", "p1");
    let before = app.topology.clone();
    app.topology = next;
    app.join("m2", "p2");
    app.topology = before;
    for _ in 0..5 {
        let answer = app.beat("m1");
        assert_eq!(codes(&answer), [0]);
        assert!(app.clients["m1"].active.iter().all(|task| task.starts_with("0_")), "{answer:?}");
        app.beat("m2");
    }
    app.settle(20_000);
    let owners = app.owners();
    assert_eq!(owners.len(), 6);
    assert!(owners.iter().filter(|(task, _)| task.starts_with("1_")).all(|(_, owner)| owner == "m2"));
    assert!(!app.clients["m1"].active.is_empty(), "the subtopology is unchanged");

    // Also after a failover, when nobody remembers what was the same.
    app.bench.restart();
    app.bench.set_topic("other", 6);
    app.run_for(30_000);
    let owners = app.owners();
    assert_eq!(owners.len(), 8);
    assert!(app.clients["m1"].active.iter().all(|task| task.starts_with("0_")));
    assert!(!app.clients["m1"].active.is_empty());
}

#[test]
fn a_changed_subtopology_is_taken_from_members_that_are_behind() {
    let (mut app, _) = app();
    app.join("m1", "p1");
    let before = app.topology.clone();
    app.topology = hb::Topology { epoch: 1, subtopologies: vec![subtopology("0", "other", false)] };
    app.join("m2", "p2");
    app.topology = before;
    app.settle(30_000);
    assert!(app.clients["m1"].active.is_empty());
    assert_eq!(app.clients["m2"].active.len(), 4);
}

#[test]
fn state_of_a_changed_subtopology_on_a_member_that_is_behind_brings_it_nothing() {
    let mut app = App::new(immediate(), 2, true);
    app.bench.set_topic("other", 2);
    app.end_offset = 100_000;
    app.join("m1", "p1");
    app.settle(20_000);
    app.run_for(1);
    let before = app.topology.clone();
    app.topology = hb::Topology { epoch: 1, subtopologies: vec![subtopology("0", "other", true)] };
    app.join("m2", "p2");
    app.topology = before;
    app.settle(60_000);
    assert!(app.clients["m1"].active.is_empty());
    // m1 says that it has the state, and nobody runs the tasks when m2 goes and m3 comes.
    app.run_for(61_000);
    assert!(!app.describe().members[0].task_offsets.is_empty());
    app.topology = hb::Topology { epoch: 1, subtopologies: vec![subtopology("0", "other", true)] };
    app.leave("m2", -1);
    app.join("m3", "p3");
    let end = app.now() + 61_000;
    app.run_until(end, |app| {
        assert!(app.clients["m1"].active.is_empty(), "{:?}", app.clients["m1"].active);
        false
    });
    assert_eq!(app.clients["m3"].active.len(), 2);
}

#[test]
fn tasks_of_a_subtopology_that_is_gone_do_not_make_a_request_invalid() {
    let (mut app, next) = app();
    app.topology = hb::Topology { epoch: 0, ..next };
    app.join("m1", "p1");
    app.beat("m1");
    let before = app.topology.clone();
    app.topology = hb::Topology { epoch: 1, subtopologies: vec![subtopology("0", "in", false)] };
    app.join("m2", "p2");
    app.topology = before;
    // m1 still owns 1_0 to 1_3, which the group does not know any more, and says so.
    app.settle(30_000);
    assert_eq!(app.owners().len(), 2);
}

#[test]
fn a_member_that_was_behind_joins_again_with_the_new_topology() {
    let (mut app, next) = app();
    app.join("m1", "p1");
    app.topology = next;
    app.join("m2", "p2");
    let answer = app.join("m1", "p1");
    assert_eq!(codes(&answer), [] as [i8; 0]);
    app.settle(30_000);
    assert_eq!(app.owners().len(), 6);
    assert_eq!(app.clients["m1"].active.len(), 3);
}
