//! A streams group as numbers: what both streams assignors compute on.
//!
//! Members, processes and subtopologies are numbered in ascending order of their ids, tasks by subtopology and then
//! partition, whatever the order of the input. So every tie that is broken by number is broken alike on every machine.

use std::cmp::{Ordering, Reverse};

use wire::KStr;

use super::{AssignError, StreamsInput, StreamsMember, StreamsTarget, Subtopology, TaskAssignment, TaskSet};

pub(super) type Member = usize;
pub(super) type Process = usize;
pub(super) type Task = usize;

/// The members, processes and tasks of one input.
pub(super) struct Index<'a> {
    pub members: Vec<&'a StreamsMember>,
    pub process_of: Vec<Process>,
    /// Members of each process, ascending.
    pub processes: Vec<Vec<Member>>,
    subtopologies: Vec<&'a Subtopology>,
    /// Number of the first task of each subtopology, and the number of all tasks at the end.
    first_task: Vec<Task>,
    subtopology_of: Vec<usize>,
    /// Standbys wanted of each stateful task.
    pub replicas: usize,
    pub rack_aware_tags: &'a [KStr],
}

impl<'a> Index<'a> {
    pub fn new(input: &'a StreamsInput) -> Result<Self, AssignError> {
        let mut members: Vec<_> = input.members.iter().collect();
        members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
        if members.is_empty() {
            return Err(AssignError("the group has no members".to_owned()));
        }
        if let Some(twice) = members.windows(2).find(|pair| pair[0].member_id == pair[1].member_id) {
            return Err(AssignError(format!("member {} is there twice", twice[0].member_id)));
        }
        let mut subtopologies: Vec<_> = input.subtopologies.iter().collect();
        subtopologies.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some(twice) = subtopologies.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(AssignError(format!("subtopology {} is there twice", twice[0].id)));
        }
        let (process_of, processes) = processes_of(&members);
        let (mut first_task, mut subtopology_of) = (vec![0], Vec::new());
        for (number, subtopology) in subtopologies.iter().enumerate() {
            subtopology_of.resize(subtopology_of.len() + usize::try_from(subtopology.tasks).unwrap_or(0), number);
            first_task.push(subtopology_of.len());
        }
        let replicas = usize::try_from(input.num_standby_replicas).unwrap_or(usize::MAX);
        let rack_aware_tags = &input.rack_aware_tags;
        Ok(Index {
            members,
            process_of,
            processes,
            subtopologies,
            first_task,
            subtopology_of,
            replicas,
            rack_aware_tags,
        })
    }

    pub fn tasks(&self) -> usize {
        self.subtopology_of.len()
    }

    pub fn subtopologies(&self) -> usize {
        self.subtopologies.len()
    }

    pub fn tasks_of(&self, subtopology: usize) -> std::ops::Range<Task> {
        self.first_task[subtopology]..self.first_task[subtopology + 1]
    }

    pub fn subtopology(&self, task: Task) -> usize {
        self.subtopology_of[task]
    }

    pub fn stateful(&self, task: Task) -> bool {
        self.subtopologies[self.subtopology_of[task]].stateful
    }

    pub fn partition(&self, task: Task) -> usize {
        task - self.first_task[self.subtopology_of[task]]
    }

    /// All tasks by partition, then subtopology.
    pub fn by_partition(&self) -> Vec<Task> {
        let mut tasks: Vec<_> = (0..self.tasks()).collect();
        tasks.sort_by_key(|task| (self.partition(*task), self.subtopology_of[*task]));
        tasks
    }

    /// The number of a task; none if the topology has no such task.
    fn task(&self, subtopology: &KStr, partition: i32) -> Option<Task> {
        let number = self.subtopologies.binary_search_by(|each| each.id.cmp(subtopology)).ok()?;
        let task = self.first_task[number] + usize::try_from(partition).ok()?;
        (task < self.first_task[number + 1]).then_some(task)
    }

    fn numbers<'s>(&'s self, tasks: &'s TaskSet) -> impl Iterator<Item = Task> + 's {
        let all = tasks.iter().flat_map(|(id, partitions)| partitions.iter().map(move |partition| (id, *partition)));
        all.filter_map(|(id, partition)| self.task(id, partition))
    }

    /// A placement in the terms of the caller. Every member has an entry.
    pub fn target(&self, placement: &Placement) -> StreamsTarget {
        let mut assignments = vec![TaskAssignment::default(); self.members.len()];
        for task in 0..self.tasks() {
            let id = &self.subtopologies[self.subtopology_of[task]].id;
            // A partition number fits, as it was counted up to an `i32`.
            let partition = self.partition(task) as i32;
            let active = &mut assignments[placement.active[task]].active;
            active.entry(id.clone()).or_default().insert(partition);
            for member in &placement.standby[task] {
                assignments[*member].standby.entry(id.clone()).or_default().insert(partition);
            }
        }
        self.members.iter().zip(assignments).map(|(member, tasks)| (member.member_id.clone(), tasks)).collect()
    }
}

