//! Processes come, go, fall asleep and wake up.

use wire::KStr;

use crate::classic_member::ClassicMember;
use crate::consumer_member::ConsumerMember;
use crate::event::Event;
use crate::member::Member;
use crate::network::Request;
use crate::process::{Process, State};
use crate::settings::{Cast, Protocol};
use crate::streams_member::StreamsMember;
use crate::world::World;

impl World {
    pub(crate) fn found_processes(&mut self) {
        for group in 0..self.groups.len() {
            self.found_processes_of(group);
        }
    }

    fn found_processes_of(&mut self, group: usize) {
        let protocol = self.groups[group].protocol;
        for number in 0..self.settings.processes {
            let is_static = self.rng.chance(self.settings.static_members);
            let id = format!("{:08x}", self.rng.next_u64() as u32);
            let process = self.processes.len();
            self.processes.push(Process {
                id: KStr::from(id),
                zone: KStr::from(format!("z{}", number % 3)),
                group,
                protocol,
                assignor: None,
                assignors: &[],
                api_version: i16::from(!self.rng.chance(self.settings.old_clients)),
                app_version: 0,
                threads: self.rng.between(1, self.settings.threads as u64) as usize,
                is_static,
                restore_rate: self.rng.pick(&[500, 5_000, 50_000]),
                state: State::Down,
                not_before_ms: 0,
                store: Default::default(),
                members: Vec::new(),
            });
            self.backlog.push(Vec::new());
            if self.cast != Cast::Streams {
                self.vary_consumers(process);
            }
            let at_ms = self.now_ms + self.rng.below(3_000);
            self.queue.push(at_ms, Event::Start { process });
        }
    }

    fn vary_consumers(&mut self, process: usize) {
        let process = &mut self.processes[process];
        process.assignor = self.rng.pick(&[None, None, Some("range"), Some("uniform")]).map(KStr::from_static);
        process.assignors = self.rng.pick(&[&["range", "roundrobin"], &["roundrobin", "range"]]);
        if self.cast == Cast::Migration {
            // A static member that takes the place of the last one of the consumer protocol is told the protocol that it
            // likes best, while the group takes the one that most like best: Kafka 4.4 is like this too (C G-7, G-13).
            process.assignors = &["range", "roundrobin"];
        }
        if process.protocol != Protocol::Streams {
            // Before version 9 the leader does not know that it is, when it was replaced (C J-30).
            process.api_version = if process.is_static { 9 } else { self.rng.pick(&[9, 9, 5, 3]) };
        }
    }

    /// A process starts: new members, old identity.
    pub(crate) fn start(&mut self, process: usize) -> Result<(), String> {
        let each = &mut self.processes[process];
        if each.state != State::Down || self.now_ms < each.not_before_ms {
            return Ok(());
        }
        each.state = State::Up;
        self.processes[process].members.clear();
        for thread in 0..self.processes[process].threads {
            let id = KStr::from(format!("{:08x}-{}", self.rng.next_u64() as u32, self.members.len()));
            let instance_id = self.processes[process].instance_id(thread);
            let of = self.processes[process].id.clone();
            self.note(format_args!("{id} starts in process {of} as {instance_id:?}"));
            let (timeouts, now_ms) = (self.settings.timeouts(), self.now_ms);
            let group_id = self.groups[self.processes[process].group].id.clone();
            let cooperative = self.settings.cooperative;
            self.members.push(match self.processes[process].protocol {
                Protocol::Streams => Member::Streams(Box::new(StreamsMember::new(
                    id,
                    instance_id,
                    process,
                    now_ms,
                    timeouts.rebalance_ms,
                ))),
                Protocol::Consumer => Member::Consumer(Box::new(ConsumerMember::new(
                    group_id,
                    id,
                    instance_id,
                    process,
                    now_ms,
                    timeouts.rebalance_ms,
                ))),
                Protocol::Classic => Member::Classic(Box::new(ClassicMember::new(
                    group_id,
                    instance_id,
                    process,
                    now_ms,
                    timeouts,
                    cooperative,
                ))),
            });
            self.wakes.push(0);
            let member = self.members.len() - 1;
            self.processes[process].members.push(member);
            self.changed(member)?;
        }
        Ok(())
    }

    /// A process ends without a word, and comes back after a while if it is to.
    pub(crate) fn down(&mut self, process: usize, back_ms: Option<u64>) -> Result<(), String> {
        self.note_process(process, "is killed");
        self.processes[process].state = State::Down;
        self.backlog[process].clear();
        for member in self.processes[process].members.clone() {
            if !self.members[member].is_gone() {
                self.members[member].kill();
                self.changed(member)?;
            }
        }
        if let Some(back_ms) = back_ms {
            self.queue.push(self.now_ms + back_ms, Event::Start { process });
        }
        Ok(())
    }

    pub(crate) fn resume(&mut self, process: usize) -> Result<(), String> {
        if self.processes[process].state != State::Paused {
            return Ok(());
        }
        self.note_process(process, "goes on");
        self.processes[process].state = State::Up;
        // What it was about to do comes first, and what arrived meanwhile; its timers have been running.
        for event in std::mem::take(&mut self.backlog[process]) {
            self.queue.push(self.now_ms, event);
        }
        for member in self.processes[process].members.clone() {
            let held: Vec<_> = self.members[member].holds().into_iter().collect();
            if !held.is_empty() {
                let (epoch, member_id) = (self.members[member].epoch(), self.members[member].id().clone());
                self.send(member, Request::Commit { tasks: held, epoch, member_id });
            }
        }
        Ok(())
    }
}
