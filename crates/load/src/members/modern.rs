//! A member of the protocols that the broker drives: consumer (KIP-848) and streams (KIP-1071). Both are one loop of heartbeats
//! that differ in how they name what a member has.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use client::{ClientError, Connection};
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, Subtopology, TaskIds, Topology};
use wire::{ErrorCode, KStr, Uuid};

use super::{Protocol, Seat};

const REBALANCE_TIMEOUT_MS: i32 = 300_000;
const SUBTOPOLOGY: &str = "0";
const BACKOFF: Duration = Duration::from_millis(100);

/// Runs until the program ends.
pub async fn run(seat: Seat) {
    loop {
        let mut member = Member::new(&seat);
        let outcome = member.live().await;
        member.start_over();
        if let Err(error) = outcome {
            seat.shared.board.error(error);
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

struct Member<'a> {
    seat: &'a Seat,
    id: KStr,
    epoch: i32,
    held: BTreeSet<i32>,
    settled: bool,
    /// What is held changed, and the broker has not been told.
    unreported: bool,
}

/// What either response says.
struct Answer {
    code: i16,
    epoch: i32,
    interval: Duration,
    /// `None`: as before.
    assignment: Option<BTreeSet<i32>>,
}

impl<'a> Member<'a> {
    fn new(seat: &'a Seat) -> Member<'a> {
        // Unlike those of any other run.
        let id = Uuid::from_u128((u128::from(std::process::id()) << 64) | (seat.number as u128 + 1));
        let id = KStr::from(id.to_string());
        Member { seat, id, epoch: 0, held: BTreeSet::new(), settled: false, unreported: false }
    }

    async fn live(&mut self) -> Result<(), ClientError> {
        let mut connection = self.seat.connect().await?;
        self.seat.shared.board.connected.fetch_add(1, Ordering::Relaxed);
        loop {
            let sent = Instant::now();
            let joining = self.epoch == 0;
            let answer = match self.seat.args().protocol {
                Protocol::Streams => self.streams(&mut connection).await?,
                _ => self.consumer(&mut connection).await?,
            };
            if !joining {
                self.seat.shared.board.heartbeat(sent.elapsed());
            }
            match ErrorCode::from_code(answer.code) {
                ErrorCode::None => {}
                ErrorCode::CoordinatorLoadInProgress | ErrorCode::CoordinatorNotAvailable => {
                    tokio::time::sleep(BACKOFF).await;
                    continue;
                }
                code => {
                    self.seat.shared.board.error(code.name());
                    self.start_over();
                    tokio::time::sleep(BACKOFF).await;
                    continue;
                }
            }
            self.epoch = answer.epoch;
            self.unreported = false;
            match answer.assignment.filter(|assignment| *assignment != self.held) {
                Some(assignment) => {
                    self.unsettle();
                    self.hold(assignment);
                    // What was given up or taken is told at once.
                    self.unreported = true;
                }
                None => {
                    self.settle();
                    tokio::time::sleep(answer.interval.saturating_sub(sent.elapsed())).await;
                }
            }
        }
    }

    fn hold(&mut self, assignment: BTreeSet<i32>) {
        let group = self.seat.group();
        self.held.difference(&assignment).for_each(|partition| group.give(*partition));
        assignment.difference(&self.held).for_each(|partition| group.take(*partition));
        self.held = assignment;
    }

    fn settle(&mut self) {
        if !std::mem::replace(&mut self.settled, true) {
            self.seat.group().settle();
        }
    }

    fn unsettle(&mut self) {
        if std::mem::replace(&mut self.settled, false) {
            self.seat.group().unsettle();
        }
    }

    fn start_over(&mut self) {
        self.unsettle();
        self.hold(BTreeSet::new());
        self.epoch = 0;
    }

    /// A steady heartbeat says nothing but that the member lives.
    async fn consumer(&self, connection: &mut Connection) -> Result<Answer, ClientError> {
        let joining = self.epoch == 0;
        let held = || match self.held.is_empty() {
            true => Vec::new(),
            false => {
                let partitions = self.held.iter().copied().collect();
                vec![TopicPartitions { topic_id: self.seat.shared.topic_id, partitions }]
            }
        };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.seat.group_id().into(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joining { REBALANCE_TIMEOUT_MS } else { -1 },
            subscribed_topic_names: joining.then(|| vec![KStr::copy(&self.seat.args().topic)]),
            topic_partitions: (joining || self.unreported).then(held),
            ..Default::default()
        };
        let response = connection.call(&request).await?;
        let assignment = response
            .assignment
            .map(|assignment| assignment.topic_partitions.into_iter().flat_map(|topic| topic.partitions).collect());
        Ok(Answer {
            code: response.error_code,
            epoch: response.member_epoch,
            interval: interval(response.heartbeat_interval_ms),
            assignment,
        })
    }

    /// An application of one subtopology without state: partition N of the topic is task 0_N.
    async fn streams(&self, connection: &mut Connection) -> Result<Answer, ClientError> {
        let joining = self.epoch == 0;
        let held = || match self.held.is_empty() {
            true => Vec::new(),
            false => {
                let partitions = self.held.iter().copied().collect();
                vec![TaskIds { subtopology_id: SUBTOPOLOGY.into(), partitions }]
            }
        };
        let topology = || Topology {
            epoch: 0,
            subtopologies: vec![Subtopology {
                subtopology_id: SUBTOPOLOGY.into(),
                source_topics: vec![KStr::copy(&self.seat.args().topic)],
                ..Default::default()
            }],
        };
        let report = joining || self.unreported;
        let request = StreamsGroupHeartbeatRequest {
            group_id: self.seat.group_id().into(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joining { REBALANCE_TIMEOUT_MS } else { -1 },
            topology: joining.then(topology),
            process_id: joining.then(|| self.id.clone()),
            active_tasks: report.then(held),
            standby_tasks: report.then(Vec::new),
            warmup_tasks: report.then(Vec::new),
            client_tags: joining.then(Vec::new),
            ..Default::default()
        };
        let response = connection.call(&request).await?;
        let assignment = response.active_tasks.map(|tasks| tasks.into_iter().flat_map(|ids| ids.partitions).collect());
        Ok(Answer {
            code: response.error_code,
            epoch: response.member_epoch,
            interval: interval(response.heartbeat_interval_ms),
            assignment,
        })
    }
}

fn interval(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(10))
}
