//! What a shard of the transaction coordinator can be asked, what it answers and what it asks for.

use wire::messages::describe_transactions_response::TransactionState as DescribedTransaction;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::end_txn_response::EndTxnResponse;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::init_producer_id_response::InitProducerIdResponse;
use wire::messages::list_transactions_response::TransactionState as ListedTransaction;
use wire::{ErrorCode, KStr};

use super::list::ListFilter;
use super::state::TopicPartitions;
use crate::state_log::Producer;

/// Each concerns one transactional id, but for `List` and `Wakeup`.
#[derive(Clone, Debug)]
pub enum Command {
    /// With a transactional id; without one there is nothing to coordinate (I-2).
    InitProducerId {
        api_version: i16,
        request: InitProducerIdRequest,
    },
    /// The partitions become part of the transaction, which begins with the first of them (P-3).
    AddPartitions {
        transactional_id: KStr,
        producer: Producer,
        partitions: TopicPartitions,
        /// Transaction protocol that the request implies (T-4): 0, or 2 where partitions are added implicitly.
        client_version: i16,
    },
    /// Are they part of the transaction? Changes nothing (P-5).
    VerifyPartitions {
        transactional_id: KStr,
        producer: Producer,
        partitions: TopicPartitions,
    },
    EndTxn {
        api_version: i16,
        request: EndTxnRequest,
    },
    Describe {
        transactional_id: KStr,
    },
    List(ListFilter),

    /// What became of `Effect::AllocateProducerId`.
    ProducerIdAllocated {
        token: u64,
        producer_id: Result<i64, ErrorCode>,
    },
    /// What became of `Effect::WriteMarkers`: the partitions whose marker is not written yet and has to be tried again. All
    /// others have a durable one, or can never have one.
    MarkersWritten {
        transactional_id: KStr,
        producer: Producer,
        failed: TopicPartitions,
    },
    /// A timer is due. Handles the earliest one only; the runtime repeats it.
    Wakeup,
}

/// Replies mirror the commands.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    InitProducerId(InitProducerIdResponse),
    /// To `AddPartitions`: one result for all partitions. PRODUCER_FENCED is as new versions know it; older ones are told
    /// INVALID_PRODUCER_EPOCH (P-4).
    Added(ErrorCode),
    /// To `VerifyPartitions`: the partitions that are not part of the transaction.
    Verified(Result<TopicPartitions, ErrorCode>),
    EndTxn(EndTxnResponse),
    Described(Box<DescribedTransaction>),
    /// In ascending order of transactional ids.
    Listed(Vec<ListedTransaction>),
    /// To commands of the broker itself.
    Done,
}

/// Work that a shard asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A producer id that was never used, to be durably taken; answered by `Command::ProducerIdAllocated`.
    AllocateProducerId { token: u64 },
    /// End markers, to be durable in the log of every partition; answered by `Command::MarkersWritten`. Must not begin
    /// before what the command wrote is durable: else a crash could leave the markers of a decision that was never made.
    WriteMarkers {
        transactional_id: KStr,
        producer: Producer,
        commit: bool,
        /// The marker's epoch is higher than that of the transaction's records (E-9, W-9).
        raises_epoch: bool,
        partitions: TopicPartitions,
    },
}
