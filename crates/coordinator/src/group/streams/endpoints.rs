//! Where interactive queries find the partitions: the endpoint epoch and the list (S 7, decisions 11 and 27).

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_response::{Endpoint, EndpointToPartitions, TopicPartition};

use super::configure::{Configured, ConfiguredSubtopology};
use super::member::{Member, Tasks};
use crate::assign::TaskSet;
use crate::topics::TopicImage;

/// Soft state: the epoch, and the list as it was last built. The epoch moves with whatever the list shows, so the list
/// of an epoch can be used again.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    pub epoch: i32,
    list: Option<(i32, Arc<Vec<EndpointToPartitions>>)>,
}

impl Endpoints {
    /// Something that the list shows is different from now on.
    pub(super) fn changed(&mut self) {
        self.epoch += 1;
        self.list = None;
    }

    /// The list of `epoch` if it was built before.
    pub(super) fn known(&self, epoch: i32) -> Option<&Arc<Vec<EndpointToPartitions>>> {
        self.list.as_ref().filter(|(of, _)| *of == epoch).map(|(_, list)| list)
    }

    /// Moves to `epoch`, whose list is `list` if it was built.
    pub(super) fn moved(&mut self, epoch: i32, list: Option<Arc<Vec<EndpointToPartitions>>>) {
        if epoch != self.epoch {
            self.list = None;
        }
        self.epoch = epoch;
        if let Some(list) = list {
            self.list = Some((epoch, list));
        }
    }
}

/// One entry per member with an endpoint, in the given order; none while the topology is unresolved (decision 11).
pub(super) fn list<'a>(
    members: impl Iterator<Item = &'a Member>,
    configured: &Configured,
    topics: &TopicImage,
) -> Vec<EndpointToPartitions> {
    let Some(subtopologies) = &configured.subtopologies else { return Vec::new() };
    let entries = members.filter_map(|member| {
        let (host, port) = member.metadata.user_endpoint.as_ref()?;
        Some(EndpointToPartitions {
            user_endpoint: Endpoint { host: host.clone(), port: *port },
            active_partitions: active(&member.assigned, subtopologies, topics),
            standby_partitions: copies(&member.assigned, subtopologies, topics),
        })
    });
    entries.collect()
}

/// The list as a client is sent it. Those that speak version 0 only (Kafka Streams 4.1 to 4.3) keep just the last of several
/// entries with the same endpoint, as the threads of one instance have, and so lose standby hosts: they get one entry per endpoint.
/// Later clients merge the entries themselves and get one per member, as from Kafka (S 7.3).
pub(super) fn for_client(list: &[EndpointToPartitions], api_version: i16) -> Vec<EndpointToPartitions> {
    if api_version > 0 {
        return list.to_vec();
    }
    let mut merged: Vec<EndpointToPartitions> = Vec::with_capacity(list.len());
    for entry in list {
        match merged.iter_mut().find(|known| known.user_endpoint == entry.user_endpoint) {
            Some(known) => {
                merge(&mut known.active_partitions, &entry.active_partitions);
                merge(&mut known.standby_partitions, &entry.standby_partitions);
            }
            None => merged.push(entry.clone()),
        }
    }
    merged
}

fn merge(into: &mut Vec<TopicPartition>, from: &[TopicPartition]) {
    for more in from {
        match into.iter_mut().find(|known| known.topic == more.topic) {
            Some(known) => {
                known.partitions.extend(&more.partitions);
                known.partitions.sort_unstable();
                known.partitions.dedup();
            }
            None => into.push(more.clone()),
        }
    }
}

fn active(
    assigned: &Tasks,
    subtopologies: &BTreeMap<KStr, ConfiguredSubtopology>,
    topics: &TopicImage,
) -> Vec<TopicPartition> {
    let tasks = assigned.active.iter();
    tasks.flat_map(|(id, epochs)| partitions(subtopologies.get(id), epochs.keys().copied(), topics)).collect()
}

/// Standby and warm-up tasks together.
fn copies(
    assigned: &Tasks,
    subtopologies: &BTreeMap<KStr, ConfiguredSubtopology>,
    topics: &TopicImage,
) -> Vec<TopicPartition> {
    let mut tasks: TaskSet = assigned.standby.clone();
    for (id, partitions) in &assigned.warmup {
        tasks.entry(id.clone()).or_default().extend(partitions);
    }
    let tasks = tasks.iter();
    tasks.flat_map(|(id, numbers)| partitions(subtopologies.get(id), numbers.iter().copied(), topics)).collect()
}

/// S 7.4: the partitions that tasks read; topics without any are left out, and so are topics that are gone.
fn partitions(
    subtopology: Option<&ConfiguredSubtopology>,
    tasks: impl Iterator<Item = i32> + Clone,
    topics: &TopicImage,
) -> Vec<TopicPartition> {
    let Some(subtopology) = subtopology else { return Vec::new() };
    let repartition = subtopology.repartition_source_topics.iter().map(|topic| &topic.name);
    let names = subtopology.source_topics.iter().chain(repartition);
    let listed = names.filter_map(|topic| {
        let count = topics.get(topic)?.partitions;
        let partitions: Vec<i32> = tasks.clone().filter(|task| *task < count).collect();
        (!partitions.is_empty()).then(|| TopicPartition { topic: topic.clone(), partitions })
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(port: u16, active: &[i32], standby: &[i32]) -> EndpointToPartitions {
        let of = |partitions: &[i32]| match partitions {
            [] => Vec::new(),
            partitions => vec![TopicPartition { topic: "t".into(), partitions: partitions.to_vec() }],
        };
        EndpointToPartitions {
            user_endpoint: Endpoint { host: "h".into(), port },
            active_partitions: of(active),
            standby_partitions: of(standby),
        }
    }

    #[test]
    fn version_0_gets_one_entry_per_endpoint_and_later_ones_one_per_member() {
        let list = [entry(1, &[2], &[0]), entry(2, &[3], &[]), entry(1, &[1], &[4])];
        assert_eq!(for_client(&list, 1), list);
        assert_eq!(for_client(&list, 0), [entry(1, &[1, 2], &[0, 4]), entry(2, &[3], &[])]);
    }
}
