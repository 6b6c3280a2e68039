//! Source topic patterns (decision 25): which topics they match is found out off the shard and kept in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::KStr;

use super::configure::Matches;
use super::topology::Topology;
use super::validate;
use crate::group::Group as AnyGroup;
use crate::outcome::Effect;
use crate::shard::Ctx;

/// Soft state: the answers, and the question that is open.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    matches: Arc<Matches>,
    /// A question is under way.
    asked: bool,
    /// Topics changed since it was asked.
    again: bool,
}

impl Patterns {
    pub(super) fn matches(&self) -> &Arc<Matches> {
        &self.matches
    }

    /// Whether some pattern matched the topic when it was last looked at.
    pub(super) fn matched(&self, topic: &str) -> bool {
        self.matches.values().any(|topics| topics.contains(topic))
    }

    /// Whether every pattern of the topology has an answer.
    pub(super) fn cover(&self, topology: &Topology) -> bool {
        topology.patterns().iter().all(|pattern| self.matches.contains_key(pattern))
    }

    /// The answers are old; they count until new ones come.
    pub(super) fn resolve_again(&mut self) {
        self.again = true;
    }

    /// No answer will come to what was asked.
    pub(super) fn nothing_in_flight(&mut self) {
        self.asked = false;
        self.again = true;
    }

    /// The question, if one is due.
    pub(super) fn ask(&mut self, group_id: &KStr, topology: &Topology) -> Option<Effect> {
        let answered = !self.again && self.cover(topology);
        if !topology.has_patterns() || self.asked || answered {
            return None;
        }
        self.asked = true;
        self.again = false;
        let expressions = topology.patterns().iter().cloned().collect();
        Some(Effect::ResolveRegex { group_id: group_id.clone(), expressions })
    }

    /// Whether the answers changed.
    fn answered(&mut self, topology: &Topology, answers: Vec<(KStr, Result<Vec<KStr>, String>)>) -> bool {
        self.asked = false;
        // What the application makes for itself is not among what it reads by pattern, nor what is the broker's.
        let theirs = |topic: &KStr| !validate::is_internal(topic) && !topology.is_internal(topic);
        let matches: Matches = answers
            .into_iter()
            .map(|(pattern, topics)| {
                let topics: BTreeSet<KStr> = topics.unwrap_or_default().into_iter().filter(theirs).collect();
                (pattern, topics)
            })
            .collect();
        let changed = *self.matches != matches;
        self.matches = Arc::new(matches);
        changed
    }
}

/// The answer to `Effect::ResolveRegex`. A change is acted upon with the next heartbeat, as that of a topic.
pub(crate) fn regex_resolved(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    answers: Vec<(KStr, Result<Vec<KStr>, String>)>,
    _image_version: u64,
) {
    let Some(AnyGroup::Streams(group)) = ctx.state.group(group_id) else { return };
    let (Some(topology), Some(soft)) = (&group.topology, ctx.soft.streams.get_mut(group_id)) else { return };
    if soft.patterns.answered(topology, answers) {
        soft.metadata_fresh = false;
        soft.configured = None;
    }
    ctx.out.effects.extend(soft.patterns.ask(group_id, topology));
}
