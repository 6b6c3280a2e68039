//! Spreads what a process was given over its members.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::index::{Current, Index, Member, Process, Task};

/// Shares out some tasks of one process so that its members have equally many, up to one, counting those in
/// `of_member`. A task stays at the member in `now` (if that is one of the process) while the share allows it.
/// Yields the members in the order of `tasks`.
pub(super) fn spread(
    index: &Index<'_>,
    process: Process,
    now: &[Option<Member>],
    of_member: &mut [usize],
) -> Vec<Member> {
    let members = &index.processes[process];
    let shares = shares(members, now.len(), of_member);
    let mut placed = vec![None; now.len()];
    let mut given = vec![0; members.len()];
    let mut spare = shares.spare;
    for (slot, member) in now.iter().enumerate() {
        let Some(number) = member.and_then(|member| members.binary_search(&member).ok()) else {
            continue;
        };
        let within = given[number] < shares.sure[number];
        let beyond = given[number] == shares.sure[number] && spare > 0 && shares.may_have_spare[number];
        if within || beyond {
            spare -= usize::from(!within);
            given[number] += 1;
            placed[slot] = Some(members[number]);
        }
    }
    for (number, member) in members.iter().enumerate() {
        of_member[*member] += given[number];
    }
    let mut heap: BinaryHeap<_> = members.iter().map(|member| Reverse((of_member[*member], *member))).collect();
    let mut result = Vec::with_capacity(now.len());
    for member in placed {
        result.push(member.unwrap_or_else(|| match heap.pop() {
            Some(Reverse((count, member))) => {
                heap.push(Reverse((count + 1, member)));
                of_member[member] += 1;
                member
            }
            // A process has at least one member, and each is put back.
            None => members[0],
        }));
    }
    result
}

/// How many tasks each member gets: `sure` ones, and `spare` members of those that may get one more.
struct Shares {
    sure: Vec<usize>,
    may_have_spare: Vec<bool>,
    spare: usize,
}

/// Fills the members up like water: the lowest first.
fn shares(members: &[Member], tasks: usize, of_member: &[usize]) -> Shares {
    let mut counts: Vec<_> = members.iter().map(|member| of_member[*member]).collect();
    counts.sort_unstable();
    let (mut below, mut under_water) = (0, 0);
    for (number, count) in counts.iter().enumerate() {
        if number * count - below > tasks {
            break;
        }
        below += count;
        under_water = number + 1;
    }
    let level = (tasks + below) / under_water;
    let spare = (tasks + below) % under_water;
    Shares {
        sure: members.iter().map(|member| level.saturating_sub(of_member[*member])).collect(),
        may_have_spare: members.iter().map(|member| of_member[*member] <= level).collect(),
        spare,
    }
}

/// Gives each standby of a process, by task in `placed`, to one of its members: the one that has it, if the balance allows.
pub(super) fn spread_standbys(
    index: &Index<'_>,
    current: &Current,
    placed: &[Vec<Process>],
    of_member: &mut [usize],
) -> Vec<Vec<Member>> {
    let mut by_process: Vec<Vec<Task>> = vec![Vec::new(); index.processes.len()];
    for (task, processes) in placed.iter().enumerate() {
        processes.iter().for_each(|process| by_process[*process].push(task));
    }
    let mut standby = vec![Vec::new(); placed.len()];
    for (process, tasks) in by_process.iter().enumerate() {
        let now: Vec<_> = tasks.iter().map(|task| holder(index, current, process, *task)).collect();
        for (task, member) in tasks.iter().zip(spread(index, process, &now, of_member)) {
            standby[*task].push(member);
        }
    }
    standby
}

/// The member of the process that runs the task now, or has the best state of it.
pub(super) fn holder(index: &Index<'_>, current: &Current, process: Process, task: Task) -> Option<Member> {
    let here = |member: &Member| index.process_of[*member] == process;
    let active = current.active[task].filter(here);
    active.or_else(|| current.copies[task].iter().map(|copy| copy.member).find(here))
}
