//! What a partition checks about its producers: rules W-1 to W-11 (section 4), as tables of cases.

use std::sync::Arc;

use bytes::Bytes;
use log::{
    AppendError, AppendParams, Clock, DirConfig, Isolation, LogConfig, LogDir, MemFs, PartitionLog, ReadParams,
    TopicId, TopicPartition, TxnProtocol,
};
use wire::batch::{BatchBuilder, ControlType};

const NOW: i64 = 1_700_000_000_000;
const P: i64 = 7;
const EXPIRATION_MS: i64 = 86_400_000;

const OUT_OF_ORDER: i16 = 45;
const INVALID_EPOCH: i16 = 47;
const INVALID_TXN_STATE: i16 = 48;
const COORDINATOR_FENCED: i16 = 52;

struct TestClock;

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        NOW
    }
}

struct Rig {
    fs: MemFs,
    dir: Arc<LogDir>,
    log: Arc<PartitionLog>,
}

impl Rig {
    fn new() -> Rig {
        Rig::on(MemFs::new())
    }

    fn on(fs: MemFs) -> Rig {
        let config = DirConfig { flush_threads: 0, reserved_bytes: 0, ..DirConfig::new("/data") };
        let dir = LogDir::open(Arc::new(fs.clone()), Arc::new(TestClock), config).unwrap();
        let log =
            dir.create_partition(&TopicPartition::new("topic", 0), TopicId([1; 16]), LogConfig::default()).unwrap();
        Rig { fs, dir, log }
    }

    /// The process ends and comes back.
    fn killed(self) -> Rig {
        self.dir.flush_now();
        Rig::on(self.fs.restart())
    }

    fn closed(self) -> Rig {
        self.dir.close().unwrap();
        Rig::on(self.fs.restart())
    }

    /// First offset, and whether it was there already; or the code.
    fn append(&self, batch: &Bytes) -> Result<(i64, bool), i16> {
        let info = self.log.append(&AppendParams::client(NOW), batch);
        info.map(|info| (info.first_offset, info.duplicate)).map_err(|error| error.code())
    }

    fn plain(&self, epoch: i16, sequence: i32, count: usize) -> Result<(i64, bool), i16> {
        self.append(&batch(epoch, sequence, count, false))
    }

    /// Verified as a Produce request of the protocol does it.
    fn transactional(&self, epoch: i16, sequence: i32, raises_epochs: bool) -> Result<(i64, bool), i16> {
        let verification = self.log.begin_verification(P, epoch, sequence, raises_epochs, NOW);
        let verification = verification.map_err(|error| error.code())?;
        let params = AppendParams { verification, ..AppendParams::client(NOW) };
        let info = self.log.append(&params, &batch(epoch, sequence, 1, true));
        info.map(|info| (info.first_offset, info.duplicate)).map_err(|error| error.code())
    }

    fn marker(&self, kind: ControlType, epoch: i16, coordinator_epoch: i32, protocol: TxnProtocol) -> Result<i64, i16> {
        let info = self.log.append_marker(kind, P, epoch, coordinator_epoch, protocol, NOW);
        info.map(|info| info.first_offset).map_err(|error: AppendError| error.code())
    }

    fn end(&self) -> i64 {
        self.log.offsets().unwrap().log_end
    }
}

fn batch(epoch: i16, sequence: i32, count: usize, transactional: bool) -> Bytes {
    let mut builder = BatchBuilder::new().producer(P, epoch, sequence).transactional(transactional);
    for _ in 0..count {
        builder.append(NOW, Some(b"k"), Some(b"v"), &[]);
    }
    builder.build().unwrap()
}

/// ID-01.
#[test]
fn w_1_w_2_the_last_five_batches_are_found_again_and_no_other() {
    for restart in [false, true] {
        let mut rig = Rig::new();
        for sequence in 0..7 {
            assert_eq!(rig.plain(0, sequence, 1), Ok((i64::from(sequence), false)));
        }
        if restart {
            rig = rig.killed();
        }
        for (sequence, expected) in
            [(6, Ok((6, true))), (3, Ok((3, true))), (2, Ok((2, true))), (1, Err(OUT_OF_ORDER)), (0, Err(OUT_OF_ORDER))]
        {
            assert_eq!(rig.plain(0, sequence, 1), expected, "sequence {sequence}, restarted: {restart}");
        }
        assert_eq!(rig.end(), 7);
    }
}

/// A clean end saves the last batch of each producer: that much is found again without reading the log.
#[test]
fn w_1_snapshots_keep_the_last_batch() {
    let rig = Rig::new();
    rig.plain(3, 0, 2).unwrap();
    rig.plain(3, 2, 2).unwrap();
    let rig = rig.closed();
    assert_eq!(rig.plain(3, 2, 2), Ok((2, true)));
    assert_eq!(rig.plain(3, 4, 1), Ok((4, false)));
    let known = rig.log.producers().unwrap();
    assert_eq!((known[0].producer_id, known[0].producer_epoch, known[0].last_sequence), (P, 3, 4));
}

