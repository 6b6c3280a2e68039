//! A member of a streams group: one stream thread, as Kafka Streams 4.4 behaves (S 11).
//!
//! It sends a request when one is due, reads answers, revokes and takes over tasks, and starts anew when it was fenced.
//! It knows nothing of the coordinator but what it was told.

use std::collections::BTreeSet;

use coordinator::assign::{TaskAssignment, TaskId, TaskSet, contains_task, tasks_of};
use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{KeyValue, StreamsGroupHeartbeatRequest, TaskIds, TaskOffset};
use wire::messages::streams_group_heartbeat_response::{self as answer, StreamsGroupHeartbeatResponse};

use crate::app;
use crate::event::FlightNo;
use crate::member::{Answer, End, Phase, Wish, revocation_ms};
use crate::process::Process;
use crate::rng::Rng;

/// Tasks that it is about to run instead of those it runs.
#[derive(Clone, Debug)]
struct Reconciling {
    target: TaskAssignment,
    /// Revoked tasks are committed and closed.
    done_ms: u64,
}

#[derive(Debug)]
pub struct StreamsMember {
    pub id: KStr,
    pub instance_id: Option<KStr>,
    pub process: usize,
    pub phase: Phase,
    pub epoch: i32,
    pub assigned: TaskAssignment,
    /// The last lists it was sent.
    wanted: TaskAssignment,
    reconciling: Option<Reconciling>,
    /// The last lists it sent since it joined.
    last_sent: Option<TaskAssignment>,
    send_lists: bool,
    heartbeat_due_ms: u64,
    in_flight: Option<(FlightNo, u64)>,
    interval_ms: u64,
    backoff_ms: u64,
    endpoint_epoch: i32,
    offset_interval_ms: u64,
    acceptable_lag: i64,
    reported_ms: u64,
    /// Copies that were reported as caught up.
    caught_up: BTreeSet<TaskId>,
    worked_ms: u64,
    rebalance_timeout_ms: i32,
    /// An answer was lost since it joined, and tasks with it perhaps: they are not told twice (S 6.7.3).
    unsure: bool,
}

impl StreamsMember {
    pub fn new(id: KStr, instance_id: Option<KStr>, process: usize, now_ms: u64, rebalance_timeout_ms: i32) -> Self {
        StreamsMember {
            id,
            instance_id,
            process,
            phase: Phase::Joining,
            epoch: 0,
            assigned: TaskAssignment::default(),
            wanted: TaskAssignment::default(),
            reconciling: None,
            last_sent: None,
            send_lists: false,
            heartbeat_due_ms: now_ms,
            in_flight: None,
            interval_ms: 0,
            backoff_ms: 0,
            endpoint_epoch: -1,
            offset_interval_ms: 60_000,
            acceptable_lag: 0,
            reported_ms: 0,
            caught_up: BTreeSet::new(),
            worked_ms: now_ms,
            rebalance_timeout_ms,
            unsure: false,
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone(_))
    }

    /// Active tasks that it runs, will run, or has not yet said that it gave up.
    pub fn holds(&self) -> BTreeSet<TaskId> {
        if self.phase != Phase::Member {
            return BTreeSet::new();
        }
        let next = self.reconciling.as_ref().map(|reconciling| &reconciling.target.active);
        let sent = self.last_sent.as_ref().map(|sent| &sent.active);
        let all = [&self.assigned.active, &self.wanted.active].into_iter().chain(next).chain(sent);
        all.flat_map(tasks_of).collect()
    }

    /// The tasks that it was given last, in any role.
    pub fn wanted(&self) -> Vec<TaskId> {
        let sets = [&self.wanted.active, &self.wanted.standby, &self.wanted.warmup];
        sets.into_iter().flat_map(tasks_of).collect()
    }

    /// Nothing is left to be done for it.
    pub fn is_at_rest(&self) -> bool {
        self.phase == Phase::Member && self.assigned == self.wanted && self.reconciling.is_none()
    }

    /// When to call `act` next.
    pub fn due_ms(&self) -> Option<u64> {
        if self.is_gone() {
            return None;
        }
        let revoked = self.reconciling.as_ref().map(|reconciling| reconciling.done_ms);
        let request = self.in_flight.map_or(self.heartbeat_due_ms, |(_, deadline_ms)| deadline_ms);
        Some(revoked.map_or(request, |revoked| revoked.min(request)))
    }

    /// Does what is due.
    pub fn act(&mut self, now_ms: u64, process: &mut Process) -> Vec<Wish> {
        let mut wishes = Vec::new();
        process.work(&self.assigned, now_ms, now_ms - self.worked_ms);
        self.worked_ms = now_ms;
        if let Some(reconciling) = self.reconciling.take_if(|reconciling| reconciling.done_ms <= now_ms) {
            let active = &reconciling.target.active;
            let closed: Vec<_> = tasks_of(&self.assigned.active).filter(|task| !contains_task(active, task)).collect();
            if !closed.is_empty() {
                wishes.push(Wish::Commit(closed, self.epoch));
            }
            self.assigned = reconciling.target;
            self.send_lists = true;
            self.heartbeat_due_ms = now_ms;
        }
        if self.in_flight.is_some_and(|(_, deadline_ms)| deadline_ms <= now_ms) {
            if self.phase == Phase::Leaving {
                self.phase = Phase::Gone(End::Left);
                return wishes;
            }
            self.in_flight = None;
            self.retry(now_ms);
        }
        if self.in_flight.is_none() && self.heartbeat_due_ms <= now_ms && !self.is_gone() {
            wishes.push(Wish::Heartbeat(Box::new(self.request(now_ms, process))));
        }
        wishes
    }

