//! Requests, answers and records in Kafka's JSON form, as far as these tests need them.

use serde_json::{Map, Value, json};
use wire::KStr;
use wire::messages::delete_groups_response::DeletableGroupResult;
use wire::messages::list_groups_response::ListedGroup;
use wire::messages::offset_commit_request as commit;
use wire::messages::offset_commit_response::OffsetCommitResponse;
use wire::messages::offset_delete_request as delete;
use wire::messages::offset_delete_response::OffsetDeleteResponse;
use wire::messages::offset_fetch_request as fetch;
use wire::messages::offset_fetch_response::OffsetFetchResponseGroup;
use wire::messages::streams_group_describe_response as described;
use wire::messages::streams_group_heartbeat_request as hb;
use wire::messages::streams_group_heartbeat_response as hbr;
use wire::messages::streams_group_topology_description_update_request as description;
use wire::messages::txn_offset_commit_request as txn;
use wire::messages::txn_offset_commit_response::TxnOffsetCommitResponse;

use crate::record::Record;

pub(super) fn text(value: &Value, field: &str) -> KStr {
    optional_text(value, field).unwrap_or_default()
}

pub(super) fn optional_text(value: &Value, field: &str) -> Option<KStr> {
    match &value[field] {
        Value::String(text) => Some(KStr::copy(text)),
        Value::Number(number) => Some(KStr::copy(&number.to_string())),
        _ => None,
    }
}

pub(super) fn number(value: &Value, field: &str, default: i64) -> i64 {
    match &value[field] {
        Value::Number(number) => number.as_i64().expect("an integer"),
        Value::String(text) => text.parse().expect("an integer"),
        _ => default,
    }
}

fn flag(value: &Value, field: &str) -> bool {
    value[field].as_bool().unwrap_or(false)
}

fn list<T>(value: &Value, field: &str, each: impl Fn(&Value) -> T) -> Vec<T> {
    optional_list(value, field, each).unwrap_or_default()
}

fn optional_list<T>(value: &Value, field: &str, each: impl Fn(&Value) -> T) -> Option<Vec<T>> {
    value[field].as_array().map(|items| items.iter().map(each).collect())
}

fn own_text(value: &Value) -> KStr {
    KStr::copy(value.as_str().expect("a text"))
}

fn own_number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).expect("an integer")
}

pub(super) fn heartbeat(body: &Value) -> hb::StreamsGroupHeartbeatRequest {
    let tasks = |field| {
        optional_list(body, field, |tasks| hb::TaskIds {
            subtopology_id: text(tasks, "subtopologyId"),
            partitions: list(tasks, "partitions", |p| own_number(p) as i32),
        })
    };
    let offsets = |field| {
        optional_list(body, field, |offset| hb::TaskOffset {
            subtopology_id: text(offset, "subtopologyId"),
            partition: number(offset, "partition", 0) as i32,
            offset: number(offset, "offset", 0),
        })
    };
    let topology = body["topology"].as_object().map(|_| topology(&body["topology"]));
    let endpoint = body["userEndpoint"].as_object().map(|_| hb::Endpoint {
        host: text(&body["userEndpoint"], "host"),
        port: number(&body["userEndpoint"], "port", 0) as u16,
    });
    hb::StreamsGroupHeartbeatRequest {
        group_id: text(body, "groupId"),
        member_id: text(body, "memberId"),
        member_epoch: number(body, "memberEpoch", 0) as i32,
        endpoint_information_epoch: number(body, "endpointInformationEpoch", 0) as i32,
        instance_id: optional_text(body, "instanceId"),
        rack_id: optional_text(body, "rackId"),
        rebalance_timeout_ms: number(body, "rebalanceTimeoutMs", -1) as i32,
        topology,
        active_tasks: tasks("activeTasks"),
        standby_tasks: tasks("standbyTasks"),
        warmup_tasks: tasks("warmupTasks"),
        process_id: optional_text(body, "processId"),
        user_endpoint: endpoint,
        client_tags: optional_list(body, "clientTags", key_value),
        task_offsets: offsets("taskOffsets"),
        task_end_offsets: offsets("taskEndOffsets"),
        shutdown_application: flag(body, "shutdownApplication"),
    }
}

