//! Decision 8: a stateful task moves only when its new owner has caught up.

use super::app::{App, immediate};
use crate::config::{BrokerConfig, GroupOverrides};

fn warm(partitions: i32) -> App {
    let mut app = App::new(immediate(), partitions, true);
    app.end_offset = 1_000_000;
    app.restore_per_ms = 100;
    app
}

/// m1 runs all tasks of a stateful subtopology.
fn alone(app: &mut App) {
    app.join("m1", "p1");
    app.settle(20_000);
    app.advance(1);
    assert_eq!(
        app.clients["m1"].active.len() as i32,
        app.describe().members[0].assignment.active_tasks[0].partitions.len() as i32
    );
}

#[test]
fn a_task_moves_when_its_warm_up_has_caught_up_and_runs_without_a_gap() {
    let mut app = warm(4);
    alone(&mut app);
    let joined = app.join("m2", "p2");
    assert_eq!(joined.active_tasks.as_deref(), Some(&[][..]), "m2 first warms up what it will run");
    assert_eq!(app.clients["m2"].warmup.len(), 2);
    assert_eq!(app.state(), "Reconciling", "stable only when nothing is being warmed up");

    // 990,000 records at 100 a millisecond: 9.9 s until the lag is 10,000.
    app.run_for(9_000);
    assert_eq!(app.clients["m1"].active.len(), 4, "m1 goes on with all tasks");
    app.settle(12_000);
    assert_eq!(app.clients["m1"].active.len(), 2);
    assert_eq!(app.clients["m2"].active.len(), 2);
    assert!(app.clients["m2"].warmup.is_empty() && app.clients["m1"].warmup.is_empty());
    assert_eq!(app.owners().len(), 4);
}

#[test]
fn at_most_num_warmup_replicas_at_once() {
    let mut app = warm(8);
    app.bench.configure(|broker| broker.streams_num_warmup_replicas = 1);
    alone(&mut app);
    app.join("m2", "p2");
    for moved in 1..=4 {
        assert_eq!(app.clients["m2"].warmup.len(), 1, "before move {moved}");
        app.run_until(app.now() + 30_000, |app| app.clients["m2"].active.len() == moved);
        assert_eq!(app.clients["m2"].active.len(), moved);
    }
    app.settle(10_000);
    assert_eq!(app.owners().len(), 8);
}

#[test]
fn zero_warm_ups_move_at_once_as_kafka_does() {
    let mut app = warm(4);
    alone(&mut app);
    let none = GroupOverrides { streams_num_warmup_replicas: Some(0), ..GroupOverrides::default() };
    app.bench.configure_group(super::app::GROUP, none);
    app.join("m2", "p2");
    assert!(app.clients["m2"].warmup.is_empty());
    app.settle(12_000);
    assert_eq!(app.clients["m2"].active.len(), 2);
}

#[test]
fn a_member_that_speaks_version_0_gets_its_tasks_at_once() {
    let mut app = warm(4);
    alone(&mut app);
    let mut old = app.client("m2", "p2");
    old.version = 0;
    app.add(old);
    app.beat("m2");
    assert!(app.clients["m2"].warmup.is_empty());
    app.settle(12_000);
    assert_eq!(app.clients["m2"].active.len(), 2);
}

#[test]
fn stateless_tasks_move_at_once() {
    let mut app = App::new(immediate(), 4, false);
    app.join("m1", "p1");
    app.join("m2", "p2");
    app.settle(12_000);
    assert_eq!(app.clients["m2"].active.len(), 2);
}

#[test]
fn a_warm_up_without_progress_is_over_at_its_deadline() {
    let mut app = warm(2);
    app.restore_per_ms = 0;
    alone(&mut app);
    app.join("m2", "p2");
    assert_eq!(app.clients["m2"].warmup.len(), 1);
    app.run_for(590_000);
    assert_eq!(app.clients["m2"].active.len(), 0, "ten minutes of patience");
    app.run_until(app.now() + 60_000, |app| app.clients["m2"].active.len() == 1);
    app.settle(12_000);
    assert_eq!(app.clients["m2"].active.len(), 1);
}

/// What a stock client reports of a changelog that is empty: offset 0, and an end that it does not know.
#[test]
fn a_warm_up_that_has_nothing_to_restore_does_not_wait_for_the_deadline() {
    let mut app = warm(2);
    app.end_offset = i64::MAX;
    app.restore_per_ms = 0;
    alone(&mut app);
    app.join("m2", "p2");
    app.run_for(4_000);
    assert_eq!(app.clients["m2"].active.len(), 0, "its first records may still be on the way");
    app.settle(20_000);
    assert_eq!(app.clients["m2"].active.len(), 1);
}

#[test]
fn a_warm_up_that_makes_progress_is_given_the_time_it_needs() {
    let mut app = warm(2);
    app.end_offset = 2_000_000;
    app.restore_per_ms = 1;
    alone(&mut app);
    app.join("m2", "p2");
    app.run_for(1_800_000);
    assert_eq!(app.clients["m2"].active.len(), 0, "half an hour, and getting closer");
    assert_eq!(app.clients["m1"].active.len(), 2);
    app.settle(300_000);
    assert_eq!(app.clients["m2"].active.len(), 1);
}

