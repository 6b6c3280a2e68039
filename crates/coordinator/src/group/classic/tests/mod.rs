//! The rules of classic groups, request by request in virtual time. Names of tests begin with the rule or with the id of
//! the scenario of the specification.

mod admin;
mod conversion;
mod join;
mod rebalance;
mod refused;
mod restart;
mod static_members;
mod sync;

use bytes::Bytes;
use wire::messages::describe_groups_response::DescribedGroup;
use wire::messages::heartbeat_request::HeartbeatRequest;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::join_group_response::JoinGroupResponse;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use wire::messages::list_groups_response::ListedGroup;
use wire::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use wire::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use wire::messages::sync_group_response::SyncGroupResponse;
use wire::{ErrorCode, KStr};

use crate::command::{Caller, Command};
use crate::outcome::Reply;
use crate::record::Record;
use crate::testing::{Answer, Bench, CallId, caller};

pub(super) const GROUP: &str = "g";
const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 20_000;

/// A bench and the requests of one group. Initial rebalances have no delay.
struct Rig {
    bench: Bench,
    /// Joins that were answered at once.
    early: Vec<(CallId, Answer)>,
}

/// A JoinGroup, version 9 unless said otherwise.
#[derive(Clone)]
struct J {
    version: i16,
    client: &'static str,
    request: JoinGroupRequest,
}

fn text(value: &str) -> KStr {
    KStr::copy(value)
}

fn j(member_id: &str) -> J {
    let request = JoinGroupRequest {
        group_id: text(GROUP),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: text(member_id),
        group_instance_id: None,
        protocol_type: text("consumer"),
        protocols: Vec::new(),
        reason: None,
    };
    let join = J { version: 9, client: "client", request };
    join.offering(&[("range", "meta")])
}

/// A static member that starts.
fn js(instance_id: &str) -> J {
    j("").instance(instance_id)
}

impl J {
    fn version(mut self, version: i16) -> J {
        self.version = version;
        self
    }

    fn client(mut self, client: &'static str) -> J {
        self.client = client;
        self
    }

    fn instance(mut self, instance_id: &str) -> J {
        self.request.group_instance_id = Some(text(instance_id));
        self
    }

    fn session(mut self, ms: i32) -> J {
        self.request.session_timeout_ms = ms;
        self
    }

    fn rebalance(mut self, ms: i32) -> J {
        self.request.rebalance_timeout_ms = ms;
        self
    }

    fn group(mut self, group_id: &str) -> J {
        self.request.group_id = text(group_id);
        self
    }

    fn kind(mut self, protocol_type: &str) -> J {
        self.request.protocol_type = text(protocol_type);
        self
    }

    fn offering(mut self, protocols: &[(&str, &str)]) -> J {
        let protocol = |(name, metadata): &(&str, &str)| JoinGroupRequestProtocol {
            name: text(name),
            metadata: Bytes::copy_from_slice(metadata.as_bytes()),
        };
        self.request.protocols = protocols.iter().map(protocol).collect();
        self
    }

    /// Subscribes to topics the way consumers do.
    fn reading(mut self, topics: &[&str]) -> J {
        self.request.protocols = vec![JoinGroupRequestProtocol { name: text("range"), metadata: subscription(topics) }];
        self
    }
}

/// Version 1 of a consumer's subscription: topics, no user data, no owned partitions.
fn subscription(topics: &[&str]) -> Bytes {
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    Bytes::from(bytes)
}

fn join_response(reply: Reply) -> JoinGroupResponse {
    match reply {
        Reply::JoinGroup(response) => *response,
        other => panic!("not an answer to JoinGroup: {other:?}"),
    }
}

fn sync_response(reply: Reply) -> SyncGroupResponse {
    match reply {
        Reply::SyncGroup(response) => *response,
        other => panic!("not an answer to SyncGroup: {other:?}"),
    }
}

fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code)
}

impl Rig {
    fn new() -> Rig {
        let mut bench = Bench::new();
        bench.configure(|config| config.classic_initial_rebalance_delay_ms = Some(0));
        Rig { bench, early: Vec::new() }
    }

    fn join_command(join: J) -> Command {
        let caller = Caller { client_id: text(join.client), ..caller(join.version) };
        Command::JoinGroup(caller, Box::new(join.request))
    }

    /// A join that is answered at once.
    #[track_caller]
    fn join(&mut self, join: J) -> JoinGroupResponse {
        join_response(self.bench.ask(Rig::join_command(join)))
    }

