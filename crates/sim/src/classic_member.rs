//! A member of a classic group: a consumer that joins, syncs and heartbeats, as the Java client 4.4 behaves.
//!
//! Eager members give everything up before they join. Cooperative ones keep what they have, say so when they join, give up
//! what the leader took from them, and join once more. The member that the coordinator makes the leader assigns.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::assign::{TaskId, TaskSet, contains_task, tasks_of};
use coordinator::{Command, Reply, TopicImage};
use wire::KStr;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};

use crate::classic_assignor::{self as assignor, Candidate};
use crate::event::FlightNo;
use crate::member::{Answer, End, Phase, Timeouts, Wish, revocation_ms};
use crate::process::Process;
use crate::rng::Rng;
use crate::{broker, readers};

const PROTOCOL_TYPE: KStr = KStr::from_static("consumer");
/// Longer than the rebalance timeout, a client waits for the answer to a join.
const JOIN_GRACE_MS: u64 = 5_000;
/// A member that has none, or whose generation ended.
const NO_GENERATION: i32 = -1;

/// What the member sends next while it is on its way into the group.
#[derive(Debug)]
enum Step {
    Join,
    Sync(Vec<SyncGroupRequestAssignment>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Join,
    Sync,
    Heartbeat,
    Leave,
}

/// What it is giving up.
#[derive(Debug)]
struct Revoking {
    /// What it has afterwards.
    left: TaskSet,
    done_ms: Option<u64>,
}

#[derive(Debug)]
pub struct ClassicMember {
    /// Empty until the coordinator has given it one.
    pub id: KStr,
    pub instance_id: Option<KStr>,
    pub process: usize,
    pub phase: Phase,
    /// Its generation.
    pub epoch: i32,
    group_id: KStr,
    timeouts: Timeouts,
    pub assigned: TaskSet,
    cooperative: bool,
    step: Step,
    revoking: Option<Revoking>,
    protocol: Option<KStr>,
    /// Partitions that it assigned last as the leader.
    watched: Option<BTreeMap<KStr, i32>>,
    /// The version of its subscription that the group knows.
    subscribed: i32,
    due_ms: u64,
    under_way: Option<Request>,
    in_flight: Option<(FlightNo, u64)>,
    backoff_ms: u64,
}

impl ClassicMember {
    pub fn new(
        group_id: KStr,
        instance_id: Option<KStr>,
        process: usize,
        now_ms: u64,
        timeouts: Timeouts,
        cooperative: bool,
    ) -> Self {
        ClassicMember {
            id: KStr::default(),
            instance_id,
            process,
            phase: Phase::Joining,
            epoch: NO_GENERATION,
            group_id,
            timeouts,
            assigned: TaskSet::new(),
            cooperative,
            step: Step::Join,
            revoking: None,
            protocol: None,
            watched: None,
            subscribed: 0,
            due_ms: now_ms,
            under_way: None,
            in_flight: None,
            backoff_ms: 0,
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone(_))
    }

    /// What it has; it has given up what it says it gave up before the next join leaves it.
    pub fn holds(&self) -> BTreeSet<TaskId> {
        tasks_of(&self.assigned).collect()
    }

    pub fn is_at_rest(&self) -> bool {
        self.phase == Phase::Member && self.revoking.is_none()
    }

    pub fn due_ms(&self) -> Option<u64> {
        if self.is_gone() {
            return None;
        }
        let request = self.in_flight.map_or(self.due_ms, |(_, deadline_ms)| deadline_ms);
        match self.revoking.as_ref().and_then(|revoking| revoking.done_ms) {
            Some(done_ms) if self.phase == Phase::Joining => Some(done_ms),
            Some(done_ms) => Some(done_ms.min(request)),
            None => Some(request),
        }
    }

