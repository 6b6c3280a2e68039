//! New committed offsets for a group without members, in the forms of Kafka's own tool. Planning changes nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use wire::ErrorCode;

use super::offsets::{commit, committed};
use super::positions::{Position, offsets};
use super::{Isolation, TopicPartition, topics};
use crate::error::ClientError;
use crate::router::Client;

/// Where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Earliest,
    Latest,
    /// The committed offset again, or the end of the log without one.
    Current,
    Offset(i64),
    /// The first record at or after a time, in milliseconds since 1970; the end of the log if there is none.
    Time(i64),
    /// So many records on, or back if negative.
    Shift(i64),
    /// Each partition its own.
    Each(BTreeMap<TopicPartition, i64>),
}

/// Which partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the group has committed.
    AllTopics,
    /// A topic whole, or some partitions of it.
    Topics(Vec<(String, Option<Vec<i32>>)>),
}

/// One partition of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reset {
    pub topic: String,
    pub partition: i32,
    pub current: Option<i64>,
    pub new: i64,
    /// What was asked for, where it lies outside of the log and was moved to its nearer end.
    pub wanted: Option<i64>,
}

/// What a reset would do. Fails if a topic or partition does not exist.
pub async fn plan(
    client: &mut Client,
    group_id: &str,
    scope: &Scope,
    target: &Target,
) -> Result<Vec<Reset>, ClientError> {
    let current = committed(client, group_id).await?;
    let partitions = partitions(client, scope, target, &current).await?;
    let all = |position| partitions.iter().map(|at| (at.clone(), position)).collect::<BTreeMap<_, _>>();
    let starts = offsets(client, &all(Position::Earliest), Isolation::ReadUncommitted).await?;
    let ends = offsets(client, &all(Position::Latest), Isolation::ReadUncommitted).await?;
    let by_time = match target {
        Target::Time(time) => offsets(client, &all(Position::AtTime(*time)), Isolation::ReadUncommitted).await?,
        _ => BTreeMap::new(),
    };
    let mut plan = Vec::new();
    for at in &partitions {
        let (start, end) = (known(&starts, at)?.unwrap_or(0), known(&ends, at)?.unwrap_or(0));
        let committed = current.get(at).copied();
        let wanted = match target {
            Target::Earliest => start,
            Target::Latest => end,
            Target::Current => committed.unwrap_or(end),
            Target::Offset(offset) => *offset,
            Target::Time(_) => known(&by_time, at)?.unwrap_or(end),
            Target::Shift(by) => match committed {
                Some(committed) => committed.saturating_add(*by),
                None => return Err(refused(format!("{at} has no committed offset to shift"))),
            },
            Target::Each(offsets) => offsets[at],
        };
        let new = wanted.clamp(start, end.max(start));
        plan.push(Reset {
            topic: at.topic.clone(),
            partition: at.partition,
            current: committed,
            new,
            wanted: (new != wanted).then_some(wanted),
        });
    }
    Ok(plan)
}

/// Commits a plan. Each partition has an outcome of its own, in the order of the plan.
pub async fn apply(client: &mut Client, group_id: &str, plan: &[Reset]) -> Result<Vec<ErrorCode>, ClientError> {
    let at = |reset: &Reset| TopicPartition::new(&reset.topic, reset.partition);
    let offsets = plan.iter().map(|reset| (at(reset), reset.new)).collect();
    let outcomes = commit(client, group_id, &offsets).await?;
    let outcome = |reset| outcomes.get(&at(reset)).copied().unwrap_or(ErrorCode::UnknownServerError);
    Ok(plan.iter().map(outcome).collect())
}

async fn partitions(
    client: &mut Client,
    scope: &Scope,
    target: &Target,
    current: &BTreeMap<TopicPartition, i64>,
) -> Result<Vec<TopicPartition>, ClientError> {
    if let Target::Each(offsets) = target {
        return Ok(offsets.keys().cloned().collect());
    }
    let Scope::Topics(wanted) = scope else {
        return Ok(current.keys().cloned().collect());
    };
    let mut partitions = Vec::new();
    for (name, numbers) in wanted {
        let topic = topics::get(client, name).await?;
        match numbers {
            None => partitions.extend(topic.partitions.iter().map(|p| TopicPartition::new(name, p.partition))),
            Some(numbers) => partitions.extend(numbers.iter().map(|number| TopicPartition::new(name, *number))),
        }
    }
    partitions.sort();
    partitions.dedup();
    Ok(partitions)
}

fn known(
    offsets: &BTreeMap<TopicPartition, Result<Option<i64>, ErrorCode>>,
    at: &TopicPartition,
) -> Result<Option<i64>, ClientError> {
    match offsets.get(at) {
        Some(Ok(offset)) => Ok(*offset),
        Some(Err(code)) => Err(ClientError::Kafka { code: *code, message: Some(at.to_string()) }),
        None => Err(ClientError::Incomplete("a partition is missing in the answer")),
    }
}

fn refused(message: String) -> ClientError {
    ClientError::Kafka { code: ErrorCode::InvalidRequest, message: Some(message) }
}
