//! Resolves a topology against the topics that exist: partition counts, numbers of tasks, internal topics to create
//! (S 4.3 to 4.7).

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;
use wire::messages::streams_group_topology_value::{CopartitionGroup, Subtopology, TopicInfo};

use super::error::Failure;
use super::topology::Topology;
use crate::assign;
use crate::outcome::InternalTopic;
use crate::topics::TopicImage;

/// Topics by source topic pattern (decision 25).
pub(crate) type Matches = BTreeMap<KStr, BTreeSet<KStr>>;

/// A resolved topology. Soft state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Configured {
    pub topology_epoch: i32,
    pub metadata_hash: i64,
    /// By id. None if counts could not be decided (status 1 or 2).
    pub subtopologies: Option<BTreeMap<KStr, ConfiguredSubtopology>>,
    /// Internal topics that do not exist yet, by name.
    pub missing: Vec<InternalTopic>,
    /// Why the group is not ready; none if it is.
    pub status: Option<TopicStatus>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredSubtopology {
    /// Number of tasks.
    pub tasks: i32,
    /// Source topics, those that match its patterns included; ascending.
    pub source_topics: BTreeSet<KStr>,
    /// With decided counts and the declared factor; by name.
    pub repartition_source_topics: Vec<InternalTopic>,
    pub changelog_topics: Vec<InternalTopic>,
}

/// A status of the response that makes the group not ready (S 0.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicStatus {
    pub code: StatusCode,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusCode {
    MissingSourceTopics = 1,
    IncorrectlyPartitionedTopics = 2,
    MissingInternalTopics = 3,
    /// While source topic patterns are being resolved (decision 25).
    AssignmentDelayed = 5,
}

impl Configured {
    pub(super) fn is_ready(&self) -> bool {
        self.status.is_none()
    }

    /// The topology epoch if the group is ready, else -1 (S 3.1).
    pub(super) fn validated_epoch(&self) -> i32 {
        if self.is_ready() { self.topology_epoch } else { -1 }
    }

    /// What an assignor is told; empty unless the group is ready.
    pub(super) fn for_assignor(&self) -> Vec<assign::Subtopology> {
        let ready = self.subtopologies.iter().filter(|_| self.is_ready()).flatten();
        let described = ready.map(|(id, subtopology)| assign::Subtopology {
            id: id.clone(),
            tasks: subtopology.tasks,
            stateful: !subtopology.changelog_topics.is_empty(),
        });
        described.collect()
    }

    pub(super) fn tasks(&self) -> usize {
        self.subtopologies.iter().flatten().map(|(_, subtopology)| subtopology.tasks as usize).sum()
    }

    /// Until it is known what the topology's patterns match.
    pub(super) fn waiting_for_patterns(topology: &Topology, metadata_hash: i64) -> Configured {
        let detail = "The source topic patterns are being resolved.".to_owned();
        let status = TopicStatus { code: StatusCode::AssignmentDelayed, detail };
        Configured::unresolved(topology, metadata_hash, status)
    }

    fn unresolved(topology: &Topology, metadata_hash: i64, status: TopicStatus) -> Configured {
        Configured {
            topology_epoch: topology.epoch,
            metadata_hash,
            subtopologies: None,
            missing: Vec::new(),
            status: Some(status),
        }
    }
}

