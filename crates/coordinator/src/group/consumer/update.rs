//! What a member that joins or reports changes in its group: the steps that heartbeats and joins of the classic protocol
//! have in common.

use std::borrow::Cow;

use super::fault::Fault;
use super::join::Participant;
use super::member::{Has, Member, Wants};
use super::reconcile::Step;
use super::subscription::{self, Counts};
use super::{Group, records, regexes, soft, target};
use crate::assign::PartitionSet;
use crate::record::Record;
use crate::shard::Ctx;
use wire::KStr;

/// A request of a member; the group and the member as they were before it.
pub(super) struct Update<'a> {
    pub group_id: &'a KStr,
    pub group: &'a Group,
    pub member: &'a Member,
    pub replaces: Option<&'a Member>,
    /// After the request.
    pub wants: Cow<'a, Wants>,
    /// Of the group, after the request.
    pub counts: Cow<'a, Counts>,
}

/// Where the group stands after the member's subscription was taken down.
pub(super) struct Subscribed {
    pub epoch: i32,
    /// The member subscribes to something else than before.
    pub changed: bool,
}

impl<'a> Update<'a> {
    /// `wants`: what the member wants after the request, if that is something else.
    pub fn new(group_id: &'a KStr, group: &'a Group, participant: &'a Participant<'_>, wants: Option<Wants>) -> Self {
        let member = &*participant.member;
        let wants = wants.map_or(Cow::Borrowed(&member.wants), Cow::Owned);
        let is_known = group.members.contains_key(&member.id) || participant.replaces.is_some();
        let counts = if is_known && *wants == member.wants {
            Cow::Borrowed(&group.counts)
        } else {
            Cow::Owned(group.counts.with(is_known.then_some(&member.wants), &wants))
        };
        Update { group_id, group, member, replaces: participant.replaces, wants, counts }
    }

    /// What the member wants is written, and the group's epoch moves if that matters (C K-14, K-15).
    pub fn subscribe(&self, ctx: &mut Ctx<'_, '_>, records: &mut Vec<Record>) -> Result<Subscribed, Fault> {
        let (before, after) = (&self.member.wants, &*self.wants);
        if before != after {
            records.push(records::member(self.group_id, &self.member.id, after));
        }
        let change = regexes::change(self.group, &before.regex, &after.regex)?;
        if let Some(regex) = &change.tombstone {
            records.push(records::regex_tombstone(self.group_id, regex));
        }
        let configured = &ctx.env.config.broker.consumer_assignors;
        let assignor_changed = self.group.counts.assignor(configured) != self.counts.assignor(configured);
        let bump = before.names != after.names || change.bump || assignor_changed;
        let epoch = self.move_epoch(ctx, bump, records);
        Ok(Subscribed { epoch, changed: before.subscribes_differently(after) })
    }

    /// The epoch after the request: a new one if something asks for it, or if topics have changed.
    fn move_epoch(&self, ctx: &mut Ctx<'_, '_>, bump: bool, records: &mut Vec<Record>) -> i32 {
        let soft = soft::entry(ctx.soft, self.group_id);
        if !bump && !soft.metadata_expired(ctx.at) {
            return self.group.epoch;
        }
        soft.metadata_checked(ctx.at);
        let hash = super::metadata_hash(self.counts.topics(&self.group.regexes), ctx.env.topics);
        if !bump && hash == self.group.metadata_hash {
            return self.group.epoch;
        }
        let epoch = self.group.epoch + 1;
        records.push(records::epoch(self.group_id, epoch, hash));
        epoch
    }

    /// What a new target depends on.
    pub fn target(&self, group_epoch: i32) -> target::Change<'_> {
        target::Change {
            group_id: self.group_id,
            group: self.group,
            group_epoch,
            member_id: &self.member.id,
            wants: &self.wants,
            replaces: self.replaces.map(|old| &old.id),
            counts: &self.counts,
        }
    }

    /// C K-20 to K-26: what the member has afterwards, if that is something else.
    pub fn reconcile(
        &self,
        ctx: &Ctx<'_, '_>,
        owned: impl FnOnce() -> Option<PartitionSet>,
        target_epoch: i32,
        target: &PartitionSet,
        subscription_changed: bool,
    ) -> Option<Has> {
        let has = &self.member.has;
        if !subscription_changed && has.is_reconciled_to(target_epoch) {
            return None;
        }
        let owned = owned();
        let subscribed = subscription::topic_ids(&self.wants, &self.group.regexes, ctx.env.topics);
        let step = Step {
            has,
            target_epoch,
            target,
            subscribed: &subscribed,
            idle: subscription::is_idle(&self.wants, &self.group.regexes),
            subscription_changed,
            owned: owned.as_ref(),
            held_by_other: &|topic, partition| {
                let holder = self.group.holder(topic, partition);
                holder.is_some_and(|id| *id != self.member.id && self.replaces.is_none_or(|old| old.id != *id))
            },
        };
        step.take()
    }
}
