//! What can be said about a heartbeat without looking at the group (S 1.1, 1.2). The first failure answers.
//!
//! Authorisation comes between these checks in Kafka and is the server's.

use std::collections::BTreeSet;

use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, TaskIds, Topology};
use wire::{ErrorCode, KStr};

use super::error::Failure;
use crate::config::BrokerConfig;
use crate::group::regex;

/// Topics of the broker itself.
const INTERNAL_TOPICS: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];
const MAX_TOPIC_NAME: usize = 249;

/// Characters of one source topic pattern (decision 25); what it compiles to is limited by `regex`.
const MAX_PATTERN_LENGTH: usize = 1000;

/// S 1.1 and 1.2, in this order.
pub(crate) fn request(request: &StreamsGroupHeartbeatRequest, broker: &BrokerConfig) -> Result<(), Failure> {
    if !broker.streams_protocol_enabled {
        return Err(Failure::bare(ErrorCode::UnsupportedVersion));
    }
    if let Some(topology) = &request.topology {
        topic_names(topology)?;
        patterns(topology)?;
    }
    identities(request)?;
    match request.member_epoch {
        0 => join(request)?,
        -2 if request.instance_id.is_none() => {
            return Err(Failure::invalid("InstanceId can't be null."));
        }
        epoch if epoch < -2 => {
            return Err(Failure::invalid(format!("MemberEpoch is {epoch}, but must be greater than or equal to -2.")));
        }
        _ => {}
    }
    let lists = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    let present = lists.iter().filter(|list| list.is_some()).count();
    if present != 0 && present != lists.len() {
        return Err(Failure::invalid("If one task-type is non-null, all must be non-null."));
    }
    if request.member_epoch != 0 && request.topology.is_some() {
        return Err(Failure::invalid("Topology can only be provided when (re-)joining."));
    }
    Ok(())
}

/// S 1.2.3 to 1.2.6.
fn identities(request: &StreamsGroupHeartbeatRequest) -> Result<(), Failure> {
    let empty = |id: &Option<KStr>| id.as_ref().is_some_and(|id| id.is_empty());
    let message = if request.member_id.is_empty() {
        "MemberId can't be empty."
    } else if request.group_id.is_empty() {
        "GroupId can't be empty."
    } else if empty(&request.instance_id) {
        "InstanceId can't be empty."
    } else if empty(&request.rack_id) {
        "RackId can't be empty."
    } else {
        return Ok(());
    };
    Err(Failure::invalid(message))
}

/// S 1.2.7.
fn join(request: &StreamsGroupHeartbeatRequest) -> Result<(), Failure> {
    if request.rebalance_timeout_ms == -1 {
        return Err(Failure::invalid("RebalanceTimeoutMs must be provided in first request."));
    }
    let present_and_empty = |list: &Option<Vec<TaskIds>>| list.as_ref().is_some_and(Vec::is_empty);
    for (name, list) in [
        ("ActiveTasks", &request.active_tasks),
        ("StandbyTasks", &request.standby_tasks),
        ("WarmupTasks", &request.warmup_tasks),
    ] {
        if !present_and_empty(list) {
            return Err(Failure::invalid(format!("{name} must be empty when (re-)joining.")));
        }
    }
    let Some(topology) = &request.topology else {
        return Err(Failure::invalid("Topology must be non-null when (re-)joining."));
    };
    let changelogs = topology.subtopologies.iter().flat_map(|subtopology| &subtopology.state_changelog_topics);
    for topic in changelogs {
        if topic.partitions != 0 {
            return Err(Failure::topology(format!(
                "Changelog topic {} must have an undefined partition count, but it is set to {}.",
                topic.name, topic.partitions
            )));
        }
    }
    Ok(())
}

/// S 1.1.3, for any request that carries a topology.
fn topic_names(topology: &Topology) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    let (mut internal, mut illegal) = (Vec::new(), Vec::new());
    for subtopology in &topology.subtopologies {
        let names = subtopology
            .source_topics
            .iter()
            .chain(&subtopology.repartition_sink_topics)
            .chain(subtopology.repartition_source_topics.iter().map(|topic| &topic.name))
            .chain(subtopology.state_changelog_topics.iter().map(|topic| &topic.name));
        for name in names {
            if !seen.insert(name) {
                continue;
            }
            if is_internal(name) {
                internal.push(name.as_str());
            }
            if !is_legal(name) {
                illegal.push(name.as_str());
            }
        }
    }
    if !internal.is_empty() {
        return Err(Failure::topology(format!(
            "Use of Kafka internal topics {} in a Kafka Streams topology is prohibited.",
            internal.join(",")
        )));
    }
    if !illegal.is_empty() {
        return Err(Failure::topology(format!("Topic names {} are not valid topic names.", illegal.join(","))));
    }
    Ok(())
}

/// Decision 25: patterns are accepted if they compile within the limits.
fn patterns(topology: &Topology) -> Result<(), Failure> {
    for pattern in topology.subtopologies.iter().flat_map(|subtopology| &subtopology.source_topic_regex) {
        if pattern.chars().count() > MAX_PATTERN_LENGTH {
            return Err(Failure::topology(format!(
                "A source topic pattern is longer than {MAX_PATTERN_LENGTH} characters."
            )));
        }
        if let Err(error) = regex::check(pattern) {
            return Err(Failure::topology(format!("The source topic pattern {pattern} cannot be used: {error}.")));
        }
    }
    Ok(())
}

/// Topics of the broker itself, which no topology may touch.
pub(super) fn is_internal(name: &str) -> bool {
    INTERNAL_TOPICS.contains(&name)
}

fn is_legal(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=MAX_TOPIC_NAME).contains(&name.len()) && name != "." && name != ".." && name.chars().all(legal)
}
