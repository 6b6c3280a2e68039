//! A transactional producer, as clients behave: it repeats what got no answer, aborts what it gives up, and takes
//! its id anew when it is fenced.

use bytes::Bytes;
use coordinator::Producer;
use coordinator::txn::{Command as TxnCommand, PROTOCOL_2, Reply as TxnReply, TopicPartitions};
use coordinator::{Caller, Command, Moment, Reply};
use log::{AppendError, AppendParams, VerificationGuard};
use wire::batch::BatchBuilder;
use wire::messages::end_txn_request::EndTxnRequest;
use wire::messages::init_producer_id_request::InitProducerIdRequest;
use wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use wire::{ErrorCode, KStr};

use super::broker::{Answer, Broker, CallId, OFFSETS, PARTITIONS, TOPIC};
use super::model::{Fate, Model, Transaction, Written};
use crate::rng::Rng;

const TIMEOUT_MS: i32 = 60_000;
const END_TXN: i16 = 5;

/// A batch that has to be acknowledged or given up.
#[derive(Clone, Debug)]
struct Sending {
    partition: i32,
    bytes: Bytes,
    records: Vec<(String, String)>,
}

#[derive(Debug)]
enum Doing {
    Rest,
    Init,
    /// The partition becomes part of the transaction.
    Add(Sending, VerificationGuard),
    /// Appended up to this offset, not yet acknowledged.
    Produce(Sending, i64),
    AddOffsets,
    CommitOffsets(i64),
    End,
}

pub struct Client {
    pub number: usize,
    id: KStr,
    producer: Option<Producer>,
    sequences: [i32; PARTITIONS as usize],
    transaction: Option<usize>,
    /// The transaction is to be aborted.
    broken: bool,
    /// What has to be sent again.
    again: Option<Sending>,
    /// What was asked for and may have happened.
    ending: Option<bool>,
    doing: Doing,
    call: Option<CallId>,
    counter: u64,
}

/// What a client works with.
pub struct Surroundings<'a> {
    pub at: Moment,
    pub broker: &'a mut Broker,
    pub model: &'a mut Model,
    pub rng: &'a mut Rng,
    pub next_call: &'a mut CallId,
}

impl Surroundings<'_> {
    fn call(&mut self) -> CallId {
        *self.next_call += 1;
        *self.next_call
    }
}

impl Client {
    pub fn new(number: usize) -> Client {
        Client {
            number,
            id: KStr::from(format!("id-{number}")),
            producer: None,
            sequences: [0; PARTITIONS as usize],
            transaction: None,
            broken: false,
            again: None,
            ending: None,
            doing: Doing::Rest,
            call: None,
            counter: 0,
        }
    }

    pub fn group(&self) -> KStr {
        KStr::from(format!("group-{}", self.number))
    }

    pub fn rests(&self) -> bool {
        self.call.is_none() && self.transaction.is_none()
    }

    pub fn describe(&self) -> String {
        format!(
            "{}: {:?} {:?} transaction {:?} call {:?}",
            self.id, self.producer, self.doing, self.transaction, self.call
        )
    }

    /// The next thing to do, if nothing is under way. `finish`: no new transaction begins.
    pub fn step(&mut self, s: &mut Surroundings<'_>, finish: bool) -> Result<(), String> {
        if self.call.is_some() {
            return Ok(());
        }
        if let Some(commit) = self.ending {
            return self.end(s, commit);
        }
        let Some(producer) = self.producer else { return self.init(s) };
        if self.transaction.is_none() {
            if finish {
                return Ok(());
            }
            let transaction =
                Transaction { fate: Fate::Open, client: self.number, acknowledged: Default::default(), offset: None };
            s.model.transactions.push(transaction);
            self.transaction = Some(s.model.transactions.len() - 1);
            self.broken = false;
        }
        if let Some(sending) = self.again.take() {
            return self.send(s, producer, sending);
        }
        if self.broken {
            return self.end(s, false);
        }
        match s.rng.below(100) {
            _ if finish => self.end_somehow(s),
            0..60 => {
                let sending = self.batch(s, producer);
                self.send(s, producer, sending)
            }
            60..75 => self.add(s, producer, OFFSETS, 0, Doing::AddOffsets),
            _ => self.end_somehow(s),
        }
    }

