//! Long random histories: what loading yields is what live operation led to, and no transaction ends in two ways.

use std::collections::{BTreeMap, BTreeSet};

use super::super::state::{LAST_EPOCH, State, Status};
use super::super::{Env, Record, TxnShard};
use super::bench::{Bench, record};
use super::*;
use crate::runtime::{Cell, StateMachine};
use crate::state_log::{LogEntry, LogError};
use crate::testing::{Durability, MemoryLog};

const IDS: [&str; 3] = ["a", "b", "c"];
const STEPS: usize = 400;
const SEEDS: u64 = 40;

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

struct History {
    bench: Bench,
    dice: Dice,
    /// What each id's producers were told, newest last; older ones are zombies that go on trying.
    told: BTreeMap<&'static str, Vec<(i64, i16)>>,
    /// Ends that were answered with NONE under protocol 2: producer id, epoch of the answer, commit.
    acknowledged: BTreeSet<(i64, i16, bool)>,
}

impl History {
    fn new(seed: u64) -> History {
        let mut bench = Bench::new();
        bench.config.transaction_version = if seed.is_multiple_of(3) { 1 } else { 2 };
        bench.config.id_expiration_ms = 100_000;
        bench.config.expiry_check_interval_ms = 50_000;
        History { bench, dice: Dice(seed), told: BTreeMap::new(), acknowledged: BTreeSet::new() }
    }

    fn producer(&mut self, id: &'static str) -> (i64, i16) {
        let told = self.told.entry(id).or_default();
        let back = self.dice.roll(4).saturating_sub(2) as usize;
        told.len().checked_sub(1 + back).map_or((1, 0), |at| told[at])
    }

    fn step(&mut self) {
        let id = IDS[self.dice.roll(3) as usize];
        let producer = self.producer(id);
        match self.dice.roll(20) {
            0 => self.init(id, None),
            1 => self.init(id, Some(producer)),
            2..=6 => {
                let number = self.dice.roll(3) as i32;
                let version = if self.dice.one_in(3) { 0 } else { 2 };
                self.bench.send(add_command(id, producer, &[number], version));
            }
            7..=12 => self.end(id, producer),
            13 => self.bench.advance(1 + self.dice.roll(30_000)),
            14 => self.bench.automatic = !self.bench.automatic,
            15 => self.bench.carry_out(),
            16 => self.bench.cell.log_mut().fail_next_append(LogError::NoSpace),
            17 => self.bench.broken = if self.dice.one_in(2) { vec![self.dice.roll(3) as i32] } else { Vec::new() },
            18 => self.exhaust(id),
            _ => self.restart(),
        }
    }

    fn init(&mut self, id: &'static str, given: Option<(i64, i16)>) {
        let (call, answer) = self.bench.send(init_command(5, id, given));
        if let Some(Ok(Reply::InitProducerId(r))) = answer.or_else(|| self.bench.answer(call))
            && r.error_code == NONE
        {
            self.told.entry(id).or_default().push((r.producer_id, r.producer_epoch));
        }
    }

    fn end(&mut self, id: &'static str, producer: (i64, i16)) {
        // Clients use version 5 only where protocol 2 is finalized.
        let old = self.bench.config.transaction_version < 2 || self.dice.one_in(4);
        let version = if old { 4 } else { 5 };
        let commit = self.dice.one_in(2);
        let (call, answer) = self.bench.send(end_command(version, id, producer, commit));
        if let Some(Ok(Reply::EndTxn(r))) = answer.or_else(|| self.bench.answer(call))
            && r.error_code == NONE
            && version == 5
        {
            self.told.entry(id).or_default().push((r.producer_id, r.producer_epoch));
            let raised = if r.producer_epoch == 0 { (producer.0, i16::MAX) } else { (producer.0, producer.1 + 1) };
            self.acknowledged.insert((raised.0, raised.1, commit));
        }
    }

    /// Lets an id come near its last epoch.
    fn exhaust(&mut self, id: &'static str) {
        let idle = |txn: &&super::super::Txn| txn.status == Status::Empty;
        let Some(mut txn) = self.bench.shard().state().get(id).filter(idle).cloned() else { return };
        txn.epoch = txn.epoch.max(LAST_EPOCH - self.dice.roll(2) as i16);
        self.told.entry(id).or_default().push((txn.producer_id, txn.epoch));
        self.bench.seed(id, txn);
    }

    fn restart(&mut self) {
        let durability = if self.dice.one_in(2) { Durability::Manual } else { Durability::Immediate };
        self.bench.crash();
        self.bench.cell.log_mut().set_durability(durability);
        if durability == Durability::Manual && self.dice.one_in(2) {
            self.bench.make_durable();
        }
    }

