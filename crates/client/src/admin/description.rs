//! What a group is made of, the same for all protocols as far as it goes.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use wire::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use wire::messages::consumer_group_describe_response as modern;
use wire::messages::consumer_protocol_assignment::ConsumerProtocolAssignment;
use wire::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use wire::messages::describe_groups_request::DescribeGroupsRequest;
use wire::messages::describe_groups_response as classic;
use wire::messages::streams_group_describe_request::StreamsGroupDescribeRequest;
use wire::messages::streams_group_describe_response as streams;
use wire::{ApiKey, Bytes, ErrorCode, KStr, Message, Reader, partition_of};

use super::{TopicPartition, topics};
use crate::error::ClientError;
use crate::router::Client;

/// Its partitions are where groups live.
const COORDINATOR_TOPIC: &str = "__consumer_offsets";

/// The protocol of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    Classic,
    Consumer,
    Streams,
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupKind::Classic => "classic",
            GroupKind::Consumer => "consumer",
            GroupKind::Streams => "streams",
        })
    }
}

/// A group as its coordinator sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupDescription {
    pub group: String,
    #[serde(rename = "type")]
    pub kind: GroupKind,
    pub state: String,
    /// `host:port`.
    pub coordinator: String,
    /// Of `__consumer_offsets`, where the group lives.
    pub coordinator_partition: Option<i32>,
    /// The broker's assignor, or the protocol that classic members agreed on.
    pub assignor: Option<String>,
    /// `None` for classic groups, which do not show their generation.
    pub group_epoch: Option<i32>,
    pub assignment_epoch: Option<i32>,
    pub members: Vec<Member>,
    pub streams: Option<StreamsGroup>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Member {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub host: String,
    pub rack: Option<String>,
    pub epoch: Option<i32>,
    /// A member that still speaks the classic protocol in a group that does not.
    pub is_classic: bool,
    pub subscription: Vec<String>,
    pub subscription_regex: Option<String>,
    /// Empty for members of streams groups, which have tasks.
    pub assignment: Vec<TopicPartition>,
    pub target: Vec<TopicPartition>,
    pub streams: Option<StreamsMember>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamsMember {
    pub process_id: String,
    pub topology_epoch: i32,
    /// `host:port` for interactive queries.
    pub endpoint: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub tasks: Tasks,
    pub target: Tasks,
    /// What the member has reported of tasks that it restores or keeps warm.
    pub progress: Vec<TaskProgress>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    pub subtopology: String,
    pub partition: i32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.subtopology, self.partition)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Tasks {
    pub active: Vec<TaskId>,
    pub standby: Vec<TaskId>,
    pub warmup: Vec<TaskId>,
}

/// How far the state of a task is restored, in changelog records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskProgress {
    pub task: TaskId,
    pub offset: i64,
    pub end_offset: Option<i64>,
}

