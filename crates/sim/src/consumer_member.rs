//! A member of a consumer group: a consumer that speaks the protocol of KIP-848, as the Java client 4.4 behaves.
//!
//! It heartbeats, gives up and takes over what it is told to, says so at once, and starts anew when it was fenced.

use std::collections::BTreeSet;

use coordinator::assign::{TaskId, TaskSet, contains_task, insert_task, tasks_of};
use coordinator::{Command, Reply, TopicImage};
use wire::KStr;
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;

use crate::event::FlightNo;
use crate::member::{Answer, End, Phase, Wish, revocation_ms};
use crate::process::Process;
use crate::rng::Rng;
use crate::{broker, readers};

#[derive(Debug)]
pub struct ConsumerMember {
    pub id: KStr,
    pub instance_id: Option<KStr>,
    pub process: usize,
    pub phase: Phase,
    pub epoch: i32,
    group_id: KStr,
    rebalance_timeout_ms: i32,
    pub assigned: TaskSet,
    /// The last assignment it was sent.
    wanted: TaskSet,
    /// What it is about to have, and when what it gives up is committed.
    reconciling: Option<(TaskSet, u64)>,
    /// What it last said it owned since it joined.
    last_sent: Option<TaskSet>,
    /// The last request may be lost: the next one says everything.
    send_all: bool,
    subscribed: Option<i32>,
    heartbeat_due_ms: u64,
    in_flight: Option<(FlightNo, u64)>,
    backoff_ms: u64,
}

impl ConsumerMember {
    pub fn new(
        group_id: KStr,
        id: KStr,
        instance_id: Option<KStr>,
        process: usize,
        now_ms: u64,
        rebalance_timeout_ms: i32,
    ) -> Self {
        ConsumerMember {
            id,
            instance_id,
            process,
            phase: Phase::Joining,
            epoch: 0,
            group_id,
            rebalance_timeout_ms,
            assigned: TaskSet::new(),
            wanted: TaskSet::new(),
            reconciling: None,
            last_sent: None,
            send_all: false,
            subscribed: None,
            heartbeat_due_ms: now_ms,
            in_flight: None,
            backoff_ms: 0,
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone(_))
    }

    pub fn holds(&self) -> BTreeSet<TaskId> {
        if self.phase != Phase::Member {
            return BTreeSet::new();
        }
        let next = self.reconciling.as_ref().map(|(target, _)| target);
        let all = [&self.assigned, &self.wanted].into_iter().chain(next).chain(self.last_sent.as_ref());
        all.flat_map(tasks_of).collect()
    }

    pub fn is_at_rest(&self) -> bool {
        self.phase == Phase::Member && self.assigned == self.wanted && self.reconciling.is_none()
    }

    pub fn due_ms(&self) -> Option<u64> {
        if self.is_gone() {
            return None;
        }
        let request = self.in_flight.map_or(self.heartbeat_due_ms, |(_, deadline_ms)| deadline_ms);
        Some(self.reconciling.as_ref().map_or(request, |(_, done_ms)| request.min(*done_ms)))
    }

