//! `millstream groups list`, `describe`, `delete`, `remove-members` and `config`.

use serde_json::json;
use wire::KStr;
use wire::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use wire::messages::streams_group_heartbeat_request::{Endpoint, StreamsGroupHeartbeatRequest, Subtopology, Topology};

use super::rig::{Rig, words};

fn consumer(rig: &Rig, group: &str, member: &str, topic: &str) {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: KStr::copy(group),
        member_id: KStr::copy(member),
        rebalance_timeout_ms: 30_000,
        subscribed_topic_names: Some(vec![KStr::copy(topic)]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    let response = rig.call(&request);
    assert_eq!(response.error_code, 0, "{response:?}");
}

fn streams(rig: &Rig, group: &str, member: &str, topic: &str) {
    let request = StreamsGroupHeartbeatRequest {
        group_id: KStr::copy(group),
        member_id: KStr::copy(member),
        rebalance_timeout_ms: 30_000,
        topology: Some(Topology {
            subtopologies: vec![Subtopology {
                subtopology_id: "0".into(),
                source_topics: vec![KStr::copy(topic)],
                ..Default::default()
            }],
            ..Default::default()
        }),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        process_id: Some("process".into()),
        user_endpoint: Some(Endpoint { host: "app.example".into(), port: 7070, ..Default::default() }),
        client_tags: Some(Vec::new()),
        ..Default::default()
    };
    let response = rig.call(&request);
    assert_eq!(response.error_code, 0, "{response:?}");
}

#[test]
fn groups_of_all_protocols_are_listed_and_filtered() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    rig.commit("only-offsets", "in", &[0]);
    rig.classic_members("old", &["a"]);
    consumer(&rig, "new", "m1", "in");
    streams(&rig, "app", "s1", "in");
    for (command, expected) in [
        ("groups list", vec!["app", "new", "old", "only-offsets"]),
        ("groups list --type streams,consumer", vec!["app", "new"]),
        ("groups list --state empty", vec!["only-offsets"]),
        ("groups list --state Stable --type classic", vec!["old"]),
        ("groups list --state Dead", vec![]),
    ] {
        let text = rig.cli(command).ok();
        let names: Vec<_> = words(&text).iter().skip(1).map(|row| row[0]).collect();
        assert_eq!(names, expected, "{command}");
        let listed = rig.cli(&format!("{command} --json")).json();
        let names: Vec<_> = listed["groups"].as_array().unwrap().iter().map(|group| &group["group"]).collect();
        assert_eq!(names, expected, "{command}");
    }
    let text = rig.cli("groups list").ok();
    assert_eq!(words(&text)[3], ["old", "classic", "consumer", "Stable"]);
}

#[test]
fn a_classic_group_shows_instances_subscriptions_and_partitions() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    rig.produce("in", 1, &[1, 2, 3]);
    rig.classic_members("old", &["a", "b"]);
    rig.commit("other", "in", &[0, 1]);
    let text = rig.cli("groups describe old").ok();
    for line in ["Group        old (classic)", "State        Stable", "Assignor     range", "Members      2"] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let group = rig.cli("groups describe old other --json").json();
    let members = group["groups"][0]["description"]["members"].as_array().unwrap();
    let instances: Vec<_> = members.iter().map(|member| member["instance_id"].as_str().unwrap()).collect();
    assert_eq!(instances.len(), 2);
    assert!(instances.contains(&"a") && instances.contains(&"b"));
    assert!(members.iter().all(|member| member["subscription"] == json!(["in"])));
    let lag = group["groups"][0]["lag"]["partitions"].as_array().unwrap();
    assert_eq!(lag.len(), 2, "what is assigned is shown without a commit too");
    assert!(lag.iter().all(|row| row["committed"].is_null() && row["lag"].is_null()));
    assert_eq!(group["groups"][1]["lag"]["total"]["lag"], json!(2));
}

#[test]
fn a_streams_group_shows_epochs_tasks_endpoints_and_its_topology_as_a_tree() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    rig.produce("in", 0, &[1, 2, 3]);
    streams(&rig, "app", "s1", "in");
    let text = rig.cli("groups describe app").ok();
    let coordinator = format!("Coordinator  {}, partition 0", rig.address);
    for line in [
        "Group        app (streams)",
        "Epochs       group ",
        &coordinator,
        "app.example:7070",
        "└─ subtopology 0",
        "   └─ reads in",
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let tasks: Vec<_> =
        words(&text).into_iter().filter(|row| row.first().is_some_and(|w| w.starts_with("0_"))).collect();
    assert_eq!(tasks.len(), 2, "{text}");
    assert_eq!(tasks[0][..3], ["0_0", "active", "s1"]);
    let group = rig.cli("groups describe app --json").json();
    let description = &group["groups"][0]["description"];
    assert_eq!(description["type"], json!("streams"));
    assert_eq!(description["streams"]["subtopologies"][0]["source_topics"], json!(["in"]));
    let member = &description["members"][0]["streams"];
    assert_eq!(member["endpoint"], json!("app.example:7070"));
    assert_eq!(member["target"]["active"], json!(["0_0", "0_1"]));
}

