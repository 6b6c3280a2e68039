//! A plan is what then happens, in generated cases (issue 7, "done when" 3).

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_request as hb;

use super::app::{App, GROUP, immediate};
use crate::command::Command;
use crate::config::{GroupConfigs, GroupOverrides};
use crate::env::{IdSource, SeededIds};
use crate::outcome::Reply;
use crate::plan::{Change, Fate, Plan, Work};
use crate::testing::Draw;
use crate::topics::TopicImage;

fn plan_of(app: &mut App, change: Change) -> Plan {
    let command = Command::Plan { group_id: KStr::from_static(GROUP), change: Arc::new(change) };
    match app.bench.ask(command) {
        Reply::Plan(plan) => (*plan).expect("a plan"),
        other => panic!("{other:?}"),
    }
}

/// Targets by member, as describe shows them when everything has settled.
fn targets(app: &mut App) -> BTreeMap<String, Work> {
    let described = app.describe();
    let names = |lists: &[wire::messages::streams_group_describe_response::TaskIds]| {
        let each =
            lists.iter().flat_map(|list| list.partitions.iter().map(move |p| format!("{}_{p}", list.subtopology_id)));
        let mut each: Vec<String> = each.collect();
        each.sort_by_key(|name| name.rsplit_once('_').map(|(id, p)| (id.to_owned(), p.parse::<i32>().unwrap_or(0))));
        each
    };
    let members = described.members.iter().map(|member| {
        let target = &member.target_assignment;
        let work = Work {
            active: names(&target.active_tasks),
            standby: names(&target.standby_tasks),
            warmup: names(&target.warmup_tasks),
        };
        (member.member_id.to_string(), work)
    });
    members.collect()
}

fn planned(plan: &Plan) -> BTreeMap<String, Work> {
    let there = plan.members.iter().filter(|member| member.fate != Fate::Removed);
    there.map(|member| (member.who.member_id.to_string(), member.finally.clone().expect("it stays"))).collect()
}

fn sizes(targets: &BTreeMap<String, Work>) -> Vec<(usize, usize)> {
    let mut sizes: Vec<_> = targets.values().map(|work| (work.active.len(), work.standby.len())).collect();
    sizes.sort();
    sizes
}

/// Everything as it is.
fn nothing(app: &App, group: GroupOverrides) -> Change {
    let mut config = GroupConfigs { broker: immediate(), ..GroupConfigs::default() };
    config.groups.insert(KStr::from_static(GROUP), Arc::new(group));
    Change {
        add_members: 0,
        remove_members: Vec::new(),
        topics: Arc::new(image(app)),
        config: Arc::new(config),
        consumer_assignor: None,
    }
}

fn image(app: &App) -> TopicImage {
    (**app.bench.topics()).clone()
}

fn overrides(standbys: i32, assignor: &'static str) -> GroupOverrides {
    GroupOverrides {
        streams_assignor_name: Some(KStr::from_static(assignor)),
        streams_num_standby_replicas: Some(standbys),
        streams_acceptable_recovery_lag: Some(1_000_000),
        ..GroupOverrides::default()
    }
}

#[test]
fn a_plan_is_what_then_happens_in_a_hundred_cases() {
    let mut draw = Draw::new(7);
    for case in 0..200 {
        let (partitions, count) = (1 + draw.below(12) as i32, 1 + draw.below(5));
        let (assignor, other) = if draw.below(2) == 0 { ("sticky", "balanced") } else { ("balanced", "sticky") };
        let (stateful, standbys) = (draw.below(2) == 1, draw.below(2) as i32);
        let mut app = App::new(immediate(), partitions, stateful);
        app.bench.configure_group(GROUP, overrides(standbys, assignor));
        for number in 0..count {
            app.join(&format!("m{number}"), &format!("p{number}"));
        }
        app.run_for(30_000);
        app.settle(600_000);
        let before = targets(&mut app);
        let mut change = nothing(&app, overrides(standbys, assignor));
        let kind = draw.below(5);
        let changed = match kind {
            1 => overrides(1 - standbys, assignor),
            _ => overrides(standbys, other),
        };
        let mut added = 0;
        match kind {
            0 if count > 1 => change.remove_members.push(KStr::from(format!("m{}", draw.below(count)))),
            1 | 4 => change = nothing(&app, changed.clone()),
            2 if !stateful => {
                let mut topics = image(&app);
                let mut topic = topics.get("in").expect("the topic").clone();
                topic.partitions += 1 + draw.below(4) as i32;
                topics.insert("in".into(), topic);
                change.topics = Arc::new(topics);
            }
            _ => {
                added = 1 + draw.below(3) as usize;
                change.add_members = added;
            }
        }
        let plan = plan_of(&mut app, change.clone());
        assert_eq!(targets(&mut app), before, "case {case}: a plan changes nothing");
        let what = format!(
            "case {case}: {count} members, {partitions} partitions, kind {kind}, stateful {stateful}, {assignor}"
        );
        assert_eq!(plan.problem, None, "{what}");
        for member in plan.members.iter().filter(|member| member.fate != Fate::Added) {
            assert_eq!(Some(&member.before), before.get(member.who.member_id.as_str()), "{what}");
        }

        // Now it happens.
        if let Some(gone) = change.remove_members.first() {
            app.leave(gone, -1);
        }
        if matches!(kind, 1 | 4) {
            app.bench.configure_group(GROUP, changed);
            if kind == 4 {
                // As with Kafka, another assignor alone is no cause: it counts from the next rebalance on.
                let mut request = app.request("m0");
                request.client_tags = Some(vec![hb::KeyValue { key: "zone".into(), value: "a".into() }]);
                let answer = app.send(1, request);
                app.receive("m0", &answer);
            }
        }
        let grown = change.topics.get("in").map_or(partitions, |topic| topic.partitions);
        if grown != partitions {
            app.bench.set_topic("in", grown);
        }
        let mut ids = SeededIds(100);
        for number in 0..added {
            app.join(&format!("n{number}"), ids.uuid_text().as_str());
        }
        app.run_for(30_000);
        app.settle(600_000);
        let (now, planned) = (targets(&mut app), planned(&plan));
        if added == 0 {
            assert_eq!(now, planned, "{what}, before {before:?}");
        } else {
            assert_eq!(sizes(&now), sizes(&planned), "{what}");
        }
    }
}

#[test]
fn members_that_are_not_there_and_groups_that_are_not_there_have_no_plan() {
    let mut app = App::new(immediate(), 2, false);
    app.join("m0", "p0");
    let mut change = nothing(&app, GroupOverrides::default());
    change.remove_members.push("stranger".into());
    let command =
        |group: &str, change: &Change| Command::Plan { group_id: KStr::copy(group), change: Arc::new(change.clone()) };
    for group in [GROUP, "other"] {
        match app.bench.ask(command(group, &change)) {
            Reply::Plan(plan) => assert!(plan.is_err()),
            other => panic!("{other:?}"),
        }
    }
}