    /// A join that is answered now or later, see `answer`.
    #[track_caller]
    fn send_join(&mut self, join: J) -> CallId {
        let (id, answer) = self.bench.send(Rig::join_command(join));
        self.early.extend(answer.map(|answer| (id, answer)));
        id
    }

    /// The answer to a join, if it came.
    fn answer(&mut self, id: CallId) -> Option<Answer> {
        match self.early.iter().position(|(of, _)| *of == id) {
            Some(index) => Some(self.early.remove(index).1),
            None => self.bench.answer(id),
        }
    }

    /// The answer to a join, which has to be there.
    #[track_caller]
    fn joined(&mut self, id: CallId) -> JoinGroupResponse {
        let answer = self.answer(id).expect("the join is still open");
        join_response(answer.expect("the join was not served"))
    }

    /// A join that is answered as soon as timers that are due have fired.
    #[track_caller]
    fn join_soon(&mut self, join: J) -> JoinGroupResponse {
        let id = self.send_join(join);
        self.bench.advance(0);
        self.joined(id)
    }

    /// An id to join with.
    #[track_caller]
    fn new_id(&mut self) -> String {
        let response = self.join(j(""));
        assert_eq!(error(response.error_code), ErrorCode::MemberIdRequired);
        response.member_id.to_string()
    }

    fn sync_command(member_id: &str, generation_id: i32, shares: &[(&str, &str)]) -> Command {
        let share = |(member_id, assignment): &(&str, &str)| SyncGroupRequestAssignment {
            member_id: text(member_id),
            assignment: Bytes::copy_from_slice(assignment.as_bytes()),
        };
        let request = SyncGroupRequest {
            group_id: text(GROUP),
            generation_id,
            member_id: text(member_id),
            group_instance_id: None,
            protocol_type: Some(text("consumer")),
            protocol_name: Some(text("range")),
            assignments: shares.iter().map(share).collect(),
        };
        Command::SyncGroup(caller(5), Box::new(request))
    }

    #[track_caller]
    fn sync(&mut self, member_id: &str, generation: i32, shares: &[(&str, &str)]) -> SyncGroupResponse {
        sync_response(self.bench.ask(Rig::sync_command(member_id, generation, shares)))
    }

    #[track_caller]
    fn open_sync(&mut self, member_id: &str, generation: i32) -> CallId {
        self.bench.park(Rig::sync_command(member_id, generation, &[]))
    }

    #[track_caller]
    fn synced(&mut self, id: CallId) -> SyncGroupResponse {
        sync_response(self.bench.reply(id))
    }

    #[track_caller]
    fn sync_error(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        error(self.sync(member_id, generation, &[]).error_code)
    }

    #[track_caller]
    fn heartbeat(&mut self, member_id: &str, generation: i32) -> ErrorCode {
        self.heartbeat_as(member_id, None, generation)
    }

