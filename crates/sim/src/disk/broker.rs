//! A broker on the faulty disk: real logs, the real transaction coordinator, a real shard of groups, and of a server only what
//! carries one to the other. When what happens is for the world to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use coordinator::config::GroupConfigs;
use coordinator::runtime::{Called, Unavailable};
use coordinator::txn::{self, TopicPartitions, TxnShard};
use coordinator::{
    Cell, Command, EndMarker, Env, Moment, Producer, Reply, SeededIds, Shard, StateMachine, TopicImage, TopicMetadata,
};
use log::{
    AppendError, AppendInfo, AppendParams, Clock, DirConfig, LogConfig, LogDir, PartitionLog, StorageError, TopicId,
    TopicPartition, TxnProtocol,
};
use wire::batch::ControlType;
use wire::{KStr, Uuid};

use super::faulty::FaultyDisk;
use super::state_log::DiskLog;

/// Partitions of the topic that clients write to. The last one is compacted.
pub const PARTITIONS: i32 = 3;
pub const COMPACTED: i32 = PARTITIONS - 1;
pub const TOPIC: &str = "data";
pub const OFFSETS: &str = "__consumer_offsets";
const TRANSACTIONS: &str = "__transaction_state";
/// A moment with more timers than this has one that re-arms itself without end.
const MAX_FIRINGS: usize = 1000;

/// Names a call of a client.
pub type CallId = u64;

#[derive(Debug)]
pub enum Answer {
    Appended(Result<(), StorageError>),
    Txn(Result<txn::Reply, Unavailable>),
    Group(Result<Reply, Unavailable>),
}

type Answers = Arc<Mutex<Vec<(CallId, Answer)>>>;

/// End markers on their way.
struct Marking {
    transactional_id: KStr,
    producer: Producer,
    waiting: BTreeMap<(KStr, i32), CallId>,
    failed: TopicPartitions,
}

pub struct Broker {
    pub disk: FaultyDisk,
    pub dir: Arc<LogDir>,
    txn: Cell<TxnShard, DiskLog>,
    groups: Cell<Shard, DiskLog>,
    txn_config: txn::Config,
    group_config: Arc<GroupConfigs>,
    topics: Arc<TopicImage>,
    ids: SeededIds,
    /// Each must not begin before its end is durable.
    effects: Vec<(u64, txn::Effect)>,
    markings: Vec<Marking>,
    answers: Answers,
    next_marker_call: CallId,
}

struct SimClock(i64);

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.0
    }
}

/// Calls of the broker itself have numbers from here on.
const OWN_CALLS: CallId = 1 << 60;

impl Broker {
    /// Opens what the disk holds.
    ///
    /// # Errors
    /// What keeps it from opening; on a sound disk nothing should.
    pub fn open(disk: FaultyDisk, at: Moment) -> Result<Broker, String> {
        let config = DirConfig {
            flush_threads: 0,
            snapshot_interval_bytes: 2000,
            reserved_bytes: 0,
            compaction_map_bytes: 48 * 40,
            ..DirConfig::new("/data")
        };
        let clock = Arc::new(SimClock(at.wall_ms));
        let dir = LogDir::open(Arc::new(disk.clone()), clock, config).map_err(|error| error.to_string())?;
        let offsets = make(&dir, OFFSETS, 0)?;
        let transactions = make(&dir, TRANSACTIONS, 0)?;
        for partition in 0..PARTITIONS {
            make(&dir, TOPIC, partition)?;
        }
        let mut topics = TopicImage::default();
        let metadata = TopicMetadata { id: Uuid([7; 16]), partitions: PARTITIONS, rack: None };
        topics.insert(KStr::from_static(TOPIC), metadata);
        let mut broker = Broker {
            disk,
            dir,
            txn: Cell::new(TxnShard::new(), DiskLog(transactions)),
            groups: Cell::new(Shard::new(), DiskLog(offsets)),
            txn_config: txn::Config::default(),
            group_config: Arc::default(),
            topics: Arc::new(topics),
            ids: SeededIds::default(),
            effects: Vec::new(),
            markings: Vec::new(),
            answers: Answers::default(),
            next_marker_call: OWN_CALLS,
        };
        broker.load(at)?;
        Ok(broker)
    }

    fn load(&mut self, at: Moment) -> Result<(), String> {
        let mut env = Env { topics: &self.topics, config: &self.group_config, ids: &mut self.ids, members_total: 0 };
        self.groups.load(Shard::new(), at, &mut env).map_err(|error| format!("groups: {error}"))?;
        let mut env = txn::Env { config: &self.txn_config };
        self.txn.load(TxnShard::new(), at, &mut env).map_err(|error| format!("transactions: {error}"))
    }

