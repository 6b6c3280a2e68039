//! A run: processes with their members, a network, a broker, and one clock. Events happen one after the other; all of them
//! follow from the seed.

use coordinator::assign::TaskId;
use coordinator::{Command, Effect, Moment};
use wire::KStr;

use crate::broker::{self, Broker, Call, Output};
use crate::checkers::{commits, fencing, replay};
use crate::event::{Event, FlightNo, MemberNo, Queue};
use crate::groups::GroupOfRun;
use crate::member::{Answer, End, Member, Phase, Wish};
use crate::network::{Network, Request};
use crate::process::{Process, State};
use crate::rng::Rng;
use crate::settings::{Cast, Protocol, Settings};
use crate::trace::Trace;
use crate::{app, readers};

/// Events between two comparisons of the live state with the log.
const REPLAY_EVERY: u64 = 2_000;

pub struct World {
    pub(crate) rng: Rng,
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    pub(crate) network: Network,
    pub(crate) broker: Broker,
    pub(crate) processes: Vec<Process>,
    pub(crate) members: Vec<Member>,
    /// Events of paused processes.
    pub(crate) backlog: Vec<Vec<Event>>,
    /// The latest event of each member; older ones are void.
    pub(crate) wakes: Vec<u64>,
    pub(crate) groups: Vec<GroupOfRun>,
    pub(crate) cast: Cast,
    pub(crate) trace: Trace,
    pub(crate) now_ms: u64,
    pub(crate) events: u64,
    flush_is_due: bool,
    wakeup_ms: Option<u64>,
    load_is_due: bool,
    /// Nothing goes wrong any more.
    pub(crate) healing: bool,
    pub(crate) operations: u64,
}

impl World {
    pub fn new(cast: Cast, seed: u64, print: bool) -> Result<World, String> {
        let mut rng = Rng::new(seed);
        let mut settings = Settings::random(&mut rng, cast);
        settings.vary_apart(seed);
        let mut world = World {
            network: Network::new(settings.weather),
            broker: Broker::new(settings.broker.clone()),
            queue: Queue::default(),
            processes: Vec::new(),
            members: Vec::new(),
            backlog: Vec::new(),
            wakes: Vec::new(),
            groups: cast.groups().iter().map(|(id, protocol)| GroupOfRun::new(id, *protocol)).collect(),
            cast,
            trace: Trace::new(print),
            now_ms: 5_000,
            events: 0,
            flush_is_due: false,
            wakeup_ms: None,
            load_is_due: false,
            healing: false,
            operations: 0,
            settings,
            rng,
        };
        let settings = format!("{:?}", world.settings);
        world.note(format_args!("{settings}"));
        world.broker.load(world.at())?;
        let read = if cast == Cast::Streams { &[][..] } else { &readers::TOPICS };
        let sources: Vec<_> =
            app::SOURCES.iter().chain(read).map(|(name, count)| (KStr::from_static(name), *count)).collect();
        let output = world.broker.set_topics(world.at(), &sources)?;
        world.done(output)?;
        world.found_processes();
        let at_ms = world.now_ms + 1;
        world.queue.push(at_ms, Event::Operation);
        Ok(world)
    }

    pub(crate) fn at(&self) -> Moment {
        Moment { mono_ms: self.now_ms, wall_ms: 1_700_000_000_000 + self.now_ms as i64 }
    }

    pub(crate) fn note(&mut self, what: std::fmt::Arguments<'_>) {
        self.trace.note(self.now_ms, what);
    }

    pub(crate) fn note_process(&mut self, process: usize, what: &str) {
        self.trace.note(self.now_ms, format_args!("process {} {what}", self.processes[process].id));
    }

    /// Lets `steps` events happen, with everything that goes wrong.
    pub fn run(&mut self, steps: u64) -> Result<(), String> {
        while self.events < steps {
            self.step()?;
        }
        self.check_replay()
    }

    /// What a failed append left behind is read only when the coordinator is back.
    fn check_replay(&self) -> Result<(), String> {
        if self.broker.is_up() { replay::check(self.broker.shard(), self.broker.log().entries()) } else { Ok(()) }
    }

