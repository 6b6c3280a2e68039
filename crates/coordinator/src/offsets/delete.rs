//! OffsetDelete (C D-7, D-8), and the offsets of a group that is deleted (C D-6).

use std::collections::BTreeMap;

use wire::messages::offset_commit_key::OffsetCommitKey;
use wire::messages::offset_delete_request::OffsetDeleteRequest;
use wire::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use wire::{ErrorCode, KStr};

use crate::outcome::Reply;
use crate::record::Record;
use crate::shard::Ctx;

/// Results by topic; a topic or partition that is named twice counts once, as in Kafka's maps.
type Results = Vec<(KStr, BTreeMap<i32, ErrorCode>)>;

pub(crate) fn delete(ctx: &mut Ctx<'_, '_>, request: &OffsetDeleteRequest) {
    let mut results = Results::new();
    let mut known = Vec::new();
    for topic in &request.topics {
        let partitions = ctx.env.topics.get(&topic.name).map_or(0, |topic| topic.partitions);
        for partition in &topic.partitions {
            let index = partition.partition_index;
            if (0..partitions).contains(&index) {
                known.push((&topic.name, index));
            } else {
                set(&mut results, &topic.name, index, ErrorCode::UnknownTopicOrPartition);
            }
        }
    }
    let mut response = OffsetDeleteResponse::default();
    if let Err(error) = admit(ctx, &request.group_id) {
        response.error_code = error.code();
    } else {
        for (topic, index) in known {
            let error = delete_one(ctx, &request.group_id, topic, index);
            set(&mut results, topic, index, error);
        }
        response.topics = results.into_iter().map(response_topic).collect();
    }
    ctx.reply(Reply::OffsetDelete(Box::new(response)));
}

fn admit(ctx: &Ctx<'_, '_>, group_id: &KStr) -> Result<(), ErrorCode> {
    if group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let group = ctx.state.group(group_id).ok_or(ErrorCode::GroupIdNotFound)?;
    group.admit_offset_delete(ctx.soft, group_id)
}

fn delete_one(ctx: &mut Ctx<'_, '_>, group_id: &KStr, topic: &KStr, partition: i32) -> ErrorCode {
    let subscribed = ctx.state.group(group_id).is_some_and(|group| group.is_subscribed(ctx.soft, group_id, topic));
    if subscribed {
        return ErrorCode::GroupSubscribedToTopic;
    }
    // Replaying the tombstone drops what transactions hold open, too.
    if ctx.state.offsets.slot(group_id, topic, partition).is_some() {
        ctx.out.records.push(tombstone(group_id, topic, partition));
    }
    ErrorCode::None
}

/// Tombstones for all offsets of a group, those that transactions hold open included.
pub(crate) fn tombstones_of_group(ctx: &mut Ctx<'_, '_>, group_id: &KStr) {
    for (topic, slots) in ctx.state.offsets.topics(group_id) {
        let tombstones = slots.keys().map(|&partition| tombstone(group_id, topic, partition));
        ctx.out.records.extend(tombstones);
    }
}

pub(super) fn tombstone(group_id: &KStr, topic: &KStr, partition: i32) -> Record {
    let key = OffsetCommitKey { group: group_id.clone(), topic: topic.clone(), partition };
    Record::OffsetCommit(key, None)
}

fn set(results: &mut Results, topic: &KStr, partition: i32, error: ErrorCode) {
    let at = results.iter().position(|(name, _)| name == topic).unwrap_or_else(|| {
        results.push((topic.clone(), BTreeMap::new()));
        results.len() - 1
    });
    results[at].1.insert(partition, error);
}

fn response_topic((name, partitions): (KStr, BTreeMap<i32, ErrorCode>)) -> OffsetDeleteResponseTopic {
    let partitions = partitions
        .into_iter()
        .map(|(partition_index, error)| OffsetDeleteResponsePartition { partition_index, error_code: error.code() });
    OffsetDeleteResponseTopic { name, partitions: partitions.collect() }
}
