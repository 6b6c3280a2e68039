//! Decision 25: source topics by pattern.

use wire::KStr;
use wire::messages::streams_group_heartbeat_request as hb;

use super::app::{App, GROUP, immediate, subtopology};
use crate::command::Command;
use crate::outcome::{Effect, Reply};

/// Subtopology 0 reads what matches `pattern`.
fn app(pattern: &str) -> App {
    let mut app = App::new(immediate(), 2, false);
    let mut reader = subtopology("0", "in", false);
    reader.source_topics.clear();
    reader.source_topic_regex = vec![KStr::copy(pattern)];
    app.topology = hb::Topology { epoch: 0, subtopologies: vec![reader] };
    app
}

fn statuses(app: &App, id: &str) -> Vec<(i8, String)> {
    let status = app.clients[id].last.status.iter().flatten();
    status.map(|status| (status.status_code, status.status_detail.to_string())).collect()
}

#[test]
fn matching_topics_are_read_and_later_ones_join_in() {
    let mut app = app("orders-.*");
    app.bench.set_topic("orders-a", 2);
    app.bench.set_topic("x-orders-a", 9);
    app.join("m1", "p1");
    assert_eq!(statuses(&app, "m1")[0].0, 5, "it is not known yet what matches");
    app.settle(20_000);
    assert_eq!(app.clients["m1"].active.len(), 2);

    app.bench.set_topic("orders-b", 5);
    app.carry_out_effects();
    app.run_for(6_000);
    assert_eq!(app.clients["m1"].active.len(), 5, "the larger of the two decides");
    let topology = app.describe().topology.expect("a topology");
    let sources: Vec<_> =
        topology.subtopologies.expect("resolved")[0].source_topics.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["orders-a", "orders-b"]);

    app.bench.delete_topic("orders-b");
    app.carry_out_effects();
    app.run_for(12_000);
    assert_eq!(app.clients["m1"].active.len(), 2);
}

#[test]
fn a_pattern_that_matches_nothing_is_a_missing_source_topic() {
    let mut app = app("nothing.*");
    app.join("m1", "p1");
    app.beat("m1");
    let [(code, detail)] = &statuses(&app, "m1")[..] else { panic!("one status") };
    assert_eq!(*code, 1);
    assert!(detail.contains("nothing.*"), "{detail}");
    assert_eq!(app.state(), "NotReady");
}

#[test]
fn topics_of_the_broker_and_of_the_application_itself_do_not_match() {
    let mut app = app(".*");
    app.topology.subtopologies[0].state_changelog_topics = subtopology("0", "in", true).state_changelog_topics;
    app.bench.set_topic("__consumer_offsets", 50);
    app.bench.set_topic("in", 2);
    app.join("m1", "p1");
    app.settle(30_000);
    assert_eq!(app.clients["m1"].active.len(), 2);
}

#[test]
fn copartition_groups_may_point_at_patterns() {
    let mut app = app("left|right");
    app.topology.subtopologies[0].copartition_groups =
        vec![hb::CopartitionGroup { source_topic_regex: vec![0], ..Default::default() }];
    app.bench.set_topic("left", 2);
    app.bench.set_topic("right", 3);
    app.join("m1", "p1");
    app.beat("m1");
    let [(code, detail)] = &statuses(&app, "m1")[..] else { panic!("one status") };
    assert_eq!(*code, 2);
    assert!(detail.contains("left=2") && detail.contains("right=3"), "{detail}");
}

#[test]
fn what_cannot_be_compiled_is_an_invalid_topology() {
    for pattern in ["(", "a{1000}{1000}{1000}", &"x".repeat(1001)] {
        let mut app = app(pattern);
        app.add(app.client("m1", "p1"));
        let request = app.request("m1");
        assert_eq!(app.send(1, request).error_code, 130, "{pattern}");
    }
}

#[test]
fn topics_read_by_pattern_are_the_groups_own_for_offsets_also_after_a_failover() {
    let mut app = app("orders-.*");
    app.bench.set_topic("orders-a", 2);
    app.join("m1", "p1");
    app.settle(20_000);
    app.bench.restart();
    let group = app.bench.shard().state().group(GROUP).expect("the group");
    let crate::group::Group::Streams(group) = group else { panic!("a streams group") };
    assert!(group.is_subscribed("orders-a"));
    assert!(!group.is_subscribed("other"));
    app.settle(20_000);
    assert_eq!(app.clients["m1"].active.len(), 2);
}

#[test]
fn a_question_is_asked_once_and_again_when_topics_changed_meanwhile() {
    let mut app = app("orders-.*");
    app.creates_topics = false;
    app.bench.set_topic("orders-a", 1);
    app.join("m1", "p1");
    let asked = |app: &mut App| {
        let effects = app.bench.effects();
        effects.iter().filter(|effect| matches!(effect, Effect::ResolveRegex { .. })).count()
    };
    assert_eq!(asked(&mut app), 1);
    app.beat("m1");
    app.bench.set_topic("orders-b", 1);
    assert_eq!(asked(&mut app), 0, "one is under way");
    let matches = vec![(KStr::from("orders-.*"), Ok(vec![KStr::from("orders-a")]))];
    let command = Command::RegexResolved { group_id: KStr::from(GROUP), matches, image_version: 1 };
    assert_eq!(app.bench.ask(command), Reply::Done);
    assert_eq!(asked(&mut app), 1, "the answer was old");
}
