//! The end of a run: nothing goes wrong any more, the group comes to rest, and keeps silent then.

use std::collections::BTreeMap;

use coordinator::{Command, Reply};
use wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use wire::messages::offset_fetch_response::OffsetFetchResponsePartitions;

use crate::checkers::{convergence, replay};
use crate::event::Event;
use crate::member::{End, Phase};
use crate::process::{Held, State};
use crate::settings::{Protocol, Weather};
use crate::world::World;
use crate::{app, broker, readers};

/// How long a group at rest is watched.
const SILENCE_MS: u64 = 60_000;
const CHECK_EVERY_MS: u64 = 500;

impl World {
    /// Nothing goes wrong any more: the group has to come to rest, and to keep silent then.
    pub fn settle(&mut self) -> Result<(), String> {
        self.heal()?;
        // What is on its way arrives.
        // Requests that were lost before are given up and repeated by then: members that only seem to be at rest are heard.
        self.run_until(self.now_ms + 2 * Weather::STORM.delay_ms + self.settings.request_timeout_ms)?;
        for member in 0..self.members.len() {
            if self.members[member].refresh(self.now_ms) {
                self.changed(member)?;
            }
        }
        let deadline_ms = self.now_ms + self.settings.patience_ms();
        while let Some(missing) = self.missing()? {
            if self.now_ms > deadline_ms {
                return Err(format!("the group does not come to rest: {missing}"));
            }
            self.run_until(self.now_ms + CHECK_EVERY_MS)?;
        }
        self.note(format_args!("at rest"));
        let end = self.broker.log().end();
        self.run_until(self.now_ms + SILENCE_MS)?;
        if self.broker.log().end() != end {
            return Err(format!("a group at rest wrote {} records", self.broker.log().end() - end));
        }
        match self.missing()? {
            Some(missing) => Err(format!("the group did not stay at rest: {missing}")),
            None => self.check_offsets().and_then(|()| replay::check(self.broker.shard(), self.broker.log().entries())),
        }
    }

    /// What is fetched is what was committed.
    fn check_offsets(&mut self) -> Result<(), String> {
        for number in 0..self.groups.len() {
            let group_id = self.groups[number].id.clone();
            let group = OffsetFetchRequestGroup { group_id: group_id.clone(), topics: None, ..Default::default() };
            let command =
                Command::OffsetFetch { caller: broker::caller(8), group: Box::new(group), require_stable: false };
            let Reply::OffsetFetch(response) = self.broker.ask(self.at(), command)? else {
                return Err("no answer to OffsetFetch".to_owned());
            };
            let topics = response.topics.iter().flat_map(|topic| {
                let each = |partition: &OffsetFetchResponsePartitions| {
                    ((topic.name.clone(), partition.partition_index), partition.committed_offset)
                };
                topic.partitions.iter().map(each)
            });
            let fetched: BTreeMap<_, _> = topics.collect();
            let logged = &self.broker.mirror.group(&group_id).offsets;
            if fetched != *logged {
                return Err(format!("group {group_id} shows offsets {fetched:?}, the log has {logged:?}"));
            }
        }
        Ok(())
    }

    fn run_until(&mut self, until_ms: u64) -> Result<(), String> {
        while self.queue.next_ms().is_some_and(|at_ms| at_ms <= until_ms) {
            self.step()?;
        }
        self.now_ms = until_ms;
        Ok(())
    }

    fn heal(&mut self) -> Result<(), String> {
        self.note(format_args!("nothing goes wrong any more"));
        self.healing = true;
        self.network.weather = Weather::FAIR;
        self.broker.keep_offsets();
        for number in 0..self.processes.len() {
            self.processes[number].restore_rate = 100_000;
            match self.processes[number].state {
                State::Up => {}
                State::Paused => self.resume(number)?,
                State::Down => self.queue.push(self.now_ms + 100, Event::Start { process: number }),
            }
        }
        Ok(())
    }

    fn missing(&mut self) -> Result<Option<String>, String> {
        if !self.broker.is_up() {
            return Ok(Some("the coordinator is away".to_owned()));
        }
        if self.broker.log().end() > self.broker.durable.end() {
            return Ok(Some("something was written".to_owned()));
        }
        for group in 0..self.groups.len() {
            if let Some(missing) = self.missing_in(group)? {
                return Ok(Some(format!("group {}: {missing}", self.groups[group].id)));
            }
        }
        Ok(None)
    }

    fn missing_in(&mut self, number: usize) -> Result<Option<String>, String> {
        let mut held = Held::new();
        let mut versions = Vec::new();
        for process in self.processes.iter().filter(|process| process.group == number) {
            if process.state != State::Up {
                return Ok(Some(format!("process {} is {:?}", process.id, process.state)));
            }
            let members = process.members.iter().map(|number| &self.members[*number]);
            for member in members.filter(|member| *member.phase() != Phase::Gone(End::Left)) {
                if !member.is_at_rest() {
                    return Ok(Some(format!("{} is {:?}", member.id(), member.phase())));
                }
                held.insert(member.id().clone(), member.assigned());
                versions.push(process.app_version);
            }
        }
        let group = &self.groups[number];
        let mirror = self.broker.mirror.group(&group.id);
        if group.classic.exists() {
            let tasks = readers::read(versions.into_iter(), |topic| self.broker.partitions(topic));
            return Ok(convergence::missing_in_classic(mirror, &group.classic, &held, &tasks));
        }
        if mirror.members.is_empty() && held.is_empty() {
            return Ok(None);
        }
        let (protocol, group_id) = (group.protocol, group.id.clone());
        let tasks = match protocol {
            Protocol::Streams => app::tasks(mirror.topology_epoch, |topic| self.broker.partitions(topic)),
            _ => readers::read(versions.into_iter(), |topic| self.broker.partitions(topic)),
        };
        let caller = broker::caller(1);
        let described = match protocol {
            Protocol::Streams => {
                let include_topology_description = false;
                Command::StreamsGroupDescribe { caller, group_id: group_id.clone(), include_topology_description }
            }
            _ => Command::ConsumerGroupDescribe { caller, group_id: group_id.clone() },
        };
        let described = match self.broker.ask(self.at(), described)? {
            Reply::StreamsGroupDescribe(group) => convergence::Described::streams(&group),
            Reply::ConsumerGroupDescribe(group) => convergence::Described::consumer(&group),
            other => return Err(format!("the group was not described: {other:?}")),
        };
        Ok(convergence::missing(self.broker.mirror.group(&group_id), &held, &described, &tasks))
    }
}
