//! Warm-ups (decision 8): the rules one by one, and laws on random groups.

mod groups;

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::warmup::{Finish, Move, Refined, Stage, WarmupInput, Warmups, refine};
use coordinator::assign::{
    StreamsInput, StreamsMember, StreamsTarget, Subtopology, TaskAssignment, TaskId, TaskSet, balanced, contains_task,
    insert_task, sticky, tasks_of,
};
use groups::{ANY, active_of, carried_out, check_laws, groups, is_stateful};
use proptest::prelude::*;
use wire::KStr;

/// A group whose stateful subtopology is `0` and whose stateless one is `1`, and what the refinement has to know of it.
#[derive(Debug)]
struct Scene {
    group: StreamsInput,
    target: StreamsTarget,
    cannot_report: BTreeSet<KStr>,
    revoking: BTreeMap<KStr, TaskSet>,
    max_warmups: usize,
    acceptable_lag: i64,
    now_ms: u64,
    patience_ms: u64,
    warmups: Warmups,
}

const PATIENCE_MS: u64 = 1000;

/// `0_1 0_2` as a set.
fn set(text: &str) -> TaskSet {
    let mut tasks = TaskSet::new();
    text.split_whitespace().for_each(|each| insert_task(&mut tasks, &task(each)));
    tasks
}

fn task(text: &str) -> TaskId {
    let (subtopology, partition) = text.split_once('_').expect("SUB_PARTITION");
    TaskId { subtopology: KStr::from(subtopology.to_owned()), partition: partition.parse().expect("a number") }
}

impl Scene {
    /// Members as `id/process: active | standby | warm-up -> target active | target standby`.
    fn new(members: &[&str]) -> Scene {
        let mut scene = Scene::of(StreamsInput::default(), StreamsTarget::new());
        for (id, stateful) in [("0", true), ("1", false)] {
            scene.group.subtopologies.push(Subtopology { id: id.into(), tasks: 8, stateful });
        }
        for text in members {
            let (name, rest) = text.split_once(':').expect("a name");
            let (member_id, process_id) = name.split_once('/').expect("a process");
            let (now, then) = rest.split_once("->").expect("an arrow");
            let sets =
                |text: &str| text.split('|').map(set).chain(std::iter::repeat_n(TaskSet::new(), 3)).collect::<Vec<_>>();
            let (now, then) = (sets(now), sets(then));
            let member_id = KStr::from(member_id.to_owned());
            let target = TaskAssignment { active: then[0].clone(), standby: then[1].clone(), warmup: TaskSet::new() };
            scene.target.insert(member_id.clone(), target);
            scene.group.members.push(StreamsMember {
                member_id,
                process_id: KStr::from(process_id.to_owned()),
                active: now[0].clone(),
                standby: now[1].clone(),
                warmup: now[2].clone(),
                ..StreamsMember::default()
            });
        }
        scene
    }

    fn of(group: StreamsInput, target: StreamsTarget) -> Scene {
        Scene {
            group,
            target,
            cannot_report: BTreeSet::new(),
            revoking: BTreeMap::new(),
            max_warmups: 2,
            acceptable_lag: 10,
            now_ms: 0,
            patience_ms: PATIENCE_MS,
            warmups: Warmups::default(),
        }
    }

    fn report(&mut self, member: &str, id: &str, offset: i64, end: Option<i64>) {
        let member = self.group.members.iter_mut().find(|each| each.member_id == member).expect("a member");
        member.task_offsets.insert(task(id), offset);
        member.task_end_offsets.extend(end.map(|end| (task(id), end)));
    }

    /// Refines, and remembers what is to be remembered.
    fn refine(&mut self) -> Refined {
        let refined = refine(&WarmupInput {
            group: &self.group,
            target: &self.target,
            cannot_report: &self.cannot_report,
            revoking: &self.revoking,
            max_warmups: self.max_warmups,
            acceptable_lag: self.acceptable_lag,
            now_ms: self.now_ms,
            patience_ms: self.patience_ms,
            previous: &self.warmups,
        });
        self.warmups = refined.warmups.clone();
        refined
    }

