//! How long the assignors of streams groups take: `cargo bench -p coordinator`.
//!
//! 1,000 members (as 1,000 processes, and as 20 of 50 threads), 100 subtopologies of 100 partitions, half of them stateful, one
//! standby. From nothing, after one join, and after one leave. Prints the fastest and the median of some runs, and how many
//! active tasks moved.

use std::time::{Duration, Instant};

use coordinator::assign::{
    AssignError, StreamsInput, StreamsMember, StreamsTarget, Subtopology, balanced, sticky, tasks_of,
};
use wire::KStr;

const MEMBERS: usize = 1_000;
const SUBTOPOLOGIES: usize = 100;
const PARTITIONS: i32 = 100;
const RUNS: usize = 15;

type Assignor = fn(&StreamsInput) -> Result<StreamsTarget, AssignError>;

fn member(number: usize, threads: usize) -> StreamsMember {
    StreamsMember {
        member_id: KStr::from(format!("member-{number:04}")),
        process_id: KStr::from(format!("process-{:04}", number / threads)),
        ..StreamsMember::default()
    }
}

fn group(threads: usize) -> StreamsInput {
    let subtopology = |number: usize| Subtopology {
        id: KStr::from(number.to_string()),
        tasks: PARTITIONS,
        stateful: number.is_multiple_of(2),
    };
    StreamsInput {
        num_standby_replicas: 1,
        subtopologies: (0..SUBTOPOLOGIES).map(subtopology).collect(),
        members: (0..MEMBERS).map(|number| member(number, threads)).collect(),
        ..StreamsInput::default()
    }
}

/// The group once its members have what they are to have.
fn settled(mut input: StreamsInput, target: &StreamsTarget) -> StreamsInput {
    for member in &mut input.members {
        if let Some(tasks) = target.get(&member.member_id) {
            (member.active, member.standby) = (tasks.active.clone(), tasks.standby.clone());
        }
    }
    input
}

fn moved(before: &StreamsTarget, after: &StreamsTarget) -> usize {
    let kept = |(id, tasks): (&KStr, &coordinator::assign::TaskAssignment)| {
        let now: std::collections::BTreeSet<_> =
            after.get(id).iter().flat_map(|tasks| tasks_of(&tasks.active)).collect();
        tasks_of(&tasks.active).filter(|task| now.contains(task)).count()
    };
    before.values().map(|tasks| tasks_of(&tasks.active).count()).sum::<usize>() - before.iter().map(kept).sum::<usize>()
}

fn measure(
    name: &str,
    what: &str,
    assignor: Assignor,
    input: &StreamsInput,
    before: Option<&StreamsTarget>,
) -> StreamsTarget {
    let mut times: Vec<Duration> = Vec::new();
    let mut target = StreamsTarget::default();
    for _ in 0..RUNS {
        let began = Instant::now();
        target = assignor(input).expect("there are members");
        times.push(began.elapsed());
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let moved = before.map(|before| format!(", {} active tasks moved", moved(before, &target))).unwrap_or_default();
    println!("{name:<9}{what:<32}{:7.1} ms at best,{:7.1} ms median{moved}", ms(times[0]), ms(times[RUNS / 2]));
    target
}

fn main() {
    for (name, assignor) in [("sticky", sticky::assign as Assignor), ("balanced", balanced::assign as Assignor)] {
        for threads in [1, 50] {
            let processes = MEMBERS / threads;
            let empty = group(threads);
            let target = measure(name, &format!("{processes} processes, from nothing"), assignor, &empty, None);
            let input = settled(empty, &target);
            let mut joined = input.clone();
            joined.members.push(member(MEMBERS, threads));
            measure(name, &format!("{processes} processes, one joins"), assignor, &joined, Some(&target));
            let mut left = input;
            left.members.remove(MEMBERS / 2);
            measure(name, &format!("{processes} processes, one leaves"), assignor, &left, Some(&target));
        }
    }
}