fn key_value(pair: &Value) -> hb::KeyValue {
    hb::KeyValue { key: text(pair, "key"), value: text(pair, "value") }
}

fn topology(value: &Value) -> hb::Topology {
    let topic = |topic: &Value| hb::TopicInfo {
        name: text(topic, "name"),
        partitions: number(topic, "partitions", 0) as i32,
        replication_factor: number(topic, "replicationFactor", 0) as i16,
        topic_configs: list(topic, "topicConfigs", key_value),
    };
    let indexes = |group: &Value, field| list(group, field, |index| own_number(index) as i16);
    let subtopology = |each: &Value| hb::Subtopology {
        subtopology_id: text(each, "subtopologyId"),
        source_topics: list(each, "sourceTopics", own_text),
        source_topic_regex: list(each, "sourceTopicRegex", own_text),
        state_changelog_topics: list(each, "stateChangelogTopics", topic),
        repartition_sink_topics: list(each, "repartitionSinkTopics", own_text),
        repartition_source_topics: list(each, "repartitionSourceTopics", topic),
        copartition_groups: list(each, "copartitionGroups", |group| hb::CopartitionGroup {
            source_topics: indexes(group, "sourceTopics"),
            source_topic_regex: indexes(group, "sourceTopicRegex"),
            repartition_source_topics: indexes(group, "repartitionSourceTopics"),
        }),
    };
    hb::Topology { epoch: number(value, "epoch", 0) as i32, subtopologies: list(value, "subtopologies", subtopology) }
}

pub(super) fn heartbeat_answer(answer: &hbr::StreamsGroupHeartbeatResponse, version: i16) -> Value {
    let tasks = |tasks: &Option<Vec<hbr::TaskIds>>| match tasks {
        None => Value::Null,
        Some(tasks) => tasks
            .iter()
            .map(|t| json!({"subtopologyId": t.subtopology_id.as_str(), "partitions": t.partitions}))
            .collect(),
    };
    let topics = |topics: &[hbr::TopicPartition]| {
        topics.iter().map(|t| json!({"topic": t.topic.as_str(), "partitions": t.partitions})).collect::<Value>()
    };
    let status = answer.status.as_ref().map(|status| {
        let each = status.iter();
        each.map(|s| json!({"statusCode": s.status_code, "statusDetail": s.status_detail.as_str()})).collect::<Value>()
    });
    let endpoints = answer.partitions_by_user_endpoint.as_ref().map(|entries| {
        let each = entries.iter().map(|entry| {
            json!({
                "userEndpoint": {"host": entry.user_endpoint.host.as_str(), "port": entry.user_endpoint.port},
                "activePartitions": topics(&entry.active_partitions),
                "standbyPartitions": topics(&entry.standby_partitions),
            })
        });
        each.collect::<Value>()
    });
    let mut value = json!({
        "throttleTimeMs": answer.throttle_time_ms,
        "errorCode": answer.error_code,
        "errorMessage": answer.error_message.as_ref().map(KStr::as_str),
        "memberId": answer.member_id.as_str(),
        "memberEpoch": answer.member_epoch,
        "heartbeatIntervalMs": answer.heartbeat_interval_ms,
        "taskOffsetIntervalMs": answer.task_offset_interval_ms,
        "status": status,
        "activeTasks": tasks(&answer.active_tasks),
        "standbyTasks": tasks(&answer.standby_tasks),
        "warmupTasks": tasks(&answer.warmup_tasks),
        "endpointInformationEpoch": answer.endpoint_information_epoch,
        "partitionsByUserEndpoint": endpoints,
    });
    if version == 0 {
        value["acceptableRecoveryLagLegacy"] = json!(answer.acceptable_recovery_lag_legacy);
    } else {
        value["acceptableRecoveryLag"] = json!(answer.acceptable_recovery_lag);
        value["topologyDescriptionRequired"] = json!(answer.topology_description_required);
    }
    value
}

