//! A run: what happens next is chosen by the seed, and what has to hold is checked.

use coordinator::{Command, Moment, Reply};
use log::{AppendError, AppendParams, Faults, Isolation, MemFs};
use wire::KStr;
use wire::batch::BatchBuilder;
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};

use super::broker::{Answer, Broker, COMPACTED, CallId, PARTITIONS, TOPIC};
use super::checks;
use super::client::{Client, Surroundings, caller};
use super::faulty::FaultyDisk;
use super::model::{Model, PartitionModel, Written};
use super::{Report, START_MS};
use crate::rng::Rng;

const CLIENTS: usize = 3;
/// Steps between two times at which everything has to come to rest.
const ROUND: u64 = 150;
/// Rounds in which everything has to have come to rest once nothing goes wrong any more.
const PATIENCE: usize = 2_000;
/// The producer without transactions.
const PLAIN_PRODUCER: i64 = 1_000_000;
const PLAIN_GROUP: &str = "plain";

pub struct World {
    rng: Rng,
    broker: Broker,
    model: Model,
    clients: Vec<Client>,
    now: Moment,
    next_call: CallId,
    fresh: i64,
    plain: Plain,
    /// Steps until the full disk has space again.
    full_for: Option<u64>,
    /// The latest start went well at the first attempt.
    opened_at_once: bool,
    pub report: Report,
}

/// A producer of single records without transactions, and a group that commits offsets.
#[derive(Default)]
struct Plain {
    partition: usize,
    sequences: [i32; PARTITIONS as usize],
    /// What is being sent: value, call, end offset.
    sending: Option<(String, Option<CallId>, i64)>,
    commit: Option<CallId>,
    counter: u64,
}

impl World {
    pub fn new(seed: u64) -> Result<World, String> {
        let now = Moment { mono_ms: 1_000, wall_ms: START_MS };
        let mut rng = Rng::new(seed);
        let disk = FaultyDisk::new(MemFs::new(), rng.next_u64());
        let mut broker = Broker::open(disk, now)?;
        let clients: Vec<_> = (0..CLIENTS).map(Client::new).collect();
        // So that no group owes its existence to an aborted transaction: compaction would take it away.
        for client in &clients {
            broker.ask_groups(now, commit(client.group(), 1, 0), None);
        }
        broker.progress(now, &mut 0)?;
        let mut model = Model::default();
        model.partitions.resize_with(PARTITIONS as usize, PartitionModel::default);
        model.plain_offset = (-1, -1);
        Ok(World {
            rng,
            broker,
            model,
            clients,
            now,
            next_call: 0,
            fresh: 0,
            plain: Plain::default(),
            full_for: None,
            opened_at_once: true,
            report: Report::default(),
        })
    }