impl TaskProgress {
    /// Records still to restore.
    pub fn lag(&self) -> Option<i64> {
        self.end_offset.map(|end| end.saturating_sub(self.offset).max(0))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamsGroup {
    pub topology_epoch: Option<i32>,
    pub subtopologies: Vec<Subtopology>,
    /// Stores that every instance has whole, each with its source topics.
    pub global_stores: Vec<Vec<Node>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subtopology {
    pub id: String,
    pub source_topics: Vec<String>,
    pub repartition_source_topics: Vec<String>,
    pub repartition_sink_topics: Vec<String>,
    pub changelog_topics: Vec<String>,
    /// The processing graph, if the clients have described it (KIP-1331); empty otherwise.
    pub nodes: Vec<Node>,
}

/// A node of the processing graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    pub name: String,
    /// `source`, `processor` or `sink`.
    pub kind: &'static str,
    /// What a source reads or a sink writes.
    pub topics: Vec<String>,
    pub stores: Vec<String>,
    pub successors: Vec<String>,
}

/// Asks in each protocol in turn, since a group id does not tell which one it is. Fails with GROUP_ID_NOT_FOUND.
pub async fn describe(client: &mut Client, group_id: &str) -> Result<GroupDescription, ClientError> {
    let mut description = describe_any(client, group_id).await?;
    let offsets = topics::find(client, &[COORDINATOR_TOPIC]).await?.remove(COORDINATOR_TOPIC);
    let partitions = offsets.map_or(0, |topic| topic.partitions.len() as u32);
    description.coordinator_partition = (partitions > 0).then(|| partition_of(group_id, partitions) as i32);
    Ok(description)
}

async fn describe_any(client: &mut Client, group_id: &str) -> Result<GroupDescription, ClientError> {
    let coordinator = client.coordinator(group_id).await?;
    if client.offers(ApiKey::StreamsGroupDescribe).await?
        && let Some(found) = describe_streams(client, group_id, &coordinator).await?
    {
        return Ok(found);
    }
    if client.offers(ApiKey::ConsumerGroupDescribe).await?
        && let Some(found) = describe_consumer(client, group_id, &coordinator).await?
    {
        return Ok(found);
    }
    describe_classic(client, group_id, &coordinator).await
}

/// `None` when the group is not of this protocol.
fn of_this_protocol(code: i16, message: Option<&KStr>) -> Result<bool, ClientError> {
    match ErrorCode::from_code(code) {
        ErrorCode::GroupIdNotFound => Ok(false),
        _ => ClientError::check(code, message.map(KStr::as_str)).map(|()| true),
    }
}

const NO_GROUP: ClientError = ClientError::Incomplete("the group is missing in the answer");

async fn describe_streams(
    client: &mut Client,
    group_id: &str,
    coordinator: &str,
) -> Result<Option<GroupDescription>, ClientError> {
    let version = client.at(coordinator).await?.version_of::<StreamsGroupDescribeRequest>()?;
    let request = StreamsGroupDescribeRequest {
        group_ids: vec![KStr::copy(group_id)],
        include_topology_description: version >= 1,
        ..Default::default()
    };
    let code = |response: &streams::StreamsGroupDescribeResponse| response.groups.first().map_or(0, |g| g.error_code);
    let response = client.call_coordinator(group_id, &request, code).await?;
    let group = response.groups.into_iter().next().ok_or(NO_GROUP)?;
    if !of_this_protocol(group.error_code, group.error_message.as_ref())? {
        return Ok(None);
    }
    Ok(Some(GroupDescription {
        group: group_id.to_owned(),
        kind: GroupKind::Streams,
        state: group.group_state.to_string(),
        coordinator: coordinator.to_owned(),
        coordinator_partition: None,
        assignor: text(group.assignor_name.as_ref()),
        group_epoch: Some(group.group_epoch),
        assignment_epoch: Some(group.assignment_epoch),
        members: group.members.iter().map(streams_member).collect(),
        streams: Some(streams_group(&group)),
    }))
}

fn streams_member(member: &streams::Member) -> Member {
    let ends: BTreeMap<TaskId, i64> =
        member.task_end_offsets.iter().map(|end| (task(&end.subtopology_id, end.partition), end.offset)).collect();
    let progress = member.task_offsets.iter().map(|at| {
        let task = task(&at.subtopology_id, at.partition);
        let end_offset = ends.get(&task).copied();
        TaskProgress { task, offset: at.offset, end_offset }
    });
    Member {
        member_id: member.member_id.to_string(),
        instance_id: text(member.instance_id.as_ref()),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        rack: text(member.rack_id.as_ref()),
        epoch: Some(member.member_epoch),
        is_classic: member.is_classic,
        subscription: Vec::new(),
        subscription_regex: None,
        assignment: Vec::new(),
        target: Vec::new(),
        streams: Some(StreamsMember {
            process_id: member.process_id.to_string(),
            topology_epoch: member.topology_epoch,
            endpoint: member.user_endpoint.as_ref().map(|endpoint| format!("{}:{}", endpoint.host, endpoint.port)),
            tags: member.client_tags.iter().map(|tag| (tag.key.to_string(), tag.value.to_string())).collect(),
            tasks: tasks(&member.assignment),
            target: tasks(&member.target_assignment),
            progress: progress.collect(),
        }),
    }
}

fn task(subtopology: &KStr, partition: i32) -> TaskId {
    TaskId { subtopology: subtopology.to_string(), partition }
}

fn tasks(assignment: &streams::Assignment) -> Tasks {
    let list = |ids: &[streams::TaskIds]| {
        let mut list: Vec<TaskId> = ids
            .iter()
            .flat_map(|ids| ids.partitions.iter().map(|partition| task(&ids.subtopology_id, *partition)))
            .collect();
        list.sort();
        list
    };
    Tasks {
        active: list(&assignment.active_tasks),
        standby: list(&assignment.standby_tasks),
        warmup: list(&assignment.warmup_tasks),
    }
}

fn streams_group(group: &streams::DescribedGroup) -> StreamsGroup {
    let described = group.topology_description.as_ref();
    let nodes_of = |id: &KStr| {
        let found =
            described.into_iter().flat_map(|d| &d.subtopologies).find(|described| described.subtopology_id == *id);
        found.map(|found| found.nodes.iter().map(node).collect()).unwrap_or_default()
    };
    let names = |topics: &[streams::TopicInfo]| topics.iter().map(|topic| topic.name.to_string()).collect();
    let subtopologies = group.topology.iter().flat_map(|topology| topology.subtopologies.iter().flatten());
    StreamsGroup {
        topology_epoch: group.topology.as_ref().map(|topology| topology.epoch),
        subtopologies: subtopologies
            .map(|subtopology| Subtopology {
                id: subtopology.subtopology_id.to_string(),
                source_topics: texts(&subtopology.source_topics),
                repartition_source_topics: names(&subtopology.repartition_source_topics),
                repartition_sink_topics: texts(&subtopology.repartition_sink_topics),
                changelog_topics: names(&subtopology.state_changelog_topics),
                nodes: nodes_of(&subtopology.subtopology_id),
            })
            .collect(),
        global_stores: described
            .into_iter()
            .flat_map(|described| &described.global_stores)
            .map(|store| vec![node(&store.source), node(&store.processor)])
            .collect(),
    }
}

fn node(node: &streams::TopologyDescriptionNode) -> Node {
    let mut topics = texts(&node.source_topics);
    topics.extend(text(node.sink_topic.as_ref()));
    Node {
        name: node.name.to_string(),
        kind: match node.node_type {
            1 => "source",
            3 => "sink",
            _ => "processor",
        },
        topics,
        stores: texts(&node.stores),
        successors: texts(&node.successors),
    }
}

async fn describe_consumer(
    client: &mut Client,
    group_id: &str,
    coordinator: &str,
) -> Result<Option<GroupDescription>, ClientError> {
    let request = ConsumerGroupDescribeRequest { group_ids: vec![KStr::copy(group_id)], ..Default::default() };
    let code = |response: &modern::ConsumerGroupDescribeResponse| response.groups.first().map_or(0, |g| g.error_code);
    let response = client.call_coordinator(group_id, &request, code).await?;
    let group = response.groups.into_iter().next().ok_or(NO_GROUP)?;
    if !of_this_protocol(group.error_code, group.error_message.as_ref())? {
        return Ok(None);
    }
    let member = |member: &modern::Member| Member {
        member_id: member.member_id.to_string(),
        instance_id: text(member.instance_id.as_ref()),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        rack: text(member.rack_id.as_ref()),
        epoch: Some(member.member_epoch),
        is_classic: member.member_type == 0,
        subscription: texts(&member.subscribed_topic_names),
        subscription_regex: text(member.subscribed_topic_regex.as_ref()).filter(|regex| !regex.is_empty()),
        assignment: partitions(&member.assignment),
        target: partitions(&member.target_assignment),
        streams: None,
    };
    Ok(Some(GroupDescription {
        group: group_id.to_owned(),
        kind: GroupKind::Consumer,
        state: group.group_state.to_string(),
        coordinator: coordinator.to_owned(),
        coordinator_partition: None,
        assignor: Some(group.assignor_name.to_string()),
        group_epoch: Some(group.group_epoch),
        assignment_epoch: Some(group.assignment_epoch),
        members: group.members.iter().map(member).collect(),
        streams: None,
    }))
}

fn partitions(assignment: &modern::Assignment) -> Vec<TopicPartition> {
    let topics = assignment.topic_partitions.iter();
    sorted(topics.flat_map(|topic| topic.partitions.iter().map(|p| TopicPartition::new(&topic.topic_name, *p))))
}

async fn describe_classic(
    client: &mut Client,
    group_id: &str,
    coordinator: &str,
) -> Result<GroupDescription, ClientError> {
    let request = DescribeGroupsRequest { groups: vec![KStr::copy(group_id)], ..Default::default() };
    let code = |response: &classic::DescribeGroupsResponse| response.groups.first().map_or(0, |g| g.error_code);
    let response = client.call_coordinator(group_id, &request, code).await?;
    let group = response.groups.into_iter().next().ok_or(NO_GROUP)?;
    ClientError::check(group.error_code, group.error_message.as_deref())?;
    // Brokers before version 6 of this API have no error for a group that is not there.
    if &*group.group_state == "Dead" {
        let message = Some(format!("group {group_id} not found"));
        return Err(ClientError::Kafka { code: ErrorCode::GroupIdNotFound, message });
    }
    let is_consumer = &*group.protocol_type == "consumer";
    let member = |member: &classic::DescribedGroupMember| {
        let (subscription, assignment) = match is_consumer {
            true => (subscription_of(&member.member_metadata), assignment_of(&member.member_assignment)),
            false => Default::default(),
        };
        Member {
            member_id: member.member_id.to_string(),
            instance_id: text(member.group_instance_id.as_ref()),
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
            rack: None,
            epoch: None,
            is_classic: true,
            subscription,
            subscription_regex: None,
            target: assignment.clone(),
            assignment,
            streams: None,
        }
    };
    Ok(GroupDescription {
        group: group_id.to_owned(),
        kind: GroupKind::Classic,
        state: group.group_state.to_string(),
        coordinator: coordinator.to_owned(),
        coordinator_partition: None,
        assignor: Some(group.protocol_data.to_string()).filter(|name| !name.is_empty()),
        group_epoch: None,
        assignment_epoch: None,
        members: group.members.iter().map(member).collect(),
        streams: None,
    })
}

/// A message that clients exchange through the coordinator, with its version before it. What cannot be read counts as
/// nothing: it is the client's, and the rest of the description is still of use.
fn embedded<M: Message>(bytes: &Bytes) -> Option<M> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16().ok()?;
    M::decode(&mut reader, version.clamp(M::MIN_VERSION, M::MAX_VERSION)).ok()
}

fn subscription_of(metadata: &Bytes) -> Vec<String> {
    embedded::<ConsumerProtocolSubscription>(metadata).map(|found| texts(&found.topics)).unwrap_or_default()
}

fn assignment_of(assignment: &Bytes) -> Vec<TopicPartition> {
    let found = embedded::<ConsumerProtocolAssignment>(assignment).unwrap_or_default();
    let topics = found.assigned_partitions.iter();
    sorted(topics.flat_map(|topic| topic.partitions.iter().map(|p| TopicPartition::new(&topic.topic, *p))))
}

fn sorted(partitions: impl Iterator<Item = TopicPartition>) -> Vec<TopicPartition> {
    let mut partitions: Vec<_> = partitions.collect();
    partitions.sort();
    partitions
}

fn text(text: Option<&KStr>) -> Option<String> {
    text.map(KStr::to_string)
}

fn texts(texts: &[KStr]) -> Vec<String> {
    texts.iter().map(KStr::to_string).collect()
}
