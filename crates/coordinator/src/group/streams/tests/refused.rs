//! What the log refused did not happen, and is tried again. What a refused heartbeat found out is kept.

use wire::messages::streams_group_heartbeat_request::{
    StreamsGroupHeartbeatRequest, Subtopology, TaskIds, TaskOffset, Topology,
};
use wire::messages::streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;
use wire::{ErrorCode, KStr};

use crate::command::Command;
use crate::config::BrokerConfig;
use crate::outcome::Reply;
use crate::record::Record;
use crate::state_log::LogError;
use crate::testing::{Bench, caller};

fn request(member_epoch: i32) -> StreamsGroupHeartbeatRequest {
    let joins = member_epoch == 0;
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec!["in".into()], ..Subtopology::default() };
    StreamsGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        member_epoch,
        rebalance_timeout_ms: if joins { 1_000 } else { -1 },
        topology: joins.then(|| Topology { epoch: 0, subtopologies: vec![subtopology] }),
        active_tasks: joins.then(Vec::new),
        standby_tasks: joins.then(Vec::new),
        warmup_tasks: joins.then(Vec::new),
        ..StreamsGroupHeartbeatRequest::default()
    }
}

fn send(bench: &mut Bench, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse {
    match bench.call(Command::StreamsGroupHeartbeat(caller(1), Box::new(request))) {
        Some(Reply::StreamsGroupHeartbeat(response)) => *response,
        other => panic!("{other:?}"),
    }
}

fn heartbeat(bench: &mut Bench, member_epoch: i32) {
    let response = send(bench, request(member_epoch));
    assert!(response.member_epoch == member_epoch || member_epoch == 0);
}

fn removed(bench: &mut Bench) -> Vec<KStr> {
    let removed = bench.records().into_iter().filter_map(|record| match record {
        Record::StreamsMember(key, None) => Some(key.member_id),
        _ => None,
    });
    removed.collect()
}

#[test]
fn a_member_whose_removal_was_refused_gets_another_session_and_not_an_endless_one() {
    let now = BrokerConfig { streams_initial_rebalance_delay_ms: Some(0), ..BrokerConfig::default() };
    let mut bench = Bench::with_config(now);
    bench.set_topic("in", 1);
    heartbeat(&mut bench, 0);
    bench.records();
    bench.log_mut().fail_next_append(LogError::NoSpace);
    bench.advance(45_000);
    assert!(removed(&mut bench).is_empty());
    bench.advance(44_999);
    assert!(removed(&mut bench).is_empty());
    bench.advance(1);
    assert_eq!(removed(&mut bench), ["m"]);
}

/// S 1.4.4, 3.6.4: the topology that such a heartbeat resolved is there when the initial delay ends, as after one that is
/// answered; without any heartbeat after the join it is not.
#[test]
fn a_heartbeat_that_is_refused_after_the_topology_was_resolved_leaves_it_resolved() {
    let owns = |subtopology: &'static str, task: i32| {
        let tasks = TaskIds { subtopology_id: subtopology.into(), partitions: vec![task] };
        let lists = [vec![tasks], Vec::new(), Vec::new()];
        let [active_tasks, standby_tasks, warmup_tasks] = lists.map(Some);
        StreamsGroupHeartbeatRequest { active_tasks, standby_tasks, warmup_tasks, ..request(1) }
    };
    let offset = TaskOffset { subtopology_id: "0".into(), partition: 0, offset: 5 };
    let reports_twice = StreamsGroupHeartbeatRequest { task_offsets: Some(vec![offset.clone(), offset]), ..request(1) };
    let cases = [
        ("no heartbeat", None, 0),
        ("a heartbeat", Some((request(1), ErrorCode::None)), 2),
        ("an unknown subtopology", Some((owns("7", 0), ErrorCode::InvalidRequest)), 2),
        ("no such task", Some((owns("0", 1), ErrorCode::InvalidRequest)), 2),
        ("offsets of one task twice", Some((reports_twice, ErrorCode::InvalidRequest)), 2),
        ("refused before", Some((request(9), ErrorCode::FencedMemberEpoch)), 0),
    ];
    for (name, then, target_epoch) in cases {
        let later = BrokerConfig { streams_initial_rebalance_delay_ms: Some(2_000), ..BrokerConfig::default() };
        let mut bench = Bench::with_config(later);
        bench.set_topic("in", 1);
        heartbeat(&mut bench, 0);
        if let Some((request, error)) = then {
            assert_eq!(send(&mut bench, request).error_code, error.code(), "{name}");
        }
        bench.records();
        bench.advance(2_000);
        let targets = bench.records().into_iter().filter_map(|record| match record {
            Record::StreamsTargetMetadata(_, Some(value)) => Some(value.assignment_epoch),
            _ => None,
        });
        assert_eq!(targets.last().unwrap_or(0), target_epoch, "{name}");
    }
}

/// S 1.4.4: topics that changed meanwhile still make a new epoch, with the next heartbeat that is answered.
#[test]
fn a_change_of_topics_that_a_refused_heartbeat_saw_first_counts_with_the_next_one() {
    let now = BrokerConfig { streams_initial_rebalance_delay_ms: Some(0), ..BrokerConfig::default() };
    let mut bench = Bench::with_config(now);
    bench.set_topic("in", 1);
    heartbeat(&mut bench, 0);
    bench.advance(1_000);
    bench.set_topic("in", 2);
    let tasks = TaskIds { subtopology_id: "0".into(), partitions: vec![2] };
    let [active_tasks, standby_tasks, warmup_tasks] = [vec![tasks], Vec::new(), Vec::new()].map(Some);
    let wrong = StreamsGroupHeartbeatRequest { active_tasks, standby_tasks, warmup_tasks, ..request(2) };
    assert_eq!(send(&mut bench, wrong).error_code, ErrorCode::InvalidRequest.code());
    let answer = send(&mut bench, request(2));
    let active: Vec<i32> = answer.active_tasks.unwrap_or_default().into_iter().flat_map(|t| t.partitions).collect();
    assert_eq!((answer.member_epoch, active), (3, vec![0, 1]));
}
