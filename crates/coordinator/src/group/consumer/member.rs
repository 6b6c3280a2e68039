//! A member: what it asked for, and what it has (C K-2).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wire::messages::consumer_group_current_member_assignment_value as current_value;
use wire::messages::consumer_group_current_member_assignment_value::ConsumerGroupCurrentMemberAssignmentValue;
use wire::messages::consumer_group_member_metadata_value::{
    ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMemberMetadataValue,
};
use wire::{KStr, Uuid};

/// Epoch of a static member that is away and will come back (C K-30).
pub(crate) const AWAY_EPOCH: i32 = -2;
/// Epoch that a member leaves with.
pub(crate) const LEAVE_EPOCH: i32 = -1;

/// Partitions with the epoch at which each was assigned, by topic id. A topic without partitions is not kept.
pub(crate) type Holdings = BTreeMap<Uuid, BTreeMap<i32, i32>>;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Member {
    pub id: KStr,
    pub wants: Wants,
    pub has: Has,
}

/// What the member asked for: its metadata record (type 5).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wants {
    pub instance_id: Option<KStr>,
    pub rack_id: Option<KStr>,
    pub client_id: KStr,
    pub client_host: KStr,
    pub rebalance_timeout_ms: i32,
    pub names: BTreeSet<KStr>,
    /// Empty: none.
    pub regex: KStr,
    pub assignor: Option<KStr>,
    /// Set while the member speaks the classic protocol.
    pub classic: Option<Classic>,
}

/// A member that speaks the classic protocol (C section 12).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Classic {
    pub session_timeout_ms: i32,
    /// Name and metadata, in the member's order of preference.
    pub protocols: Vec<(KStr, Bytes)>,
}

/// Where the member is on its way to its target: its assignment record (type 8).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Has {
    pub epoch: i32,
    pub previous_epoch: i32,
    pub progress: Progress,
    pub assigned: Holdings,
    pub pending_revocation: Holdings,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    #[default]
    Stable,
    /// Has to give up partitions before it may go on.
    UnrevokedPartitions,
    /// Waits for partitions that others hold.
    UnreleasedPartitions,
    /// Written by a broker that knows more states.
    Unknown,
}

impl Progress {
    fn code(self) -> i8 {
        match self {
            Progress::Stable => 0,
            Progress::UnrevokedPartitions => 1,
            Progress::UnreleasedPartitions => 2,
            Progress::Unknown => 127,
        }
    }

    fn of(code: i8) -> Self {
        match code {
            0 => Progress::Stable,
            1 => Progress::UnrevokedPartitions,
            2 => Progress::UnreleasedPartitions,
            _ => Progress::Unknown,
        }
    }
}

impl Member {
    pub fn is_classic(&self) -> bool {
        self.wants.classic.is_some()
    }

    pub fn session_timeout_ms(&self, of_group_ms: i32) -> i32 {
        self.wants.classic.as_ref().map_or(of_group_ms, |classic| classic.session_timeout_ms)
    }
}

impl Has {
    /// Whether it has arrived at the target of that epoch (C K-20).
    pub fn is_reconciled_to(&self, target_epoch: i32) -> bool {
        self.progress == Progress::Stable && self.epoch == target_epoch
    }

    /// All partitions that nobody else may have: assigned ones and those not given up yet.
    pub fn held(&self) -> impl Iterator<Item = (Uuid, i32)> {
        self.assigned
            .iter()
            .chain(&self.pending_revocation)
            .flat_map(|(topic, partitions)| partitions.keys().map(|partition| (*topic, *partition)))
    }

    /// The epoch at which a held partition was assigned.
    pub fn assigned_at(&self, topic: &Uuid, partition: i32) -> Option<i32> {
        let find = |held: &Holdings| held.get(topic).and_then(|p| p.get(&partition)).copied();
        find(&self.assigned).or_else(|| find(&self.pending_revocation))
    }
}

/// Whether two holdings are the same partitions, whatever their epochs.
pub(crate) fn same_partitions(a: &Holdings, b: &Holdings) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && x.1.keys().eq(y.1.keys()))
}

impl Wants {
    /// Whether the subscription, of which the target is made, is another one.
    pub fn subscribes_differently(&self, other: &Wants) -> bool {
        self.names != other.names || self.regex != other.regex
    }

    pub fn to_value(&self) -> ConsumerGroupMemberMetadataValue {
        ConsumerGroupMemberMetadataValue {
            instance_id: self.instance_id.clone(),
            rack_id: self.rack_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            subscribed_topic_names: self.names.iter().cloned().collect(),
            subscribed_topic_regex: Some(self.regex.clone()),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            server_assignor: self.assignor.clone(),
            classic_member_metadata: self.classic.as_ref().map(|classic| ClassicMemberMetadata {
                session_timeout_ms: classic.session_timeout_ms,
                supported_protocols: classic
                    .protocols
                    .iter()
                    .map(|(name, metadata)| ClassicProtocol { name: name.clone(), metadata: metadata.clone() })
                    .collect(),
            }),
        }
    }

