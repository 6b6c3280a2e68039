//! Replies that wait for the log to become durable.

use std::collections::BTreeMap;

use super::{Sink, Unavailable};

/// By the log end they wait for; within one, in the order in which they came.
pub(super) struct Waiters<R> {
    by_end: BTreeMap<u64, Vec<(Sink<R>, R)>>,
}

impl<R> Default for Waiters<R> {
    fn default() -> Self {
        Waiters { by_end: BTreeMap::new() }
    }
}

impl<R> Waiters<R> {
    pub(super) fn push(&mut self, end: u64, sink: Sink<R>, reply: R) {
        self.by_end.entry(end).or_default().push((sink, reply));
    }

    pub(super) fn len(&self) -> usize {
        self.by_end.values().map(Vec::len).sum()
    }

    pub(super) fn release(&mut self, durable_end: u64) -> Vec<(Sink<R>, Result<R, Unavailable>)> {
        let mut released = Vec::new();
        while let Some(first) = self.by_end.first_entry() {
            if *first.key() > durable_end {
                break;
            }
            released.extend(first.remove().into_iter().map(|(sink, reply)| (sink, Ok(reply))));
        }
        released
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Sink<R>> {
        std::mem::take(&mut self.by_end).into_values().flatten().map(|(sink, _)| sink)
    }
}