/// Resolves `topology`. A result that is not ready carries the status that says why.
///
/// # Errors
/// STREAMS_INVALID_TOPOLOGY for topologies that cannot work with any topics (S 4.5.3, 4.5.4, 4.6.4, 4.7.1),
/// UNKNOWN_SERVER_ERROR for indexes outside their lists (S 1.3.3).
pub(crate) fn configure(
    topology: &Topology,
    metadata_hash: i64,
    topics: &TopicImage,
    matches: &Matches,
) -> Result<Configured, Failure> {
    if let Some(status) = missing_sources(topology, topics, matches) {
        return Ok(Configured::unresolved(topology, metadata_hash, status));
    }
    let mut resolver = Resolver { topology, topics, matches, decided: BTreeMap::new() };
    resolver.decide_repartition_counts()?;
    if let Err(mismatch) = resolver.enforce_copartitioning() {
        let status = mismatch.into_status()?;
        return Ok(Configured::unresolved(topology, metadata_hash, status));
    }
    let subtopologies = resolver.subtopologies()?;
    let (missing, mismatch) = internal_topics(&subtopologies, topics);
    if let Some(status) = mismatch {
        return Ok(Configured::unresolved(topology, metadata_hash, status));
    }
    let status = (!missing.is_empty()).then(|| missing_internal(&missing));
    let subtopologies = Some(subtopologies);
    Ok(Configured { topology_epoch: topology.epoch, metadata_hash, subtopologies, missing, status })
}

/// S 4.4; a pattern that matches nothing counts as a missing topic (decision 25).
fn missing_sources(topology: &Topology, topics: &TopicImage, matches: &Matches) -> Option<TopicStatus> {
    let mut missing = BTreeSet::new();
    for subtopology in topology.subtopologies.values() {
        missing.extend(subtopology.source_topics.iter().filter(|topic| topics.get(topic).is_none()));
        let patterns = subtopology.source_topic_regex.iter();
        missing.extend(patterns.filter(|pattern| matches.get(*pattern).is_none_or(BTreeSet::is_empty)));
    }
    if missing.is_empty() {
        return None;
    }
    let (names, more) = first_three(missing.iter().map(|name| name.as_str()), missing.len());
    let detail = format!("Source topics {names}{more} are missing.");
    Some(TopicStatus { code: StatusCode::MissingSourceTopics, detail })
}

/// S 4.7.4.
fn missing_internal(missing: &[InternalTopic]) -> TopicStatus {
    let (names, more) = first_three(missing.iter().map(|topic| topic.name.as_str()), missing.len());
    let detail = format!("Internal topics are missing: {names}{more}");
    TopicStatus { code: StatusCode::MissingInternalTopics, detail }
}

fn first_three<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> (String, String) {
    let shown = names.take(3).collect::<Vec<_>>().join(", ");
    let more = if count > 3 { format!(" and {} additional topics", count - 3) } else { String::new() };
    (shown, more)
}

/// Why copartitioning failed.
enum Mismatch {
    Status(String),
    Invalid(Failure),
}

impl Mismatch {
    fn into_status(self) -> Result<TopicStatus, Failure> {
        match self {
            Mismatch::Status(detail) => Ok(TopicStatus { code: StatusCode::IncorrectlyPartitionedTopics, detail }),
            Mismatch::Invalid(failure) => Err(failure),
        }
    }
}

struct Resolver<'a> {
    topology: &'a Topology,
    topics: &'a TopicImage,
    matches: &'a Matches,
    /// Partition counts of internal topics, as far as decided.
    decided: BTreeMap<&'a KStr, i32>,
}

impl<'a> Resolver<'a> {
    fn subtopologies_in_order(&self) -> impl Iterator<Item = &'a Subtopology> + use<'a> {
        self.topology.subtopologies.values()
    }

