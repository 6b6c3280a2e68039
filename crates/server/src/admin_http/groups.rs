//! Groups as they are now: the list, and one of them with members, work, topology and lag.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use coordinator::{Caller, Command, Reply};
use serde_json::{Value, json};
use wire::messages::consumer_protocol_assignment::ConsumerProtocolAssignment;
use wire::messages::{
    consumer_group_describe_response as consumer, describe_groups_response as classic,
    streams_group_describe_response as streams,
};
use wire::{Bytes, KStr, Message, Reader};

use super::Admin;
use super::error::Failure;
use crate::broker::Broker;
use crate::lag::{self, PartitionLag};

/// `GET /groups`.
pub(super) async fn list(State(admin): State<Admin>) -> Result<Json<Value>, Failure> {
    let broker = admin.broker()?;
    let command = || Command::ListGroups { states: Vec::new(), types: Vec::new() };
    let mut groups = Vec::new();
    for replied in broker.groups.call_all(command).await {
        let Reply::ListGroups(listed) = replied? else { continue };
        for group in listed {
            let protocol = group.group_type.to_lowercase();
            let brief = broker.groups.brief(&group.group_id);
            let lag = lag::of_group(&broker, &group.group_id, false).await.unwrap_or_default();
            let lag = (!lag.is_empty()).then(|| lag.iter().filter_map(|lag| lag.records).sum::<i64>());
            groups.push(json!({
                "group": &*group.group_id,
                "protocol": protocol,
                "state": &*group.group_state,
                "members": brief.map(|brief| brief.members),
                "epoch": brief.map(|brief| brief.epoch),
                "lag": lag,
            }));
        }
    }
    groups.sort_by(|a, b| a["group"].as_str().cmp(&b["group"].as_str()));
    Ok(Json(json!({ "groups": groups })))
}

/// `GET /groups/GROUP`.
pub(super) async fn one(State(admin): State<Admin>, Path(group): Path<String>) -> Result<Json<Value>, Failure> {
    let broker = admin.broker()?;
    let mut value = describe(&broker, &KStr::from(group)).await?;
    let group_id = KStr::from(value["group"].as_str().unwrap_or_default().to_owned());
    let lag = lag::of_group(&broker, &group_id, true).await.unwrap_or_default();
    value["lag"] = lag.iter().map(of_lag).collect();
    add_sessions(&broker, &group_id, &mut value).await?;
    value["now_ms"] = broker.clock.wall_ms().into();
    Ok(Json(value))
}

/// Notes with every member how long it may still be silent.
async fn add_sessions(broker: &Arc<Broker>, group_id: &KStr, value: &mut Value) -> Result<(), Failure> {
    let Some(members) = value["members"].as_array_mut() else { return Ok(()) };
    let id = |member: &Value| KStr::from(member["member_id"].as_str().unwrap_or_default().to_owned());
    let command = Command::Sessions { group_id: group_id.clone(), member_ids: members.iter().map(id).collect() };
    let Reply::Sessions(left) = broker.groups.call(group_id, command).await? else { return Ok(()) };
    for (member, left_ms) in members.iter_mut().zip(left) {
        member["session_left_ms"] = left_ms.into();
    }
    Ok(())
}

fn of_lag(lag: &PartitionLag) -> Value {
    json!({
        "topic": &*lag.topic,
        "partition": lag.partition,
        "committed": lag.committed,
        "end": lag.end,
        "records": lag.records,
        "age_ms": lag.age_ms,
    })
}

async fn describe(broker: &Arc<Broker>, group_id: &KStr) -> Result<Value, Failure> {
    let brief = broker.groups.brief(group_id);
    let Some(brief) = brief else { return Err(Failure::not_found(format!("there is no group {group_id}"))) };
    let caller = Caller { client_id: KStr::EMPTY, client_host: KStr::EMPTY, api_version: 6 };
    let group = group_id.clone();
    let command = match brief.protocol {
        "streams" => Command::StreamsGroupDescribe {
            caller: Caller { api_version: 1, ..caller },
            group_id: group,
            include_topology_description: false,
        },
        "consumer" => Command::ConsumerGroupDescribe { caller: Caller { api_version: 1, ..caller }, group_id: group },
        _ => Command::DescribeGroup { caller, group_id: group },
    };
    match broker.groups.call(group_id, command).await? {
        Reply::StreamsGroupDescribe(group) if group.error_code == 0 => Ok(of_streams(&group)),
        Reply::ConsumerGroupDescribe(group) if group.error_code == 0 => Ok(of_consumer(&group)),
        Reply::DescribeGroup(group) if group.error_code == 0 => Ok(of_classic(&group, brief.epoch)),
        // It was there a moment ago.
        _ => Err(Failure::not_found(format!("there is no group {group_id}"))),
    }
}

fn host(client_host: &KStr) -> &str {
    client_host.trim_start_matches('/')
}

fn of_streams(group: &streams::DescribedGroup) -> Value {
    let members: Vec<Value> = group.members.iter().map(streams_member).collect();
    let topology = group.topology.as_ref().map(|topology| {
        let subtopologies = topology.subtopologies.iter().flatten().map(|subtopology| {
            let names = |topics: &[streams::TopicInfo]| topics.iter().map(|topic| topic.name.to_string()).collect();
            let (changelogs, repartition): (Vec<String>, Vec<String>) =
                (names(&subtopology.state_changelog_topics), names(&subtopology.repartition_source_topics));
            json!({
                "id": &*subtopology.subtopology_id,
                "sources": subtopology.source_topics.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "repartition_sources": repartition,
                "repartition_sinks": subtopology.repartition_sink_topics.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "changelogs": changelogs,
            })
        });
        json!({ "epoch": topology.epoch, "subtopologies": subtopologies.collect::<Vec<_>>() })
    });
    json!({
        "group": &*group.group_id,
        "protocol": "streams",
        "state": &*group.group_state,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor_name.as_ref().map(ToString::to_string),
        "members": members,
        "topology": topology,
    })
}

