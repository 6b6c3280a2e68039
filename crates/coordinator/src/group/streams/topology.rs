//! The topology of a group as its members declared it: what is stored, and how it is compared (S 4.1, 4.2).

use std::collections::{BTreeMap, BTreeSet};

use ::regex::Regex;
use wire::messages::streams_group_heartbeat_request as sent;
use wire::messages::streams_group_topology_value::{
    CopartitionGroup, StreamsGroupTopologyValue, Subtopology, TopicConfig, TopicInfo,
};
use wire::{ErrorCode, KStr};

use super::error::Failure;
use super::validate;
use crate::group::regex;

/// A topology with what is looked up in it. Immutable; shared between state, work for assignors and answers.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub epoch: i32,
    /// By id. The order within their lists is the members'.
    pub subtopologies: BTreeMap<KStr, Subtopology>,
    /// Source, repartition source and changelog topics, which the metadata hash is made of (S 3.3.1).
    required: BTreeSet<KStr>,
    /// The subtopology that reads a source or repartition source topic; the last one if several do.
    readers: BTreeMap<KStr, KStr>,
    /// Source topic patterns, each once (decision 25).
    patterns: BTreeSet<KStr>,
    /// The same, compiled for a full match, with the subtopology that reads what matches.
    compiled: Vec<(Regex, KStr)>,
}

impl Topology {
    /// As a member sent it.
    ///
    /// # Errors
    /// UNKNOWN_SERVER_ERROR for a negative epoch and for two subtopologies with one id (S 1.3.1, 1.3.2).
    pub(super) fn from_request(topology: &sent::Topology) -> Result<Topology, Failure> {
        if topology.epoch < 0 {
            return Err(Failure::unknown());
        }
        let mut subtopologies = BTreeMap::new();
        for subtopology in &topology.subtopologies {
            let stored = stored(subtopology);
            if subtopologies.insert(stored.subtopology_id.clone(), stored).is_some() {
                return Err(Failure::unknown());
            }
        }
        Ok(Topology::new(topology.epoch, subtopologies))
    }

    /// As it is in the log. Strings are copied out of the log's buffers.
    pub(super) fn from_record(value: &StreamsGroupTopologyValue) -> Topology {
        let detached = value.subtopologies.iter().map(detached);
        let by_id = detached.map(|subtopology| (subtopology.subtopology_id.clone(), subtopology));
        Topology::new(value.epoch, by_id.collect())
    }

    fn new(epoch: i32, subtopologies: BTreeMap<KStr, Subtopology>) -> Topology {
        let mut required = BTreeSet::new();
        let mut readers = BTreeMap::new();
        let mut patterns = BTreeSet::new();
        let mut compiled = Vec::new();
        for (id, subtopology) in &subtopologies {
            for topic in source_names(subtopology) {
                required.insert(topic.clone());
                readers.insert(topic.clone(), id.clone());
            }
            required.extend(subtopology.state_changelog_topics.iter().map(|topic| topic.name.clone()));
            for pattern in &subtopology.source_topic_regex {
                patterns.insert(pattern.clone());
                // One that came by another way than a checked join may not compile: then it matches nothing.
                compiled.extend(regex::compile(pattern).ok().map(|regex| (regex, id.clone())));
            }
        }
        Topology { epoch, subtopologies, required, readers, patterns, compiled }
    }

    /// Topics by name whose metadata the group depends on; what its patterns match is not among them.
    pub(super) fn required(&self) -> &BTreeSet<KStr> {
        &self.required
    }

    /// The subtopology that reads a topic that it names.
    pub(super) fn reader(&self, topic: &str) -> Option<&KStr> {
        self.readers.get(topic)
    }

    /// The subtopologies that read a topic because a pattern of theirs matches it.
    pub(super) fn pattern_readers(&self, topic: &str) -> impl Iterator<Item = &str> {
        let theirs = !self.compiled.is_empty() && !validate::is_internal(topic) && !self.is_internal(topic);
        let matching = self.compiled.iter().filter(move |(regex, _)| theirs && regex.is_match(topic));
        matching.map(|(_, id)| id.as_str())
    }

    /// Source topic patterns, each once, ascending (decision 25).
    pub(super) fn patterns(&self) -> &BTreeSet<KStr> {
        &self.patterns
    }

    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Repartition and changelog topics by name.
    pub(super) fn is_internal(&self, topic: &str) -> bool {
        self.subtopologies.values().any(|subtopology| {
            let mut internal = subtopology.repartition_source_topics.iter().chain(&subtopology.state_changelog_topics);
            internal.any(|each| each.name == *topic)
        })
    }

    /// Some subtopology keeps state, hence may have standbys and warm-ups.
    pub(super) fn is_stateful(&self) -> bool {
        self.subtopologies.values().any(|subtopology| !subtopology.state_changelog_topics.is_empty())
    }

    /// Ids of the subtopologies that are the same in both (decision 5).
    pub(super) fn common(&self, other: &Topology) -> BTreeSet<KStr> {
        let same = self.subtopologies.iter().filter(|(id, mine)| other.subtopologies.get(*id) == Some(*mine));
        same.map(|(id, _)| id.clone()).collect()
    }