    fn carry_out(&mut self, refined: &Refined) {
        self.group = carried_out(&self.group, &refined.target);
    }
}

/// `member: active | standby | warm-up` of every member.
fn shown(target: &StreamsTarget) -> Vec<String> {
    let text = |tasks: &TaskSet| {
        let all = tasks_of(tasks).map(|task| format!("{}_{}", task.subtopology, task.partition));
        all.collect::<Vec<_>>().join(" ")
    };
    let member = |(id, tasks): (&KStr, &TaskAssignment)| {
        format!("{id}: {} | {} | {}", text(&tasks.active), text(&tasks.standby), text(&tasks.warmup))
    };
    target.iter().map(member).collect()
}

fn ids(tasks: &[(TaskId, KStr)]) -> Vec<String> {
    tasks.iter().map(|(task, to)| format!("{}_{} {to}", task.subtopology, task.partition)).collect()
}

#[test]
fn what_moves_at_once_and_what_waits() {
    // Present assignments and the assignor's target, then the refined one.
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "a stateful task waits, a stateless one does not",
            &["a/p: 0_0 0_1 1_0 -> 0_0", "b/q: -> 0_1 1_0"],
            &["a: 0_0 0_1 |  | ", "b: 1_0 |  | 0_1"],
        ),
        (
            "inside a process state is at hand",
            &["a/p: 0_0 0_1 -> 0_0", "b/p: -> 0_1"],
            &["a: 0_0 |  | ", "b: 0_1 |  | "],
        ),
        (
            "a task that nobody runs or has state of starts where it is wanted",
            &["a/p: 0_0 -> 0_0", "b/q: -> 0_1"],
            &["a: 0_0 |  | ", "b: 0_1 |  | "],
        ),
        (
            "a task that nobody runs starts where a standby is",
            &["a/p: -> 0_0", "b/q: | 0_0 ->"],
            &["a:  |  | 0_0", "b: 0_0 |  | "],
        ),
        (
            "a standby of the new owner takes the place of the warm-up",
            &["a/p: 0_0 ->", "b/q: | 0_0 -> 0_0"],
            &["a: 0_0 |  | ", "b:  | 0_0 | "],
        ),
        (
            "a standby of the new owner's process does as well",
            &["a/p: 0_0 ->", "b/q: -> 0_0", "c/q: | 0_0 ->"],
            &["a: 0_0 |  | ", "b:  |  | ", "c:  | 0_0 | "],
        ),
        (
            "a running warm-up goes on",
            &["a/p: 0_0 0_1 0_2 ->", "b/q: || 0_2 -> 0_0 0_1 0_2"],
            &["a: 0_0 0_1 0_2 |  | ", "b:  |  | 0_0 0_2"],
        ),
        (
            "the process that still runs the task is no standby of it",
            &["a/p: 0_0 -> | 0_0", "b/q: -> 0_0"],
            &["a: 0_0 |  | ", "b:  |  | 0_0"],
        ),
        (
            "standbys elsewhere are placed at once",
            &["a/p: 0_0 ->", "b/q: -> 0_0", "c/r: -> | 0_0"],
            &["a: 0_0 |  | ", "b:  |  | 0_0", "c:  | 0_0 | "],
        ),
        (
            "at most so many warm-ups, shared out over the new owners",
            &["a/p: 0_0 0_1 0_2 0_3 ->", "b/q: -> 0_0 0_1", "c/r: -> 0_2 0_3"],
            &["a: 0_0 0_1 0_2 0_3 |  | ", "b:  |  | 0_0", "c:  |  | 0_2"],
        ),
    ];
    for (rule, members, expected) in table {
        let mut scene = Scene::new(members);
        assert_eq!(shown(&scene.refine().target), *expected, "{rule}");
    }
}

