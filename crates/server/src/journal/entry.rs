//! One entry of a journal: what happened, with number, time and words, as it is stored and answered (`docs/http-api.md`).

use coordinator::journal::{Event, Kind, Who};
use serde::{Deserialize, Serialize};

use super::story;

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Grows with each entry of the broker.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub group: String,
    pub protocol: String,
    pub kind: String,
    pub also: Vec<String>,
    pub who: Option<Member>,
    pub epoch: Option<Epochs>,
    pub topics: Vec<String>,
    pub moves: Vec<Move>,
    /// Number of moves, also of those that are not listed.
    pub moved: usize,
    pub took_ms: Option<u64>,
    pub waited_for: Vec<Waited>,
    pub detail: Option<String>,
    /// How many refusals of the same kind this is.
    pub times: u32,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub member_id: String,
    pub instance_id: Option<String>,
    pub client_id: String,
    pub host: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Epochs {
    pub old: i32,
    pub new: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub what: String,
    pub role: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waited {
    #[serde(flatten)]
    pub member: Member,
    pub ms: u64,
}

impl From<&Who> for Member {
    fn from(who: &Who) -> Self {
        Member {
            member_id: who.member_id.to_string(),
            instance_id: who.instance_id.as_ref().map(ToString::to_string),
            client_id: who.client_id.to_string(),
            host: who.host.to_string(),
        }
    }
}

impl Entry {
    pub fn new(seq: u64, event: &Event) -> Entry {
        let mut entry = Entry {
            seq,
            at_ms: event.at.wall_ms,
            group: event.group_id.to_string(),
            protocol: event.protocol.to_owned(),
            kind: event.kind.name().to_owned(),
            also: event.also.iter().map(|kind| kind.name().to_owned()).collect(),
            who: event.who.as_ref().map(Member::from),
            epoch: event.epoch.map(|(old, new)| Epochs { old, new }),
            topics: event.topics.iter().map(ToString::to_string).collect(),
            moves: event.moves.iter().map(Move::from).collect(),
            moved: event.moved,
            took_ms: event.took_ms,
            waited_for: event.waited_for.iter().map(|(who, ms)| Waited { member: who.into(), ms: *ms }).collect(),
            detail: event.detail.clone(),
            times: 1,
            text: String::new(),
        };
        entry.text = story::sentence(&entry);
        entry
    }

    /// Whether `next` is the same refusal once more.
    pub fn repeats(&self, next: &Entry) -> bool {
        self.is(Kind::Refused) && next.is(Kind::Refused) && self.who == next.who && self.detail == next.detail
    }

    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind.name()
    }
}

impl From<&coordinator::journal::Move> for Move {
    fn from(moved: &coordinator::journal::Move) -> Self {
        Move {
            what: moved.what.clone(),
            role: moved.role.name().to_owned(),
            from: moved.from.as_ref().map(ToString::to_string),
            to: moved.to.as_ref().map(ToString::to_string),
        }
    }
}
