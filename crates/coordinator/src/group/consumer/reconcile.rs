//! One step of a member towards its target (C K-20 to K-26). Pure: the heartbeat and the classic join decide what to
//! do about it.

use std::collections::BTreeSet;

use wire::Uuid;

use super::member::{Has, Holdings, Progress};
use crate::assign::PartitionSet;

/// What a step depends on.
pub(super) struct Step<'a> {
    pub has: &'a Has,
    pub target_epoch: i32,
    pub target: &'a PartitionSet,
    /// Ids of the existing topics that the member subscribes to.
    pub subscribed: &'a BTreeSet<Uuid>,
    /// It subscribes to no topic at all, not even to one that does not exist.
    pub idle: bool,
    /// The subscription is another one since the last step (C K-26).
    pub subscription_changed: bool,
    /// What the member says that it owns; `None` if it does not say.
    pub owned: Option<&'a PartitionSet>,
    /// Whether another member holds a partition, or has not given it up yet.
    pub held_by_other: &'a dyn Fn(&Uuid, i32) -> bool,
}

impl Step<'_> {
    /// What the member has afterwards; `None` if nothing changes.
    pub fn take(&self) -> Option<Has> {
        let next = match self.has.progress {
            Progress::Stable if self.has.epoch != self.target_epoch => self.advance(),
            Progress::Stable if self.subscription_changed => self.shrink(),
            Progress::Stable => return None,
            Progress::UnrevokedPartitions if !self.may_own(&self.has.pending_revocation) => self.advance(),
            Progress::UnrevokedPartitions if self.subscription_changed => self.shrink(),
            Progress::UnrevokedPartitions => return None,
            Progress::UnreleasedPartitions | Progress::Unknown => self.advance(),
        };
        (next != *self.has).then_some(next)
    }

    /// C K-24: what a member does not speak of it may still own.
    fn may_own(&self, holdings: &Holdings) -> bool {
        let Some(owned) = self.owned else { return true };
        holdings.iter().any(|(topic, partitions)| {
            owned.get(topic).is_some_and(|owned| partitions.keys().any(|p| owned.contains(p)))
        })
    }

    /// C K-21 to K-23.
    fn advance(&self) -> Has {
        let mut keep = Holdings::new();
        let mut revoke = Holdings::new();
        for (topic, partitions) in &self.has.assigned {
            let target = self.target_of(topic);
            for (&partition, &epoch) in partitions {
                let kept = target.is_some_and(|target| target.contains(&partition));
                let side = if kept { &mut keep } else { &mut revoke };
                side.entry(*topic).or_default().insert(partition, epoch);
            }
        }
        if !revoke.is_empty() && self.may_own(&revoke) {
            return Has {
                epoch: self.has.epoch,
                previous_epoch: self.has.epoch,
                progress: Progress::UnrevokedPartitions,
                assigned: keep,
                pending_revocation: revoke,
            };
        }
        let waits = self.add_free(&mut keep);
        Has {
            epoch: self.target_epoch,
            previous_epoch: self.has.epoch,
            progress: if waits { Progress::UnreleasedPartitions } else { Progress::Stable },
            assigned: keep,
            pending_revocation: Holdings::new(),
        }
    }

    /// Adds what nobody else holds. True if something is left to wait for.
    fn add_free(&self, assigned: &mut Holdings) -> bool {
        let mut waits = false;
        for topic in self.target.keys() {
            for &partition in self.target_of(topic).into_iter().flatten() {
                if assigned.get(topic).is_some_and(|has| has.contains_key(&partition)) {
                    continue;
                }
                if (self.held_by_other)(topic, partition) {
                    waits = true;
                } else {
                    assigned.entry(*topic).or_default().insert(partition, self.target_epoch);
                }
            }
        }
        waits
    }

    /// The target counts as empty for topics that the member does not subscribe to any longer.
    fn target_of(&self, topic: &Uuid) -> Option<&BTreeSet<i32>> {
        if self.subscribed.contains(topic) { self.target.get(topic) } else { None }
    }

    /// There is no new target yet, but topics that were dropped go at once (C K-26).
    fn shrink(&self) -> Has {
        let mut assigned = self.has.assigned.clone();
        let mut pending = self.has.pending_revocation.clone();
        assigned.retain(|topic, partitions| {
            let kept = self.subscribed.contains(topic);
            if !kept {
                pending.entry(*topic).or_default().append(partitions);
            }
            kept
        });
        // Kafka writes the step of a member that subscribes to nothing even if nothing was taken from it.
        let writes_anyway = self.idle && self.has.pending_revocation.is_empty();
        if assigned.len() == self.has.assigned.len() && !writes_anyway {
            return self.has.clone();
        }
        let mut next = Has { previous_epoch: self.has.epoch, assigned, ..self.has.clone() };
        if !pending.is_empty() && self.may_own(&pending) {
            next.progress = Progress::UnrevokedPartitions;
            next.pending_revocation = pending;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);

    fn set(topics: &[(Uuid, &[i32])]) -> PartitionSet {
        topics.iter().map(|(topic, partitions)| (*topic, partitions.iter().copied().collect())).collect()
    }

    fn held(topics: &[(Uuid, &[(i32, i32)])]) -> Holdings {
        topics.iter().map(|(topic, partitions)| (*topic, partitions.iter().copied().collect())).collect()
    }

    struct Case {
        has: Has,
        target: PartitionSet,
        subscribed: BTreeSet<Uuid>,
        changed: bool,
        owned: Option<PartitionSet>,
        others: PartitionSet,
    }

    impl Case {
        /// A stable member at epoch 2 with, whose target is that of epoch 3.
        fn new(target: PartitionSet) -> Self {
            Case {
                has: Has { epoch: 2, assigned: held(&[(A, &[(0, 2), (1, 2), (2, 2), (3, 2)])]), ..Has::default() },
                target,
                subscribed: BTreeSet::from([A, B]),
                changed: false,
                owned: None,
                others: PartitionSet::new(),
            }
        }

        fn step(&self) -> Option<Has> {
            let others = |topic: &Uuid, p| self.others.get(topic).is_some_and(|held| held.contains(&p));
            let step = Step {
                has: &self.has,
                target_epoch: 3,
                target: &self.target,
                subscribed: &self.subscribed,
                idle: self.subscribed.is_empty(),
                subscription_changed: self.changed,
                owned: self.owned.as_ref(),
                held_by_other: &others,
            };
            step.take()
        }
    }

    fn has(epoch: i32, progress: Progress, assigned: Holdings, pending_revocation: Holdings) -> Has {
        Has { epoch, previous_epoch: 2, progress, assigned, pending_revocation }
    }

    #[test]
    fn k_20_a_member_at_its_target_stays() {
        let mut case = Case::new(set(&[(A, &[0])]));
        case.has.epoch = 3;
        assert_eq!(case.step(), None);
    }

    #[test]
    fn k_22_what_has_to_go_is_revoked_first_at_the_old_epoch() {
        let case = Case::new(set(&[(A, &[0, 1]), (B, &[0])]));
        let expected =
            has(2, Progress::UnrevokedPartitions, held(&[(A, &[(0, 2), (1, 2)])]), held(&[(A, &[(2, 2), (3, 2)])]));
        assert_eq!(case.step(), Some(expected));
    }

    #[test]
    fn k_22_a_member_that_does_not_own_it_any_more_goes_on_at_once() {
        let mut case = Case::new(set(&[(A, &[0, 1]), (B, &[0])]));
        case.owned = Some(set(&[(A, &[0, 1])]));
        let expected = has(3, Progress::Stable, held(&[(A, &[(0, 2), (1, 2)]), (B, &[(0, 3)])]), Holdings::new());
        assert_eq!(case.step(), Some(expected));
    }

    #[test]
    fn k_23_a_member_with_nothing_to_do_moves_to_the_target_epoch() {
        let case = Case::new(set(&[(A, &[0, 1, 2, 3])]));
        let assigned = case.has.assigned.clone();
        assert_eq!(case.step(), Some(has(3, Progress::Stable, assigned, Holdings::new())));
    }

    #[test]
    fn k_23_what_others_hold_is_waited_for() {
        let mut case = Case::new(set(&[(A, &[0, 1, 2, 3]), (B, &[0, 1])]));
        case.others = set(&[(B, &[1])]);
        let mut assigned = case.has.assigned.clone();
        assigned.insert(B, BTreeMap::from([(0, 3)]));
        let waiting = has(3, Progress::UnreleasedPartitions, assigned.clone(), Holdings::new());
        assert_eq!(case.step(), Some(waiting.clone()));
        // K-25: nothing changes until it is free, but the previous epoch is that of the last step.
        case.has = waiting;
        let again = case.step().expect("the previous epoch moves");
        assert_eq!((again.epoch, again.previous_epoch, again.progress), (3, 3, Progress::UnreleasedPartitions));
        case.has = again;
        assert_eq!(case.step(), None);
        case.others.clear();
        assigned.insert(B, BTreeMap::from([(0, 3), (1, 3)]));
        let next = case.step().expect("it is free");
        assert_eq!((next.progress, next.assigned), (Progress::Stable, assigned));
    }

    #[test]
    fn k_24_pending_partitions_are_given_up_when_the_member_says_so() {
        let mut case = Case::new(set(&[(A, &[0, 1])]));
        case.has = case.step().expect("partitions have to go");
        for owned in [None, Some(set(&[(A, &[0, 1, 3])]))] {
            case.owned = owned;
            assert_eq!(case.step(), None);
        }
        case.owned = Some(set(&[(A, &[0, 1])]));
        let next = case.step().expect("they are given up");
        assert_eq!((next.epoch, next.progress), (3, Progress::Stable));
        assert!(next.pending_revocation.is_empty());
    }

    #[test]
    fn k_24_a_newer_target_may_ask_for_more() {
        let mut case = Case::new(set(&[(A, &[0, 1])]));
        case.has = case.step().expect("partitions have to go");
        case.target = set(&[(A, &[0])]);
        case.owned = Some(set(&[(A, &[0, 1])]));
        let next = case.step().expect("they are given up");
        let expected = has(2, Progress::UnrevokedPartitions, held(&[(A, &[(0, 2)])]), held(&[(A, &[(1, 2)])]));
        assert_eq!(next, expected);
    }

    #[test]
    fn k_26_dropped_topics_are_revoked_without_a_new_target() {
        let mut case = Case::new(set(&[(A, &[0, 1, 2, 3])]));
        case.has.epoch = 3;
        case.subscribed = BTreeSet::from([B]);
        assert_eq!(case.step(), None);
        case.changed = true;
        let next = case.step().expect("the topic is dropped");
        assert_eq!((next.epoch, next.previous_epoch, next.progress), (3, 3, Progress::UnrevokedPartitions));
        assert!(next.assigned.is_empty());
        assert_eq!(next.pending_revocation[&A].len(), 4);
        // A member that has let go of them already has nothing to confirm.
        case.owned = Some(PartitionSet::new());
        let next = case.step().expect("the topic is dropped");
        assert_eq!((next.epoch, next.progress), (3, Progress::Stable));
        assert!(next.assigned.is_empty() && next.pending_revocation.is_empty());
    }

    #[test]
    fn k_21_the_target_is_empty_for_topics_not_subscribed_to() {
        let mut case = Case::new(set(&[(A, &[0, 1, 2, 3]), (B, &[0])]));
        case.subscribed = BTreeSet::from([A]);
        let next = case.step().expect("a new epoch");
        assert!(!next.assigned.contains_key(&B));
    }
}
