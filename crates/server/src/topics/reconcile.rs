//! Makes the data directory agree with the metadata log at the start, whatever the last run was in the middle of.

use std::collections::BTreeSet;
use std::sync::Arc;

use log::{LogConfig, LogDir, PartitionLog, TopicId, TopicPartition};
use wire::Uuid;

use super::journal::{METADATA_TOPIC, MetadataError};
use super::state::State;

/// Gives every partition its log, made anew if it is missing, with its settings and its leader epoch. Removes what belongs to topics
/// in `removed`, and what is empty and belongs to nobody: that is what an unfinished creation leaves. Other strangers stay where they
/// are, because they may be somebody's data.
pub(super) fn reconcile(
    dir: &LogDir,
    state: &mut State,
    removed: &BTreeSet<Uuid>,
    settings: &dyn Fn(&str, &State) -> LogConfig,
) -> Result<(), MetadataError> {
    clear_away(dir, state, removed)?;
    let names: Vec<_> = state.topics.keys().cloned().collect();
    for name in names {
        let config = settings(&name, state);
        let Some(topic) = state.topics.get(&name).cloned() else { continue };
        let mut topic = (*topic).clone();
        for (number, partition) in (0..).zip(&mut topic.partitions) {
            let tp = TopicPartition::new(name.as_str(), number);
            let log = dir.create_partition(&tp, TopicId(topic.id.0), config.clone())?;
            log.set_config(config.clone());
            log.set_leader_epoch(state.leader_epoch(partition));
            partition.log = Some(log);
        }
        state.topics.insert(name, Arc::new(topic));
    }
    Ok(())
}

fn clear_away(dir: &LogDir, state: &State, removed: &BTreeSet<Uuid>) -> Result<(), MetadataError> {
    for log in dir.partitions() {
        let tp = log.topic_partition();
        if &*tp.topic == METADATA_TOPIC {
            continue;
        }
        let found = log.topic_id();
        let topic = state.topic(&tp.topic);
        let owned = topic.filter(|topic| usize::try_from(tp.partition).is_ok_and(|n| n < topic.partitions.len()));
        match owned {
            // An id that was lost with a crash, before the first sync of the partition, says nothing.
            Some(topic) if found.0 == topic.id.0 || found == TopicId::default() => {}
            _ if removed.contains(&Uuid(found.0)) || is_empty(&log) => {
                dir.delete_partition(tp)?;
            }
            Some(topic) => {
                let expected = TopicId(topic.id.0);
                return Err(MetadataError::Foreign { partition: tp.to_string(), found, expected });
            }
            None => tracing::warn!(partition = %tp, topic_id = %found, "a partition of no known topic is left alone"),
        }
    }
    Ok(())
}

/// Whether nothing was ever written to it. A log that cannot be opened counts as written to.
fn is_empty(log: &PartitionLog) -> bool {
    log.offsets().is_ok_and(|offsets| offsets.log_end == 0)
}