    /// The request of the latest wish is under way.
    pub fn sent(&mut self, flight: FlightNo, deadline_ms: u64) {
        self.in_flight = Some((flight, deadline_ms));
    }

    /// Starts to revoke and take over tasks if the lists differ from what it runs.
    pub fn reconcile(&mut self, now_ms: u64, rng: &mut Rng) {
        if self.phase != Phase::Member || self.reconciling.is_some() || self.wanted == self.assigned {
            return;
        }
        let revokes = tasks_of(&self.assigned.active).any(|task| !contains_task(&self.wanted.active, &task));
        let takes_ms = revocation_ms(rng, revokes, self.rebalance_timeout_ms);
        self.reconciling = Some(Reconciling { target: self.wanted.clone(), done_ms: now_ms + takes_ms });
    }

    /// The thread ends at once, without a word.
    pub fn kill(&mut self) {
        self.give_up_all();
        self.phase = Phase::Gone(End::Killed);
    }

    /// Closes all tasks and leaves with the next request.
    pub fn leave(&mut self, now_ms: u64) {
        if !self.is_gone() {
            self.give_up_all();
            self.phase = Phase::Leaving;
            self.heartbeat_due_ms = now_ms;
        }
    }

    fn give_up_all(&mut self) {
        self.assigned = TaskAssignment::default();
        self.wanted = TaskAssignment::default();
        self.reconciling = None;
        self.last_sent = None;
        self.caught_up.clear();
    }

    /// Joins again if an answer was lost.
    pub fn refresh(&mut self, now_ms: u64) -> bool {
        let unsure = self.unsure && !self.is_gone();
        if unsure {
            self.join_again(now_ms);
        }
        unsure
    }

    /// Joins again, as the same member.
    fn join_again(&mut self, now_ms: u64) {
        if self.phase == Phase::Member {
            self.give_up_all();
            self.in_flight = None;
            self.phase = Phase::Joining;
            self.epoch = 0;
            self.heartbeat_due_ms = now_ms;
        }
    }

    fn retry(&mut self, now_ms: u64) {
        self.unsure = true;
        self.send_lists = true;
        self.backoff_ms = (self.backoff_ms * 2).clamp(100, 1_000);
        self.heartbeat_due_ms = now_ms + self.backoff_ms;
    }

    /// Reads an answer; false if it is none to the request under way.
    ///
    /// # Errors
    /// What a client would fail on though it did nothing wrong.
    pub fn answered(&mut self, now_ms: u64, flight: FlightNo, answer: &Answer) -> Result<bool, String> {
        if self.is_gone() || self.in_flight.is_none_or(|(expected, _)| expected != flight) {
            return Ok(false);
        }
        self.in_flight = None;
        if self.phase == Phase::Leaving {
            self.leaving_answered(now_ms, answer);
            return Ok(true);
        }
        let response = match answer {
            Answer::Unavailable(_) => {
                self.retry(now_ms);
                return Ok(true);
            }
            Answer::Heartbeat(response) => response,
            Answer::Reply(_) => return Err(format!("{} was taken for a consumer", self.id)),
        };
        match response.error_code {
            0 => self.succeeded(now_ms, response)?,
            14..=16 => self.retry(now_ms),
            // UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH: everything is lost, and the same member joins again.
            25 | 110 => self.join_again(now_ms),
            // FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID: somebody else has the instance id.
            // STREAMS_TOPOLOGY_FENCED: the application was upgraded.
            // GROUP_ID_NOT_FOUND: everybody was gone, and so were the offsets; fatal to a client that runs (S 11).
            code @ (69 | 82 | 111 | 132) if matches!(code, 69 | 132) || self.instance_id.is_some() => {
                self.give_up_all();
                self.phase = Phase::Gone(End::Fatal(code));
            }
            code => return Err(format!("{} got error {code}: {:?}", self.id, response.error_message)),
        }
        Ok(true)
    }

    /// The goodbye was answered, or the request before it, which nobody waits for any more.
    fn leaving_answered(&mut self, now_ms: u64, _answer: &Answer) {
        if self.epoch < 0 {
            self.phase = Phase::Gone(End::Left);
        } else {
            self.heartbeat_due_ms = now_ms;
        }
    }