pub(super) fn described(group: &described::DescribedGroup, version: i16) -> Value {
    let topics = |topics: &[described::TopicInfo]| {
        let each = topics.iter().map(|topic| {
            json!({
                "name": topic.name.as_str(),
                "partitions": topic.partitions,
                "replicationFactor": topic.replication_factor,
                "topicConfigs": pairs(&topic.topic_configs),
            })
        });
        each.collect::<Value>()
    };
    let topology = group.topology.as_ref().map(|topology| {
        let subtopologies = topology.subtopologies.as_ref().map(|all| {
            let each = all.iter().map(|subtopology| {
                json!({
                    "subtopologyId": subtopology.subtopology_id.as_str(),
                    "sourceTopics": names(&subtopology.source_topics),
                    "repartitionSinkTopics": names(&subtopology.repartition_sink_topics),
                    "stateChangelogTopics": topics(&subtopology.state_changelog_topics),
                    "repartitionSourceTopics": topics(&subtopology.repartition_source_topics),
                })
            });
            each.collect::<Value>()
        });
        json!({"epoch": topology.epoch, "subtopologies": subtopologies})
    });
    let mut value = json!({
        "errorCode": group.error_code,
        "errorMessage": group.error_message.as_ref().map(KStr::as_str),
        "groupId": group.group_id.as_str(),
        "groupState": group.group_state.as_str(),
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topology": topology,
        "members": group.members.iter().map(described_member).collect::<Value>(),
        "authorizedOperations": group.authorized_operations,
    });
    if version >= 1 {
        value["topologyDescription"] = group.topology_description.as_ref().map_or(Value::Null, topology_description);
        value["topologyDescriptionStatus"] = json!(group.topology_description_status);
        value["assignorName"] = json!(group.assignor_name.as_ref().map(KStr::as_str));
    }
    value
}

fn topology_description(topology: &described::TopologyDescription) -> Value {
    let node = |node: &described::TopologyDescriptionNode| {
        json!({
            "name": node.name.as_str(),
            "nodeType": node.node_type,
            "sourceTopics": names(&node.source_topics),
            "sinkTopic": node.sink_topic.as_ref().map(KStr::as_str),
            "stores": names(&node.stores),
            "successors": names(&node.successors),
        })
    };
    let subtopologies = topology.subtopologies.iter().map(|each| {
        json!({
            "subtopologyId": each.subtopology_id.as_str(),
            "nodes": each.nodes.iter().map(node).collect::<Value>(),
        })
    });
    let stores = topology.global_stores.iter();
    let stores = stores.map(|each| json!({"source": node(&each.source), "processor": node(&each.processor)}));
    json!({"subtopologies": subtopologies.collect::<Value>(), "globalStores": stores.collect::<Value>()})
}

fn described_member(member: &described::Member) -> Value {
    let offsets = |offsets: &[described::TaskOffset]| {
        let each = offsets.iter().map(|offset| {
            json!({
                "subtopologyId": offset.subtopology_id.as_str(),
                "partition": offset.partition,
                "offset": offset.offset,
            })
        });
        each.collect::<Value>()
    };
    let tasks = |tasks: &[described::TaskIds]| {
        tasks
            .iter()
            .map(|t| json!({"subtopologyId": t.subtopology_id.as_str(), "partitions": t.partitions}))
            .collect::<Value>()
    };
    let assignment = |assignment: &described::Assignment| {
        json!({
            "activeTasks": tasks(&assignment.active_tasks),
            "standbyTasks": tasks(&assignment.standby_tasks),
            "warmupTasks": tasks(&assignment.warmup_tasks),
        })
    };
    json!({
        "memberId": member.member_id.as_str(),
        "memberEpoch": member.member_epoch,
        "instanceId": member.instance_id.as_ref().map(KStr::as_str),
        "rackId": member.rack_id.as_ref().map(KStr::as_str),
        "clientId": member.client_id.as_str(),
        "clientHost": member.client_host.as_str(),
        "topologyEpoch": member.topology_epoch,
        "processId": member.process_id.as_str(),
        "userEndpoint": member.user_endpoint.as_ref().map(|e| json!({"host": e.host.as_str(), "port": e.port})),
        "clientTags": pairs(&member.client_tags),
        "taskOffsets": offsets(&member.task_offsets),
        "taskEndOffsets": offsets(&member.task_end_offsets),
        "assignment": assignment(&member.assignment),
        "targetAssignment": assignment(&member.target_assignment),
        "isClassic": member.is_classic,
    })
}

