//! What the leader of a classic group does, and the bytes that consumers exchange through the coordinator.

use std::collections::BTreeMap;

use coordinator::assign::{TaskId, TaskSet, contains_task, insert_task, tasks_of};
use wire::messages::consumer_protocol_assignment::{self as assignment, ConsumerProtocolAssignment};
use wire::messages::consumer_protocol_subscription::{self as subscription, ConsumerProtocolSubscription};
use wire::{Bytes, KStr, Message, Reader, Writer};

const VERSION: i16 = 3;

/// A member as its metadata shows it.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub id: KStr,
    pub instance_id: Option<KStr>,
    pub topics: Vec<KStr>,
    pub owned: TaskSet,
}

impl Candidate {
    /// # Errors
    /// If the coordinator changed what a member said of itself.
    pub fn read(id: &KStr, instance_id: Option<&KStr>, metadata: &Bytes) -> Result<Candidate, String> {
        let subscription: ConsumerProtocolSubscription =
            read(metadata).ok_or_else(|| format!("the metadata of {id} cannot be read: {metadata:?}"))?;
        let owned = subscription
            .owned_partitions
            .iter()
            .map(|topic| (topic.topic.clone(), topic.partitions.iter().copied().collect()));
        Ok(Candidate {
            id: id.clone(),
            instance_id: instance_id.cloned(),
            topics: subscription.topics,
            owned: owned.collect(),
        })
    }
}

/// Who gets what. With `cooperative`, partitions stay where they are as far as that is fair, and one that somebody claims to
/// have is given to nobody else before it was given up.
pub fn assign(members: &[Candidate], counts: &BTreeMap<KStr, i32>, cooperative: bool) -> BTreeMap<KStr, TaskSet> {
    let mut assigned: BTreeMap<_, _> = members.iter().map(|member| (member.id.clone(), TaskSet::new())).collect();
    for (topic, count) in counts {
        let mut readers: Vec<_> = members.iter().filter(|member| member.topics.contains(topic)).collect();
        readers.sort_by_key(|member| (member.instance_id.is_none(), member.instance_id.clone(), member.id.clone()));
        let Some(quota) = (*count as usize).checked_div(readers.len()) else { continue };
        let more = *count as usize % readers.len();
        let mut room: Vec<usize> = (0..readers.len()).map(|at| quota + usize::from(at < more)).collect();
        let mut open: Vec<TaskId> =
            (0..*count).map(|partition| TaskId { subtopology: topic.clone(), partition }).collect();
        if cooperative {
            for (at, reader) in readers.iter().enumerate() {
                open.retain(|task| {
                    let stays = room[at] > 0 && contains_task(&reader.owned, task);
                    if stays {
                        room[at] -= 1;
                        insert_task(assigned.entry(reader.id.clone()).or_default(), task);
                    }
                    !stays
                });
            }
        }
        let mut at = 0;
        for task in open {
            while room[at] == 0 {
                at += 1;
            }
            room[at] -= 1;
            insert_task(assigned.entry(readers[at].id.clone()).or_default(), &task);
        }
    }
    if cooperative {
        for (id, tasks) in &mut assigned {
            let others: Vec<_> = members.iter().filter(|member| member.id != *id).collect();
            let claimed: Vec<_> =
                tasks_of(tasks).filter(|task| others.iter().any(|other| contains_task(&other.owned, task))).collect();
            claimed.iter().for_each(|task| coordinator::assign::remove_task(tasks, task));
        }
    }
    assigned
}

pub fn write_subscription(topics: Vec<KStr>, owned: &TaskSet, generation_id: i32) -> Bytes {
    let owned = owned.iter().map(|(topic, partitions)| subscription::TopicPartition {
        topic: topic.clone(),
        partitions: partitions.iter().copied().collect(),
    });
    write(&ConsumerProtocolSubscription {
        topics,
        user_data: None,
        owned_partitions: owned.collect(),
        generation_id,
        rack_id: None,
    })
}

pub fn write_assignment(tasks: &TaskSet) -> Bytes {
    let topics = tasks.iter().map(|(topic, partitions)| assignment::TopicPartition {
        topic: topic.clone(),
        partitions: partitions.iter().copied().collect(),
    });
    write(&ConsumerProtocolAssignment { assigned_partitions: topics.collect(), user_data: None })
}

/// # Errors
/// If they are no assignment. A member for which the leader had none gets no bytes at all.
pub fn read_assignment(bytes: &Bytes) -> Result<TaskSet, String> {
    if bytes.is_empty() {
        return Ok(TaskSet::new());
    }
    let assignment: ConsumerProtocolAssignment = read(bytes).ok_or_else(|| format!("no assignment: {bytes:?}"))?;
    let topics = assignment.assigned_partitions.into_iter();
    Ok(topics
        .filter(|topic| !topic.partitions.is_empty())
        .map(|topic| (topic.topic, topic.partitions.into_iter().collect()))
        .collect())
}

fn write<M: Message>(message: &M) -> Bytes {
    let mut writer = Writer::new();
    writer.i16(VERSION);
    message.encode(&mut writer, VERSION).unwrap_or_else(|error| unreachable!("names are short: {error}"));
    writer.into_bytes()
}

fn read<M: Message>(bytes: &Bytes) -> Option<M> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16().ok()?;
    M::decode(&mut reader, version).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_somebody_claims_is_given_to_nobody_else() {
        let topics = vec![KStr::from("t")];
        let owned = TaskSet::from([(KStr::from("t"), [0, 1, 2].into())]);
        let member = |id: &'static str, owned: TaskSet| Candidate {
            id: id.into(),
            instance_id: None,
            topics: topics.clone(),
            owned,
        };
        let counts = BTreeMap::from([(KStr::from("t"), 4)]);
        let members = [member("a", owned), member("b", TaskSet::new())];
        let first = assign(&members, &counts, true);
        assert_eq!(first["a"], TaskSet::from([(KStr::from("t"), [0, 1].into())]));
        assert_eq!(first["b"], TaskSet::from([(KStr::from("t"), [3].into())]));
        let members = [member("a", first["a"].clone()), member("b", first["b"].clone())];
        let then = assign(&members, &counts, true);
        assert_eq!(then["b"], TaskSet::from([(KStr::from("t"), [2, 3].into())]));
        assert_eq!(read_assignment(&write_assignment(&then["b"])), Ok(then["b"].clone()));
    }
}