    fn end_somehow(&mut self, s: &mut Surroundings<'_>) -> Result<(), String> {
        let transaction = &s.model.transactions[self.transaction.unwrap_or_default()];
        let empty = transaction.acknowledged.is_empty() && transaction.offset.is_none();
        let commit = !empty && s.rng.chance(700);
        self.end(s, commit)
    }

    fn init(&mut self, s: &mut Surroundings<'_>) -> Result<(), String> {
        // Whatever was open is aborted by this.
        if let Some(index) = self.transaction.take() {
            s.model.transactions[index].fate = Fate::Aborted;
        }
        self.again = None;
        self.doing = Doing::Init;
        let request = InitProducerIdRequest {
            transactional_id: Some(self.id.clone()),
            transaction_timeout_ms: TIMEOUT_MS,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let call = s.call();
        self.call = Some(call);
        s.broker.ask_txn(s.at, TxnCommand::InitProducerId { api_version: 5, request }, Some(call));
        Ok(())
    }

    fn batch(&mut self, s: &mut Surroundings<'_>, producer: Producer) -> Sending {
        let partition = s.rng.below(PARTITIONS as u64) as i32;
        let sequence = self.sequences[partition as usize];
        let mut builder = BatchBuilder::new().producer(producer.id, producer.epoch, sequence).transactional(true);
        let mut records = Vec::new();
        for _ in 0..s.rng.between(1, 3) {
            self.counter += 1;
            let key = format!("k{}", s.rng.below(6));
            let size = s.rng.below(200) as usize;
            let value = format!("{}.{}.{}", self.number, self.counter, "x".repeat(size));
            builder.append(s.at.wall_ms, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
            records.push((key, value));
        }
        // Small and of sound make.
        let bytes = builder.build().expect("a batch of three small records can be built");
        Sending { partition, bytes, records }
    }

    fn send(&mut self, s: &mut Surroundings<'_>, producer: Producer, sending: Sending) -> Result<(), String> {
        let log = s.broker.log(sending.partition);
        let sequence = self.sequences[sending.partition as usize];
        match log.begin_verification(producer.id, producer.epoch, sequence, true, s.at.wall_ms) {
            Ok(None) => self.append(s, sending, None),
            Ok(Some(guard)) => {
                let partition = sending.partition;
                self.add(s, producer, TOPIC, partition, Doing::Add(sending, guard))
            }
            Err(error) => self.append_failed(s, sending, &error),
        }
    }

    fn add(
        &mut self,
        s: &mut Surroundings<'_>,
        producer: Producer,
        topic: &'static str,
        partition: i32,
        doing: Doing,
    ) -> Result<(), String> {
        let mut partitions = TopicPartitions::new();
        partitions.entry(KStr::from_static(topic)).or_default().insert(partition);
        self.doing = doing;
        let call = s.call();
        self.call = Some(call);
        let transactional_id = self.id.clone();
        let command = TxnCommand::AddPartitions { transactional_id, producer, partitions, client_version: PROTOCOL_2 };
        s.broker.ask_txn(s.at, command, Some(call));
        Ok(())
    }

    fn append(
        &mut self,
        s: &mut Surroundings<'_>,
        sending: Sending,
        guard: Option<VerificationGuard>,
    ) -> Result<(), String> {
        let params = AppendParams { verification: guard, ..AppendParams::client(s.at.wall_ms) };
        let call = s.call();
        let partition = sending.partition;
        let info = match s.broker.append(partition, &params, &sending.bytes, call) {
            Ok(info) => info,
            Err(error) => return self.append_failed(s, sending, &error),
        };
        let model = &mut s.model.partitions[partition as usize];
        for (offset, (key, value)) in (info.first_offset..).zip(&sending.records) {
            let written = Written { offset, key: key.clone(), value: value.clone(), transaction: self.transaction };
            match model.written.binary_search_by_key(&offset, |written| written.offset) {
                Ok(at) if info.duplicate && model.written[at] == written => {}
                Err(_) if !info.duplicate && model.written.last().is_none_or(|last| last.offset < offset) => {
                    model.written.push(written);
                }
                _ => return Err(format!("partition {partition}: {written:?} as {info:?}")),
            }
        }
        self.call = Some(call);
        self.doing = Doing::Produce(sending, info.next_offset());
        Ok(())
    }

    fn append_failed(&mut self, s: &mut Surroundings<'_>, sending: Sending, error: &AppendError) -> Result<(), String> {
        self.doing = Doing::Rest;
        match error {
            AppendError::Storage(_) => self.unclear(s, sending),
            // Somebody ended the transaction meanwhile: a timeout.
            AppendError::InvalidProducerEpoch { .. } | AppendError::InvalidTxnState { .. } => self.broken = true,
            error => return Err(format!("{}: {error}", self.describe())),
        }
        Ok(())
    }

    /// It may be there or not: the same batch again, or none of it.
    fn unclear(&mut self, s: &mut Surroundings<'_>, sending: Sending) {
        match s.rng.chance(500) {
            true => self.again = Some(sending),
            false => self.broken = true,
        }
    }

    fn end(&mut self, s: &mut Surroundings<'_>, commit: bool) -> Result<(), String> {
        let (Some(index), Some(producer)) = (self.transaction, self.producer) else {
            return Err(format!("{}: nothing to end", self.describe()));
        };
        if commit {
            s.model.transactions[index].fate = Fate::Asked;
        }
        self.ending = Some(commit);
        self.doing = Doing::End;
        let request = EndTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed: commit,
        };
        let call = s.call();
        self.call = Some(call);
        s.broker.ask_txn(s.at, TxnCommand::EndTxn { api_version: END_TXN, request }, Some(call));
        Ok(())
    }

    /// The connection broke: no answer will come.
    pub fn lost(&mut self, s: &mut Surroundings<'_>) {
        if self.call.take().is_some() {
            self.given_up(s);
        }
    }

    /// What was under way may have happened or not.
    fn given_up(&mut self, s: &mut Surroundings<'_>) {
        match std::mem::replace(&mut self.doing, Doing::Rest) {
            Doing::Add(sending, _) | Doing::Produce(sending, _) => self.unclear(s, sending),
            Doing::CommitOffsets(_) | Doing::AddOffsets => self.broken = true,
            // Asked again: `ending`, or no producer.
            Doing::End | Doing::Init | Doing::Rest => {}
        }
    }

    /// True if the answer was for this client.
    pub fn answered(&mut self, s: &mut Surroundings<'_>, call: CallId, answer: &Answer) -> Result<bool, String> {
        if self.call != Some(call) {
            return Ok(false);
        }
        self.call = None;
        match answer {
            Answer::Appended(Ok(())) => self.acknowledged(s)?,
            Answer::Txn(Ok(TxnReply::InitProducerId(response))) => {
                match ErrorCode::from_code(response.error_code) {
                    ErrorCode::None => self.take_over(response.producer_id, response.producer_epoch),
                    ErrorCode::ConcurrentTransactions => {}
                    error => return Err(format!("{}: {error}", self.describe())),
                }
                self.doing = Doing::Rest;
            }
            Answer::Txn(Ok(TxnReply::Added(error))) => self.added(s, *error)?,
            Answer::Txn(Ok(TxnReply::EndTxn(response))) => {
                let error = ErrorCode::from_code(response.error_code);
                self.ended(s, error, response.producer_id, response.producer_epoch)?;
            }
            Answer::Group(Ok(Reply::TxnOffsetCommit(response))) => {
                let code = response.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code).max();
                let doing = std::mem::replace(&mut self.doing, Doing::Rest);
                match (code, doing, self.transaction) {
                    (Some(0), Doing::CommitOffsets(offset), Some(index)) => {
                        s.model.transactions[index].offset = Some(offset);
                    }
                    _ => self.broken = true,
                }
            }
            _ => self.given_up(s),
        }
        Ok(true)
    }