fn pairs(pairs: &[described::KeyValue]) -> Value {
    pairs.iter().map(|pair| json!({"key": pair.key.as_str(), "value": pair.value.as_str()})).collect()
}

fn names(names: &[KStr]) -> Value {
    names.iter().map(|name| Value::from(name.as_str())).collect()
}

pub(super) fn description_update(body: &Value) -> description::StreamsGroupTopologyDescriptionUpdateRequest {
    let node = |node: &Value| description::TopologyDescriptionNode {
        name: text(node, "name"),
        node_type: number(node, "nodeType", 0) as i8,
        source_topics: list(node, "sourceTopics", own_text),
        sink_topic: optional_text(node, "sinkTopic"),
        stores: list(node, "stores", own_text),
        successors: list(node, "successors", own_text),
    };
    let topology = &body["topologyDescription"];
    description::StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: text(body, "groupId"),
        member_id: text(body, "memberId"),
        topology_epoch: number(body, "topologyEpoch", 0) as i32,
        topology_description: description::TopologyDescription {
            subtopologies: list(topology, "subtopologies", |each| description::TopologyDescriptionSubtopology {
                subtopology_id: text(each, "subtopologyId"),
                nodes: list(each, "nodes", node),
            }),
            global_stores: list(topology, "globalStores", |each| description::TopologyDescriptionGlobalStore {
                source: node(&each["source"]),
                processor: node(&each["processor"]),
            }),
        },
    }
}

pub(super) fn listed(groups: &[ListedGroup], version: i16) -> Value {
    let each = groups.iter().map(|group| {
        let mut entry = json!({
            "groupId": group.group_id.as_str(),
            "protocolType": group.protocol_type.as_str(),
            "groupState": group.group_state.as_str(),
        });
        if version >= 5 {
            entry["groupType"] = json!(group.group_type.as_str());
        }
        entry
    });
    json!({"errorCode": 0, "groups": each.collect::<Value>()})
}

pub(super) fn deleted(result: &DeletableGroupResult) -> Value {
    json!({"groupId": result.group_id.as_str(), "errorCode": result.error_code})
}

