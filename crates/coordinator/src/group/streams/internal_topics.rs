//! Creation of repartition and changelog topics as the coordinator sees it (S 4.8): what is asked for, what failed, and how
//! status 3 says so. The topics are made by the server, which also asks its authorizer.

use std::collections::BTreeMap;

use wire::KStr;

use super::configure::{Configured, StatusCode};
use super::settings::Settings;
use crate::outcome::InternalTopic;
use crate::shard::Ctx;

/// Errors kept per group (S 4.8.5).
const MAX_ERRORS: usize = 1000;
/// An answer that has not come for so long never will.
const LOST_AFTER_MS: u64 = 60_000;

/// Soft state.
#[derive(Debug, Default)]
pub(super) struct Creation {
    /// Topics being created, with the time when that was asked for.
    in_flight: BTreeMap<KStr, u64>,
    errors: BTreeMap<KStr, CachedError>,
    /// Topics that the latest caller may not create.
    unauthorized: Vec<KStr>,
}

#[derive(Debug)]
struct CachedError {
    message: String,
    until_ms: u64,
}

impl Creation {
    /// Which of the missing topics are to be asked for now; those in flight or with a recent error are not (S 4.8.4).
    pub(super) fn ask(&mut self, missing: &[InternalTopic], now_ms: u64) -> Vec<InternalTopic> {
        self.errors.retain(|_, error| error.until_ms > now_ms);
        self.in_flight.retain(|_, asked_ms| now_ms.saturating_sub(*asked_ms) < LOST_AFTER_MS);
        let due = |topic: &&InternalTopic| {
            !self.in_flight.contains_key(&topic.name) && !self.errors.contains_key(&topic.name)
        };
        let topics: Vec<InternalTopic> = missing.iter().filter(due).cloned().collect();
        self.in_flight.extend(topics.iter().map(|topic| (topic.name.clone(), now_ms)));
        topics
    }

    /// No answer will come to what was asked for.
    pub(super) fn nothing_in_flight(&mut self) {
        self.in_flight.clear();
    }

    fn answered(&mut self, failures: Vec<(KStr, String)>, unauthorized: Vec<KStr>, until_ms: u64) {
        self.in_flight.clear();
        self.unauthorized = unauthorized;
        self.unauthorized.sort();
        for (topic, message) in failures {
            if self.errors.len() < MAX_ERRORS || self.errors.contains_key(&topic) {
                self.errors.insert(topic, CachedError { message, until_ms });
            }
        }
    }

    /// A topic that was made or deleted is asked for anew when it is missed again.
    pub(super) fn appeared_or_gone(&mut self, topic: &str) {
        self.in_flight.remove(topic);
    }

    /// What status 3 adds to its detail (S 4.8.2, 4.8.5).
    fn remark(&self, missing: &[InternalTopic], now_ms: u64) -> String {
        let denied: Vec<&str> = self
            .unauthorized
            .iter()
            .filter(|name| missing.iter().any(|topic| topic.name == ***name))
            .map(KStr::as_str)
            .collect();
        if !denied.is_empty() {
            return format!("; Unauthorized to CREATE on topics {}.", denied.join(", "));
        }
        let failed: Vec<String> = missing
            .iter()
            .filter_map(|topic| Some((&topic.name, self.errors.get(&topic.name)?)))
            .filter(|(_, error)| error.until_ms > now_ms)
            .map(|(name, error)| format!("{name} ({})", error.message))
            .collect();
        match failed.len() {
            0 => String::new(),
            1..=3 => format!("; Creation failed: {}.", failed.join(", ")),
            count => format!("; Creation failed: {} and {} more.", failed[..3].join(", "), count - 3),
        }
    }

    /// The detail of the status that the resolved topology has, if it has one.
    pub(super) fn detail(&self, configured: &Configured, now_ms: u64) -> Option<(StatusCode, KStr)> {
        let status = configured.status.as_ref()?;
        let remark = match status.code {
            StatusCode::MissingInternalTopics => self.remark(&configured.missing, now_ms),
            _ => String::new(),
        };
        Some((status.code, KStr::from(format!("{}{remark}", status.detail))))
    }
}

/// The answer to `Effect::CreateInternalTopics`. Errors are kept for two full heartbeat intervals (S 4.8.5).
pub(crate) fn internal_topics_created(
    ctx: &mut Ctx<'_, '_>,
    group_id: &KStr,
    failures: Vec<(KStr, String)>,
    unauthorized: Vec<KStr>,
) {
    let settings = Settings::of(ctx.env.config, group_id);
    let until_ms = ctx.at.mono_ms + 2 * settings.full_heartbeat_ms().max(0) as u64;
    if let Some(soft) = ctx.soft.streams.get_mut(group_id) {
        soft.creation.answered(failures, unauthorized, until_ms);
    }
}
