//! Members of a streams group: what they said about themselves and what they are to run (S 2.1, 6.2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;

use super::error::Failure;
use crate::assign::{TaskId, TaskSet};
use crate::command::Caller;

/// Epoch of a static member that said it will be back (S 2.5.3).
pub(crate) const LEFT_FOR_NOW: i32 = -2;

/// Active tasks with the epoch at which each was assigned.
pub(crate) type ActiveTasks = BTreeMap<KStr, BTreeMap<i32, i32>>;

/// What a member said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub instance_id: Option<KStr>,
    pub rack_id: Option<KStr>,
    pub client_id: KStr,
    pub client_host: KStr,
    pub rebalance_timeout_ms: i32,
    /// -1 until the first join said it.
    pub topology_epoch: i32,
    pub process_id: KStr,
    /// Host and port for interactive queries.
    pub user_endpoint: Option<(KStr, u16)>,
    pub client_tags: BTreeMap<KStr, KStr>,
}

impl Default for Metadata {
    fn default() -> Self {
        Metadata {
            instance_id: None,
            rack_id: None,
            client_id: KStr::EMPTY,
            client_host: KStr::EMPTY,
            rebalance_timeout_ms: -1,
            topology_epoch: -1,
            process_id: KStr::EMPTY,
            user_endpoint: None,
            client_tags: BTreeMap::new(),
        }
    }
}

impl Metadata {
    /// The metadata after a join or heartbeat (S 2.2.3); `None` if nothing changed. Allocates only for a change.
    ///
    /// Fails with UNKNOWN_SERVER_ERROR for two tags with one key (S 1.3.4).
    pub(super) fn updated(
        &self,
        request: &StreamsGroupHeartbeatRequest,
        caller: &Caller,
    ) -> Result<Option<Metadata>, Failure> {
        let client_tags = request.client_tags.as_deref().map(tags).transpose()?;
        let joins = request.member_epoch == 0;
        let endpoint_kept = match &request.user_endpoint {
            None => !joins || self.user_endpoint.is_none(),
            Some(new) => self.user_endpoint.as_ref().is_some_and(|(host, port)| *host == new.host && *port == new.port),
        };
        let kept = same_or_absent(&request.instance_id, &self.instance_id)
            && same_or_absent(&request.rack_id, &self.rack_id)
            && (request.rebalance_timeout_ms == -1 || request.rebalance_timeout_ms == self.rebalance_timeout_ms)
            && request.topology.as_ref().is_none_or(|topology| topology.epoch == self.topology_epoch)
            && request.process_id.as_ref().is_none_or(|id| *id == self.process_id)
            && client_tags.as_ref().is_none_or(|tags| *tags == self.client_tags)
            && caller.client_id == self.client_id
            && caller.client_host == self.client_host
            && endpoint_kept;
        if kept {
            return Ok(None);
        }
        let mut new = self.clone();
        if request.instance_id.is_some() {
            new.instance_id.clone_from(&request.instance_id);
        }
        if request.rack_id.is_some() {
            new.rack_id.clone_from(&request.rack_id);
        }
        if request.rebalance_timeout_ms != -1 {
            new.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if let Some(topology) = &request.topology {
            new.topology_epoch = topology.epoch;
        }
        if let Some(process_id) = &request.process_id {
            new.process_id = process_id.clone();
        }
        if let Some(client_tags) = client_tags {
            new.client_tags = client_tags;
        }
        new.client_id = caller.client_id.clone();
        new.client_host = caller.client_host.clone();
        match &request.user_endpoint {
            Some(endpoint) => new.user_endpoint = Some((endpoint.host.clone(), endpoint.port)),
            None if joins => new.user_endpoint = None,
            None => {}
        }
        Ok(Some(new))
    }

    /// Whether the change from `self` to `new` calls for a new group epoch (S 2.2.4): any change of a dynamic member; of
    /// a static one only what the assignment depends on.
    pub(super) fn change_counts(&self, new: &Metadata, static_request: bool) -> bool {
        !static_request
            || self.topology_epoch != new.topology_epoch
            || self.rack_id != new.rack_id
            || self.client_tags != new.client_tags
            || self.process_id != new.process_id
    }
}

fn same_or_absent(new: &Option<KStr>, old: &Option<KStr>) -> bool {
    new.is_none() || new == old
}

fn tags(sent: &[wire::messages::streams_group_heartbeat_request::KeyValue]) -> Result<BTreeMap<KStr, KStr>, Failure> {
    let mut tags = BTreeMap::new();
    for tag in sent {
        if tags.insert(tag.key.clone(), tag.value.clone()).is_some() {
            return Err(Failure::unknown());
        }
    }
    Ok(tags)
}

/// States of a member (S 6.2). The numbers are those of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MemberState {
    #[default]
    Stable = 1,
    /// Has to give up its pending tasks before it moves on.
    UnrevokedTasks = 2,
    /// Waits for tasks that others still hold.
    UnreleasedTasks = 3,
    /// Written by a newer coordinator.
    Unknown = 127,
}

