//! What every assignment of partitions has to obey, on random groups (C K-36 to K-39).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coordinator::assign::{ConsumerInput, ConsumerMember, ConsumerTarget, PartitionSet, range, uniform};
use proptest::prelude::*;
use wire::{KStr, Uuid};

fn topic(number: usize) -> Uuid {
    Uuid::from_u128(number as u128 + 1)
}

fn member(number: usize, subscribed: BTreeSet<Uuid>) -> ConsumerMember {
    ConsumerMember {
        member_id: KStr::from(format!("m{number:03}")),
        instance_id: (number.is_multiple_of(3)).then(|| KStr::from(format!("i{:03}", 999 - number))),
        subscribed: Arc::new(subscribed),
        ..ConsumerMember::default()
    }
}

/// Topics by their numbers of partitions, members by what they subscribe to (all of them if `alike`).
fn groups(alike: bool) -> impl Strategy<Value = ConsumerInput> {
    let topics = prop::collection::vec(1..20i32, 1..6);
    let members = prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 1..12);
    (topics, members).prop_map(move |(topics, members)| {
        let subscribed = |wanted: &[bool]| -> BTreeSet<Uuid> {
            (0..topics.len()).filter(|&number| alike || wanted[number]).map(topic).collect()
        };
        let members: Vec<_> =
            members.iter().enumerate().map(|(number, wanted)| member(number, subscribed(wanted))).collect();
        let counts = topics.iter().enumerate().map(|(number, partitions)| (topic(number), *partitions));
        let read = |id: &Uuid| members.iter().any(|member| member.subscribed.contains(id));
        let topics = counts.filter(|(id, _)| read(id)).collect();
        ConsumerInput { members, topics }
    })
}

/// The group after the target was taken over.
fn settled(input: &ConsumerInput, target: &ConsumerTarget) -> ConsumerInput {
    let mut input = input.clone();
    for member in &mut input.members {
        member.assigned = Arc::new(target.get(&member.member_id).cloned().unwrap_or_default());
    }
    input
}

/// A group with some history: what a random part of it was assigned before topics changed.
fn with_history(alike: bool) -> impl Strategy<Value = ConsumerInput> {
    (groups(alike), any::<u16>(), 0..8i32).prop_map(|(input, stayed, shrunk)| {
        let mut before = input.clone();
        let mut number = 0;
        before.members.retain(|_| {
            number += 1;
            stayed >> (number % 16) & 1 == 0
        });
        let members = before.members.clone();
        before.topics.retain(|id, _| members.iter().any(|member| member.subscribed.contains(id)));
        before.topics.values_mut().for_each(|partitions| *partitions += shrunk);
        let target = uniform::assign(&before).expect("everything has a subscriber");
        settled(&input, &target)
    })
}

fn loads(target: &ConsumerTarget) -> BTreeMap<KStr, usize> {
    let count = |partitions: &PartitionSet| partitions.values().map(BTreeSet::len).sum();
    target.iter().map(|(id, partitions)| (id.clone(), count(partitions))).collect()
}

fn owners(target: &ConsumerTarget) -> BTreeMap<(Uuid, i32), KStr> {
    let mut owners = BTreeMap::new();
    for (id, topics) in target {
        for (topic, partitions) in topics {
            for partition in partitions {
                assert_eq!(owners.insert((*topic, *partition), id.clone()), None, "assigned twice");
            }
        }
    }
    owners
}

/// Every partition has one owner that subscribes to it, every member an entry.
fn check_complete(input: &ConsumerInput, target: &ConsumerTarget) {
    let members: BTreeMap<_, _> = input.members.iter().map(|member| (&member.member_id, member)).collect();
    assert!(target.keys().eq(members.keys().copied()));
    let owners = owners(target);
    let all: usize = input.topics.values().map(|partitions| *partitions as usize).sum();
    assert_eq!(owners.len(), all);
    for ((topic, partition), id) in &owners {
        assert!(members[id].subscribed.contains(topic), "{id} does not read {topic}");
        assert!((0..input.topics[topic]).contains(partition));
    }
}

/// Nobody has two more than another one that could have one of them.
fn check_balance(input: &ConsumerInput, target: &ConsumerTarget) {
    let loads = loads(target);
    for giver in &input.members {
        for topic in target[&giver.member_id].keys() {
            for taker in input.members.iter().filter(|member| member.subscribed.contains(topic)) {
                let (most, least) = (loads[&giver.member_id], loads[&taker.member_id]);
                assert!(most <= least + 1, "{} has {most}, {} {least}", giver.member_id, taker.member_id);
            }
        }
    }
}

