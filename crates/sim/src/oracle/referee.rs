//! The targets of Kafka, given to our shard in the place of its own, which are judged by [`laws`](super::laws): which of
//! several good placements is taken is a free choice (decision 19), and all that follows from it can be compared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use coordinator::assign::given::{self, Referee};
use coordinator::assign::{
    ConsumerInput, ConsumerTarget, PartitionSet, StreamsInput, StreamsTarget, TaskAssignment, TaskSet,
};
use serde_json::Value;
use wire::{KStr, Uuid};

use super::{codec, laws};

/// Record types: the epoch of a target and a member's part of it, of consumer and streams groups.
const CONSUMER: (i64, i64) = (6, 7);
const STREAMS: (i64, i64) = (20, 21);

/// Member by group and id, and its part of the target.
type Targets = BTreeMap<(String, String), Value>;

/// What Kafka decided in the step at hand and before.
#[derive(Debug, Default)]
struct Known {
    before: Targets,
    /// What was written in this step, the last of each member but for removals.
    now: Targets,
    /// All of it, in order.
    written: Vec<((String, String), Value)>,
    /// Groups that got a new target in this step.
    computed: Vec<String>,
    faults: Vec<String>,
    /// Targets of ours that were judged.
    judged: usize,
}

/// Stands over the assignors of this thread as long as it lives.
#[derive(Debug)]
pub struct Kafka(Rc<Judge>);

#[derive(Debug, Default)]
struct Judge(RefCell<Known>);

impl Kafka {
    pub fn new() -> Kafka {
        let judge = Rc::new(Judge::default());
        given::set(Some(judge.clone()));
        Kafka(judge)
    }

    /// Forgets everything, for a new history.
    pub fn reset(&self) {
        *self.0.0.borrow_mut() = Known::default();
    }

    /// Kafka's answer to the step that comes.
    pub fn expect(&self, answer: &Value) {
        let mut known = self.0.0.borrow_mut();
        let known = &mut *known;
        known.computed.clear();
        for record in answer["records"].as_array().into_iter().flatten() {
            let kind = record["type"].as_i64().unwrap_or(-1);
            let text = |key: &str| record["key"][key].as_str().unwrap_or_default().to_owned();
            if [CONSUMER.0, STREAMS.0].contains(&kind) && !record["value"].is_null() {
                known.computed.push(text("groupId"));
            } else if [CONSUMER.1, STREAMS.1].contains(&kind) {
                let (key, value) = ((text("groupId"), text("memberId")), record["value"].clone());
                if !value.is_null() {
                    known.now.insert(key.clone(), value.clone());
                }
                known.written.push((key, value));
            }
        }
    }

    /// The step is over. What of our targets breaks a law.
    pub fn done(&self) -> Vec<String> {
        let mut known = self.0.0.borrow_mut();
        let known = &mut *known;
        known.now.clear();
        for (key, value) in std::mem::take(&mut known.written) {
            match value {
                Value::Null => known.before.remove(&key),
                value => known.before.insert(key, value),
            };
        }
        std::mem::take(&mut known.faults)
    }

    /// Targets of ours that were judged in this history.
    pub fn judged(&self) -> usize {
        self.0.0.borrow().judged
    }
}

impl Default for Kafka {
    fn default() -> Self {
        Kafka::new()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        given::set(None);
    }
}

impl Known {
    /// Kafka's target for these members, if it made one in this step.
    fn target<'a>(&self, members: impl Iterator<Item = &'a KStr> + Clone) -> Option<BTreeMap<KStr, Option<&Value>>> {
        let find = |group: &str, member: &KStr| {
            let key = (group.to_owned(), member.as_str().to_owned());
            self.now.get(&key).or_else(|| self.before.get(&key))
        };
        let known = |group: &&String| members.clone().filter(|member| find(group, member).is_some()).count();
        let group = self.computed.iter().max_by_key(known)?;
        Some(members.map(|member| (member.clone(), find(group, member))).collect())
    }
}

impl Referee for Judge {
    fn streams(&self, input: &StreamsInput, ours: StreamsTarget) -> StreamsTarget {
        let mut known = self.0.borrow_mut();
        let Some(kafka) = known.target(input.members.iter().map(|member| &member.member_id)) else { return ours };
        let kafka: StreamsTarget = kafka.into_iter().map(|(id, value)| (id, tasks(value))).collect();
        known.judged += 1;
        known.faults.extend(laws::streams(input, &ours, &kafka));
        kafka
    }

    fn consumer(&self, assignor: &str, input: &ConsumerInput, ours: ConsumerTarget) -> ConsumerTarget {
        // Nothing is left to choice here.
        if assignor == "range" {
            return ours;
        }
        let mut known = self.0.borrow_mut();
        let Some(kafka) = known.target(input.members.iter().map(|member| &member.member_id)) else { return ours };
        let kafka: ConsumerTarget = kafka.into_iter().map(|(id, value)| (id, partitions(value))).collect();
        known.judged += 1;
        known.faults.extend(laws::consumer(input, &ours, &kafka));
        kafka
    }
}

fn numbers(value: &Value) -> impl Iterator<Item = i32> + '_ {
    value.as_array().into_iter().flatten().filter_map(Value::as_i64).map(|number| number as i32)
}

fn tasks(value: Option<&Value>) -> TaskAssignment {
    let set = |role: &str| -> TaskSet {
        let lists = value.and_then(|value| value[role].as_array()).into_iter().flatten();
        let each = lists.map(|list| {
            (KStr::copy(list["subtopologyId"].as_str().unwrap_or_default()), numbers(&list["partitions"]).collect())
        });
        each.collect()
    };
    TaskAssignment { active: set("activeTasks"), standby: set("standbyTasks"), warmup: set("warmupTasks") }
}

fn partitions(value: Option<&Value>) -> PartitionSet {
    let lists = value.and_then(|value| value["topicPartitions"].as_array()).into_iter().flatten();
    let each = lists.filter_map(|list| {
        let id = codec::bytes_of(list["topicId"].as_str()?).ok()?.try_into().ok()?;
        Some((Uuid(id), numbers(&list["partitions"]).collect()))
    });
    each.collect()
}
