//! One step of reconciliation against the independent model (`../shared/harness/assignor-oracle/reconcile.py`, which agrees
//! with Kafka's class on 40,000 cases): random members, targets, owned tasks and holders, warm-ups included (S 6.3 to 6.6).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::KStr;

use crate::assign::{TaskAssignment, TaskId, TaskSet};
use crate::group::streams::holders::{Holders, Index};
use crate::group::streams::member::{ActiveTasks, Member, MemberState, Metadata, Owned, Tasks};
use crate::group::streams::reconcile::reconcile;

#[test]
fn steps_are_those_of_the_model() {
    let vectors = include_str!("../../../../tests/scenarios/streams-reconcile.jsonl");
    let mut count = 0;
    for (at, line) in vectors.lines().enumerate() {
        let vector: Value = serde_json::from_str(line).expect("a vector is JSON");
        let (case, expected) = (&vector[0], &vector[1]);
        let before = member(&case["member"]);
        let target = &case["target"];
        let assignment = TaskAssignment {
            active: set(&target["active"]),
            standby: set(&target["standby"]),
            warmup: set(&target["warmup"]),
        };
        let owned = case["owned"].as_object().map(|_| owned(&case["owned"]));
        let epoch = target["epoch"].as_i64().expect("an epoch") as i32;
        let after = reconcile(&before, epoch, &assignment, owned.as_ref(), &holders(case));
        match after {
            Err(failure) => {
                assert_eq!(expected["error"], "FencedMemberEpochException", "case {at}: {failure}");
            }
            Ok(after) => {
                let after = after.unwrap_or(before);
                assert_eq!(show(&after), complete(expected), "case {at}: {case}");
            }
        }
        count += 1;
    }
    assert_eq!(count, 400);
}

fn member(case: &Value) -> Member {
    let tasks = |case: &Value| Tasks {
        active: with_epochs(&case["active"]),
        standby: set(&case["standby"]),
        warmup: set(&case["warmup"]),
    };
    let process_id = KStr::copy(case["process"].as_str().expect("a process"));
    Member {
        metadata: Arc::new(Metadata { process_id, ..Metadata::default() }),
        epoch: case["epoch"].as_i64().expect("an epoch") as i32,
        previous_epoch: case["prev"].as_i64().expect("an epoch") as i32,
        state: MemberState::from_byte(case["state"].as_i64().expect("a state") as i8),
        assigned: Arc::new(tasks(&case["assigned"])),
        pending: Arc::new(tasks(&case["pending"])),
    }
}

fn with_epochs(value: &Value) -> ActiveTasks {
    let each = value.as_object().into_iter().flatten().map(|(id, epochs)| {
        let epochs = epochs.as_object().into_iter().flatten();
        let epochs =
            epochs.map(|(task, epoch)| (task.parse().expect("a task"), epoch.as_i64().expect("an epoch") as i32));
        (KStr::copy(id), epochs.collect())
    });
    each.collect()
}

fn set(value: &Value) -> TaskSet {
    let each = value.as_object().into_iter().flatten().map(|(id, tasks)| {
        let tasks = tasks.as_array().into_iter().flatten();
        (KStr::copy(id), tasks.map(|task| task.as_i64().expect("a task") as i32).collect())
    });
    each.collect()
}

fn owned(value: &Value) -> Owned {
    let flat = |value: &Value| crate::assign::tasks_of(&set(value)).collect();
    Owned {
        active: flat(&value["active"]),
        standby: flat(&value["standby"]),
        warmup: flat(&value["warmup"]),
        ambiguous: false,
    }
}

fn holders(case: &Value) -> Holders {
    let index = |value: &Value| {
        let mut index = Index::default();
        for (id, tasks) in value.as_object().into_iter().flatten() {
            for (task, processes) in tasks.as_object().into_iter().flatten() {
                let processes = match processes {
                    Value::Array(processes) => processes.clone(),
                    one => vec![one.clone()],
                };
                for process in processes {
                    let task = TaskId { subtopology: KStr::copy(id), partition: task.parse().expect("a task") };
                    index.add(task, &KStr::copy(process.as_str().expect("a process")));
                }
            }
        }
        index
    };
    Holders {
        active: index(&case["activeProcess"]),
        standby: index(&case["standbyProcesses"]),
        warmup: index(&case["warmupProcesses"]),
    }
}

fn show(member: &Member) -> Value {
    let sets = |tasks: &TaskSet| tasks.iter().map(|(id, tasks)| (id.to_string(), json!(tasks))).collect::<Map<_, _>>();
    let tasks = |tasks: &Tasks| {
        let active: Map<_, _> = tasks
            .active
            .iter()
            .map(|(id, epochs)| {
                let epochs: Map<_, _> = epochs.iter().map(|(task, epoch)| (task.to_string(), json!(epoch))).collect();
                (id.to_string(), json!(epochs))
            })
            .collect();
        json!({"active": active, "standby": sets(&tasks.standby), "warmup": sets(&tasks.warmup)})
    };
    json!({
        "state": member.state as i8,
        "epoch": member.epoch,
        "prev": member.previous_epoch,
        "assigned": tasks(&member.assigned),
        "pending": tasks(&member.pending),
    })
}

/// The vectors leave out what is empty.
fn complete(expected: &Value) -> Value {
    let tasks = |value: &Value| {
        let role = |name: &str| if value[name].is_null() { json!({}) } else { value[name].clone() };
        json!({"active": role("active"), "standby": role("standby"), "warmup": role("warmup")})
    };
    json!({
        "state": expected["state"],
        "epoch": expected["epoch"],
        "prev": expected["prev"],
        "assigned": tasks(&expected["assigned"]),
        "pending": tasks(&expected["pending"]),
    })
}