    /// S 4.5.
    fn decide_repartition_counts(&mut self) -> Result<(), Failure> {
        for topic in self.repartition_sources().filter(|topic| topic.partitions != 0) {
            self.decided.insert(&topic.name, topic.partitions);
        }
        loop {
            let (mut open, mut progress) = (false, false);
            for subtopology in self.subtopologies_in_order() {
                for sink in &subtopology.repartition_sink_topics {
                    if self.decided.contains_key(sink) {
                        continue;
                    }
                    match self.count_of_sinks(subtopology) {
                        Some(count) => {
                            self.decided.insert(sink, count);
                            progress = true;
                        }
                        None => open = true,
                    }
                }
            }
            if !open {
                break;
            }
            if !progress {
                return Err(Failure::topology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the \
                     topology that cannot be resolved.",
                ));
            }
        }
        match self.repartition_sources().find(|topic| !self.decided.contains_key(&topic.name)) {
            None => Ok(()),
            Some(_) => Err(Failure::topology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic is \
                 never used as a sink topic.",
            )),
        }
    }

    fn repartition_sources(&self) -> impl Iterator<Item = &'a TopicInfo> + use<'a> {
        self.subtopologies_in_order().flat_map(|subtopology| &subtopology.repartition_source_topics)
    }

    /// S 4.5.2: the largest count among what the subtopology reads, as far as it is known.
    fn count_of_sinks(&self, subtopology: &'a Subtopology) -> Option<i32> {
        let repartition =
            subtopology.repartition_source_topics.iter().filter_map(|topic| self.decided.get(&topic.name));
        let sources = self.external_sources(subtopology);
        repartition.copied().chain(sources.iter().filter_map(|topic| self.existing(topic))).max()
    }

    fn external_sources(&self, subtopology: &'a Subtopology) -> BTreeSet<&'a KStr> {
        let matched = subtopology.source_topic_regex.iter().filter_map(|pattern| self.matches.get(pattern)).flatten();
        subtopology.source_topics.iter().chain(matched).collect()
    }

    fn existing(&self, topic: &str) -> Option<i32> {
        self.topics.get(topic).map(|topic| topic.partitions)
    }

    /// S 4.5.5: the count that a topic has goes before the one that was decided.
    fn count(&self, topic: &KStr) -> i32 {
        self.existing(topic).or_else(|| self.decided.get(topic).copied()).unwrap_or(0)
    }

    /// S 4.6.
    fn enforce_copartitioning(&mut self) -> Result<(), Mismatch> {
        for subtopology in self.subtopologies_in_order() {
            for group in &subtopology.copartition_groups {
                let members = self.members(subtopology, group).map_err(Mismatch::Invalid)?;
                if !members.sources.is_empty() || !members.repartition.is_empty() {
                    self.enforce(&members)?;
                }
            }
        }
        Ok(())
    }

    /// The topics that a copartition group points at.
    fn members(&self, subtopology: &'a Subtopology, group: &CopartitionGroup) -> Result<Copartitioned<'a>, Failure> {
        fn at<'a, T>(list: &'a [T], indexes: &[i16]) -> Result<Vec<&'a T>, Failure> {
            let pick = |index: &i16| usize::try_from(*index).ok().and_then(|index| list.get(index));
            indexes.iter().map(|index| pick(index).ok_or_else(Failure::unknown)).collect()
        }
        let mut sources: BTreeSet<&KStr> = at(&subtopology.source_topics, &group.source_topics)?.into_iter().collect();
        for pattern in at(&subtopology.source_topic_regex, &group.source_topic_regex)? {
            sources.extend(self.matches.get(pattern).into_iter().flatten());
        }
        let repartition = at(&subtopology.repartition_source_topics, &group.repartition_source_topics)?;
        let repartition = repartition.into_iter().map(|topic| (&topic.name, topic)).collect();
        Ok(Copartitioned { sources, repartition })
    }

    fn enforce(&mut self, members: &Copartitioned<'a>) -> Result<(), Mismatch> {
        let count = if members.sources.is_empty() {
            self.count_among_repartition_topics(members)?
        } else {
            let counts: BTreeMap<_, _> = members.sources.iter().map(|topic| (*topic, self.count(topic))).collect();
            equal(&counts)?
        };
        if count == 0 {
            return Err(Mismatch::Invalid(Failure::topology(
                "All topics in the copartition group have a partition count of 0.",
            )));
        }
        for (name, topic) in &members.repartition {
            let fixed = self.count(name);
            if topic.partitions != 0 && fixed != count {
                return Err(Mismatch::Status(format!(
                    "Number of partitions [{fixed}] of repartition topic [{name}] doesn't match number of partitions [{count}] of \
                     the source topic."
                )));
            }
            self.decided.insert(name, count);
        }
        Ok(())
    }

    /// S 4.6.2: fixed counts of the whole topology rule, as in Kafka.
    fn count_among_repartition_topics(&self, members: &Copartitioned<'a>) -> Result<i32, Mismatch> {
        let counts: BTreeMap<_, _> = members.repartition.keys().map(|topic| (*topic, self.count(topic))).collect();
        let fixed = self.repartition_sources().filter(|topic| topic.partitions != 0);
        let mut fixed = fixed.map(|topic| self.count(&topic.name));
        match fixed.next() {
            None => Ok(counts.values().copied().max().unwrap_or(0)),
            Some(first) if fixed.all(|partitions| partitions == first) => Ok(first),
            Some(_) => Err(different_counts(&counts)),
        }
    }

    /// S 4.7.1, 4.7.2.
    fn subtopologies(&self) -> Result<BTreeMap<KStr, ConfiguredSubtopology>, Failure> {
        let mut configured = BTreeMap::new();
        for (id, subtopology) in &self.topology.subtopologies {
            let source_topics = self.external_sources(subtopology);
            let repartition = subtopology.repartition_source_topics.iter().map(|topic| &topic.name);
            let counts = source_topics.iter().copied().chain(repartition).map(|topic| self.count(topic));
            let Some(tasks) = counts.max() else {
                return Err(Failure::topology(format!("No source topics found for subtopology {id}")));
            };
            let repartition_source_topics = by_name(&subtopology.repartition_source_topics, |topic| {
                if topic.partitions != 0 {
                    topic.partitions
                } else {
                    self.decided.get(&topic.name).copied().unwrap_or(0)
                }
            });
            let changelog_topics = by_name(&subtopology.state_changelog_topics, |_| tasks);
            let source_topics = source_topics.into_iter().cloned().collect();
            let each = ConfiguredSubtopology { tasks, source_topics, repartition_source_topics, changelog_topics };
            configured.insert(id.clone(), each);
        }
        Ok(configured)
    }
}

