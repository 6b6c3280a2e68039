//! What clients know: which records they wrote in which transaction, and what they were told of it.

use std::collections::BTreeMap;

/// How a transaction stands, as its producer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Open,
    /// A commit was asked for, and what became of it is not known yet.
    Asked,
    Committed,
    Aborted,
}

#[derive(Debug)]
pub struct Transaction {
    pub fate: Fate,
    pub client: usize,
    /// What its records have as values, with whether the broker acknowledged them.
    pub acknowledged: BTreeMap<i32, Vec<String>>,
    /// An offset that was committed in it.
    pub offset: Option<i64>,
}

/// A record that a log took. Markers have neither key nor value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub offset: i64,
    pub key: String,
    pub value: String,
    /// Index of its transaction; `None`: without one.
    pub transaction: Option<usize>,
}

#[derive(Debug, Default)]
pub struct PartitionModel {
    /// By offset; markers are not in it.
    pub written: Vec<Written>,
    /// All before it was promised to be there.
    pub acknowledged_end: i64,
    /// Values that were acknowledged without a transaction.
    pub acknowledged: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Model {
    pub transactions: Vec<Transaction>,
    pub partitions: Vec<PartitionModel>,
    /// Plain commits of the group without transactions: acknowledged, sent.
    pub plain_offset: (i64, i64),
}

impl Model {
    /// The offset that a client's group should have: of its latest committed transaction with one.
    pub fn offset_of(&self, client: usize) -> i64 {
        let committed = self.transactions.iter().rev().filter(|t| t.client == client && t.fate == Fate::Committed);
        committed.filter_map(|transaction| transaction.offset).next().unwrap_or(-1)
    }

    pub fn is_committed(&self, written: &Written) -> bool {
        written.transaction.is_none_or(|index| self.transactions[index].fate == Fate::Committed)
    }
}
