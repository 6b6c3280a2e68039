//! From what each member lost and gained to what moved from whom to whom.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::{Move, Role};

/// What changed in one member's target, in one role.
#[derive(Debug)]
pub(crate) struct Shift {
    pub member_id: KStr,
    pub role: Role,
    pub lost: Vec<String>,
    pub gained: Vec<String>,
}

impl Shift {
    /// From what a member had to what it has; none if that is the same.
    pub fn between<T: Ord>(
        member_id: &KStr,
        role: Role,
        had: &BTreeSet<T>,
        has: &BTreeSet<T>,
        name: impl Fn(&T) -> String,
    ) -> Option<Shift> {
        let lost: Vec<String> = had.difference(has).map(&name).collect();
        let gained: Vec<String> = has.difference(had).map(&name).collect();
        let changed = !lost.is_empty() || !gained.is_empty();
        changed.then(|| Shift { member_id: member_id.clone(), role, lost, gained })
    }
}

/// Tasks and partitions without an owner, and who had them last.
pub(super) type Orphans = BTreeMap<(Role, String), KStr>;

/// More are not remembered: what then gets an owner comes from nobody.
const MAX_ORPHANS: usize = 10_000;

/// Moves in order of role and name. `orphans` has what was lost earlier, and takes what is lost now if `keep` says that
/// somebody will get it later.
pub(super) fn of(shifts: Vec<Shift>, orphans: &mut Orphans, keep: bool) -> Vec<Move> {
    let mut lost = std::mem::take(orphans);
    let mut gained = Vec::new();
    for shift in shifts {
        let Shift { member_id, role, lost: gone, gained: new } = shift;
        let member_id = member_id.to_owned_detached();
        for what in gone {
            lost.insert((role, what), member_id.clone());
        }
        gained.extend(new.into_iter().map(|what| (role, what, member_id.clone())));
    }
    gained.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let mut moves = Vec::new();
    for (role, what, to) in gained {
        let key = (role, what);
        // A copy that one member gives up is not the one that another gets.
        let from = lost.remove(&key);
        moves.push(Move { what: key.1, role, from, to: Some(to) });
    }
    if keep {
        while lost.len() > MAX_ORPHANS {
            lost.pop_last();
        }
        *orphans = lost;
    } else {
        moves.extend(lost.into_iter().map(|((role, what), from)| Move { what, role, from: Some(from), to: None }));
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(member: &str, lost: &[&str], gained: &[&str]) -> Shift {
        let texts = |list: &[&str]| list.iter().map(|text| text.to_string()).collect();
        Shift { member_id: KStr::copy(member), role: Role::Active, lost: texts(lost), gained: texts(gained) }
    }

    fn text(moves: &[Move]) -> Vec<String> {
        let name = |id: &Option<KStr>| id.as_ref().map_or("-".to_owned(), ToString::to_string);
        moves.iter().map(|m| format!("{} {}>{}", m.what, name(&m.from), name(&m.to))).collect()
    }

    #[test]
    fn what_one_loses_and_another_gains_is_one_move() {
        let mut orphans = Orphans::new();
        let moves = of(vec![shift("a", &["0_1", "0_2"], &[]), shift("b", &[], &["0_1", "0_9"])], &mut orphans, false);
        assert_eq!(text(&moves), ["0_1 a>b", "0_9 ->b", "0_2 a>-"]);
        assert!(orphans.is_empty());
    }

    #[test]
    fn what_was_lost_before_a_later_assignment_comes_from_whom_it_was_lost_by() {
        let mut orphans = Orphans::new();
        assert_eq!(of(vec![shift("a", &["0_1"], &[])], &mut orphans, true), []);
        let moves = of(vec![shift("b", &[], &["0_1"])], &mut orphans, false);
        assert_eq!(text(&moves), ["0_1 a>b"]);
    }
}
