//! What the application's topology looks like in detail (API 93, S 9.2, decision 15): kept in memory for describe and the
//! command line. After a failover it is asked for again.

use wire::messages::streams_group_describe_response as described;
use wire::messages::streams_group_topology_description_update_request as sent;
use wire::messages::streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse;
use wire::{ErrorCode, KStr};

use super::error::Failure;
use super::{Group, Soft};
use crate::command::Caller;
use crate::group::Group as AnyGroup;
use crate::outcome::Reply;
use crate::shard::Ctx;

/// A member that was asked gets so long before another one is.
const ASK_AGAIN_AFTER_MS: u64 = 30_000;
/// Bytes of names that a description may have.
const MAX_BYTES: usize = 1 << 20;
/// Bytes that one name costs besides its text.
const NAME_OVERHEAD: usize = 32;

/// Soft state.
#[derive(Debug)]
pub(super) enum Description {
    /// Somebody was asked for that of this topology epoch, at this time on the monotonic clock.
    Asked {
        topology_epoch: i32,
        at_ms: u64,
    },
    Stored {
        topology_epoch: i32,
        topology: described::TopologyDescription,
    },
    /// What was sent for this epoch was too large; it is not asked for again.
    Refused {
        topology_epoch: i32,
    },
}

/// What describe shows (S 9.1.7).
pub(super) struct Shown {
    pub status: i8,
    pub topology: Option<described::TopologyDescription>,
}

const NOT_REQUESTED: i8 = 0;
const NOT_STORED: i8 = 1;
const AVAILABLE: i8 = 3;

pub(super) fn described(group: &Group, soft: &Soft, requested: bool) -> Shown {
    if !requested {
        return Shown { status: NOT_REQUESTED, topology: None };
    }
    let epoch = group.topology.as_ref().map(|topology| topology.epoch);
    match &soft.description {
        Some(Description::Stored { topology_epoch, topology }) if Some(*topology_epoch) == epoch => {
            Shown { status: AVAILABLE, topology: Some(topology.clone()) }
        }
        _ => Shown { status: NOT_STORED, topology: None },
    }
}

/// Whether the answer to a heartbeat asks for the description (S 9.2.3): one member at a time.
pub(super) fn is_wanted(description: Option<&Description>, epoch: i32, now_ms: u64) -> bool {
    match description {
        Some(Description::Stored { topology_epoch, .. } | Description::Refused { topology_epoch }) => {
            *topology_epoch != epoch
        }
        Some(Description::Asked { topology_epoch, at_ms }) => {
            *topology_epoch != epoch || now_ms.saturating_sub(*at_ms) >= ASK_AGAIN_AFTER_MS
        }
        None => true,
    }
}

/// StreamsGroupTopologyDescriptionUpdate.
pub(crate) fn update_topology_description(
    ctx: &mut Ctx<'_, '_>,
    _caller: &Caller,
    request: &sent::StreamsGroupTopologyDescriptionUpdateRequest,
) {
    let failure = update(ctx, request).err();
    let response = StreamsGroupTopologyDescriptionUpdateResponse {
        error_code: failure.as_ref().map_or(0, |failure| failure.code.code()),
        error_message: failure.and_then(|failure| failure.message).map(|message| KStr::from(message.into_owned())),
        ..Default::default()
    };
    ctx.reply(Reply::StreamsTopologyDescriptionUpdate(Box::new(response)));
}

fn update(ctx: &mut Ctx<'_, '_>, request: &sent::StreamsGroupTopologyDescriptionUpdateRequest) -> Result<(), Failure> {
    if !ctx.env.config.broker.streams_protocol_enabled {
        return Err(Failure::bare(ErrorCode::UnsupportedVersion));
    }
    let (group_id, member_id) = (&request.group_id, &request.member_id);
    if member_id.is_empty() {
        return Err(Failure::invalid("MemberId can't be empty."));
    }
    if group_id.is_empty() {
        return Err(Failure::invalid("GroupId can't be empty."));
    }
    let group = match ctx.state.group(group_id) {
        Some(AnyGroup::Streams(group)) => group,
        Some(_) => return Err(Failure::not_found(format!("Group {group_id} is not a streams group."))),
        None => return Err(Failure::not_found(format!("Group {group_id} not found."))),
    };
    if !group.members.contains_key(member_id) {
        return Err(Failure::unknown_member(format!("Member {member_id} is not a member of group {group_id}.")));
    }
    let topology_epoch = group.topology.as_ref().map(|topology| topology.epoch);
    if topology_epoch != Some(request.topology_epoch) {
        return Err(Failure::invalid(format!(
            "The topology epoch {} is not the topology epoch of the group.",
            request.topology_epoch
        )));
    }
    let topology_epoch = request.topology_epoch;
    let Some(soft) = ctx.soft.streams.get_mut(group_id) else { return Ok(()) };
    let mut copy = Copy { left: MAX_BYTES };
    let Some(topology) = copy.topology(&request.topology_description) else {
        soft.description = Some(Description::Refused { topology_epoch });
        return Err(Failure::new(
            ErrorCode::StreamsTopologyDescriptionUpdateFailed,
            format!("The topology description is larger than {MAX_BYTES} bytes."),
        ));
    };
    soft.description = Some(Description::Stored { topology_epoch, topology });
    Ok(())
}

/// Copies a description out of its frame, up to a number of bytes.
struct Copy {
    left: usize,
}

impl Copy {
    fn topology(&mut self, sent: &sent::TopologyDescription) -> Option<described::TopologyDescription> {
        let subtopologies = sent.subtopologies.iter().map(|subtopology| {
            Some(described::TopologyDescriptionSubtopology {
                subtopology_id: self.name(&subtopology.subtopology_id)?,
                nodes: subtopology.nodes.iter().map(|node| self.node(node)).collect::<Option<_>>()?,
            })
        });
        let subtopologies = subtopologies.collect::<Option<_>>()?;
        let global_stores = sent.global_stores.iter().map(|store| {
            Some(described::TopologyDescriptionGlobalStore {
                source: self.node(&store.source)?,
                processor: self.node(&store.processor)?,
            })
        });
        let global_stores = global_stores.collect::<Option<_>>()?;
        Some(described::TopologyDescription { subtopologies, global_stores })
    }

    fn node(&mut self, node: &sent::TopologyDescriptionNode) -> Option<described::TopologyDescriptionNode> {
        Some(described::TopologyDescriptionNode {
            name: self.name(&node.name)?,
            node_type: node.node_type,
            source_topics: self.names(&node.source_topics)?,
            sink_topic: match &node.sink_topic {
                Some(topic) => Some(self.name(topic)?),
                None => None,
            },
            stores: self.names(&node.stores)?,
            successors: self.names(&node.successors)?,
        })
    }

    fn names(&mut self, names: &[KStr]) -> Option<Vec<KStr>> {
        names.iter().map(|name| self.name(name)).collect()
    }

    fn name(&mut self, name: &KStr) -> Option<KStr> {
        self.left = self.left.checked_sub(name.len() + NAME_OVERHEAD)?;
        Some(name.to_owned_detached())
    }
}