    /// In memory of its own.
    pub fn of_value(value: &ConsumerGroupMemberMetadataValue) -> Self {
        let own = KStr::to_owned_detached;
        Wants {
            instance_id: value.instance_id.as_ref().map(own),
            rack_id: value.rack_id.as_ref().map(own),
            client_id: own(&value.client_id),
            client_host: own(&value.client_host),
            rebalance_timeout_ms: value.rebalance_timeout_ms,
            names: value.subscribed_topic_names.iter().map(own).collect(),
            regex: value.subscribed_topic_regex.as_ref().map(own).unwrap_or_default(),
            assignor: value.server_assignor.as_ref().map(own),
            // A record without the field reads as one without protocols: nobody speaks the classic protocol that way.
            classic: value.classic_member_metadata.as_ref().filter(|c| !c.supported_protocols.is_empty()).map(
                |classic| Classic {
                    session_timeout_ms: classic.session_timeout_ms,
                    protocols: classic
                        .supported_protocols
                        .iter()
                        .map(|protocol| (own(&protocol.name), Bytes::copy_from_slice(&protocol.metadata)))
                        .collect(),
                },
            ),
        }
    }
}

impl Has {
    pub fn to_value(&self) -> ConsumerGroupCurrentMemberAssignmentValue {
        ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: self.epoch,
            previous_member_epoch: self.previous_epoch,
            state: self.progress.code(),
            assigned_partitions: holdings_value(&self.assigned),
            partitions_pending_revocation: holdings_value(&self.pending_revocation),
        }
    }

    pub fn of_value(value: &ConsumerGroupCurrentMemberAssignmentValue) -> Self {
        Has {
            epoch: value.member_epoch,
            previous_epoch: value.previous_member_epoch,
            progress: Progress::of(value.state),
            assigned: holdings_of(&value.assigned_partitions, value.member_epoch),
            pending_revocation: holdings_of(&value.partitions_pending_revocation, value.member_epoch),
        }
    }
}

fn holdings_value(holdings: &Holdings) -> Vec<current_value::TopicPartitions> {
    let topics = holdings.iter().map(|(topic_id, partitions)| current_value::TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
    });
    topics.collect()
}

/// Records of brokers before 4.4 have no epochs of their own: the member's counts.
fn holdings_of(topics: &[current_value::TopicPartitions], member_epoch: i32) -> Holdings {
    let mut holdings = Holdings::new();
    for topic in topics.iter().filter(|topic| !topic.partitions.is_empty()) {
        let epochs = topic.assignment_epochs.as_deref().unwrap_or_default();
        let partitions = topic.partitions.iter().enumerate();
        let partitions = partitions.map(|(i, partition)| (*partition, epochs.get(i).copied().unwrap_or(member_epoch)));
        holdings.entry(topic.topic_id).or_default().extend(partitions);
    }
    holdings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has() -> Has {
        Has {
            epoch: 5,
            previous_epoch: 4,
            progress: Progress::UnrevokedPartitions,
            assigned: Holdings::from([(Uuid::from_u128(1), BTreeMap::from([(0, 3), (2, 5)]))]),
            pending_revocation: Holdings::from([(Uuid::from_u128(2), BTreeMap::from([(1, 4)]))]),
        }
    }

    #[test]
    fn an_assignment_survives_its_record() {
        assert_eq!(Has::of_value(&has().to_value()), has());
    }

    #[test]
    fn a_record_without_assignment_epochs_reads_as_assigned_at_the_members_epoch() {
        let mut value = has().to_value();
        for topic in &mut value.assigned_partitions {
            topic.assignment_epochs = None;
        }
        let read = Has::of_value(&value);
        assert_eq!(read.assigned[&Uuid::from_u128(1)], BTreeMap::from([(0, 5), (2, 5)]));
        assert_eq!(read.assigned_at(&Uuid::from_u128(2), 1), Some(4));
    }

    #[test]
    fn metadata_survives_its_record() {
        let wants = Wants {
            instance_id: Some(KStr::from("i1")),
            client_id: KStr::from("client"),
            rebalance_timeout_ms: 30_000,
            names: BTreeSet::from([KStr::from("b"), KStr::from("a")]),
            regex: KStr::from("x.*"),
            classic: Some(Classic {
                session_timeout_ms: 10_000,
                protocols: vec![(KStr::from("range"), Bytes::from_static(b"m"))],
            }),
            ..Wants::default()
        };
        let value = wants.to_value();
        assert_eq!(value.subscribed_topic_names, ["a", "b"]);
        assert_eq!(Wants::of_value(&value), wants);
    }

    #[test]
    fn the_same_partitions_may_have_other_epochs() {
        let mut other = has();
        other.assigned.get_mut(&Uuid::from_u128(1)).expect("it is there").insert(2, 9);
        assert!(same_partitions(&has().assigned, &other.assigned));
        other.assigned.get_mut(&Uuid::from_u128(1)).expect("it is there").insert(3, 9);
        assert!(!same_partitions(&has().assigned, &other.assigned));
    }
}