impl MemberState {
    pub(super) fn from_byte(byte: i8) -> MemberState {
        match byte {
            1 => MemberState::Stable,
            2 => MemberState::UnrevokedTasks,
            3 => MemberState::UnreleasedTasks,
            _ => MemberState::Unknown,
        }
    }
}

/// Tasks by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tasks {
    pub active: ActiveTasks,
    pub standby: TaskSet,
    pub warmup: TaskSet,
}

impl Tasks {
    pub(super) fn active_epoch(&self, subtopology: &str, partition: i32) -> Option<i32> {
        self.active.get(subtopology)?.get(&partition).copied()
    }

    /// The active tasks without their epochs.
    pub(super) fn active_set(&self) -> TaskSet {
        self.active.iter().map(|(id, partitions)| (id.clone(), partitions.keys().copied().collect())).collect()
    }

    /// Everything assigned counts as assigned at epoch 0 (S 2.5.3).
    pub(super) fn with_epochs_reset(&self) -> Tasks {
        let mut tasks = self.clone();
        for epochs in tasks.active.values_mut() {
            epochs.values_mut().for_each(|epoch| *epoch = 0);
        }
        tasks
    }
}

/// One member: hard state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    pub metadata: Arc<Metadata>,
    pub epoch: i32,
    /// The epoch before the last change of state or tasks (S 2.3.4).
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Arc<Tasks>,
    pub pending: Arc<Tasks>,
}

impl Member {
    /// S 2.3.3: the epoch of a join or heartbeat is the member's, or the one before it and a response was lost.
    pub(super) fn check_epoch(&self, epoch: i32, owned: Option<&Owned>) -> Result<(), Failure> {
        if epoch == 0 || epoch == self.epoch {
            return Ok(());
        }
        if epoch > self.epoch {
            return Err(Failure::fenced_epoch("greater", epoch, self.epoch));
        }
        let lost_response = epoch == self.previous_epoch && owned.is_some_and(|owned| owned.within(&self.assigned));
        if lost_response { Ok(()) } else { Err(Failure::fenced_epoch("smaller", epoch, self.epoch)) }
    }

    /// S 6.3.1: nothing to do until the target has another epoch.
    pub(super) fn is_settled_at(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }
}

/// The tasks that a member says it runs. Only complete ones count: all three lists were in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owned {
    pub active: BTreeSet<TaskId>,
    pub standby: BTreeSet<TaskId>,
    pub warmup: BTreeSet<TaskId>,
    /// A subtopology came twice in one list; an error once the tasks are looked at (S 1.3.5).
    pub ambiguous: bool,
}

impl Owned {
    pub(super) fn of(request: &StreamsGroupHeartbeatRequest) -> Option<Owned> {
        let lists = (request.active_tasks.as_ref()?, request.standby_tasks.as_ref()?, request.warmup_tasks.as_ref()?);
        let mut owned = Owned::default();
        for (sent, tasks) in [(lists.0, &mut owned.active), (lists.1, &mut owned.standby), (lists.2, &mut owned.warmup)]
        {
            let mut subtopologies = BTreeSet::new();
            for list in sent {
                owned.ambiguous |= !subtopologies.insert(&list.subtopology_id);
                tasks.extend(
                    list.partitions
                        .iter()
                        .map(|partition| TaskId { subtopology: list.subtopology_id.clone(), partition: *partition }),
                );
            }
        }
        Some(owned)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// Every owned task is assigned in the same role.
    fn within(&self, assigned: &Tasks) -> bool {
        self.active.iter().all(|task| assigned.active_epoch(&task.subtopology, task.partition).is_some())
            && self.standby.iter().all(|task| crate::assign::contains_task(&assigned.standby, task))
            && self.warmup.iter().all(|task| crate::assign::contains_task(&assigned.warmup, task))
    }
}