    pub fn act(&mut self, now_ms: u64, process: &Process, topics: &TopicImage) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if let Some(revoking) = &self.revoking {
            match revoking.done_ms {
                Some(done_ms) if done_ms <= now_ms => {
                    let closed: Vec<_> =
                        tasks_of(&self.assigned).filter(|task| !contains_task(&revoking.left, task)).collect();
                    if !closed.is_empty() {
                        wishes.push(Wish::Commit(closed, self.epoch));
                    }
                    self.assigned = revoking.left.clone();
                    self.revoking = None;
                    self.join_with_what_is_left(now_ms);
                }
                _ if self.phase == Phase::Joining => return wishes,
                _ => {}
            }
        }
        if self.in_flight.is_some_and(|(_, deadline_ms)| deadline_ms <= now_ms) {
            if self.phase == Phase::Leaving {
                self.phase = Phase::Gone(End::Left);
                return wishes;
            }
            self.in_flight = None;
            self.retry(now_ms);
        }
        if self.in_flight.is_some() || self.due_ms > now_ms || self.is_gone() {
            return wishes;
        }
        if self.phase == Phase::Member && self.revoking.is_none() && self.sees_a_change(process, topics) {
            self.prepare_join(now_ms);
            return wishes;
        }
        let command = self.request(process);
        wishes.push(Wish::Request(Box::new(command)));
        wishes
    }

    pub fn sent(&mut self, flight: FlightNo, now_ms: u64, timeouts: Timeouts) {
        let patience_ms = match self.under_way {
            Some(Request::Join | Request::Sync) => self.timeouts.rebalance_ms as u64 + JOIN_GRACE_MS,
            _ => timeouts.request_ms,
        };
        self.in_flight = Some((flight, now_ms + patience_ms));
    }

    /// How long it takes to give up what is to be given up.
    pub fn reconcile(&mut self, now_ms: u64, rng: &mut Rng) {
        if let Some(revoking) = self.revoking.as_mut().filter(|revoking| revoking.done_ms.is_none()) {
            let revokes = tasks_of(&self.assigned).any(|task| !contains_task(&revoking.left, &task));
            revoking.done_ms = Some(now_ms + revocation_ms(rng, revokes, self.timeouts.rebalance_ms));
        }
    }

    pub fn kill(&mut self) {
        self.lose_all();
        self.phase = Phase::Gone(End::Killed);
    }

    /// A static member leaves without a word.
    pub fn leave(&mut self, now_ms: u64) {
        if self.is_gone() {
            return;
        }
        self.lose_all();
        let speaks = self.instance_id.is_none() && !self.id.is_empty();
        self.phase = if speaks { Phase::Leaving } else { Phase::Gone(End::Left) };
        self.due_ms = now_ms;
    }

    /// The leader looks at the topics again: they may have grown while its predecessor was away (KIP-814).
    pub fn refresh(&mut self, now_ms: u64) -> bool {
        let leads = self.phase == Phase::Member && self.watched.is_some() && self.revoking.is_none();
        if leads {
            self.prepare_join(now_ms);
        }
        leads
    }

    fn lose_all(&mut self) {
        self.assigned.clear();
        self.revoking = None;
        self.watched = None;
    }

    /// Before it joins again it gives up what its protocol asks for: everything, or nothing yet.
    fn prepare_join(&mut self, now_ms: u64) {
        if self.cooperative {
            self.join_with_what_is_left(now_ms);
        } else {
            self.phase = Phase::Joining;
            self.step = Step::Join;
            self.in_flight = None;
            self.revoking = Some(Revoking { left: TaskSet::new(), done_ms: None });
        }
    }

    fn join_with_what_is_left(&mut self, now_ms: u64) {
        self.phase = Phase::Joining;
        self.step = Step::Join;
        self.in_flight = None;
        self.watched = None;
        self.due_ms = now_ms;
    }

    /// Its generation ended without it.
    fn join_anew(&mut self, now_ms: u64, keeps_id: bool) {
        self.lose_all();
        self.epoch = NO_GENERATION;
        if !keeps_id {
            self.id = KStr::default();
        }
        self.join_with_what_is_left(now_ms);
    }

