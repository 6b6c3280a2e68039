//! Targets from outside, for the comparison with Kafka's coordinator.
//!
//! Where several placements are equally good (decision 19), a [`Referee`] judges ours and puts another one in its place, so
//! that two coordinators stay in the same state and everything else of them can be compared. Built for tests only
//! (feature `testing`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{ConsumerInput, ConsumerTarget, StreamsInput, StreamsTarget};

/// Sees what assignors make, and may replace it.
pub trait Referee {
    /// The target that counts instead of `ours`.
    fn streams(&self, input: &StreamsInput, ours: StreamsTarget) -> StreamsTarget;
    /// The target that counts instead of `ours`.
    fn consumer(&self, assignor: &str, input: &ConsumerInput, ours: ConsumerTarget) -> ConsumerTarget;
}

thread_local! {
    static TOPICS_ARE_NEW: Cell<bool> = const { Cell::new(true) };
    static REFEREE: RefCell<Option<Rc<dyn Referee>>> = const { RefCell::new(None) };
}

/// Puts a referee over all assignors that run on this thread, or takes the present one away.
pub fn set(referee: Option<Rc<dyn Referee>>) {
    REFEREE.with(|present| *present.borrow_mut() = referee);
}

/// Whether shards that load on this thread take it that topics have been made since expressions were resolved. Nobody
/// knows; Kafka goes by the version of its metadata.
pub fn set_topics_are_new(are_new: bool) {
    TOPICS_ARE_NEW.set(are_new);
}

pub(crate) fn topics_are_new() -> bool {
    TOPICS_ARE_NEW.get()
}

fn referee() -> Option<Rc<dyn Referee>> {
    REFEREE.with(|present| present.borrow().clone())
}

pub(crate) fn streams(input: &StreamsInput, ours: StreamsTarget) -> StreamsTarget {
    match referee() {
        Some(referee) => referee.streams(input, ours),
        None => ours,
    }
}

pub(crate) fn consumer(assignor: &str, input: &ConsumerInput, ours: ConsumerTarget) -> ConsumerTarget {
    match referee() {
        Some(referee) => referee.consumer(assignor, input, ours),
        None => ours,
    }
}