/// W-1, W-7: who was forgotten may begin with any sequence, and even repeat.
#[test]
fn w_1_idle_producers_are_forgotten_but_for_open_transactions() {
    for (open, expected) in [(false, Ok((1, false))), (true, Err(OUT_OF_ORDER))] {
        let rig = Rig::new();
        let first = if open { rig.transactional(0, 0, true) } else { rig.plain(0, 5, 1) };
        assert_eq!(first, Ok((0, false)));
        rig.dir.tick(NOW);
        rig.dir.tick(NOW + EXPIRATION_MS - 1);
        assert_eq!(rig.log.producers().unwrap().len(), 1);
        rig.dir.tick(NOW + 2 * EXPIRATION_MS);
        assert_eq!(rig.log.producers().unwrap().len(), usize::from(open));
        let again = if open { rig.transactional(0, 5, true) } else { rig.plain(0, 5, 1) };
        assert_eq!(again, expected);
    }
}

/// ID-01 to ID-05 and what lies around them: a producer whose last batch is (epoch 2, sequences 4 to 6).
#[test]
fn w_2_to_w_6_epochs_and_sequences() {
    let duplicate = Ok((4, true));
    for (epoch, sequence, count, expected) in [
        (2, 4, 3, duplicate),
        (2, 4, 2, Err(OUT_OF_ORDER)), // W-2: the same first sequence, another length
        (2, 5, 2, Err(OUT_OF_ORDER)),
        (2, 6, 1, Err(OUT_OF_ORDER)),
        (2, 7, 1, Ok((7, false))), // W-5
        (2, 8, 1, Err(OUT_OF_ORDER)),
        (2, 0, 1, Err(OUT_OF_ORDER)),
        (1, 7, 1, Err(INVALID_EPOCH)), // W-4
        (1, 0, 1, Err(INVALID_EPOCH)),
        (3, 0, 1, Ok((7, false))), // W-6
        (3, 7, 1, Err(OUT_OF_ORDER)),
        (3, 1, 1, Err(OUT_OF_ORDER)),
        (i16::MAX, 0, 1, Ok((7, false))),
    ] {
        let rig = Rig::new();
        rig.plain(2, 0, 4).unwrap();
        rig.plain(2, 4, 3).unwrap();
        assert_eq!(rig.plain(epoch, sequence, count), expected, "epoch {epoch}, sequence {sequence}, {count} records");
        let appended = matches!(expected, Ok((_, false)));
        assert_eq!(rig.end(), if appended { 7 + count as i64 } else { 7 }, "a refusal leaves no trace");
    }
}

/// ID-04: sequences go round after 2^31 - 1, also within a batch.
#[test]
fn w_5_sequences_go_round() {
    for (first, count, next) in [(i32::MAX, 1, 0), (i32::MAX - 1, 4, 2)] {
        let rig = Rig::new();
        assert_eq!(rig.plain(0, first, count), Ok((0, false)));
        assert_eq!(rig.plain(0, first, count), Ok((0, true)));
        assert_eq!(rig.plain(0, next + 1, 1), Err(OUT_OF_ORDER));
        assert_eq!(rig.plain(0, next, 1), Ok((count as i64, false)));
    }
}

/// TX-21, ID-05.
#[test]
fn w_7_unknown_producers_begin_anywhere_but_under_protocol_2() {
    for (transactional, raises_epochs, expected) in
        [(false, false, Ok((0, false))), (true, false, Ok((0, false))), (true, true, Err(OUT_OF_ORDER))]
    {
        let rig = Rig::new();
        let found = if transactional { rig.transactional(0, 5, raises_epochs) } else { rig.plain(0, 5, 1) };
        assert_eq!(found, expected, "transactional {transactional}, protocol 2 {raises_epochs}");
        if expected.is_err() {
            assert_eq!(rig.transactional(0, 0, raises_epochs), Ok((0, false)));
        }
    }
}

/// W-8: the batch that overtakes the one that asked first must wait for it.
#[test]
fn w_8_nobody_overtakes_the_batch_that_is_being_verified() {
    let rig = Rig::new();
    let guard = rig.log.begin_verification(P, 0, 0, false, NOW).unwrap();
    let second = rig.log.begin_verification(P, 0, 1, false, NOW).unwrap();
    assert_eq!(guard, second, "one question for both");
    let params = AppendParams { verification: guard, ..AppendParams::client(NOW) };
    let overtaking = rig.log.append(&params, &batch(0, 1, 1, true)).unwrap_err();
    assert_eq!(overtaking.code(), OUT_OF_ORDER);
    assert_eq!(rig.log.append(&params, &batch(0, 0, 1, true)).unwrap().first_offset, 0);
    assert_eq!(rig.log.append(&params, &batch(0, 1, 1, true)).unwrap().first_offset, 1);
}

