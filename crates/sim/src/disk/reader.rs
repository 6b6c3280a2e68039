//! Reads a partition as clients do.

use std::collections::BTreeSet;

use log::{Isolation, PartitionLog, ReadParams};
use wire::batch::ControlType;
use wire::batch::{Batch, parse_control_key};

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub offset: i64,
    pub key: String,
    pub value: String,
}

/// All data records up to where `isolation` lets one read, at most `max_bytes` at a time; of aborted transactions none if
/// it is [`Isolation::LastStable`], by the rules of a consumer.
///
/// # Errors
/// Whatever keeps a consumer from reading on.
pub fn read_all(log: &PartitionLog, isolation: Isolation, max_bytes: usize) -> Result<Vec<Seen>, String> {
    let marks = log.offsets().map_err(|error| error.to_string())?;
    let limit = match isolation {
        Isolation::HighWatermark => marks.high_watermark,
        Isolation::LastStable => marks.last_stable,
        Isolation::LogEnd => marks.log_end,
    };
    let mut from_offset = marks.log_start;
    let mut seen = Vec::new();
    while from_offset < limit {
        let params = ReadParams { from_offset, max_bytes, isolation, min_one_batch: true };
        let data = log.read(&params).map_err(|error| error.to_string())?;
        let mut aborted = data.aborted_transactions.unwrap_or_default();
        aborted.sort_by_key(|transaction| transaction.first_offset);
        let mut aborted = aborted.into_iter().peekable();
        let mut hidden = BTreeSet::new();
        for batch in data.records.iter().flat_map(Batch::iter) {
            let batch = batch.map_err(|error| error.to_string())?;
            batch.validate_crc().map_err(|error| format!("offset {}: {error}", batch.header().base_offset))?;
            while let Some(next) = aborted.next_if(|next| next.first_offset <= batch.header().last_offset()) {
                hidden.insert(next.producer_id);
            }
            take(&batch, &mut hidden, &mut seen)?;
        }
        if data.next_offset <= from_offset {
            return Err(format!("{}: no way past {from_offset} to {limit}", log.topic_partition()));
        }
        from_offset = data.next_offset;
    }
    Ok(seen)
}

fn take(batch: &Batch, hidden: &mut BTreeSet<i64>, seen: &mut Vec<Seen>) -> Result<(), String> {
    let header = batch.header();
    let failed = |error: wire::batch::BatchError| error.to_string();
    for record in batch.records().map_err(failed)? {
        let record = record.map_err(failed)?;
        let key = record.key.unwrap_or_default();
        if header.attributes.is_control() {
            if parse_control_key(&key) == Some(ControlType::Abort) {
                hidden.remove(&header.producer_id);
            }
            continue;
        }
        if header.attributes.is_transactional() && hidden.contains(&header.producer_id) {
            continue;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = text(&record.value.unwrap_or_default());
        seen.push(Seen { offset: record.offset, key: text(&key), value });
    }
    Ok(())
}
