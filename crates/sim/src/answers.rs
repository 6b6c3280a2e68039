//! What the coordinator answers: checked, and sent back.

use coordinator::Reply;
use coordinator::assign::TaskId;
use coordinator::runtime::Unavailable;

use crate::broker::{Answered, Call};
use crate::checkers::commits;
use crate::event::MemberNo;
use crate::streams_member::Answer;
use crate::world::World;

impl World {
    pub(crate) fn reply(&mut self, (call, reply): Answered) -> Result<(), String> {
        match (call, reply) {
            (Call::Heartbeat { member, flight }, reply) => {
                let answer = match reply {
                    Ok(Reply::StreamsGroupHeartbeat(response)) => Answer::Heartbeat(response),
                    Ok(other) => return Err(format!("a heartbeat was answered with {other:?}")),
                    Err(Unavailable::Loading) => Answer::Unavailable(14),
                    Err(Unavailable::Refused(_)) => Answer::Unavailable(15),
                    Err(Unavailable::NotCoordinator) => Answer::Unavailable(16),
                };
                self.check_told(member, &answer)?;
                self.note_answer(member, &answer);
                self.network.answer(self.now_ms, member, flight, answer, &mut self.rng, &mut self.queue);
                Ok(())
            }
            (Call::Commit { member_id, due }, Ok(Reply::OffsetCommit(response))) => {
                self.note(format_args!("{member_id} commits, to be accepted: {due:?}"));
                due.map_or(Ok(()), |due| commits::check(due, &member_id, &response))
            }
            (Call::Commit { .. }, Ok(other)) => Err(format!("a commit was answered with {other:?}")),
            (Call::Commit { .. } | Call::Describe, _) => Ok(()),
        }
    }

    /// What a member is told has to survive a crash: the log shows durably that it had this epoch, and these tasks with it. By
    /// the time that this is durable the member may have moved on, even left, with another request on its way.
    fn check_told(&self, member: MemberNo, answer: &Answer) -> Result<(), String> {
        let Answer::Heartbeat(response) = answer else { return Ok(()) };
        if response.error_code != 0 || response.member_epoch < 0 {
            return Ok(());
        }
        let id = &self.members[member].id;
        let epoch = response.member_epoch;
        let Some(granted) = self.broker.durable.ever.get(id).and_then(|epochs| epochs.get(&epoch)) else {
            return Err(format!("{id} is told epoch {epoch}, which is not durable"));
        };
        for list in response.active_tasks.iter().flatten() {
            for partition in &list.partitions {
                let task = TaskId { subtopology: list.subtopology_id.clone(), partition: *partition };
                if !granted.contains(&task) {
                    return Err(format!("{id} is given {task:?}, which is not durable"));
                }
            }
        }
        Ok(())
    }

    fn note_answer(&mut self, member: MemberNo, answer: &Answer) {
        let id = self.members[member].id.clone();
        match answer {
            Answer::Unavailable(code) => self.note(format_args!("{id} <- unavailable {code}")),
            Answer::Heartbeat(response) => {
                let short = |lists: &Option<Vec<wire::messages::streams_group_heartbeat_response::TaskIds>>| {
                    lists.as_ref().map(|lists| {
                        let each = lists.iter().map(|list| format!("{}:{:?}", list.subtopology_id, list.partitions));
                        each.collect::<Vec<_>>().join(" ")
                    })
                };
                let status: Vec<_> = response.status.iter().flatten().map(|status| status.status_code).collect();
                self.note(format_args!(
                    "{id} <- error {} epoch {} every {} status {status:?} active {:?} standby {:?} warmup {:?}",
                    response.error_code,
                    response.member_epoch,
                    response.heartbeat_interval_ms,
                    short(&response.active_tasks),
                    short(&response.standby_tasks),
                    short(&response.warmup_tasks),
                ));
            }
        }
    }
}
