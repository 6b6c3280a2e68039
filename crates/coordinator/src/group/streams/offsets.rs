//! Who may commit and fetch offsets of a streams group (S 9.5).

use wire::ErrorCode;

use super::Group;
use crate::group::{Admission, OffsetClient};

/// First version of OffsetCommit that streams members may use (S 9.5.4).
const FIRST_COMMIT_VERSION: i16 = 9;
/// First version of TxnOffsetCommit that knows STALE_MEMBER_EPOCH.
const FIRST_TXN_VERSION_WITH_STALE_EPOCH: i16 = 6;

pub(super) fn admit_commit(group: &Group, client: &OffsetClient<'_>) -> Result<Admission, ErrorCode> {
    // Tools, while nobody is in the group.
    if client.epoch < 0 && group.members.is_empty() {
        return Ok(Admission::All);
    }
    let member_id = client.member_id.map_or("", |id| id.as_str());
    // Producers that do not pass on the group's metadata.
    if client.transactional && member_id.is_empty() && client.epoch == -1 && client.instance_id.is_none() {
        return Ok(Admission::All);
    }
    let member = group.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
    if !client.transactional && client.api_version < FIRST_COMMIT_VERSION {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let stale = if client.transactional && client.api_version < FIRST_TXN_VERSION_WITH_STALE_EPOCH {
        ErrorCode::IllegalGeneration
    } else {
        ErrorCode::StaleMemberEpoch
    };
    match client.epoch.cmp(&member.epoch) {
        std::cmp::Ordering::Equal => Ok(Admission::All),
        std::cmp::Ordering::Greater => Err(stale),
        std::cmp::Ordering::Less => Ok(Admission::OwnedSince(stale)),
    }
}

/// S 9.5.7: the task that reads the partition is the member's, or is being given up, and was assigned by then.
pub(super) fn may_commit(group: &Group, client: &OffsetClient<'_>, topic: &str, partition: i32) -> bool {
    let member = client.member_id.and_then(|id| group.members.get(id));
    let topology = group.topology.as_ref();
    let (Some(member), Some(topology)) = (member, topology) else { return false };
    let since = |subtopology: &str| {
        let tasks = [&member.assigned, &member.pending];
        tasks.into_iter().find_map(|tasks| tasks.active_epoch(subtopology, partition))
    };
    let owned = |subtopology: &str| since(subtopology).is_some_and(|epoch| client.epoch >= epoch);
    match topology.reader(topic) {
        Some(subtopology) => owned(subtopology),
        // Decision 25: what a pattern matches is read by its subtopology.
        None => topology.pattern_readers(topic).any(owned),
    }
}

pub(super) fn admit_fetch(group: &Group, client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
    let Some(member_id) = client.member_id else {
        return if client.epoch < 0 { Ok(()) } else { Err(ErrorCode::UnknownServerError) };
    };
    let member = group.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
    if member.epoch == client.epoch { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
}

/// A source or repartition source topic, while the group has members (S 9.4.3, 9.5).
pub(super) fn is_subscribed(group: &Group, topic: &str) -> bool {
    !group.members.is_empty()
        && group.topology.as_ref().is_some_and(|topology| {
            topology.reader(topic).is_some() || topology.pattern_readers(topic).next().is_some()
        })
}
