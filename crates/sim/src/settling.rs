//! The end of a run: nothing goes wrong any more, the group comes to rest, and keeps silent then.

use coordinator::{Command, Reply};

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
        self.run_until(self.now_ms + 2 * Weather::STORM.delay_ms)?;
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
            None => replay::check(self.broker.shard(), self.broker.log().entries()),
        }
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
