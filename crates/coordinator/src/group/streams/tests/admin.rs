//! Descriptions of topologies (decision 15), conversion from classic groups (S 10.4), internal topics (S 4.8).

use wire::KStr;
use wire::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use wire::messages::streams_group_topology_description_update_request as update;

use super::app::{App, GROUP, immediate};
use crate::command::Command;
use crate::outcome::{Effect, Reply};
use crate::record::Record;
use crate::testing::caller;

fn describe_topology(app: &mut App, member: &str, epoch: i32, name_bytes: usize) -> i16 {
    let node = update::TopologyDescriptionNode { name: KStr::from("n".repeat(name_bytes)), ..Default::default() };
    let subtopology = update::TopologyDescriptionSubtopology { subtopology_id: "0".into(), nodes: vec![node] };
    let request = update::StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: GROUP.into(),
        member_id: KStr::copy(member),
        topology_epoch: epoch,
        topology_description: update::TopologyDescription { subtopologies: vec![subtopology], global_stores: vec![] },
    };
    let command = Command::StreamsTopologyDescriptionUpdate(caller(0), Box::new(request));
    let Reply::StreamsTopologyDescriptionUpdate(answer) = app.bench.ask(command) else { panic!("another reply") };
    answer.error_code
}

fn described(app: &mut App) -> i8 {
    let command =
        Command::StreamsGroupDescribe { caller: caller(1), group_id: GROUP.into(), include_topology_description: true };
    let Reply::StreamsGroupDescribe(group) = app.bench.ask(command) else { panic!("another reply") };
    assert_eq!(group.topology_description.is_some(), group.topology_description_status == 3);
    group.topology_description_status
}

#[test]
fn one_member_at_a_time_is_asked_to_describe_the_topology() {
    let mut app = App::new(immediate(), 2, false);
    assert!(app.join("m1", "p1").topology_description_required);
    assert!(!app.join("m2", "p2").topology_description_required, "m1 was asked");
    app.bench.advance(30_000);
    assert!(app.beat("m2").topology_description_required, "m1 did not answer");
    assert_eq!(described(&mut app), 1);
    assert_eq!(describe_topology(&mut app, "m2", 0, 10), 0);
    assert_eq!(described(&mut app), 3);
    app.bench.advance(30_000);
    assert!(!app.beat("m1").topology_description_required);
    app.bench.restart();
    assert!(app.beat("m1").topology_description_required, "memory only");
}

#[test]
fn descriptions_are_refused_from_strangers_for_other_epochs_and_if_they_are_too_large() {
    let mut app = App::new(immediate(), 2, false);
    app.join("m1", "p1");
    assert_eq!(describe_topology(&mut app, "", 0, 1), 42);
    assert_eq!(describe_topology(&mut app, "zz", 0, 1), 25);
    assert_eq!(describe_topology(&mut app, "m1", 1, 1), 42);
    assert_eq!(describe_topology(&mut app, "m1", 0, 2_000_000), 135);
    app.bench.advance(40_000);
    assert!(!app.beat("m1").topology_description_required, "it would be too large again");
    let mut old = app.client("m2", "p2");
    old.version = 0;
    app.add(old);
    assert!(!app.beat("m2").topology_description_required, "version 0 has no such field");
}

fn join_classic(app: &mut App) {
    let request = JoinGroupRequest {
        group_id: GROUP.into(),
        session_timeout_ms: 30_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".into(), ..Default::default() }],
        ..Default::default()
    };
    // Answered with a member id to come back with; the group is there and has no members.
    app.bench.send(Command::JoinGroup(caller(9), Box::new(request)));
}

#[test]
fn an_empty_classic_group_becomes_a_streams_group_with_its_tombstone_first() {
    let mut app = App::new(immediate(), 2, false);
    join_classic(&mut app);
    app.bench.records();
    let answer = app.join("m1", "p1");
    assert_eq!((answer.error_code, answer.member_epoch), (0, 2));
    let records = app.bench.records();
    assert!(matches!(&records[0], Record::GroupMetadata(_, None)), "{records:?}");
    assert!(matches!(&records[1], Record::StreamsMember(_, Some(_))), "{records:?}");
    assert_eq!(app.state(), "Stable");
    app.bench.restart();
    assert_eq!(app.state(), "Stable");
}