fn processes_of(members: &[&StreamsMember]) -> (Vec<Process>, Vec<Vec<Member>>) {
    let mut ids: Vec<_> = members.iter().map(|member| &member.process_id).collect();
    ids.sort();
    ids.dedup();
    let mut processes = vec![Vec::new(); ids.len()];
    let mut process_of = Vec::with_capacity(members.len());
    for (number, member) in members.iter().enumerate() {
        let process = ids.partition_point(|id| *id < &member.process_id);
        processes[process].push(number);
        process_of.push(process);
    }
    (process_of, processes)
}

/// Who gets what, by task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub active: Vec<Member>,
    /// Ascending.
    pub standby: Vec<Vec<Member>>,
}

/// A member that has state of a task although it does not run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub member: Member,
    /// It holds the task as standby or warm-up; else it only reported an offset.
    pub held: bool,
    pub offset: Option<i64>,
}

/// What runs where now, by task.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub active: Vec<Option<Member>>,
    /// Best first: held before not held, then the larger offset (0 if unknown), then the lower member (sticky 4).
    pub copies: Vec<Vec<Copy>>,
    /// The task is being warmed up at another member than the one that runs it.
    pub leaving: Vec<bool>,
    warmups: bool,
}

impl Current {
    pub fn of(index: &Index<'_>) -> Self {
        let mut active = vec![None; index.tasks()];
        let mut copies = vec![Vec::new(); index.tasks()];
        let mut leaving = vec![false; index.tasks()];
        for (number, member) in index.members.iter().enumerate() {
            index.numbers(&member.active).for_each(|task| active[task] = Some(number));
            for task in index.numbers(&member.standby).chain(index.numbers(&member.warmup)) {
                copies[task].push(Copy { member: number, held: true, offset: None });
            }
            index.numbers(&member.warmup).for_each(|task| leaving[task] = true);
            for (id, offset) in &member.task_offsets {
                let Some(task) = index.task(&id.subtopology, id.partition) else {
                    continue;
                };
                match copies[task].iter_mut().find(|copy: &&mut Copy| copy.member == number) {
                    Some(copy) => copy.offset = Some(*offset),
                    None => copies[task].push(Copy { member: number, held: false, offset: Some(*offset) }),
                }
            }
        }
        let warmups = leaving.contains(&true);
        let mut current = Current { active, copies, leaving, warmups };
        current.rank();
        current
    }

    /// As if the placement had been carried out.
    pub fn adopt(&mut self, placement: &Placement) {
        for (task, copies) in self.copies.iter_mut().enumerate() {
            self.active[task] = Some(placement.active[task]);
            let standbys = &placement.standby[task];
            copies.iter_mut().for_each(|copy| copy.held = standbys.contains(&copy.member));
            copies.retain(|copy| copy.held || copy.offset.is_some());
            for member in standbys {
                if !copies.iter().any(|copy| copy.member == *member) {
                    copies.push(Copy { member: *member, held: true, offset: None });
                }
            }
        }
        self.leaving.fill(false);
        self.warmups = false;
        self.rank();
    }

    /// Whether the placement is what runs now.
    pub fn is(&self, placement: &Placement) -> bool {
        let standbys = |task: Task| {
            let mut members: Vec<_> =
                self.copies[task].iter().filter(|copy| copy.held).map(|copy| copy.member).collect();
            members.sort_unstable();
            members
        };
        !self.warmups
            && self.active.iter().zip(&placement.active).all(|(now, then)| *now == Some(*then))
            && placement.standby.iter().enumerate().all(|(task, members)| standbys(task) == *members)
    }

    fn rank(&mut self) {
        for copies in &mut self.copies {
            copies.sort_by_key(|copy| (!copy.held, Reverse(copy.offset.unwrap_or(0)), copy.member));
        }
    }
}

/// Repetitions until a result stands; random groups took at most 4.
const MAX_ROUNDS: usize = 16;

/// Computes until the result, taken for what runs now, comes out again: a group that is settled stays so.
pub(super) fn settle(index: &Index<'_>, compute: impl Fn(&Current) -> Placement) -> Placement {
    let mut current = Current::of(index);
    let mut placement = compute(&current);
    for _ in 1..MAX_ROUNDS {
        if current.is(&placement) {
            break;
        }
        current.adopt(&placement);
        placement = compute(&current);
    }
    placement
}

/// Tasks per member of a process, compared exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub tasks: usize,
    /// At least 1.
    pub members: usize,
}

impl Ord for Load {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.tasks * other.members).cmp(&(other.tasks * self.members))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Load {}
