//! One scrape: counters, and what is looked up for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use coordinator::{Command, Reply};
use wire::KStr;

use super::exposition::Exposition;
use super::process;
use crate::broker::Broker;
use crate::lag;

/// Most series of each lag metric: pairs of group and topic. Those that lag most are kept.
const LAG_SERIES: usize = 2_000;

/// Prometheus' text format.
pub(crate) async fn scrape(broker: &Arc<Broker>) -> String {
    let mut out = Exposition::default();
    out.gauge("millstream_build_info", "Always 1; the version is a label.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    out.gauge("millstream_uptime_seconds", "Since the start of the broker.")
        .sample(&[], broker.clock.mono_ms() as f64 / 1e3);
    broker.metrics.requests.write(&mut out);
    connections(broker, &mut out);
    log_flushes(broker, &mut out);
    broker.metrics.groups.write(&mut out);
    out.counter("millstream_journal_lost_total", "Events of groups that came faster than the journal could take them.")
        .sample(&[], broker.journal.lost());
    out.histogram(
        "millstream_assignor_seconds",
        "Time that assignors took for large groups, which are assigned off the shard.",
    );
    broker.metrics.assignor.write(&mut out, &[]);
    let groups = groups(broker, &mut out).await;
    lags(broker, groups, &mut out).await;
    process::write(&mut out);
    out.into_text()
}

fn connections(broker: &Broker, out: &mut Exposition) {
    out.gauge("millstream_connections", "Open connections.").sample(&[], broker.connections.len());
    out.counter("millstream_connections_accepted_total", "Connections that were accepted.")
        .sample(&[], broker.metrics.accepted.load(Ordering::Relaxed));
    let (parked, undurable) = broker.groups.waiting();
    out.gauge(
        "millstream_parked_replies",
        "Replies to group requests that wait: for an event in the group, or for the disk.",
    )
    .sample(&[("waits_for", "event")], parked)
    .sample(&[("waits_for", "disk")], undurable);
}

fn log_flushes(broker: &Broker, out: &mut Exposition) {
    let flushes = broker.logs.flushes();
    out.counter("millstream_log_flushes_total", "Syncs of partitions to disk.").sample(&[], flushes.count);
    out.counter("millstream_log_flush_seconds_total", "Time that syncs of partitions took, in all.")
        .sample(&[], flushes.micros as f64 / 1e6);
    out.gauge("millstream_log_flush_max_seconds", "The longest sync since the start.")
        .sample(&[], flushes.max_micros as f64 / 1e6);
}

/// Numbers of groups and of members; returns the ids of all groups.
async fn groups(broker: &Arc<Broker>, out: &mut Exposition) -> Vec<KStr> {
    let command = || Command::ListGroups { states: Vec::new(), types: Vec::new() };
    let (mut counts, mut ids) = (BTreeMap::<(String, String), u64>::new(), Vec::new());
    for replied in broker.groups.call_all(command).await {
        let Ok(Reply::ListGroups(groups)) = replied else { continue };
        for group in groups {
            let key = (group.group_type.to_string().to_lowercase(), group.group_state.to_string());
            *counts.entry(key).or_default() += 1;
            ids.push(group.group_id);
        }
    }
    ids.sort();
    out.gauge("millstream_groups", "Groups by protocol and state.");
    for ((protocol, state), count) in &counts {
        out.sample(&[("protocol", protocol), ("state", state)], count);
    }
    out.gauge("millstream_paced_members", "Members of consumer and streams groups, whose heartbeats the broker paces.")
        .sample(&[], broker.groups.members_total());
    ids
}

struct Lag {
    group: KStr,
    topic: KStr,
    records: i64,
    age_ms: Option<i64>,
}

async fn lags(broker: &Arc<Broker>, groups: Vec<KStr>, out: &mut Exposition) {
    let mut series = Vec::new();
    for group in groups {
        let mut topics = BTreeMap::<KStr, Lag>::new();
        for lag in lag::of_group(broker, &group, true).await.unwrap_or_default() {
            let Some(records) = lag.records else { continue };
            let new = || Lag { group: group.clone(), topic: lag.topic.clone(), records: 0, age_ms: None };
            let sum = topics.entry(lag.topic.clone()).or_insert_with(new);
            sum.records += records;
            sum.age_ms = sum.age_ms.max(lag.age_ms);
        }
        series.extend(topics.into_values());
    }
    let left_out = series.len().saturating_sub(LAG_SERIES);
    if left_out > 0 {
        series.sort_by_key(|lag| std::cmp::Reverse(lag.records));
        series.truncate(LAG_SERIES);
        series.sort_by(|a, b| (&a.group, &a.topic).cmp(&(&b.group, &b.topic)));
    }
    out.gauge(
        "millstream_group_lag_records",
        "Records up to the last stable offset that the group has not committed, over all partitions of the topic that it committed.",
    );
    for lag in &series {
        out.sample(&[("group", &lag.group), ("topic", &lag.topic)], lag.records);
    }
    out.gauge(
        "millstream_group_lag_seconds",
        "Age of the oldest record that the group has not committed, over all partitions of the topic; 0 if there is none.",
    );
    for lag in &series {
        if let Some(age_ms) = lag.age_ms {
            out.sample(&[("group", &lag.group), ("topic", &lag.topic)], age_ms as f64 / 1e3);
        }
    }
    out.gauge(
        "millstream_group_lag_series_left_out",
        "Pairs of group and topic beyond the limit, those with the least lag.",
    )
    .sample(&[], left_out);
}
