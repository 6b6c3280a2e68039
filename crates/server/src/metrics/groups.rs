//! What happens in groups, counted from the same events that the journals tell.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use coordinator::journal::{Event, Kind};

use super::exposition::Exposition;
use super::histogram::Histogram;

const PROTOCOLS: [&str; 3] = ["classic", "consumer", "streams"];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {
    counts: Mutex<Counts>,
    /// By protocol.
    rebalances: [Histogram; PROTOCOLS.len()],
}

/// By protocol and what else.
#[derive(Clone, Debug, Default)]
struct Counts {
    kinds: BTreeMap<(&'static str, Kind), u64>,
    epochs: BTreeMap<(&'static str, Kind), u64>,
    refusals: BTreeMap<(&'static str, String), u64>,
    moves: BTreeMap<(&'static str, &'static str), u64>,
}

impl GroupCounters {
    pub fn count(&self, event: &Event) {
        let protocol = event.protocol;
        if let (Some(took_ms), Some(at)) = (event.took_ms, PROTOCOLS.iter().position(|name| *name == protocol)) {
            self.rebalances[at].record(Duration::from_millis(took_ms));
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for kind in std::iter::once(event.kind).chain(event.also.iter().copied()) {
            *counts.kinds.entry((protocol, kind)).or_default() += 1;
        }
        if event.epoch.is_some_and(|(old, new)| old != new) && event.kind != Kind::Stable {
            *counts.epochs.entry((protocol, event.kind)).or_default() += 1;
        }
        if event.kind == Kind::Refused {
            let detail = event.detail.as_deref().unwrap_or_default();
            let error = detail.split(':').next().unwrap_or_default().to_owned();
            *counts.refusals.entry((protocol, error)).or_default() += 1;
        }
        for moved in &event.moves {
            *counts.moves.entry((protocol, moved.role.name())).or_default() += 1;
        }
    }

    pub fn write(&self, out: &mut Exposition) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = |protocol: &'static str, kind| counts.kinds.get(&(protocol, kind)).copied().unwrap_or(0);
        let families: [(&'static str, &str, &[Kind]); 5] = [
            ("millstream_member_joins_total", "Members that joined.", &[Kind::MemberJoined]),
            ("millstream_member_returns_total", "Static members that came back.", &[Kind::MemberReturned]),
            ("millstream_member_leaves_total", "Members that left by themselves.", &[Kind::MemberLeft]),
            ("millstream_member_removals_total", "Members that an administrator removed.", &[Kind::MemberRemoved]),
            ("millstream_groups_deleted_total", "Groups that were deleted or expired.", &[Kind::Deleted]),
        ];
        for (name, help, kinds) in families {
            out.counter(name, help);
            for protocol in PROTOCOLS {
                let total: u64 = kinds.iter().map(|kind| count(protocol, *kind)).sum();
                out.sample(&[("protocol", protocol)], total);
            }
        }
        out.counter("millstream_member_expirations_total", "Members that were removed for their silence, by timeout.");
        for protocol in PROTOCOLS {
            for (timeout, kind) in [("session", Kind::SessionExpired), ("rebalance", Kind::TooSlow)] {
                out.sample(&[("protocol", protocol), ("timeout", timeout)], count(protocol, kind));
            }
        }
        out.counter(
            "millstream_member_refusals_total",
            "Requests of members that were refused (fenced among them), by error.",
        );
        for ((protocol, error), times) in &counts.refusals {
            out.sample(&[("protocol", protocol), ("error", error)], times);
        }
        out.counter("millstream_group_epochs_total", "New epochs or generations, by their first cause.");
        for ((protocol, kind), times) in &counts.epochs {
            out.sample(&[("protocol", protocol), ("cause", kind.name())], times);
        }
        out.counter(
            "millstream_moves_total",
            "Tasks and partitions that changed hands, by role; at most 100 of one change are counted.",
        );
        for ((protocol, role), times) in &counts.moves {
            out.sample(&[("protocol", protocol), ("role", role)], times);
        }
        out.histogram("millstream_rebalance_seconds", "From the first change of a group until it was stable.");
        for (protocol, histogram) in PROTOCOLS.iter().zip(&self.rebalances) {
            histogram.write(out, &[("protocol", protocol)]);
        }
    }
}
