//! Decisions 13, 13b, 14, 14b: with nothing configured a rebalance of stock clients takes fractions of a second.

use super::app::App;
use crate::config::{BrokerConfig, GroupOverrides};
use crate::record::Record;

fn group(members: usize, tasks: i32) -> App {
    let mut app = App::new(BrokerConfig::default(), tasks, false);
    for number in 0..members {
        let client = app.client(&format!("m{number:03}"), &format!("p{number}"));
        app.add(client);
    }
    app.bench.set_members_total(members as u32);
    app
}

#[test]
fn a_hundred_members_form_join_and_leave_within_half_a_second() {
    let mut app = group(100, 1_000);
    let formed_ms = app.settle(3_000);
    assert_eq!(app.owners().len(), 1_000);
    app.run_for(2_000);
    app.join("new", "new");
    let joined_ms = app.settle(3_000);
    assert_eq!(app.owners().len(), 1_000);
    app.run_for(2_000);
    app.leave("m050", -1);
    let left_ms = app.settle(3_000);
    assert_eq!(app.owners().len(), 1_000);
    for (what, ms) in [("form", formed_ms), ("join", joined_ms), ("leave", left_ms)] {
        assert!(ms < 500, "{what} took {ms} ms");
    }
}

#[test]
fn members_at_rest_are_asked_less_often_than_members_that_wait() {
    let mut app = group(2, 4);
    app.settle(3_000);
    app.run_for(1_000);
    assert_eq!(app.beat("m000").heartbeat_interval_ms, 200);
    let joined = app.join("m2", "p2");
    assert_eq!(joined.heartbeat_interval_ms, 100, "it waits for the tasks of others");
}

#[test]
fn a_wait_that_takes_long_is_asked_about_less_and_less() {
    let mut app = group(1, 4);
    app.settle(3_000);
    app.join("m2", "p2");
    // m000 does not answer: its tasks are not released for a while.
    app.clients.remove("m000");
    let first = app.beat("m2").heartbeat_interval_ms;
    app.run_for(30_000);
    let later = app.beat("m2").heartbeat_interval_ms;
    assert_eq!((first, later), (100, 30_000 / 50));
}

#[test]
fn a_configured_interval_is_sent_exactly() {
    let mut app = group(2, 4);
    app.bench.configure(|broker| broker.streams_heartbeat_interval_ms = Some(5_000));
    assert_eq!(app.beat("m000").heartbeat_interval_ms, 5_000);
    let own = GroupOverrides { streams_heartbeat_interval_ms: Some(6_000), ..GroupOverrides::default() };
    app.bench.configure_group(super::app::GROUP, own);
    assert_eq!(app.beat("m000").heartbeat_interval_ms, 6_000);
    assert_eq!(app.beat("m001").heartbeat_interval_ms, 6_000);
}

#[test]
fn switched_off_everything_is_kafkas() {
    let mut app = group(2, 4);
    app.bench.configure(|broker| broker.heartbeat_adaptive = false);
    let answer = app.beat("m000");
    assert_eq!((answer.heartbeat_interval_ms, answer.task_offset_interval_ms), (5_000, 60_000));
    assert_eq!(answer.member_epoch, 1, "the initial delay runs");
    app.bench.advance(2_999);
    assert_eq!(app.describe().assignment_epoch, 1);
    app.beat("m001");
    app.bench.advance(1);
    assert_eq!(app.describe().assignment_epoch, 3);
    app.join("m2", "p2");
    assert_eq!(app.describe().assignment_epoch, 3, "one second between assignments");
}

#[test]
fn the_initial_delay_ends_when_joins_are_quiet_and_after_three_seconds_at_the_latest() {
    let mut app = group(1, 4);
    app.beat("m000");
    app.bench.advance(100);
    app.join("m1", "p1");
    app.bench.advance(149);
    assert_eq!(app.describe().assignment_epoch, 1, "the second join was less than 150 ms ago");
    app.bench.advance(1);
    assert_eq!(app.describe().assignment_epoch, 3);

    let mut app = group(1, 64);
    app.beat("m000");
    let start = app.now();
    for number in 1..40 {
        app.bench.advance(100);
        if app.describe().assignment_epoch > 1 {
            break;
        }
        app.join(&format!("n{number}"), "p");
    }
    assert_eq!(app.now() - start, 3_000);
}

#[test]
fn missing_source_topics_get_the_full_interval_from_the_first_answer_on() {
    let mut app = group(1, 4);
    app.bench.delete_topic("in");
    let answer = app.beat("m000");
    assert_eq!(answer.status.as_ref().map(|status| status.iter().any(|s| s.status_code == 1)), Some(true));
    assert_eq!(answer.heartbeat_interval_ms, 5_000);
    assert_eq!(app.beat("m000").heartbeat_interval_ms, 5_000);
    app.bench.set_topic("in", 4);
    app.settle(6_000);
}

#[test]
fn a_large_group_is_assigned_off_the_shard() {
    let mut app = group(40, 5_000);
    app.settle(20_000);
    assert_eq!(app.owners().len(), 5_000);
    app.join("new", "new");
    app.settle(20_000);
    assert_eq!(app.owners().len(), 5_000);
    assert!(app.clients["new"].active.len() > 100);
}

/// PF-06: whoever restarts hundreds of members does not have the target of a group that is not small computed for each of them.
#[test]
fn a_storm_of_joins_is_assigned_a_few_times_only() {
    let mut app = group(0, 2_000);
    app.bench.set_members_total(300);
    for number in 0..300 {
        app.advance(17);
        app.join(&format!("m{number:03}"), &format!("p{number}"));
    }
    let computed =
        app.bench.records().into_iter().filter(|record| matches!(record, Record::StreamsTargetMetadata(..))).count();
    assert!((2..60).contains(&computed), "the target was computed {computed} times for 300 joins in 5 s");
    app.advance(1_000);
    app.beat("m000");
    let group = app.describe();
    assert_eq!(group.assignment_epoch, group.group_epoch, "the last ones wait no longer than that");
}
