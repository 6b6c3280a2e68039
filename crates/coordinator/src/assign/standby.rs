//! Places standbys on processes: spread over the values of client tags first (decision 9), then where the state is, then
//! evenly.

use std::collections::{BTreeMap, BTreeSet};

use wire::KStr;

use super::index::{Current, Index, Load, Process, Task};

/// Rounds of evening out. Each lowers a load that is the higher one of two, so there is an end; this is for the clock.
const MAX_SWEEPS: usize = 8;

/// Chooses processes for the standbys of every stateful task. `active` is the process of each task, `of_process` the number
/// of tasks that processes have already.
///
/// 1. A standby stays where it is, or goes to where the task ran or has state, if that is as good for the tags as any.
/// 2. Else it goes to the least loaded of the processes that are best for the tags.
/// 3. Standbys move from a process to one that has fewer tasks per member even after the move, if the tags lose nothing.
pub(super) fn place(
    index: &Index<'_>,
    current: &Current,
    active: &[Process],
    of_process: Vec<usize>,
) -> Vec<Vec<Process>> {
    let mut placer = Placer::new(index, active, of_process);
    let stateful: Vec<_> = (0..index.tasks()).filter(|task| index.stateful(*task)).collect();
    for task in &stateful {
        placer.keep(current, *task);
    }
    for task in &stateful {
        placer.fill(*task);
    }
    for _ in 0..MAX_SWEEPS {
        let moved = stateful.iter().filter(|task| placer.even_out(**task)).count();
        if moved == 0 {
            break;
        }
    }
    placer.standby
}

/// Processes that are the same for the tags.
struct Kind {
    /// The value of each tag, numbered; none if the process does not have the tag.
    values: Vec<Option<usize>>,
    by_load: BTreeSet<(Load, Process)>,
}

struct Placer<'a> {
    index: &'a Index<'a>,
    active: &'a [Process],
    standby: Vec<Vec<Process>>,
    of_process: Vec<usize>,
    kind_of: Vec<usize>,
    kinds: Vec<Kind>,
}

impl<'a> Placer<'a> {
    fn new(index: &'a Index<'a>, active: &'a [Process], of_process: Vec<usize>) -> Self {
        let (kind_of, values) = kinds_of(index);
        let kinds = values.into_iter().map(|values| Kind { values, by_load: BTreeSet::new() }).collect();
        let standby = vec![Vec::new(); index.tasks()];
        let mut placer = Placer { index, active, standby, of_process, kind_of, kinds };
        for process in 0..placer.of_process.len() {
            let load = placer.load(process);
            placer.kinds[placer.kind_of[process]].by_load.insert((load, process));
        }
        placer
    }

    fn load(&self, process: Process) -> Load {
        Load { tasks: self.of_process[process], members: self.index.processes[process].len() }
    }

    fn holds(&self, process: Process, task: Task) -> bool {
        self.active[task] == process || self.standby[task].contains(&process)
    }

    fn recount(&mut self, process: Process, tasks: usize) {
        let kind = self.kind_of[process];
        let before = (self.load(process), process);
        self.kinds[kind].by_load.remove(&before);
        self.of_process[process] = tasks;
        let after = (self.load(process), process);
        self.kinds[kind].by_load.insert(after);
    }

    fn give(&mut self, process: Process, task: Task) {
        self.standby[task].push(process);
        self.recount(process, self.of_process[process] + 1);
    }

    /// Number of tags that a process of this kind adds a new value to.
    fn gain(&self, kind: usize, task: Task, without: Option<Process>) -> usize {
        let holders = std::iter::once(&self.active[task]).chain(&self.standby[task]);
        let holders: Vec<_> = holders.filter(|process| Some(**process) != without).collect();
        let values = self.kinds[kind].values.iter().enumerate();
        let new = values.filter(|(tag, value)| {
            let known = |process: &&Process| self.kinds[self.kind_of[**process]].values[*tag] == **value;
            value.is_some() && !holders.iter().any(known)
        });
        new.count()
    }

