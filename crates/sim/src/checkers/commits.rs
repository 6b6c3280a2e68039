//! Offset commits of members (S 9.5): those of the owner are accepted, those of a zombie are not.

use coordinator::assign::TaskId;
use wire::KStr;
use wire::messages::offset_commit_response::OffsetCommitResponse;

use super::mirror::Mirror;

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
