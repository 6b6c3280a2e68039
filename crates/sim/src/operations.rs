//! What somebody, or bad luck, does to the system.

use crate::broker::Call;
use crate::event::Event;
use crate::log::Fault;
use crate::process::State;
use crate::settings::{Cast, Protocol, Weather};
use crate::world::World;
use crate::{app, broker, readers};
use coordinator::Command;
use wire::KStr;
use wire::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};

impl World {
    /// One operation, and a time for the next.
    pub(crate) fn operate(&mut self) -> Result<(), String> {
        let at_ms = self.now_ms + self.rng.between(1, self.settings.operation_ms);
        self.queue.push(at_ms, Event::Operation);
        self.operations += 1;
        if self.settings.strays > 0 && self.rng.chance(self.settings.strays) {
            return if self.rng.chance(700) { self.stray_commit() } else { self.stray_heartbeat() };
        }
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
            _ if self.processes[process].protocol != Protocol::Streams => self.remove_member(process),
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
        let id = self.members[member].id().clone();
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

    /// A topic that consumers read grows; those that streams groups read may also go.
    fn change_topics(&mut self) -> Result<(), String> {
        if self.cast != Cast::Streams && (self.cast != Cast::Mixed || self.rng.chance(500)) {
            let partitions = self.broker.partitions(readers::GROWING);
            if partitions == readers::MAX_PARTITIONS {
                return Ok(());
            }
            self.note(format_args!("topic {} grows to {}", readers::GROWING, partitions + 1));
            let grown = [(KStr::from_static(readers::GROWING), partitions + 1)];
            let output = self.broker.set_topics(self.at(), &grown)?;
            return self.done(output);
        }
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
        let defaults = self.cast == Cast::Streams || self.rng.chance(500);
        let mut output = self.broker.configure(self.at(), app::group_id(), |broker| {
            broker.streams_num_standby_replicas = standbys;
            broker.streams_num_warmup_replicas = warmups;
            broker.streams_assignors = assignors.map(KStr::from).to_vec();
            if !defaults {
                broker.consumer_assignors.reverse();
            }
        })?;
        for group in self.groups.iter().filter(|group| group.protocol != Protocol::Streams) {
            let told = self.broker.configure(self.at(), group.id.clone(), |_| {})?;
            output.answers.extend(told.answers);
            output.effects.extend(told.effects);
        }
        self.done(output)
    }

    /// A process gets the version that is being rolled out; when all have it there is a new one.
    fn upgrade(&mut self, process: usize) -> Result<(), String> {
        if self.processes[process].state == State::Paused {
            return Ok(());
        }
        if self.cast == Cast::Migration && self.rng.chance(700) {
            return self.migrate(process);
        }
        let number = self.processes[process].group;
        let group = &self.groups[number];
        let durable = self.broker.durable.group(&group.id);
        let arrived = group.protocol != Protocol::Streams
            || durable.group_epoch > 0 && durable.topology_epoch == group.app_version;
        let mut of_group = self.processes.iter().filter(|each| each.group == number);
        let version =
            group.app_version + i32::from(arrived && of_group.all(|each| each.app_version == group.app_version));
        self.groups[number].app_version = version;
        self.processes[process].app_version = version;
        self.note_process(process, &format!("is upgraded to version {version}"));
        if self.processes[process].protocol != Protocol::Streams && self.rng.chance(500) {
            // Consumers may change what they read while they run.
            return Ok(());
        }
        if self.is_up(process) { self.stop(process) } else { Ok(()) }
    }

    /// Comes back with the other protocol.
    fn migrate(&mut self, process: usize) -> Result<(), String> {
        let protocol = match self.processes[process].protocol {
            Protocol::Consumer => Protocol::Classic,
            _ => Protocol::Consumer,
        };
        self.note_process(process, &format!("changes to {protocol:?}"));
        self.processes[process].protocol = protocol;
        if self.is_up(process) { self.stop(process) } else { Ok(()) }
    }

    /// An operator removes a static member by its instance id (KIP-345).
    fn remove_member(&mut self, process: usize) -> Result<(), String> {
        let Some(instance_id) = self.processes[process].instance_id(0) else { return Ok(()) };
        self.note(format_args!("{instance_id} is removed"));
        let number = self.processes[process].group;
        let group = &mut self.groups[number];
        let holder = group.classic.members().iter().find(|(_, instance)| instance.as_ref() == Some(&instance_id));
        if let Some(member_id) = holder.map(|(member_id, _)| member_id.clone()) {
            group.classic.leaves(&member_id);
        }
        if let Some(member_id) = self.broker.mirror.group(&group.id).holder(&instance_id) {
            group.left.insert(member_id.clone());
        }
        let identity = MemberIdentity { group_instance_id: Some(instance_id), ..MemberIdentity::default() };
        let request =
            LeaveGroupRequest { group_id: group.id.clone(), members: vec![identity], ..LeaveGroupRequest::default() };
        let command = Command::LeaveGroup(broker::caller(5), Box::new(request));
        let output = self.broker.call(self.at(), command, Some(Call::Aside))?;
        self.done(output)
    }

    fn change_restore_rate(&mut self, process: usize) -> Result<(), String> {
        self.processes[process].restore_rate = self.rng.pick(&[0, 500, 5_000, 50_000]);
        Ok(())
    }
}
