//! The target assignment: when it is computed, from what, and what is written of it (C K-16 to K-18).

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::{ErrorCode, KStr};

use super::fault::Fault;
use super::member::Wants;
use super::subscription::{Counts, TopicIds};
use super::{Group, records, settings, soft};
use crate::assign::{self, ConsumerInput, ConsumerMember, ConsumerTarget, PartitionSet};
use crate::group::{self, AssignmentInput, ComputedTarget, interval};
use crate::outcome::Effect;
use crate::record::Record;
use crate::shard::Ctx;
use crate::topics::TopicImage;

/// Members and partitions from which on an assignor runs off the shard.
const LARGE: usize = 5_000;

/// What a heartbeat changes before the target is looked at.
pub(super) struct Change<'a> {
    pub group_id: &'a KStr,
    pub group: &'a Group,
    /// After the heartbeat.
    pub group_epoch: i32,
    pub member_id: &'a KStr,
    /// What the member wants after the heartbeat.
    pub wants: &'a Wants,
    /// Id of the member whose instance it takes over.
    pub replaces: Option<&'a KStr>,
    /// After the heartbeat.
    pub counts: &'a Counts,
}

impl<'b> Change<'b> {
    /// Computes a new target if one is due. Yields the epoch of the target and the member's part of it.
    pub fn update(&self, ctx: &mut Ctx<'_, '_>, records: &mut Vec<Record>) -> Result<(i32, Arc<PartitionSet>), Fault> {
        let group = self.group;
        let present = || Ok((group.target.epoch, group.target_of(self.replaces.unwrap_or(self.member_id))));
        if self.group_epoch <= group.target.epoch {
            return present();
        }
        let partitions = self.partitions(ctx.env.topics);
        if !self.is_due(ctx, partitions) {
            return present();
        }
        let soft = soft::entry(ctx.soft, self.group_id);
        if let Some((epoch, message)) = &soft.failed
            && *epoch == self.group_epoch
        {
            return Err(Fault::new(ErrorCode::UnknownServerError, message.clone()));
        }
        if soft.computing.is_some() {
            return present();
        }
        let job = self.job(ctx);
        if group.members.len() + partitions > LARGE {
            soft::entry(ctx.soft, self.group_id).computing = Some(self.group_epoch);
            ctx.out.effects.push(Effect::ComputeAssignment {
                group_id: self.group_id.clone(),
                group_epoch: self.group_epoch,
                input: Arc::new(job),
            });
            return present();
        }
        let mut target = job.run().map_err(|message| Fault::new(ErrorCode::UnknownServerError, message))?;
        // A static member has had what the one before it had; its copy is written already.
        let before = |id: &KStr| {
            let id = self.replaces.filter(|_| id == self.member_id).unwrap_or(id);
            group.target.members.get(id)
        };
        write(self.group_id, before, self.group_epoch, ctx.at.wall_ms, &target, records);
        let own = target.remove(self.member_id).unwrap_or_default();
        Ok((self.group_epoch, Arc::new(own)))
    }

    /// Partitions of all topics that somebody subscribes to.
    fn partitions(&self, image: &TopicImage) -> usize {
        let topics = self.counts.topics(&self.group.regexes);
        let partitions = topics.into_iter().filter_map(|name| image.get(name)).map(|topic| topic.partitions);
        partitions.sum::<i32>() as usize
    }

    /// C K-17, decision 14b.
    fn is_due(&self, ctx: &Ctx<'_, '_>, partitions: usize) -> bool {
        let config = &ctx.env.config;
        let configured_ms = settings::assignment_interval_ms(config, self.group_id);
        let members = self.group.members.len();
        let interval_ms =
            configured_ms.unwrap_or_else(|| interval::assignment_interval_ms(&config.broker, members, partitions));
        let age_ms = ctx.at.wall_ms - self.group.target.time_ms;
        // A clock that was set back must not stop it.
        self.group.target.time_ms == 0 || age_ms >= i64::from(interval_ms) || age_ms < 0
    }

