//! What the coordinator answers: checked, and sent back.

use coordinator::assign::TaskId;
use coordinator::runtime::Unavailable;
use coordinator::{Command, Reply};
use wire::KStr;

use crate::broker::{Answered, Call};
use crate::checkers::{commits, fencing};
use crate::classic_assignor;
use crate::event::{FlightNo, MemberNo};
use crate::member::Answer;
use crate::network::Request;
use crate::world::World;

/// As the server answers then.
fn unavailable(why: &Unavailable) -> Answer {
    Answer::Unavailable(match why {
        Unavailable::Loading => 14,
        Unavailable::Refused(_) => 15,
        Unavailable::NotCoordinator => 16,
    })
}

impl World {
    pub(crate) fn reply(&mut self, (call, reply): Answered) -> Result<(), String> {
        match (call, reply) {
            (Call::Heartbeat { member, flight, at_ms, due, member_id, epoch }, reply) => {
                if let Ok(reply) = &reply {
                    fencing::check(due, &member_id, reply)?;
                }
                if let Ok(Reply::StreamsGroupHeartbeat(response)) = &reply
                    && response.error_code == 0
                    && epoch >= 0
                {
                    self.was_seen(member, &member_id, at_ms);
                }
                let answer = match reply {
                    Ok(Reply::StreamsGroupHeartbeat(response)) => Answer::Heartbeat(response),
                    Ok(other) => return Err(format!("a heartbeat was answered with {other:?}")),
                    Err(why) => unavailable(&why),
                };
                self.check_told(member, &answer)?;
                self.send_back(member, flight, answer);
                Ok(())
            }
            (Call::Request { member, flight, .. }, Err(why)) => {
                self.send_back(member, flight, unavailable(&why));
                Ok(())
            }
            (Call::Request { member, flight, at_ms, due, member_id, generation }, Ok(reply)) => {
                let answer = Answer::Reply(Box::new(reply.clone()));
                let checked = fencing::check(due, &member_id, &reply)
                    .and_then(|()| self.check_reply(member, &member_id, generation, at_ms, &reply));
                self.send_back(member, flight, answer);
                checked
            }
            (Call::Commit { group_id, member_id, due, offsets }, Ok(Reply::OffsetCommit(response))) => {
                self.note(format_args!("{member_id} commits, to be accepted: {due:?}"));
                commits::check_durable(self.broker.durable.group(&group_id), &offsets, &response)?;
                due.map_or(Ok(()), |due| commits::check(due, &member_id, &response))
            }
            (Call::Commit { .. }, Ok(other)) => Err(format!("a commit was answered with {other:?}")),
            (Call::Commit { .. } | Call::Aside, _) => Ok(()),
        }
    }

    fn send_back(&mut self, member: MemberNo, flight: FlightNo, answer: Answer) {
        self.note_answer(member, &answer);
        self.network.answer(self.now_ms, member, flight, answer, &mut self.rng, &mut self.queue);
    }

    fn was_seen(&mut self, member: MemberNo, member_id: &KStr, at_ms: u64) {
        let number = self.group_of(member);
        self.groups[number].was_seen(member_id, at_ms);
    }

    fn check_told(&self, member: MemberNo, answer: &Answer) -> Result<(), String> {
        let Answer::Heartbeat(response) = answer else { return Ok(()) };
        if response.error_code != 0 {
            return Ok(());
        }
        let lists = response.active_tasks.iter().flatten();
        let tasks = lists.flat_map(|list| {
            let task = |partition: &i32| TaskId { subtopology: list.subtopology_id.clone(), partition: *partition };
            list.partitions.iter().map(task)
        });
        self.check_granted(member, self.members[member].id(), response.member_epoch, tasks)
    }

    /// What a member is told has to survive a crash: the log shows durably that it had this epoch, and these tasks with it. By
    /// the time that this is durable the member may have moved on, even left, with another request on its way.
    fn check_granted(
        &self,
        member: MemberNo,
        id: &KStr,
        epoch: i32,
        mut tasks: impl Iterator<Item = TaskId>,
    ) -> Result<(), String> {
        if epoch < 0 {
            return Ok(());
        }
        let durable = self.broker.durable.group(&self.groups[self.group_of(member)].id);
        let Some(granted) = durable.ever.get(id).and_then(|epochs| epochs.get(&epoch)) else {
            return Err(format!("{id} is told epoch {epoch}, which is not durable"));
        };
        match tasks.find(|task| !granted.contains(task)) {
            Some(task) => Err(format!("{id} is given {task:?}, which is not durable")),
            None => Ok(()),
        }
    }

