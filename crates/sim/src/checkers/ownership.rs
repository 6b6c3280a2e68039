//! Exclusive ownership: an active task or a partition is run by one member at a time, from the moment a member reads that it
//! has it until it has said that it gave it up, or until it is out of the group.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::TaskId;
use wire::KStr;

use crate::event::MemberNo;

/// What members of one group hold by their own account.
#[derive(Debug, Default)]
pub struct Ownership {
    holds: BTreeMap<MemberNo, (KStr, BTreeSet<TaskId>)>,
}

impl Ownership {
    /// A member holds these tasks now.
    ///
    /// # Errors
    /// If another member holds one of them too, and both have a right to by what `has_standing` says of their member ids.
    pub fn set(
        &mut self,
        member: MemberNo,
        member_id: &KStr,
        tasks: BTreeSet<TaskId>,
        has_standing: impl Fn(&KStr) -> bool,
    ) -> Result<(), String> {
        let before = self.holds.get(&member).map(|(_, tasks)| tasks);
        let gained: Vec<_> =
            tasks.iter().filter(|task| before.is_none_or(|before| !before.contains(*task))).cloned().collect();
        if !gained.is_empty() && has_standing(member_id) {
            let others = self.holds.iter().filter(|(other, (id, _))| **other != member && has_standing(id));
            for (_, (other, held)) in others {
                if let Some(task) = gained.iter().find(|task| held.contains(*task)) {
                    return Err(format!("{member_id} runs {task:?}, which {other} has not given up"));
                }
            }
        }
        if tasks.is_empty() {
            self.holds.remove(&member);
        } else {
            self.holds.insert(member, (member_id.clone(), tasks));
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
        let everybody = |_: &KStr| true;
        let mut ownership = Ownership::default();
        assert_eq!(ownership.set(0, &a, held.clone(), everybody), Ok(()));
        assert_eq!(ownership.set(0, &a, held.clone(), everybody), Ok(()));
        assert!(ownership.set(1, &b, held.clone(), everybody).is_err());
        assert_eq!(ownership.set(0, &a, BTreeSet::new(), everybody), Ok(()));
        assert_eq!(ownership.set(1, &b, held.clone(), everybody), Ok(()));
        assert_eq!(ownership.set(0, &a, held, |id| *id != "b"), Ok(()));
    }
}