    fn job(&self, ctx: &Ctx<'_, '_>) -> Job {
        let image = ctx.env.topics;
        let mut topic_ids = TopicIds::new(&self.group.regexes, image);
        let mut member = |id: &KStr, wants: &'b Wants, target_of: &KStr| ConsumerMember {
            member_id: id.clone(),
            instance_id: wants.instance_id.clone(),
            rack_id: wants.rack_id.clone(),
            subscribed: topic_ids.of(wants),
            assigned: self.group.target_of(target_of),
        };
        let others = self
            .group
            .members
            .values()
            .filter(|other| other.id != *self.member_id && self.replaces.is_none_or(|old| *old != other.id));
        let mut members: BTreeMap<&KStr, ConsumerMember> =
            others.map(|other| (&other.id, member(&other.id, &other.wants, &other.id))).collect();
        let own = member(self.member_id, self.wants, self.replaces.unwrap_or(self.member_id));
        members.insert(self.member_id, own);
        let assignor = self.counts.assignor(&ctx.env.config.broker.consumer_assignors).cloned().unwrap_or_default();
        Job::new(assignor, members.into_values().collect(), image)
    }
}

/// What the assignor makes of a group as it stands. For dry runs.
pub(super) fn of_group(group: &Group, image: &TopicImage, assignors: &[KStr]) -> Result<ConsumerTarget, String> {
    let mut topic_ids = TopicIds::new(&group.regexes, image);
    let members = group.members.values().map(|member| ConsumerMember {
        member_id: member.id.clone(),
        instance_id: member.wants.instance_id.clone(),
        rack_id: member.wants.rack_id.clone(),
        subscribed: topic_ids.of(&member.wants),
        assigned: group.target_of(&member.id),
    });
    let members = members.collect();
    Job::new(group.counts.assignor(assignors).cloned().unwrap_or_default(), members, image).run()
}

/// An assignor and its input.
#[derive(Debug)]
struct Job {
    assignor: KStr,
    input: ConsumerInput,
}

impl Job {
    fn new(assignor: KStr, members: Vec<ConsumerMember>, image: &TopicImage) -> Job {
        let subscribed = members.iter().flat_map(|member| member.subscribed.iter());
        let topics = subscribed.filter_map(|id| Some((*id, image.get(image.name_of(id)?)?.partitions)));
        let topics = topics.collect();
        Job { assignor, input: ConsumerInput { members, topics } }
    }

    fn run(&self) -> Result<ConsumerTarget, String> {
        let assigned = match &*self.assignor {
            "range" => assign::range::assign(&self.input),
            _ => assign::uniform::assign(&self.input),
        };
        #[cfg(feature = "testing")]
        let assigned = assigned.map(|target| assign::given::consumer(&self.assignor, &self.input, target));
        assigned.map_err(|error| error.to_string())
    }
}

impl AssignmentInput for Job {
    fn compute(&self) -> Arc<ComputedTarget> {
        Arc::new(ComputedTarget::Consumer(self.run()))
    }
}

/// The parts of the target that changed, then its epoch.
fn write<'a>(
    group_id: &KStr,
    before: impl Fn(&KStr) -> Option<&'a Arc<PartitionSet>>,
    epoch: i32,
    now_wall_ms: i64,
    target: &ConsumerTarget,
    records: &mut Vec<Record>,
) {
    for (member_id, partitions) in target {
        if before(member_id).is_none_or(|before| **before != *partitions) {
            records.push(records::target(group_id, member_id, partitions));
        }
    }
    records.push(records::target_epoch(group_id, epoch, now_wall_ms));
}

/// What was computed off the shard. It counts although the group may have gone on, else one that many join at once
/// would never get a target; members that have left in the meantime are left out.
pub(crate) fn ready(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group_epoch: i32, target: &Result<ConsumerTarget, String>) {
    let state = ctx.state;
    let Some(group::Group::Consumer(group)) = state.group(group_id) else { return };
    let soft = soft::entry(ctx.soft, group_id);
    if soft.computing != Some(group_epoch) {
        return;
    }
    soft.computing = None;
    match target {
        Err(message) => soft.failed = Some((group_epoch, message.clone())),
        Ok(target) if group.target.epoch < group_epoch => {
            let present = target.iter().filter(|(id, _)| group.members.contains_key(*id));
            let target = present.map(|(id, partitions)| (id.clone(), partitions.clone())).collect();
            let before = |id: &KStr| group.target.members.get(id);
            write(group_id, before, group_epoch, ctx.at.wall_ms, &target, &mut ctx.out.records);
        }
        Ok(_) => {}
    }
}
