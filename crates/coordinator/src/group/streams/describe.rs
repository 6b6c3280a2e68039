//! StreamsGroupDescribe and what ListGroups shows (S 9.1, 9.3). Authorisation and the protocol switch of a whole request
//! are the server's, but for the switch of one group (S 9.1.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::messages::list_groups_response::ListedGroup;
use wire::messages::streams_group_describe_response as described;
use wire::messages::streams_group_topology_value::{Subtopology, TopicInfo};
use wire::{ErrorCode, KStr};

use super::configure::{Configured, ConfiguredSubtopology};
use super::error::Failure;
use super::member::Member;
use super::settings::Settings;
use super::topology::Topology;
use super::{Group, Soft, description};
use crate::assign::{TaskAssignment, TaskId, TaskSet};
use crate::command::Caller;
use crate::group::Group as AnyGroup;
use crate::outcome::{InternalTopic, Reply};
use crate::shard::Ctx;

/// StreamsGroupDescribe, one group.
pub(crate) fn describe(ctx: &mut Ctx<'_, '_>, _caller: &Caller, group_id: &KStr, include_topology_description: bool) {
    let group = find(ctx, group_id).map(|group| {
        let empty = Soft::default();
        let soft = ctx.soft.streams.get(group_id).unwrap_or(&empty);
        let settings = Settings::of(ctx.env.config, group_id);
        describe_group(group, soft, &settings, group_id, include_topology_description)
    });
    let group = group.unwrap_or_else(|failure| described::DescribedGroup {
        error_code: failure.code.code(),
        error_message: failure.message.map(|message| KStr::from(message.into_owned())),
        group_id: group_id.clone(),
        ..Default::default()
    });
    ctx.reply(Reply::StreamsGroupDescribe(Box::new(group)));
}

fn find<'a>(ctx: &Ctx<'a, '_>, group_id: &KStr) -> Result<&'a Group, Failure> {
    if !ctx.env.config.broker.streams_protocol_enabled {
        return Err(Failure::bare(ErrorCode::UnsupportedVersion));
    }
    if group_id.is_empty() {
        return Err(Failure::bare(ErrorCode::InvalidGroupId));
    }
    match ctx.state.group(group_id) {
        None => Err(Failure::not_found(format!("Group {group_id} not found."))),
        Some(AnyGroup::Streams(group)) => Ok(group),
        Some(_) => Err(Failure::not_found(format!("Group {group_id} is not a streams group."))),
    }
}

fn describe_group(
    group: &Group,
    soft: &Soft,
    settings: &Settings<'_>,
    group_id: &KStr,
    include_topology_description: bool,
) -> described::DescribedGroup {
    let topology = group.topology.as_ref().map(|topology| describe_topology(topology, soft.configured()));
    let description = description::described(group, soft, include_topology_description);
    described::DescribedGroup {
        group_id: group_id.clone(),
        group_state: KStr::from(group.state(soft)),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        topology,
        members: group.members.iter().map(|(id, member)| describe_member(group, soft, id, member)).collect(),
        topology_description_status: description.status,
        topology_description: description.topology,
        assignor_name: Some(settings.assignor_name()),
        ..Default::default()
    }
}

/// Ready groups show the resolved topology, others the declared one (S 9.1.3).
fn describe_topology(topology: &Topology, configured: Option<&Arc<Configured>>) -> described::Topology {
    let resolved = configured.filter(|configured| configured.is_ready() && configured.topology_epoch == topology.epoch);
    let resolved = resolved.and_then(|configured| configured.subtopologies.as_ref());
    let subtopologies = topology.subtopologies.iter().map(|(id, declared)| {
        let mut sinks = declared.repartition_sink_topics.clone();
        sinks.sort();
        match resolved.and_then(|resolved| resolved.get(id)) {
            Some(resolved) => describe_resolved(id, resolved, sinks),
            None => describe_declared(id, declared, sinks),
        }
    });
    described::Topology { epoch: topology.epoch, subtopologies: Some(subtopologies.collect()) }
}