    pub fn act(&mut self, now_ms: u64, process: &Process, topics: &TopicImage) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if let Some((target, _)) = self.reconciling.take_if(|(_, done_ms)| *done_ms <= now_ms) {
            let closed: Vec<_> = tasks_of(&self.assigned).filter(|task| !contains_task(&target, task)).collect();
            if !closed.is_empty() {
                wishes.push(Wish::Commit(closed, self.epoch));
            }
            self.assigned = target;
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
            let request = Box::new(self.request(process, topics));
            wishes.push(Wish::Request(Box::new(Command::ConsumerGroupHeartbeat(broker::caller(1), request))));
        }
        wishes
    }

    pub fn sent(&mut self, flight: FlightNo, deadline_ms: u64) {
        self.in_flight = Some((flight, deadline_ms));
    }

    pub fn reconcile(&mut self, now_ms: u64, rng: &mut Rng) {
        if self.phase != Phase::Member || self.reconciling.is_some() || self.wanted == self.assigned {
            return;
        }
        let revokes = tasks_of(&self.assigned).any(|task| !contains_task(&self.wanted, &task));
        let takes_ms = revocation_ms(rng, revokes, self.rebalance_timeout_ms);
        self.reconciling = Some((self.wanted.clone(), now_ms + takes_ms));
    }

    pub fn kill(&mut self) {
        self.give_up_all();
        self.phase = Phase::Gone(End::Killed);
    }

    pub fn leave(&mut self, now_ms: u64) {
        if !self.is_gone() {
            self.give_up_all();
            self.phase = Phase::Leaving;
            self.heartbeat_due_ms = now_ms;
        }
    }

    fn give_up_all(&mut self) {
        self.assigned.clear();
        self.wanted.clear();
        self.reconciling = None;
        self.last_sent = None;
    }

    fn join_again(&mut self, now_ms: u64) {
        self.give_up_all();
        self.phase = Phase::Joining;
        self.epoch = 0;
        self.heartbeat_due_ms = now_ms;
    }

    fn retry(&mut self, now_ms: u64) {
        self.send_all = true;
        self.backoff_ms = (self.backoff_ms * 2).clamp(100, 1_000);
        self.heartbeat_due_ms = now_ms + self.backoff_ms;
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
        if self.phase == Phase::Leaving {
            match self.epoch {
                ..0 => self.phase = Phase::Gone(End::Left),
                _ => self.heartbeat_due_ms = now_ms,
            }
            return Ok(true);
        }
        let response = match answer {
            Answer::Unavailable(_) => {
                self.retry(now_ms);
                return Ok(true);
            }
            Answer::Reply(reply) => match &**reply {
                Reply::ConsumerGroupHeartbeat(response) => response,
                other => return Err(format!("{} was answered with {other:?}", self.id)),
            },
            Answer::Heartbeat(_) => return Err(format!("{} was taken for a stream thread", self.id)),
        };
        match response.error_code {
            0 => self.succeeded(now_ms, response, topics)?,
            14..=16 => self.retry(now_ms),
            // UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH; GROUP_ID_NOT_FOUND: the group became a classic one.
            25 | 110 => self.join_again(now_ms),
            69 if self.phase == Phase::Member => self.join_again(now_ms),
            // FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID: somebody else has the instance id.
            code @ (82 | 111) if self.instance_id.is_some() => {
                self.give_up_all();
                self.phase = Phase::Gone(End::Fatal(code));
            }
            code => return Err(format!("{} got error {code}: {:?}", self.id, response.error_message)),
        }
        Ok(true)
    }

    fn succeeded(
        &mut self,
        now_ms: u64,
        response: &ConsumerGroupHeartbeatResponse,
        topics: &TopicImage,
    ) -> Result<(), String> {
        let joined = self.phase == Phase::Joining;
        if response.member_epoch < self.epoch {
            return Err(format!("{} was at epoch {}, and is told {}", self.id, self.epoch, response.member_epoch));
        }
        if response.heartbeat_interval_ms <= 0 {
            return Err(format!("{} is to wait {} ms", self.id, response.heartbeat_interval_ms));
        }
        self.epoch = response.member_epoch;
        self.backoff_ms = 0;
        self.phase = Phase::Member;
        self.heartbeat_due_ms = now_ms + response.heartbeat_interval_ms as u64;
        if self.assigned != *self.last_sent.get_or_insert_default() {
            // It changed while the request was under way.
            self.heartbeat_due_ms = now_ms;
        }
        match &response.assignment {
            Some(assignment) => {
                self.wanted.clear();
                for topic in &assignment.topic_partitions {
                    let Some(name) = topics.name_of(&topic.topic_id) else { continue };
                    for partition in &topic.partitions {
                        let task = TaskId { subtopology: name.clone(), partition: *partition };
                        insert_task(&mut self.wanted, &task);
                    }
                }
            }
            None if joined => return Err(format!("{} joined, and is told no assignment", self.id)),
            None => {}
        }
        Ok(())
    }

    /// Fields that have not changed are left out, unless the coordinator may not know them.
    fn request(&mut self, process: &Process, topics: &TopicImage) -> ConsumerGroupHeartbeatRequest {
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: self.group_id.clone(),
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            rebalance_timeout_ms: -1,
            ..ConsumerGroupHeartbeatRequest::default()
        };
        if self.phase == Phase::Leaving {
            self.epoch = if self.instance_id.is_some() { -2 } else { -1 };
        }
        request.member_epoch = self.epoch;
        if self.epoch < 0 {
            return request;
        }
        let everything = self.send_all || self.phase == Phase::Joining;
        if everything {
            request.rebalance_timeout_ms = self.rebalance_timeout_ms;
            request.server_assignor = process.assignor.clone();
        }
        if everything || self.subscribed != Some(process.app_version) {
            request.subscribed_topic_names = Some(readers::subscription(process.app_version));
            self.subscribed = Some(process.app_version);
        }
        if everything || self.last_sent.as_ref() != Some(&self.assigned) {
            let owned = self.assigned.iter().filter_map(|(name, partitions)| {
                let topic_id = topics.get(name)?.id;
                Some(TopicPartitions { topic_id, partitions: partitions.iter().copied().collect() })
            });
            request.topic_partitions = Some(owned.collect());
            self.last_sent = Some(self.assigned.clone());
        }
        self.send_all = false;
        request
    }
}
