//! Fencing (S 2.3 to 2.5, C J-19, H-2, S-3, K-11 to K-13, G-9, G-11): who was replaced, was removed or is behind is refused, with the error
//! that its client knows, and who is in the group with the present epoch or generation is not.

use coordinator::{Command, Reply};
use wire::KStr;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;

use super::classic::Classic;
use super::mirror::Mirror;

/// What a request has to be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Rules that are no concern of this checker decide.
    Open,
    /// Success, or REBALANCE_IN_PROGRESS, which counts as a sign of life.
    Accepted,
    /// This error.
    Refused(i16),
}

const REBALANCE_IN_PROGRESS: i16 = 27;

use Due::{Accepted, Open, Refused};

/// What is due by what the log says, and what a classic group is, when the request arrives.
pub fn due(mirror: &Mirror, classic: &Classic, command: &Command) -> Due {
    match command {
        Command::ConsumerGroupHeartbeat(_, request) => consumer_heartbeat(mirror, request),
        Command::Heartbeat(_, request) => {
            let identity = (&request.member_id, request.group_instance_id.as_ref());
            of_generation(mirror, classic, identity, request.generation_id)
        }
        Command::SyncGroup(_, request) => {
            let identity = (&request.member_id, request.group_instance_id.as_ref());
            of_generation(mirror, classic, identity, request.generation_id)
        }
        Command::JoinGroup(_, request) if !request.member_id.is_empty() => {
            let identity = (&request.member_id, request.group_instance_id.as_ref());
            match identified(mirror, classic, identity) {
                // An id that was only handed out is no member yet.
                Refused(25) => Open,
                due @ Refused(_) => due,
                Accepted | Open => Open,
            }
        }
        _ => Open,
    }
}

/// The same for a member of a streams group.
pub fn due_to_stream(mirror: &Mirror, request: &StreamsGroupHeartbeatRequest) -> Due {
    let joins = request.member_epoch == 0;
    if mirror.group_epoch == 0 {
        return if joins { Open } else { Refused(69) };
    }
    let holder = request.instance_id.as_ref().map(|instance_id| mirror.holder(instance_id));
    let epoch_of = |member_id: &KStr| mirror.current.get(member_id).map_or(0, |current| current.epoch);
    match holder {
        Some(Some(holder)) if *holder != request.member_id => match joins {
            true if epoch_of(holder) == -2 => Open,
            true => Refused(111),
            false => Refused(82),
        },
        _ if joins => Open,
        Some(None) => Refused(25),
        _ => of_epoch(mirror, &request.member_id, request.member_epoch),
    }
}

/// # Errors
/// If the answer is another one.
pub fn check(due: Due, member_id: &KStr, reply: &Reply) -> Result<(), String> {
    let code = match reply {
        Reply::StreamsGroupHeartbeat(response) => response.error_code,
        Reply::ConsumerGroupHeartbeat(response) => response.error_code,
        Reply::Heartbeat(response) => response.error_code,
        Reply::SyncGroup(response) => response.error_code,
        Reply::JoinGroup(response) => response.error_code,
        _ => return Ok(()),
    };
    let holds = match due {
        Open => true,
        // A sync that waits may end with whatever happens to the group, or to the member.
        Accepted if matches!(reply, Reply::SyncGroup(_)) => true,
        Accepted => [0, REBALANCE_IN_PROGRESS].contains(&code),
        Refused(expected) => code == expected,
    };
    if holds { Ok(()) } else { Err(format!("a request of {member_id} has to be {due:?}, and is answered with {code}")) }
}

/// Whether the coordinator has let this one in. A member of a consumer group has to speak the classic protocol.
fn identified(mirror: &Mirror, classic: &Classic, (member_id, instance_id): (&KStr, Option<&KStr>)) -> Due {
    let members = if classic.exists() { classic.members() } else { &mirror.members };
    if let Some(instance_id) = instance_id {
        let holder = members.iter().find(|(_, instance)| instance.as_ref() == Some(instance_id));
        match holder {
            None => return Refused(25),
            Some((holder, _)) if holder != member_id => return Refused(82),
            Some(_) => {}
        }
    }
    let speaks_classic = classic.exists() || mirror.classic_members.contains(member_id);
    if members.contains_key(member_id) && speaks_classic { Accepted } else { Refused(25) }
}

fn of_generation(mirror: &Mirror, classic: &Classic, identity: (&KStr, Option<&KStr>), generation: i32) -> Due {
    let due = identified(mirror, classic, identity);
    if due != Accepted {
        return due;
    }
    let present = match classic.exists() {
        true => classic.generation(),
        false => mirror.current.get(identity.0).map_or(-1, |current| current.epoch),
    };
    if generation == present { Accepted } else { Refused(22) }
}

fn consumer_heartbeat(mirror: &Mirror, request: &ConsumerGroupHeartbeatRequest) -> Due {
    let is_consumer_group = mirror.group_epoch > 0;
    if !is_consumer_group {
        return if request.member_epoch == 0 { Open } else { Refused(69) };
    }
    let holder = request.instance_id.as_ref().map(|instance_id| mirror.holder(instance_id));
    match request.member_epoch {
        0 => match holder {
            // The place is taken, unless its owner left for now, or speaks the classic protocol.
            Some(Some(holder))
                if *holder != request.member_id
                    && !mirror.classic_members.contains(holder)
                    && mirror.current.get(holder).is_some_and(|current| current.epoch != -2) =>
            {
                Refused(111)
            }
            _ => Open,
        },
        epoch => match holder {
            Some(None) => Refused(25),
            Some(Some(holder)) if *holder != request.member_id => Refused(82),
            _ => of_epoch(mirror, &request.member_id, epoch),
        },
    }
}

/// A heartbeat with the epoch before the present one may be a repeated one; what the member owns decides.
fn of_epoch(mirror: &Mirror, member_id: &KStr, epoch: i32) -> Due {
    match mirror.current.get(member_id) {
        _ if !mirror.members.contains_key(member_id) => Refused(25),
        _ if epoch < 0 => Accepted,
        Some(current) if epoch == current.epoch => Accepted,
        Some(current) if epoch > current.epoch || epoch != current.previous_epoch => Refused(110),
        _ => Open,
    }
}
