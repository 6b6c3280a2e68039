//! The `sticky` assignor: tasks stay where they run while the balance allows it, else go to where their state is, else to
//! the process with the fewest tasks per member.
//!
//! Balance and stickiness are Kafka 4.4's (`sticky` 3 to 5 of the assignor's specification), with three differences:
//!
//! - Ties go to the lower number of [`Index`], not by hash order (decision 19).
//! - The computation is repeated until it leaves its own result alone. Kafka's may move tasks again when a group that
//!   is settled is computed anew, since its quotas shrink as they are used up.
//! - Warm-ups count as standbys, and tasks on their way elsewhere are the first to leave, so that what was restored is
//!   not thrown away.
//!
//! With client tags to spread standbys over (decision 9), standbys are placed by [`standby`] instead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::index::{Copy, Current, Index, Load, Member, Placement, Process, Task, settle};
use super::{AssignError, StreamsInput, StreamsTarget, standby, within};

/// Assigns every task of the group. Fails if there is no member, or an id is there twice.
pub fn assign(input: &StreamsInput) -> Result<StreamsTarget, AssignError> {
    let index = Index::new(input)?;
    let by_partition = index.by_partition();
    let placement = settle(&index, |current| Round::new(&index, current, &by_partition).run());
    Ok(index.target(&placement))
}

/// Tasks per member of the whole group. It shrinks as members use it up (sticky 3).
struct Quota {
    tasks_left: usize,
    members_left: usize,
    limit: usize,
}

impl Quota {
    fn new(tasks: usize, members: usize) -> Self {
        Quota { tasks_left: tasks, members_left: members, limit: tasks.div_ceil(members) }
    }

    /// A member has `count` tasks now.
    fn note(&mut self, count: usize) {
        if count == self.limit && self.members_left > 0 {
            self.members_left -= 1;
            self.tasks_left = self.tasks_left.saturating_sub(count);
            self.limit = if self.members_left == 0 { 0 } else { self.tasks_left.div_ceil(self.members_left) };
        }
    }
}

/// One computation.
struct Round<'a> {
    index: &'a Index<'a>,
    current: &'a Current,
    by_partition: &'a [Task],
    active: Vec<Option<Member>>,
    standby: Vec<Vec<Member>>,
    /// Tasks given to each member and to each process, active and standby alike.
    of_member: Vec<usize>,
    of_process: Vec<usize>,
    active_quota: Quota,
    all_quota: Quota,
}

impl<'a> Round<'a> {
    fn new(index: &'a Index<'a>, current: &'a Current, by_partition: &'a [Task]) -> Self {
        let stateful = by_partition.iter().filter(|task| index.stateful(**task)).count();
        let all = index.tasks().saturating_add(stateful.saturating_mul(index.replicas));
        let members = index.members.len();
        Round {
            index,
            current,
            by_partition,
            active: vec![None; index.tasks()],
            standby: vec![Vec::new(); index.tasks()],
            of_member: vec![0; members],
            of_process: vec![0; index.processes.len()],
            active_quota: Quota::new(index.tasks(), members),
            all_quota: Quota::new(all, members),
        }
    }

    fn run(mut self) -> Placement {
        self.place_active_where_it_runs();
        self.place_active_where_its_state_is();
        self.place_active_at_the_least_loaded();
        if self.index.replicas > 0 && self.index.rack_aware_tags.is_empty() {
            let late = self.place_standby_where_its_state_is();
            self.place_standby_at_the_least_loaded(&late);
        } else if self.index.replicas > 0 {
            self.place_standby_by_tags();
        }
        self.standby.iter_mut().for_each(|members| members.sort_unstable());
        // The third pass leaves no task without a member.
        Placement { active: self.active.into_iter().flatten().collect(), standby: self.standby }
    }

    fn load(&self, process: Process) -> Load {
        Load { tasks: self.of_process[process], members: self.index.processes[process].len() }
    }

    fn give(&mut self, member: Member) -> usize {
        self.of_member[member] += 1;
        self.of_process[self.index.process_of[member]] += 1;
        self.of_member[member]
    }

    fn give_active(&mut self, task: Task, member: Member) {
        self.active[task] = Some(member);
        let count = self.give(member);
        self.active_quota.note(count);
        self.all_quota.note(count);
    }

    fn give_standby(&mut self, task: Task, member: Member) {
        self.standby[task].push(member);
        let count = self.give(member);
        self.all_quota.note(count);
    }

    fn holds(&self, process: Process, task: Task) -> bool {
        let holders = self.active[task].iter().chain(&self.standby[task]);
        holders.into_iter().any(|member| self.index.process_of[*member] == process)
    }

    /// Pass 1. Tasks on their way elsewhere come last: they are the ones to leave when the quota is short.
    fn place_active_where_it_runs(&mut self) {
        for leaving in [false, true] {
            for task in self.by_partition.iter().copied().filter(|task| self.current.leaving[*task] == leaving) {
                if let Some(member) = self.current.active[task]
                    && self.of_member[member] < self.active_quota.limit
                {
                    self.give_active(task, member);
                }
            }
        }
    }

    /// Pass 2.
    fn place_active_where_its_state_is(&mut self) {
        for task in self.by_partition {
            if self.active[*task].is_none()
                && let Some(member) = self.pick(*task, |_| true)
                && self.of_member[member] < self.active_quota.limit
            {
                self.give_active(*task, member);
            }
        }
    }

