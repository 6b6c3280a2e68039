//! OffsetFetch, one group (C 10.2).

use wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use wire::{ErrorCode, KStr, Uuid};

use super::Slot;
use crate::command::Caller;
use crate::group::OffsetClient;
use crate::outcome::Reply;
use crate::shard::Ctx;

/// First version that names topics by id only.
const BY_ID: i16 = 10;
/// The one version without an error for the group.
const WITHOUT_GROUP_ERROR: i16 = 1;

pub(crate) fn fetch(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &OffsetFetchRequestGroup, require_stable: bool) {
    let client = OffsetClient {
        member_id: request.member_id.as_ref(),
        instance_id: None,
        epoch: request.member_epoch,
        api_version: caller.api_version,
        transactional: false,
    };
    let admitted = ctx.state.group(&request.group_id).map_or(Ok(()), |group| group.admit_fetch(&client));
    let mut response = OffsetFetchResponseGroup { group_id: request.group_id.clone(), ..Default::default() };
    match admitted {
        Err(error) => {
            response.error_code = error.code();
            if caller.api_version <= WITHOUT_GROUP_ERROR {
                let topics = request.topics.iter().flatten();
                response.topics = topics.map(|topic| failed(topic, KStr::EMPTY, error)).collect();
            }
        }
        Ok(()) => {
            let fetch = Fetch { ctx, group_id: &request.group_id, by_id: caller.api_version >= BY_ID, require_stable };
            response.topics = match &request.topics {
                Some(topics) => fetch.some(topics),
                None => fetch.all(),
            };
        }
    }
    ctx.reply(Reply::OffsetFetch(Box::new(response)));
}

struct Fetch<'a, 'b, 'e> {
    ctx: &'a Ctx<'b, 'e>,
    group_id: &'a KStr,
    by_id: bool,
    require_stable: bool,
}

impl Fetch<'_, '_, '_> {
    /// Names are not checked against topics, ids are: what is not known comes last (C F-2).
    fn some(&self, topics: &[OffsetFetchRequestTopics]) -> Vec<OffsetFetchResponseTopics> {
        let mut found = Vec::with_capacity(topics.len());
        let mut unknown = Vec::new();
        for topic in topics {
            let (name, id) = match self.by_id {
                false => (&topic.name, Uuid::ZERO),
                true => match self.ctx.env.topics.name_of(&topic.topic_id) {
                    Some(name) => (name, topic.topic_id),
                    None => {
                        unknown.push(failed(topic, KStr::EMPTY, ErrorCode::UnknownTopicId));
                        continue;
                    }
                },
            };
            let slots = &self.ctx.state.offsets;
            let partitions = topic
                .partition_indexes
                .iter()
                .map(|&index| self.partition(index, slots.slot(self.group_id, name, index), id));
            found.push(OffsetFetchResponseTopics {
                name: name.clone(),
                topic_id: id,
                partitions: partitions.collect(),
            });
        }
        found.append(&mut unknown);
        found
    }

    /// Every partition that has a committed offset; by id only those of topics that exist (C F-7, F-8).
    fn all(&self) -> Vec<OffsetFetchResponseTopics> {
        let mut found = Vec::new();
        for (name, slots) in self.ctx.state.offsets.topics(self.group_id) {
            let topic_id = match (self.by_id, self.ctx.env.topics.get(name)) {
                (false, _) => Uuid::ZERO,
                (true, Some(topic)) => topic.id,
                (true, None) => continue,
            };
            let partitions: Vec<_> = slots
                .iter()
                .filter(|(_, slot)| slot.committed.is_some())
                .map(|(&index, slot)| self.partition(index, Some(slot), Uuid::ZERO))
                .collect();
            if !partitions.is_empty() {
                found.push(OffsetFetchResponseTopics { name: name.clone(), topic_id, partitions });
            }
        }
        found
    }

    fn partition(&self, index: i32, slot: Option<&Slot>, id: Uuid) -> OffsetFetchResponsePartitions {
        let Some(slot) = slot else {
            return nothing(index, ErrorCode::None);
        };
        if self.require_stable && !slot.pending.is_empty() {
            return nothing(index, ErrorCode::UnstableOffsetCommit);
        }
        // A topic of the same name that was made anew has nothing to do with the offset (C F-6).
        let committed = slot
            .committed
            .as_ref()
            .filter(|committed| id.is_zero() || committed.topic_id.is_zero() || committed.topic_id == id);
        let Some(committed) = committed else {
            return nothing(index, ErrorCode::None);
        };
        OffsetFetchResponsePartitions {
            partition_index: index,
            committed_offset: committed.offset,
            committed_leader_epoch: committed.leader_epoch,
            metadata: Some(committed.metadata.clone()),
            error_code: ErrorCode::None.code(),
        }
    }
}

fn nothing(partition_index: i32, error: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(KStr::EMPTY),
        error_code: error.code(),
    }
}

fn failed(topic: &OffsetFetchRequestTopics, name: KStr, error: ErrorCode) -> OffsetFetchResponseTopics {
    let name = if topic.name.is_empty() { name } else { topic.name.clone() };
    OffsetFetchResponseTopics {
        name,
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(|&index| nothing(index, error)).collect(),
    }
}
