//! Prints how long the assignors of streams groups take: `cargo run --release -p coordinator --example assign_time`.

use std::time::Instant;

use coordinator::assign::{AssignError, StreamsInput, StreamsMember, StreamsTarget, Subtopology, balanced, sticky};

fn group(members: usize, tasks: i32, tags: bool) -> StreamsInput {
    let subtopologies = (0..10).map(|number| Subtopology {
        id: number.to_string().into(),
        tasks: tasks / 10,
        stateful: number % 2 == 0,
    });
    let members = (0..members).map(|number| StreamsMember {
        member_id: format!("member-{number:05}").into(),
        process_id: format!("process-{:05}", number / 4).into(),
        client_tags: [("zone".into(), format!("z{}", number / 4 % 3).into())].into(),
        ..StreamsMember::default()
    });
    StreamsInput {
        members: members.collect(),
        subtopologies: subtopologies.collect(),
        num_standby_replicas: 1,
        rack_aware_tags: if tags { vec!["zone".into()] } else { Vec::new() },
    }
}

fn timed(what: &str, assign: impl Fn() -> Result<StreamsTarget, AssignError>) -> StreamsTarget {
    let started = Instant::now();
    let target = assign().expect("the group has members");
    println!("{what:40} {:7.1} ms", started.elapsed().as_secs_f64() * 1000.0);
    target
}

fn main() {
    type Assignor = fn(&StreamsInput) -> Result<StreamsTarget, AssignError>;
    let assignors: [(&str, Assignor); 2] = [("sticky", sticky::assign), ("balanced", balanced::assign)];
    for (name, assign) in assignors {
        for tags in [false, true] {
            let mut input = group(1000, 10_000, tags);
            let tagged = if tags { ", tags" } else { "" };
            let mut target = timed(&format!("{name}{tagged}: new group"), || assign(&input));
            for what in ["settled", "10 members left"] {
                for member in &mut input.members {
                    let tasks = target.remove(&member.member_id).unwrap_or_default();
                    (member.active, member.standby) = (tasks.active, tasks.standby);
                }
                if what != "settled" {
                    input.members.drain(500..510);
                }
                target = timed(&format!("{name}{tagged}: {what}"), || assign(&input));
            }
        }
    }
}
