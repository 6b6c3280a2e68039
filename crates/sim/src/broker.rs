//! The broker of a run: the real coordinator on a simulated log, and what a server does around it.
//!
//! It calls the cell, reads what was written into the checkers' mirrors, and hands on answers and effects. When what
//! happens is for the world to say.

use std::sync::{Arc, Mutex, PoisonError};

use coordinator::config::{BrokerConfig, GroupConfigs};
use coordinator::runtime::Unavailable;
use coordinator::{
    Caller, Cell, Command, Effect, Env, InternalTopic, Moment, Reply, SeededIds, Shard, StateMachine, TopicImage,
    TopicMetadata,
};
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::{KStr, Uuid};

use crate::app;
use crate::checkers::fencing::Due;
use crate::checkers::mirror::{Mirrors, Names};
use crate::event::{FlightNo, MemberNo};
use crate::log::{Fault, SimLog};

/// Version of OffsetCommit with epochs, still with topic names.
const COMMIT_VERSION: i16 = 9;
/// Timers that may fire at one moment; more means that one re-arms itself without end.
const MAX_FIRINGS: usize = 10_000;

/// What an answer belongs to.
#[derive(Clone, Debug)]
pub enum Call {
    /// Of a stream thread. `due`: what it has to be answered with.
    Heartbeat { member: MemberNo, flight: FlightNo, at_ms: u64, due: Due, member_id: KStr, epoch: i32 },
    /// Of consumers of both protocols. `due`: what it has to be answered with.
    Request {
        member: MemberNo,
        flight: FlightNo,
        at_ms: u64,
        due: Due,
        /// As whom it was sent.
        member_id: KStr,
        /// Generation or epoch that the request showed.
        generation: i32,
    },
    /// `due`: whether it has to be accepted, if that is known.
    Commit { group_id: KStr, member_id: KStr, due: Option<bool>, offsets: Vec<(KStr, i32, i64)> },
    /// Of an operator.
    Aside,
}

pub type Answered = (Call, Result<Reply, Unavailable>);

/// What came of a step.
#[derive(Debug, Default)]
pub struct Output {
    pub answers: Vec<Answered>,
    pub effects: Vec<Effect>,
}

pub struct Broker {
    cell: Cell<Shard, SimLog>,
    topics: Arc<TopicImage>,
    config: Arc<GroupConfigs>,
    ids: SeededIds,
    topic_ids: u128,
    names: Names,
    answers: Arc<Mutex<Vec<Answered>>>,
    /// What was written.
    pub mirror: Mirrors,
    /// What of it is durable.
    pub durable: Mirrors,
}

impl Broker {
    /// It has to be loaded before it serves.
    pub fn new(broker: BrokerConfig) -> Self {
        Broker {
            cell: Cell::new(Shard::new(), SimLog::default()),
            topics: Arc::default(),
            config: Arc::new(GroupConfigs { broker, ..GroupConfigs::default() }),
            ids: SeededIds::default(),
            topic_ids: 0,
            names: Names::new(),
            answers: Arc::default(),
            mirror: Mirrors::default(),
            durable: Mirrors::default(),
        }
    }

    pub fn is_up(&self) -> bool {
        self.cell.is_active()
    }

    pub fn shard(&self) -> &Shard {
        self.cell.machine()
    }

    pub fn log(&self) -> &SimLog {
        self.cell.log()
    }

    pub fn topics(&self) -> &Arc<TopicImage> {
        &self.topics
    }

    /// Of a topic that is or was.
    pub fn topic_name(&self, id: &Uuid) -> KStr {
        self.names.get(id).cloned().unwrap_or_default()
    }

    pub fn partitions(&self, topic: &str) -> i32 {
        self.topics.get(topic).map_or(0, |metadata| metadata.partitions)
    }

    pub fn next_wakeup(&self) -> Option<u64> {
        self.cell.next_wakeup()
    }

