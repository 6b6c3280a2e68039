//! Tests of streams groups over a whole shard.

mod admin;
mod app;
mod endpoints;
mod large;
mod matching;
mod messages;
mod oracle;
mod pace;
mod patterns;
mod persistence;
mod plan;
mod reconcile;
mod refused;
mod scenarios;
mod server;
mod updates;
mod warmups;

use std::collections::BTreeSet;

use crate::assign::{StreamsInput, StreamsTarget, TaskAssignment, TaskId, insert_task};

/// Deals tasks to members by turn, whatever they had before; standbys to the members that follow, one a process.
pub(super) fn round_robin(input: &StreamsInput) -> StreamsTarget {
    let count = input.members.len();
    let mut dealt = vec![TaskAssignment::default(); count];
    let tasks = input.subtopologies.iter().flat_map(|subtopology| {
        (0..subtopology.tasks)
            .map(move |partition| (subtopology, TaskId { subtopology: subtopology.id.clone(), partition }))
    });
    for (turn, (subtopology, task)) in tasks.enumerate() {
        insert_task(&mut dealt[turn % count].active, &task);
        let mut taken = BTreeSet::from([&input.members[turn % count].process_id]);
        let standbys = if subtopology.stateful { input.num_standby_replicas as usize } else { 0 };
        for next in turn + 1..=turn + standbys {
            if taken.insert(&input.members[next % count].process_id) {
                insert_task(&mut dealt[next % count].standby, &task);
            }
        }
    }
    input.members.iter().map(|member| member.member_id.clone()).zip(dealt).collect()
}