fn describe_resolved(id: &KStr, resolved: &ConfiguredSubtopology, sinks: Vec<KStr>) -> described::Subtopology {
    let topics = |topics: &[InternalTopic]| {
        let each = topics.iter().map(|topic| described::TopicInfo {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            topic_configs: configs(topic.configs.iter().map(|(key, value)| (key, value))),
        });
        each.collect()
    };
    described::Subtopology {
        subtopology_id: id.clone(),
        source_topics: resolved.source_topics.iter().cloned().collect(),
        repartition_sink_topics: sinks,
        state_changelog_topics: topics(&resolved.changelog_topics),
        repartition_source_topics: topics(&resolved.repartition_source_topics),
    }
}

fn describe_declared(id: &KStr, declared: &Subtopology, sinks: Vec<KStr>) -> described::Subtopology {
    let topics = |topics: &[TopicInfo]| {
        let sorted: BTreeMap<_, _> = topics.iter().map(|topic| (&topic.name, topic)).collect();
        let each = sorted.into_values().map(|topic| described::TopicInfo {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            topic_configs: configs(topic.topic_configs.iter().map(|config| (&config.key, &config.value))),
        });
        each.collect()
    };
    let sources: BTreeSet<_> = declared.source_topics.iter().cloned().collect();
    described::Subtopology {
        subtopology_id: id.clone(),
        source_topics: sources.into_iter().collect(),
        repartition_sink_topics: sinks,
        state_changelog_topics: topics(&declared.state_changelog_topics),
        repartition_source_topics: topics(&declared.repartition_source_topics),
    }
}

fn configs<'a>(pairs: impl Iterator<Item = (&'a KStr, &'a KStr)>) -> Vec<described::KeyValue> {
    let sorted: BTreeMap<_, _> = pairs.collect();
    let each = sorted.into_iter().map(|(key, value)| described::KeyValue { key: key.clone(), value: value.clone() });
    each.collect()
}

fn describe_member(group: &Group, soft: &Soft, member_id: &KStr, member: &Member) -> described::Member {
    let metadata = &member.metadata;
    let reported = soft.members.get(member_id).map(|member| &member.reported);
    let assigned = TaskAssignment {
        active: member.assigned.active_set(),
        standby: member.assigned.standby.clone(),
        warmup: member.assigned.warmup.clone(),
    };
    described::Member {
        member_id: member_id.clone(),
        member_epoch: member.epoch,
        instance_id: metadata.instance_id.clone(),
        rack_id: metadata.rack_id.clone(),
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        topology_epoch: metadata.topology_epoch,
        process_id: metadata.process_id.clone(),
        user_endpoint: metadata
            .user_endpoint
            .as_ref()
            .map(|(host, port)| described::Endpoint { host: host.clone(), port: *port }),
        client_tags: configs(metadata.client_tags.iter()),
        task_offsets: reported.map(|reported| offsets(&reported.offsets)).unwrap_or_default(),
        task_end_offsets: reported.map(|reported| offsets(&reported.end_offsets)).unwrap_or_default(),
        assignment: assignment(&assigned),
        target_assignment: group.targets.get(member_id).map(|target| assignment(target)).unwrap_or_default(),
        is_classic: false,
    }
}

fn offsets(offsets: &BTreeMap<TaskId, i64>) -> Vec<described::TaskOffset> {
    let each = offsets.iter().map(|(task, offset)| described::TaskOffset {
        subtopology_id: task.subtopology.clone(),
        partition: task.partition,
        offset: *offset,
    });
    each.collect()
}

fn assignment(tasks: &TaskAssignment) -> described::Assignment {
    let lists = |tasks: &TaskSet| {
        let each = tasks.iter().map(|(id, partitions)| described::TaskIds {
            subtopology_id: id.clone(),
            partitions: partitions.iter().copied().collect(),
        });
        each.collect()
    };
    described::Assignment {
        active_tasks: lists(&tasks.active),
        standby_tasks: lists(&tasks.standby),
        warmup_tasks: lists(&tasks.warmup),
    }
}

/// The entry of ListGroups.
pub(super) fn listed(group: &Group, soft: &Soft, group_id: &KStr) -> ListedGroup {
    ListedGroup {
        group_id: group_id.clone(),
        protocol_type: KStr::from("streams"),
        group_state: KStr::from(group.state(soft)),
        group_type: KStr::from("streams"),
    }
}
