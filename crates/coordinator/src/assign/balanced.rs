//! The `balanced` assignor: the tasks of each stateful subtopology are dealt over all processes, so that the loss of one
//! process stops only a part of each.
//!
//! It places as Kafka's high-availability assignor of the classic protocol does: stateful tasks are dealt to processes in
//! turn, with no move left that would lower the load per member of the fuller one; standbys go to the least loaded process
//! that does not have the task; stateless tasks fill the gaps. What is dealt here are places, though, not tasks: which
//! task gets which place is decided by where it runs and where its state is, so that fewer tasks move. A process spreads
//! what it gets over its members.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::index::{Current, Index, Load, Member, Placement, Process, Task, settle};
use super::{AssignError, StreamsInput, StreamsTarget, standby, within};

/// Assigns every task of the group. Fails if there is no member, or an id is there twice.
pub fn assign(input: &StreamsInput) -> Result<StreamsTarget, AssignError> {
    let index = Index::new(input)?;
    let by_partition = index.by_partition();
    let placement = settle(&index, |current| place(&index, current, &by_partition));
    Ok(index.target(&placement))
}

fn place(index: &Index<'_>, current: &Current, by_partition: &[Task]) -> Placement {
    let mut of_process = vec![0; index.processes.len()];
    let mut active = vec![None; index.tasks()];
    for stateful in [true, false] {
        let places = deal(index, stateful, &mut of_process);
        take_places(index, current, by_partition, places, &mut active);
    }
    // Every task has a place, as many were dealt.
    let active: Vec<Process> = active.into_iter().flatten().collect();
    let mut of_member = vec![0; index.members.len()];
    let standbys = if index.replicas == 0 {
        vec![Vec::new(); index.tasks()]
    } else {
        standby::place(index, current, &active, of_process)
    };
    let active = spread_active(index, current, &active, &mut of_member);
    let mut standby = within::spread_standbys(index, current, &standbys, &mut of_member);
    standby.iter_mut().for_each(|members| members.sort_unstable());
    Placement { active, standby }
}

/// The places of each subtopology of one kind: a process for each of its tasks, in the order in which they were dealt.
/// Each place goes to the process whose load per member is the lowest with it; among equal processes that is in turn.
fn deal(index: &Index<'_>, stateful: bool, of_process: &mut [usize]) -> Vec<Vec<Process>> {
    let with_one_more = |process: Process, tasks: usize| {
        Reverse((Load { tasks: tasks + 1, members: index.processes[process].len() }, process))
    };
    let mut heap: BinaryHeap<_> =
        of_process.iter().enumerate().map(|(process, tasks)| with_one_more(process, *tasks)).collect();
    let mut places = vec![Vec::new(); index.subtopologies()];
    for task in (0..index.tasks()).filter(|task| index.stateful(*task) == stateful) {
        // There is a process, since there is a member, and each is put back.
        let Some(Reverse((_, process))) = heap.pop() else {
            break;
        };
        of_process[process] += 1;
        heap.push(with_one_more(process, of_process[process]));
        places[index.subtopology(task)].push(process);
    }
    places
}

/// Tasks take the places of their subtopology: at the process where they run (those on their way elsewhere last), else
/// at one that has their state, else in order.
fn take_places(
    index: &Index<'_>,
    current: &Current,
    by_partition: &[Task],
    places: Vec<Vec<Process>>,
    active: &mut [Option<Process>],
) {
    let process_of = |member: Member| index.process_of[member];
    let mut free = Places::new(index, &places);
    let concerned = |task: &&Task| !places[index.subtopology(**task)].is_empty();
    for leaving in [false, true] {
        for task in by_partition.iter().filter(concerned).filter(|task| current.leaving[**task] == leaving) {
            let runs_at = current.active[*task].map(process_of);
            active[*task] = runs_at.filter(|process| free.take(index.subtopology(*task), *process));
        }
    }
    for task in by_partition.iter().filter(concerned) {
        if active[*task].is_none() {
            let mut copies = current.copies[*task].iter().map(|copy| process_of(copy.member));
            active[*task] = copies.find(|process| free.take(index.subtopology(*task), *process));
        }
    }
    for (subtopology, dealt) in places.iter().enumerate() {
        let mut rest = free.left(subtopology, dealt).into_iter();
        for task in index.tasks_of(subtopology).filter(|_| !dealt.is_empty()) {
            if active[task].is_none() {
                active[task] = rest.next();
            }
        }
    }
}

/// How many places each process has left in each subtopology.
struct Places {
    left: Vec<BTreeMap<Process, usize>>,
}

impl Places {
    fn new(index: &Index<'_>, places: &[Vec<Process>]) -> Self {
        let mut left = vec![BTreeMap::new(); index.subtopologies()];
        for (subtopology, dealt) in places.iter().enumerate() {
            dealt.iter().for_each(|process| *left[subtopology].entry(*process).or_default() += 1);
        }
        Places { left }
    }

    fn take(&mut self, subtopology: usize, process: Process) -> bool {
        match self.left[subtopology].get_mut(&process) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// The places left, in the order in which they were dealt.
    fn left(&mut self, subtopology: usize, dealt: &[Process]) -> Vec<Process> {
        dealt.iter().copied().filter(|process| self.take(subtopology, *process)).collect()
    }
}

/// Spreads the active tasks of each process over its members, stateful ones first.
fn spread_active(index: &Index<'_>, current: &Current, active: &[Process], of_member: &mut [usize]) -> Vec<Member> {
    let mut result = vec![0; active.len()];
    for stateful in [true, false] {
        let mut by_process: Vec<Vec<Task>> = vec![Vec::new(); index.processes.len()];
        for (task, process) in active.iter().enumerate().filter(|(task, _)| index.stateful(*task) == stateful) {
            by_process[*process].push(task);
        }
        for (process, tasks) in by_process.iter().enumerate() {
            let now: Vec<_> = tasks.iter().map(|task| within::holder(index, current, process, *task)).collect();
            for (task, member) in tasks.iter().zip(within::spread(index, process, &now, of_member)) {
                result[*task] = member;
            }
        }
    }
    result
}