pub(super) fn offset_commit(body: &Value) -> commit::OffsetCommitRequest {
    commit::OffsetCommitRequest {
        group_id: text(body, "groupId"),
        generation_id_or_member_epoch: number(body, "generationIdOrMemberEpoch", -1) as i32,
        member_id: text(body, "memberId"),
        group_instance_id: optional_text(body, "groupInstanceId"),
        topics: list(body, "topics", |topic| commit::OffsetCommitRequestTopic {
            name: text(topic, "name"),
            partitions: list(topic, "partitions", |partition| commit::OffsetCommitRequestPartition {
                partition_index: number(partition, "partitionIndex", 0) as i32,
                committed_offset: number(partition, "committedOffset", 0),
                committed_metadata: Some(text(partition, "committedMetadata")),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(super) fn committed(answer: &OffsetCommitResponse) -> Value {
    let topics = answer.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|p| json!({"partitionIndex": p.partition_index, "errorCode": p.error_code}));
        json!({"name": topic.name.as_str(), "partitions": partitions.collect::<Value>()})
    });
    json!({"topics": topics.collect::<Value>()})
}

pub(super) fn txn_commit(body: &Value) -> txn::TxnOffsetCommitRequest {
    txn::TxnOffsetCommitRequest {
        transactional_id: text(body, "transactionalId"),
        group_id: text(body, "groupId"),
        producer_id: number(body, "producerId", 0),
        producer_epoch: number(body, "producerEpoch", 0) as i16,
        generation_id_or_member_epoch: number(body, "generationIdOrMemberEpoch", -1) as i32,
        member_id: text(body, "memberId"),
        group_instance_id: optional_text(body, "groupInstanceId"),
        topics: list(body, "topics", |topic| txn::TxnOffsetCommitRequestTopic {
            name: text(topic, "name"),
            partitions: list(topic, "partitions", |partition| txn::TxnOffsetCommitRequestPartition {
                partition_index: number(partition, "partitionIndex", 0) as i32,
                committed_offset: number(partition, "committedOffset", 0),
                committed_metadata: Some(KStr::EMPTY),
                ..Default::default()
            }),
            ..Default::default()
        }),
    }
}

pub(super) fn txn_committed(answer: &TxnOffsetCommitResponse) -> Value {
    let topics = answer.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|p| json!({"partitionIndex": p.partition_index, "errorCode": p.error_code}));
        json!({"name": topic.name.as_str(), "partitions": partitions.collect::<Value>()})
    });
    json!({"topics": topics.collect::<Value>()})
}

pub(super) fn offset_fetch(group: &Value) -> fetch::OffsetFetchRequestGroup {
    fetch::OffsetFetchRequestGroup {
        group_id: text(group, "groupId"),
        member_id: optional_text(group, "memberId"),
        member_epoch: number(group, "memberEpoch", -1) as i32,
        topics: optional_list(group, "topics", |topic| fetch::OffsetFetchRequestTopics {
            name: text(topic, "name"),
            partition_indexes: list(topic, "partitionIndexes", |p| own_number(p) as i32),
            ..Default::default()
        }),
    }
}

pub(super) fn fetched(group: &OffsetFetchResponseGroup) -> Value {
    let topics = group.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|p| {
            json!({"partitionIndex": p.partition_index, "committedOffset": p.committed_offset, "errorCode": p.error_code})
        });
        json!({"name": topic.name.as_str(), "partitions": partitions.collect::<Value>()})
    });
    json!({
        "groupId": group.group_id.as_str(),
        "errorCode": group.error_code,
        "topics": topics.collect::<Value>(),
    })
}

pub(super) fn offset_delete(body: &Value) -> delete::OffsetDeleteRequest {
    delete::OffsetDeleteRequest {
        group_id: text(body, "groupId"),
        topics: list(body, "topics", |topic| delete::OffsetDeleteRequestTopic {
            name: text(topic, "name"),
            partitions: list(topic, "partitions", |partition| delete::OffsetDeleteRequestPartition {
                partition_index: number(partition, "partitionIndex", 0) as i32,
            }),
        }),
    }
}

pub(super) fn offsets_deleted(answer: &OffsetDeleteResponse) -> Value {
    let topics = answer.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partitions = partitions.map(|p| json!({"partitionIndex": p.partition_index, "errorCode": p.error_code}));
        json!({"name": topic.name.as_str(), "partitions": partitions.collect::<Value>()})
    });
    json!({"errorCode": answer.error_code, "topics": topics.collect::<Value>()})
}