    pub fn run(&mut self, steps: u64) -> Result<(), String> {
        for step in 1..=steps {
            self.report.steps = step;
            self.step()?;
            if step % ROUND == 0 || step == steps {
                self.come_to_rest()?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        if self.broker.disk.remains().is_some() {
            return self.machine_died();
        }
        self.space_comes_back();
        // Somebody looks at a broker that reports errors, sooner or later.
        if self.broker.is_broken() && self.rng.chance(100) {
            return self.restart_process();
        }
        match self.rng.below(1000) {
            0..420 => {
                let client = self.rng.index(CLIENTS);
                self.client_step(client, false)
            }
            420..560 => self.plain_step(false),
            560..800 => self.progress(),
            800..900 => self.pass_time(),
            900..930 => {
                self.broker.dir.tick(self.now.wall_ms);
                Ok(())
            }
            930..945 => {
                self.broker.dir.apply_retention(self.now.wall_ms);
                Ok(())
            }
            945..960 => {
                self.report.compactions += self.broker.dir.compact(self.now.wall_ms).len() as u64;
                Ok(())
            }
            960..975 => self.look(),
            975..978 => self.close_and_open(),
            978..982 => self.restart_process(),
            _ => self.fault(),
        }
    }

    fn pass_time(&mut self) -> Result<(), String> {
        // Now and then, long enough for open transactions to be over time.
        let ms = if self.rng.chance(10) { 90_000 } else { self.rng.between(1, 300) };
        self.advance(ms);
        Ok(())
    }

    fn advance(&mut self, ms: u64) {
        self.now.mono_ms += ms;
        self.now.wall_ms += ms as i64;
        self.broker.disk.mem().set_now(self.now.wall_ms);
    }

    fn fault(&mut self) -> Result<(), String> {
        let disk = &self.broker.disk;
        match self.rng.below(6) {
            0 | 1 => disk.crash_after(self.rng.below(40)),
            2 => {
                let per_mille = if self.rng.chance(500) { 5 } else { 0 };
                disk.misread(per_mille);
            }
            3 => disk.mem().set_faults(Faults { fail_writes: true, ..Faults::default() }),
            4 => disk.mem().set_faults(Faults { fail_syncs: true, ..Faults::default() }),
            _ => {
                let used = disk.mem().used();
                let capacity = Some(used + self.rng.below(2_000));
                disk.mem().set_faults(Faults { capacity, ..Faults::default() });
                self.full_for = Some(self.rng.between(5, 60));
                self.report.full_disks += 1;
            }
        }
        Ok(())
    }

    fn space_comes_back(&mut self) {
        match &mut self.full_for {
            Some(0) => {
                self.full_for = None;
                self.broker.disk.mem().set_faults(Faults::default());
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    fn progress(&mut self) -> Result<(), String> {
        self.broker.progress(self.now, &mut self.fresh)?;
        self.deliver()
    }

    fn deliver(&mut self) -> Result<(), String> {
        loop {
            let answers = self.broker.take_answers();
            if answers.is_empty() {
                return Ok(());
            }
            for (call, answer) in answers {
                self.answered(call, &answer)?;
            }
        }
    }

    fn answered(&mut self, call: CallId, answer: &Answer) -> Result<(), String> {
        for at in 0..self.clients.len() {
            if self.with_client(at, |client, s| client.answered(s, call, answer))? {
                return Ok(());
            }
        }
        match (&self.plain.sending, answer) {
            (Some((value, Some(mine), end)), Answer::Appended(result)) if *mine == call => {
                let (value, end) = (value.clone(), *end);
                if result.is_err() {
                    self.plain.sending = Some((value, None, 0));
                    return Ok(());
                }
                let partition = &mut self.model.partitions[self.plain.partition];
                partition.acknowledged.push(value);
                partition.acknowledged_end = partition.acknowledged_end.max(end);
                self.plain.sequences[self.plain.partition] += 1;
                self.plain.sending = None;
            }
            (_, Answer::Group(result)) if self.plain.commit == Some(call) => {
                self.plain.commit = None;
                if let Ok(Reply::OffsetCommit(response)) = result {
                    let code = response.topics[0].partitions[0].error_code;
                    if code == 0 {
                        self.model.plain_offset.0 = self.model.plain_offset.1;
                    }
                }
            }
            // Of a call that was given up.
            _ => {}
        }
        Ok(())
    }

    fn with_client<R>(&mut self, at: usize, f: impl FnOnce(&mut Client, &mut Surroundings<'_>) -> R) -> R {
        let mut s = Surroundings {
            at: self.now,
            broker: &mut self.broker,
            model: &mut self.model,
            rng: &mut self.rng,
            next_call: &mut self.next_call,
        };
        f(&mut self.clients[at], &mut s)
    }

    fn client_step(&mut self, at: usize, finish: bool) -> Result<(), String> {
        self.with_client(at, |client, s| client.step(s, finish))?;
        self.deliver()
    }

    /// One record without a transaction, repeated until it is acknowledged; or an offset.
    fn plain_step(&mut self, finish: bool) -> Result<(), String> {
        if self.plain.commit.is_none() && !finish && self.rng.chance(300) {
            return self.commit_plainly();
        }
        match &self.plain.sending {
            Some((_, Some(_), _)) => return Ok(()),
            None if finish => return Ok(()),
            _ => {}
        }
        let (value, _, _) = self.plain.sending.take().unwrap_or_else(|| {
            self.plain.partition = self.rng.index(PARTITIONS as usize);
            self.plain.counter += 1;
            (format!("p.{}", self.plain.counter), None, 0)
        });
        self.next_call += 1;
        let (call, partition) = (self.next_call, self.plain.partition);
        let sequence = self.plain.sequences[partition];
        let key = format!("k{}", sequence % 6);
        let mut builder = BatchBuilder::new().producer(PLAIN_PRODUCER, 0, sequence);
        builder.append(START_MS, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
        let bytes = builder.build().map_err(|error| error.to_string())?;
        let params = AppendParams::client(self.now.wall_ms);
        match self.broker.append(partition as i32, &params, &bytes, call) {
            Ok(info) => {
                let written = Written { offset: info.first_offset, key, value: value.clone(), transaction: None };
                let model = &mut self.model.partitions[partition];
                match model.written.binary_search_by_key(&written.offset, |written| written.offset) {
                    Ok(at) if info.duplicate && model.written[at] == written => {}
                    Err(_) if !info.duplicate => model.written.push(written),
                    _ => return Err(format!("partition {partition}: {written:?} as {info:?}")),
                }
                self.plain.sending = Some((value, Some(call), info.next_offset()));
            }
            Err(AppendError::Storage(_)) => self.plain.sending = Some((value, None, 0)),
            Err(error) => return Err(format!("partition {partition}, without a transaction: {error}")),
        }
        self.deliver()
    }

    fn commit_plainly(&mut self) -> Result<(), String> {
        self.model.plain_offset.1 += 1;
        let command = commit(KStr::from_static(PLAIN_GROUP), 0, self.model.plain_offset.1);
        self.next_call += 1;
        self.plain.commit = Some(self.next_call);
        self.broker.ask_groups(self.now, command, self.plain.commit);
        self.deliver()
    }

    /// What readers see at any time (whole transactions only).
    fn look(&mut self) -> Result<(), String> {
        let max_bytes = self.rng.between(1, 3_000) as usize;
        for partition in 0..PARTITIONS {
            // A read may fail while the disk lies; it must not lie itself.
            if let Ok(seen) = super::reader::read_all(&self.broker.log(partition), Isolation::LastStable, max_bytes) {
                checks::committed_only(&self.model, partition, &seen)?;
            }
        }
        Ok(())
    }

    fn machine_died(&mut self) -> Result<(), String> {
        self.report.crashes += 1;
        let remains = self.broker.disk.remains().unwrap_or_default();
        self.restart(remains, false)
    }

    fn restart_process(&mut self) -> Result<(), String> {
        self.report.kills += 1;
        let remains = self.broker.disk.mem().restart();
        // Of a partition that failed, what was not synced is cut off.
        let whole = !self.broker.is_broken();
        self.restart(remains, whole)
    }

    fn close_and_open(&mut self) -> Result<(), String> {
        if self.broker.is_broken() || self.full_for.is_some() {
            return Ok(());
        }
        self.progress()?;
        let before = self.broker.hard_state();
        let closed = self.broker.dir.close();
        // The clients hear of their last records, or not.
        self.deliver()?;
        if self.broker.disk.remains().is_some() || closed.is_err() || self.broker.is_broken() {
            return self.restart_process_or_machine();
        }
        self.report.closes += 1;
        self.restart(self.broker.disk.mem().restart(), true)?;
        if self.broker.disk.remains().is_some() {
            return Ok(());
        }
        if self.opened_at_once && !self.broker.dir.was_clean() {
            return Err("a clean end is not remembered".to_owned());
        }
        checks::same_state(&before, &self.broker.hard_state())
    }

    fn restart_process_or_machine(&mut self) -> Result<(), String> {
        if self.broker.disk.remains().is_some() { self.machine_died() } else { self.restart_process() }
    }

    /// `whole`: nothing that was written may be missing.
    fn restart(&mut self, remains: MemFs, mut whole: bool) -> Result<(), String> {
        self.report.misreads += self.broker.disk.misreads();
        self.full_for = None;
        for at in 0..self.clients.len() {
            self.with_client(at, |client, s| client.lost(s));
        }
        _ = self.broker.take_answers();
        if let Some((value, _, _)) = self.plain.sending.take() {
            self.plain.sending = Some((value, None, 0));
        }
        self.plain.commit = None;
        self.advance(10);
        remains.set_now(self.now.wall_ms);
        let mut disk = FaultyDisk::new(remains, self.rng.next_u64());
        // It may die again while it comes up, and the disk may lie then, too.
        if self.rng.chance(200) {
            disk.crash_after(self.rng.below(30));
        }
        disk.misread(if self.rng.chance(200) { 20 } else { 0 });
        for attempt in 0..3 {
            self.opened_at_once = attempt == 0;
            match Broker::open(disk.clone(), self.now) {
                Ok(broker) => {
                    self.broker = broker;
                    break;
                }
                Err(error) => match disk.remains() {
                    Some(remains) => {
                        self.report.crashes += 1;
                        whole = false;
                        disk = FaultyDisk::new(remains, self.rng.next_u64());
                    }
                    None if disk.misreads() > 0 => disk.misread(0),
                    None => return Err(format!("does not start: {error}")),
                },
            }
        }
        self.broker.disk.misread(0);
        if self.broker.disk.remains().is_some() {
            return Ok(());
        }
        self.after_restart(whole)
    }

    fn after_restart(&mut self, whole: bool) -> Result<(), String> {
        for partition in 0..PARTITIONS {
            let log = self.broker.log(partition);
            let model = &mut self.model.partitions[partition as usize];
            match checks::recovered(&log, model, partition == COMPACTED, whole) {
                // It died while it was looked at.
                Err(_) if self.broker.disk.remains().is_some() => return Ok(()),
                checked => checked?,
            }
        }
        Ok(())
    }

    /// Nothing goes wrong any more: everything that was begun comes to its end, and then has to be as it was promised.
    fn come_to_rest(&mut self) -> Result<(), String> {
        if self.broker.disk.remains().is_some() {
            self.machine_died()?;
        }
        self.broker.disk.misread(0);
        for _ in 0..PATIENCE {
            if self.broker.disk.remains().is_some() {
                self.machine_died()?;
            }
            self.full_for = None;
            self.broker.disk.mem().set_faults(Faults::default());
            if self.broker.is_broken() {
                self.restart_process()?;
                self.broker.disk.misread(0);
            }
            for at in 0..self.clients.len() {
                self.client_step(at, true)?;
            }
            self.plain_step(true)?;
            self.progress()?;
            self.advance(20);
            let resting = self.clients.iter().all(Client::rests) && self.plain.sending.is_none();
            if resting && self.plain.commit.is_none() && self.broker.is_idle() && !self.broker.is_broken() {
                return self.at_rest();
            }
        }
        let clients: Vec<_> = self.clients.iter().map(Client::describe).collect();
        Err(format!("does not come to rest: {clients:?}, sending {:?}", self.plain.sending))
    }

    fn at_rest(&mut self) -> Result<(), String> {
        self.report.transactions = self.model.transactions.len() as u64;
        for partition in 0..PARTITIONS {
            checks::at_rest(&self.broker.log(partition), &self.model, partition, partition == COMPACTED)?;
        }
        for at in 0..self.clients.len() {
            let (group, expected) = (self.clients[at].group(), self.model.offset_of(at));
            let found = self.fetch_offset(group)?;
            if found != expected {
                return Err(format!("client {at} has offset {found}, its last committed one is {expected}"));
            }
        }
        let (acknowledged, sent) = self.model.plain_offset;
        let found = self.fetch_offset(KStr::from_static(PLAIN_GROUP))?;
        if !(acknowledged..=sent).contains(&found) {
            return Err(format!("offset {found}, acknowledged was {acknowledged} and sent {sent}"));
        }
        Ok(())
    }

    fn fetch_offset(&mut self, group_id: KStr) -> Result<i64, String> {
        let topic = OffsetFetchRequestTopics {
            name: KStr::from_static(TOPIC),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        };
        let group = OffsetFetchRequestGroup {
            group_id,
            member_epoch: -1,
            topics: Some(vec![topic]),
            ..OffsetFetchRequestGroup::default()
        };
        self.next_call += 1;
        let call = self.next_call;
        let command = Command::OffsetFetch { caller: caller(9), group: Box::new(group), require_stable: true };
        self.broker.ask_groups(self.now, command, Some(call));
        self.broker.progress(self.now, &mut self.fresh)?;
        for (id, answer) in self.broker.take_answers() {
            if let Answer::Group(Ok(Reply::OffsetFetch(group))) = answer
                && id == call
            {
                let partition = &group.topics[0].partitions[0];
                return match partition.error_code {
                    0 => Ok(partition.committed_offset),
                    code => Err(format!("an offset cannot be read: {code}")),
                };
            }
        }
        Err("no answer to a fetch of offsets".to_owned())
    }
}

/// Of one partition, without a member.
fn commit(group_id: KStr, partition_index: i32, committed_offset: i64) -> Command {
    let partition =
        OffsetCommitRequestPartition { partition_index, committed_offset, ..OffsetCommitRequestPartition::default() };
    let topic = OffsetCommitRequestTopic {
        name: KStr::from_static(TOPIC),
        partitions: vec![partition],
        ..OffsetCommitRequestTopic::default()
    };
    let request = OffsetCommitRequest {
        group_id,
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..OffsetCommitRequest::default()
    };
    Command::OffsetCommit(caller(9), Box::new(request))
}
