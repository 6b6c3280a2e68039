//! TxnOffsetCommit, the group's side (C 10.3): offsets stay pending until the end marker of the transaction.

use wire::messages::txn_offset_commit_request::TxnOffsetCommitRequest;
use wire::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use wire::{ErrorCode, KStr, Uuid};

use super::commit::{Asked, AskedPartition, Commit, TopicResult, resolve};
use crate::command::Caller;
use crate::group::OffsetClient;
use crate::outcome::Reply;
use crate::shard::Ctx;
use crate::state_log::Producer;
use crate::topics::TopicImage;

/// First version that names topics by id only and that may say that there is no such group.
const TXN_OFFSET_COMMIT_BY_ID: i16 = 6;

/// Whether anything of the request exists, so that its group is asked at all. If not, the transaction is not touched
/// either (C ): the server asks this before it verifies the transaction.
pub fn reaches_group(image: &TopicImage, api_version: i16, request: &TxnOffsetCommitRequest) -> bool {
    !asked(image, api_version, request).topics.is_empty()
}

/// The answer to a request whose transaction does not admit it: what exists gets the error, the rest the one that it would have
/// got anyway.
pub fn refused_by_transaction(
    image: &TopicImage,
    api_version: i16,
    request: &TxnOffsetCommitRequest,
    error: ErrorCode,
) -> TxnOffsetCommitResponse {
    let results = asked(image, api_version, request).fail(error);
    let topics = results.into_iter().map(|topic| response_topic(api_version, topic));
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

pub(crate) fn commit_in_transaction(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &TxnOffsetCommitRequest) {
    let commit = Commit {
        group_id: &request.group_id,
        client: OffsetClient {
            member_id: Some(&request.member_id),
            instance_id: request.group_instance_id.as_ref(),
            epoch: request.generation_id_or_member_epoch,
            api_version: caller.api_version,
            transactional: true,
        },
        no_group: older(caller.api_version, ErrorCode::GroupIdNotFound),
        expire_time_ms: -1,
        asked: asked(ctx.env.topics, caller.api_version, request),
    };
    let results = commit.run(ctx);
    if !ctx.out.records.is_empty() {
        ctx.out.producer = Some(Producer { id: request.producer_id, epoch: request.producer_epoch });
    }
    let topics = results.into_iter().map(|topic| response_topic(caller.api_version, topic));
    let response = TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() };
    ctx.reply(Reply::TxnOffsetCommit(Box::new(response)));
}

fn asked(image: &TopicImage, api_version: i16, request: &TxnOffsetCommitRequest) -> Asked {
    let topics = request.topics.iter().map(|topic| -> (KStr, Uuid, Vec<AskedPartition>) {
        let partitions = topic.partitions.iter().map(|p| AskedPartition {
            index: p.partition_index,
            offset: p.committed_offset,
            leader_epoch: p.committed_leader_epoch,
            metadata: p.committed_metadata.clone(),
        });
        (topic.name.clone(), topic.topic_id, partitions.collect())
    });
    resolve(image, api_version >= TXN_OFFSET_COMMIT_BY_ID, topics)
}

fn response_topic(api_version: i16, topic: TopicResult) -> TxnOffsetCommitResponseTopic {
    let partition = |(partition_index, error)| TxnOffsetCommitResponsePartition {
        partition_index,
        error_code: older(api_version, error).code(),
    };
    TxnOffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.id,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    }
}

/// Producers that speak an older version know neither of these errors (C ).
fn older(api_version: i16, error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::StaleMemberEpoch | ErrorCode::GroupIdNotFound if api_version < TXN_OFFSET_COMMIT_BY_ID => {
            ErrorCode::IllegalGeneration
        }
        error => error,
    }
}