    /// # Panics
    /// If the partition is not there: `open` made it.
    pub fn log(&self, partition: i32) -> Arc<PartitionLog> {
        self.dir.partition(&TopicPartition::new(TOPIC, partition)).expect("made by open")
    }

    /// Everything that is written to.
    pub fn logs(&self) -> Vec<Arc<PartitionLog>> {
        self.dir.partitions()
    }

    /// Something failed that only a restart can mend.
    pub fn is_broken(&self) -> bool {
        self.txn.is_poisoned()
            || self.groups.is_poisoned()
            || self.logs().iter().any(|log| log.offline_reason().is_some())
    }

    pub fn is_idle(&self) -> bool {
        self.effects.is_empty() && self.markings.is_empty() && self.txn.machine().is_idle()
    }

    /// The hard state of both coordinators, line by line; hash maps show their entries in any order.
    pub fn hard_state(&self) -> [Vec<String>; 2] {
        [format!("{:#?}", self.txn.machine().state()), format!("{:#?}", self.groups.machine().state())].map(|text| {
            let mut lines: Vec<_> = text.lines().filter(|line| !is_wait_mark(line)).map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        })
    }

    pub fn take_answers(&mut self) -> Vec<(CallId, Answer)> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&self, call: CallId, answer: Answer) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, answer));
    }

    /// Appends for a client; the answer comes when it is durable.
    pub fn append(
        &mut self,
        partition: i32,
        params: &AppendParams,
        bytes: &Bytes,
        call: CallId,
    ) -> Result<AppendInfo, AppendError> {
        let log = self.log(partition);
        let info = log.append(params, bytes)?;
        let answers = Arc::clone(&self.answers);
        let done = move |result| {
            answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, Answer::Appended(result)));
        };
        log.when_committed(info.next_offset(), Box::new(done));
        Ok(info)
    }

    pub fn ask_txn(&mut self, at: Moment, command: txn::Command, call: Option<CallId>) {
        let answers = Arc::clone(&self.answers);
        let mut env = txn::Env { config: &self.txn_config };
        let called = self.txn.call(at, &mut env, command, move |answer| {
            if let Some(call) = call {
                answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, Answer::Txn(answer)));
            }
        });
        let Called { reply, effects, events: _, effects_after, released } = called;
        released.deliver();
        if let (Some(call), Some(reply)) = (call, reply) {
            self.answer(call, Answer::Txn(reply));
        }
        self.effects.extend(effects.into_iter().map(|effect| (effects_after, effect)));
    }

    pub fn ask_groups(&mut self, at: Moment, command: Command, call: Option<CallId>) {
        let answers = Arc::clone(&self.answers);
        let mut env = Env { topics: &self.topics, config: &self.group_config, ids: &mut self.ids, members_total: 0 };
        let called = self.groups.call(at, &mut env, command, move |answer| {
            if let Some(call) = call {
                answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, Answer::Group(answer)));
            }
        });
        called.released.deliver();
        if let (Some(call), Some(reply)) = (call, called.reply) {
            self.answer(call, Answer::Group(reply));
        }
    }

    /// Syncs what waits for it, and lets everything happen that follows from it. `fresh` gives producer ids.
    ///
    /// # Errors
    /// Timers without end.
    pub fn progress(&mut self, at: Moment, fresh: &mut i64) -> Result<(), String> {
        self.dir.flush_now();
        self.txn.durable().deliver();
        self.groups.durable().deliver();
        self.fire(at)?;
        let durable = self.durable_end();
        let ready: Vec<_> = self.effects.extract_if(.., |(after, _)| *after <= durable).collect();
        for (_, effect) in ready {
            match effect {
                txn::Effect::AllocateProducerId { token } => {
                    *fresh += 1;
                    self.ask_txn(at, txn::Command::ProducerIdAllocated { token, producer_id: Ok(*fresh) }, None);
                }
                txn::Effect::WriteMarkers { transactional_id, producer, commit, raises_epoch, partitions } => {
                    let marker = EndMarker { producer, commit, coordinator_epoch: 0, raises_epoch };
                    self.write_markers(at, transactional_id, marker, &partitions);
                }
            }
        }
        self.finish_markers(at);
        Ok(())
    }

    fn durable_end(&self) -> u64 {
        coordinator::StateLog::durable_end(self.txn.log())
    }

    fn fire(&mut self, at: Moment) -> Result<(), String> {
        for _ in 0..MAX_FIRINGS {
            let due = |wakeup: Option<u64>| wakeup.is_some_and(|due_ms| due_ms <= at.mono_ms);
            if due(self.txn.next_wakeup()) {
                self.ask_txn(at, TxnShard::wakeup(), None);
            } else if due(self.groups.next_wakeup()) {
                self.ask_groups(at, Shard::wakeup(), None);
            } else {
                return Ok(());
            }
        }
        Err("timers fire without end".to_owned())
    }

    fn write_markers(&mut self, at: Moment, transactional_id: KStr, marker: EndMarker, partitions: &TopicPartitions) {
        let mut marking = Marking {
            transactional_id,
            producer: marker.producer,
            waiting: BTreeMap::new(),
            failed: TopicPartitions::new(),
        };
        let all = partitions.iter().flat_map(|(topic, ids)| ids.iter().map(move |id| (topic.clone(), *id)));
        for (topic, partition) in all {
            self.next_marker_call += 1;
            let call = self.next_marker_call;
            if topic.as_str() == OFFSETS {
                self.ask_groups(at, Command::TxnMarker(marker), Some(call));
                marking.waiting.insert((topic, partition), call);
                continue;
            }
            let kind = if marker.commit { ControlType::Commit } else { ControlType::Abort };
            let protocol = if marker.raises_epoch { TxnProtocol::V2 } else { TxnProtocol::V1 };
            let (log, producer) = (self.log(partition), marker.producer);
            match log.append_marker(kind, producer.id, producer.epoch, 0, protocol, at.wall_ms) {
                Ok(info) => {
                    let answers = Arc::clone(&self.answers);
                    let done = move |result| {
                        answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, Answer::Appended(result)));
                    };
                    log.when_committed(info.next_offset(), Box::new(done));
                    marking.waiting.insert((topic, partition), call);
                }
                // It has had a later one.
                Err(AppendError::InvalidProducerEpoch { .. } | AppendError::CoordinatorFenced { .. }) => {}
                Err(_) => _ = marking.failed.entry(topic).or_default().insert(partition),
            }
        }
        self.markings.push(marking);
    }

    /// Takes the broker's own answers out, and tells the coordinator of those that are complete.
    fn finish_markers(&mut self, at: Moment) {
        let own: Vec<_> = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.extract_if(.., |(call, _)| *call > OWN_CALLS).collect()
        };
        for (call, answer) in own {
            let written = matches!(answer, Answer::Appended(Ok(())) | Answer::Group(Ok(_)));
            for marking in &mut self.markings {
                let place =
                    marking.waiting.iter().find(|(_, waiting)| **waiting == call).map(|(place, _)| place.clone());
                let Some(place) = place else { continue };
                marking.waiting.remove(&place);
                if !written {
                    marking.failed.entry(place.0).or_default().insert(place.1);
                }
            }
        }
        let done: Vec<_> = self.markings.extract_if(.., |marking| marking.waiting.is_empty()).collect();
        for Marking { transactional_id, producer, failed, .. } in done {
            self.ask_txn(at, txn::Command::MarkersWritten { transactional_id, producer, failed }, None);
        }
    }
}

/// Up to where readers of a group wait. Of a group whose latest record was compacted away it is lower afterwards, which is all
/// the same: what was loaded is durable.
fn is_wait_mark(line: &str) -> bool {
    let number = |value: &str| value.trim_end_matches(',').parse::<u64>().is_ok();
    line.trim()
        .split_once(": ")
        .is_some_and(|(name, value)| (name.starts_with('"') || matches!(name, "last_removal" | "end")) && number(value))
}

fn make(dir: &LogDir, topic: &'static str, partition: i32) -> Result<Arc<PartitionLog>, String> {
    let compact = topic != TOPIC || partition == COMPACTED;
    let config = LogConfig {
        segment_bytes: 1500,
        index_interval_bytes: 200,
        compact,
        delete: !compact,
        retention_ms: -1,
        min_cleanable_dirty_ratio: 0.1,
        delete_retention_ms: 5_000,
        file_delete_delay_ms: 1_000,
        ..LogConfig::default()
    };
    let tp = TopicPartition::new(topic, partition);
    let log = dir.create_partition(&tp, TopicId([1; 16]), config.clone()).map_err(|error| error.to_string())?;
    log.set_config(config);
    Ok(log)
}