    fn retry(&mut self, now_ms: u64) {
        self.backoff_ms = (self.backoff_ms * 2).clamp(100, 1_000);
        self.due_ms = now_ms + self.backoff_ms;
        // The answer to a sync may be that of another generation by now; the client starts from the join.
        if self.phase == Phase::Joining {
            self.step = Step::Join;
        }
    }

    fn sees_a_change(&self, process: &Process, topics: &TopicImage) -> bool {
        let grew =
            |watched: &BTreeMap<KStr, i32>| watched.iter().any(|(name, count)| partitions(topics, name) != *count);
        self.subscribed != process.app_version || self.watched.as_ref().is_some_and(grew)
    }

    pub fn answered(
        &mut self,
        now_ms: u64,
        flight: FlightNo,
        answer: &Answer,
        topics: &TopicImage,
    ) -> Result<bool, String> {
        if self.is_gone() || self.in_flight.is_none_or(|(expected, _)| expected != flight) {
            return Ok(false);
        }
        self.in_flight = None;
        let reply = match answer {
            Answer::Unavailable(_) => {
                self.retry(now_ms);
                return Ok(true);
            }
            Answer::Reply(reply) => &**reply,
            Answer::Heartbeat(_) => return Err(format!("{} was taken for a stream thread", self.id)),
        };
        if self.phase == Phase::Leaving {
            match self.under_way {
                Some(Request::Leave) => self.phase = Phase::Gone(End::Left),
                _ => self.due_ms = now_ms,
            }
            return Ok(true);
        }
        match (self.under_way, reply) {
            (Some(Request::Join), Reply::JoinGroup(response)) => match response.error_code {
                0 => self.joined(now_ms, response, topics)?,
                // MEMBER_ID_REQUIRED
                79 => {
                    self.id = response.member_id.clone();
                    self.join_with_what_is_left(now_ms);
                }
                code => self.refused(now_ms, code)?,
            },
            (Some(Request::Sync), Reply::SyncGroup(response)) => match response.error_code {
                0 => self.synced(now_ms, &assignor::read_assignment(&response.assignment)?),
                code => self.refused(now_ms, code)?,
            },
            (Some(Request::Heartbeat), Reply::Heartbeat(response)) => match response.error_code {
                0 => {
                    self.backoff_ms = 0;
                    self.due_ms = now_ms + self.heartbeat_ms();
                }
                code => self.refused(now_ms, code)?,
            },
            (request, other) => return Err(format!("{} sent {request:?} and was answered with {other:?}", self.id)),
        }
        Ok(true)
    }

    fn refused(&mut self, now_ms: u64, code: i16) -> Result<(), String> {
        match code {
            14..=16 => self.retry(now_ms),
            // ILLEGAL_GENERATION
            22 => self.join_anew(now_ms, true),
            // UNKNOWN_MEMBER_ID
            25 => self.join_anew(now_ms, false),
            // REBALANCE_IN_PROGRESS. What it is giving up already, it gives up first.
            27 if self.revoking.is_some() => self.due_ms = now_ms + self.heartbeat_ms(),
            27 => self.prepare_join(now_ms),
            // FENCED_INSTANCE_ID
            82 if self.instance_id.is_some() => {
                self.lose_all();
                self.phase = Phase::Gone(End::Fatal(code));
            }
            code => return Err(format!("{} got error {code} to {:?}", self.id, self.under_way)),
        }
        Ok(())
    }