fn moved(before: &ConsumerTarget, after: &ConsumerTarget) -> Vec<(Uuid, i32)> {
    let after = owners(after);
    owners(before)
        .into_iter()
        .filter(|(key, id)| after.get(key).is_some_and(|now| now != id))
        .map(|(key, _)| key)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn k_37_uniform_is_complete_and_even_when_all_subscribe_alike(input in with_history(true)) {
        let target = uniform::assign(&input).expect("everything has a subscriber");
        check_complete(&input, &target);
        let loads = loads(&target);
        let (least, most) = (loads.values().min().copied(), loads.values().max().copied());
        prop_assert!(most.unwrap_or(0) - least.unwrap_or(0) <= 1);
    }

    #[test]
    fn k_38_uniform_is_complete_and_as_even_as_subscriptions_allow(input in with_history(false)) {
        let target = uniform::assign(&input).expect("everything has a subscriber");
        check_complete(&input, &target);
        check_balance(&input, &target);
    }

    #[test]
    fn uniform_leaves_a_balanced_group_alone(alike in any::<bool>(), input in with_history(false), same in with_history(true)) {
        let input = if alike { same } else { input };
        let target = uniform::assign(&input).expect("everything has a subscriber");
        prop_assert_eq!(uniform::assign(&settled(&input, &target)).expect("as before"), target);
    }

    #[test]
    fn k_37_a_newcomer_gets_its_share_and_nothing_moves_among_the_others(input in groups(true)) {
        let before = uniform::assign(&input).expect("everything has a subscriber");
        let mut grown = settled(&input, &before);
        grown.members.push(member(900, grown.members[0].subscribed.as_ref().clone()));
        let after = uniform::assign(&grown).expect("everything has a subscriber");
        let newcomer = KStr::from("m900");
        let share: usize = after[&newcomer].values().map(BTreeSet::len).sum();
        prop_assert_eq!(moved(&before, &after).len(), share);
    }

    #[test]
    fn k_37_who_stays_keeps_everything_when_another_leaves(input in groups(true), leaves in any::<prop::sample::Index>()) {
        let before = uniform::assign(&input).expect("everything has a subscriber");
        let mut left = settled(&input, &before);
        let gone = left.members.remove(leaves.index(left.members.len())).member_id;
        if left.members.is_empty() {
            return Ok(());
        }
        let after = uniform::assign(&left).expect("everything has a subscriber");
        for (key, id) in owners(&before).into_iter().filter(|(_, id)| *id != gone) {
            prop_assert_eq!(&owners(&after)[&key], &id);
        }
    }

    #[test]
    fn k_36_range_is_contiguous_in_the_order_of_the_members(input in with_history(false)) {
        let target = range::assign(&input).expect("it never fails");
        check_complete(&input, &target);
        for (topic, partitions) in &input.topics {
            let mut readers: Vec<_> = input.members.iter().filter(|member| member.subscribed.contains(topic)).collect();
            readers.sort_by_key(|member| (member.instance_id.is_none(), member.instance_id.clone(), member.member_id.clone()));
            let (quota, extra) = (*partitions as usize / readers.len(), *partitions as usize % readers.len());
            let mut next = 0;
            for (place, reader) in readers.iter().enumerate() {
                let size = quota + usize::from(place < extra);
                let expected: BTreeSet<i32> = (next..next + size as i32).collect();
                next += size as i32;
                let has = target[&reader.member_id].get(topic).cloned().unwrap_or_default();
                prop_assert_eq!(has, expected);
            }
        }
    }

    #[test]
    fn decision_19_the_same_input_has_the_same_output(input in with_history(false)) {
        prop_assert_eq!(uniform::assign(&input), uniform::assign(&input.clone()));
        prop_assert_eq!(range::assign(&input), range::assign(&input.clone()));
    }
}

/// Seen in Kafka 4.4: the first member keeps the lower half.
#[test]
fn k_39_two_members_and_four_partitions() {
    let subscribed = BTreeSet::from([topic(0)]);
    let mut first = member(1, subscribed.clone());
    first.assigned = Arc::new(PartitionSet::from([(topic(0), BTreeSet::from([0, 1, 2, 3]))]));
    let input = ConsumerInput { members: vec![first, member(2, subscribed)], topics: [(topic(0), 4)].into() };
    let target = uniform::assign(&input).expect("it has subscribers");
    assert_eq!(target["m001"][&topic(0)], BTreeSet::from([0, 1]));
    assert_eq!(target["m002"][&topic(0)], BTreeSet::from([2, 3]));
}

#[test]
fn k_37_a_topic_that_nobody_reads_cannot_be_placed() {
    let input = ConsumerInput { members: vec![member(1, BTreeSet::new())], topics: [(topic(0), 1)].into() };
    assert!(uniform::assign(&input).is_err());
    assert!(range::assign(&input).expect("it never fails")["m001"].is_empty());
}

#[test]
fn a_partition_that_two_members_claim_goes_to_one_of_them() {
    let subscribed = BTreeSet::from([topic(0)]);
    let claims = Arc::new(PartitionSet::from([(topic(0), BTreeSet::from([0, 1]))]));
    let mut members = vec![member(1, subscribed.clone()), member(2, subscribed)];
    members.iter_mut().for_each(|member| member.assigned = Arc::clone(&claims));
    let input = ConsumerInput { members, topics: [(topic(0), 2)].into() };
    check_complete(&input, &uniform::assign(&input).expect("it has subscribers"));
}
