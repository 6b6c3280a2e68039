//! OffsetCommit (C 10.1), and what TxnOffsetCommit has in common with it.

use wire::messages::offset_commit_key::OffsetCommitKey;
use wire::messages::offset_commit_request::OffsetCommitRequest;
use wire::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use wire::messages::offset_commit_value::OffsetCommitValue;
use wire::{ErrorCode, KStr, Uuid};

use crate::command::Caller;
use crate::group::{Admission, Group, OffsetClient, classic};
use crate::outcome::Reply;
use crate::record::Record;
use crate::shard::Ctx;
use crate::topics::TopicImage;

/// First version that names topics by id only.
const OFFSET_COMMIT_BY_ID: i16 = 10;
/// First version that may say that there is no such group.
const OFFSET_COMMIT_GROUP_NOT_FOUND: i16 = 9;

pub(crate) fn commit(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &OffsetCommitRequest) {
    let commit = Commit {
        group_id: &request.group_id,
        client: OffsetClient {
            member_id: Some(&request.member_id),
            instance_id: request.group_instance_id.as_ref(),
            epoch: request.generation_id_or_member_epoch,
            api_version: caller.api_version,
            transactional: false,
        },
        no_group: if caller.api_version >= OFFSET_COMMIT_GROUP_NOT_FOUND {
            ErrorCode::GroupIdNotFound
        } else {
            ErrorCode::IllegalGeneration
        },
        // Older and newer versions read as -1.
        expire_time_ms: match request.retention_time_ms {
            -1 => -1,
            retention_ms => ctx.at.wall_ms.saturating_add(retention_ms),
        },
        asked: asked(ctx.env.topics, caller.api_version, request),
    };
    let response = response(commit.run(ctx));
    ctx.reply(Reply::OffsetCommit(Box::new(response)));
}

/// The answer to a commit that never reached its group, or that the log did not take: what exists gets the error, the rest the
/// one that it would have got anyway (C O-1).
pub fn refused_commit(
    image: &TopicImage,
    api_version: i16,
    request: &OffsetCommitRequest,
    error: ErrorCode,
) -> OffsetCommitResponse {
    response(asked(image, api_version, request).fail(error))
}

fn asked(image: &TopicImage, api_version: i16, request: &OffsetCommitRequest) -> Asked {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|p| AskedPartition {
            index: p.partition_index,
            offset: p.committed_offset,
            leader_epoch: p.committed_leader_epoch,
            metadata: p.committed_metadata.clone(),
        });
        (topic.name.clone(), topic.topic_id, partitions.collect())
    });
    resolve(image, api_version >= OFFSET_COMMIT_BY_ID, topics)
}

