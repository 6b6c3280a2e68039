//! A member of the classic protocol, as an eager consumer: it gives everything back before it joins again.

use std::time::{Duration, Instant};

use client::{ClientError, Connection};
use wire::messages::consumer_protocol_assignment::{ConsumerProtocolAssignment, TopicPartition};
use wire::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::{Bytes, EncodeError, ErrorCode, KStr, Message, Reader, Writer};

use super::Seat;

const PROTOCOL_TYPE: &str = "consumer";
const ASSIGNOR: &str = "range";
const REBALANCE_TIMEOUT_MS: i32 = 300_000;
/// Before a request is sent again that was refused for no reason that a client knows an answer to.
const BACKOFF: Duration = Duration::from_millis(100);

/// Runs until the program ends.
pub async fn run(seat: Seat) {
    loop {
        let mut member = Member { seat: &seat, id: KStr::EMPTY, held: Vec::new() };
        let outcome = member.live().await;
        member.give_all();
        if let Err(error) = outcome {
            seat.shared.board.error(error);
        }
        tokio::time::sleep(BACKOFF).await;
    }
}

struct Member<'a> {
    seat: &'a Seat,
    id: KStr,
    held: Vec<i32>,
}

impl Member<'_> {
    async fn live(&mut self) -> Result<(), ClientError> {
        let mut connection = self.seat.connect().await?;
        self.seat.shared.board.connected.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        loop {
            self.give_all();
            let Some(joined) = self.join(&mut connection).await? else { continue };
            if !self.sync(&mut connection, &joined).await? {
                continue;
            }
            self.seat.group().settle();
            let outcome = self.heartbeats(&mut connection, joined.generation_id).await;
            self.seat.group().unsettle();
            outcome?;
        }
    }

    fn give_all(&mut self) {
        for partition in self.held.drain(..) {
            self.seat.group().give(partition);
        }
    }

    /// `None`: join again.
    async fn join(&mut self, connection: &mut Connection) -> Result<Option<JoinGroupResponse>, ClientError> {
        let subscription =
            ConsumerProtocolSubscription { topics: vec![KStr::copy(&self.seat.args().topic)], ..Default::default() };
        let request = JoinGroupRequest {
            group_id: self.seat.group_id().into(),
            session_timeout_ms: self.seat.args().session_timeout_ms,
            rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
            member_id: self.id.clone(),
            protocol_type: PROTOCOL_TYPE.into(),
            protocols: vec![JoinGroupRequestProtocol { name: ASSIGNOR.into(), metadata: embedded(&subscription)? }],
            ..Default::default()
        };
        let response = connection.call(&request).await?;
        match ErrorCode::from_code(response.error_code) {
            ErrorCode::None => {
                self.id = response.member_id.to_owned_detached();
                return Ok(Some(response));
            }
            ErrorCode::MemberIdRequired => self.id = response.member_id.to_owned_detached(),
            other => self.refused(other).await,
        }
        Ok(None)
    }

    /// False: join again.
    async fn sync(&mut self, connection: &mut Connection, joined: &JoinGroupResponse) -> Result<bool, ClientError> {
        let assignments = match joined.leader == joined.member_id {
            true => self.assign(joined)?,
            false => Vec::new(),
        };
        let request = SyncGroupRequest {
            group_id: self.seat.group_id().into(),
            generation_id: joined.generation_id,
            member_id: self.id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.into()),
            protocol_name: Some(ASSIGNOR.into()),
            assignments,
            ..Default::default()
        };
        let response = connection.call(&request).await?;
        match ErrorCode::from_code(response.error_code) {
            ErrorCode::None => {}
            other => {
                self.refused(other).await;
                return Ok(false);
            }
        }
        let mut reader = Reader::new(&response.assignment);
        let version = reader.i16()?;
        let assignment = ConsumerProtocolAssignment::decode(&mut reader, version)?;
        self.held = assignment.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect();
        self.held.iter().for_each(|partition| self.seat.group().take(*partition));
        Ok(true)
    }

    /// What a leader does: ranges of partitions, in the order of the members' ids.
    fn assign(&self, joined: &JoinGroupResponse) -> Result<Vec<SyncGroupRequestAssignment>, ClientError> {
        let mut members: Vec<&KStr> = joined.members.iter().map(|member| &member.member_id).collect();
        members.sort();
        let (count, partitions) = (members.len(), self.seat.group().partitions());
        let share = |number: usize| number * partitions / count;
        let mut assignments = Vec::new();
        for (number, member_id) in members.into_iter().enumerate() {
            let partitions = (share(number)..share(number + 1)).map(|partition| partition as i32).collect();
            let topic = TopicPartition { topic: KStr::copy(&self.seat.args().topic), partitions };
            let assignment = ConsumerProtocolAssignment { assigned_partitions: vec![topic], ..Default::default() };
            let assignment = embedded(&assignment)?;
            assignments.push(SyncGroupRequestAssignment { member_id: member_id.clone(), assignment });
        }
        Ok(assignments)
    }

    /// Until there is a reason to join again.
    async fn heartbeats(&mut self, connection: &mut Connection, generation_id: i32) -> Result<(), ClientError> {
        let interval = Duration::from_millis(self.seat.args().heartbeat_interval_ms);
        let request = HeartbeatRequest {
            group_id: self.seat.group_id().into(),
            generation_id,
            member_id: self.id.clone(),
            ..Default::default()
        };
        // The first ones come spread over an interval, as those of clients that were not started together.
        let spread = interval * (self.seat.number as u32 % 997) / 997;
        tokio::time::sleep(spread).await;
        loop {
            let sent = Instant::now();
            let response = connection.call(&request).await?;
            self.seat.shared.board.heartbeat(sent.elapsed());
            match ErrorCode::from_code(response.error_code) {
                ErrorCode::None => tokio::time::sleep(interval.saturating_sub(sent.elapsed())).await,
                ErrorCode::RebalanceInProgress => return Ok(()),
                other => {
                    self.refused(other).await;
                    return Ok(());
                }
            }
        }
    }

    /// An error that makes a member join again; those that no rebalance explains are counted.
    async fn refused(&mut self, code: ErrorCode) {
        match code {
            ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration => {}
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::CoordinatorNotAvailable => {
                tokio::time::sleep(BACKOFF).await;
            }
            other => {
                self.seat.shared.board.error(other.name());
                self.id = KStr::EMPTY;
                tokio::time::sleep(BACKOFF).await;
            }
        }
    }
}

/// A message between clients: its version, then itself.
fn embedded<M: Message>(message: &M) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::new();
    writer.i16(1);
    message.encode(&mut writer, 1)?;
    Ok(writer.into_bytes())
}
