//! Which topics a classic group reads, as far as the broker can tell (C D-9).

use std::collections::BTreeSet;

use wire::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use wire::{Bytes, KStr, Message, Reader};

use super::live::{GroupState, Live};

/// The protocol type whose metadata the broker understands.
pub(super) const CONSUMER: &str = "consumer";

/// The topics of all members of a group of consumers, as of now; `None` if it is of another kind, has no protocol yet,
/// or the metadata of one of them cannot be read.
pub(super) fn of(group: &Live) -> Option<BTreeSet<KStr>> {
    if !is_consumer(group) {
        return None;
    }
    if group.members().is_empty() {
        return Some(BTreeSet::new());
    }
    let protocol = group.protocol.as_ref()?;
    let mut topics = BTreeSet::new();
    for member in group.members().values() {
        for topic in read(&member.metadata(protocol))? {
            if !topics.contains(&topic) {
                topics.insert(topic.to_owned_detached());
            }
        }
    }
    Some(topics)
}

pub(super) fn is_consumer(group: &Live) -> bool {
    group.protocol_type.as_ref().is_some_and(|t| t == CONSUMER)
}

/// Every version of the subscription begins with what version 0 is.
fn read(metadata: &Bytes) -> Option<Vec<KStr>> {
    let mut reader = Reader::new(metadata);
    let version = reader.i16().ok()?;
    if version < ConsumerProtocolSubscription::MIN_VERSION {
        return None;
    }
    let subscription = ConsumerProtocolSubscription::decode(&mut reader, 0).ok()?;
    Some(subscription.topics)
}

/// Whether the group reads the topic. A group of consumers whose topics are not known reads all of them.
pub(super) fn covers(group: &Live, topic: &str) -> bool {
    match &group.subscribed {
        Some(topics) => topics.contains(topic),
        None => is_consumer(group),
    }
}

/// False while no offset of the group expires: it rebalances, or it has members and nobody knows what they read (C E-2).
pub(super) fn expires_offsets(group: &Live) -> bool {
    group.protocol_type.is_none()
        || group.state() == GroupState::Empty
        || (group.state() == GroupState::Stable && group.subscribed.is_some())
}

/// Whether offsets committed at `commit_time_ms` have expired, if any do. A group that has become empty keeps its offsets
/// for the whole retention time from then on (C E-1). Times are of the wall clock.
pub(super) fn offset_expired(group: &Live, commit_time_ms: i64, now_ms: i64, retention_ms: i64) -> bool {
    let emptied = group.protocol_type.is_some() && group.state() == GroupState::Empty;
    let base_ms = if emptied && group.state_since_ms() >= 0 { group.state_since_ms() } else { commit_time_ms };
    now_ms.saturating_sub(base_ms) >= retention_ms
}
