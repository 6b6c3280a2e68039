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
