//! The interval that a member of a streams group is told (decision 13). The sums are in `group::interval`.

use super::Group;
use super::configure::{Configured, StatusCode};
use super::member::{Member, MemberState};
use super::settings::Settings;
use crate::group::interval;

/// What a member may be waiting for, after its request.
pub(super) struct Waits<'a> {
    pub group: Option<&'a Group>,
    pub member: &'a Member,
    pub configured: &'a Configured,
    pub group_epoch: i32,
    pub assignment_epoch: i32,
    /// This member warms a task up.
    pub warms_up: bool,
    /// Members of the whole broker.
    pub members_total: u32,
}

impl Waits<'_> {
    /// Whether the next heartbeat of this member may bring something. One that has to revoke reports by itself.
    fn is_waiting(&self) -> bool {
        self.group_epoch > self.assignment_epoch
            || !self.configured.is_ready()
            || self.member.state == MemberState::UnreleasedTasks
            || (self.member.state == MemberState::Stable && self.member.epoch != self.assignment_epoch)
            || self.warms_up
    }

    /// Members of the group that wait, this one included; an estimate.
    fn waiting_members(&self) -> usize {
        let Some(group) = self.group else { return 1 };
        let all = self.group_epoch > self.assignment_epoch || !self.configured.is_ready();
        if all { group.members.len() } else { group.unsettled() }.max(1)
    }
}

/// The interval of the answer, and since when the member has been waiting, both for the next time.
pub(super) fn choose(
    settings: &Settings<'_>,
    waits: &Waits<'_>,
    waiting_since: Option<u64>,
    now_ms: u64,
) -> (i32, Option<u64>) {
    let waiting_since = waits.is_waiting().then(|| waiting_since.unwrap_or(now_ms));
    if let Some(configured) = settings.configured_heartbeat_ms() {
        return (configured, waiting_since);
    }
    // A client makes its timer for this status once, from the first answer that has it, and gives up when it ends.
    let status = waits.configured.status.as_ref().map(|status| status.code);
    if status == Some(StatusCode::MissingSourceTopics) {
        return (settings.full_heartbeat_ms(), waiting_since);
    }
    let members = waits.members_total.max(waits.group.map_or(1, |group| group.members.len() as u32));
    let interval_ms = match waiting_since {
        None => interval::steady_ms(settings.broker(), members),
        Some(since_ms) => {
            let waited_ms = now_ms.saturating_sub(since_ms);
            interval::hurried_ms(settings.broker(), members, waits.waiting_members() as u32, waited_ms)
        }
    };
    (interval_ms, waiting_since)
}