#[test]
fn zero_warmups_mean_that_everything_moves_at_once() {
    let mut scene = Scene::new(&["a/p: 0_0 0_1 -> 0_0", "b/q: -> 0_1"]);
    scene.max_warmups = 0;
    let refined = scene.refine();
    assert_eq!(refined.target, scene.target);
    assert!(refined.warmups.is_idle());
}

#[test]
fn a_member_that_cannot_report_gets_its_tasks_at_once() {
    let mut scene = Scene::new(&["a/p: 0_0 0_1 0_2 -> 0_0", "b/q: -> 0_1", "c/r: -> 0_2"]);
    scene.cannot_report.insert("b".into());
    assert_eq!(shown(&scene.refine().target), ["a: 0_0 0_2 |  | ", "b: 0_1 |  | ", "c:  |  | 0_2"]);
}

#[test]
fn a_warmup_is_promoted_when_its_lag_is_acceptable() {
    let mut scene = Scene::new(&["a/p: 0_0 -> ", "b/q: -> 0_0"]);
    let refined = scene.refine();
    assert_eq!(ids(&refined.started), ["0_0 b"]);
    scene.carry_out(&refined);
    for (offset, end) in [(0, None), (0, Some(100)), (89, Some(100))] {
        scene.report("b", "0_0", offset, end);
        let refined = scene.refine();
        assert_eq!(shown(&refined.target), ["a: 0_0 |  | ", "b:  |  | 0_0"], "{offset} of {end:?}");
        assert!(refined.started.is_empty() && refined.finished.is_empty() && !refined.warmups.is_idle());
    }
    scene.report("b", "0_0", 90, Some(100));
    let refined = scene.refine();
    assert_eq!(refined.target, scene.target);
    assert_eq!(refined.finished, [(task("0_0"), "b".into(), Finish::CaughtUp)]);
    assert!(refined.warmups.is_idle());
}

#[test]
fn a_move_that_was_let_go_is_not_called_back() {
    let mut scene = Scene::new(&["a/p: 0_0 -> ", "b/q: -> 0_0", "c/r: | 0_0 -> | 0_0"]);
    scene.report("b", "0_0", 95, Some(100));
    assert_eq!(scene.refine().target, scene.target);
    // The owner gave it up, more was written meanwhile, and another member is ahead for the moment.
    scene.group.members[0].active.clear();
    scene.report("b", "0_0", 95, Some(1000));
    scene.report("c", "0_0", 900, Some(1000));
    let refined = scene.refine();
    assert_eq!(refined.target, scene.target);
    assert!(refined.finished.is_empty());
    // It is forgotten on arrival.
    scene.group.members[1].active = set("0_0");
    assert_eq!(scene.refine().warmups, Warmups::default());
}

#[test]
fn after_a_failover_a_hand_over_goes_on() {
    let mut scene = Scene::new(&["a/p: -> ", "b/q: || 0_0 -> 0_0", "c/r: | 0_0 -> | 0_0"]);
    scene.revoking.insert("a".into(), set("0_0"));
    scene.report("c", "0_0", 900, Some(1000));
    assert_eq!(scene.refine().target, scene.target);
}

#[test]
fn a_member_that_is_giving_a_task_up_takes_it_back_when_the_new_owner_is_gone() {
    let mut scene = Scene::new(&["a/p: -> ", "b/q: -> 0_0", "c/r: | 0_0 -> | 0_0"]);
    scene.revoking.insert("a".into(), set("0_0"));
    assert_eq!(shown(&scene.refine().target), ["a: 0_0 |  | ", "b:  |  | 0_0", "c:  | 0_0 | "]);
}

#[test]
fn a_task_whose_owner_is_gone_goes_to_the_member_with_the_least_lag() {
    let mut scene = Scene::new(&["a/p: || 0_0 -> 0_0", "b/q: | 0_0 -> | 0_0", "c/r: | 0_0 ->"]);
    scene.report("a", "0_0", 20, Some(100));
    scene.report("b", "0_0", 30, Some(100));
    scene.report("c", "0_0", 60, Some(100));
    assert_eq!(shown(&scene.refine().target), ["a:  |  | 0_0", "b:  | 0_0 | ", "c: 0_0 |  | "]);
    // The new owner itself has the least, or little enough.
    for offset in [61, 95] {
        scene.warmups = Warmups::default();
        scene.report("a", "0_0", offset, Some(100));
        assert_eq!(scene.refine().target, scene.target, "{offset}");
    }
}