/// A record of a streams group: the name of its type, its key and its value.
pub(super) fn record(record: &Record) -> Value {
    let mut entry = Map::new();
    let (name, key, value) = match record {
        Record::StreamsMetadata(_, value) => ("STREAMS_GROUP_METADATA", Value::Null, value.as_ref().map(group_value)),
        Record::StreamsMember(key, value) => (
            "STREAMS_GROUP_MEMBER_METADATA",
            json!(key.member_id.as_str()),
            value.as_ref().map(|v| {
                json!({
                    "instanceId": v.instance_id.as_ref().map(KStr::as_str),
                    "rackId": v.rack_id.as_ref().map(KStr::as_str),
                    "clientId": v.client_id.as_str(),
                    "clientHost": v.client_host.as_str(),
                    "rebalanceTimeoutMs": v.rebalance_timeout_ms,
                    "topologyEpoch": v.topology_epoch,
                    "processId": v.process_id.as_str(),
                    "userEndpoint": v.user_endpoint.as_ref().map(|e| json!({"host": e.host.as_str(), "port": e.port})),
                    "clientTags": v.client_tags.iter().map(|t| json!({"key": t.key.as_str(), "value": t.value.as_str()})).collect::<Value>(),
                })
            }),
        ),
        Record::StreamsTargetMetadata(_, value) => (
            "STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA",
            Value::Null,
            value
                .as_ref()
                .map(|v| json!({"assignmentEpoch": v.assignment_epoch, "assignmentTimestamp": v.assignment_timestamp})),
        ),
        Record::StreamsTargetMember(key, value) => (
            "STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER",
            json!(key.member_id.as_str()),
            value.as_ref().map(|v| {
                let tasks = |tasks: &[wire::messages::streams_group_target_assignment_member_value::TaskIds]| {
                    tasks.iter().map(|t| json!({"subtopologyId": t.subtopology_id.as_str(), "partitions": t.partitions})).collect::<Value>()
                };
                json!({
                    "activeTasks": tasks(&v.active_tasks),
                    "standbyTasks": tasks(&v.standby_tasks),
                    "warmupTasks": tasks(&v.warmup_tasks),
                })
            }),
        ),
        Record::StreamsCurrentMember(key, value) => (
            "STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT",
            json!(key.member_id.as_str()),
            value.as_ref().map(|v| {
                let tasks = |tasks: &[wire::messages::streams_group_current_member_assignment_value::TaskIds]| {
                    let each = tasks.iter().map(|t| {
                        let mut tasks = json!({"subtopologyId": t.subtopology_id.as_str(), "partitions": t.partitions});
                        if let Some(epochs) = &t.assignment_epochs {
                            tasks["assignmentEpochs"] = json!(epochs);
                        }
                        tasks
                    });
                    each.collect::<Value>()
                };
                json!({
                    "memberEpoch": v.member_epoch,
                    "previousMemberEpoch": v.previous_member_epoch,
                    "state": v.state,
                    "activeTasks": tasks(&v.active_tasks),
                    "standbyTasks": tasks(&v.standby_tasks),
                    "warmupTasks": tasks(&v.warmup_tasks),
                    "activeTasksPendingRevocation": tasks(&v.active_tasks_pending_revocation),
                    "standbyTasksPendingRevocation": tasks(&v.standby_tasks_pending_revocation),
                    "warmupTasksPendingRevocation": tasks(&v.warmup_tasks_pending_revocation),
                })
            }),
        ),
        Record::StreamsTopology(_, value) => {
            ("STREAMS_GROUP_TOPOLOGY", Value::Null, value.as_ref().map(|v| json!({"epoch": v.epoch})))
        }
        Record::GroupMetadata(_, value) => ("GROUP_METADATA", Value::Null, value.as_ref().map(|_| json!({}))),
        other => panic!("no streams record: {other:?}"),
    };
    entry.insert("type".to_owned(), json!(name));
    if !key.is_null() {
        entry.insert("member".to_owned(), key);
    }
    entry.insert("value".to_owned(), value.unwrap_or(Value::Null));
    Value::Object(entry)
}

fn group_value(value: &wire::messages::streams_group_metadata_value::StreamsGroupMetadataValue) -> Value {
    let configs = value.last_assignment_configs.iter().flatten();
    let configs: Map<_, _> = configs.map(|c| (c.key.to_string(), json!(c.value.as_str()))).collect();
    json!({
        "epoch": value.epoch,
        "metadataHash": value.metadata_hash,
        "validatedTopologyEpoch": value.validated_topology_epoch,
        "lastAssignmentConfigs": configs,
    })
}