/// The topics of one copartition group.
struct Copartitioned<'a> {
    sources: BTreeSet<&'a KStr>,
    repartition: BTreeMap<&'a KStr, &'a TopicInfo>,
}

fn equal(counts: &BTreeMap<&KStr, i32>) -> Result<i32, Mismatch> {
    let first = counts.values().next().copied().unwrap_or(0);
    if counts.values().all(|count| *count == first) { Ok(first) } else { Err(different_counts(counts)) }
}

fn different_counts(counts: &BTreeMap<&KStr, i32>) -> Mismatch {
    let listed: Vec<_> = counts.iter().map(|(topic, count)| format!("{topic}={count}")).collect();
    let listed = listed.join(", ");
    Mismatch::Status(format!("Following topics do not have the same number of partitions: [{{{listed}}}]"))
}

fn by_name(topics: &[TopicInfo], partitions: impl Fn(&TopicInfo) -> i32) -> Vec<InternalTopic> {
    let named = topics.iter().map(|topic| {
        let configs = topic.topic_configs.iter().map(|config| (config.key.clone(), config.value.clone()));
        let internal = InternalTopic {
            name: topic.name.clone(),
            partitions: partitions(topic),
            replication_factor: topic.replication_factor,
            configs: configs.collect(),
        };
        (topic.name.clone(), internal)
    });
    named.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// S 4.7.3, 4.7.4: what has to be created, or the first topic that has another count than it should.
fn internal_topics(
    subtopologies: &BTreeMap<KStr, ConfiguredSubtopology>,
    topics: &TopicImage,
) -> (Vec<InternalTopic>, Option<TopicStatus>) {
    let repartition = subtopologies.values().flat_map(|each| &each.repartition_source_topics);
    let changelogs = subtopologies.values().flat_map(|each| &each.changelog_topics);
    let repartition: BTreeMap<_, _> = repartition.map(|topic| (&topic.name, topic)).collect();
    let changelogs: BTreeMap<_, _> = changelogs.map(|topic| (&topic.name, topic)).collect();
    // Repartition topics first: a wrong changelog is often only the consequence of one.
    for topic in repartition.values().chain(changelogs.values()) {
        let Some(existing) = topics.get(&topic.name) else { continue };
        if existing.partitions != topic.partitions {
            let detail = format!(
                "Existing topic {} has different number of partitions: expected {}, found {}",
                topic.name, topic.partitions, existing.partitions
            );
            return (Vec::new(), Some(TopicStatus { code: StatusCode::IncorrectlyPartitionedTopics, detail }));
        }
    }
    let all: BTreeMap<_, _> = repartition.into_iter().chain(changelogs).collect();
    let missing = all.into_values().filter(|topic| topics.get(&topic.name).is_none());
    let missing = missing.map(|topic| {
        let replication_factor = if topic.replication_factor == 0 { -1 } else { topic.replication_factor };
        InternalTopic { replication_factor, ..topic.clone() }
    });
    (missing.collect(), None)
}

/// Topics whose metadata the group depends on, with those that its patterns match; ascending.
pub(super) fn required_topics<'a>(topology: &'a Topology, matches: &'a Matches) -> BTreeSet<&'a KStr> {
    let matched = topology.patterns().iter().filter_map(|pattern| matches.get(pattern)).flatten();
    topology.required().iter().chain(matched).collect()
}

#[cfg(test)]
mod tests {
    use wire::Uuid;
    use wire::messages::streams_group_topology_value::StreamsGroupTopologyValue;

    use super::*;
    use crate::topics::TopicMetadata;

    /// S 4.5.5, 4.6: a repartition topic that exists counts with the partitions that it has, whatever was declared.
    #[test]
    fn a_copartitioned_repartition_topic_that_exists_is_held_to_what_it_has() {
        let names = |names: &[&str]| names.iter().map(|name| KStr::copy(name)).collect();
        let fixed = |name: &str| TopicInfo { name: KStr::copy(name), partitions: 2, ..TopicInfo::default() };
        let writer = Subtopology {
            subtopology_id: "0".into(),
            source_topics: names(&["in"]),
            repartition_sink_topics: names(&["r", "s"]),
            ..Subtopology::default()
        };
        // One copartitioned with a source topic of 2, one group of repartition topics only.
        let with_source = CopartitionGroup {
            source_topics: vec![0],
            repartition_source_topics: vec![0],
            ..CopartitionGroup::default()
        };
        let alone = CopartitionGroup { repartition_source_topics: vec![0, 1], ..CopartitionGroup::default() };
        let cases = [
            (&with_source, [2, 2], None),
            (
                &with_source,
                [3, 2],
                Some("Number of partitions [3] of repartition topic [r] doesn't match number of partitions [2]"),
            ),
            (&alone, [2, 2], None),
            (&alone, [2, 3], Some("Following topics do not have the same number of partitions: [{r=2, s=3}]")),
            (&alone, [3, 3], Some("Existing topic r has different number of partitions: expected 2, found 3")),
        ];
        for (group, [r, s], expected) in cases {
            let reader = Subtopology {
                subtopology_id: "1".into(),
                source_topics: names(&["in"]),
                repartition_source_topics: vec![fixed("r"), fixed("s")],
                copartition_groups: vec![group.clone()],
                ..Subtopology::default()
            };
            let value = StreamsGroupTopologyValue { epoch: 0, subtopologies: vec![writer.clone(), reader] };
            let topology = Topology::from_record(&value);
            let mut topics = TopicImage::default();
            for (number, (name, partitions)) in [("in", 2), ("r", r), ("s", s)].into_iter().enumerate() {
                let id = Uuid::from_u128(number as u128 + 1);
                topics.insert(name.into(), TopicMetadata { id, partitions, rack: None });
            }
            let configured = configure(&topology, 0, &topics, &Matches::new()).expect("it is a valid topology");
            let detail = configured.status.as_ref().map(|status| status.detail.as_str());
            assert_eq!(detail.is_some(), expected.is_some(), "{detail:?}");
            assert!(detail.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{detail:?}");
        }
    }
}
