//! The thin layer between requests and commands that a broker has: taking requests of many groups apart, and putting
//! the answers together. The server's own is asynchronous and bound to connections.

use bytes::Bytes;
use coordinator::offsets::{refused_by_transaction, refused_commit};
use coordinator::{Caller, Command, Reply, TopicImage};
use wire::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use wire::messages::consumer_group_describe_response::ConsumerGroupDescribeResponse;
use wire::messages::delete_groups_request::DeleteGroupsRequest;
use wire::messages::delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse};
use wire::messages::describe_groups_request::DescribeGroupsRequest;
use wire::messages::describe_groups_response::DescribeGroupsResponse;
use wire::messages::list_groups_request::ListGroupsRequest;
use wire::messages::list_groups_response::ListGroupsResponse;
use wire::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use wire::messages::streams_group_describe_request::StreamsGroupDescribeRequest;
use wire::messages::streams_group_describe_response::StreamsGroupDescribeResponse;
use wire::{ErrorCode, Message, Reader, Writer};

/// The commands that a request comes to. `Err` names what is wrong with it.
pub fn commands(api: i16, caller: Caller, body: &Bytes) -> Result<Vec<Command>, String> {
    let version = caller.api_version;
    Ok(match api {
        8 => vec![Command::OffsetCommit(caller, Box::new(read(body, version)?))],
        9 => fetches(caller, read(body, version)?),
        11 => vec![Command::JoinGroup(caller, Box::new(read(body, version)?))],
        12 => vec![Command::Heartbeat(caller, Box::new(read(body, version)?))],
        13 => vec![Command::LeaveGroup(caller, Box::new(read(body, version)?))],
        14 => vec![Command::SyncGroup(caller, Box::new(read(body, version)?))],
        15 => {
            let request: DescribeGroupsRequest = read(body, version)?;
            let command = |group_id| Command::DescribeGroup { caller: caller.clone(), group_id };
            request.groups.into_iter().map(command).collect()
        }
        16 => {
            let request: ListGroupsRequest = read(body, version)?;
            vec![Command::ListGroups { states: request.states_filter, types: request.types_filter }]
        }
        28 => vec![Command::TxnOffsetCommit(caller, Box::new(read(body, version)?))],
        42 => {
            let mut request: DeleteGroupsRequest = read(body, version)?;
            request.groups_names.sort();
            request.groups_names.dedup();
            request.groups_names.into_iter().map(|group_id| Command::DeleteGroup { group_id }).collect()
        }
        47 => vec![Command::OffsetDelete(caller, Box::new(read(body, version)?))],
        68 => vec![Command::ConsumerGroupHeartbeat(caller, Box::new(read(body, version)?))],
        69 => {
            let request: ConsumerGroupDescribeRequest = read(body, version)?;
            let command = |group_id| Command::ConsumerGroupDescribe { caller: caller.clone(), group_id };
            request.group_ids.into_iter().map(command).collect()
        }
        88 => vec![Command::StreamsGroupHeartbeat(caller, Box::new(read(body, version)?))],
        89 => {
            let request: StreamsGroupDescribeRequest = read(body, version)?;
            let include_topology_description = request.include_topology_description;
            let command = |group_id| Command::StreamsGroupDescribe {
                caller: caller.clone(),
                group_id,
                include_topology_description,
            };
            request.group_ids.into_iter().map(command).collect()
        }
        93 => vec![Command::StreamsTopologyDescriptionUpdate(caller, Box::new(read(body, version)?))],
        _ => return Err(format!("API {api} is not one of the coordinator")),
    })
}

/// The body of the response to a request that the coordinator could not serve, where it is more than an error.
pub fn refused(
    api: i16,
    version: i16,
    body: &Bytes,
    topics: &TopicImage,
    error: ErrorCode,
) -> Option<Result<Bytes, String>> {
    let refused = |body: &Bytes| match api {
        8 => write(&refused_commit(topics, version, &read(body, version)?, error), version),
        28 => write(&refused_by_transaction(topics, version, &read(body, version)?, error), version),
        _ => {
            let request: DeleteGroupsRequest = read(body, version)?;
            let result = |group_id| DeletableGroupResult { group_id, error_code: error.code(), ..Default::default() };
            let results = request.groups_names.into_iter().map(result).collect();
            write(&DeleteGroupsResponse { results, ..Default::default() }, version)
        }
    };
    [8, 28, 42].contains(&api).then(|| refused(body))
}

fn read<M: Message>(body: &Bytes, version: i16) -> Result<M, String> {
    let mut reader = Reader::new(body);
    let message = M::decode(&mut reader, version).map_err(|error| error.to_string())?;
    reader.finish().map_err(|error| error.to_string())?;
    Ok(message)
}

