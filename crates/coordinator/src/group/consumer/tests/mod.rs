//! The rules of consumer groups, request by request in virtual time. Names of tests begin with the rule or with the id
//! of the scenario of the specification.

mod admin;
mod away;
mod membership;
mod migration;
mod offsets;
mod oracle;
mod pace;
mod plan;
mod regexes;
mod survival;
mod target;

use wire::messages::consumer_group_describe_response::{DescribedGroup, Member};
use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use wire::messages::consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::messages::sync_group_response::SyncGroupResponse;
use wire::{Bytes, ErrorCode, KStr, Uuid};

use crate::command::Command;
use crate::config::{BrokerConfig, GroupOverrides};
use crate::outcome::Reply;
use crate::testing::{Bench, CallId, caller};

const GROUP: &str = "kg";
/// One topic of four partitions; `Bench` counts ids.
const ORDERS: Uuid = Uuid::from_u128(1);
const USERS: Uuid = Uuid::from_u128(2);

fn text(text: &str) -> KStr {
    KStr::copy(text)
}

fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code)
}

/// A heartbeat, version 1 unless said otherwise.
#[derive(Clone)]
struct Beat {
    version: i16,
    request: ConsumerGroupHeartbeatRequest,
}

fn beat(member_id: &str, epoch: i32) -> Beat {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: text(GROUP),
        member_id: text(member_id),
        member_epoch: epoch,
        ..Default::default()
    };
    Beat { version: 1, request }
}

/// A member that joins and reads `orders`.
fn joins(member_id: &str) -> Beat {
    let mut beat = beat(member_id, 0).names(&["orders"]).owns(&[]);
    beat.request.rebalance_timeout_ms = 30_000;
    beat
}

impl Beat {
    fn with(mut self, change: impl FnOnce(&mut ConsumerGroupHeartbeatRequest)) -> Self {
        change(&mut self.request);
        self
    }

    fn version(mut self, version: i16) -> Self {
        self.version = version;
        self
    }

    fn instance(self, instance_id: &str) -> Self {
        self.with(|request| request.instance_id = Some(text(instance_id)))
    }

    fn names(self, names: &[&str]) -> Self {
        self.with(|request| request.subscribed_topic_names = Some(names.iter().map(|name| text(name)).collect()))
    }

    fn no_names(self) -> Self {
        self.with(|request| request.subscribed_topic_names = None)
    }

    fn regex(self, regex: &str) -> Self {
        self.with(|request| request.subscribed_topic_regex = Some(text(regex)))
    }

    /// Says that it owns these partitions of `orders`.
    fn owns(self, partitions: &[i32]) -> Self {
        let topics = TopicPartitions { topic_id: ORDERS, partitions: partitions.to_vec() };
        let topics = if partitions.is_empty() { Vec::new() } else { vec![topics] };
        self.with(|request| request.topic_partitions = Some(topics))
    }
}

/// A bench with `orders` (4 partitions) and `users` (2), and the requests of one group. Unless configured otherwise,
/// targets are computed at once and heartbeat intervals are Kafka's.
struct Rig {
    bench: Bench,
}

impl Rig {
    fn new() -> Self {
        Rig::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let mut config = BrokerConfig {
            consumer_assignment_interval_ms: Some(0),
            consumer_heartbeat_interval_ms: Some(5_000),
            classic_initial_rebalance_delay_ms: Some(0),
            ..BrokerConfig::default()
        };
        change(&mut config);
        let mut bench = Bench::with_config(config);
        assert_eq!(bench.set_topic("orders", 4), ORDERS);
        assert_eq!(bench.set_topic("users", 2), USERS);
        Rig { bench }
    }

    fn configure(&mut self, overrides: GroupOverrides) {
        self.bench.configure_group(GROUP, overrides);
    }

    #[track_caller]
    fn send(&mut self, beat: Beat) -> ConsumerGroupHeartbeatResponse {
        let command = Command::ConsumerGroupHeartbeat(caller(beat.version), Box::new(beat.request));
        match self.bench.ask(command) {
            Reply::ConsumerGroupHeartbeat(response) => *response,
            other => panic!("not an answer to a heartbeat: {other:?}"),
        }
    }

    /// The answer's epoch, and the partitions of `orders` if it has an assignment.
    #[track_caller]
    fn ok(&mut self, beat: Beat) -> (i32, Option<Vec<i32>>) {
        let response = self.send(beat);
        assert_eq!(error(response.error_code), ErrorCode::None, "{:?}", response.error_message);
        let assigned = response.assignment.map(|assignment| {
            let orders = assignment.topic_partitions.into_iter().find(|topic| topic.topic_id == ORDERS);
            orders.map(|topic| topic.partitions).unwrap_or_default()
        });
        (response.member_epoch, assigned)
    }

