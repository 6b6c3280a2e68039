//! The uniform assignor (C K-37 to K-39): every member as many partitions as any other, and as few moves as that takes.
//!
//! Ties go to the member with the lower id and the partition with the lower number, so that the same input has the same
//! output everywhere (decision 19).

use std::collections::{BTreeMap, BTreeSet};

use wire::Uuid;

use super::{AssignError, ConsumerInput, ConsumerMember, ConsumerTarget, PartitionSet};

/// Fails if a topic has no subscriber.
pub fn assign(input: &ConsumerInput) -> Result<ConsumerTarget, AssignError> {
    let Some(first) = input.members.first() else {
        return Ok(ConsumerTarget::new());
    };
    let mut plan = Plan::new(input);
    let all_alike = input.members.iter().all(|member| member.subscribed == first.subscribed)
        && input.topics.keys().all(|topic| first.subscribed.contains(topic));
    if all_alike {
        plan.keep_up_to_quota();
        plan.fill_quotas()?;
    } else {
        plan.keep_all();
        plan.place_where_least()?;
        plan.balance();
    }
    let ids = input.members.iter().map(|member| member.member_id.clone());
    Ok(ids.zip(plan.assigned).collect())
}

struct Plan<'a> {
    members: &'a [ConsumerMember],
    topics: &'a BTreeMap<Uuid, i32>,
    /// In the order of the members.
    assigned: Vec<PartitionSet>,
    loads: Vec<usize>,
    free: PartitionSet,
}

impl<'a> Plan<'a> {
    fn new(input: &'a ConsumerInput) -> Self {
        let all = |partitions: &i32| (0..*partitions).collect::<BTreeSet<_>>();
        Plan {
            members: &input.members,
            topics: &input.topics,
            assigned: vec![PartitionSet::new(); input.members.len()],
            loads: vec![0; input.members.len()],
            free: input.topics.iter().map(|(topic, partitions)| (*topic, all(partitions))).collect(),
        }
    }

    /// What the member had and may still have. A partition that two members claim is the first one's.
    fn claims(&self, member: usize) -> Vec<(Uuid, i32)> {
        let of = &self.members[member];
        let topics = of.assigned.iter().filter(|(topic, _)| of.subscribed.contains(*topic));
        let claims = topics.flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)));
        claims.filter(|(topic, p)| self.free.get(topic).is_some_and(|free| free.contains(p))).collect()
    }

    fn give(&mut self, member: usize, topic: Uuid, partition: i32) {
        if let Some(free) = self.free.get_mut(&topic) {
            free.remove(&partition);
        }
        self.assigned[member].entry(topic).or_default().insert(partition);
        self.loads[member] += 1;
    }

    /// Least number of partitions of a member, and how many members have one more.
    fn quota(&self) -> (usize, usize) {
        let all: usize = self.topics.values().map(|partitions| usize::try_from(*partitions).unwrap_or(0)).sum();
        (all / self.members.len(), all % self.members.len())
    }

    fn keep_up_to_quota(&mut self) {
        let (quota, mut extra) = self.quota();
        for member in 0..self.members.len() {
            let claims = self.claims(member);
            // One more for those that have it already, as long as there are some.
            let keeps_extra = claims.len() > quota && extra > 0;
            extra -= usize::from(keeps_extra);
            for (topic, partition) in claims.into_iter().take(quota + usize::from(keeps_extra)) {
                self.give(member, topic, partition);
            }
        }
    }

    fn fill_quotas(&mut self) -> Result<(), AssignError> {
        let (quota, extra) = self.quota();
        let mut extra = extra - self.loads.iter().filter(|load| **load > quota).count();
        let free = std::mem::take(&mut self.free);
        let mut free = free.iter().flat_map(|(topic, partitions)| partitions.iter().map(|p| (*topic, *p)));
        for member in 0..self.members.len() {
            let gets_extra = self.loads[member] <= quota && extra > 0;
            extra -= usize::from(gets_extra);
            let missing = (quota + usize::from(gets_extra)).saturating_sub(self.loads[member]);
            for (topic, partition) in free.by_ref().take(missing) {
                self.give(member, topic, partition);
            }
        }
        free.next().map_or(Ok(()), |(topic, partition)| Err(nowhere(topic, partition)))
    }

    fn keep_all(&mut self) {
        for member in 0..self.members.len() {
            for (topic, partition) in self.claims(member) {
                self.give(member, topic, partition);
            }
        }
    }

    fn subscribers(&self, topic: &Uuid) -> Vec<usize> {
        (0..self.members.len()).filter(|&member| self.members[member].subscribed.contains(topic)).collect()
    }

    /// Topics that few may have go first, since the others can make up for it.
    fn place_where_least(&mut self) -> Result<(), AssignError> {
        let free = std::mem::take(&mut self.free);
        let free = free.into_iter().filter(|(_, partitions)| !partitions.is_empty());
        let mut topics: Vec<_> = free.map(|(topic, free)| (self.subscribers(&topic), topic, free)).collect();
        topics.sort_by_key(|(subscribers, topic, _)| (subscribers.len(), *topic));
        for (subscribers, topic, partitions) in topics {
            let mut by_load: BTreeSet<_> = subscribers.iter().map(|&member| (self.loads[member], member)).collect();
            for partition in partitions {
                let Some((load, member)) = by_load.pop_first() else {
                    return Err(nowhere(topic, partition));
                };
                self.give(member, topic, partition);
                by_load.insert((load + 1, member));
            }
        }
        Ok(())
    }

    /// Moves partitions to members that have at least two less, until there are none. Ends, since each move makes the
    /// loads more even.
    fn balance(&mut self) {
        let topics: Vec<_> = self.topics.keys().map(|topic| (*topic, self.subscribers(topic))).collect();
        loop {
            let mut moved = false;
            for (topic, subscribers) in &topics {
                moved |= self.balance_topic(*topic, subscribers);
            }
            if !moved {
                return;
            }
        }
    }

    fn balance_topic(&mut self, topic: Uuid, subscribers: &[usize]) -> bool {
        let with_load = |plan: &Plan<'_>, member: usize| (plan.loads[member], member);
        let mut takers: BTreeSet<_> = subscribers.iter().map(|&member| with_load(self, member)).collect();
        let has_some = |member: &usize| self.assigned[*member].contains_key(&topic);
        let mut givers: BTreeSet<_> =
            subscribers.iter().copied().filter(has_some).map(|member| with_load(self, member)).collect();
        let mut moved = false;
        while let (Some(&(least, taker)), Some(&(most, giver))) = (takers.first(), givers.last()) {
            if most < least + 2 {
                break;
            }
            let Some(partition) = self.take_last(giver, topic) else { break };
            takers.remove(&(most, giver));
            givers.remove(&(most, giver));
            takers.remove(&(least, taker));
            givers.remove(&(least, taker));
            self.give(taker, topic, partition);
            for member in [giver, taker] {
                takers.insert(with_load(self, member));
                if self.assigned[member].contains_key(&topic) {
                    givers.insert(with_load(self, member));
                }
            }
            moved = true;
        }
        moved
    }

    fn take_last(&mut self, member: usize, topic: Uuid) -> Option<i32> {
        let partitions = self.assigned[member].get_mut(&topic)?;
        let partition = partitions.pop_last()?;
        if partitions.is_empty() {
            self.assigned[member].remove(&topic);
        }
        self.loads[member] -= 1;
        Some(partition)
    }
}

fn nowhere(topic: Uuid, partition: i32) -> AssignError {
    AssignError(format!("No member subscribes to topic {topic}, of which partition {partition} was to be assigned."))
}
