//! Subscriptions by regular expression (C K-33 to K-35). Expressions are checked here and resolved off the shard; what
//! they match is part of the group's log.

use std::collections::BTreeSet;

use wire::{ErrorCode, KStr};

use super::fault::Fault;
use super::member::Wants;
use super::subscription::Counts;
use super::{Group, records, soft};
use crate::env::Moment;
use crate::group;
use crate::outcome::Effect;
use crate::record::Record;
use crate::shard::Ctx;

/// Least time between two resolutions of a group (C K-35).
const MIN_REFRESH_MS: i64 = 10_000;

/// What an expression matched when it was last looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Resolved {
    pub topics: BTreeSet<KStr>,
    /// Of the topic image.
    pub version: i64,
    /// Wall clock.
    pub time_ms: i64,
}

/// What a member's change of its expression comes to.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The group's epoch has to move (C K-15).
    pub bump: bool,
    /// Nobody subscribed by it before, so it waits to be resolved.
    pub is_new: bool,
    /// Nobody subscribes by it any longer.
    pub tombstone: Option<KStr>,
}

/// Compares the expression of a member before and after. A new one is checked, unless somebody uses it already.
pub(super) fn change(group: &Group, old: &KStr, new: &KStr) -> Result<Change, Fault> {
    let mut change = Change::default();
    if old == new {
        return Ok(change);
    }
    if !old.is_empty() && group.counts.by_regex(old) == 1 {
        change.tombstone = Some(old.clone());
    }
    if new.is_empty() {
        change.bump = true;
    } else if group.counts.by_regex(new) > 0 {
        change.bump = group.regexes.contains_key(new);
    } else {
        group::regex::check(new).map_err(|error| {
            let message = format!("SubscribedTopicRegex `{new}` is not a valid regular expression: {error}.");
            Fault::new(ErrorCode::InvalidRegularExpression, message)
        })?;
        change.is_new = true;
    }
    Ok(change)
}

/// Asks for a resolution if one is due (C K-35). `counts` are those after the heartbeat at hand.
pub(super) fn maybe_resolve(ctx: &mut Ctx<'_, '_>, group_id: &KStr, group: &Group, counts: &Counts) {
    if !counts.has_regexes() {
        return;
    }
    let at = ctx.at;
    let interval_ms = i64::from(ctx.env.config.broker.consumer_regex_refresh_interval_ms);
    let soft = soft::entry(ctx.soft, group_id);
    if !is_due(group, counts, soft, at, interval_ms) {
        return;
    }
    soft.resolving = true;
    soft.new_topics = false;
    let expressions = counts.regexes().cloned().collect();
    let group_id = group_id.to_owned_detached();
    ctx.out.effects.push(Effect::ResolveRegex { group_id, expressions });
}

fn is_due(group: &Group, counts: &Counts, soft: &soft::Soft, at: Moment, interval_ms: i64) -> bool {
    if soft.resolving {
        return false;
    }
    let recorded_ms = group.regexes.values().map(|resolved| resolved.time_ms).max();
    let Some(last_ms) = recorded_ms.max(soft.unresolvable_ms) else { return true };
    let age_ms = at.wall_ms.saturating_sub(last_ms);
    // A clock that was set back must not stop it.
    if (0..=MIN_REFRESH_MS).contains(&age_ms) {
        return false;
    }
    let is_new = counts.regexes().any(|regex| group.counts.by_regex(regex) == 0);
    // Kafka compares numbers: a member that goes over to an unresolved expression of others may have to wait a heartbeat.
    let unresolved = counts.regexes().count() != group.regexes.len();
    is_new || unresolved || soft.new_topics || age_ms < 0 || age_ms >= interval_ms
}

/// The answer to `Effect::ResolveRegex`: a changed result moves the group's epoch, as do other topics than at the last one.
pub(crate) fn resolved(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    matches: Vec<(KStr, Result<Vec<KStr>, String>)>,
    image_version: u64,
) {
    let state = ctx.state;
    let Some(group::Group::Consumer(group)) = state.group(group_id) else { return };
    let at = ctx.at;
    let soft = soft::entry(ctx.soft, group_id);
    soft.resolving = false;
    if matches.iter().any(|(_, topics)| topics.is_err()) {
        soft.unresolvable_ms = Some(at.wall_ms);
    }
    let mut regexes = group.regexes.clone();
    let mut changed = false;
    for (expression, topics) in matches {
        // One that could not be resolved keeps what it matched before.
        let (Ok(topics), true) = (topics, group.counts.by_regex(&expression) > 0) else { continue };
        let resolved = Resolved {
            topics: topics.into_iter().collect(),
            version: i64::try_from(image_version).unwrap_or(i64::MAX),
            time_ms: at.wall_ms,
        };
        let before = group.regexes.get(&expression).map(|resolved| &resolved.topics);
        changed |= before.map_or(!resolved.topics.is_empty(), |before| *before != resolved.topics);
        ctx.out.records.push(records::regex(group_id, &expression, &resolved));
        regexes.insert(expression, resolved);
    }
    // The hash also shows topics that went with an expression that nobody uses any longer.
    let hash = super::metadata_hash(group.counts.topics(&regexes), ctx.env.topics);
    if changed || hash != group.metadata_hash {
        ctx.out.records.push(records::epoch(group_id, group.epoch + 1, hash));
        soft::entry(ctx.soft, group_id).metadata_checked(at);
    }
}

/// Tombstones for the expressions that nobody uses once these members are gone.
pub(super) fn tombstones_without<'a>(
    group_id: &'a KStr,
    group: &'a Group,
    left: &'a Counts,
) -> impl Iterator<Item = Record> + 'a {
    let unused = group.counts.regexes().filter(|regex| left.by_regex(regex) == 0);
    unused.map(|regex| records::regex_tombstone(group_id, regex))
}

/// Whether the member waits for its expression to be resolved.
pub(super) fn waits(group: &Group, wants: &Wants) -> bool {
    !wants.regex.is_empty() && !group.regexes.contains_key(&wants.regex)
}