fn response(results: Vec<TopicResult>) -> OffsetCommitResponse {
    let topics = results.into_iter().map(|topic| {
        let partition = |(partition_index, error): (i32, ErrorCode)| OffsetCommitResponsePartition {
            partition_index,
            error_code: error.code(),
        };
        OffsetCommitResponseTopic {
            name: topic.name,
            topic_id: topic.id,
            partitions: topic.partitions.into_iter().map(partition).collect(),
        }
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

/// A commit of either kind, its topics looked up.
pub(super) struct Commit<'a> {
    pub group_id: &'a KStr,
    pub client: OffsetClient<'a>,
    /// The error for a group that does not exist.
    pub no_group: ErrorCode,
    /// -1: none.
    pub expire_time_ms: i64,
    pub asked: Asked,
}

/// What is asked for, apart by whether the topics exist.
#[derive(Default)]
pub(super) struct Asked {
    pub topics: Vec<AskedTopic>,
    pub unknown: Vec<TopicResult>,
}

impl Asked {
    /// Everything that exists gets the error.
    pub(super) fn fail(self, error: ErrorCode) -> Vec<TopicResult> {
        let mut results = self.unknown;
        for topic in &self.topics {
            let TopicResult { name, id, partitions } = topic.fail(error);
            add(&mut results, name, id, partitions);
        }
        results
    }
}

pub(super) struct AskedTopic {
    name: KStr,
    id: Uuid,
    partitions: Vec<AskedPartition>,
}

pub(super) struct AskedPartition {
    pub index: i32,
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Option<KStr>,
}

/// What became of the partitions of one topic.
pub(super) struct TopicResult {
    pub name: KStr,
    pub id: Uuid,
    pub partitions: Vec<(i32, ErrorCode)>,
}

/// Looks topics up by the name or the id that the version carries (C O-1).
pub(super) fn resolve(
    image: &TopicImage,
    by_id: bool,
    topics: impl Iterator<Item = (KStr, Uuid, Vec<AskedPartition>)>,
) -> Asked {
    let mut asked = Asked::default();
    for (name, id, partitions) in topics {
        let name = match by_id {
            true => image.name_of(&id).cloned(),
            false => Some(name),
        };
        let topic = name.as_ref().and_then(|name| image.get(name));
        let error = match by_id {
            true => ErrorCode::UnknownTopicId,
            false => ErrorCode::UnknownTopicOrPartition,
        };
        let Some(topic) = topic else {
            let partitions = partitions.iter().map(|p| (p.index, error)).collect();
            asked.unknown.push(TopicResult { name: name.unwrap_or_default(), id, partitions });
            continue;
        };
        // Known, hence named.
        let name = name.unwrap_or_default();
        let (known, unknown): (Vec<_>, Vec<_>) =
            partitions.into_iter().partition(|p| (0..topic.partitions).contains(&p.index));
        let unknown = unknown.iter().map(|p| (p.index, ErrorCode::UnknownTopicOrPartition));
        add(&mut asked.unknown, name.clone(), topic.id, unknown.collect());
        if !known.is_empty() {
            let partitions = known;
            asked.topics.push(AskedTopic { name, id: topic.id, partitions });
        }
    }
    asked
}

impl Commit<'_> {
    /// Writes what may be committed. The results of partitions that do not exist come first (C O-1).
    pub(super) fn run(self, ctx: &mut Ctx<'_, '_>) -> Vec<TopicResult> {
        let Commit { asked, .. } = &self;
        let decided = match self.decide(ctx) {
            Ok(decided) => decided,
            // There is no error for the whole request, so each partition gets it.
            Err(error) => asked.topics.iter().map(|topic| topic.fail(error)).collect(),
        };
        let mut results = self.asked.unknown;
        for topic in decided {
            add(&mut results, topic.name, topic.id, topic.partitions);
        }
        results
    }

    fn decide(&self, ctx: &mut Ctx<'_, '_>) -> Result<Vec<TopicResult>, ErrorCode> {
        if self.asked.topics.is_empty() {
            return Ok(Vec::new());
        }
        // OffsetCommit may name a group with an empty id (C R-5).
        if self.client.transactional && self.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let state = ctx.state;
        let group = state.group(self.group_id);
        let admission = match group {
            // Tools commit for groups that do not exist, and thereby create them (C O-2, X-3).
            None if self.client.epoch < 0 => Admission::All,
            None => return Err(self.no_group),
            Some(group) => group.admit_commit(ctx.soft, self.group_id, &self.client)?,
        };
        if let (Some(group), Admission::OwnedSince(error)) = (group, admission) {
            self.check_ownership(ctx, group, error)?;
        }
        if let (Some(Group::Classic(_)), Some(member_id), false) =
            (group, self.client.member_id, self.client.transactional)
        {
            classic::offsets_committed(ctx, self.group_id, member_id);
        }
        let topics = self.asked.topics.iter();
        Ok(topics.map(|topic| self.write(ctx, topic)).collect())
    }

    /// One partition that the member does not own fails all of them (C O-7), but for those that fail on their own.
    fn check_ownership(&self, ctx: &Ctx<'_, '_>, group: &Group, error: ErrorCode) -> Result<(), ErrorCode> {
        for topic in &self.asked.topics {
            for partition in &topic.partitions {
                if !too_long(ctx, partition) && !group.may_commit(&self.client, &topic.name, &topic.id, partition.index)
                {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn write(&self, ctx: &mut Ctx<'_, '_>, topic: &AskedTopic) -> TopicResult {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            if too_long(ctx, partition) {
                partitions.push((partition.index, ErrorCode::OffsetMetadataTooLarge));
                continue;
            }
            partitions.push((partition.index, ErrorCode::None));
            let key =
                OffsetCommitKey { group: self.group_id.clone(), topic: topic.name.clone(), partition: partition.index };
            let value = OffsetCommitValue {
                offset: partition.offset,
                leader_epoch: partition.leader_epoch,
                metadata: partition.metadata.clone().unwrap_or_default(),
                commit_timestamp: ctx.at.wall_ms,
                expire_timestamp: self.expire_time_ms,
                topic_id: topic.id,
            };
            ctx.out.records.push(Record::OffsetCommit(key, Some(value)));
        }
        TopicResult { name: topic.name.clone(), id: topic.id, partitions }
    }
}

impl AskedTopic {
    pub(super) fn fail(&self, error: ErrorCode) -> TopicResult {
        let partitions = self.partitions.iter().map(|p| (p.index, error)).collect();
        TopicResult { name: self.name.clone(), id: self.id, partitions }
    }
}

/// C O-8: the limit counts characters as Java does.
fn too_long(ctx: &Ctx<'_, '_>, partition: &AskedPartition) -> bool {
    let max = ctx.env.config.broker.offset_metadata_max_chars;
    partition.metadata.as_ref().is_some_and(|text| text.len() > max && text.encode_utf16().count() > max)
}

/// Adds results to those that the topic has already.
pub(super) fn add(results: &mut Vec<TopicResult>, name: KStr, id: Uuid, partitions: Vec<(i32, ErrorCode)>) {
    if partitions.is_empty() {
        return;
    }
    match results.iter_mut().find(|r| r.name == name && r.id == id) {
        Some(result) => result.partitions.extend(partitions),
        None => results.push(TopicResult { name, id, partitions }),
    }
}
