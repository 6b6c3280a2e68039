//! A run: processes with their members, a network, a broker, and one clock. Events happen one after the other; all of them
//! follow from the seed.

use coordinator::runtime::Unavailable;
use coordinator::{Command, Effect, Moment, Reply};
use wire::KStr;

use crate::app;
use crate::broker::{self, Answered, Broker, Call, Output};
use crate::checkers::ownership::Ownership;
use crate::checkers::{commits, convergence, replay};
use crate::event::{Event, FlightNo, MemberNo, Queue};
use crate::network::{Network, Request};
use crate::process::{Held, Process, State};
use crate::rng::Rng;
use crate::settings::{Settings, Weather};
use crate::streams_member::{Answer, End, Phase, StreamsMember, Wish};
use crate::trace::Trace;

/// Events between two comparisons of the live state with the log.
const REPLAY_EVERY: u64 = 2_000;
/// How long a group at rest is watched.
const SILENCE_MS: u64 = 60_000;
const CHECK_EVERY_MS: u64 = 500;

pub struct World {
    pub(crate) rng: Rng,
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    pub(crate) network: Network,
    pub(crate) broker: Broker,
    pub(crate) processes: Vec<Process>,
    pub(crate) members: Vec<StreamsMember>,
    /// Events of paused processes.
    backlog: Vec<Vec<Event>>,
    /// The latest event of each member; older ones are void.
    wakes: Vec<u64>,
    ownership: Ownership,
    pub(crate) trace: Trace,
    pub(crate) now_ms: u64,
    pub(crate) events: u64,
    flush_is_due: bool,
    wakeup_ms: Option<u64>,
    load_is_due: bool,
    /// Nothing goes wrong any more.
    healing: bool,
    pub(crate) operations: u64,
}

