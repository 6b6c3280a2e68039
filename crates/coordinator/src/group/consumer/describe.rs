//! ConsumerGroupDescribe and ListGroups (C K-41, D-4).

use wire::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member as DescribedMember, TopicPartitions,
};
use wire::messages::list_groups_response::ListedGroup;
use wire::{ErrorCode, KStr};

use super::Group;
use super::fault::Fault;
use super::member::{Has, Member};
use crate::assign::PartitionSet;
use crate::command::Caller;
use crate::group;
use crate::outcome::Reply;
use crate::runtime::listing_order;
use crate::shard::Ctx;
use crate::topics::TopicImage;

pub(crate) fn describe(ctx: &mut Ctx<'_, '_>, _caller: &Caller, group_id: &KStr) {
    let state = ctx.state;
    let failed = |error: ErrorCode, message: Option<KStr>| DescribedGroup {
        error_code: error.code(),
        error_message: message,
        group_id: group_id.clone(),
        ..Default::default()
    };
    let described = match state.group(group_id) {
        _ if group_id.is_empty() => failed(ErrorCode::InvalidGroupId, None),
        Some(group::Group::Consumer(group)) => described(ctx, group_id, group),
        None => failed(ErrorCode::GroupIdNotFound, Some(KStr::from(format!("Group {group_id} not found.")))),
        Some(_) => {
            let Fault { error, message } = Fault::other_type(group_id);
            failed(error, Some(KStr::from(message)))
        }
    };
    ctx.reply(Reply::ConsumerGroupDescribe(Box::new(described)));
}

fn described(ctx: &Ctx<'_, '_>, group_id: &KStr, group: &Group) -> DescribedGroup {
    let assignor = group.counts.assignor(&ctx.env.config.broker.consumer_assignors);
    let mut members: Vec<_> = group.members.values().collect();
    members.sort_by_cached_key(|member| listing_order(&member.id));
    DescribedGroup {
        group_id: group_id.clone(),
        group_state: KStr::from(group.state().name()),
        group_epoch: group.epoch,
        assignment_epoch: group.target.epoch,
        assignor_name: assignor.cloned().unwrap_or_default(),
        members: members.into_iter().map(|member| described_member(ctx.env.topics, group, member)).collect(),
        ..Default::default()
    }
}

fn described_member(image: &TopicImage, group: &Group, member: &Member) -> DescribedMember {
    let (wants, has) = (&member.wants, &member.has);
    DescribedMember {
        member_id: member.id.clone(),
        instance_id: wants.instance_id.clone(),
        rack_id: wants.rack_id.clone(),
        member_epoch: has.epoch,
        client_id: wants.client_id.clone(),
        client_host: wants.client_host.clone(),
        subscribed_topic_names: wants.names.iter().cloned().collect(),
        subscribed_topic_regex: Some(wants.regex.clone()),
        assignment: assignment(image, &still_owned(has)),
        target_assignment: assignment(image, &group.target_of(&member.id)),
        member_type: i8::from(!member.is_classic()),
    }
}

/// What the member reads from: that it has to give up partitions does not mean that it has.
fn still_owned(has: &Has) -> PartitionSet {
    let mut owned = PartitionSet::new();
    for (topic, partition) in has.held() {
        owned.entry(topic).or_default().insert(partition);
    }
    owned
}

/// Topics that are gone are left out: they have no name any longer.
fn assignment(image: &TopicImage, partitions: &PartitionSet) -> Assignment {
    let topics = partitions.iter().filter_map(|(topic_id, partitions)| {
        Some(TopicPartitions {
            topic_id: *topic_id,
            topic_name: image.name_of(topic_id)?.clone(),
            partitions: partitions.iter().copied().collect(),
        })
    });
    Assignment { topic_partitions: topics.collect() }
}

impl Group {
    pub(crate) fn listed(&self, group_id: &KStr) -> ListedGroup {
        ListedGroup {
            group_id: group_id.clone(),
            protocol_type: KStr::from("consumer"),
            group_state: KStr::from(self.state().name()),
            group_type: KStr::from("consumer"),
        }
    }
}