    fn take_over(&mut self, id: i64, epoch: i16) {
        self.producer = Some(Producer { id, epoch });
        self.sequences = Default::default();
    }

    fn acknowledged(&mut self, s: &mut Surroundings<'_>) -> Result<(), String> {
        let Doing::Produce(sending, end) = std::mem::replace(&mut self.doing, Doing::Rest) else {
            return Err(format!("{}: an answer to nothing", self.describe()));
        };
        let partition = &mut s.model.partitions[sending.partition as usize];
        partition.acknowledged_end = partition.acknowledged_end.max(end);
        let index = self.transaction.unwrap_or_default();
        let acknowledged = s.model.transactions[index].acknowledged.entry(sending.partition).or_default();
        acknowledged.extend(sending.records.iter().map(|(_, value)| value.clone()));
        self.sequences[sending.partition as usize] += sending.records.len() as i32;
        Ok(())
    }

    fn added(&mut self, s: &mut Surroundings<'_>, error: ErrorCode) -> Result<(), String> {
        let doing = std::mem::replace(&mut self.doing, Doing::Rest);
        match (error, doing) {
            (ErrorCode::None, Doing::Add(sending, guard)) => self.append(s, sending, Some(guard)),
            (ErrorCode::None, _) => self.commit_offsets(s),
            // The transaction before is still ending; once more.
            (ErrorCode::ConcurrentTransactions, Doing::Add(sending, _)) => {
                self.again = Some(sending);
                Ok(())
            }
            (ErrorCode::ConcurrentTransactions, _) => Ok(()),
            // Fenced by a timeout.
            (ErrorCode::ProducerFenced, _) => {
                self.broken = true;
                Ok(())
            }
            (error, _) => Err(format!("{}: {error}", self.describe())),
        }
    }