#[test]
fn an_empty_streams_group_becomes_a_classic_group() {
    let mut app = App::new(immediate(), 2, false);
    app.join("m1", "p1");
    app.leave("m1", -1);
    app.bench.records();
    join_classic(&mut app);
    let types: Vec<i16> =
        app.bench.records().iter().filter(|record| record.is_tombstone()).map(Record::record_type).collect();
    assert_eq!(types, [20, 17, 23]);
    assert_eq!(app.describe().error_code, 69);
    assert!(app.bench.timers().iter().all(|(_, name)| !name.contains("Streams")), "{:?}", app.bench.timers());
}

#[test]
fn creation_of_internal_topics_is_asked_for_once_and_its_errors_are_shown_for_two_intervals() {
    let mut app = App::new(immediate(), 2, true);
    app.creates_topics = false;
    let asked = |app: &mut App| {
        let effects = app.bench.effects().into_iter().filter_map(|effect| match effect {
            Effect::CreateInternalTopics { topics, .. } => Some(topics),
            _ => None,
        });
        effects
            .flatten()
            .map(|topic| (topic.name.to_string(), topic.partitions, topic.replication_factor))
            .collect::<Vec<_>>()
    };
    let detail = |app: &mut App| {
        let answer = app.beat("m1");
        answer.status.iter().flatten().map(|status| status.status_detail.to_string()).collect::<String>()
    };
    app.join("m1", "p1");
    assert_eq!(asked(&mut app), [("app-0-changelog".to_owned(), 2, -1)]);
    assert_eq!(detail(&mut app), "Internal topics are missing: app-0-changelog");
    assert_eq!(asked(&mut app), [], "in flight");

    let group_id = KStr::from(GROUP);
    let failures = vec![(KStr::from("app-0-changelog"), "no room".to_owned())];
    app.bench.ask(Command::InternalTopicsCreated { group_id: group_id.clone(), failures, unauthorized: vec![] });
    let failed = "Internal topics are missing: app-0-changelog; Creation failed: app-0-changelog (no room).";
    assert_eq!(detail(&mut app), failed);
    app.bench.advance(9_999);
    assert_eq!(detail(&mut app), failed);
    assert_eq!(asked(&mut app), [], "two heartbeat intervals");
    app.bench.advance(1);
    assert_eq!(detail(&mut app), "Internal topics are missing: app-0-changelog");
    assert_eq!(asked(&mut app).len(), 1, "tried again");

    let unauthorized = vec![KStr::from("app-0-changelog")];
    app.bench.ask(Command::InternalTopicsCreated { group_id, failures: vec![], unauthorized });
    let denied = "Internal topics are missing: app-0-changelog; Unauthorized to CREATE on topics app-0-changelog.";
    assert_eq!(detail(&mut app), denied);
    assert_eq!(asked(&mut app).len(), 1, "each heartbeat asks again");
}

#[test]
fn a_refused_write_takes_back_what_was_asked_of_the_server() {
    let mut app = App::new(immediate(), 2, true);
    app.creates_topics = false;
    app.join("m1", "p1");
    app.bench.effects();
    app.bench.ask(Command::InternalTopicsCreated { group_id: GROUP.into(), failures: vec![], unauthorized: vec![] });
    app.bench.log_mut().fail_next_append(crate::state_log::LogError::NoSpace);
    let mut request = app.request("m1");
    request.rack_id = Some("r1".into());
    let (_, refused) = app.bench.send(Command::StreamsGroupHeartbeat(caller(1), Box::new(request)));
    assert!(matches!(refused, Some(Err(_))));
    app.beat("m1");
    assert_eq!(app.bench.effects().len(), 1, "the one of the refused request was dropped");
}