    /// # Errors
    /// A law that what was written breaks.
    pub fn call(&mut self, at: Moment, command: Command, call: Option<Call>) -> Result<Output, String> {
        let answers = Arc::clone(&self.answers);
        let late = call.clone();
        let members_total = self.mirror.members_total();
        let mut env = Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total };
        let called = self.cell.call(at, &mut env, command, move |answer| {
            if let Some(call) = late {
                answers.lock().unwrap_or_else(PoisonError::into_inner).push((call, answer));
            }
        });
        called.released.deliver();
        let mut output = Output { answers: self.take_answers(), effects: called.effects };
        if let (Some(call), Some(reply)) = (call, called.reply) {
            output.answers.insert(0, (call, reply));
        }
        // What a failed append left behind is read when the coordinator is back.
        if self.is_up() {
            let assigned = self.mirror.group(&app::group_id()).assignment_epoch;
            self.mirror.read(self.cell.log().entries(), self.cell.log().end(), &self.names)?;
            self.check_warmups(assigned)?;
        }
        Ok(output)
    }

    /// Decision 8: an assignment keeps to the limit of its time.
    fn check_warmups(&self, epoch_before: i32) -> Result<(), String> {
        let group = self.mirror.group(&app::group_id());
        let limit = self.config.broker.streams_num_warmup_replicas;
        match group.assignment_epoch != epoch_before && group.warmups() > limit.max(0) as usize {
            true => Err(format!("{} warm-ups in assignment {}, of {limit}", group.warmups(), group.assignment_epoch)),
            false => Ok(()),
        }
    }

    pub fn offsets_retention_ms(&self) -> i64 {
        self.config.broker.offsets_retention_ms
    }

    /// From now on nothing expires.
    pub fn keep_offsets(&mut self) {
        Arc::make_mut(&mut self.config).broker.offsets_retention_ms = i64::MAX / 2;
    }

    /// Lets the timers fire that are due.
    ///
    /// # Errors
    /// A law that what was written breaks, or timers without end.
    pub fn wake(&mut self, at: Moment) -> Result<Output, String> {
        let mut output = Output::default();
        for _ in 0..MAX_FIRINGS {
            if self.next_wakeup().is_none_or(|due_ms| due_ms > at.mono_ms) {
                return Ok(output);
            }
            let each = self.call(at, Shard::wakeup(), None)?;
            output.answers.extend(each.answers);
            output.effects.extend(each.effects);
        }
        Err(format!("timers fire without end: {:?}", self.shard().timers()))
    }

    /// What was written becomes durable.
    ///
    /// # Errors
    /// A law that it breaks.
    pub fn flush(&mut self) -> Result<Output, String> {
        self.cell.log_mut().make_durable();
        self.cell.durable().deliver();
        self.durable.read(self.cell.log().entries(), self.cell.log().end(), &self.names)?;
        self.durable.take_losses();
        Ok(Output { answers: self.take_answers(), effects: Vec::new() })
    }

    pub fn fail_next_append(&mut self, fault: Fault) {
        self.cell.log_mut().fail_next_append(fault);
    }

    /// The coordinator goes away; a crash takes with it what is not durable.
    ///
    /// # Errors
    /// A law that what is left breaks.
    pub fn stop(&mut self, crash: bool) -> Result<Output, String> {
        self.cell.poison().deliver();
        if crash {
            self.cell.log_mut().lose_unsynced();
        }
        Ok(Output { answers: self.take_answers(), effects: Vec::new() })
    }

    /// It comes back with what is in its log.
    ///
    /// # Errors
    /// If the log cannot be read, or breaks a law.
    pub fn load(&mut self, at: Moment) -> Result<(), String> {
        let members_total = self.mirror.members_total();
        let mut env = Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total };
        self.cell.load(Shard::new(), at, &mut env).map_err(|error| error.to_string())?;
        self.mirror = Mirrors::default();
        self.mirror.read(self.cell.log().entries(), self.cell.log().end(), &self.names)?;
        self.mirror.take_losses();
        self.durable = self.mirror.clone();
        Ok(())
    }

    fn take_answers(&mut self) -> Vec<Answered> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes topics, or gives them more partitions, and tells the shard.
    ///
    /// # Errors
    /// As `call`.
    pub fn set_topics(&mut self, at: Moment, topics: &[(KStr, i32)]) -> Result<Output, String> {
        let image = Arc::make_mut(&mut self.topics);
        for (name, partitions) in topics {
            let id = image.get(name).map_or_else(
                || {
                    self.topic_ids += 1;
                    Uuid(self.topic_ids.to_be_bytes())
                },
                |metadata| metadata.id,
            );
            self.names.insert(id, name.clone());
            image.insert(name.clone(), TopicMetadata { id, partitions: *partitions, rack: None });
        }
        let changed = topics.iter().map(|(name, _)| name.clone()).collect();
        self.call(at, Command::TopicsChanged { changed, deleted: Vec::new() }, None)
    }

    /// # Errors
    /// As `call`.
    pub fn delete_topic(&mut self, at: Moment, name: &str) -> Result<Output, String> {
        let Some(old) = Arc::make_mut(&mut self.topics).remove(name) else { return Ok(Output::default()) };
        let deleted = vec![(KStr::copy(name), old.id)];
        self.call(at, Command::TopicsChanged { changed: Vec::new(), deleted }, None)
    }

    /// Makes internal topics unless `failure`, and tells the shard.
    ///
    /// # Errors
    /// As `call`.
    pub fn create_topics(
        &mut self,
        at: Moment,
        group_id: KStr,
        topics: &[InternalTopic],
        failure: bool,
    ) -> Result<Output, String> {
        let mut output = Output::default();
        let mut failures = Vec::new();
        if failure {
            failures.extend(topics.iter().map(|topic| (topic.name.clone(), "injected".to_owned())));
        } else {
            let made: Vec<_> = topics.iter().map(|topic| (topic.name.clone(), topic.partitions)).collect();
            output = self.set_topics(at, &made)?;
        }
        let done = Command::InternalTopicsCreated { group_id, failures, unauthorized: Vec::new() };
        let told = self.call(at, done, None)?;
        output.answers.extend(told.answers);
        output.effects.extend(told.effects);
        Ok(output)
    }

    /// Changes the configuration of the broker, and so of the group.
    ///
    /// # Errors
    /// As `call`.
    pub fn configure(
        &mut self,
        at: Moment,
        group_id: KStr,
        change: impl FnOnce(&mut BrokerConfig),
    ) -> Result<Output, String> {
        change(&mut Arc::make_mut(&mut self.config).broker);
        self.call(at, Command::GroupConfigChanged { group_id }, None)
    }

    /// What an operator asks, of a coordinator that has nothing to wait for.
    ///
    /// # Errors
    /// If there is no answer at once.
    pub fn ask(&mut self, at: Moment, command: Command) -> Result<Reply, String> {
        let output = self.call(at, command, Some(Call::Aside))?;
        match output.answers.into_iter().next() {
            Some((_, Ok(reply))) => Ok(reply),
            other => Err(format!("an operator was answered with {other:?}")),
        }
    }
}

pub fn caller(api_version: i16) -> Caller {
    Caller { client_id: KStr::from_static("sim"), client_host: KStr::from_static("/127.0.0.1"), api_version }
}

/// The commit of some offsets.
pub fn commit(
    group_id: KStr,
    member_id: KStr,
    instance_id: Option<KStr>,
    epoch: i32,
    offsets: &[(KStr, i32, i64)],
) -> Command {
    let topics = offsets.iter().map(|(topic, partition, offset)| {
        let partition = OffsetCommitRequestPartition {
            partition_index: *partition,
            committed_offset: *offset,
            ..OffsetCommitRequestPartition::default()
        };
        OffsetCommitRequestTopic {
            name: topic.clone(),
            partitions: vec![partition],
            ..OffsetCommitRequestTopic::default()
        }
    });
    let request = OffsetCommitRequest {
        group_id,
        generation_id_or_member_epoch: epoch,
        member_id,
        group_instance_id: instance_id,
        topics: topics.collect(),
        ..OffsetCommitRequest::default()
    };
    Command::OffsetCommit(caller(COMMIT_VERSION), Box::new(request))
}
