//! A plan is what then happens, in generated cases (issue 7, "done when" 3).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::config::GroupConfigs;
use crate::plan::{Change, Fate, Plan, Work};
use crate::testing::Draw;

/// Members of one group, who do at once what they are told.
struct Crowd {
    rig: Rig,
    epochs: BTreeMap<String, i32>,
    assignor: &'static str,
}

impl Crowd {
    fn beat_with(&mut self, id: &str, next: Beat) {
        let assignor = self.assignor;
        let response = self.rig.send(next.with(|request| request.server_assignor = Some(text(assignor))));
        assert_eq!(response.error_code, 0, "{:?}", response.error_message);
        self.epochs.insert(id.to_owned(), response.member_epoch);
        if let Some(assignment) = response.assignment {
            let owned = assignment.topic_partitions.iter();
            let owned =
                owned.map(|topic| TopicPartitions { topic_id: topic.topic_id, partitions: topic.partitions.clone() });
            let acknowledged = beat(id, response.member_epoch).with(|request| {
                request.topic_partitions = Some(owned.collect());
            });
            let answer = self.rig.send(acknowledged);
            self.epochs.insert(id.to_owned(), answer.member_epoch);
        }
    }

    fn join(&mut self, id: &str, topics: &[&str]) {
        self.beat_with(id, joins(id).names(topics));
    }

    fn leave(&mut self, id: &str) {
        self.rig.send(beat(id, -1));
        self.epochs.remove(id);
    }

    fn settle(&mut self) {
        for _ in 0..6 {
            for (id, epoch) in self.epochs.clone() {
                self.beat_with(&id, beat(&id, epoch));
            }
        }
    }

    fn targets(&mut self) -> BTreeMap<String, Vec<String>> {
        let members = self.rig.describe().members;
        let targets = members.into_iter().map(|member| {
            let mut names = Vec::new();
            for topic in &member.target_assignment.topic_partitions {
                names.extend(topic.partitions.iter().map(|partition| (topic.topic_name.to_string(), *partition)));
            }
            names.sort();
            let names = names.into_iter().map(|(topic, partition)| format!("{topic}-{partition}")).collect();
            (member.member_id.to_string(), names)
        });
        targets.collect()
    }

    fn plan(&mut self, change: &Change) -> Plan {
        let command = Command::Plan { group_id: text(GROUP), change: Arc::new(change.clone()) };
        match self.rig.bench.ask(command) {
            Reply::Plan(plan) => (*plan).expect("a plan"),
            other => panic!("{other:?}"),
        }
    }
}

fn sizes(targets: &BTreeMap<String, Vec<String>>) -> Vec<usize> {
    let mut sizes: Vec<_> = targets.values().map(Vec::len).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn a_plan_is_what_then_happens_in_a_hundred_cases() {
    let mut draw = Draw::new(11);
    for case in 0..100 {
        let partitions = 1 + draw.below(12) as i32;
        let count = 1 + draw.below(5);
        let (assignor, other) = if draw.below(2) == 0 { ("uniform", "range") } else { ("range", "uniform") };
        let rig = Rig::with(|config| config.consumer_assignors = vec![text("uniform"), text("range")]);
        let mut crowd = Crowd { rig, epochs: BTreeMap::new(), assignor };
        crowd.rig.bench.set_topic("orders", partitions.max(4));
        // Now and then members differ in what they read.
        let mixed = draw.below(3) == 0;
        for number in 0..count {
            let topics: &[&str] = if mixed && number % 2 == 1 { &["orders", "users"] } else { &["orders"] };
            crowd.join(&format!("m{number}"), topics);
        }
        crowd.settle();
        let before = crowd.targets();
        let image = (**crowd.rig.bench.topics()).clone();
        let mut change = Change {
            add_members: 0,
            remove_members: Vec::new(),
            topics: Arc::new(image.clone()),
            config: Arc::new(GroupConfigs { broker: crowd.rig.bench.config().broker.clone(), ..Default::default() }),
            consumer_assignor: None,
        };
        let kind = draw.below(4);
        let gone = format!("m{}", draw.below(count));
        let grown = partitions.max(4) + 1 + draw.below(5) as i32;
        match kind {
            0 if count > 1 => change.remove_members.push(text(&gone)),
            1 => change.consumer_assignor = Some(text(other)),
            2 => {
                let mut topics = image;
                let mut topic = topics.get("orders").expect("the topic").clone();
                topic.partitions = grown;
                topics.insert("orders".into(), topic);
                change.topics = Arc::new(topics);
            }
            _ => change.add_members = 1 + draw.below(3) as usize,
        }
        let plan = crowd.plan(&change);
        let what = format!("case {case}: kind {kind}, {count} members, {partitions} partitions, {assignor}");
        assert_eq!(crowd.targets(), before, "{what}: a plan changes nothing");
        for member in plan.members.iter().filter(|member| member.fate != Fate::Added) {
            assert_eq!(Some(&member.before.active), before.get(member.who.member_id.as_str()), "{what}");
        }

        // Now it happens.
        if let Some(gone) = change.remove_members.first() {
            crowd.leave(gone);
        }
        if change.consumer_assignor.is_some() {
            crowd.assignor = other;
        }
        if kind == 2 {
            crowd.rig.bench.set_topic("orders", grown);
        }
        for number in 0..change.add_members {
            let topics: &[&str] =
                if mixed && number % count as usize % 2 == 1 { &["orders", "users"] } else { &["orders"] };
            crowd.join(&format!("new-{}", number + 1), topics);
        }
        crowd.settle();
        let there = plan.members.iter().filter(|member| member.fate != Fate::Removed);
        let planned: BTreeMap<String, Vec<String>> = there
            .map(|member| {
                let Work { active, standby, warmup } = member.finally.clone().expect("it stays");
                assert!(standby.is_empty() && warmup.is_empty(), "{what}");
                (member.who.member_id.to_string(), active)
            })
            .collect();
        let now = crowd.targets();
        // One by one newcomers may share differently among themselves than all at once.
        match change.add_members {
            0 | 1 => assert_eq!(now, planned, "{what}"),
            _ => assert_eq!(sizes(&now), sizes(&planned), "{what}"),
        }
    }
}