/// Without a guard, or with one that a marker made void, a batch begins no transaction that nobody would end.
#[test]
fn w_8_a_transaction_begins_only_when_the_coordinator_knows() {
    let rig = Rig::new();
    assert_eq!(rig.append(&batch(0, 0, 1, true)), Err(INVALID_TXN_STATE));
    let guard = rig.log.begin_verification(P, 0, 0, false, NOW).unwrap();
    rig.marker(ControlType::Abort, 0, 0, TxnProtocol::V1).unwrap();
    let params = AppendParams { verification: guard, ..AppendParams::client(NOW) };
    assert_eq!(rig.log.append(&params, &batch(0, 0, 1, true)).unwrap_err().code(), INVALID_TXN_STATE);
    assert_eq!(rig.transactional(0, 0, false), Ok((1, false)));
    assert_eq!(rig.append(&batch(0, 1, 1, true)), Ok((2, false)), "nothing is asked while it is open");
}

/// The producer has epoch 4, with an open transaction or without; the coordinator's epoch was 3.
#[test]
fn w_9_epochs_of_markers() {
    use TxnProtocol::{V1, V2};
    for (open, protocol, epoch, coordinator_epoch, expected) in [
        (true, V1, 3, 3, Err(INVALID_EPOCH)),
        (true, V1, 4, 3, Ok(())),
        (true, V1, 5, 3, Ok(())),
        (true, V2, 3, 3, Err(INVALID_EPOCH)),
        (true, V2, 4, 3, Err(INVALID_EPOCH)), // a late marker of the transaction before this one
        (true, V2, 5, 3, Ok(())),
        (false, V1, 3, 3, Err(INVALID_EPOCH)),
        (false, V1, 4, 3, Ok(())),
        (false, V2, 3, 3, Err(INVALID_EPOCH)),
        (false, V2, 4, 3, Ok(())), // written again after a crash
        (false, V2, 5, 3, Ok(())),
        (true, V1, 4, 2, Err(COORDINATOR_FENCED)),
        (true, V1, 4, 4, Ok(())),
        (false, V2, 5, 2, Err(COORDINATOR_FENCED)),
    ] {
        let rig = Rig::new();
        rig.transactional(3, 0, false).unwrap();
        rig.marker(ControlType::Commit, 4, 3, V2).unwrap();
        if open {
            rig.transactional(4, 0, true).unwrap();
        }
        let end = rig.end();
        let found = rig.marker(ControlType::Commit, epoch, coordinator_epoch, protocol);
        let case = format!("open {open}, {protocol:?}, epoch {epoch}, coordinator {coordinator_epoch}");
        assert_eq!(found, expected.map(|()| end), "{case}");
        assert_eq!(rig.end(), if expected.is_ok() { end + 1 } else { end }, "{case}");
    }
}

/// Of the last epoch there is none above: its marker has to do with it (E-8).
#[test]
fn w_9_the_last_epoch_is_its_own_marker() {
    let rig = Rig::new();
    rig.transactional(i16::MAX, 0, false).unwrap();
    assert_eq!(rig.marker(ControlType::Abort, i16::MAX, 0, TxnProtocol::V2), Ok(1));
    assert_eq!(rig.marker(ControlType::Abort, i16::MAX, 0, TxnProtocol::V2), Ok(2));
}

#[test]
fn w_10_a_plain_batch_does_not_fit_into_an_open_transaction() {
    let rig = Rig::new();
    rig.transactional(0, 0, false).unwrap();
    assert_eq!(rig.plain(0, 1, 1), Err(INVALID_TXN_STATE));
    rig.marker(ControlType::Commit, 0, 0, TxnProtocol::V1).unwrap();
    assert_eq!(rig.plain(0, 1, 1), Ok((2, false)), "under protocol 1, sequences go on after the marker");
}

#[test]
fn w_11_a_marker_closes_the_transaction_and_forgets_the_batches() {
    for restart in [false, true] {
        let mut rig = Rig::new();
        rig.transactional(0, 0, true).unwrap();
        rig.append(&batch(0, 1, 1, true)).unwrap();
        rig.dir.flush_now();
        let open = rig.log.producers().unwrap()[0];
        assert_eq!((open.txn_start_offset, open.coordinator_epoch, open.last_sequence), (Some(0), -1, 1));
        assert_eq!(rig.log.offsets().unwrap().last_stable, 0);
        rig.marker(ControlType::Abort, 1, 9, TxnProtocol::V2).unwrap();
        if restart {
            rig = rig.killed();
        }
        rig.dir.flush_now();
        let closed = rig.log.producers().unwrap()[0];
        let known = (closed.producer_epoch, closed.txn_start_offset, closed.coordinator_epoch, closed.last_sequence);
        assert_eq!(known, (1, None, 9, -1), "restarted: {restart}");
        assert_eq!(rig.log.offsets().unwrap().last_stable, 3);
        assert_eq!(rig.transactional(0, 2, true), Err(INVALID_EPOCH));
        assert_eq!(rig.transactional(1, 1, true), Err(OUT_OF_ORDER));
        assert_eq!(rig.transactional(1, 0, true), Ok((3, false)));
        let isolation = Isolation::LastStable;
        let params = ReadParams { from_offset: 0, max_bytes: 1 << 20, isolation, min_one_batch: true };
        let aborted = rig.log.read(&params).unwrap().aborted_transactions.unwrap();
        assert_eq!(aborted.iter().map(|txn| (txn.producer_id, txn.first_offset)).collect::<Vec<_>>(), [(P, 0)]);
    }
}
