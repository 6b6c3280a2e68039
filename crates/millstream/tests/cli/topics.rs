//! `millstream topics`.

use serde_json::json;

use super::rig::{Rig, words};

#[test]
fn a_topic_is_created_listed_described_altered_configured_and_deleted() {
    let rig = Rig::start();
    assert_eq!(rig.cli("topics list").ok(), "", "no topics, no table");
    assert_eq!(rig.cli("topics create in --partitions 2 --set retention.ms=1000").ok(), "in created\n");
    let listed = rig.cli("topics list").ok();
    assert_eq!(words(&listed)[0], ["TOPIC", "PARTITIONS", "REPLICAS", "ID"]);
    assert_eq!(words(&listed)[1][..3], ["in", "2", "1"]);
    rig.produce("in", 1, &[1, 2, 3]);
    let described = rig.cli("topics describe in").ok();
    assert!(described.contains("Setting     retention.ms=1000\n"), "{described}");
    let rows = words(&described);
    assert_eq!(rows[rows.len() - 2][..6], ["0", "1", "0", "0", "0", "0"]);
    assert_eq!(rows[rows.len() - 1][..6], ["1", "1", "0", "0", "3", "3"]);
    let described = rig.cli("topics describe in --json").json();
    assert_eq!(described["topics"][0]["partitions"][1]["end"], json!(3));
    assert_eq!(described["topics"][0]["settings"][0]["name"], json!("retention.ms"));
    assert_eq!(rig.cli("topics alter in --partitions 4").ok(), "in altered\n");
    assert_eq!(rig.cli("topics list --json").json()["topics"][0]["partitions"], json!(4));
    let settings = rig.cli("topics config in --set cleanup.policy=compact --unset retention.ms --json").json();
    let own: Vec<_> = settings["settings"].as_array().unwrap().iter().filter(|s| s["source"] == "topic").collect();
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["name"], &own[0]["value"]), (&json!("cleanup.policy"), &json!("compact")));
    assert_eq!(rig.cli("topics delete in --json").json(), json!({ "topic": "in", "outcome": "deleted" }));
    assert_eq!(rig.cli("topics list --json").json(), json!({ "topics": [] }));
}

#[test]
fn what_cannot_be_done_has_an_exit_code_and_a_reason() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    for (command, code, words) in [
        ("topics create in", 1, "TOPIC_ALREADY_EXISTS"),
        ("topics create new --set no.such.key=1", 1, "no.such.key"),
        ("topics create new --replication-factor 3", 1, "INVALID_REPLICATION_FACTOR"),
        ("topics describe missing", 4, "topic missing does not exist"),
        ("topics delete missing", 4, "topic missing was not deleted"),
        ("topics alter in --partitions 1", 1, "INVALID_PARTITIONS"),
        ("topics config in --set retention.ms=soon", 1, "INVALID_CONFIG"),
        ("topics config missing", 4, "UNKNOWN_TOPIC_OR_PARTITION"),
    ] {
        assert_eq!(rig.cli(command).failed(code, words), "", "{command}");
    }
    for (command, told) in [
        ("topics create in --if-not-exists", "in unchanged\n"),
        ("topics delete missing --if-exists", "missing unchanged\n"),
        ("topics create dry --dry-run", "dry could be created\n"),
        ("topics alter in --partitions 9 --dry-run", "in could be altered\n"),
    ] {
        assert_eq!(rig.cli(command).ok(), told, "{command}");
    }
    let listed = rig.cli("topics list --json").json();
    assert_eq!(listed["topics"].as_array().map(Vec::len), Some(1), "dry runs change nothing: {listed}");
    assert_eq!(listed["topics"][0]["partitions"], json!(2));
}
