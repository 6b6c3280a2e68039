//! Assignments that are computed off the shard.

use std::sync::Arc;

use super::app::{App, GROUP, immediate};
use crate::command::Command;
use crate::group::{AssignmentInput, ComputedTarget};
use crate::outcome::Effect;

/// m1 is alone in a group that is too large to be assigned under the lock; the work is not carried out.
fn app() -> App {
    let mut app = App::new(immediate(), 5_000, false);
    app.creates_topics = false;
    app.join("m1", "p1");
    app
}

fn work(app: &mut App) -> Option<(i32, Arc<dyn AssignmentInput>)> {
    app.bench.effects().into_iter().find_map(|effect| match effect {
        Effect::ComputeAssignment { group_epoch, input, .. } => Some((group_epoch, input)),
        _ => None,
    })
}

fn ready(app: &mut App, group_epoch: i32, target: Arc<ComputedTarget>) {
    app.bench.ask(Command::AssignmentReady { group_id: GROUP.into(), group_epoch, target });
}

#[test]
fn members_keep_what_they_have_until_the_assignment_is_there() {
    let mut app = app();
    let (epoch, input) = work(&mut app).expect("work");
    assert_eq!(epoch, 2);
    let answer = app.beat("m1");
    assert_eq!((answer.member_epoch, answer.status), (1, Some(vec![])), "no status that would stop a client");
    assert!(work(&mut app).is_none(), "it is asked for once");
    ready(&mut app, epoch, input.compute());
    assert_eq!(app.describe().assignment_epoch, 2);
    app.beat("m1");
    assert_eq!(app.clients["m1"].active.len(), 5_000);
}

#[test]
fn an_assignment_for_an_epoch_that_is_past_counts_and_another_one_follows() {
    let mut app = app();
    let (epoch, input) = work(&mut app).expect("work");
    app.join("m2", "p2");
    ready(&mut app, epoch, input.compute());
    let group = app.describe();
    assert_eq!((group.group_epoch, group.assignment_epoch), (3, 2));
    app.beat("m1");
    let (epoch, input) = work(&mut app).expect("work for both members");
    assert_eq!(epoch, 3);
    ready(&mut app, epoch, input.compute());
    app.creates_topics = true;
    app.settle(20_000);
    assert_eq!(app.clients["m2"].active.len(), 2_500);
}

#[test]
fn an_assignment_for_another_topology_is_dropped() {
    let mut app = app();
    let (epoch, input) = work(&mut app).expect("work");
    app.bench.set_topic("in", 5_001);
    app.beat("m1");
    ready(&mut app, epoch, input.compute());
    assert_eq!(app.describe().assignment_epoch, 1);
    app.creates_topics = true;
    app.settle(20_000);
    assert_eq!(app.clients["m1"].active.len(), 5_001);
}

#[test]
fn an_assignor_that_fails_is_tried_again_after_a_while() {
    let mut app = app();
    let (epoch, _) = work(&mut app).expect("work");
    ready(&mut app, epoch, Arc::new(ComputedTarget::Streams(Err("no".to_owned()))));
    app.beat("m1");
    assert!(work(&mut app).is_none());
    app.bench.advance(1_000);
    app.beat("m1");
    assert!(work(&mut app).is_some());
}

#[test]
fn an_answer_that_never_comes_is_not_waited_for_without_end() {
    let mut app = app();
    work(&mut app).expect("work");
    for _ in 0..2 {
        app.bench.advance(30_000);
        app.beat("m1");
    }
    assert!(work(&mut app).is_some(), "after a minute");
}

#[test]
fn after_a_restart_the_work_is_asked_for_again() {
    let mut app = app();
    work(&mut app).expect("work");
    app.bench.restart();
    app.beat("m1");
    assert!(work(&mut app).is_some());
}