    /// The next event.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        let Some((at_ms, event)) = self.queue.pop() else { return Err("nothing happens any more".to_owned()) };
        self.now_ms = self.now_ms.max(at_ms);
        self.events += 1;
        self.happen(event)?;
        if self.events.is_multiple_of(REPLAY_EVERY) {
            self.check_replay()?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Member { member, wake } if self.wakes[member] == wake => self.member_due(member),
            Event::Member { .. } => Ok(()),
            Event::Request { member, flight, request } => self.arrived(member, flight, request),
            Event::Answer { member, flight, answer } => self.answered(member, flight, answer),
            Event::Resume { process } => self.resume(process),
            Event::Start { process } => self.start(process),
            Event::Flush => {
                self.flush_is_due = false;
                let output = self.broker.flush()?;
                self.done(output)
            }
            Event::Wakeup => {
                self.wakeup_ms = None;
                let output = self.broker.wake(self.at())?;
                self.done(output)
            }
            Event::Load => {
                self.load_is_due = false;
                self.broker.load(self.at())?;
                self.coordinator_is_back();
                self.note(format_args!("the coordinator is back, log end {}", self.broker.mirror.end()));
                self.done(Output::default())
            }
            Event::CreateTopics { group_id, topics } => {
                let failure = !self.healing && self.rng.chance(200);
                self.note(format_args!("internal topics are made: {}", !failure));
                let output = self.broker.create_topics(self.at(), group_id, &topics, failure)?;
                self.done(output)
            }
            Event::RestoreTopic { name, partitions } => self.restore_topic(name, partitions),
            Event::Calm if !self.healing => {
                self.network.weather = self.settings.weather;
                Ok(())
            }
            Event::Operation if !self.healing => self.operate(),
            Event::Calm | Event::Operation => Ok(()),
        }
    }

    /// Whether the process of a member sees this event now; if it is paused, it will later.
    fn is_awake(&mut self, member: MemberNo, event: impl FnOnce() -> Event) -> bool {
        let process = self.members[member].process();
        if self.processes[process].state == State::Paused {
            self.backlog[process].push(event());
            return false;
        }
        true
    }

    fn member_due(&mut self, member: MemberNo) -> Result<(), String> {
        let wake = self.wakes[member];
        if !self.is_awake(member, || Event::Member { member, wake }) {
            return Ok(());
        }
        let process = self.members[member].process();
        let topics = self.broker.topics().clone();
        let member_id = self.members[member].id().clone();
        let wishes = self.members[member].act(self.now_ms, &mut self.processes[process], &topics);
        for wish in wishes {
            match wish {
                Wish::Commit(tasks, epoch) => {
                    self.send(member, Request::Commit { tasks, epoch, member_id: member_id.clone() });
                }
                Wish::Heartbeat(request) => {
                    let flight = self.send(member, Request::Heartbeat(request));
                    self.members[member].sent(flight, self.now_ms, self.settings.timeouts());
                }
                Wish::Request(command) => {
                    let flight = self.send(member, Request::Command(command));
                    self.members[member].sent(flight, self.now_ms, self.settings.timeouts());
                }
            }
        }
        self.changed(member)
    }

    pub(crate) fn send(&mut self, member: MemberNo, request: Request) -> FlightNo {
        self.network.send(self.now_ms, member, request, &mut self.rng, &mut self.queue)
    }

    /// A member did something: what it holds is looked at, and its next action planned.
    pub(crate) fn changed(&mut self, member: MemberNo) -> Result<(), String> {
        let each = &mut self.members[member];
        each.reconcile(self.now_ms, &mut self.rng);
        let id = each.id().clone();
        self.wakes[member] += 1;
        if let Some(due_ms) = self.members[member].due_ms() {
            let wake = self.wakes[member];
            self.queue.push(due_ms.max(self.now_ms), Event::Member { member, wake });
        }
        self.look_at_holdings(member)?;
        let (process, phase) = (self.members[member].process(), self.members[member].phase().clone());
        if let Phase::Gone(End::Fatal(code)) = phase
            && self.processes[process].state == State::Up
        {
            self.note(format_args!("{id} ends with error {code}, its process starts anew"));
            let back_ms = if code == 132 {
                self.processes[process].app_version = self.groups[self.processes[process].group].app_version;
                500
            } else {
                // Sooner it would only take the instance ids of its own threads from them, one after the other.
                let back_ms = self.settings.broker.streams_session_timeout_ms as u64 + 1_000;
                self.processes[process].not_before_ms = self.now_ms + back_ms;
                back_ms
            };
            self.down(process, Some(back_ms))?;
        }
        Ok(())
    }

    fn answered(&mut self, member: MemberNo, flight: FlightNo, answer: Answer) -> Result<(), String> {
        if !self.is_awake(member, || Event::Answer { member, flight, answer: answer.clone() }) {
            return Ok(());
        }
        let topics = self.broker.topics().clone();
        if self.members[member].answered(self.now_ms, flight, &answer, &topics)? {
            self.check_known(member)?;
            self.changed(member)?;
        }
        Ok(())
    }

    /// A client that is given a subtopology it does not know dies (decision 5).
    fn check_known(&self, member: MemberNo) -> Result<(), String> {
        let Member::Streams(member) = &self.members[member] else { return Ok(()) };
        let version = self.processes[member.process].app_version;
        let known = app::common(version, version);
        match member.wanted().into_iter().find(|task| !known.contains(task.subtopology.as_str())) {
            Some(task) => Err(format!("{} of version {version} is given {task:?}", member.id)),
            None => Ok(()),
        }
    }

    /// A request reaches the coordinator.
    fn arrived(&mut self, member: MemberNo, flight: FlightNo, request: Request) -> Result<(), String> {
        let id = self.members[member].id().clone();
        self.note_request(member, &request);
        if let Request::Heartbeat(request) = &request {
            let owned = request.active_tasks.as_ref().map(|lists| {
                lists
                    .iter()
                    .map(|list| format!("{}:{:?}", list.subtopology_id, list.partitions))
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            self.note(format_args!("{id} -> epoch {} owns {owned:?}", request.member_epoch));
        }
        let version = self.processes[self.members[member].process()].api_version;
        let (command, call) = match request {
            Request::Heartbeat(request) => {
                let number = self.group_of(member);
                let group = &mut self.groups[number];
                let due = fencing::due_to_stream(self.broker.mirror.group(&group.id), &request);
                if request.member_epoch < 0 {
                    group.left.insert(id.clone());
                }
                let (at_ms, epoch) = (self.now_ms, request.member_epoch);
                let call = Call::Heartbeat { member, flight, at_ms, due, member_id: id, epoch };
                (Command::StreamsGroupHeartbeat(broker::caller(version), request), call)
            }
            Request::Command(command) => self.request(member, flight, *command),
            Request::Commit { tasks, epoch, member_id } => {
                let Some(commit) = self.commit(member, epoch, member_id, tasks) else { return Ok(()) };
                commit
            }
        };
        let output = self.broker.call(self.at(), command, Some(call))?;
        self.done(output)
    }

    /// The commit of what a member ran, and whether it has to be accepted; none if no topic of it is left.
    pub(crate) fn commit(
        &self,
        member: MemberNo,
        epoch: i32,
        member_id: KStr,
        mut tasks: Vec<TaskId>,
    ) -> Option<(Command, Call)> {
        let sender = &self.members[member];
        let process = &self.processes[sender.process()];
        let version = process.app_version;
        let source = |task: &TaskId| match process.protocol {
            Protocol::Streams => app::source_of(version, task).map(KStr::from_static),
            Protocol::Consumer | Protocol::Classic => Some(task.subtopology.clone()),
        };
        let source = |task: &TaskId| {
            let topic = source(task)?;
            (task.partition < self.broker.partitions(&topic)).then_some((topic, task.partition, self.now_ms as i64))
        };
        tasks.retain(|task| source(task).is_some());
        if tasks.is_empty() {
            return None;
        }
        let group = &self.groups[process.group];
        let mirror = self.broker.mirror.group(&group.id);
        // Members of consumer groups leave it out, and streams members have no use for it.
        let instance_id = sender.instance_id().filter(|_| matches!(sender, Member::Classic(_)));
        let due = match group.classic.exists() {
            true => commits::is_due_in_classic(&group.classic, &member_id, instance_id, epoch),
            false => commits::is_due(mirror, &member_id, epoch, &tasks),
        };
        // Topics that the group does not read any more are another matter.
        let known = app::common(version, mirror.topology_epoch);
        let is_clear = !due
            || process.protocol != Protocol::Streams
            || tasks.iter().all(|task| known.contains(task.subtopology.as_str()));
        let offsets: Vec<_> = tasks.iter().filter_map(source).collect();
        let command = broker::commit(group.id.clone(), member_id.clone(), instance_id.cloned(), epoch, &offsets);
        let call = Call::Commit { group_id: group.id.clone(), member_id, due: is_clear.then_some(due), offsets };
        Some((command, call))
    }

    /// What a request has to be answered with, as far as checkers can tell when it arrives.
    pub(crate) fn request(&mut self, member: MemberNo, flight: FlightNo, command: Command) -> (Command, Call) {
        let number = self.group_of(member);
        let group = &mut self.groups[number];
        let due = fencing::due(self.broker.mirror.group(&group.id), &group.classic, &command);
        let (member_id, generation) = match &command {
            Command::ConsumerGroupHeartbeat(_, request) => {
                if request.member_epoch < 0 {
                    group.left.insert(request.member_id.clone());
                }
                (request.member_id.clone(), request.member_epoch)
            }
            Command::JoinGroup(_, request) => (request.member_id.clone(), -1),
            Command::SyncGroup(_, request) => (request.member_id.clone(), request.generation_id),
            Command::Heartbeat(_, request) => (request.member_id.clone(), request.generation_id),
            Command::LeaveGroup(_, request) => {
                for identity in &request.members {
                    group.classic.leaves(&identity.member_id);
                    group.left.insert(identity.member_id.clone());
                }
                (self.members[member].id().clone(), -1)
            }
            _ => (self.members[member].id().clone(), -1),
        };
        (command, Call::Request { member, flight, member_id, generation, at_ms: self.now_ms, due })
    }

    /// After every step of the broker: answers go out, effects are carried out, and what comes next is planned.
    pub(crate) fn done(&mut self, output: Output) -> Result<(), String> {
        self.look_at_classic_groups()?;
        self.look_at_losses()?;
        for answered in output.answers {
            self.reply(answered)?;
        }
        for effect in output.effects {
            match effect {
                Effect::CreateInternalTopics { group_id, topics } => {
                    let at_ms = self.now_ms + self.rng.between(1, 300);
                    self.queue.push(at_ms, Event::CreateTopics { group_id, topics });
                }
                other => return Err(format!("unexpected effect {other:?}")),
            }
        }
        let log = self.broker.log();
        if self.broker.is_up() && log.end() > self.broker.durable.end() && !self.flush_is_due {
            self.flush_is_due = true;
            let at_ms = self.now_ms + self.rng.below(self.settings.flush_ms + 1);
            self.queue.push(at_ms, Event::Flush);
        }
        if !self.broker.is_up() && !self.load_is_due {
            self.note(format_args!("the coordinator lost its log"));
            self.load_is_due = true;
            let at_ms = self.now_ms + self.rng.between(1, 3_000);
            self.queue.push(at_ms, Event::Load);
        }
        if let Some(due_ms) = self.broker.next_wakeup()
            && self.wakeup_ms.is_none_or(|planned| due_ms < planned)
        {
            self.wakeup_ms = Some(due_ms);
            self.queue.push(due_ms.max(self.now_ms), Event::Wakeup);
        }
        Ok(())
    }

    fn restore_topic(&mut self, name: &'static str, partitions: i32) -> Result<(), String> {
        if self.broker.partitions(name) > 0 {
            return Ok(());
        }
        self.note(format_args!("topic {name} is made again, with {partitions} partitions"));
        let output = self.broker.set_topics(self.at(), &[(KStr::from_static(name), partitions)])?;
        self.done(output)
    }
}