    /// The same for consumers, whose joins and heartbeats it also counts as signs of life. A sync is none while the group is
    /// stable (C S-7).
    fn check_reply(
        &mut self,
        member: MemberNo,
        id: &KStr,
        generation: i32,
        at_ms: u64,
        reply: &Reply,
    ) -> Result<(), String> {
        let number = self.group_of(member);
        let now_ms = self.now_ms;
        let group = &mut self.groups[number];
        match reply {
            Reply::ConsumerGroupHeartbeat(response) if response.error_code == 0 => {
                if generation >= 0 {
                    group.was_seen(id, at_ms);
                }
                let topics = response.assignment.iter().flat_map(|assignment| &assignment.topic_partitions);
                let tasks: Vec<_> = topics
                    .flat_map(|topic| {
                        let subtopology = self.broker.topic_name(&topic.topic_id);
                        let task =
                            move |partition: &i32| TaskId { subtopology: subtopology.clone(), partition: *partition };
                        topic.partitions.iter().map(task)
                    })
                    .collect();
                self.check_granted(member, id, response.member_epoch, tasks.into_iter())
            }
            Reply::JoinGroup(response) if response.error_code == 0 => {
                group.classic.was_let_in(&response.member_id, response.generation_id, now_ms);
                Ok(())
            }
            Reply::Heartbeat(response) if [0, 27].contains(&response.error_code) => {
                group.classic.was_seen(id, at_ms);
                Ok(())
            }
            Reply::SyncGroup(response) if response.error_code == 0 => {
                let durable = self.broker.durable.group(&group.id);
                if durable.ever_assigned.contains(&(id.clone(), generation, response.assignment.clone())) {
                    return Ok(());
                }
                let given = classic_assignor::read_assignment(&response.assignment)?;
                let given: Vec<_> = coordinator::assign::tasks_of(&given).collect();
                self.check_granted(member, id, generation, given.into_iter())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn note_request(&mut self, member: MemberNo, request: &Request) {
        let Request::Command(command) = request else { return };
        let id = self.members[member].id().clone();
        match &**command {
            Command::ConsumerGroupHeartbeat(_, request) => {
                let owned = request.topic_partitions.as_ref().map(|topics| {
                    let each = topics
                        .iter()
                        .map(|topic| format!("{}:{:?}", self.broker.topic_name(&topic.topic_id), topic.partitions));
                    each.collect::<Vec<_>>().join(" ")
                });
                self.note(format_args!("{id} -> epoch {} owns {owned:?}", request.member_epoch));
            }
            Command::JoinGroup(_, request) => {
                let instance_id = &request.group_instance_id;
                self.note(format_args!("member {member} {} {instance_id:?} -> join", request.member_id));
            }
            Command::SyncGroup(_, request) => {
                let assigns = request.assignments.len();
                self.note(format_args!("{id} -> sync of {}, assigns {assigns}", request.generation_id));
            }
            Command::Heartbeat(_, request) => {
                self.note(format_args!("{} -> heartbeat of {}", request.member_id, request.generation_id));
            }
            _ => self.note(format_args!("{id} -> leave")),
        }
    }

    fn note_reply(&mut self, member: MemberNo, reply: &Reply) {
        let id = self.members[member].id().clone();
        match reply {
            Reply::ConsumerGroupHeartbeat(response) => {
                let given = response.assignment.as_ref().map(|assignment| {
                    let topics = assignment.topic_partitions.iter();
                    let each = topics
                        .map(|topic| format!("{}:{:?}", self.broker.topic_name(&topic.topic_id), topic.partitions));
                    each.collect::<Vec<_>>().join(" ")
                });
                let (error, epoch) = (response.error_code, response.member_epoch);
                let every_ms = response.heartbeat_interval_ms;
                self.note(format_args!("{id} <- error {error} epoch {epoch} every {every_ms} given {given:?}"));
            }
            Reply::JoinGroup(response) => self.note(format_args!(
                "member {member} {} <- joined with error {} generation {} leader {} of {}, skips {}",
                response.member_id,
                response.error_code,
                response.generation_id,
                response.leader,
                response.members.len(),
                response.skip_assignment
            )),
            Reply::SyncGroup(response) => {
                let given = classic_assignor::read_assignment(&response.assignment);
                self.note(format_args!("{id} <- synced with error {} given {given:?}", response.error_code));
            }
            Reply::Heartbeat(response) => self.note(format_args!("{id} <- error {}", response.error_code)),
            other => self.note(format_args!("{id} <- {other:?}")),
        }
    }

    fn note_answer(&mut self, member: MemberNo, answer: &Answer) {
        let id = self.members[member].id().clone();
        match answer {
            Answer::Unavailable(code) => self.note(format_args!("{id} <- unavailable {code}")),
            Answer::Reply(reply) => self.note_reply(member, reply),
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