    fn succeeded(&mut self, now_ms: u64, response: &StreamsGroupHeartbeatResponse) -> Result<(), String> {
        let joined = self.phase == Phase::Joining;
        if response.member_epoch < self.epoch {
            return Err(format!("{} was at epoch {}, and is told {}", self.id, self.epoch, response.member_epoch));
        }
        if response.heartbeat_interval_ms <= 0 {
            return Err(format!("{} is to wait {} ms", self.id, response.heartbeat_interval_ms));
        }
        self.epoch = response.member_epoch;
        self.interval_ms = response.heartbeat_interval_ms as u64;
        self.backoff_ms = 0;
        self.endpoint_epoch = response.endpoint_information_epoch;
        self.offset_interval_ms = response.task_offset_interval_ms.max(0) as u64;
        self.acceptable_lag = response.acceptable_recovery_lag;
        self.heartbeat_due_ms = now_ms + self.interval_ms;
        match (&response.active_tasks, &response.standby_tasks, &response.warmup_tasks) {
            (Some(active), Some(standby), Some(warmup)) => {
                self.wanted = TaskAssignment { active: set(active), standby: set(standby), warmup: set(warmup) };
            }
            (None, None, None) if !joined => {}
            lists => return Err(format!("{} got task lists {lists:?}, joined: {joined}", self.id)),
        }
        if joined {
            self.unsure = false;
            self.phase = Phase::Member;
            self.send_lists = true;
        }
        Ok(())
    }

    fn request(&mut self, now_ms: u64, process: &Process) -> StreamsGroupHeartbeatRequest {
        let mut request = StreamsGroupHeartbeatRequest {
            group_id: app::group_id(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance_id.clone(),
            endpoint_information_epoch: self.endpoint_epoch,
            rebalance_timeout_ms: -1,
            ..StreamsGroupHeartbeatRequest::default()
        };
        match self.phase {
            Phase::Joining => self.introduce(process, &mut request),
            Phase::Leaving => {
                self.epoch = if self.instance_id.is_some() { -2 } else { -1 };
                request.member_epoch = self.epoch;
                return request;
            }
            Phase::Member | Phase::Gone(_) => {
                if self.send_lists || self.last_sent.as_ref() != Some(&self.assigned) {
                    request.active_tasks = Some(lists(&self.assigned.active));
                    request.standby_tasks = Some(lists(&self.assigned.standby));
                    request.warmup_tasks = Some(lists(&self.assigned.warmup));
                    self.last_sent = Some(self.assigned.clone());
                    self.send_lists = false;
                }
            }
        }
        self.report(now_ms, process, &mut request);
        request
    }

    /// Everything that a join has to say (S 11.2.1).
    fn introduce(&mut self, process: &Process, request: &mut StreamsGroupHeartbeatRequest) {
        request.rebalance_timeout_ms = self.rebalance_timeout_ms;
        request.topology = Some(app::topology(process.app_version));
        request.process_id = Some(process.id.clone());
        request.client_tags = Some(vec![KeyValue { key: KStr::from_static("zone"), value: process.zone.clone() }]);
        (request.active_tasks, request.standby_tasks, request.warmup_tasks) =
            (Some(Vec::new()), Some(Vec::new()), Some(Vec::new()));
    }

    /// Offsets: of the state directory when it joins, then of copies, at intervals, with lists, and when one caught up.
    fn report(&mut self, now_ms: u64, process: &Process, request: &mut StreamsGroupHeartbeatRequest) {
        if process.api_version == 0 {
            return;
        }
        let position = |task: &TaskId| process.store.get(task).copied().unwrap_or(0);
        if self.phase == Phase::Joining {
            let offsets = process.store.keys().map(|task| offset(task, position(task)));
            request.task_offsets = Some(offsets.collect());
            return;
        }
        let copies: Vec<_> = tasks_of(&self.assigned.standby).chain(tasks_of(&self.assigned.warmup)).collect();
        let lag = |task: &TaskId| app::end_offset(task, now_ms) - position(task);
        let caught_up: BTreeSet<_> = copies.iter().filter(|task| lag(task) <= self.acceptable_lag).cloned().collect();
        let news = caught_up.iter().any(|task| !self.caught_up.contains(task));
        let due = now_ms >= self.reported_ms + self.offset_interval_ms;
        if news || due || request.active_tasks.is_some() {
            request.task_offsets = Some(copies.iter().map(|task| offset(task, position(task))).collect());
            request.task_end_offsets =
                Some(copies.iter().map(|task| offset(task, app::end_offset(task, now_ms))).collect());
            self.reported_ms = now_ms;
            self.caught_up = caught_up;
        }
    }
}

fn offset(task: &TaskId, offset: i64) -> TaskOffset {
    TaskOffset { subtopology_id: task.subtopology.clone(), partition: task.partition, offset }
}

fn lists(tasks: &TaskSet) -> Vec<TaskIds> {
    let lists = tasks.iter().map(|(id, partitions)| TaskIds {
        subtopology_id: id.clone(),
        partitions: partitions.iter().copied().collect(),
    });
    lists.collect()
}

fn set(lists: &[answer::TaskIds]) -> TaskSet {
    let sets = lists.iter().map(|list| (list.subtopology_id.clone(), list.partitions.iter().copied().collect()));
    sets.filter(|(_, partitions): &(KStr, BTreeSet<i32>)| !partitions.is_empty()).collect()
}
