//! What the log refused did not happen, and is tried again.

use wire::KStr;
use wire::messages::streams_group_heartbeat_request::{StreamsGroupHeartbeatRequest, Subtopology, Topology};

use crate::command::Command;
use crate::config::BrokerConfig;
use crate::outcome::Reply;
use crate::record::Record;
use crate::state_log::LogError;
use crate::testing::{Bench, caller};

fn heartbeat(bench: &mut Bench, member_epoch: i32) {
    let joins = member_epoch == 0;
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec!["in".into()], ..Subtopology::default() };
    let request = StreamsGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        member_epoch,
        rebalance_timeout_ms: if joins { 1_000 } else { -1 },
        topology: joins.then(|| Topology { epoch: 0, subtopologies: vec![subtopology] }),
        active_tasks: joins.then(Vec::new),
        standby_tasks: joins.then(Vec::new),
        warmup_tasks: joins.then(Vec::new),
        ..StreamsGroupHeartbeatRequest::default()
    };
    let reply = bench.call(Command::StreamsGroupHeartbeat(caller(1), Box::new(request)));
    assert!(
        matches!(reply, Some(Reply::StreamsGroupHeartbeat(response)) if response.member_epoch == member_epoch || joins)
    );
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
