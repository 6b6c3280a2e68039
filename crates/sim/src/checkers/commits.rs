//! Offset commits of members (S 9.5, C O-3, O-6, O-7): those of the owner are accepted, those of a zombie are not, and what was
//! accepted is durable.

use coordinator::assign::TaskId;
use wire::KStr;
use wire::messages::offset_commit_response::OffsetCommitResponse;

use super::classic::Classic;
use super::mirror::Mirror;

/// Whether a commit to a classic group has to be accepted, by what the group is when it arrives.
pub fn is_due_in_classic(classic: &Classic, member_id: &KStr, instance_id: Option<&KStr>, generation: i32) -> bool {
    let instance = classic.members().get(member_id);
    let is_it = instance.is_some_and(|instance| instance_id.is_none() || instance.as_ref() == instance_id);
    is_it && generation == classic.generation() && classic.state() != "CompletingRebalance"
}

/// Whether the commit has to be accepted, by what the log says when it arrives.
pub fn is_due(mirror: &Mirror, member_id: &KStr, epoch: i32, tasks: &[TaskId]) -> bool {
    let Some(current) = mirror.current.get(member_id).filter(|_| mirror.members.contains_key(member_id)) else {
        return false;
    };
    let since = |task: &TaskId| current.active_since.get(task).or(current.pending.get(task));
    epoch == current.epoch
        || (epoch < current.epoch && tasks.iter().all(|task| since(task).is_some_and(|since| epoch >= *since)))
}

/// # Errors
/// If an offset that was accepted is not durable, nor is a later one.
pub fn check_durable(
    durable: &Mirror,
    offsets: &[(KStr, i32, i64)],
    response: &OffsetCommitResponse,
) -> Result<(), String> {
    for (topic, partition, offset) in offsets {
        let accepted = response.topics.iter().any(|each| {
            each.name == *topic
                && each.partitions.iter().any(|each| each.partition_index == *partition && each.error_code == 0)
        });
        let stored = durable.offsets.get(&(topic.clone(), *partition));
        if accepted && stored.is_none_or(|stored| stored < offset) {
            return Err(format!("offset {offset} of {topic}-{partition} was accepted, durable is {stored:?}"));
        }
    }
    Ok(())
}

/// # Errors
/// If the answer is not what was due.
pub fn check(due: bool, member_id: &KStr, response: &OffsetCommitResponse) -> Result<(), String> {
    let mut codes = response.topics.iter().flat_map(|topic| &topic.partitions).map(|partition| partition.error_code);
    let accepted = codes.clone().all(|code| code == 0);
    let refused = codes.all(|code| code != 0);
    if (due && accepted) || (!due && refused) {
        return Ok(());
    }
    Err(format!("a commit of {member_id} has to be {}: {response:?}", if due { "accepted" } else { "refused" }))
}
