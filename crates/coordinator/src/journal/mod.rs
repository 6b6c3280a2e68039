//! Why a group rebalanced: what a command did to a group, in terms of people (`docs/http-api.md`).
//!
//! Nothing here decides anything. After a command has run, [`observe`] compares its records with the state that they
//! will be applied to, and derives events: who came and went, which topics changed, what moved from whom to whom. What
//! records do not tell (the rebalance of a classic group is not logged) the handlers note in passing. A command that
//! writes nothing and refuses nothing costs a look at its reply. Time of day, order over all shards, keeping and
//! wording are the server's.

mod members;
mod moves;
mod observe;
mod soft;

use wire::KStr;

pub(crate) use members::{Identity, MemberRecords, Roster, identity};
pub(crate) use moves::Shift;
pub(crate) use observe::{Cause, Findings, observe, of_leave, settled};
pub(crate) use soft::Soft;

use crate::env::Moment;

/// One thing that happened to a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub at: Moment,
    pub group_id: KStr,
    /// `classic`, `consumer` or `streams`.
    pub protocol: &'static str,
    pub kind: Kind,
    /// What else happened with it, to the same member.
    pub also: Vec<Kind>,
    pub who: Option<Who>,
    /// The group's epoch, or generation, before and after.
    pub epoch: Option<(i32, i32)>,
    /// Topics that changed, by name.
    pub topics: Vec<KStr>,
    /// At most [`MAX_MOVES`].
    pub moves: Vec<Move>,
    /// How many there are.
    pub moved: usize,
    /// Since the first change that led here; for [`Kind::Stable`].
    pub took_ms: Option<u64>,
    /// The last members to arrive, with milliseconds since the first change; for [`Kind::Stable`].
    pub waited_for: Vec<(Who, u64)>,
    pub detail: Option<String>,
}

/// Moves that are kept of one event.
pub const MAX_MOVES: usize = 100;

/// A member, as people know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    pub member_id: KStr,
    pub instance_id: Option<KStr>,
    pub client_id: KStr,
    /// An address, without a slash before it.
    pub host: KStr,
}

/// A task or partition that one member loses or another gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// A task `SUBTOPOLOGY_PARTITION`, or a partition `TOPIC-PARTITION`.
    pub what: String,
    pub role: Role,
    pub from: Option<KStr>,
    pub to: Option<KStr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Active,
    Standby,
    Warmup,
    Partition,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Active => "active",
            Role::Standby => "standby",
            Role::Warmup => "warmup",
            Role::Partition => "partition",
        }
    }
}

macro_rules! kinds {
    ($($kind:ident = $name:literal,)*) => {
        /// What happened; `docs/http-api.md` says what each means.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($kind,)* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// As programs see it.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    MemberJoined = "member-joined",
    MemberLeft = "member-left",
    MemberAway = "member-away",
    MemberReturned = "member-returned",
    MemberRemoved = "member-removed",
    SessionExpired = "session-expired",
    TooSlow = "too-slow",
    SubscriptionChanged = "subscription-changed",
    MemberChanged = "member-changed",
    Rejoined = "rejoined",
    TopologyChanged = "topology-changed",
    TopicCreated = "topic-created",
    TopicDeleted = "topic-deleted",
    TopicGrew = "topic-grew",
    TopicsChanged = "topics-changed",
    ConfigChanged = "config-changed",
    AssignorChanged = "assignor-changed",
    WarmupProgress = "warmup-progress",
    Assigned = "assigned",
    Stable = "stable",
    Refused = "refused",
    Converted = "converted",
    Emptied = "emptied",
    Deleted = "deleted",
}

impl Event {
    pub(crate) fn new(at: Moment, group_id: &KStr, protocol: &'static str, kind: Kind) -> Event {
        Event {
            at,
            group_id: group_id.clone(),
            protocol,
            kind,
            also: Vec::new(),
            who: None,
            epoch: None,
            topics: Vec::new(),
            moves: Vec::new(),
            moved: 0,
            took_ms: None,
            waited_for: Vec::new(),
            detail: None,
        }
    }
}

impl Who {
    /// Out of what groups keep of a member; in memory of its own.
    pub(crate) fn new(member_id: &KStr, instance_id: Option<&KStr>, client_id: &KStr, client_host: &KStr) -> Who {
        Who {
            member_id: member_id.to_owned_detached(),
            instance_id: instance_id.map(KStr::to_owned_detached),
            client_id: client_id.to_owned_detached(),
            host: KStr::copy(client_host.trim_start_matches('/')),
        }
    }
}