    #[track_caller]
    fn heartbeat_as(&mut self, member_id: &str, instance_id: Option<&str>, generation: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: text(GROUP),
            generation_id: generation,
            member_id: text(member_id),
            group_instance_id: instance_id.map(text),
        };
        match self.bench.ask(Command::Heartbeat(caller(4), Box::new(request))) {
            Reply::Heartbeat(response) => error(response.error_code),
            other => panic!("not an answer to Heartbeat: {other:?}"),
        }
    }

    /// LeaveGroup v4: the errors of the entries.
    #[track_caller]
    fn leave(&mut self, members: &[(&str, Option<&str>)]) -> Vec<ErrorCode> {
        let identity = |(member_id, instance_id): &(&str, Option<&str>)| MemberIdentity {
            member_id: text(member_id),
            group_instance_id: instance_id.map(text),
            reason: None,
        };
        let request = LeaveGroupRequest {
            group_id: text(GROUP),
            members: members.iter().map(identity).collect(),
            ..Default::default()
        };
        match self.bench.ask(Command::LeaveGroup(caller(4), Box::new(request))) {
            Reply::LeaveGroup(response) => {
                assert_eq!(response.error_code, 0);
                let echoed = response.members.iter().map(|m| (&m.member_id, &m.group_instance_id));
                let given: Vec<_> = members.iter().map(|(m, i)| (text(m), i.map(text))).collect();
                assert!(echoed.eq(given.iter().map(|(m, i)| (m, i))), "each entry is echoed");
                response.members.iter().map(|m| error(m.error_code)).collect()
            }
            other => panic!("not an answer to LeaveGroup: {other:?}"),
        }
    }

    #[track_caller]
    fn describe_version(&mut self, api_version: i16) -> DescribedGroup {
        let command = Command::DescribeGroup { caller: caller(api_version), group_id: text(GROUP) };
        match self.bench.ask(command) {
            Reply::DescribeGroup(described) => *described,
            other => panic!("not an answer to DescribeGroups: {other:?}"),
        }
    }

    #[track_caller]
    fn describe(&mut self) -> DescribedGroup {
        self.describe_version(6)
    }

    #[track_caller]
    fn state(&mut self) -> String {
        self.describe().group_state.to_string()
    }

    /// Ids of the members, ascending.
    #[track_caller]
    fn member_ids(&mut self) -> Vec<String> {
        let described = self.describe();
        described.members.iter().map(|m| m.member_id.to_string()).collect()
    }

    #[track_caller]
    fn list(&mut self, states: &[&str], types: &[&str]) -> Vec<ListedGroup> {
        let command = Command::ListGroups {
            states: states.iter().map(|s| text(s)).collect(),
            types: types.iter().map(|t| text(t)).collect(),
        };
        match self.bench.ask(command) {
            Reply::ListGroups(listed) => listed,
            other => panic!("not an answer to ListGroups: {other:?}"),
        }
    }

    /// OffsetCommit v9 to partition 0 of topic "t".
    #[track_caller]
    fn commit(&mut self, member_id: &str, instance_id: Option<&str>, generation: i32) -> ErrorCode {
        let request = OffsetCommitRequest {
            group_id: text(GROUP),
            generation_id_or_member_epoch: generation,
            member_id: text(member_id),
            group_instance_id: instance_id.map(text),
            topics: vec![OffsetCommitRequestTopic {
                name: text("t"),
                partitions: vec![OffsetCommitRequestPartition::default()],
                ..Default::default()
            }],
            ..Default::default()
        };
        match self.bench.ask(Command::OffsetCommit(caller(9), Box::new(request))) {
            Reply::OffsetCommit(response) => error(response.topics[0].partitions[0].error_code),
            other => panic!("not an answer to OffsetCommit: {other:?}"),
        }
    }

    /// A group of dynamic members in CompletingRebalance, generation 1. The first of them leads.
    #[track_caller]
    fn joined_group(&mut self, members: usize) -> Vec<String> {
        let ids: Vec<String> = (0..members).map(|_| self.new_id()).collect();
        let joins: Vec<_> = ids.iter().map(|id| self.send_join(j(id))).collect();
        self.bench.advance(0);
        for join in joins {
            let response = self.joined(join);
            assert_eq!((response.error_code, response.generation_id), (0, 1));
            assert_eq!(response.leader, *ids[0]);
        }
        ids
    }

    /// The same, Stable. Each member is assigned its own id.
    #[track_caller]
    fn stable_group(&mut self, members: usize) -> Vec<String> {
        let ids = self.joined_group(members);
        self.assign(&ids, 1);
        ids
    }

    /// All members sync, the first one as the leader.
    #[track_caller]
    fn assign(&mut self, ids: &[String], generation: i32) {
        let shares: Vec<(&str, &str)> = ids.iter().map(|id| (&**id, &**id)).collect();
        assert_eq!(self.sync(&ids[0], generation, &shares).error_code, 0);
        for id in &ids[1..] {
            assert_eq!(self.sync(id, generation, &[]).assignment, *id.as_bytes());
        }
        self.bench.records();
    }

    /// A static member alone in a stable group of generation 1; returns its id. It is assigned "X1".
    #[track_caller]
    fn stable_static(&mut self, join: J) -> String {
        let response = self.join_soon(join);
        assert_eq!((response.error_code, response.generation_id), (0, 1));
        let id = response.member_id.to_string();
        assert_eq!(self.sync(&id, 1, &[(&id, "X1")]).error_code, 0);
        self.bench.records();
        id
    }

    /// The group records written since the last look; `None` is a tombstone.
    fn group_records(&mut self) -> Vec<Option<wire::messages::group_metadata_value::GroupMetadataValue>> {
        let records = self.bench.records().into_iter();
        let group = records.filter_map(|record| match record {
            Record::GroupMetadata(_, value) => Some(value),
            _ => None,
        });
        group.collect()
    }
}
