//! The log under the simulated coordinator: in memory, durable when the world says so, and able to fail.

use coordinator::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};

/// How the next append goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused cleanly: nothing is written.
    Refused,
    /// Failed, and nothing of it is on disk.
    Lost,
    /// Failed, but it is on disk.
    Kept,
}

/// Offsets are positions in `entries`.
#[derive(Debug, Default)]
pub struct SimLog {
    entries: Vec<LogEntry>,
    term: u32,
    durable: u64,
    fault: Option<Fault>,
}

impl SimLog {
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    pub fn end(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn make_durable(&mut self) {
        self.durable = self.end();
    }

    /// What a crash leaves.
    pub fn lose_unsynced(&mut self) {
        self.entries.truncate(self.durable as usize);
    }

    pub fn fail_next_append(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    fn write(&mut self, term: u32, expected_end: u64, batch: impl Iterator<Item = LogEntry>) -> Result<u64, LogError> {
        if term != self.term || expected_end != self.end() {
            return Err(LogError::Fenced);
        }
        match self.fault.take() {
            Some(Fault::Refused) => return Err(LogError::NoSpace),
            Some(Fault::Lost) => return Err(LogError::Failed("injected".to_owned())),
            Some(Fault::Kept) => {
                self.entries.extend(batch);
                return Err(LogError::Failed("injected".to_owned()));
            }
            None => self.entries.extend(batch),
        }
        Ok(self.end())
    }
}

impl StateLog for SimLog {
    fn load(&mut self, each: &mut dyn FnMut(LogEntry)) -> Result<(u32, u64), LogError> {
        self.term += 1;
        self.fault = None;
        // Recovery keeps what it finds.
        self.make_durable();
        self.entries.iter().cloned().for_each(each);
        Ok((self.term, self.end()))
    }

    fn append(
        &mut self,
        term: u32,
        expected_end: u64,
        timestamp_ms: i64,
        producer: Option<Producer>,
        batch: &[RawRecord],
    ) -> Result<u64, LogError> {
        let entries = (expected_end..).zip(batch).map(|(offset, record)| LogEntry::Record {
            offset,
            timestamp_ms,
            producer,
            record: record.clone(),
        });
        self.write(term, expected_end, entries)
    }

    fn append_marker(
        &mut self,
        term: u32,
        expected_end: u64,
        _timestamp_ms: i64,
        marker: &EndMarker,
    ) -> Result<u64, LogError> {
        let marker = LogEntry::Marker { offset: expected_end, producer: marker.producer, commit: marker.commit };
        self.write(term, expected_end, std::iter::once(marker))
    }

    fn durable_end(&self) -> u64 {
        self.durable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> RawRecord {
        RawRecord { key: "k".into(), value: None }
    }

    fn loaded() -> (SimLog, u32) {
        let mut log = SimLog::default();
        let (term, end) = log.load(&mut |_| {}).expect("nothing is wrong");
        assert_eq!(end, 0);
        (log, term)
    }

    #[test]
    fn a_crash_loses_what_was_not_durable() {
        let (mut log, term) = loaded();
        assert_eq!(log.append(term, 0, 0, None, &[record(), record()]), Ok(2));
        log.make_durable();
        assert_eq!(log.append(term, 2, 0, None, &[record()]), Ok(3));
        log.lose_unsynced();
        assert_eq!((log.end(), log.durable_end()), (2, 2));
    }

    #[test]
    fn faults_hit_one_append() {
        for (fault, end, clean) in [(Fault::Refused, 0, true), (Fault::Lost, 0, false), (Fault::Kept, 1, false)] {
            let (mut log, term) = loaded();
            log.fail_next_append(fault);
            let error = log.append(term, 0, 0, None, &[record()]).expect_err("a fault was ordered");
            assert_eq!((log.end(), error.is_clean()), (end, clean), "{fault:?}");
            assert_eq!(log.append(term, end, 0, None, &[record()]), Ok(end + 1));
        }
    }

    #[test]
    fn an_owner_of_an_earlier_term_is_fenced() {
        let (mut log, term) = loaded();
        log.load(&mut |_| {}).expect("nothing is wrong");
        assert_eq!(log.append(term, 0, 0, None, &[record()]), Err(LogError::Fenced));
    }
}
