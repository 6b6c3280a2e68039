//! The end of a run: nothing goes wrong any more, the group comes to rest, and keeps silent then.

use crate::app;
use crate::checkers::{convergence, replay};
use crate::event::Event;
use crate::process::{Held, State};
use crate::settings::Weather;
use crate::streams_member::{End, Phase};
use crate::world::World;

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
            if self.members[member].unsure && !self.members[member].is_gone() {
                self.members[member].join_again(self.now_ms);
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
        let mut held = Held::new();
        for process in &self.processes {
            if process.state != State::Up {
                return Ok(Some(format!("process {} is {:?}", process.id, process.state)));
            }
            let members = process.members.iter().map(|number| &self.members[*number]);
            for member in members.filter(|member| member.phase != Phase::Gone(End::Left)) {
                if !member.is_at_rest() {
                    return Ok(Some(format!("{} is {:?}", member.id, member.phase)));
                }
                held.insert(member.id.clone(), member.assigned.clone());
            }
        }
        let tasks = app::tasks(self.broker.mirror.topology_epoch, |topic| self.broker.partitions(topic));
        if self.broker.mirror.members.is_empty() && held.is_empty() {
            return Ok(None);
        }
        let described = self.broker.describe(self.at())?;
        Ok(convergence::missing(&self.broker.mirror, &held, &described, &tasks))
    }
}