#[test]
fn a_warmup_that_gets_no_closer_is_given_up_at_its_deadline() {
    let mut scene = Scene::new(&["a/p: 0_0 -> ", "b/q: -> 0_0"]);
    let refined = scene.refine();
    scene.carry_out(&refined);
    assert_eq!(refined.warmups.next_deadline_ms(), Some(1000));
    // Every new low of the lag gives it as much time again, anything else does not.
    for (now_ms, offset, end, deadline_ms) in
        [(100, 10, 100, 1100), (900, 20, 120, 1100), (1099, 21, 110, 2099), (2098, 21, 110, 2099)]
    {
        scene.now_ms = now_ms;
        scene.report("b", "0_0", offset, Some(end));
        let refined = scene.refine();
        assert_eq!(shown(&refined.target), ["a: 0_0 |  | ", "b:  |  | 0_0"], "at {now_ms}");
        assert_eq!(refined.warmups.next_deadline_ms(), Some(deadline_ms), "at {now_ms}");
    }
    scene.now_ms = 2099;
    let refined = scene.refine();
    assert_eq!(refined.target, scene.target);
    assert_eq!(refined.finished, [(task("0_0"), "b".into(), Finish::Deadline)]);
    assert_eq!(refined.warmups.next_deadline_ms(), None);
}

/// An end that is not known is not a lag, and an offset that moves without one is progress.
#[test]
fn a_warmup_whose_end_nobody_knows_is_done_when_its_offset_stands_still() {
    let mut scene = Scene::new(&["a/p: 0_0 -> ", "b/q: -> 0_0"]);
    scene.patience_ms = 600_000;
    let refined = scene.refine();
    scene.carry_out(&refined);
    for (now_ms, offset, end, deadline_ms) in [
        (1_000, 0, i64::MAX, 6_000),
        (2_000, 0, i64::MAX, 6_000),
        (3_000, 7, i64::MAX, 8_000),
        (4_000, 7, 50_000, 604_000),
        (5_000, 7, i64::MAX, 10_000),
        (9_999, 7, i64::MAX, 10_000),
    ] {
        scene.now_ms = now_ms;
        scene.report("b", "0_0", offset, Some(end));
        let refined = scene.refine();
        assert_eq!(shown(&refined.target), ["a: 0_0 |  | ", "b:  |  | 0_0"], "at {now_ms}");
        assert_eq!(refined.warmups.next_deadline_ms(), Some(deadline_ms), "at {now_ms}");
    }
    scene.now_ms = 10_000;
    let refined = scene.refine();
    assert_eq!(refined.target, scene.target);
    assert_eq!(refined.finished, [(task("0_0"), "b".into(), Finish::CaughtUp)]);
}

#[test]
fn a_place_that_becomes_free_goes_to_the_next_move() {
    let mut scene = Scene::new(&["a/p: 0_0 0_1 0_2 ->", "b/q: -> 0_0 0_1 0_2"]);
    let refined = scene.refine();
    assert_eq!(ids(&refined.started), ["0_0 b", "0_1 b"]);
    let waiting = Move { to: "b".into(), stage: Stage::Waiting };
    assert_eq!(refined.warmups.moves[&task("0_2")], waiting);
    scene.carry_out(&refined);
    scene.report("b", "0_1", 100, Some(100));
    let refined = scene.refine();
    assert_eq!(ids(&refined.started), ["0_2 b"]);
    assert_eq!(shown(&refined.target), ["a: 0_0 0_2 |  | ", "b: 0_1 |  | 0_0 0_2"]);
}

