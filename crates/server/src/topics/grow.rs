//! More partitions for topics that exist (M-9).

use std::sync::Arc;

use wire::{ErrorCode, KStr};

use super::create::check_replicas;
use super::error::Refusal;
use super::state::{ResourceType, partition_record};
use super::{Topics, Writer};
use crate::config::log_config;

/// How many partitions a topic shall have.
#[derive(Clone, Debug)]
pub(crate) struct NewPartitions {
    pub topic: KStr,
    pub count: i32,
    /// Replicas of each new partition, `None` for the broker's choice. An empty list counts as given.
    pub assignments: Option<Vec<Vec<i32>>>,
}

/// What became of each topic of a request, in its order.
type Growth = Vec<(KStr, Result<(), Refusal>)>;

impl Topics {
    /// Grows what can be grown, all in one step, and says of each topic what became of it.
    pub async fn grow(self: &Arc<Self>, topics: Vec<NewPartitions>, validate_only: bool) -> Result<Growth, Refusal> {
        self.change(move |registry, writer| registry.grow_now(writer, topics, validate_only)).await
    }

    fn grow_now(
        &self,
        writer: &mut Writer,
        topics: Vec<NewPartitions>,
        validate_only: bool,
    ) -> Result<Growth, Refusal> {
        let state = self.state();
        let config = self.config.current();
        let mut records = Vec::new();
        let mut made = Vec::new();
        let mut results = Vec::with_capacity(topics.len());
        for new in topics {
            let grown = check(&state, &new, self.node_id, config.topics.replication_factor_clamp);
            let result = grown.and_then(|(topic, old)| {
                if validate_only {
                    return Ok(());
                }
                let settings = log_config(&state.config(ResourceType::Topic, &topic.name), &config.layers);
                self.make_logs(&topic.name, topic.id, old..new.count, &settings)?;
                made.push((topic.name.clone(), old..new.count));
                records.extend((old..new.count).map(|number| partition_record(topic.id, number, self.node_id, 0)));
                Ok(())
            });
            results.push((new.topic.to_owned_detached(), result));
        }
        if let Err(refusal) = self.commit(writer, &records) {
            made.into_iter().for_each(|(name, numbers)| self.unmake_logs(&name, numbers));
            for (_, result) in results.iter_mut().filter(|(_, result)| result.is_ok()) {
                *result = Err(refusal.clone());
            }
        }
        Ok(results)
    }
}

/// The topic and the number of partitions that it has.
fn check<'a>(
    state: &'a super::State,
    new: &NewPartitions,
    node_id: i32,
    clamp: bool,
) -> Result<(&'a super::Topic, i32), Refusal> {
    let topic = state.topic(&new.topic).ok_or_else(|| Refusal::plain(ErrorCode::UnknownTopicOrPartition))?;
    let old = topic.partitions.len() as i32;
    let bad_count = |message: String| Refusal::new(ErrorCode::InvalidPartitions, message);
    if new.count == old {
        return Err(bad_count(format!("Topic already has {old} partition(s).")));
    }
    if new.count < old {
        return Err(bad_count(format!(
            "The topic {} currently has {old} partition(s); {} would not be an increase.",
            topic.name, new.count
        )));
    }
    let additional = (new.count - old) as usize;
    if additional > super::create::MAX_PARTITIONS {
        return Err(Refusal::new(
            ErrorCode::PolicyViolation,
            "Excessively large number of additional partitions per request.",
        ));
    }
    if let Some(assignments) = &new.assignments {
        if assignments.len() != additional {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!(
                    "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
                    assignments.len()
                ),
            ));
        }
        if !clamp {
            assignments.iter().try_for_each(|replicas| check_replicas(replicas, node_id))?;
        }
    }
    Ok((topic, old))
}
