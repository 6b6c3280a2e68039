//! Soft state: what is under way. Never logged; after a failover it is rebuilt from the prepared transactions, or lost as in
//! Kafka.

use wire::KStr;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::init_producer_id_request::InitProducerIdRequest;

use super::state::TopicPartitions;
use crate::command::Ticket;
use crate::map::Map;
use crate::timer::Timers;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    /// Transactions that are over time are looked for.
    Timeouts,
    /// One was found.
    Abort(KStr),
    /// Ids that were idle for long are looked for.
    Expiry,
    /// One was found.
    Expire(KStr),
    /// Markers are asked for (again).
    Markers(KStr),
}

/// A transaction whose markers are being written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Completing {
    /// Partitions whose marker is not known to be written.
    pub remaining: TopicPartitions,
    /// Rounds in which some partition failed.
    pub failures: u32,
}

/// What waits for a fresh producer id.
#[derive(Debug)]
pub(super) enum Waiting {
    InitProducerId {
        ticket: Option<Ticket>,
        api_version: i16,
        request: InitProducerIdRequest,
    },
    EndTxn {
        ticket: Option<Ticket>,
        api_version: i16,
        request: EndTxnRequest,
    },
    /// A transaction that is over time.
    Abort(KStr),
}

/// What soft state said about an id before the command at hand, in case its records are refused.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub transactional_id: KStr,
    last_epoch: Option<i16>,
    completing: Option<Completing>,
}

#[derive(Debug, Default)]
pub(super) struct Soft {
    pub timers: Timers<Timer>,
    /// The epoch that a producer gave when it was last initialised, so that it may ask again (I-8).
    pub last_epochs: Map<KStr, i16>,
    pub completing: Map<KStr, Completing>,
    pub waiting: Map<u64, Waiting>,
    pub next_token: u64,
    pub unconfirmed: Option<Unconfirmed>,
}

impl Soft {
    /// Keeps what a refused write would have to bring back.
    pub fn remember(&mut self, transactional_id: &KStr) {
        if self.unconfirmed.as_ref().is_some_and(|kept| kept.transactional_id == *transactional_id) {
            return;
        }
        self.unconfirmed = Some(Unconfirmed {
            transactional_id: transactional_id.clone(),
            last_epoch: self.last_epochs.get(transactional_id).copied(),
            completing: self.completing.get(transactional_id).cloned(),
        });
    }

    /// Undoes what the latest command did; yields the id that it wrote about.
    pub fn undo(&mut self) -> Option<KStr> {
        let Unconfirmed { transactional_id: id, last_epoch, completing } = self.unconfirmed.take()?;
        restore(&mut self.last_epochs, &id, last_epoch);
        restore(&mut self.completing, &id, completing);
        Some(id)
    }

    /// `epoch` is what a producer with `transactional_id` may repeat; `None`: nothing.
    pub fn set_last_epoch(&mut self, transactional_id: &KStr, epoch: Option<i16>) {
        restore(&mut self.last_epochs, transactional_id, epoch);
    }
}

fn restore<V>(map: &mut Map<KStr, V>, key: &KStr, value: Option<V>) {
    match value {
        Some(value) => map.insert(key.to_owned_detached(), value),
        None => map.remove(key),
    };
}