    fn commit_offsets(&mut self, s: &mut Surroundings<'_>) -> Result<(), String> {
        let Some(producer) = self.producer else { return Ok(()) };
        self.counter += 1;
        let offset = self.counter as i64;
        let partition = TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = TxnOffsetCommitRequestTopic {
            name: KStr::from_static(TOPIC),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = TxnOffsetCommitRequest {
            transactional_id: self.id.clone(),
            group_id: self.group(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        self.doing = Doing::CommitOffsets(offset);
        let call = s.call();
        self.call = Some(call);
        s.broker.ask_groups(s.at, Command::TxnOffsetCommit(caller(5), Box::new(request)), Some(call));
        Ok(())
    }

    fn ended(&mut self, s: &mut Surroundings<'_>, error: ErrorCode, id: i64, epoch: i16) -> Result<(), String> {
        let commit = self.ending.unwrap_or_default();
        self.doing = Doing::Rest;
        match error {
            ErrorCode::None => {
                self.take_over(id, epoch);
                self.close(s, if commit { Fate::Committed } else { Fate::Aborted });
            }
            ErrorCode::ConcurrentTransactions => {}
            // A timeout was first: the transaction is aborted, and the producer begins anew.
            ErrorCode::InvalidTxnState | ErrorCode::ProducerFenced | ErrorCode::InvalidProducerIdMapping => {
                self.producer = None;
                self.close(s, Fate::Aborted);
            }
            error => return Err(format!("{}: {error}", self.describe())),
        }
        Ok(())
    }

    fn close(&mut self, s: &mut Surroundings<'_>, fate: Fate) {
        self.ending = None;
        self.again = None;
        if let Some(index) = self.transaction.take() {
            s.model.transactions[index].fate = fate;
        }
    }
}

pub fn caller(api_version: i16) -> Caller {
    Caller { client_id: KStr::from_static("sim"), client_host: KStr::from_static("/127.0.0.1"), api_version }
}
