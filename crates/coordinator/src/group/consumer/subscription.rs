//! Who subscribes to what in a group, and which topics that comes to (C K-15, K-16).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{KStr, Uuid};

use super::member::Wants;
use super::regexes::Resolved;
use crate::topics::TopicImage;

/// How many members want each thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    names: BTreeMap<KStr, usize>,
    regexes: BTreeMap<KStr, usize>,
    assignors: BTreeMap<KStr, usize>,
    /// Protocols of members that speak the classic one.
    classic_protocols: BTreeMap<KStr, usize>,
    classic_members: usize,
}

impl Counts {
    pub fn add(&mut self, wants: &Wants) {
        self.count(wants, up);
        self.classic_members += usize::from(wants.classic.is_some());
    }

    pub fn remove(&mut self, wants: &Wants) {
        self.count(wants, down);
        self.classic_members -= usize::from(wants.classic.is_some());
    }

    fn count(&mut self, wants: &Wants, change: fn(&mut BTreeMap<KStr, usize>, &KStr)) {
        for name in &wants.names {
            change(&mut self.names, name);
        }
        if !wants.regex.is_empty() {
            change(&mut self.regexes, &wants.regex);
        }
        if let Some(assignor) = &wants.assignor {
            change(&mut self.assignors, assignor);
        }
        let protocols = wants.classic.iter().flat_map(|classic| &classic.protocols);
        let protocols: BTreeSet<&KStr> = protocols.map(|(name, _)| name).collect();
        for name in protocols {
            change(&mut self.classic_protocols, name);
        }
    }

    /// The counts with one member in place of another.
    pub fn with(&self, old: Option<&Wants>, new: &Wants) -> Counts {
        let mut counts = self.clone();
        if let Some(old) = old {
            counts.remove(old);
        }
        counts.add(new);
        counts
    }

    pub fn classic_members(&self) -> usize {
        self.classic_members
    }

    /// Whether every member that speaks the classic protocol supports that one (C G-6).
    pub fn all_classic_support(&self, protocol: &str) -> bool {
        self.classic_protocols.get(protocol).copied().unwrap_or(0) == self.classic_members
    }

    pub fn regexes(&self) -> impl Iterator<Item = &KStr> {
        self.regexes.keys()
    }

    pub fn has_regexes(&self) -> bool {
        !self.regexes.is_empty()
    }

    /// Number of members that subscribe by this expression.
    pub fn by_regex(&self, expression: &str) -> usize {
        self.regexes.get(expression).copied().unwrap_or(0)
    }

    pub fn by_name(&self, topic: &str) -> bool {
        self.names.contains_key(topic)
    }

    /// The assignor that most members ask for, else the first one configured; that also settles ties (C K-16).
    pub fn assignor<'a>(&'a self, configured: &'a [KStr]) -> Option<&'a KStr> {
        let asked = |name: &KStr| self.assignors.get(name).copied().unwrap_or(0);
        configured.iter().rev().max_by_key(|name| asked(name))
    }

    /// Names of all topics that somebody subscribes to, whether they exist or not.
    pub fn topics<'a>(&'a self, regexes: &'a BTreeMap<KStr, Resolved>) -> BTreeSet<&'a KStr> {
        let resolved = self.regexes.keys().filter_map(|regex| regexes.get(regex));
        let resolved = resolved.flat_map(|resolved| &resolved.topics);
        self.names.keys().chain(resolved).collect()
    }
}

fn up(counts: &mut BTreeMap<KStr, usize>, key: &KStr) {
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => {
            counts.insert(key.clone(), 1);
        }
    }
}

fn down(counts: &mut BTreeMap<KStr, usize>, key: &KStr) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Ids of the existing topics that a member subscribes to, by name or expression (C K-34).
pub(super) fn topic_ids(wants: &Wants, regexes: &BTreeMap<KStr, Resolved>, image: &TopicImage) -> BTreeSet<Uuid> {
    let resolved = regexes.get(&wants.regex).into_iter().flat_map(|resolved| &resolved.topics);
    let names = wants.names.iter().chain(resolved);
    names.filter_map(|name| image.get(name)).map(|topic| topic.id).collect()
}

/// Whether the member subscribes to no topic, existing or not.
pub(super) fn is_idle(wants: &Wants, regexes: &BTreeMap<KStr, Resolved>) -> bool {
    wants.names.is_empty() && regexes.get(&wants.regex).is_none_or(|resolved| resolved.topics.is_empty())
}

/// The same for many members, most of which subscribe to the same.
pub(super) struct TopicIds<'a> {
    regexes: &'a BTreeMap<KStr, Resolved>,
    image: &'a TopicImage,
    known: BTreeMap<(&'a BTreeSet<KStr>, &'a KStr), Arc<BTreeSet<Uuid>>>,
}

impl<'a> TopicIds<'a> {
    pub fn new(regexes: &'a BTreeMap<KStr, Resolved>, image: &'a TopicImage) -> Self {
        TopicIds { regexes, image, known: BTreeMap::new() }
    }

    pub fn of(&mut self, wants: &'a Wants) -> Arc<BTreeSet<Uuid>> {
        let (regexes, image) = (self.regexes, self.image);
        let ids = self.known.entry((&wants.names, &wants.regex));
        ids.or_insert_with(|| Arc::new(topic_ids(wants, regexes, image))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(names: &[&'static str], regex: &'static str, assignor: Option<&'static str>) -> Wants {
        Wants {
            names: names.iter().map(|name| KStr::from(*name)).collect(),
            regex: KStr::from(regex),
            assignor: assignor.map(KStr::from),
            ..Wants::default()
        }
    }

    #[test]
    fn k_16_most_votes_win_and_the_default_settles_ties() {
        let configured = [KStr::from("uniform"), KStr::from("range")];
        let mut counts = Counts::default();
        let chosen = |counts: &Counts| String::from(counts.assignor(&configured).expect("there are assignors"));
        assert_eq!(chosen(&counts), "uniform");
        counts.add(&wants(&[], "", Some("range")));
        assert_eq!(chosen(&counts), "range");
        counts.add(&wants(&[], "", Some("uniform")));
        assert_eq!(chosen(&counts), "uniform");
        counts.add(&wants(&[], "", Some("range")));
        assert_eq!(chosen(&counts), "range");
    }

    #[test]
    fn k_34_names_and_resolved_expressions_are_united() {
        let mut counts = Counts::default();
        counts.add(&wants(&["a", "b"], "x.*", None));
        counts.add(&wants(&["b"], "y.*", None));
        let topics = |names: &[&'static str]| names.iter().map(|name| KStr::from(*name)).collect();
        let resolved = |names| Resolved { topics: topics(names), version: 0, time_ms: 0 };
        let regexes = BTreeMap::from([
            (KStr::from("x.*"), resolved(&["b", "x1"])),
            // Nobody subscribes to it any longer.
            (KStr::from("z.*"), resolved(&["z1"])),
        ]);
        let seen: Vec<_> = counts.topics(&regexes).into_iter().map(|topic| topic.as_str()).collect();
        assert_eq!(seen, ["a", "b", "x1"]);
        counts.remove(&wants(&["a", "b"], "x.*", None));
        let seen: Vec<_> = counts.topics(&regexes).into_iter().map(|topic| topic.as_str()).collect();
        assert_eq!(seen, ["b"]);
    }
}
