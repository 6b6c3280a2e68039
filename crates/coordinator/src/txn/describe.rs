//! DescribeTransactions, one id (D-1).

use wire::messages::describe_transactions_response::{TopicData, TransactionState};
use wire::{ErrorCode, KStr};

use super::{Ctx, Reply};

pub(super) fn describe(ctx: &mut Ctx<'_>, transactional_id: KStr) {
    let described = if transactional_id.is_empty() {
        failed(transactional_id, ErrorCode::InvalidRequest)
    } else if let Some(txn) = ctx.look_up(&transactional_id) {
        // While markers are written: the partitions that still have to get theirs.
        let partitions = ctx.soft.completing.get(&transactional_id).map_or(&txn.partitions, |c| &c.remaining);
        let topics = partitions.iter().map(|(topic, partitions)| TopicData {
            topic: topic.clone(),
            partitions: partitions.iter().copied().collect(),
        });
        TransactionState {
            topics: topics.collect(),
            transactional_id,
            transaction_state: KStr::from(txn.status.name()),
            transaction_timeout_ms: txn.timeout_ms,
            transaction_start_time_ms: txn.start_ms,
            producer_id: txn.producer_id,
            producer_epoch: txn.epoch,
            ..Default::default()
        }
    } else {
        failed(transactional_id, ErrorCode::TransactionalIdNotFound)
    };
    ctx.reply(Reply::Described(Box::new(described)));
}

fn failed(transactional_id: KStr, error: ErrorCode) -> TransactionState {
    TransactionState { error_code: error.code(), transactional_id, ..Default::default() }
}
