//! Deleting topics. Records first, then the files: what a crash leaves is recognised by its removed id.

use std::sync::Arc;

use wire::Uuid;
use wire::messages::remove_topic_record::RemoveTopicRecord;

use super::Topics;
use super::error::Refusal;
use super::record::MetadataRecord;

impl Topics {
    /// Deletes the topics with these ids, all in one step; returns those that existed.
    pub async fn delete(self: &Arc<Self>, ids: Vec<Uuid>) -> Result<Vec<Uuid>, Refusal> {
        self.change(move |registry, writer| {
            let state = registry.state();
            let mut ids: Vec<Uuid> = ids.into_iter().filter(|id| state.topic_by_id(id).is_some()).collect();
            ids.sort_unstable();
            ids.dedup();
            let remove = |topic_id: &Uuid| MetadataRecord::RemoveTopic(RemoveTopicRecord { topic_id: *topic_id });
            let records: Vec<_> = ids.iter().map(remove).collect();
            registry.commit(writer, &records)?;
            Ok(ids)
        })
        .await
    }
}