#[test]
fn members_are_removed_by_instance_by_member_id_and_all_at_once() {
    let rig = Rig::start();
    rig.create_topic("in", 4);
    let ids = rig.classic_members("old", &["a", "b", "c", "d"]);
    let out = rig.cli("groups remove-members old --instance a nobody").failed(1, "1 of 2 members were not removed");
    let rows = words(&out);
    assert_eq!(rows[1], ["a", "instance", "removed"]);
    assert_eq!(rows[2][..3], ["nobody", "instance", "UNKNOWN_MEMBER_ID:"]);
    let removed = rig.cli_args(&["groups", "remove-members", "old", "--member", &ids[1], "--json"]).json();
    assert_eq!(removed["members"], json!([{ "member_id": ids[1], "error": null }]));
    let removed = rig.cli("groups remove-members old --all --json").json();
    assert_eq!(removed["members"].as_array().map(Vec::len), Some(2));
    let listed = rig.cli("groups list --json").json();
    assert_eq!(listed["groups"][0]["state"], json!("Empty"));
    assert_eq!(rig.cli("groups remove-members old --all").ok(), "old has no members\n");
    rig.cli("groups remove-members missing --all").failed(4, "there is no group missing");
}

#[test]
fn members_of_the_newer_protocols_are_removed_too() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    consumer(&rig, "new", "m1", "in");
    streams(&rig, "app", "s1", "in");
    for (group, member) in [("new", "m1"), ("app", "s1")] {
        let removed = rig.cli(&format!("groups remove-members {group} --all --json")).json();
        assert_eq!(removed["members"], json!([{ "member_id": member, "error": null }]), "{group}");
    }
    for group in rig.cli("groups list --json").json()["groups"].as_array().unwrap() {
        assert_eq!(group["state"], json!("Empty"), "{group}");
    }
}

#[test]
fn groups_and_offsets_are_deleted_and_groups_with_members_are_not() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    rig.create_topic("more", 1);
    rig.commit("one", "in", &[1, 2]);
    rig.commit("one", "more", &[3]);
    rig.commit("two", "in", &[1]);
    rig.classic_members("old", &["a"]);
    assert_eq!(rig.cli("groups delete one --offsets in:1").ok().lines().count(), 2);
    assert_eq!((rig.committed("one", "in"), rig.committed("one", "more")), (vec![1], vec![3]));
    rig.cli("groups delete one --offsets more").ok();
    assert_eq!(rig.committed("one", "more"), Vec::<i64>::new());
    rig.cli("groups delete one --offsets other").failed(4, "has no offsets of these topics");
    let out = rig.cli("groups delete one old two").failed(1, "1 of 3 could not be deleted");
    assert!(out.contains("NON_EMPTY_GROUP"), "{out}");
    rig.cli("groups delete one").failed(4, "GROUP_ID_NOT_FOUND");
    let left = rig.cli("groups list --json").json();
    assert_eq!(left["groups"].as_array().map(Vec::len), Some(1));
}

#[test]
fn settings_of_a_group_are_set_checked_and_unset() {
    let rig = Rig::start();
    let own = |json: serde_json::Value| -> Vec<(String, String)> {
        let settings = json["settings"].as_array().unwrap().iter().filter(|s| s["source"] == "group");
        settings.map(|s| (s["name"].as_str().unwrap().into(), s["value"].as_str().unwrap().into())).collect()
    };
    let key = "streams.num.standby.replicas";
    let expected = vec![(key.to_owned(), "1".to_owned())];
    assert_eq!(own(rig.cli(&format!("groups config app --set {key}=1 --json")).json()), expected);
    assert_eq!(own(rig.cli(&format!("groups config app --set {key}=2 --dry-run --json")).json()), expected);
    let text = rig.cli("groups config app").ok();
    assert!(words(&text).contains(&vec![key, "1", "group"]), "{text}");
    rig.cli("groups config app --set no.such=1").failed(1, "no.such");
    rig.cli(&format!("groups config app --set {key}=many")).failed(1, "INVALID_CONFIG");
    assert_eq!(own(rig.cli(&format!("groups config app --unset {key} --json")).json()), vec![]);
}