    fn joined(&mut self, now_ms: u64, response: &JoinGroupResponse, topics: &TopicImage) -> Result<(), String> {
        if response.member_id.is_empty() || response.generation_id < 0 {
            return Err(format!("{} was let in as {response:?}", self.id));
        }
        self.id = response.member_id.clone();
        self.epoch = response.generation_id;
        self.protocol = response.protocol_name.clone();
        self.backoff_ms = 0;
        let mut assignments = Vec::new();
        self.watched = None;
        if response.leader == self.id && !response.leader.is_empty() {
            let members: Vec<_> = response
                .members
                .iter()
                .map(|member| Candidate::read(&member.member_id, member.group_instance_id.as_ref(), &member.metadata))
                .collect::<Result<_, _>>()?;
            if !members.iter().any(|member| member.id == self.id) {
                return Err(format!("{} leads a group in which it is not", self.id));
            }
            let read: BTreeSet<_> = members.iter().flat_map(|member| member.topics.iter().cloned()).collect();
            let counts = read.into_iter().map(|name| (name.clone(), partitions(topics, &name))).collect();
            if !response.skip_assignment {
                let assigned = assignor::assign(&members, &counts, self.cooperative);
                assignments = assigned
                    .iter()
                    .map(|(id, tasks)| SyncGroupRequestAssignment {
                        member_id: id.clone(),
                        assignment: assignor::write_assignment(tasks),
                    })
                    .collect();
            }
            self.watched = Some(counts);
        }
        self.step = Step::Sync(assignments);
        self.due_ms = now_ms;
        Ok(())
    }

    fn synced(&mut self, now_ms: u64, given: &TaskSet) {
        self.phase = Phase::Member;
        self.backoff_ms = 0;
        self.due_ms = now_ms + self.heartbeat_ms();
        let taken = tasks_of(&self.assigned).any(|task| !contains_task(given, &task));
        if taken {
            // Only cooperative members still have something here.
            self.revoking = Some(Revoking { left: given.clone(), done_ms: None });
        }
        for (topic, partitions) in given {
            self.assigned.entry(topic.clone()).or_default().extend(partitions);
        }
    }

    fn heartbeat_ms(&self) -> u64 {
        (self.timeouts.session_ms.min(self.timeouts.rebalance_ms) / 3) as u64
    }

    fn request(&mut self, process: &Process) -> Command {
        let (group_id, member_id, instance) = (self.group_id.clone(), self.id.clone(), self.instance_id.clone());
        let caller = |version| broker::caller(version);
        match (&self.phase, &self.step) {
            (Phase::Joining, Step::Join) => {
                self.under_way = Some(Request::Join);
                self.subscribed = process.app_version;
                let metadata = assignor::write_subscription(
                    readers::subscription(process.app_version),
                    &self.assigned,
                    self.epoch,
                );
                let protocols = if self.cooperative { &["cooperative-sticky"][..] } else { process.assignors };
                let protocols = protocols
                    .iter()
                    .map(|name| JoinGroupRequestProtocol { name: KStr::from_static(name), metadata: metadata.clone() });
                let request = JoinGroupRequest {
                    group_id,
                    session_timeout_ms: self.timeouts.session_ms,
                    rebalance_timeout_ms: self.timeouts.rebalance_ms,
                    member_id,
                    group_instance_id: instance,
                    protocol_type: PROTOCOL_TYPE,
                    protocols: protocols.collect(),
                    reason: None,
                };
                Command::JoinGroup(caller(process.api_version), Box::new(request))
            }
            (Phase::Joining, Step::Sync(assignments)) => {
                self.under_way = Some(Request::Sync);
                let request = SyncGroupRequest {
                    group_id,
                    generation_id: self.epoch,
                    member_id,
                    group_instance_id: instance,
                    protocol_type: Some(PROTOCOL_TYPE),
                    protocol_name: self.protocol.clone(),
                    assignments: assignments.clone(),
                };
                Command::SyncGroup(caller(5), Box::new(request))
            }
            (Phase::Leaving, _) => {
                self.under_way = Some(Request::Leave);
                let identity = MemberIdentity { member_id, group_instance_id: instance, reason: None };
                let request = LeaveGroupRequest { group_id, members: vec![identity], ..LeaveGroupRequest::default() };
                Command::LeaveGroup(caller(5), Box::new(request))
            }
            (Phase::Member | Phase::Gone(_), _) => {
                self.under_way = Some(Request::Heartbeat);
                let generation_id = self.epoch;
                let request = HeartbeatRequest { group_id, generation_id, member_id, group_instance_id: instance };
                Command::Heartbeat(caller(4), Box::new(request))
            }
        }
    }
}

fn partitions(topics: &TopicImage, name: &str) -> i32 {
    topics.get(name).map_or(0, |topic| topic.partitions)
}
