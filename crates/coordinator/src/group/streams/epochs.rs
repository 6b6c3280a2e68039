//! When a group is assigned anew (S 3.3, 3.4), and when that has to wait (S 3.6, 3.7).

use std::sync::Arc;

use super::Group;
use super::configure::{Configured, Matches, configure, required_topics};
use super::error::Failure;
use super::metadata_hash;
use super::settings::Settings;
use super::soft::Soft;
use super::topology::Topology;
use crate::topics::TopicImage;

/// What became of the topics of a topology.
pub(super) struct Look {
    pub configured: Arc<Configured>,
    /// It was looked at anew, so that the result has to be kept.
    pub fresh: bool,
}

/// Resolves the topology if something about it or its topics may have changed (S 3.3.2, 4.3).
pub(super) fn look_at_topics(
    group: Option<&Group>,
    soft: &Soft,
    topology: &Topology,
    topology_is_new: bool,
    topics: &TopicImage,
) -> Result<Look, Failure> {
    let known = soft.configured().filter(|_| !topology_is_new);
    if let Some(configured) = known.filter(|_| soft.metadata_fresh) {
        return Ok(Look { configured: Arc::clone(configured), fresh: false });
    }
    let matches: &Matches = soft.patterns.matches();
    let hash = metadata_hash::of_topics(required_topics(topology, matches).into_iter(), topics);
    if topology.has_patterns() && !soft.patterns.cover(topology) {
        return Ok(Look { configured: Arc::new(Configured::waiting_for_patterns(topology, hash)), fresh: true });
    }
    let unchanged = group.is_some_and(|group| group.metadata_hash == hash);
    if let Some(configured) = known.filter(|configured| unchanged && configured.metadata_hash == hash) {
        return Ok(Look { configured: Arc::clone(configured), fresh: true });
    }
    Ok(Look { configured: Arc::new(configure(topology, hash, topics, matches)?), fresh: true })
}

/// Whether what was found out about topics and configuration calls for a new group epoch (S 3.4.2 to 3.4.4).
pub(super) fn outdated(group: Option<&Group>, configured: &Configured, settings: &Settings<'_>) -> bool {
    let Some(group) = group else { return true };
    configured.metadata_hash != group.metadata_hash
        || configured.validated_epoch() != group.validated_topology_epoch
        || !settings.matches(group.assignment_configs.as_ref())
}

/// Why there is no new assignment yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delayed {
    InitialDelay,
    /// The last computation is too recent (S 3.7.2).
    Interval,
    /// As `Interval`, but nobody configured it. Members are not told: a client that is told that the assignment is delayed
    /// does not process what it has meanwhile (S 11.3.4).
    Quietly,
}

impl Delayed {
    /// The detail of the status, if there is one.
    pub(super) fn detail(self) -> Option<&'static str> {
        match self {
            Delayed::InitialDelay => Some("Assignment delayed due to the configured initial rebalance delay."),
            Delayed::Interval => Some("Assignment delayed due to the configured assignment interval."),
            Delayed::Quietly => None,
        }
    }
}

/// Whether the last computation is too recent for another one (S 3.7.2, decision 14b).
pub(super) fn assignment_delayed(
    group: &Group,
    settings: &Settings<'_>,
    configured: &Configured,
    members: usize,
    wall_ms: i64,
) -> Option<Delayed> {
    let (interval_ms, configured) = settings.assignment_interval(members, configured.tasks());
    let last_ms = group.assignment_timestamp_ms;
    // A clock that was put back must not delay for as long as it was put back.
    let since = wall_ms - last_ms;
    let too_recent = last_ms != 0 && interval_ms != 0 && (0..i64::from(interval_ms)).contains(&since);
    too_recent.then_some(if configured { Delayed::Interval } else { Delayed::Quietly })
}

/// The number of standbys of the last group record.
pub(super) fn recorded_standby_replicas(group: &Group, settings: &Settings<'_>) -> u32 {
    let recorded = settings.recorded_standby_replicas(group.assignment_configs.as_ref());
    recorded.unwrap_or(settings.num_standby_replicas()).max(0) as u32
}