    #[track_caller]
    fn refused(&mut self, beat: Beat) -> ErrorCode {
        let response = self.send(beat);
        assert!(response.error_code != 0, "it was accepted");
        // C K-6.
        assert!(response.error_message.is_some());
        assert_eq!((response.member_id, response.member_epoch, response.heartbeat_interval_ms), (None, 0, 0));
        assert_eq!(response.assignment, None);
        error(response.error_code)
    }

    /// The log refuses what this heartbeat writes.
    #[track_caller]
    fn unwritten(&mut self, beat: Beat) {
        self.bench.log_mut().fail_next_append(crate::state_log::LogError::NoSpace);
        let command = Command::ConsumerGroupHeartbeat(caller(1), Box::new(beat.request));
        let (_, answer) = self.bench.send(command);
        assert!(matches!(answer, Some(Err(_))), "{answer:?}");
    }

    /// `c1` with all of `orders` at epoch 2.
    fn one() -> Self {
        let mut rig = Rig::new();
        assert_eq!(rig.ok(joins("c1")), (2, Some(vec![0, 1, 2, 3])));
        rig
    }

    /// Then `c2`, which waits for half of it, and `c1`, which has been told.
    fn revoking() -> Self {
        let mut rig = Rig::one();
        assert_eq!(rig.ok(joins("c2")), (3, Some(vec![])));
        assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1, 2, 3])), (2, Some(vec![0, 1])));
        rig
    }

    /// Then `c1` has let go of it.
    fn acknowledged() -> Self {
        let mut rig = Rig::revoking();
        assert_eq!(rig.ok(beat("c1", 2).owns(&[0, 1])), (3, None));
        rig
    }

    /// And `c2` has got it.
    fn two() -> Self {
        let mut rig = Rig::acknowledged();
        assert_eq!(rig.ok(beat("c2", 3)), (3, Some(vec![2, 3])));
        rig
    }

    fn describe(&mut self) -> DescribedGroup {
        let command = Command::ConsumerGroupDescribe { caller: caller(1), group_id: text(GROUP) };
        match self.bench.ask(command) {
            Reply::ConsumerGroupDescribe(group) => *group,
            other => panic!("not a description: {other:?}"),
        }
    }

    /// State, group epoch and assignment epoch.
    fn state(&mut self) -> (String, i32, i32) {
        let group = self.describe();
        (String::from(&group.group_state), group.group_epoch, group.assignment_epoch)
    }

    fn member(&mut self, member_id: &str) -> Option<Member> {
        self.describe().members.into_iter().find(|member| member.member_id == member_id)
    }

    fn member_ids(&mut self) -> Vec<String> {
        self.describe().members.iter().map(|member| String::from(&member.member_id)).collect()
    }

    fn is_classic(&self) -> bool {
        matches!(self.bench.shard().state().group(GROUP), Some(crate::group::Group::Classic(_)))
    }
}

/// A JoinGroup of the classic protocol, version 9 unless said otherwise.
#[derive(Clone)]
struct Join {
    version: i16,
    request: JoinGroupRequest,
}

fn join(member_id: &str) -> Join {
    let request = JoinGroupRequest {
        group_id: text(GROUP),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 20_000,
        member_id: text(member_id),
        protocol_type: text("consumer"),
        protocols: vec![JoinGroupRequestProtocol { name: text("range"), metadata: subscription(&["orders"], &[]) }],
        ..Default::default()
    };
    Join { version: 9, request }
}

impl Join {
    fn with(mut self, change: impl FnOnce(&mut JoinGroupRequest)) -> Self {
        change(&mut self.request);
        self
    }

    fn version(mut self, version: i16) -> Self {
        self.version = version;
        self
    }

    fn instance(self, instance_id: &str) -> Self {
        self.with(|request| request.group_instance_id = Some(text(instance_id)))
    }

    /// Says that it owns these partitions of `orders`.
    fn owns(self, partitions: &[i32]) -> Self {
        let metadata = subscription(&["orders"], partitions);
        self.with(|request| request.protocols[0].metadata = metadata)
    }
}

/// Version 1 of a consumer's subscription: topics, no user data, owned partitions of `orders`.
fn subscription(topics: &[&str], owned: &[i32]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        push_text(&mut bytes, topic);
    }
    bytes.extend((-1i32).to_be_bytes());
    push_orders(&mut bytes, owned);
    Bytes::from(bytes)
}

/// Version 1 of a consumer's assignment: partitions of `orders`, and user data if there is some.
fn assignment(partitions: &[i32], user_data: Option<&[u8]>) -> Bytes {
    let mut bytes = vec![0, 1];
    push_orders(&mut bytes, partitions);
    bytes.extend(user_data.map_or(-1, |data| data.len() as i32).to_be_bytes());
    bytes.extend(user_data.unwrap_or_default());
    Bytes::from(bytes)
}

