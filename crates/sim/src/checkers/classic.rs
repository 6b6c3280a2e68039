//! Classic groups, whose members are in no log: the coordinator is asked who they are after everything that happens.
//!
//! Laws: a member is dropped only if it left, was replaced, was silent for its session, or missed a phase of a rebalance that
//! lasted its full time (C B-8, B-14, B-15); the generation of a group never goes back but to that of the log, after a crash.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::group::classic::Roster;
use wire::KStr;

/// An answer may have waited so long for the log after the moment that it counts from.
const ANSWER_DELAY_MS: u64 = 50;

/// What is known of one classic group, and of what its members have a right to.
#[derive(Debug, Default)]
pub struct Classic {
    roster: Option<Roster>,
    /// When the group entered its state; nothing happened in it before.
    since_ms: u64,
    /// When the join phase of the present generation ended.
    completed_ms: u64,
    /// The generation in which each member was let in last.
    joined: BTreeMap<KStr, i32>,
    /// The last sign of life of each member that the coordinator accepted.
    seen_ms: BTreeMap<KStr, u64>,
    left: BTreeSet<KStr>,
}

impl Classic {
    pub fn exists(&self) -> bool {
        self.roster.is_some()
    }

    pub fn members(&self) -> &BTreeMap<KStr, Option<KStr>> {
        static NOBODY: BTreeMap<KStr, Option<KStr>> = BTreeMap::new();
        self.roster.as_ref().map_or(&NOBODY, |roster| &roster.members)
    }

    pub fn generation(&self) -> i32 {
        self.roster.as_ref().map_or(-1, |roster| roster.generation)
    }

    pub fn state(&self) -> &'static str {
        self.roster.as_ref().map_or("Dead", |roster| roster.state)
    }

    /// Whether nobody else may have what it has: it is a member, and took part in the present generation. A static member
    /// that missed the join phase is still listed; what it had may be given away.
    pub fn has_standing(&self, member_id: &KStr) -> bool {
        self.members().contains_key(member_id) && self.was_told(member_id, self.generation())
    }

    /// Whether this is the generation in which it was let in last; in a consumer group, its epoch.
    pub fn was_told(&self, member_id: &KStr, generation: i32) -> bool {
        self.joined.get(member_id) == Some(&generation)
    }

    /// A member was let in, or gave an accepted sign of life.
    pub fn was_seen(&mut self, member_id: &KStr, now_ms: u64) {
        self.seen_ms.insert(member_id.clone(), now_ms);
    }

    /// An answer at once, in a generation that it is in already, is no sign of life (C J-22, J-23).
    pub fn was_let_in(&mut self, member_id: &KStr, generation: i32, now_ms: u64) {
        if self.joined.insert(member_id.clone(), generation) != Some(generation) {
            self.was_seen(member_id, now_ms);
        }
    }

    /// It asked to leave, or was asked to be removed.
    pub fn leaves(&mut self, member_id: &KStr) {
        self.left.insert(member_id.clone());
    }

    /// The coordinator started anew from its log: sessions too.
    pub fn restarted(&mut self, roster: Option<Roster>, now_ms: u64) {
        for member_id in roster.iter().flat_map(|roster| roster.members.keys()) {
            self.seen_ms.insert(member_id.clone(), now_ms);
        }
        // Generations that no record tells of are void; others will have their numbers.
        if let Some(roster) = &roster {
            self.joined.retain(|_, joined| *joined <= roster.generation);
        }
        (self.since_ms, self.completed_ms) = (now_ms, now_ms);
        self.roster = roster;
    }

    /// The group is like this now.
    ///
    /// # Errors
    /// The law that the change breaks.
    pub fn is_now(
        &mut self,
        roster: Option<Roster>,
        now_ms: u64,
        session_ms: u64,
        rebalance_ms: u64,
    ) -> Result<(), String> {
        let result = match (&self.roster, &roster) {
            (Some(before), Some(now)) => self.check(before, now, now_ms, session_ms, rebalance_ms),
            _ => Ok(()),
        };
        let state = |roster: &Option<Roster>| roster.as_ref().map(|roster| (roster.state, roster.generation));
        if state(&self.roster) != state(&roster) {
            self.since_ms = now_ms;
        }
        if roster.as_ref().is_some_and(|roster| roster.generation != self.generation()) {
            self.completed_ms = now_ms;
        }
        self.left.clear();
        self.roster = roster;
        result
    }

    fn check(
        &self,
        before: &Roster,
        now: &Roster,
        now_ms: u64,
        session_ms: u64,
        rebalance_ms: u64,
    ) -> Result<(), String> {
        if now.generation < before.generation {
            return Err(format!("generation {} went back to {}", before.generation, now.generation));
        }
        for (member_id, instance_id) in &before.members {
            let was_replaced = || instance_id.is_some() && now.members.values().any(|instance| instance == instance_id);
            let was_silent = || {
                let seen_ms = self.seen_ms.get(member_id).copied().unwrap_or(0);
                now_ms + ANSWER_DELAY_MS >= seen_ms + session_ms
            };
            // Of the join phase, or of the wait for members to sync.
            let phase_began_ms = if before.state == "PreparingRebalance" { self.since_ms } else { self.completed_ms };
            let missed_it = || now_ms >= phase_began_ms + rebalance_ms;
            let is_in = now.members.contains_key(member_id) || self.left.contains(member_id);
            if !is_in && !was_replaced() && !was_silent() && !missed_it() {
                return Err(format!("{member_id} is dropped for no reason: {before:?} -> {now:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(state: &'static str, generation: i32, members: &[&'static str]) -> Option<Roster> {
        let members = members.iter().map(|id| (KStr::from(*id), None)).collect();
        Some(Roster { state, generation, members })
    }

    #[test]
    fn a_member_is_not_dropped_before_its_time() {
        let group = |at_ms| {
            let mut group = Classic::default();
            group.restarted(roster("Stable", 1, &["a", "b"]), 0);
            assert_eq!(group.is_now(roster("PreparingRebalance", 1, &["a", "b"]), 1_000, 10_000, 3_000), Ok(()));
            group.is_now(roster("CompletingRebalance", 2, &["a"]), at_ms, 10_000, 3_000)
        };
        assert!(group(3_999).is_err());
        assert_eq!(group(4_000), Ok(()));
        let mut group = Classic::default();
        group.restarted(roster("Stable", 1, &["a", "b"]), 0);
        group.leaves(&KStr::from("b"));
        assert_eq!(group.is_now(roster("PreparingRebalance", 1, &["a"]), 5_000, 10_000, 3_000), Ok(()));
    }
}
