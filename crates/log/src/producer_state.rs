//! What a partition knows of its producers: the last batches for finding duplicates and gaps, and the open transactions.
//!
//! Checks change nothing; state changes only by applying what was written, live and in recovery alike (section 4 of the spec).

use std::collections::{BTreeMap, HashMap, VecDeque};

use wire::batch::{BatchHeader, ControlType, NO_PRODUCER_EPOCH, NO_SEQUENCE};

use crate::error::AppendError;
use crate::types::{Origin, ProducerInfo, TxnProtocol, VerificationGuard};

/// Batches remembered per producer (W-1).
const BATCHES: usize = 5;

/// A batch as remembered for finding it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchMeta {
    pub last_sequence: i32,
    pub last_offset: i64,
    pub offset_delta: i32,
    pub timestamp: i64,
}

impl BatchMeta {
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    fn first_sequence(&self) -> i32 {
        let first = i64::from(self.last_sequence) - i64::from(self.offset_delta);
        (if first < 0 { first + i64::from(i32::MAX) + 1 } else { first }) as i32
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProducerEntry {
    pub epoch: i16,
    pub batches: VecDeque<BatchMeta>,
    pub coordinator_epoch: i32,
    pub last_timestamp: i64,
    pub txn_first_offset: Option<i64>,
}

impl Default for ProducerEntry {
    fn default() -> Self {
        ProducerEntry {
            epoch: NO_PRODUCER_EPOCH,
            batches: VecDeque::new(),
            coordinator_epoch: -1,
            last_timestamp: -1,
            txn_first_offset: None,
        }
    }
}

impl ProducerEntry {
    pub fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    fn set_epoch(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

/// A marker as read from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marker {
    pub kind: ControlType,
    pub coordinator_epoch: i32,
}

/// A transaction that a marker has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedTxn {
    pub producer_id: i64,
    pub first_offset: i64,
    /// The marker's.
    pub last_offset: i64,
    pub aborted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Verification {
    guard: VerificationGuard,
    epoch: i16,
    lowest_sequence: i32,
    /// The client speaks protocol 2.
    raises_epochs: bool,
    since_ms: i64,
}

#[derive(Debug, Default)]
pub(crate) struct ProducerState {
    producers: HashMap<i64, ProducerEntry>,
    /// First offset of every open transaction, with its producer.
    ongoing: BTreeMap<i64, i64>,
    /// Ended transactions whose marker consumers cannot see yet: first offset, marker's offset.
    unseen: BTreeMap<i64, i64>,
    verifications: HashMap<i64, Verification>,
    next_guard: u64,
    /// All batches before this offset are in the state.
    pub end: i64,
}

impl ProducerState {
    /// Nothing known of anybody, before `end`.
    pub fn starting_at(end: i64) -> ProducerState {
        ProducerState { end, ..ProducerState::default() }
    }

    #[cfg(test)]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, &ProducerEntry)> {
        self.producers.iter().map(|(id, entry)| (*id, entry))
    }

    /// Takes over an entry of a snapshot.
    pub fn insert(&mut self, producer_id: i64, entry: ProducerEntry) {
        if let Some(first) = entry.txn_first_offset {
            self.ongoing.insert(first, producer_id);
        }
        self.producers.insert(producer_id, entry);
    }

    /// The batch of which `header` is a repetition (W-2).
    pub fn duplicate_of(&self, header: &BatchHeader) -> Option<BatchMeta> {
        let entry = self.producers.get(&header.producer_id).filter(|entry| entry.epoch == header.producer_epoch)?;
        let same = |batch: &&BatchMeta| {
            batch.first_sequence() == header.base_sequence && batch.last_sequence == header.last_sequence()
        };
        entry.batches.iter().find(same).copied()
    }

    /// W-4 to W-8 and W-10, for a data batch with a producer id.
    pub fn check_data(&self, header: &BatchHeader, origin: Origin) -> Result<(), AppendError> {
        let none = ProducerEntry::default();
        let producer_id = header.producer_id;
        let known = self.producers.get(&producer_id);
        let entry = known.unwrap_or(&none);
        if header.producer_epoch < entry.epoch {
            let (got, current) = (header.producer_epoch, entry.epoch);
            return Err(AppendError::InvalidProducerEpoch { producer_id, got, current });
        }
        if origin == Origin::Client {
            self.check_sequence(header, entry)?;
        }
        if entry.txn_first_offset.is_some() && !header.attributes.is_transactional() {
            let reason = "a batch outside of the open transaction";
            return Err(AppendError::InvalidTxnState { producer_id, reason });
        }
        Ok(())
    }

    fn check_sequence(&self, header: &BatchHeader, entry: &ProducerEntry) -> Result<(), AppendError> {
        let (got, last) = (header.base_sequence, entry.last_sequence());
        let wrong = Err(AppendError::OutOfOrderSequence { producer_id: header.producer_id, got, last });
        if let Some(verification) = self.verifications.get(&header.producer_id) {
            let fresh = entry.epoch == NO_PRODUCER_EPOCH;
            // W-8, and W-7 for protocol 2, which always starts at 0.
            if got > verification.lowest_sequence || (verification.raises_epochs && fresh && got != 0) {
                return wrong;
            }
        }
        if entry.epoch == NO_PRODUCER_EPOCH {
            return Ok(());
        }
        let expected = match header.producer_epoch == entry.epoch {
            true if last == i32::MAX => 0,
            true => last + 1,
            false => 0,
        };
        if got == expected { Ok(()) } else { wrong }
    }

    /// W-9, and the coordinator's epoch, for a marker.
    pub fn check_marker(
        &self,
        header: &BatchHeader,
        marker: &Marker,
        protocol: TxnProtocol,
    ) -> Result<(), AppendError> {
        let Some(entry) = self.producers.get(&header.producer_id) else { return Ok(()) };
        let producer_id = header.producer_id;
        let (got, current) = (header.producer_epoch, entry.epoch);
        let retry = got == current && (entry.txn_first_offset.is_none() || got == i16::MAX);
        let valid = match protocol {
            TxnProtocol::V1 => got >= current,
            TxnProtocol::V2 => got > current || retry,
        };
        if !valid {
            return Err(AppendError::InvalidProducerEpoch { producer_id, got, current });
        }
        if marker.coordinator_epoch < entry.coordinator_epoch {
            let (got, current) = (marker.coordinator_epoch, entry.coordinator_epoch);
            return Err(AppendError::CoordinatorFenced { producer_id, got, current });
        }
        Ok(())
    }

    /// Takes a written data batch into the state.
    pub fn apply_data(&mut self, header: &BatchHeader) {
        let entry = self.producers.entry(header.producer_id).or_default();
        entry.set_epoch(header.producer_epoch);
        // Batches without a sequence are the broker's own (offsets in a transaction); there is nothing to find again.
        if header.base_sequence >= 0 {
            if entry.batches.len() == BATCHES {
                entry.batches.pop_front();
            }
            entry.batches.push_back(BatchMeta {
                last_sequence: header.last_sequence(),
                last_offset: header.last_offset(),
                offset_delta: header.last_offset_delta,
                timestamp: header.max_timestamp,
            });
        }
        entry.last_timestamp = header.max_timestamp;
        if header.attributes.is_transactional() {
            if entry.txn_first_offset.is_none() {
                entry.txn_first_offset = Some(header.base_offset);
                self.ongoing.insert(header.base_offset, header.producer_id);
            }
            self.verifications.remove(&header.producer_id);
        }
    }

    /// The transaction that this marker will end.
    pub fn completes(&self, header: &BatchHeader, marker: &Marker) -> Option<CompletedTxn> {
        let first_offset = self.producers.get(&header.producer_id)?.txn_first_offset?;
        let aborted = marker.kind == ControlType::Abort;
        Some(CompletedTxn { producer_id: header.producer_id, first_offset, last_offset: header.base_offset, aborted })
    }

    /// Takes a written marker into the state.
    pub fn apply_marker(&mut self, header: &BatchHeader, marker: &Marker) {
        self.verifications.remove(&header.producer_id);
        let entry = self.producers.entry(header.producer_id).or_default();
        entry.set_epoch(header.producer_epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = header.max_timestamp;
        if let Some(first) = entry.txn_first_offset.take() {
            self.ongoing.remove(&first);
            self.unseen.insert(first, header.base_offset);
        }
    }

    /// The first offset that READ_COMMITTED may not see although it is below the high watermark, if any.
    pub fn first_unstable(&self) -> Option<i64> {
        let ongoing = self.ongoing.keys().next();
        let unseen = self.unseen.keys().next();
        ongoing.into_iter().chain(unseen).min().copied()
    }

    /// The first unstable offset once `completed` has ended: what its index entry says.
    pub fn first_unstable_without(&self, completed: &CompletedTxn) -> Option<i64> {
        self.ongoing.keys().find(|first| **first != completed.first_offset).copied()
    }

    /// Consumers now see everything before `high_watermark`.
    pub fn advance(&mut self, high_watermark: i64) {
        if !self.unseen.is_empty() {
            self.unseen.retain(|_, marker| *marker >= high_watermark);
        }
    }

    pub fn has_open_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        let entry = self.producers.get(&producer_id);
        entry.is_some_and(|entry| entry.epoch == epoch && entry.txn_first_offset.is_some())
    }

    /// Starts or joins a verification; `None` if the transaction is already open here.
    pub fn begin_verification(
        &mut self,
        producer_id: i64,
        epoch: i16,
        base_sequence: i32,
        raises_epochs: bool,
        now_ms: i64,
    ) -> Result<Option<VerificationGuard>, AppendError> {
        if let Some(entry) = self.producers.get(&producer_id) {
            if epoch < entry.epoch {
                let (got, current) = (epoch, entry.epoch);
                return Err(AppendError::InvalidProducerEpoch { producer_id, got, current });
            }
            if epoch == entry.epoch && entry.txn_first_offset.is_some() {
                return Ok(None);
            }
        }
        self.next_guard += 1;
        let guard = VerificationGuard(self.next_guard);
        let new = Verification { guard, epoch, lowest_sequence: base_sequence, raises_epochs, since_ms: now_ms };
        let verification = self.verifications.entry(producer_id).or_insert(new);
        if epoch > verification.epoch {
            *verification = new;
        }
        verification.lowest_sequence = verification.lowest_sequence.min(base_sequence);
        Ok(Some(verification.guard))
    }

    pub fn is_verified(&self, producer_id: i64, guard: Option<VerificationGuard>) -> bool {
        guard.is_some() && self.verifications.get(&producer_id).map(|verification| verification.guard) == guard
    }

    /// Forgets producers that were idle for longer than `expiration_ms`, and verifications that led to nothing.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        let old = |since: i64| now_ms.saturating_sub(since) >= expiration_ms;
        self.producers.retain(|_, entry| entry.txn_first_offset.is_some() || !old(entry.last_timestamp));
        self.verifications.retain(|_, verification| !old(verification.since_ms));
    }

    /// Forgets what the log no longer holds: transactions that began before `log_start`.
    pub fn forget_before(&mut self, log_start: i64) {
        self.unseen.retain(|first, _| *first >= log_start);
    }

    pub fn describe(&self) -> Vec<ProducerInfo> {
        let mut all: Vec<ProducerInfo> = self.producers.iter().map(|(id, entry)| describe(*id, entry)).collect();
        all.sort_by_key(|info| info.producer_id);
        all
    }
}

fn describe(producer_id: i64, entry: &ProducerEntry) -> ProducerInfo {
    ProducerInfo {
        producer_id,
        producer_epoch: entry.epoch,
        last_sequence: entry.last_sequence(),
        last_timestamp: entry.last_timestamp,
        coordinator_epoch: entry.coordinator_epoch,
        txn_start_offset: entry.txn_first_offset,
    }
}
