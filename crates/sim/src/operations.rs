//! What somebody, or bad luck, does to the system.

use crate::app;
use crate::event::Event;
use crate::log::Fault;
use crate::process::State;
use crate::settings::Weather;
use crate::world::World;
use wire::KStr;

impl World {
    /// One operation, and a time for the next.
    pub(crate) fn operate(&mut self) -> Result<(), String> {
        let at_ms = self.now_ms + self.rng.between(1, self.settings.operation_ms);
        self.queue.push(at_ms, Event::Operation);
        self.operations += 1;
        let process = self.rng.index(self.processes.len());
        match self.rng.below(100) {
            0..15 => self.kill(process),
            15..35 => self.stop(process),
            35..40 => self.stop_thread(process),
            40..55 => self.pause(process),
            55..65 => self.start_soon(process),
            65..72 => self.restart_coordinator(),
            72..77 => self.break_log(),
            77..83 => self.storm(),
            83..88 => self.change_topics(),
            88..94 => self.change_configuration(),
            94..97 => self.upgrade(process),
            _ => self.change_restore_rate(process),
        }
    }

    fn is_up(&self, process: usize) -> bool {
        self.processes[process].state == State::Up
    }

    fn kill(&mut self, process: usize) -> Result<(), String> {
        if !self.is_up(process) {
            return Ok(());
        }
        let back_ms = self.rng.between(100, 20_000);
        self.down(process, Some(back_ms))
    }

    /// A restart in good order: the members leave, static ones for now.
    fn stop(&mut self, process: usize) -> Result<(), String> {
        if !self.is_up(process) {
            return Ok(());
        }
        self.note_process(process, "is stopped");
        for member in self.processes[process].members.clone() {
            self.members[member].leave(self.now_ms);
            self.changed(member)?;
        }
        // Long enough to say goodbye, most of the time.
        self.processes[process].state = State::Down;
        let at_ms = self.now_ms + self.rng.between(50, 10_000);
        self.queue.push(at_ms, Event::Start { process });
        Ok(())
    }

    fn stop_thread(&mut self, process: usize) -> Result<(), String> {
        if !self.is_up(process) || self.processes[process].members.is_empty() {
            return Ok(());
        }
        let member = self.processes[process].members[self.rng.index(self.processes[process].members.len())];
        let id = self.members[member].id.clone();
        self.note(format_args!("{id} leaves"));
        self.members[member].leave(self.now_ms);
        self.changed(member)
    }

    fn pause(&mut self, process: usize) -> Result<(), String> {
        if !self.is_up(process) {
            return Ok(());
        }
        let session_ms = self.settings.broker.streams_session_timeout_ms as u64;
        let for_ms = self.rng.between(100, 2 * session_ms);
        self.note_process(process, &format!("pauses for {for_ms} ms"));
        self.processes[process].state = State::Paused;
        self.queue.push(self.now_ms + for_ms, Event::Resume { process });
        Ok(())
    }

    fn start_soon(&mut self, process: usize) -> Result<(), String> {
        let at_ms = self.now_ms + self.rng.below(1_000);
        self.queue.push(at_ms, Event::Start { process });
        Ok(())
    }

    fn restart_coordinator(&mut self) -> Result<(), String> {
        if !self.broker.is_up() {
            return Ok(());
        }
        let crash = self.rng.chance(500);
        self.note(format_args!("the coordinator goes away, by a crash: {crash}"));
        let output = self.broker.stop(crash)?;
        self.done(output)
    }

    fn break_log(&mut self) -> Result<(), String> {
        let fault = self.rng.pick(&[Fault::Refused, Fault::Refused, Fault::Lost, Fault::Kept]);
        self.note(format_args!("the next append will be {fault:?}"));
        self.broker.fail_next_append(fault);
        Ok(())
    }

    fn storm(&mut self) -> Result<(), String> {
        let for_ms = self.rng.between(500, 15_000);
        self.note(format_args!("the network is bad for {for_ms} ms"));
        self.network.weather = Weather::STORM;
        self.queue.push(self.now_ms + for_ms, Event::Calm);
        Ok(())
    }

    fn change_topics(&mut self) -> Result<(), String> {
        let partitions = self.broker.partitions(app::OPTIONAL_SOURCE);
        let name = app::OPTIONAL_SOURCE;
        let output = match partitions {
            0 => return Ok(()),
            1..7 if self.rng.chance(600) => {
                self.note(format_args!("topic {name} grows to {}", partitions + 1));
                self.broker.set_topics(self.at(), &[(KStr::from_static(name), partitions + 1)])?
            }
            _ => {
                self.note(format_args!("topic {name} is deleted"));
                let at_ms = self.now_ms + self.rng.between(500, 20_000);
                self.queue.push(at_ms, Event::RestoreTopic { name, partitions });
                self.broker.delete_topic(self.at(), name)?
            }
        };
        self.done(output)
    }

    fn change_configuration(&mut self) -> Result<(), String> {
        let (standbys, warmups) = (self.rng.below(3) as i32, self.rng.pick(&[0, 1, 2, 5]));
        let assignors = self.rng.pick(&[["sticky", "balanced"], ["balanced", "sticky"]]);
        self.note(format_args!("now {standbys} standbys, {warmups} warm-ups, assignor {}", assignors[0]));
        let output = self.broker.configure(self.at(), |broker| {
            broker.streams_num_standby_replicas = standbys;
            broker.streams_num_warmup_replicas = warmups;
            broker.streams_assignors = assignors.map(KStr::from).to_vec();
        })?;
        self.done(output)
    }

    /// A process gets the version that is being rolled out; when all have it there is a new one.
    fn upgrade(&mut self, process: usize) -> Result<(), String> {
        if self.processes[process].state == State::Paused {
            return Ok(());
        }
        let arrived = self.broker.durable.group_epoch > 0 && self.broker.durable.topology_epoch == self.app_version;
        if arrived && self.processes.iter().all(|each| each.app_version == self.app_version) {
            self.app_version += 1;
        }
        self.processes[process].app_version = self.app_version;
        self.note_process(process, &format!("is upgraded to version {}", self.app_version));
        if self.is_up(process) { self.stop(process) } else { Ok(()) }
    }

    fn change_restore_rate(&mut self, process: usize) -> Result<(), String> {
        self.processes[process].restore_rate = self.rng.pick(&[0, 500, 5_000, 50_000]);
        Ok(())
    }
}
