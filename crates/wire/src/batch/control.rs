//! Control records: the transaction markers of R-1.

use bytes::Bytes;

use super::{BatchBuilder, BatchError};

/// Type of a control record; the two that data partitions hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlType {
    Abort,
    Commit,
}

/// Key and value of an end-of-transaction marker: `(version 0, type)` and `(version 0, coordinator epoch)`.
pub fn control_record(kind: ControlType, coordinator_epoch: i32) -> ([u8; 4], [u8; 6]) {
    let kind = match kind {
        ControlType::Abort => 0,
        ControlType::Commit => 1,
    };
    ([0, 0, 0, kind], end_txn_value(coordinator_epoch))
}

/// Value of an end-of-transaction marker.
pub fn end_txn_value(coordinator_epoch: i32) -> [u8; 6] {
    let epoch = coordinator_epoch.to_be_bytes();
    [0, 0, epoch[0], epoch[1], epoch[2], epoch[3]]
}

/// The type in a control record's key; `None` for types this broker does not know (they are to be skipped) and for garbage. Newer
/// key versions only add to the end.
pub fn parse_control_key(key: &[u8]) -> Option<ControlType> {
    match key.first_chunk::<4>()? {
        [0x80..=0xff, ..] => None,
        [_, _, 0, 0] => Some(ControlType::Abort),
        [_, _, 0, 1] => Some(ControlType::Commit),
        _ => None,
    }
}

/// The coordinator epoch in a marker's value.
pub fn parse_end_txn_value(value: &[u8]) -> Option<i32> {
    let bytes = value.first_chunk::<6>()?;
    Some(i32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]))
}

/// A whole marker batch with base offset 0, as written to a partition at the end of a transaction.
pub fn control_batch(
    kind: ControlType,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Result<Bytes, BatchError> {
    let (key, value) = control_record(kind, coordinator_epoch);
    let mut builder =
        BatchBuilder::new().producer(producer_id, producer_epoch, super::NO_SEQUENCE).transactional(true).control(true);
    builder.append(timestamp, Some(&key), Some(&value), &[]);
    builder.build()
}