    /// The least loaded process of a kind that does not hold the task.
    fn least_loaded(&self, kind: usize, task: Task) -> Option<(Load, Process)> {
        self.kinds[kind].by_load.iter().copied().find(|(_, process)| !self.holds(*process, task))
    }

    /// The least loaded of the processes that are best for the tags.
    fn best(&self, task: Task) -> Option<Process> {
        let mut best: Option<(usize, (Load, Process))> = None;
        for kind in 0..self.kinds.len() {
            let gain = self.gain(kind, task, None);
            if best.is_some_and(|(best_gain, _)| gain < best_gain) {
                continue;
            }
            if let Some(found) = self.least_loaded(kind, task)
                && best.is_none_or(|(best_gain, best_found)| gain > best_gain || found < best_found)
            {
                best = Some((gain, found));
            }
        }
        best.map(|(_, (_, process))| process)
    }

    /// Rule 1.
    fn keep(&mut self, current: &Current, task: Task) {
        let held = current.copies[task].iter().filter(|copy| copy.held);
        let rest = current.copies[task].iter().filter(|copy| !copy.held);
        let members = current.active[task].into_iter().chain(held.chain(rest).map(|copy| copy.member));
        let processes: Vec<_> = members.map(|member| self.index.process_of[member]).collect();
        while self.standby[task].len() < self.index.replicas {
            let Some(best) = self.best(task) else { return };
            let gain = self.gain(self.kind_of[best], task, None);
            let as_good = |process: &&Process| {
                !self.holds(**process, task) && self.gain(self.kind_of[**process], task, None) == gain
            };
            let Some(process) = processes.iter().find(as_good).copied() else {
                return;
            };
            self.give(process, task);
        }
    }

    /// Rule 2.
    fn fill(&mut self, task: Task) {
        while self.standby[task].len() < self.index.replicas {
            let Some(process) = self.best(task) else {
                return;
            };
            self.give(process, task);
        }
    }

    /// Rule 3, for the standbys of one task. True if one moved.
    fn even_out(&mut self, task: Task) -> bool {
        let mut moved = false;
        for slot in 0..self.standby[task].len() {
            let from = self.standby[task][slot];
            let gain = self.gain(self.kind_of[from], task, Some(from));
            let better = (0..self.kinds.len()).filter_map(|kind| {
                let found = self.least_loaded(kind, task).filter(|(load, _)| self.falls(from, *load))?;
                (self.gain(kind, task, Some(from)) >= gain).then_some(found)
            });
            let Some((_, to)) = better.min() else {
                continue;
            };
            self.standby[task][slot] = to;
            self.recount(from, self.of_process[from] - 1);
            self.recount(to, self.of_process[to] + 1);
            moved = true;
        }
        moved
    }

    /// Whether a task that moves to a process with this load leaves it below what `from` has now.
    fn falls(&self, from: Process, to: Load) -> bool {
        Load { tasks: to.tasks + 1, members: to.members } < self.load(from)
    }
}

/// The kind of each process, and the values of each kind. The tags of a process are those of its first member.
fn kinds_of(index: &Index<'_>) -> (Vec<usize>, Vec<Vec<Option<usize>>>) {
    let mut numbers: BTreeMap<(usize, &KStr), usize> = BTreeMap::new();
    let mut kinds: BTreeMap<Vec<Option<usize>>, usize> = BTreeMap::new();
    let mut kind_of = Vec::with_capacity(index.processes.len());
    for members in &index.processes {
        let tags = &index.members[members[0]].client_tags;
        let values = index.rack_aware_tags.iter().enumerate().map(|(tag, name)| {
            let value = tags.get(name)?;
            let next = numbers.len();
            Some(*numbers.entry((tag, value)).or_insert(next))
        });
        let values = values.collect();
        let next = kinds.len();
        kind_of.push(*kinds.entry(values).or_insert(next));
    }
    let mut values = vec![Vec::new(); kinds.len()];
    kinds.into_iter().for_each(|(each, number)| values[number] = each);
    (kind_of, values)
}
