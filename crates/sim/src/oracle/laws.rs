//! What every target has to keep to, and where it may not be worse than Kafka's for the same group.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{
    ConsumerInput, ConsumerTarget, PartitionSet, StreamsInput, StreamsTarget, TaskId, TaskSet, contains_task, tasks_of,
};
use wire::{KStr, Uuid};

/// What is wrong with our target of a streams group: each task active once, standbys apart and as many as there can be,
/// no more uneven than Kafka's but for the last tie, and with no more active tasks moved if it is as even.
pub fn streams(input: &StreamsInput, ours: &StreamsTarget, kafka: &StreamsTarget) -> Vec<String> {
    let mut faults = Vec::new();
    let process_of: BTreeMap<&KStr, &KStr> = input.members.iter().map(|m| (&m.member_id, &m.process_id)).collect();
    let processes: BTreeSet<&KStr> = process_of.values().copied().collect();
    let all = || {
        input.subtopologies.iter().flat_map(|subtopology| {
            let task = |partition| TaskId { subtopology: subtopology.id.clone(), partition };
            (0..subtopology.tasks).map(task).map(|task| (task, subtopology.stateful))
        })
    };
    if !ours.keys().eq(process_of.keys().copied()) {
        faults.push(format!("the target is for {:?}, members are {:?}", ours.keys(), process_of.keys()));
        return faults;
    }
    for (task, stateful) in all() {
        let at = |role: fn(&coordinator::assign::TaskAssignment) -> &TaskSet| {
            let holders = ours.iter().filter(|(_, tasks)| contains_task(role(tasks), &task));
            holders.map(|(id, _)| process_of[id]).collect::<Vec<_>>()
        };
        let (active, standby) = (at(|tasks| &tasks.active), at(|tasks| &tasks.standby));
        if active.len() != 1 {
            faults.push(format!("{task:?} is active {} times", active.len()));
        }
        let mut apart: BTreeSet<_> = standby.iter().collect();
        apart.extend(active.iter());
        if apart.len() != standby.len() + active.len() {
            faults.push(format!("{task:?} is twice in one process"));
        }
        let due = if stateful { (input.num_standby_replicas as usize).min(processes.len() - 1) } else { 0 };
        if standby.len() != due {
            faults.push(format!("{task:?} has {} standbys of {due}", standby.len()));
        }
    }
    let total: usize = ours.values().map(|tasks| count(&tasks.active)).sum();
    if total != all().count() {
        faults.push(format!("{total} active tasks of {}", all().count()));
    }
    let spread = |target: &StreamsTarget| uneven(target.values().map(|tasks| count(&tasks.active)));
    let kept = |target: &StreamsTarget| {
        let kept = input.members.iter().map(|member| {
            let tasks = target.get(&member.member_id).map(|tasks| &tasks.active);
            tasks_of(&member.active).filter(|task| tasks.is_some_and(|tasks| contains_task(tasks, task))).count()
        });
        kept.sum::<usize>()
    };
    compare(spread(ours), spread(kafka), kept(ours), kept(kafka), &mut faults);
    if !faults.is_empty() {
        let members = input.members.iter().map(|member| {
            let show =
                |target: &StreamsTarget| target.get(&member.member_id).map_or_else(String::new, |t| short(&t.active));
            let (id, process) = (&member.member_id, &member.process_id);
            format!("{id} of {process} has {}, ours {}, Kafka's {}", short(&member.active), show(ours), show(kafka))
        });
        faults.push(members.collect::<Vec<_>>().join("; "));
    }
    faults
}

fn short(tasks: &TaskSet) -> String {
    tasks_of(tasks).map(|task| format!("{}_{} ", task.subtopology, task.partition)).collect()
}

/// What is wrong with our target of a consumer group: each partition at one subscriber, no more uneven than Kafka's but
/// for the last tie, and with no more partitions moved if it is as even.
pub fn consumer(input: &ConsumerInput, ours: &ConsumerTarget, kafka: &ConsumerTarget) -> Vec<String> {
    let mut faults = Vec::new();
    let mut owners: BTreeMap<(Uuid, i32), &KStr> = BTreeMap::new();
    for member in &input.members {
        for (topic, partitions) in ours.get(&member.member_id).into_iter().flatten() {
            for partition in partitions {
                if !member.subscribed.contains(topic) {
                    faults.push(format!("{} does not subscribe to {topic}", member.member_id));
                }
                if let Some(other) = owners.insert((*topic, *partition), &member.member_id) {
                    faults.push(format!("{topic}-{partition} is at {other} and {}", member.member_id));
                }
            }
        }
    }
    let subscribed = |topic: &Uuid| input.members.iter().any(|member| member.subscribed.contains(topic));
    for (topic, count) in input.topics.iter().filter(|(topic, _)| subscribed(topic)) {
        for partition in (0..*count).filter(|partition| !owners.contains_key(&(*topic, *partition))) {
            faults.push(format!("nobody has {topic}-{partition}"));
        }
    }
    let spread = |target: &ConsumerTarget| uneven(target.values().map(size));
    let kept = |target: &ConsumerTarget| {
        let kept = input.members.iter().map(|member| {
            let now = target.get(&member.member_id);
            let has = |topic: &Uuid, p: &i32| now.and_then(|now| now.get(topic)).is_some_and(|set| set.contains(p));
            member.assigned.iter().map(|(topic, set)| set.iter().filter(|p| has(topic, p)).count()).sum::<usize>()
        });
        kept.sum::<usize>()
    };
    // With different subscriptions one cannot tell from the numbers alone how even it can be.
    let same = input.members.windows(2).all(|pair| pair[0].subscribed == pair[1].subscribed);
    if same {
        compare(spread(ours), spread(kafka), kept(ours), kept(kafka), &mut faults);
    }
    faults
}

fn compare(ours: usize, kafka: usize, kept: usize, kafka_kept: usize, faults: &mut Vec<String>) {
    // Ties between processes go one way or the other, which makes a difference of one task (sticky 5, decision 19).
    if ours > kafka.max(1) + 1 {
        faults.push(format!("loads differ by {ours}, Kafka's by {kafka}"));
    } else if ours == kafka && kept + 1 < kafka_kept {
        faults.push(format!("{kept} stay where they are, {kafka_kept} with Kafka"));
    }
}

/// Difference of the highest and the lowest.
fn uneven(loads: impl Iterator<Item = usize> + Clone) -> usize {
    loads.clone().max().unwrap_or(0) - loads.min().unwrap_or(0)
}

fn count(tasks: &TaskSet) -> usize {
    tasks.values().map(BTreeSet::len).sum()
}

fn size(partitions: &PartitionSet) -> usize {
    partitions.values().map(BTreeSet::len).sum()
}
