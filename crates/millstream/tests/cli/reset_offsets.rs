//! `millstream groups reset-offsets`: the forms of Kafka's tool.

use serde_json::json;

use super::rig::Rig;

/// Partition 0 of "in" has offsets 2 to 9 with a record a second; the group has committed 5, and nothing of
/// the empty partition 1.
fn rig() -> Rig {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    let second = |n: i64| 1_700_000_000_000 + n * 1000;
    rig.produce("in", 0, &(0..10).map(second).collect::<Vec<_>>());
    let request = wire::messages::delete_records_request::DeleteRecordsRequest {
        topics: vec![wire::messages::delete_records_request::DeleteRecordsTopic {
            name: "in".into(),
            partitions: vec![wire::messages::delete_records_request::DeleteRecordsPartition {
                partition_index: 0,
                offset: 2,
                ..Default::default()
            }],
            ..Default::default()
        }],
        timeout_ms: 10_000,
        ..Default::default()
    };
    rig.call(&request);
    rig.commit("g", "in", &[5]);
    rig
}

#[test]
fn every_form_leads_where_kafkas_tool_leads() {
    let rig = rig();
    let file = rig.dir.path().join("offsets.csv");
    std::fs::write(&file, "in,0,7\n").expect("a file");
    let from_file = format!("--from-file {}", file.display());
    for (target, expected) in [
        ("--topic in:0 --to-earliest", 2),
        ("--all-topics --to-latest", 10),
        ("--topic in:0 --to-current", 5),
        ("--topic in:0 --to-offset 8", 8),
        ("--topic in:0 --to-offset 99", 10),
        ("--topic in:0 --to-offset 0", 2),
        ("--topic in:0 --to-datetime 2023-11-14T22:13:26.500", 7),
        ("--topic in:0 --to-datetime 2023-11-14T23:13:26.500+01:00", 7),
        ("--topic in:0 --to-datetime 2033-01-01T00:00:00.000", 10),
        ("--topic in:0 --by-duration P36500D", 2),
        ("--topic in:0 --by-duration PT1S", 10),
        ("--all-topics --shift-by 2", 7),
        ("--all-topics --shift-by -1", 4),
        ("--all-topics --shift-by -100", 2),
        (from_file.as_str(), 7),
    ] {
        rig.commit("g", "in", &[5]);
        let planned = rig.cli(&format!("groups reset-offsets g {target} --json")).json();
        assert_eq!(planned["executed"], json!(false));
        assert_eq!(planned["groups"][0]["offsets"][0]["new"], json!(expected), "{target}");
        assert_eq!(rig.committed("g", "in"), [5], "a dry run changes nothing: {target}");
        let done = rig.cli(&format!("groups reset-offsets g {target} --execute --json")).json();
        assert_eq!(done["groups"][0]["offsets"][0]["error"], json!(null));
        assert_eq!(rig.committed("g", "in"), [expected], "{target}");
    }
}

#[test]
fn what_is_exported_can_be_read_again() {
    let rig = rig();
    let exported = rig.cli("groups reset-offsets g --topic in --to-earliest --export").ok();
    assert_eq!(exported, "in,0,2\nin,1,0\n");
    let file = rig.dir.path().join("exported.csv");
    std::fs::write(&file, exported).expect("a file");
    let path = file.display();
    let text = rig.cli("groups reset-offsets g new --all-topics --to-current --export").ok();
    assert_eq!(text, "g,in,0,5\n", "with several groups each line names its own");
    let text = rig.cli(&format!("groups reset-offsets new --from-file {path} --execute")).ok();
    assert!(text.contains(" set\n") && !text.contains("Nothing was changed"), "{text}");
    assert_eq!(rig.committed("new", "in"), [2, 0], "a group that is not there gets its first offsets");
}

#[test]
fn dry_runs_say_so_and_offsets_outside_of_the_log_too() {
    let rig = rig();
    let text = rig.cli("groups reset-offsets g --topic in:0 --to-offset 99").ok();
    assert!(text.contains("would be set (99 is outside of the log)"), "{text}");
    assert!(text.ends_with("Nothing was changed. With --execute it will be.\n"), "{text}");
    assert_eq!(rig.cli("groups reset-offsets new --all-topics --to-latest").ok(), "Nothing to reset.\n");
}

#[test]
fn what_cannot_be_reset_has_an_exit_code_and_a_reason() {
    let rig = rig();
    rig.classic_members("live", &["a"]);
    let file = rig.dir.path().join("bad.csv");
    std::fs::write(&file, "in,zero,7\n").expect("a file");
    let bad = format!("groups reset-offsets g --from-file {}", file.display());
    for (command, code, words) in [
        ("groups reset-offsets live --topic in --to-latest", 1, "live is Stable with 1 members"),
        ("groups reset-offsets g --topic missing --to-latest", 4, "topic missing does not exist"),
        ("groups reset-offsets g --topic in:7 --to-latest", 4, "in-7"),
        ("groups reset-offsets g --topic in:1 --shift-by 1", 1, "in-1 has no committed offset to shift"),
        ("groups reset-offsets g --to-latest", 2, "--all-topics"),
        ("groups reset-offsets g --topic in", 2, "required"),
        ("groups reset-offsets g --topic in --to-latest --to-earliest", 2, "cannot be used with"),
        ("groups reset-offsets --topic in --to-latest", 2, "required"),
        ("groups reset-offsets g --topic in --to-datetime soon", 2, "soon"),
        ("groups reset-offsets g --topic in --by-duration -1", 2, ""),
        ("groups reset-offsets g --from-file missing.csv", 4, "missing.csv"),
        (bad.as_str(), 2, "line 1 has no partition"),
    ] {
        rig.cli(command).failed(code, words);
    }
    assert_eq!(rig.committed("g", "in"), [5]);
}
