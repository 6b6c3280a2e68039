//! Exclusive ownership: an active task is run by one member at a time, from the moment a member reads that it has the task
//! until it has said that it gave it up, or its session has ended.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::TaskId;
use wire::KStr;

use super::mirror::Mirror;

/// What members hold by their own account.
#[derive(Debug, Default)]
pub struct Ownership {
    holds: BTreeMap<KStr, BTreeSet<TaskId>>,
}

impl Ownership {
    /// A member holds these tasks now.
    ///
    /// # Errors
    /// If another member, whose session goes on by what the log says, holds one of them too.
    pub fn set(&mut self, member_id: &KStr, tasks: BTreeSet<TaskId>, mirror: &Mirror) -> Result<(), String> {
        let gained = |task: &&TaskId| self.holds.get(member_id).is_none_or(|before| !before.contains(*task));
        let gained: Vec<_> = tasks.iter().filter(gained).cloned().collect();
        if !gained.is_empty() && mirror.members.contains_key(member_id) {
            let others = self.holds.iter().filter(|(id, _)| *id != member_id && mirror.members.contains_key(*id));
            for (other, held) in others {
                if let Some(task) = gained.iter().find(|task| held.contains(*task)) {
                    return Err(format!("{member_id} runs {task:?}, which {other} has not given up"));
                }
            }
        }
        if tasks.is_empty() {
            self.holds.remove(member_id);
        } else {
            self.holds.insert(member_id.clone(), tasks);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_may_be_taken_when_it_was_given_up_or_its_owner_is_out_of_the_group() {
        let task = TaskId { subtopology: "0".into(), partition: 1 };
        let held = BTreeSet::from([task]);
        let (a, b) = (KStr::from("a"), KStr::from("b"));
        let mut mirror = Mirror::default();
        mirror.members.extend([(a.clone(), None), (b.clone(), None)]);
        let mut ownership = Ownership::default();
        assert_eq!(ownership.set(&a, held.clone(), &mirror), Ok(()));
        assert_eq!(ownership.set(&a, held.clone(), &mirror), Ok(()));
        assert!(ownership.set(&b, held.clone(), &mirror).is_err());
        assert_eq!(ownership.set(&a, BTreeSet::new(), &mirror), Ok(()));
        assert_eq!(ownership.set(&b, held.clone(), &mirror), Ok(()));
        mirror.members.remove(&b);
        assert_eq!(ownership.set(&a, held, &mirror), Ok(()));
    }
}