fn streams_member(member: &streams::Member) -> Value {
    let tasks = |lists: &[streams::TaskIds]| -> Vec<String> {
        let each = lists.iter().flat_map(|list| list.partitions.iter().map(move |p| (&list.subtopology_id, *p)));
        let mut each: Vec<_> = each.collect();
        each.sort();
        each.into_iter().map(|(id, partition)| format!("{id}_{partition}")).collect()
    };
    let work = |assignment: &streams::Assignment| {
        json!({
            "active": tasks(&assignment.active_tasks),
            "standby": tasks(&assignment.standby_tasks),
            "warmup": tasks(&assignment.warmup_tasks),
        })
    };
    let mut offsets = BTreeMap::<String, (Option<i64>, Option<i64>)>::new();
    for offset in &member.task_offsets {
        offsets.entry(format!("{}_{}", offset.subtopology_id, offset.partition)).or_default().0 = Some(offset.offset);
    }
    for offset in &member.task_end_offsets {
        offsets.entry(format!("{}_{}", offset.subtopology_id, offset.partition)).or_default().1 = Some(offset.offset);
    }
    let offsets =
        offsets.into_iter().map(|(task, (offset, end))| json!({ "task": task, "offset": offset, "end": end }));
    json!({
        "member_id": &*member.member_id,
        "instance_id": member.instance_id.as_ref().map(ToString::to_string),
        "client_id": &*member.client_id,
        "host": host(&member.client_host),
        "epoch": member.member_epoch,
        "process_id": &*member.process_id,
        "rack": member.rack_id.as_ref().map(ToString::to_string),
        "endpoint": member.user_endpoint.as_ref().map(|endpoint| format!("{}:{}", endpoint.host, endpoint.port)),
        "assigned": work(&member.assignment),
        "target": work(&member.target_assignment),
        "offsets": offsets.collect::<Vec<_>>(),
    })
}

fn of_partitions(partitions: Vec<String>) -> Value {
    json!({ "active": partitions, "standby": [], "warmup": [] })
}

fn of_consumer(group: &consumer::DescribedGroup) -> Value {
    let partitions = |assignment: &consumer::Assignment| {
        let each = assignment.topic_partitions.iter();
        let each = each.flat_map(|topic| topic.partitions.iter().map(move |p| (&topic.topic_name, *p)));
        let mut each: Vec<_> = each.collect();
        each.sort();
        of_partitions(each.into_iter().map(|(topic, partition)| format!("{topic}-{partition}")).collect())
    };
    let members = group.members.iter().map(|member| {
        json!({
            "member_id": &*member.member_id,
            "instance_id": member.instance_id.as_ref().map(ToString::to_string),
            "client_id": &*member.client_id,
            "host": host(&member.client_host),
            "epoch": member.member_epoch,
            "rack": member.rack_id.as_ref().map(ToString::to_string),
            "subscribed": member.subscribed_topic_names.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "pattern": member.subscribed_topic_regex.as_ref().filter(|regex| !regex.is_empty()).map(ToString::to_string),
            "assigned": partitions(&member.assignment),
            "target": partitions(&member.target_assignment),
        })
    });
    json!({
        "group": &*group.group_id,
        "protocol": "consumer",
        "state": &*group.group_state,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": &*group.assignor_name,
        "members": members.collect::<Vec<_>>(),
        "topology": null,
    })
}

fn of_classic(group: &classic::DescribedGroup, generation: i32) -> Value {
    let is_consumer = group.protocol_type == "consumer";
    let members = group.members.iter().map(|member| {
        let partitions = if is_consumer { assigned(&member.member_assignment) } else { Vec::new() };
        json!({
            "member_id": &*member.member_id,
            "instance_id": member.group_instance_id.as_ref().map(ToString::to_string),
            "client_id": &*member.client_id,
            "host": host(&member.client_host),
            "epoch": generation,
            "assigned": of_partitions(partitions.clone()),
            "target": of_partitions(partitions),
        })
    });
    json!({
        "group": &*group.group_id,
        "protocol": "classic",
        "state": &*group.group_state,
        "epoch": generation,
        "assignment_epoch": generation,
        "assignor": &*group.protocol_data,
        "members": members.collect::<Vec<_>>(),
        "topology": null,
    })
}

/// Every version of an assignment begins with what version 0 is; one that cannot be read is empty.
fn assigned(assignment: &Bytes) -> Vec<String> {
    let mut reader = Reader::new(assignment);
    let readable = reader.i16().is_ok_and(|version| version >= 0);
    let read = readable.then(|| ConsumerProtocolAssignment::decode(&mut reader, 0).ok()).flatten();
    let topics = read.map(|read| read.assigned_partitions).unwrap_or_default();
    let each = topics.iter().flat_map(|topic| topic.partitions.iter().map(move |p| (&topic.topic, *p)));
    let mut each: Vec<_> = each.collect();
    each.sort();
    each.into_iter().map(|(topic, partition)| format!("{topic}-{partition}")).collect()
}
