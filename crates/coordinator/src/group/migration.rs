//! What classic and consumer groups tell each other when one becomes the other (C section 12).
//!
//! `consumer` owns both conversions and everything that classic members do in a consumer group
//! (`consumer::classic_member`); `classic` sends requests there when the group is a consumer group with members, and
//! offers `snapshot`, `upgraded` and `downgraded`. Conversions of empty groups need none of this: whoever joins writes
//! the tombstones of the old group (`Group::tombstones`) before its own records (C J-3, K-8).

use bytes::Bytes;
use wire::KStr;

/// A classic group between the protocols.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub protocol_type: KStr,
    pub generation: i32,
    /// The protocol that was chosen; none while the first join phase runs.
    pub protocol: Option<KStr>,
    pub leader: Option<KStr>,
    /// In ascending order of ids.
    pub members: Vec<ClassicMember>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClassicMember {
    pub member_id: KStr,
    pub instance_id: Option<KStr>,
    pub client_id: KStr,
    pub client_host: KStr,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// Name and metadata, in the member's order of preference.
    pub protocols: Vec<(KStr, Bytes)>,
    /// From its last sync; empty if there was none.
    pub assignment: Bytes,
}