#[test]
fn when_the_owner_leaves_the_task_is_active_at_once_where_the_lag_is_least() {
    let mut app = warm(2);
    app.restore_per_ms = 1;
    alone(&mut app);
    app.join("m2", "p2");
    app.run_for(20_000);
    let warming = app.clients["m2"].warmup.clone();
    assert_eq!(warming.len(), 1);
    app.join("m3", "p3");
    app.run_for(5_000);
    app.leave("m1", -1);
    app.run_for(11_000);
    let owners = app.owners();
    assert_eq!(owners.len(), 2, "nobody waits for a warm-up while a task is not running: {owners:?}");
    for task in &warming {
        assert_eq!(owners[task], "m2", "m2 has restored most of it");
    }
}

#[test]
fn a_standby_takes_the_place_of_a_warm_up() {
    let mut app = warm(2);
    app.bench.configure(|broker| broker.streams_num_standby_replicas = 1);
    app.join("m1", "p1");
    app.join("m2", "p2");
    app.settle(200_000);
    app.run_for(60_000);
    let (mine, standby) = (app.clients["m2"].active.clone(), app.clients["m2"].standby.clone());
    assert_eq!((mine.len(), standby.len()), (1, 1));
    // m1 goes: its task is a standby of m2 and runs there at once.
    app.leave("m1", -1);
    app.run_for(6_000);
    assert_eq!(app.clients["m2"].active.len(), 2);
    assert!(app.clients["m2"].warmup.is_empty());
}

#[test]
fn warm_ups_go_on_after_a_failover() {
    let mut app = warm(4);
    alone(&mut app);
    app.join("m2", "p2");
    app.run_for(3_000);
    app.bench.restart();
    assert_eq!(app.state(), "Reconciling", "the log tells that tasks are being warmed up");
    let before = app.clients["m2"].warmup.clone();
    app.run_for(5_100);
    assert_eq!(app.clients["m2"].warmup, before, "what was restored is not thrown away");
    app.settle(60_000);
    assert_eq!(app.clients["m2"].active.len(), 2);
    assert_eq!(app.owners().len(), 4);
}

#[test]
fn moves_that_waited_for_a_place_are_remembered_after_a_failover() {
    let mut app = warm(8);
    app.bench.configure(|broker| broker.streams_num_warmup_replicas = 1);
    alone(&mut app);
    app.join("m2", "p2");
    app.run_for(1_000);
    app.bench.restart();
    app.settle(200_000);
    assert_eq!(app.clients["m2"].active.len(), 4);
}

#[test]
fn a_static_member_that_restarts_while_it_is_warmed_up_for_goes_on_under_its_new_id() {
    let mut app = warm(4);
    alone(&mut app);
    let mut waiting = app.client("m2", "p2");
    waiting.instance = Some("i2".to_owned());
    app.add(waiting);
    app.beat("m2");
    app.run_for(2_000);
    app.leave("m2", -2);
    // Another member looks at the moves in between.
    app.run_for(6_000);
    let mut back = app.client("m3", "p2");
    back.instance = Some("i2".to_owned());
    app.add(back);
    let mut request = app.request("m3");
    (request.task_offsets, request.task_end_offsets) = (None, None);
    let answer = app.send(1, request);
    app.receive("m3", &answer);
    assert_eq!(app.clients["m3"].warmup.len(), 2);
    app.beat("m1");
    app.settle(60_000);
    assert_eq!(app.clients["m3"].active.len(), 2);
    let Some(crate::group::Group::Streams(group)) = app.bench.shard().state().group(super::app::GROUP) else {
        panic!("a streams group")
    };
    assert!(group.targets.keys().all(|id| group.members.contains_key(id)), "{:?}", group.targets.keys());
}

#[test]
fn offsets_are_asked_for_often_only_while_tasks_are_warmed_up() {
    let mut app = warm(2);
    alone(&mut app);
    assert_eq!(app.beat("m1").task_offset_interval_ms, 60_000);
    assert_eq!(app.join("m2", "p2").task_offset_interval_ms, 1_000);
    app.settle(30_000);
    assert_eq!(app.beat("m1").task_offset_interval_ms, 60_000);

    let broker = BrokerConfig { streams_task_offset_interval_ms: Some(60_000), ..immediate() };
    let mut app = App::new(broker, 2, true);
    alone(&mut app);
    assert_eq!(app.join("m2", "p2").task_offset_interval_ms, 60_000, "a configured interval is sent exactly");
}

#[test]
fn a_steady_group_writes_nothing() {
    let mut app = warm(4);
    alone(&mut app);
    app.join("m2", "p2");
    app.settle(60_000);
    app.run_for(70_000);
    app.bench.records();
    app.run_for(300_000);
    assert_eq!(app.bench.records(), []);
}
