//! The range assignor (C K-36): each topic by itself, contiguous ranges in the order of the members. Not sticky; topics
//! with as many partitions and the same subscribers come out alike, which is what joins of them need.

use wire::Uuid;

use super::{AssignError, ConsumerInput, ConsumerMember, ConsumerTarget, PartitionSet};

/// Never fails.
pub fn assign(input: &ConsumerInput) -> Result<ConsumerTarget, AssignError> {
    let mut members: Vec<&ConsumerMember> = input.members.iter().collect();
    // Static members first, by instance, so that a restart under another member id changes nothing.
    members.sort_by_key(|m| (m.instance_id.is_none(), m.instance_id.as_ref(), &m.member_id));
    let mut target: Vec<PartitionSet> = vec![PartitionSet::new(); members.len()];
    for (topic, &partitions) in &input.topics {
        assign_topic(*topic, partitions, &members, &mut target);
    }
    let ids = members.iter().map(|member| member.member_id.clone());
    Ok(ids.zip(target).collect())
}

fn assign_topic(topic: Uuid, partitions: i32, members: &[&ConsumerMember], target: &mut [PartitionSet]) {
    let subscribers: Vec<usize> =
        (0..members.len()).filter(|&member| members[member].subscribed.contains(&topic)).collect();
    let Ok(count) = i32::try_from(subscribers.len()) else { return };
    if count == 0 {
        return;
    }
    let (quota, extra) = (partitions / count, partitions % count);
    let mut start = 0;
    for (place, member) in (0..).zip(subscribers) {
        let end = start + quota + i32::from(place < extra);
        if start < end {
            target[member].insert(topic, (start..end).collect());
        }
        start = end;
    }
}
