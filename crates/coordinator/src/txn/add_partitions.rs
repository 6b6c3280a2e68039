//! AddPartitionsToTxn, AddOffsetsToTxn and the implicit forms of both: what a transaction writes to (P-3 to P-6).

use wire::{ErrorCode, KStr};

use super::state::{Status, TopicPartitions, Txn};
use super::{Ctx, Reply};
use crate::state_log::Producer;

pub(super) fn add(
    ctx: &mut Ctx<'_>,
    transactional_id: &KStr,
    producer: Producer,
    partitions: &TopicPartitions,
    client_version: i16,
) {
    let error = match admit(ctx, transactional_id, |txn| {
        // First, so that a producer that just ended a transaction is not taken for an old one.
        if txn.is_prepared() {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        check_producer(txn, producer)
    }) {
        Err(error) => error,
        Ok(txn) => {
            if txn.status != Status::Ongoing || !contains_all(&txn.partitions, partitions) {
                let next = with_partitions(&txn, partitions, client_version, ctx.at.wall_ms);
                ctx.write(transactional_id, Some(next));
            }
            ErrorCode::None
        }
    };
    ctx.reply(Reply::Added(error));
}

/// P-5. It does not look at whether the transaction is still open: the epoch says that.
pub(super) fn verify(ctx: &mut Ctx<'_>, transactional_id: &KStr, producer: Producer, partitions: TopicPartitions) {
    let verified = admit(ctx, transactional_id, |txn| {
        check_producer(txn, producer)?;
        if txn.is_prepared() { Err(ErrorCode::ConcurrentTransactions) } else { Ok(()) }
    });
    let missing = verified.map(|txn| missing(&txn.partitions, partitions));
    ctx.reply(Reply::Verified(missing));
}

fn admit(
    ctx: &mut Ctx<'_>,
    transactional_id: &KStr,
    check: impl FnOnce(&Txn) -> Result<(), ErrorCode>,
) -> Result<Txn, ErrorCode> {
    if transactional_id.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    let txn = ctx.look_up(transactional_id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
    check(&txn)?;
    Ok(txn)
}

fn check_producer(txn: &Txn, producer: Producer) -> Result<(), ErrorCode> {
    if txn.producer_id != producer.id {
        Err(ErrorCode::InvalidProducerIdMapping)
    } else if txn.epoch != producer.epoch {
        Err(ErrorCode::ProducerFenced)
    } else {
        Ok(())
    }
}

fn contains_all(have: &TopicPartitions, wanted: &TopicPartitions) -> bool {
    wanted.iter().all(|(topic, partitions)| {
        partitions.is_empty() || have.get(topic).is_some_and(|have| have.is_superset(partitions))
    })
}

fn missing(have: &TopicPartitions, mut wanted: TopicPartitions) -> TopicPartitions {
    wanted.retain(|topic, partitions| {
        if let Some(have) = have.get(topic) {
            partitions.retain(|partition| !have.contains(partition));
        }
        !partitions.is_empty()
    });
    wanted
}

fn with_partitions(txn: &Txn, added: &TopicPartitions, client_version: i16, now_ms: i64) -> Txn {
    let mut next = txn.next(Status::Ongoing, now_ms);
    next.client_version = client_version;
    if txn.status != Status::Ongoing {
        next.start_ms = now_ms;
    }
    for (topic, partitions) in added.iter().filter(|(_, partitions)| !partitions.is_empty()) {
        match next.partitions.get_mut(topic) {
            Some(have) => have.extend(partitions),
            None => {
                next.partitions.insert(topic.to_owned_detached(), partitions.clone());
            }
        }
    }
    next
}
