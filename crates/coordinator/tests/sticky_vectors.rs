//! The sticky assignor against an independent model of its specification, on the worked examples and random groups.

use std::collections::BTreeMap;

use coordinator::assign::{
    StreamsInput, StreamsMember, StreamsTarget, Subtopology, TaskAssignment, TaskId, TaskSet, sticky,
};
use wire::KStr;

#[derive(Default)]
struct Case {
    name: String,
    input: StreamsInput,
    expected: StreamsTarget,
}

fn id(text: &str) -> KStr {
    KStr::from(text.to_owned())
}

/// `SUB:X,X;SUB:X` with something to make of each `X`.
fn entries(text: &str) -> impl Iterator<Item = (KStr, &str)> {
    let subtopologies = text.split(';').filter(|part| *part != "-");
    subtopologies.flat_map(|part| {
        let (subtopology, rest) = part.split_once(':').expect("SUB:LIST");
        rest.split(',').map(move |each| (id(subtopology), each))
    })
}

fn tasks(text: &str) -> TaskSet {
    let mut tasks = TaskSet::new();
    for (subtopology, partition) in entries(text) {
        tasks.entry(subtopology).or_default().insert(partition.parse().expect("a partition"));
    }
    tasks
}

fn offsets(text: &str) -> BTreeMap<TaskId, i64> {
    let offsets = entries(text).map(|(subtopology, entry)| {
        let (partition, offset) = entry.split_once('=').expect("PARTITION=OFFSET");
        let partition = partition.parse().expect("a partition");
        (TaskId { subtopology, partition }, offset.parse().expect("an offset"))
    });
    offsets.collect()
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in include_str!("sticky_vectors.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        if words[0] == "case" {
            let num_standby_replicas = words[2].parse().expect("a number");
            let input = StreamsInput { num_standby_replicas, ..StreamsInput::default() };
            cases.push(Case { name: words[1].to_owned(), input, ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        match words[..] {
            ["sub", name, number, kind] => case.input.subtopologies.push(Subtopology {
                id: id(name),
                tasks: number.parse().expect("a number"),
                stateful: kind == "stateful",
            }),
            ["member", member, process, active, standby, reported] => case.input.members.push(StreamsMember {
                member_id: id(member),
                process_id: id(process),
                active: tasks(active),
                standby: tasks(standby),
                task_offsets: offsets(reported),
                ..StreamsMember::default()
            }),
            ["gets", member, active, standby] => {
                let gets = TaskAssignment { active: tasks(active), standby: tasks(standby), warmup: TaskSet::new() };
                case.expected.insert(id(member), gets);
            }
            _ => panic!("unknown line: {line}"),
        }
    }
    cases
}

#[test]
fn the_sticky_assignor_places_as_the_model_of_the_specification_does() {
    let cases = cases();
    assert!(cases.len() > 300, "{} cases", cases.len());
    for case in cases {
        assert_eq!(sticky::assign(&case.input).as_ref(), Ok(&case.expected), "case {}", case.name);
    }
}
