//! The little bit of server that the scenarios need: requests to the shard and back, and what a shard asks a server for.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::KStr;
use wire::messages::{
    consumer_group_heartbeat_request as consumer, heartbeat_request::HeartbeatRequest, join_group_request as join,
    leave_group_request as leave, sync_group_request::SyncGroupRequest,
};

use super::messages::{self, number, optional_text, text};
use super::scenarios::Run;
use crate::command::{Caller, Command};
use crate::config::GroupOverrides;
use crate::outcome::{Effect, InternalTopic, Reply};
use crate::state_log::{EndMarker, Producer};

/// Takes the reply of one kind.
macro_rules! ask {
    ($run:ident, $command:expr, $reply:ident) => {
        match $run.bench.ask($command) {
            Reply::$reply(reply) => reply,
            other => panic!("another reply: {other:?}"),
        }
    };
}

/// The answer in Kafka's JSON form; `None` for what is not played here.
pub(super) fn answer(run: &mut Run<'_>, api: &str, version: i16, client: &str, body: &Value) -> Option<Value> {
    let caller = Caller { client_id: KStr::copy(client), client_host: KStr::from("/127.0.0.1"), api_version: version };
    let answer = streams(run, api, &caller, body)
        .or_else(|| offsets(run, api, &caller, body))
        .or_else(|| other_groups(run, api, &caller, body))
        .or_else(|| admin(run, api, &caller, body));
    carry_out_effects(run);
    answer
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn names(value: &Value) -> Vec<KStr> {
    items(value).filter_map(Value::as_str).map(KStr::copy).collect()
}

fn streams(run: &mut Run<'_>, api: &str, caller: &Caller, body: &Value) -> Option<Value> {
    let version = caller.api_version;
    match api {
        "StreamsGroupHeartbeat" => {
            let request = Box::new(messages::heartbeat(body));
            let answer = ask!(run, Command::StreamsGroupHeartbeat(caller.clone(), request), StreamsGroupHeartbeat);
            Some(messages::heartbeat_answer(&answer, version))
        }
        "StreamsGroupDescribe" => {
            let include_topology_description = body["includeTopologyDescription"].as_bool().unwrap_or(false);
            let mut groups = Vec::new();
            for group_id in names(&body["groupIds"]) {
                let caller = caller.clone();
                let command = Command::StreamsGroupDescribe { caller, group_id, include_topology_description };
                let described = ask!(run, command, StreamsGroupDescribe);
                let mut group = messages::described(&described, version);
                if body["includeAuthorizedOperations"] == true {
                    group["authorizedOperations"] = json!(3400);
                }
                groups.push(group);
            }
            Some(json!({"groups": groups}))
        }
        "StreamsGroupTopologyDescriptionUpdate" => {
            let request = Box::new(messages::description_update(body));
            let command = Command::StreamsTopologyDescriptionUpdate(caller.clone(), request);
            let answer = ask!(run, command, StreamsTopologyDescriptionUpdate);
            Some(json!({"errorCode": answer.error_code}))
        }
        "ListGroups" => {
            let command =
                Command::ListGroups { states: names(&body["statesFilter"]), types: names(&body["typesFilter"]) };
            Some(messages::listed(&ask!(run, command, ListGroups), version))
        }
        "DeleteGroups" => {
            let mut results = Vec::new();
            for group_id in names(&body["groupsNames"]) {
                let result = ask!(run, Command::DeleteGroup { group_id }, DeleteGroup);
                results.push(messages::deleted(&result));
            }
            Some(json!({"results": results}))
        }
        _ => None,
    }
}

/// By topic names, as before version 10.
fn offsets(run: &mut Run<'_>, api: &str, caller: &Caller, body: &Value) -> Option<Value> {
    let caller = caller.clone();
    match api {
        "OffsetCommit" if caller.api_version < 10 => {
            let request = Box::new(messages::offset_commit(body));
            let answer = ask!(run, Command::OffsetCommit(caller, request), OffsetCommit);
            Some(messages::committed(&answer))
        }
        "TxnOffsetCommit" => {
            let request = Box::new(messages::txn_commit(body));
            let answer = ask!(run, Command::TxnOffsetCommit(caller, request), TxnOffsetCommit);
            Some(messages::txn_committed(&answer))
        }
        "OffsetFetch" if caller.api_version < 10 => {
            let mut groups = Vec::new();
            for group in items(&body["groups"]) {
                let group = Box::new(messages::offset_fetch(group));
                let command = Command::OffsetFetch { caller: caller.clone(), group, require_stable: false };
                let fetched = ask!(run, command, OffsetFetch);
                groups.push(messages::fetched(&fetched));
            }
            Some(json!({"groups": groups}))
        }
        "OffsetDelete" => {
            let request = Box::new(messages::offset_delete(body));
            let answer = ask!(run, Command::OffsetDelete(caller, request), OffsetDelete);
            Some(messages::offsets_deleted(&answer))
        }
        "FindCoordinator" if body["keyType"] == 1 => Some(json!({"coordinators": [{"errorCode": 0}]})),
        "InitProducerId" => Some(json!({"errorCode": 0, "producerId": 7, "producerEpoch": 0})),
        "EndTxn" => {
            let producer = Producer { id: 7, epoch: 0 };
            let commit = body["committed"] == true;
            let marker = EndMarker { producer, commit, coordinator_epoch: 0, raises_epoch: false };
            run.bench.ask(Command::TxnMarker(marker));
            Some(json!({"errorCode": 0}))
        }
        _ => None,
    }
}

/// Requests of classic and consumer groups, as far as they meet streams groups.
fn other_groups(run: &mut Run<'_>, api: &str, caller: &Caller, body: &Value) -> Option<Value> {
    let (group_id, member_id) = (text(body, "groupId"), text(body, "memberId"));
    let caller = caller.clone();
    match api {
        "JoinGroup" => {
            let protocols = items(&body["protocols"]);
            let protocols =
                protocols.map(|each| join::JoinGroupRequestProtocol { name: text(each, "name"), ..Default::default() });
            let request = join::JoinGroupRequest {
                group_id,
                session_timeout_ms: number(body, "sessionTimeoutMs", 0) as i32,
                rebalance_timeout_ms: number(body, "rebalanceTimeoutMs", 0) as i32,
                member_id,
                protocol_type: text(body, "protocolType"),
                protocols: protocols.collect(),
                ..Default::default()
            };
            let answer = ask!(run, Command::JoinGroup(caller, Box::new(request)), JoinGroup);
            Some(json!({"errorCode": answer.error_code, "memberId": answer.member_id.as_str()}))
        }
        "SyncGroup" => {
            let request = SyncGroupRequest {
                group_id,
                member_id,
                generation_id: number(body, "generationId", 0) as i32,
                protocol_type: optional_text(body, "protocolType"),
                protocol_name: optional_text(body, "protocolName"),
                ..Default::default()
            };
            let answer = ask!(run, Command::SyncGroup(caller, Box::new(request)), SyncGroup);
            Some(json!({"errorCode": answer.error_code}))
        }
        "Heartbeat" => {
            let generation_id = number(body, "generationId", 0) as i32;
            let request = HeartbeatRequest { group_id, member_id, generation_id, ..Default::default() };
            let answer = ask!(run, Command::Heartbeat(caller, Box::new(request)), Heartbeat);
            Some(json!({"errorCode": answer.error_code}))
        }
        "LeaveGroup" => {
            let members = names(&body["members"]).into_iter().chain(items(&body["members"]).filter_map(|member| {
                // `{m1: {}}` in the scenarios.
                member.as_object()?.keys().next().map(|id| KStr::copy(id))
            }));
            let members = members.map(|member_id| leave::MemberIdentity { member_id, ..Default::default() });
            let request = leave::LeaveGroupRequest { group_id, members: members.collect(), ..Default::default() };
            let answer = ask!(run, Command::LeaveGroup(caller, Box::new(request)), LeaveGroup);
            let members = answer.members.iter();
            let members =
                members.map(|member| json!({"memberId": member.member_id.as_str(), "errorCode": member.error_code}));
            Some(json!({"errorCode": answer.error_code, "members": members.collect::<Value>()}))
        }
        "ConsumerGroupHeartbeat" => {
            let request = consumer::ConsumerGroupHeartbeatRequest {
                group_id,
                member_id: member_id.clone(),
                member_epoch: number(body, "memberEpoch", 0) as i32,
                rebalance_timeout_ms: number(body, "rebalanceTimeoutMs", -1) as i32,
                subscribed_topic_names: body["subscribedTopicNames"]
                    .as_array()
                    .map(|_| names(&body["subscribedTopicNames"])),
                topic_partitions: body["topicPartitions"].as_array().map(|_| Vec::new()),
                ..Default::default()
            };
            let command = Command::ConsumerGroupHeartbeat(caller, Box::new(request));
            let answer = ask!(run, command, ConsumerGroupHeartbeat);
            Some(json!({
                "errorCode": answer.error_code,
                "memberId": answer.member_id.as_ref().map(KStr::as_str),
                "memberEpoch": answer.member_epoch,
            }))
        }
        _ => None,
    }
}

fn admin(run: &mut Run<'_>, api: &str, caller: &Caller, body: &Value) -> Option<Value> {
    match api {
        "ConsumerGroupDescribe" => {
            let group_id = names(&body["groupIds"]).remove(0);
            let command = Command::ConsumerGroupDescribe { caller: caller.clone(), group_id };
            let group = ask!(run, command, ConsumerGroupDescribe);
            Some(json!({"groups": [{"errorCode": group.error_code}]}))
        }
        "DescribeGroups" => {
            let group_id = names(&body["groups"]).remove(0);
            let group = ask!(run, Command::DescribeGroup { caller: caller.clone(), group_id }, DescribeGroup);
            Some(json!({"groups": [{"errorCode": group.error_code, "groupState": group.group_state.as_str()}]}))
        }
        "IncrementalAlterConfigs" => {
            let mut changed = run.overrides.clone();
            for config in items(&body["resources"][0]["configs"]) {
                changed.insert(text(config, "name").to_string(), text(config, "value").to_string());
            }
            let overrides = overrides(&changed)?;
            if let Err(message) = overrides.check(&run.bench.config().broker) {
                return Some(json!({"responses": [{"errorCode": 40, "errorMessage": message}]}));
            }
            run.overrides = changed;
            let group = run.group();
            run.bench.configure_group(&group, overrides);
            Some(json!({"responses": [{"errorCode": 0}]}))
        }
        "CreatePartitions" => {
            for topic in items(&body["topics"]) {
                run.bench.set_topic(&text(topic, "name"), number(topic, "count", 0) as i32);
            }
            Some(json!({"results": [{"errorCode": 0}]}))
        }
        _ => None,
    }
}

fn carry_out_effects(run: &mut Run<'_>) {
    for effect in run.bench.effects() {
        match effect {
            Effect::CreateInternalTopics { group_id, topics } => {
                let mut failures = Vec::new();
                for topic in topics {
                    match refusal(&topic) {
                        Some(message) => failures.push((topic.name, message)),
                        None => _ = run.bench.set_topic(&topic.name, topic.partitions),
                    }
                }
                run.bench.ask(Command::InternalTopicsCreated { group_id, failures, unauthorized: Vec::new() });
            }
            Effect::ComputeAssignment { group_id, group_epoch, input } => {
                let target = input.compute();
                run.bench.ask(Command::AssignmentReady { group_id, group_epoch, target });
            }
            Effect::ResolveRegex { .. } => {}
        }
    }
}

/// Why a server of one node would not create the topic.
fn refusal(topic: &InternalTopic) -> Option<String> {
    let known = ["cleanup.policy", "segment.bytes", "retention.ms", "message.timestamp.type"];
    let unknown = topic.configs.iter().find(|(key, _)| !known.contains(&key.as_str()));
    if let Some((key, _)) = unknown {
        return Some(format!("Unknown topic config name: {key}"));
    }
    (topic.replication_factor > 1).then(|| "Replication factor is larger than the number of brokers".to_owned())
}

/// Group configs by Kafka's names; `None` for one that is not known here.
pub(super) fn overrides(configs: &BTreeMap<String, String>) -> Option<GroupOverrides> {
    let mut overrides = GroupOverrides::default();
    for (name, value) in configs {
        let number = value.parse::<i64>().ok();
        let int = number.map(|number| number as i32);
        match name.as_str() {
            "streams.session.timeout.ms" => overrides.streams_session_timeout_ms = Some(int?),
            "streams.heartbeat.interval.ms" => overrides.streams_heartbeat_interval_ms = Some(int?),
            "streams.num.standby.replicas" => overrides.streams_num_standby_replicas = Some(int?),
            "streams.initial.rebalance.delay.ms" => overrides.streams_initial_rebalance_delay_ms = Some(int?),
            "streams.assignment.interval.ms" => overrides.streams_assignment_interval_ms = Some(int?),
            "streams.task.offset.interval.ms" => overrides.streams_task_offset_interval_ms = Some(int?),
            "streams.num.warmup.replicas" => overrides.streams_num_warmup_replicas = Some(int?),
            "streams.acceptable.recovery.lag" => overrides.streams_acceptable_recovery_lag = Some(number?),
            "streams.assignor.name" => overrides.streams_assignor_name = Some(KStr::copy(value)),
            "streams.rack.aware.assignment.tags" => {
                let tags = value.split(',').filter(|tag| !tag.is_empty()).map(KStr::copy);
                overrides.streams_rack_aware_assignment_tags = Some(tags.collect());
            }
            _ => return None,
        }
    }
    Some(overrides)
}