    /// Pass 3. Among the least loaded, the member that runs the task goes first.
    fn place_active_at_the_least_loaded(&mut self) {
        let mut processes = self.by_load();
        let mut members = MembersByCount::default();
        for task in 0..self.index.tasks() {
            if self.active[task].is_some() {
                continue;
            }
            // There is a process, since there is a member, and each is put back; an entry is stale if tasks came past it.
            while processes.peek().is_some_and(|Reverse((load, process))| *load != self.load(*process)) {
                processes.pop();
            }
            let Some(Reverse((least, first))) = processes.peek().copied() else {
                break;
            };
            let owner = self.current.active[task];
            let process = owner.map(|owner| self.index.process_of[owner]);
            let process = process.filter(|process| self.load(*process) == least).unwrap_or(first);
            let member = members.least(self, process, owner);
            self.give_active(task, member);
            processes.push(Reverse((self.load(process), process)));
        }
    }

    /// The first of the members that have state of the task; a later one takes its place only if both the load of its
    /// process and its own count are lower (sticky 4).
    fn pick(&self, task: Task, acceptable: impl Fn(Process) -> bool) -> Option<Member> {
        let mut best: Option<(Member, Load, usize)> = None;
        for Copy { member, .. } in &self.current.copies[task] {
            let process = self.index.process_of[*member];
            if !acceptable(process) {
                continue;
            }
            let (load, count) = (self.load(process), self.of_member[*member]);
            if best.is_none_or(|(_, best_load, best_count)| load < best_load && count < best_count) {
                best = Some((*member, load, count));
            }
        }
        best.map(|(member, ..)| member)
    }

    /// Yields the tasks that want more standbys, with how many.
    fn place_standby_where_its_state_is(&mut self) -> Vec<(Task, usize)> {
        let mut late = Vec::new();
        for task in self.by_partition.iter().copied().rev().filter(|task| self.index.stateful(*task)) {
            for placed in 0..self.index.replicas {
                let Some(member) = self.standby_with_state(task) else {
                    late.push((task, self.index.replicas - placed));
                    break;
                };
                self.give_standby(task, member);
            }
        }
        late.sort_unstable_by(|a, b| b.cmp(a));
        late
    }

    fn standby_with_state(&self, task: Task) -> Option<Member> {
        let free = |member: &Member| !self.holds(self.index.process_of[*member], task);
        let below_quota = |member: &Member| self.of_member[*member] < self.all_quota.limit;
        let ran_it = self.current.active[task].filter(|member| free(member) && below_quota(member));
        ran_it.or_else(|| self.pick(task, |process| !self.holds(process, task)).filter(below_quota))
    }

    fn place_standby_at_the_least_loaded(&mut self, late: &[(Task, usize)]) {
        let mut processes = self.by_load();
        let mut members = MembersByCount::default();
        let mut passed_over = Vec::new();
        for (task, copies) in late {
            for _ in 0..*copies {
                let free = loop {
                    match processes.pop() {
                        Some(Reverse((_, process))) if !self.holds(process, *task) => {
                            break Some(process);
                        }
                        Some(holder) => passed_over.push(holder),
                        None => break None,
                    }
                };
                if let Some(process) = free {
                    let member = members.least(self, process, None);
                    self.give_standby(*task, member);
                    processes.push(Reverse((self.load(process), process)));
                }
                processes.extend(passed_over.drain(..));
                if free.is_none() {
                    break;
                }
            }
        }
    }

    fn place_standby_by_tags(&mut self) {
        let index = self.index;
        let active: Vec<_> = self.active.iter().flatten().map(|member| index.process_of[*member]).collect();
        let placed = standby::place(index, self.current, &active, self.of_process.clone());
        self.standby = within::spread_standbys(index, self.current, &placed, &mut self.of_member);
    }

    fn by_load(&self) -> BinaryHeap<Reverse<(Load, Process)>> {
        (0..self.index.processes.len()).map(|process| Reverse((self.load(process), process))).collect()
    }
}

/// Finds the member with the fewest tasks in a process. Valid while nothing is given past it.
#[derive(Default)]
struct MembersByCount {
    heaps: Vec<Option<BinaryHeap<Reverse<(usize, Member)>>>>,
}

impl MembersByCount {
    /// Among those with the fewest tasks `preferred`, if it is one of them, else the first. The caller gives the member
    /// one task.
    fn least(&mut self, round: &Round<'_>, process: Process, preferred: Option<Member>) -> Member {
        self.heaps.resize(round.index.processes.len(), None);
        let members = &round.index.processes[process];
        let heap = self.heaps[process]
            .get_or_insert_with(|| members.iter().map(|member| Reverse((round.of_member[*member], *member))).collect());
        while heap.peek().is_some_and(|Reverse((count, member))| *count != round.of_member[*member]) {
            heap.pop();
        }
        // A process has at least one member, and each is put back.
        let Reverse((count, first)) = heap.peek().copied().unwrap_or(Reverse((0, members[0])));
        let is_as_good =
            |member: &Member| round.index.process_of[*member] == process && round.of_member[*member] == count;
        let member = preferred.filter(is_as_good).unwrap_or(first);
        heap.push(Reverse((count + 1, member)));
        member
    }
}
