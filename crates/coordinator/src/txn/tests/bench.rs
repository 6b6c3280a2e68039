//! Plays the part of the server: the clock, the producer ids, and the logs that markers are written to.

use std::sync::{Arc, Mutex};

use wire::ErrorCode;

use super::super::config::{Config, Env};
use super::super::state::{TopicPartitions, Txn};
use super::super::{Command, Effect, Record, Reply, TxnShard};
use crate::env::Moment;
use crate::runtime::{Cell, StateMachine, Unavailable};
use crate::state_log::{LogEntry, Producer, StateLog};
use crate::testing::MemoryLog;

pub type Answer = Result<Reply, Unavailable>;

/// The first producer id that the bench gives out.
pub const FIRST_PRODUCER_ID: i64 = 1000;

/// A marker that was written, for all its partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub producer: Producer,
    pub commit: bool,
    pub raises_epoch: bool,
    pub partitions: TopicPartitions,
}

pub struct Bench {
    pub cell: Cell<TxnShard, MemoryLog>,
    pub now: Moment,
    pub config: Config,
    pub next_producer_id: i64,
    /// Markers are written and producer ids given out as soon as they are asked for.
    pub automatic: bool,
    /// Partitions of topic `t` whose logs refuse markers.
    pub broken: Vec<i32>,
    /// Not carried out yet, with the log end that has to be durable first.
    pub pending: Vec<(u64, Effect)>,
    pub markers: Vec<Written>,
    completed: Arc<Mutex<Vec<(u64, Answer)>>>,
    calls: u64,
    shown: usize,
}

impl Bench {
    pub fn new() -> Bench {
        let mut bench = Bench {
            cell: Cell::new(TxnShard::new(), MemoryLog::default()),
            now: Moment { mono_ms: 5_000, wall_ms: 1_000_000 },
            config: Config::default(),
            next_producer_id: FIRST_PRODUCER_ID,
            automatic: true,
            broken: Vec::new(),
            pending: Vec::new(),
            markers: Vec::new(),
            completed: Arc::default(),
            calls: 0,
            shown: 0,
        };
        bench.reload();
        bench
    }

    /// Effects stay in `pending` until `carry_out`.
    pub fn manual() -> Bench {
        Bench { automatic: false, ..Bench::new() }
    }

    pub fn shard(&self) -> &TxnShard {
        self.cell.machine()
    }

    /// Runs a command, and what follows from it; the reply may come late.
    pub fn send(&mut self, command: Command) -> (u64, Option<Answer>) {
        self.calls += 1;
        let id = self.calls;
        let completed = Arc::clone(&self.completed);
        let mut env = Env { config: &self.config };
        let called = self.cell.call(self.now, &mut env, command, move |answer| {
            completed.lock().unwrap().push((id, answer));
        });
        called.released.deliver();
        let after = called.effects_after;
        self.pending.extend(called.effects.into_iter().map(|effect| (after, effect)));
        if self.automatic {
            self.carry_out();
        }
        (id, called.reply)
    }

    /// Runs a command that is answered within the time in which its effects are carried out.
    #[track_caller]
    pub fn ask(&mut self, command: Command) -> Reply {
        let (id, answer) = self.send(command);
        answer.or_else(|| self.answer(id)).expect("the command was parked").expect("the command was not served")
    }

    /// The late answer to a command.
    pub fn answer(&mut self, id: u64) -> Option<Answer> {
        let mut completed = self.completed.lock().unwrap();
        let at = completed.iter().position(|(of, _)| *of == id)?;
        Some(completed.remove(at).1)
    }

    /// Does what was asked for, where what it follows from is durable.
    pub fn carry_out(&mut self) {
        for (after, effect) in std::mem::take(&mut self.pending) {
            if after > self.cell.log().durable_end() {
                self.pending.push((after, effect));
                continue;
            }
            match effect {
                Effect::AllocateProducerId { token } => {
                    self.next_producer_id += 1;
                    self.send(Command::ProducerIdAllocated { token, producer_id: Ok(self.next_producer_id - 1) });
                }
                Effect::WriteMarkers { transactional_id, producer, commit, raises_epoch, mut partitions } => {
                    let mut failed = partitions.clone();
                    for numbers in failed.values_mut() {
                        numbers.retain(|number| self.broken.contains(number));
                    }
                    failed.retain(|_, numbers| !numbers.is_empty());
                    for (topic, numbers) in &mut partitions {
                        numbers.retain(|number| !failed.get(topic).is_some_and(|failed| failed.contains(number)));
                    }
                    self.markers.push(Written { producer, commit, raises_epoch, partitions });
                    self.send(Command::MarkersWritten { transactional_id, producer, failed });
                }
            }
        }
    }

    /// No producer id can be had.
    pub fn refuse_producer_ids(&mut self, error: ErrorCode) {
        for (_, effect) in std::mem::take(&mut self.pending) {
            if let Effect::AllocateProducerId { token } = effect {
                self.send(Command::ProducerIdAllocated { token, producer_id: Err(error) });
            }
        }
    }

    /// Moves both clocks; timers fire at their deadlines, each as a command of its own.
    pub fn advance(&mut self, ms: u64) {
        let target = self.now.mono_ms + ms;
        while let Some(at) = self.cell.next_wakeup().filter(|at| *at <= target) {
            self.move_to(at.max(self.now.mono_ms));
            self.send(TxnShard::wakeup());
        }
        self.move_to(target);
    }

    fn move_to(&mut self, mono_ms: u64) {
        self.now.wall_ms += (mono_ms - self.now.mono_ms) as i64;
        self.now.mono_ms = mono_ms;
    }

    pub fn make_durable(&mut self) {
        self.cell.log_mut().make_durable();
        self.cell.durable().deliver();
        if self.automatic {
            self.carry_out();
        }
    }

    /// The process dies; what was not durable is lost, what was under way is forgotten.
    pub fn crash(&mut self) {
        self.pending.clear();
        self.cell.log_mut().lose_unsynced();
        self.cell.poison().deliver();
        self.reload();
        self.shown = self.shown.min(self.cell.log().entries().len());
        self.advance(0);
    }

    fn reload(&mut self) {
        let mut env = Env { config: &self.config };
        self.cell.load(TxnShard::new(), self.now, &mut env).expect("what the shard wrote can be read");
    }

    /// The records written since the last look.
    pub fn records(&mut self) -> Vec<Record> {
        let new = self.cell.log().entries()[self.shown..].iter().map(record).collect();
        self.shown = self.cell.log().entries().len();
        new
    }

    /// Writes a state that would take long to get to.
    pub fn seed(&mut self, id: &str, txn: Txn) {
        let record = Record { transactional_id: wire::KStr::copy(id), txn: Some(txn) }.encode().unwrap();
        self.cell.log_mut().seed_raw(record);
        self.crash();
    }
}

pub fn record(entry: &LogEntry) -> Record {
    match entry {
        LogEntry::Record { record, .. } => Record::decode(record).unwrap().expect("a known type"),
        LogEntry::Marker { .. } => panic!("there are no markers in this log"),
    }
}
