//! What committing and fetching offsets asks of a consumer group (C O-6, O-7, X-5, F-5, D-8).

use wire::{ErrorCode, KStr, Uuid};

use super::Group;
use super::member::Member;
use crate::group::{Admission, OffsetClient};

/// First version of OffsetCommit that members of the consumer protocol may use.
const OFFSET_COMMIT_WITH_EPOCH: i16 = 9;

impl Group {
    pub(crate) fn admit_commit(&self, client: &OffsetClient<'_>) -> Result<Admission, ErrorCode> {
        let member_id = client.member_id.map_or("", KStr::as_str);
        // Tools may commit for a group that nobody is in.
        if client.epoch < 0 && self.members.is_empty() {
            return Ok(Admission::All);
        }
        // Producers that do not know of the group's members.
        if client.transactional && client.epoch < 0 && member_id.is_empty() && client.instance_id.is_none() {
            return Ok(Admission::All);
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        if !client.transactional && !member.is_classic() && client.api_version < OFFSET_COMMIT_WITH_EPOCH {
            return Err(ErrorCode::UnsupportedVersion);
        }
        match client.epoch.cmp(&member.has.epoch) {
            std::cmp::Ordering::Equal => Ok(Admission::All),
            std::cmp::Ordering::Greater => Err(stale(member)),
            std::cmp::Ordering::Less => Ok(Admission::OwnedSince(stale(member))),
        }
    }

    /// C O-7.
    pub(crate) fn may_commit(&self, client: &OffsetClient<'_>, topic_id: &Uuid, partition: i32) -> bool {
        let member = client.member_id.and_then(|id| self.members.get(id));
        let assigned_at = member.and_then(|member| member.has.assigned_at(topic_id, partition));
        assigned_at.is_some_and(|epoch| epoch <= client.epoch)
    }

    pub(crate) fn admit_fetch(&self, client: &OffsetClient<'_>) -> Result<(), ErrorCode> {
        let Some(member_id) = client.member_id else {
            // A null id with an epoch is nonsense; Kafka fails on it.
            return if client.epoch < 0 { Ok(()) } else { Err(ErrorCode::UnknownServerError) };
        };
        let member = self.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        if client.epoch == member.has.epoch { Ok(()) } else { Err(stale(member)) }
    }

    pub(crate) fn is_subscribed(&self, topic: &str) -> bool {
        let mut resolved = self.counts.regexes().filter_map(|regex| self.regexes.get(regex));
        self.counts.by_name(topic) || resolved.any(|resolved| resolved.topics.contains(topic))
    }
}

/// The word for it in the protocol that the member speaks.
fn stale(member: &Member) -> ErrorCode {
    if member.is_classic() { ErrorCode::IllegalGeneration } else { ErrorCode::StaleMemberEpoch }
}