#[test]
fn a_changed_target_ends_the_warmup_of_the_old_one() {
    let mut scene = Scene::new(&["a/p: 0_0 -> ", "b/q: -> 0_0", "c/r: ->"]);
    let refined = scene.refine();
    scene.carry_out(&refined);
    scene.target.get_mut("b").expect("a member").active.clear();
    scene.target.get_mut("c").expect("a member").active = set("0_0");
    let refined = scene.refine();
    assert_eq!(shown(&refined.target), ["a: 0_0 |  | ", "b:  |  | ", "c:  |  | 0_0"]);
    assert_eq!(ids(&refined.started), ["0_0 c"]);
}

/// A random group with a target of an assignor, and reports with ends.
fn scenes() -> impl Strategy<Value = Scene> {
    (groups(ANY), any::<bool>(), 1..5usize, any::<bool>()).prop_map(|(mut group, stick, max_warmups, v0)| {
        let target = if stick { sticky::assign(&group) } else { balanced::assign(&group) };
        for member in &mut group.members {
            member.task_end_offsets = member.task_offsets.keys().map(|task| (task.clone(), 120)).collect();
        }
        let mut scene = Scene::of(group, target.expect("there are members"));
        scene.max_warmups = max_warmups;
        if v0 {
            scene.cannot_report.insert(scene.group.members[0].member_id.clone());
        }
        scene
    })
}

fn check_refined(scene: &Scene, refined: &Refined) {
    check_laws(&scene.group, &refined.target);
    let warmups: usize = refined.target.values().map(|tasks| tasks_of(&tasks.warmup).count()).sum();
    assert!(warmups <= scene.max_warmups, "{warmups} warm-ups");
    for (task, wanted) in active_of(&scene.target) {
        let at_home = contains_task(&refined.target[&wanted].active, &task);
        let in_store = refined.warmups.moves.get(&task);
        assert!(is_stateful(&scene.group, &task) || at_home, "{task:?} has no state to wait for");
        match in_store.map(|each| each.stage) {
            None | Some(Stage::Released) => assert!(at_home, "{task:?} is not where it belongs, and nobody knows"),
            Some(_) => assert!(!at_home, "{task:?} waits for nothing"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn refined_targets_obey_the_laws(mut scene in scenes()) {
        let refined = scene.refine();
        check_refined(&scene, &refined);
    }

    #[test]
    fn while_nothing_happens_the_refined_target_stays(mut scene in scenes()) {
        let refined = scene.refine();
        prop_assert_eq!(&scene.refine(), &Refined { started: vec![], finished: vec![], ..refined.clone() });
        scene.carry_out(&refined);
        let settled = scene.refine();
        prop_assert_eq!(&settled.target, &refined.target);
        prop_assert!(settled.started.is_empty() && settled.finished.is_empty());
    }

    /// Members catch up, or do not and run out of time: in both cases everything arrives.
    #[test]
    fn the_target_is_reached(mut scene in scenes(), catch_up in any::<bool>()) {
        let bound = 2 * active_of(&scene.target).len() + 2;
        for _ in 0..bound {
            let refined = scene.refine();
            check_refined(&scene, &refined);
            scene.carry_out(&refined);
            if refined.target == scene.target {
                break;
            }
            scene.now_ms += PATIENCE_MS;
            if catch_up {
                for (task, to) in refined.warmups.warming() {
                    let member = scene.group.members.iter_mut().find(|each| each.member_id == *to).expect("a member");
                    member.task_offsets.insert(task.clone(), 115);
                    member.task_end_offsets.insert(task.clone(), 120);
                }
            }
        }
        prop_assert_eq!(active_of(&carried_target(&scene)), active_of(&scene.target));
        prop_assert!(scene.refine().warmups == Warmups::default());
    }
}

fn carried_target(scene: &Scene) -> StreamsTarget {
    let assignment = |member: &StreamsMember| TaskAssignment {
        active: member.active.clone(),
        standby: member.standby.clone(),
        warmup: member.warmup.clone(),
    };
    scene.group.members.iter().map(|member| (member.member_id.clone(), assignment(member))).collect()
}