fn push_orders(bytes: &mut Vec<u8>, partitions: &[i32]) {
    bytes.extend(i32::from(!partitions.is_empty()).to_be_bytes());
    if !partitions.is_empty() {
        push_text(bytes, "orders");
        bytes.extend((partitions.len() as i32).to_be_bytes());
        bytes.extend(partitions.iter().flat_map(|partition| partition.to_be_bytes()));
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as i16).to_be_bytes());
    bytes.extend(text.as_bytes());
}

/// The partitions of `orders` in an assignment that a sync was answered with.
fn assigned(bytes: &Bytes) -> Vec<i32> {
    let assignment = super::embedded::assignment(bytes).expect("an assignment");
    assignment.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
}

impl Rig {
    fn send_join(&mut self, join: Join) -> Result<JoinGroupResponse, CallId> {
        let command = Command::JoinGroup(caller(join.version), Box::new(join.request));
        match self.bench.send(command) {
            (_, Some(Ok(Reply::JoinGroup(response)))) => Ok(*response),
            (id, None) => Err(id),
            (_, other) => panic!("not an answer to JoinGroup: {other:?}"),
        }
    }

    /// A join that is answered at once.
    #[track_caller]
    fn joined(&mut self, join: Join) -> JoinGroupResponse {
        self.send_join(join).expect("the join is answered at once")
    }

    /// The answer to a join that had to wait.
    #[track_caller]
    fn late_join(&mut self, id: CallId) -> JoinGroupResponse {
        match self.bench.reply(id) {
            Reply::JoinGroup(response) => *response,
            other => panic!("not an answer to JoinGroup: {other:?}"),
        }
    }

    #[track_caller]
    fn sync(&mut self, member_id: &str, generation: i32, shares: &[(&str, Bytes)]) -> SyncGroupResponse {
        let shares = shares.iter().map(|(member_id, assignment)| SyncGroupRequestAssignment {
            member_id: text(member_id),
            assignment: assignment.clone(),
        });
        let request = SyncGroupRequest {
            group_id: text(GROUP),
            generation_id: generation,
            member_id: text(member_id),
            protocol_type: Some(text("consumer")),
            protocol_name: Some(text("range")),
            assignments: shares.collect(),
            ..Default::default()
        };
        match self.bench.ask(Command::SyncGroup(caller(5), Box::new(request))) {
            Reply::SyncGroup(response) => *response,
            other => panic!("not an answer to SyncGroup: {other:?}"),
        }
    }

    fn classic_beat(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: text(GROUP),
            generation_id: generation,
            member_id: text(member_id),
            ..Default::default()
        };
        match self.bench.ask(Command::Heartbeat(caller(4), Box::new(request))) {
            Reply::Heartbeat(response) => error(response.error_code),
            other => panic!("not an answer to Heartbeat: {other:?}"),
        }
    }

    /// Error of each entry: member id and instance id.
    fn leave_group(&mut self, members: &[(&str, Option<&str>)]) -> Vec<ErrorCode> {
        let members = members.iter().map(|(member_id, instance_id)| MemberIdentity {
            member_id: text(member_id),
            group_instance_id: instance_id.map(text),
            ..Default::default()
        });
        let request = LeaveGroupRequest { group_id: text(GROUP), members: members.collect(), ..Default::default() };
        match self.bench.ask(Command::LeaveGroup(caller(5), Box::new(request))) {
            Reply::LeaveGroup(response) => response.members.iter().map(|member| error(member.error_code)).collect(),
            other => panic!("not an answer to LeaveGroup: {other:?}"),
        }
    }

    /// A stable classic group in generation 1 of one member, which has all of `orders`; yields its id.
    fn classic(join: Join) -> (Self, String) {
        let mut rig = Rig::new();
        let id = rig.send_join(join.version(3)).expect_err("the join waits for the group");
        rig.bench.advance(1);
        let response = rig.late_join(id);
        assert_eq!((error(response.error_code), response.generation_id), (ErrorCode::None, 1));
        let member_id = String::from(&response.member_id);
        let synced = rig.sync(&member_id, 1, &[(&member_id, assignment(&[0, 1, 2, 3], None))]);
        assert_eq!(error(synced.error_code), ErrorCode::None);
        (rig, member_id)
    }

    /// The same with `c2`, which speaks the consumer protocol and waits.
    fn mixed() -> (Self, String) {
        let (mut rig, member_id) = Rig::classic(join(""));
        assert_eq!(rig.ok(joins("c2")), (2, Some(vec![])));
        (rig, member_id)
    }
}
