//! What the records of one command say about members, where each member has records of its own (consumer and streams groups).

use std::collections::BTreeMap;

use wire::KStr;

use super::{Cause, Kind, Who};

/// What a group, or a record, keeps of who a member is.
pub(crate) trait Identity {
    fn instance_id(&self) -> Option<&KStr>;
    fn client_id(&self) -> &KStr;
    fn client_host(&self) -> &KStr;

    fn who(&self, member_id: &KStr) -> Who {
        Who::new(member_id, self.instance_id(), self.client_id(), self.client_host())
    }
}

/// [`Identity`] of a type that has the three as fields of these names.
macro_rules! identity {
    ($type:ty) => {
        impl $crate::journal::Identity for $type {
            fn instance_id(&self) -> Option<&wire::KStr> {
                self.instance_id.as_ref()
            }

            fn client_id(&self) -> &wire::KStr {
                &self.client_id
            }

            fn client_host(&self) -> &wire::KStr {
                &self.client_host
            }
        }
    };
}
pub(crate) use identity;

/// A group as it was before the records.
pub(crate) trait Roster {
    type Known: Identity;

    fn known(&self, member_id: &KStr) -> Option<&Self::Known>;
    fn members(&self) -> usize;
}

/// Records of members by what they are about. `V` is the value of a member's record.
pub(crate) struct MemberRecords<'a, V> {
    pub written: BTreeMap<&'a KStr, &'a V>,
    pub removed: Vec<&'a KStr>,
    pub away: Vec<&'a KStr>,
    pub arrived: Vec<&'a KStr>,
}

impl<V> Default for MemberRecords<'_, V> {
    fn default() -> Self {
        MemberRecords { written: BTreeMap::new(), removed: Vec::new(), away: Vec::new(), arrived: Vec::new() }
    }
}

impl<'a, V: Identity> MemberRecords<'a, V> {
    /// The member as it is now, else as it was.
    pub fn who<G: Roster>(&self, before: Option<&G>, member_id: &KStr) -> Who {
        match (self.written.get(member_id), before.and_then(|group| group.known(member_id))) {
            (Some(value), _) => value.who(member_id),
            (None, Some(known)) => known.who(member_id),
            (None, None) => Who { member_id: member_id.to_owned_detached(), ..Who::default() },
        }
    }

    /// The member whose place a new one takes.
    pub fn predecessor<G: Roster>(&self, before: Option<&G>, member_id: &KStr) -> Option<&'a KStr> {
        let instance_id = self.written.get(member_id)?.instance_id()?;
        let had_it = |old: &&&'a KStr| {
            let known = before.and_then(|group| group.known(old));
            known.is_some_and(|known| known.instance_id() == Some(instance_id))
        };
        self.removed.iter().find(had_it).copied()
    }

    /// Whose place is taken by somebody.
    pub fn replaced<G: Roster>(&self, before: Option<&G>) -> Vec<&'a KStr> {
        self.written.keys().filter_map(|id| self.predecessor(before, id)).collect()
    }

    /// A member that has come back, if that is what its record says.
    pub fn return_of<G: Roster>(&self, before: Option<&G>, member_id: &KStr) -> Option<Cause> {
        let old = self.predecessor(before, member_id)?;
        let same = old == member_id;
        let detail = if same { "under its own member id".to_owned() } else { format!("it was {old}") };
        Some(Cause::of(Kind::MemberReturned, self.who(before, member_id)).with_detail(detail))
    }

    /// Who left for good, and who for now.
    pub fn departures<G: Roster>(&self, before: Option<&G>) -> Vec<Cause> {
        let replaced = self.replaced(before);
        let left = self.gone().filter(|id| !replaced.contains(id)).map(|id| (Kind::MemberLeft, id));
        let away = self.away.iter().map(|id| (Kind::MemberAway, *id));
        left.chain(away).map(|(kind, id)| Cause::of(kind, self.who(before, id))).collect()
    }

    /// Whether the last member has left with these records.
    pub fn emptied<G: Roster>(&self, before: Option<&G>) -> bool {
        let gone = self.gone().count();
        before.is_some_and(|group| gone > 0 && gone == group.members() && self.written.is_empty())
    }

    pub fn arrivals<G: Roster>(&self, before: Option<&G>) -> Vec<Who> {
        self.arrived.iter().map(|id| self.who(before, id)).collect()
    }

    fn gone(&self) -> impl Iterator<Item = &'a KStr> {
        self.removed.iter().copied().filter(|id| !self.written.contains_key(*id))
    }
}
