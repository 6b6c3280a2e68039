//! What groups have committed.

use std::collections::BTreeMap;

use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_commit_response::OffsetCommitResponse;
use wire::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use wire::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup};
use wire::messages::offset_fetch_response::OffsetFetchResponse;
use wire::{ErrorCode, KStr};

use super::TopicPartition;
use crate::error::ClientError;
use crate::router::Client;

/// The newest versions that name topics; later ones have ids only.
const FETCH_BY_NAME: i16 = 9;
const COMMIT_BY_NAME: i16 = 9;

/// All committed offsets of a group; none if there is no such group.
pub async fn committed(client: &mut Client, group_id: &str) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
    let request = OffsetFetchRequest {
        group_id: KStr::copy(group_id),
        topics: None,
        groups: vec![OffsetFetchRequestGroup {
            group_id: KStr::copy(group_id),
            member_epoch: -1,
            topics: None,
            ..Default::default()
        }],
        ..Default::default()
    };
    let error_of =
        |response: &OffsetFetchResponse| response.groups.first().map_or(response.error_code, |group| group.error_code);
    let response = match client.any().await?.version_of::<OffsetFetchRequest>()? >= 8 {
        true => client.call_coordinator_up_to(group_id, &by_group(request), FETCH_BY_NAME, error_of).await?,
        false => {
            let request = OffsetFetchRequest { groups: Vec::new(), ..request };
            client.call_coordinator_up_to(group_id, &request, FETCH_BY_NAME, error_of).await?
        }
    };
    ClientError::check(error_of(&response), None)?;
    let mut offsets = BTreeMap::new();
    let mut add = |topic: &KStr, partition: i32, offset: i64| {
        if offset >= 0 {
            offsets.insert(TopicPartition::new(topic, partition), offset);
        }
    };
    for topic in &response.topics {
        topic.partitions.iter().for_each(|p| add(&topic.name, p.partition_index, p.committed_offset));
    }
    for topic in response.groups.iter().flat_map(|group| &group.topics) {
        topic.partitions.iter().for_each(|p| add(&topic.name, p.partition_index, p.committed_offset));
    }
    Ok(offsets)
}

/// From version 8 on groups are asked for in a list, and the old fields must be as they are by default.
fn by_group(request: OffsetFetchRequest) -> OffsetFetchRequest {
    OffsetFetchRequest { groups: request.groups, ..Default::default() }
}

/// Commits for a group without members, each partition with an outcome of its own.
pub async fn commit(
    client: &mut Client,
    group_id: &str,
    offsets: &BTreeMap<TopicPartition, i64>,
) -> Result<BTreeMap<TopicPartition, ErrorCode>, ClientError> {
    let mut topics: BTreeMap<&str, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
    for (at, offset) in offsets {
        topics.entry(&at.topic).or_default().push(OffsetCommitRequestPartition {
            partition_index: at.partition,
            committed_offset: *offset,
            committed_leader_epoch: -1,
            committed_metadata: Some(KStr::EMPTY),
        });
    }
    let topics = topics.into_iter().map(|(name, partitions)| OffsetCommitRequestTopic {
        name: KStr::copy(name),
        partitions,
        ..Default::default()
    });
    let request = OffsetCommitRequest {
        group_id: KStr::copy(group_id),
        generation_id_or_member_epoch: -1,
        retention_time_ms: -1,
        topics: topics.collect(),
        ..Default::default()
    };
    // An error that concerns the coordinator is on all partitions.
    let error_of = |response: &OffsetCommitResponse| {
        response.topics.first().and_then(|topic| topic.partitions.first()).map_or(0, |p| p.error_code)
    };
    let response = client.call_coordinator_up_to(group_id, &request, COMMIT_BY_NAME, error_of).await?;
    let topics = response.topics.iter();
    Ok(topics
        .flat_map(|topic| topic.partitions.iter().map(|p| (TopicPartition::new(&topic.name, p.partition_index), p)))
        .map(|(at, partition)| (at, ErrorCode::from_code(partition.error_code)))
        .collect())
}

/// Deletes committed offsets, each partition with an outcome of its own; refused for topics that the group subscribes to.
pub async fn delete(
    client: &mut Client,
    group_id: &str,
    partitions: &[TopicPartition],
) -> Result<BTreeMap<TopicPartition, ErrorCode>, ClientError> {
    let mut topics: BTreeMap<&str, Vec<OffsetDeleteRequestPartition>> = BTreeMap::new();
    for at in partitions {
        topics.entry(&at.topic).or_default().push(OffsetDeleteRequestPartition { partition_index: at.partition });
    }
    let topics =
        topics.into_iter().map(|(name, partitions)| OffsetDeleteRequestTopic { name: KStr::copy(name), partitions });
    let request = OffsetDeleteRequest { group_id: KStr::copy(group_id), topics: topics.collect() };
    let response = client.call_coordinator(group_id, &request, |response| response.error_code).await?;
    ClientError::check(response.error_code, None)?;
    let topics = response.topics.iter();
    Ok(topics
        .flat_map(|topic| topic.partitions.iter().map(|p| (TopicPartition::new(&topic.name, p.partition_index), p)))
        .map(|(at, partition)| (at, ErrorCode::from_code(partition.error_code)))
        .collect())
}