    /// What the group's topology becomes by a join (decisions 1 to 4): `None` if it stays.
    ///
    /// # Errors
    /// 131 for other content at the same epoch and for an epoch too far ahead, 132 for an epoch behind.
    pub(super) fn after_join(&self, joining: Topology) -> Result<Option<Topology>, Failure> {
        let (ours, theirs) = (self.epoch, joining.epoch);
        if theirs < ours {
            return Err(Failure::new(
                ErrorCode::StreamsTopologyFenced,
                format!(
                    "The topology epoch {theirs} of the member is behind the topology epoch {ours} of the group. The \
                     topology of the group was updated; only members with the updated topology can join."
                ),
            ));
        }
        if theirs == ours {
            return match self.first_difference(&joining) {
                None => Ok(None),
                Some(difference) => Err(Failure::new(
                    ErrorCode::StreamsInvalidTopologyEpoch,
                    format!(
                        "The topology differs from the topology of the group at the same epoch {ours}: {difference}. A \
                         changed topology needs the topology epoch {}.",
                        i64::from(ours) + 1
                    ),
                )),
            };
        }
        if i64::from(theirs) > i64::from(ours) + 1 {
            return Err(Failure::new(
                ErrorCode::StreamsInvalidTopologyEpoch,
                format!(
                    "The topology epoch {theirs} of the member is more than one ahead of the topology epoch {ours} of the group."
                ),
            ));
        }
        Ok(Some(joining))
    }

    /// In words; `None` if the contents are equal.
    fn first_difference(&self, other: &Topology) -> Option<String> {
        let ids: BTreeSet<&KStr> = self.subtopologies.keys().chain(other.subtopologies.keys()).collect();
        ids.into_iter().find_map(|id| match (self.subtopologies.get(id), other.subtopologies.get(id)) {
            (Some(mine), Some(theirs)) => difference(mine, theirs).map(|field| format!("{field} of subtopology {id}")),
            (Some(_), None) => Some(format!("subtopology {id} is missing")),
            (None, _) => Some(format!("subtopology {id} is new")),
        })
    }
}

/// Source and repartition source topics that a subtopology names.
pub(super) fn source_names(subtopology: &Subtopology) -> impl Iterator<Item = &KStr> {
    subtopology.source_topics.iter().chain(subtopology.repartition_source_topics.iter().map(|topic| &topic.name))
}

fn difference(mine: &Subtopology, theirs: &Subtopology) -> Option<&'static str> {
    let fields = [
        ("the source topics", mine.source_topics == theirs.source_topics),
        ("the source topic patterns", mine.source_topic_regex == theirs.source_topic_regex),
        ("the repartition source topics", mine.repartition_source_topics == theirs.repartition_source_topics),
        ("the repartition sink topics", mine.repartition_sink_topics == theirs.repartition_sink_topics),
        ("the state changelog topics", mine.state_changelog_topics == theirs.state_changelog_topics),
        ("the copartition groups", mine.copartition_groups == theirs.copartition_groups),
    ];
    fields.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
}

pub(super) fn stored(subtopology: &sent::Subtopology) -> Subtopology {
    Subtopology {
        subtopology_id: subtopology.subtopology_id.clone(),
        source_topics: subtopology.source_topics.clone(),
        source_topic_regex: subtopology.source_topic_regex.clone(),
        state_changelog_topics: subtopology.state_changelog_topics.iter().map(stored_topic).collect(),
        repartition_sink_topics: subtopology.repartition_sink_topics.clone(),
        repartition_source_topics: subtopology.repartition_source_topics.iter().map(stored_topic).collect(),
        copartition_groups: subtopology
            .copartition_groups
            .iter()
            .map(|group| CopartitionGroup {
                source_topics: group.source_topics.clone(),
                source_topic_regex: group.source_topic_regex.clone(),
                repartition_source_topics: group.repartition_source_topics.clone(),
            })
            .collect(),
    }
}

fn stored_topic(topic: &sent::TopicInfo) -> TopicInfo {
    TopicInfo {
        name: topic.name.clone(),
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        topic_configs: topic
            .topic_configs
            .iter()
            .map(|config| TopicConfig { key: config.key.clone(), value: config.value.clone() })
            .collect(),
    }
}

fn detached(subtopology: &Subtopology) -> Subtopology {
    let names = |names: &[KStr]| names.iter().map(KStr::to_owned_detached).collect();
    let topics = |topics: &[TopicInfo]| topics.iter().map(detached_topic).collect();
    Subtopology {
        subtopology_id: subtopology.subtopology_id.to_owned_detached(),
        source_topics: names(&subtopology.source_topics),
        source_topic_regex: names(&subtopology.source_topic_regex),
        state_changelog_topics: topics(&subtopology.state_changelog_topics),
        repartition_sink_topics: names(&subtopology.repartition_sink_topics),
        repartition_source_topics: topics(&subtopology.repartition_source_topics),
        copartition_groups: subtopology.copartition_groups.clone(),
    }
}

fn detached_topic(topic: &TopicInfo) -> TopicInfo {
    TopicInfo {
        name: topic.name.to_owned_detached(),
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        topic_configs: topic
            .topic_configs
            .iter()
            .map(|config| TopicConfig { key: config.key.to_owned_detached(), value: config.value.to_owned_detached() })
            .collect(),
    }
}
