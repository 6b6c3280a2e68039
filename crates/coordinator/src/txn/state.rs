//! Hard state: what the log says about each transactional id. Changed by replay only.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::config::PROTOCOL_2;
use super::record::Record;
use crate::map::Map;
use crate::runtime::Position;

/// No producer id; as Kafka writes it.
pub(super) const NO_PRODUCER_ID: i64 = -1;
/// No epoch yet, or none any more.
pub(super) const NO_EPOCH: i16 = -1;
/// The last epoch that a client is given (I-8, E-8): one more is left for fencing it.
pub(super) const LAST_EPOCH: i16 = i16::MAX - 1;

/// Partitions by topic.
pub type TopicPartitions = BTreeMap<KStr, BTreeSet<i32>>;

/// States of a transactional id (T-3). Two of Kafka's are missing: PrepareEpochFence, because fencing and aborting are one
/// record here, and Dead, because a forgotten id is a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Empty,
    Ongoing,
    PrepareCommit,
    PrepareAbort,
    CompleteCommit,
    CompleteAbort,
}

impl Status {
    /// All of them, by the number that records have.
    pub const ALL: [Status; 6] = [
        Status::Empty,
        Status::Ongoing,
        Status::PrepareCommit,
        Status::PrepareAbort,
        Status::CompleteCommit,
        Status::CompleteAbort,
    ];

    pub fn code(self) -> i8 {
        self as i8
    }

    pub fn from_code(code: i8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.code() == code)
    }

    /// As DescribeTransactions and ListTransactions show it (D-1).
    pub fn name(self) -> &'static str {
        match self {
            Status::Empty => "Empty",
            Status::Ongoing => "Ongoing",
            Status::PrepareCommit => "PrepareCommit",
            Status::PrepareAbort => "PrepareAbort",
            Status::CompleteCommit => "CompleteCommit",
            Status::CompleteAbort => "CompleteAbort",
        }
    }
}

/// A transactional id (T-2). Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    pub producer_id: i64,
    /// The producer id before the latest change of state; differs right after a new one was taken.
    pub previous_producer_id: i64,
    /// Takes the place of `producer_id` when the transaction that ends is complete (E-8); -1: none.
    pub next_producer_id: i64,
    pub epoch: i16,
    pub timeout_ms: i32,
    pub status: Status,
    pub partitions: TopicPartitions,
    /// When the latest transaction began; -1: none since the producer was initialised.
    pub start_ms: i64,
    pub last_update_ms: i64,
    /// Transaction protocol of the latest request.
    pub client_version: i16,
}

impl Txn {
    /// The end is decided, markers are being written.
    pub fn is_prepared(&self) -> bool {
        matches!(self.status, Status::PrepareCommit | Status::PrepareAbort)
    }

    /// No client gets a higher epoch of this producer id.
    pub fn is_exhausted(&self) -> bool {
        self.epoch >= LAST_EPOCH
    }

    /// The transaction's end raises the epoch (protocol 2).
    pub fn raises_epoch(&self) -> bool {
        self.client_version >= PROTOCOL_2
    }

    /// A change of state begins with this: as in Kafka, each names the producer id before it.
    pub(super) fn next(&self, status: Status, now_ms: i64) -> Txn {
        Txn { status, previous_producer_id: self.producer_id, last_update_ms: now_ms, ..self.clone() }
    }

    /// The epoch before the one that the end of a protocol 2 transaction gave, if that was the latest thing to happen.
    pub(super) fn epoch_before_end(&self) -> Option<i16> {
        let ended = self.is_prepared() || matches!(self.status, Status::CompleteCommit | Status::CompleteAbort);
        if !ended || !self.raises_epoch() {
            return None;
        }
        Some(if self.epoch == 0 { LAST_EPOCH } else { self.epoch - 1 })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    txn: Txn,
    /// Log end after its latest record.
    end: u64,
}

/// Transactional ids by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    txns: Map<KStr, Entry>,
    /// Log end after the latest removal of an id.
    last_removal: u64,
}

impl State {
    pub fn get(&self, transactional_id: &str) -> Option<&Txn> {
        self.txns.get(transactional_id).map(|entry| &entry.txn)
    }

    /// The ids whose transaction is as wanted, in ascending order.
    pub(super) fn select(&self, wanted: impl Fn(&KStr, &Txn) -> bool) -> Vec<(&KStr, &Txn)> {
        let all = self.txns.iter().map(|(id, entry)| (id, &entry.txn));
        let mut selected: Vec<_> = all.filter(|(id, txn)| wanted(id, txn)).collect();
        selected.sort_by_key(|(id, _)| *id);
        selected
    }

    pub fn len(&self) -> usize {
        self.txns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.txns.is_empty()
    }

    /// What has to be durable before the state of an id, or that there is none, may be shown.
    pub(super) fn end_of(&self, transactional_id: &str) -> u64 {
        self.txns.get(transactional_id).map_or(self.last_removal, |entry| entry.end)
    }

    /// The same for all of them together.
    pub(super) fn end_of_all(&self) -> u64 {
        self.txns.values().map(|entry| entry.end).max().unwrap_or(0).max(self.last_removal)
    }

    pub(super) fn replay(&mut self, position: Position, record: Record) {
        let end = position.offset + 1;
        match record.txn {
            Some(txn) => match self.txns.get_mut(&record.transactional_id) {
                Some(entry) => *entry = Entry { txn, end },
                None => {
                    self.txns.insert(record.transactional_id.to_owned_detached(), Entry { txn, end });
                }
            },
            None => {
                self.txns.remove(&record.transactional_id);
                self.last_removal = end;
            }
        }
    }
}