    fn log(&self) -> Vec<Record> {
        self.bench.cell.log().entries().iter().map(record).collect()
    }
}

fn loaded(entries: &[LogEntry]) -> State {
    let mut log = MemoryLog::default();
    for entry in entries {
        let LogEntry::Record { record, .. } = entry else { panic!("there are no markers in this log") };
        log.seed_raw(record.clone());
    }
    let mut cell = Cell::new(TxnShard::new(), log);
    let config = super::super::Config::default();
    let at = crate::env::Moment { mono_ms: 0, wall_ms: 0 };
    cell.load(TxnShard::new(), at, &mut Env { config: &config }).unwrap();
    cell.machine().state().clone()
}

#[test]
fn loading_leads_to_the_state_that_live_operation_led_to() {
    for seed in 0..SEEDS {
        let mut history = History::new(seed);
        for step in 0..STEPS {
            history.step();
            if step % 20 == 0 || step == STEPS - 1 {
                let live = history.bench.shard().state();
                assert_eq!(*live, loaded(history.bench.cell.log().entries()), "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn t_3_every_step_in_the_log_is_a_legal_one_and_epochs_only_grow() {
    use Status::*;
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut history = History::new(seed);
        (0..STEPS).for_each(|_| history.step());
        let mut before: BTreeMap<KStr, super::super::Txn> = BTreeMap::new();
        for Record { transactional_id: id, txn } in history.log() {
            let Some(txn) = txn else {
                let gone = before.remove(&id).expect("only what exists is forgotten");
                assert!(matches!(gone.status, Empty | CompleteCommit | CompleteAbort));
                continue;
            };
            let Some(old) = before.insert(id.clone(), txn.clone()) else {
                assert_eq!((txn.status, txn.epoch), (Empty, 0), "seed {seed}");
                continue;
            };
            let legal = match txn.status {
                Empty => matches!(old.status, Empty | CompleteCommit | CompleteAbort),
                Ongoing => matches!(old.status, Ongoing | Empty | CompleteCommit | CompleteAbort),
                PrepareCommit => old.status == Ongoing,
                PrepareAbort => {
                    old.status == Ongoing
                        || (txn.client_version == 2 && matches!(old.status, Empty | CompleteCommit | CompleteAbort))
                }
                CompleteCommit => old.status == PrepareCommit,
                CompleteAbort => old.status == PrepareAbort,
            };
            seen.insert((old.status.code(), txn.status.code()));
            assert!(legal, "seed {seed}: {old:?} to {txn:?}");
            if txn.producer_id == old.producer_id {
                assert!(txn.epoch >= old.epoch, "seed {seed}: {old:?} to {txn:?}");
            } else {
                assert!(old.is_exhausted() && txn.epoch == 0, "seed {seed}: {old:?} to {txn:?}");
            }
            assert!(txn.is_prepared() || txn.status == Ongoing || txn.partitions.is_empty());
        }
    }
    assert!(seen.len() >= 14, "the histories are too dull: {seen:?}");
}

#[test]
fn every_end_that_was_acknowledged_is_the_one_that_the_markers_write() {
    let (mut commits, mut aborts) = (0, 0);
    for seed in 0..SEEDS {
        let mut history = History::new(seed);
        (0..STEPS).for_each(|_| history.step());
        // Let everything come to its end.
        history.bench.broken.clear();
        history.bench.automatic = true;
        history.bench.cell.log_mut().set_durability(Durability::Immediate);
        history.bench.crash();
        history.bench.advance(100_000);
        assert!(history.bench.shard().is_idle(), "seed {seed}");
        let mut ends: BTreeMap<(i64, i16), BTreeSet<bool>> = BTreeMap::new();
        for marker in history.bench.markers.iter().filter(|m| m.raises_epoch && !m.partitions["t"].is_empty()) {
            ends.entry((marker.producer.id, marker.producer.epoch)).or_default().insert(marker.commit);
        }
        for (producer, outcomes) in &ends {
            assert_eq!(outcomes.len(), 1, "seed {seed}: {producer:?} was both committed and aborted");
        }
        for (producer_id, epoch, commit) in &history.acknowledged {
            if let Some(outcomes) = ends.get(&(*producer_id, *epoch)) {
                assert!(outcomes.contains(commit), "seed {seed}: {producer_id} {epoch}");
                *(if *commit { &mut commits } else { &mut aborts }) += 1;
            }
        }
    }
    assert!(commits > 50 && aborts > 50, "the histories are too dull: {commits} commits, {aborts} aborts");
}

#[test]
fn the_same_history_twice_is_the_same_to_the_byte() {
    let run = |seed| {
        let mut history = History::new(seed);
        (0..STEPS).for_each(|_| history.step());
        history.log().iter().map(|record| TxnShard::encode(record).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(run(5), run(5));
}
