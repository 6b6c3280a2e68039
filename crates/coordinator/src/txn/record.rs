//! The records of `__transaction_state`: Kafka 4.4's types, byte for byte.

use std::collections::BTreeSet;

use bytes::Bytes;
use wire::messages::transaction_log_key::TransactionLogKey;
use wire::messages::transaction_log_value::{PartitionsSchema, TransactionLogValue};
use wire::{KStr, Message, Reader, Writer};

use super::state::{Status, TopicPartitions, Txn};
use crate::state_log::RawRecord;

/// The only type of record there is.
const TRANSACTION_LOG: i16 = 0;
const KEY_VERSION: i16 = 0;
/// The version that Kafka writes with `transaction.version` 1 and above: it has the fields that protocol 2 needs.
const VALUE_VERSION: i16 = 1;

/// The state of a transactional id from here on; `None` forgets the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub transactional_id: KStr,
    pub txn: Option<Txn>,
}

impl Record {
    pub(super) fn encode(&self) -> Result<RawRecord, String> {
        let key = TransactionLogKey { transactional_id: self.transactional_id.clone() };
        let value = self.txn.as_ref().map(|txn| prefixed(VALUE_VERSION, &to_value(txn), VALUE_VERSION)).transpose()?;
        Ok(RawRecord { key: prefixed(TRANSACTION_LOG, &key, KEY_VERSION)?, value })
    }

    /// `Ok(None)`: a type of a newer version.
    pub(super) fn decode(raw: &RawRecord) -> Result<Option<Record>, String> {
        let (record_type, key) = split(&raw.key)?;
        if record_type != TRANSACTION_LOG {
            return Ok(None);
        }
        let key = TransactionLogKey::decode(&mut Reader::new(&key), KEY_VERSION).map_err(|e| format!("key: {e}"))?;
        let txn = raw.value.as_ref().map(|value| {
            let (version, value) = split(value)?;
            let value =
                TransactionLogValue::decode(&mut Reader::new(&value), version).map_err(|e| format!("value: {e}"))?;
            from_value(value)
        });
        Ok(Some(Record { transactional_id: key.transactional_id.to_owned_detached(), txn: txn.transpose()? }))
    }
}

fn to_value(txn: &Txn) -> TransactionLogValue {
    let partitions = txn.partitions.iter().map(|(topic, partitions)| PartitionsSchema {
        topic: topic.clone(),
        partition_ids: partitions.iter().copied().collect(),
    });
    TransactionLogValue {
        producer_id: txn.producer_id,
        previous_producer_id: txn.previous_producer_id,
        next_producer_id: txn.next_producer_id,
        producer_epoch: txn.epoch,
        transaction_timeout_ms: txn.timeout_ms,
        transaction_status: txn.status.code(),
        // Kafka writes no list, rather than an empty one, in this state only.
        transaction_partitions: (txn.status != Status::Empty).then(|| partitions.collect()),
        transaction_last_update_timestamp_ms: txn.last_update_ms,
        transaction_start_timestamp_ms: txn.start_ms,
        client_transaction_version: txn.client_version,
        ..Default::default()
    }
}

fn from_value(value: TransactionLogValue) -> Result<Txn, String> {
    let status = Status::from_code(value.transaction_status)
        .ok_or_else(|| format!("unknown transaction status {}", value.transaction_status))?;
    let mut partitions = TopicPartitions::new();
    for topic in value.transaction_partitions.unwrap_or_default() {
        let ids: BTreeSet<i32> = topic.partition_ids.into_iter().collect();
        partitions.entry(topic.topic.to_owned_detached()).or_default().extend(ids);
    }
    Ok(Txn {
        producer_id: value.producer_id,
        previous_producer_id: value.previous_producer_id,
        next_producer_id: value.next_producer_id,
        epoch: value.producer_epoch,
        timeout_ms: value.transaction_timeout_ms,
        status,
        partitions,
        start_ms: value.transaction_start_timestamp_ms,
        last_update_ms: value.transaction_last_update_timestamp_ms,
        client_version: value.client_transaction_version,
    })
}

/// Type of the record or version of the value as int16, then the struct.
fn prefixed(prefix: i16, message: &impl Message, version: i16) -> Result<Bytes, String> {
    let mut writer = Writer::new();
    writer.i16(prefix);
    message.encode(&mut writer, version).map_err(|e| e.to_string())?;
    Ok(writer.into_bytes())
}

fn split(bytes: &Bytes) -> Result<(i16, Bytes), String> {
    match bytes[..] {
        [high, low, ..] => Ok((i16::from_be_bytes([high, low]), bytes.slice(2..))),
        _ => Err("a record without a type".to_owned()),
    }
}
