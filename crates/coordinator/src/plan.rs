//! The dry run: what a change would lead to, worked out by the code that would carry it out, on a copy of the group.
//!
//! The copy gets the records that the change would write (members that come or go), the topics and the configuration as
//! they would be, and the group's own assignor then assigns it. Nothing is written and no soft state is touched. How
//! members get to their targets is not played through: the plan has where everything stands at once and in the end.

use std::sync::Arc;

use wire::{ErrorCode, KStr};

use crate::config::GroupConfigs;
use crate::group::{self, Group};
use crate::journal::Who;
use crate::outcome::Reply;
use crate::shard::Ctx;
use crate::topics::TopicImage;

/// What is supposed to change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Members like those that are there, each a process of its own.
    pub add_members: usize,
    /// Member ids.
    pub remove_members: Vec<KStr>,
    /// All topics, as they would be.
    pub topics: Arc<TopicImage>,
    /// All configuration, as it would be.
    pub config: Arc<GroupConfigs>,
    /// Consumer groups: what their members would ask for. Streams groups have it in their configuration.
    pub consumer_assignor: Option<KStr>,
}

/// Tasks `SUBTOPOLOGY_PARTITION` by role, or partitions `TOPIC-PARTITION`, all of which are active.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub active: Vec<String>,
    pub standby: Vec<String>,
    pub warmup: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stays,
    Added,
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMember {
    pub who: Who,
    pub fate: Fate,
    /// Its target now.
    pub before: Work,
    /// The target that the change leads to at once; none for who goes.
    pub after: Option<Work>,
    /// The one in the end, when what is held back has been done.
    pub finally: Option<Work>,
}

/// A member gets a task whose state it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    pub what: String,
    pub member_id: KStr,
    /// Records that it has to read, if offsets were reported.
    pub behind: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `consumer` or `streams`.
    pub protocol: &'static str,
    /// Of the group, now.
    pub epoch: i32,
    pub assignor: KStr,
    /// By member id.
    pub members: Vec<PlannedMember>,
    pub restores: Vec<Restore>,
    /// Why nothing can be assigned.
    pub problem: Option<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoPlan {
    /// GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, or INVALID_REQUEST for a group that cannot be planned for.
    pub error: ErrorCode,
    pub message: String,
}

impl NoPlan {
    pub(crate) fn new(error: ErrorCode, message: impl Into<String>) -> NoPlan {
        NoPlan { error, message: message.into() }
    }

    pub(crate) fn unknown_member(member_id: &KStr) -> NoPlan {
        NoPlan::new(ErrorCode::UnknownMemberId, format!("there is no member {member_id}"))
    }
}

/// Id of the nth member that would be added, from 1 on.
pub(crate) fn new_member_id(number: usize) -> KStr {
    KStr::from(format!("new-{number}"))
}

pub(crate) fn plan(ctx: &mut Ctx<'_, '_>, group_id: &KStr, change: &Change) {
    let planned = match ctx.state.group(group_id) {
        None => Err(NoPlan::new(ErrorCode::GroupIdNotFound, format!("there is no group {group_id}"))),
        Some(Group::Classic(_)) => Err(NoPlan::new(
            ErrorCode::InvalidRequest,
            "members of a classic group assign its partitions themselves, so there is no plan for it",
        )),
        Some(Group::Consumer(group)) => group::consumer::plan(group, group_id, change),
        Some(Group::Streams(group)) => {
            let empty = group::streams::Soft::default();
            let soft = ctx.soft.streams.get(group_id).unwrap_or(&empty);
            group::streams::plan(group, soft, group_id, change, ctx.at)
        }
    };
    ctx.reply(Reply::Plan(Box::new(planned)));
}