fn fetches(caller: Caller, request: OffsetFetchRequest) -> Vec<Command> {
    let require_stable = request.require_stable;
    let groups = if caller.api_version >= 8 {
        request.groups
    } else {
        let topics = request.topics.map(|topics| {
            let topic =
                |topic: wire::messages::offset_fetch_request::OffsetFetchRequestTopic| OffsetFetchRequestTopics {
                    name: topic.name,
                    partition_indexes: topic.partition_indexes,
                    ..Default::default()
                };
            topics.into_iter().map(topic).collect()
        });
        vec![OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }]
    };
    let command = |group| Command::OffsetFetch { caller: caller.clone(), group: Box::new(group), require_stable };
    groups.into_iter().map(command).collect()
}

/// The body of the response that the replies to one request make.
pub fn response(version: i16, replies: Vec<Reply>) -> Result<Bytes, String> {
    let mut many = Many::default();
    for reply in replies {
        match reply {
            Reply::JoinGroup(message) => return write(&*message, version),
            Reply::SyncGroup(message) => return write(&*message, version),
            Reply::Heartbeat(message) => return write(&message, version),
            Reply::LeaveGroup(message) => return write(&*message, version),
            Reply::ConsumerGroupHeartbeat(message) => return write(&*message, version),
            Reply::StreamsGroupHeartbeat(message) => return write(&*message, version),
            Reply::StreamsTopologyDescriptionUpdate(message) => return write(&*message, version),
            Reply::OffsetCommit(message) => return write(&*message, version),
            Reply::TxnOffsetCommit(message) => return write(&*message, version),
            Reply::OffsetDelete(message) => return write(&*message, version),
            Reply::ListGroups(groups) => {
                return write(&ListGroupsResponse { groups, ..Default::default() }, version);
            }
            Reply::OffsetFetch(group) => many.fetched.push(*group),
            Reply::DescribeGroup(group) => many.described.push(*group),
            Reply::ConsumerGroupDescribe(group) => many.consumers.push(*group),
            Reply::StreamsGroupDescribe(group) => many.streams.push(*group),
            Reply::DeleteGroup(result) => many.deleted.push(*result),
            Reply::Sessions(_) | Reply::Plan(_) | Reply::Done => {
                return Err("a command of the broker itself has no response".into());
            }
        }
    }
    many.write(version)
}

/// Replies of the APIs that take several groups.
#[derive(Default)]
struct Many {
    fetched: Vec<OffsetFetchResponseGroup>,
    described: Vec<wire::messages::describe_groups_response::DescribedGroup>,
    consumers: Vec<wire::messages::consumer_group_describe_response::DescribedGroup>,
    streams: Vec<wire::messages::streams_group_describe_response::DescribedGroup>,
    deleted: Vec<wire::messages::delete_groups_response::DeletableGroupResult>,
}

impl Many {
    fn write(self, version: i16) -> Result<Bytes, String> {
        if !self.fetched.is_empty() {
            return write(&fetched(version, self.fetched), version);
        }
        if !self.described.is_empty() {
            return write(&DescribeGroupsResponse { groups: self.described, ..Default::default() }, version);
        }
        if !self.consumers.is_empty() {
            return write(&ConsumerGroupDescribeResponse { groups: self.consumers, ..Default::default() }, version);
        }
        if !self.streams.is_empty() {
            return write(&StreamsGroupDescribeResponse { groups: self.streams, ..Default::default() }, version);
        }
        write(&DeleteGroupsResponse { results: self.deleted, ..Default::default() }, version)
    }
}

fn fetched(version: i16, groups: Vec<OffsetFetchResponseGroup>) -> OffsetFetchResponse {
    if version >= 8 {
        return OffsetFetchResponse { groups, ..Default::default() };
    }
    let Some(group) = groups.into_iter().next() else {
        return OffsetFetchResponse::default();
    };
    let topics = group.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
            })
            .collect(),
    });
    OffsetFetchResponse { topics: topics.collect(), error_code: group.error_code, ..Default::default() }
}

fn write(message: &impl Message, version: i16) -> Result<Bytes, String> {
    let mut writer = Writer::new();
    message.encode(&mut writer, version).map_err(|error| error.to_string())?;
    Ok(writer.into_bytes())
}

/// What a failed append is to the client (C R-6).
pub fn error_of_append(error: ErrorCode) -> ErrorCode {
    use ErrorCode as E;
    match error {
        E::UnknownTopicOrPartition | E::NotEnoughReplicas | E::NotEnoughReplicasAfterAppend | E::RequestTimedOut => {
            E::CoordinatorNotAvailable
        }
        E::NotLeaderOrFollower | E::KafkaStorageError => E::NotCoordinator,
        E::MessageTooLarge | E::RecordListTooLarge | E::InvalidFetchSize => E::UnknownServerError,
        E::NetworkException => E::CoordinatorLoadInProgress,
        other => other,
    }
}