impl World {
    pub fn new(seed: u64, print: bool) -> Result<World, String> {
        let mut rng = Rng::new(seed);
        let settings = Settings::random(&mut rng);
        let mut world = World {
            network: Network::new(settings.weather),
            broker: Broker::new(settings.broker.clone()),
            queue: Queue::default(),
            processes: Vec::new(),
            members: Vec::new(),
            backlog: Vec::new(),
            wakes: Vec::new(),
            ownership: Ownership::default(),
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
        let sources: Vec<_> = app::SOURCES.iter().map(|(name, count)| (KStr::from_static(name), *count)).collect();
        let output = world.broker.set_topics(world.at(), &sources)?;
        world.done(output)?;
        world.found_processes();
        let at_ms = world.now_ms + 1;
        world.queue.push(at_ms, Event::Operation);
        Ok(world)
    }

    fn found_processes(&mut self) {
        for number in 0..self.settings.processes {
            let is_static = self.rng.chance(self.settings.static_members);
            let id = format!("{:08x}", self.rng.next_u64() as u32);
            self.processes.push(Process {
                id: KStr::from(id),
                zone: KStr::from(format!("z{}", number % 3)),
                version: i16::from(!self.rng.chance(self.settings.old_clients)),
                threads: self.rng.between(1, self.settings.threads as u64) as usize,
                is_static,
                restore_rate: self.rng.pick(&[500, 5_000, 50_000]),
                state: State::Down,
                store: Default::default(),
                members: Vec::new(),
            });
            self.backlog.push(Vec::new());
            let at_ms = self.now_ms + self.rng.below(3_000);
            self.queue.push(at_ms, Event::Start { process: number });
        }
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
        replay::check(self.broker.shard(), self.broker.log().entries())
    }

    /// Nothing goes wrong any more: the group has to come to rest, and to keep silent then.
    pub fn settle(&mut self) -> Result<(), String> {
        self.heal()?;
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
        let tasks = app::tasks(|topic| self.broker.partitions(topic));
        if self.broker.mirror.members.is_empty() && held.is_empty() {
            return Ok(None);
        }
        let described = self.broker.describe(self.at())?;
        Ok(convergence::missing(&self.broker.mirror, &held, &described, &tasks))
    }

    /// The next event.
    fn step(&mut self) -> Result<(), String> {
        let Some((at_ms, event)) = self.queue.pop() else { return Err("nothing happens any more".to_owned()) };
        self.now_ms = self.now_ms.max(at_ms);
        self.events += 1;
        self.happen(event)?;
        if self.events.is_multiple_of(REPLAY_EVERY) && self.broker.is_up() {
            replay::check(self.broker.shard(), self.broker.log().entries())?;
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
        let process = self.members[member].process;
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
        let process = self.members[member].process;
        let wishes = self.members[member].act(self.now_ms, &mut self.processes[process]);
        for wish in wishes {
            match wish {
                Wish::Commit(tasks) => {
                    let epoch = self.members[member].epoch;
                    self.send(member, Request::Commit { tasks, epoch });
                }
                Wish::Heartbeat(request) => {
                    let flight = self.send(member, Request::Heartbeat(request));
                    self.members[member].sent(flight, self.now_ms + self.settings.request_timeout_ms);
                }
            }
        }
        self.changed(member)
    }

    fn send(&mut self, member: MemberNo, request: Request) -> FlightNo {
        self.network.send(self.now_ms, member, request, &mut self.rng, &mut self.queue)
    }

    /// A member did something: what it holds is looked at, and its next action planned.
    pub(crate) fn changed(&mut self, member: MemberNo) -> Result<(), String> {
        let each = &mut self.members[member];
        each.reconcile(self.now_ms, &mut self.rng);
        let (id, holds) = (each.id.clone(), each.holds());
        self.wakes[member] += 1;
        if let Some(due_ms) = each.due_ms() {
            let wake = self.wakes[member];
            self.queue.push(due_ms.max(self.now_ms), Event::Member { member, wake });
        }
        self.ownership.set(&id, holds, &self.broker.mirror)?;
        let (process, phase) = (self.members[member].process, self.members[member].phase.clone());
        if let Phase::Gone(End::Fatal(code)) = phase
            && self.processes[process].state == State::Up
        {
            self.note(format_args!("{id} ends with error {code}, its process starts anew"));
            // Sooner it would only take the instance ids of its own threads from them, one after the other.
            let back_ms = self.settings.broker.streams_session_timeout_ms as u64 + 1_000;
            self.down(process, Some(back_ms))?;
        }
        Ok(())
    }

    fn answered(&mut self, member: MemberNo, flight: FlightNo, answer: Answer) -> Result<(), String> {
        if !self.is_awake(member, || Event::Answer { member, flight, answer: answer.clone() }) {
            return Ok(());
        }
        if self.members[member].answered(self.now_ms, flight, &answer)? {
            self.changed(member)?;
        }
        Ok(())
    }

    /// A request reaches the coordinator.
    fn arrived(&mut self, member: MemberNo, flight: FlightNo, request: Request) -> Result<(), String> {
        let id = self.members[member].id.clone();
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
        let sender = &self.members[member];
        let version = self.processes[sender.process].version;
        let (command, call) = match request {
            Request::Heartbeat(request) => {
                let call = Call::Heartbeat { member, flight };
                (Command::StreamsGroupHeartbeat(broker::caller(version), request), call)
            }
            Request::Commit { mut tasks, epoch } => {
                // Of topics that are gone nothing can be committed.
                tasks.retain(|task| {
                    app::source_of(task).is_some_and(|topic| task.partition < self.broker.partitions(topic))
                });
                if tasks.is_empty() {
                    return Ok(());
                }
                let due = commits::is_due(&self.broker.mirror, &sender.id, epoch, &tasks);
                let call = Call::Commit { member_id: sender.id.clone(), due };
                (broker::commit(&sender.id, epoch, &tasks, self.now_ms as i64), call)
            }
        };
        let output = self.broker.call(self.at(), command, Some(call))?;
        self.done(output)
    }

    /// After every step of the broker: answers go out, effects are carried out, and what comes next is planned.
    pub(crate) fn done(&mut self, output: Output) -> Result<(), String> {
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

    fn reply(&mut self, (call, reply): Answered) -> Result<(), String> {
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
                self.note(format_args!("{member_id} commits"));
                commits::check(due, &member_id, &response)
            }
            (Call::Commit { .. }, Ok(other)) => Err(format!("a commit was answered with {other:?}")),
            (Call::Commit { .. }, Err(_)) => Ok(()),
        }
    }

    /// What a member is told has to survive a crash.
    fn check_told(&self, member: MemberNo, answer: &Answer) -> Result<(), String> {
        let Answer::Heartbeat(response) = answer else { return Ok(()) };
        let id = &self.members[member].id;
        let durable = &self.broker.durable;
        let (true, Some(current)) = (durable.members.contains_key(id), durable.current.get(id)) else { return Ok(()) };
        if response.error_code == 0 && response.member_epoch > current.epoch.max(0) {
            return Err(format!("{id} is told epoch {}, durable is {}", response.member_epoch, current.epoch));
        }
        for list in response.active_tasks.iter().flatten() {
            for partition in &list.partitions {
                let task =
                    coordinator::assign::TaskId { subtopology: list.subtopology_id.clone(), partition: *partition };
                if !current.active_since.contains_key(&task) && !current.pending.contains_key(&task) {
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

    /// A process starts: new members, old identity.
    fn start(&mut self, process: usize) -> Result<(), String> {
        if self.processes[process].state != State::Down {
            return Ok(());
        }
        self.processes[process].state = State::Up;
        self.processes[process].members.clear();
        for thread in 0..self.processes[process].threads {
            let id = KStr::from(format!("{:08x}-{}", self.rng.next_u64() as u32, self.members.len()));
            let instance_id = self.processes[process].instance_id(thread);
            let of = self.processes[process].id.clone();
            self.note(format_args!("{id} starts in process {of} as {instance_id:?}"));
            let timeout_ms = self.settings.rebalance_timeout_ms;
            self.members.push(StreamsMember::new(id, instance_id, process, self.now_ms, timeout_ms));
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

    fn resume(&mut self, process: usize) -> Result<(), String> {
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
                let epoch = self.members[member].epoch;
                self.send(member, Request::Commit { tasks: held, epoch });
            }
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
