//! `millstream log dump` on files of a broker.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::rig::{Rig, millstream};

fn file(rig: &Rig, partition: &str, name: &str) -> String {
    let file: PathBuf = rig.dir.path().join(partition).join(name);
    file.to_str().expect("UTF-8").to_owned()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object on each line")).collect()
}

const SEGMENT: &str = "00000000000000000000.log";

#[test]
fn segments_show_batches_and_records_and_transactions_their_markers() {
    let mut rig = Rig::start();
    // The marker is of today; it is to stay in the segment of the records, which are not.
    rig.cli("topics create in --partitions 1 --set segment.ms=9000000000000").ok();
    rig.produce("in", 0, &[1_700_000_000_000, 1_700_000_001_000]);
    rig.begin("tx", "in", 0, &[1_700_000_002_000]).end(false);
    rig.stop();
    let segment = file(&rig, "in-0", SEGMENT);
    let text = millstream(&["log", "dump", &segment]).ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0].starts_with("0-1  at 0  "), "{text}");
    assert_eq!(lines[1], "  0  2023-11-14 22:13:20.000  \"key\" = \"value\"");
    assert!(lines[3].contains("transactional"), "{text}");
    assert!(lines[6].ends_with("abort marker"), "{text}");
    let batches = objects(&millstream(&["log", "dump", &segment, "--json"]).ok());
    assert_eq!(batches.len(), 3);
    assert_eq!(batches[0]["records"][1]["timestamp"], json!(1_700_000_001_000_i64));
    assert_eq!(batches[1]["transactional"], json!(true));
    assert_eq!(batches[2]["records"][0]["marker"], json!("abort"));
    let batches = objects(&millstream(&["log", "dump", &segment, "--json", "--no-records"]).ok());
    assert_eq!(batches[0].get("records"), None);
    let aborted =
        objects(&millstream(&["log", "dump", &file(&rig, "in-0", "00000000000000000000.txnindex"), "--json"]).ok());
    assert_eq!((&aborted[0]["first_offset"], &aborted[0]["last_offset"]), (&json!(2), &json!(3)));
}

#[test]
fn the_logs_of_the_coordinators_are_decoded() {
    let mut rig = Rig::start();
    rig.create_topic("in", 2);
    rig.commit("g", "in", &[5, 6]);
    rig.classic_members("old", &["a"]);
    rig.begin("tx", "in", 0, &[1]).end(true);
    let partitions = rig.dir.path().read_dir().expect("the data directory");
    let transactions: Vec<String> = partitions
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("__transaction_state-"))
        .collect();
    rig.stop();
    let records = |text: &str| -> Vec<Value> {
        objects(text).iter().flat_map(|batch| batch["records"].as_array().cloned().unwrap_or_default()).collect()
    };
    let offsets = file(&rig, "__consumer_offsets-0", SEGMENT);
    let found = records(&millstream(&["log", "dump", &offsets, "--json"]).ok());
    let commit = found.iter().find(|record| record["type"] == "OffsetCommit").expect("a commit");
    assert_eq!(commit["key"], json!({ "group": "g", "topic": "in", "partition": 0 }));
    assert_eq!(commit["value"]["offset"], json!(5));
    let group = found.iter().rfind(|record| record["type"] == "GroupMetadata").expect("a group");
    assert_eq!(group["value"]["members"][0]["group_instance_id"], json!("a"));
    let raw = records(&millstream(&["log", "dump", &offsets, "--json", "--decoder", "data"]).ok());
    assert!(raw[0]["key"].as_str().is_some_and(|key| key.starts_with("0x0001")), "{}", raw[0]);
    let text = millstream(&["log", "dump", &offsets]).ok();
    assert!(text.contains("OffsetCommit {\"group\":\"g\",\"partition\":1,\"topic\":\"in\"}"), "{text}");
    let of_transactions: Vec<Value> = transactions
        .iter()
        .map(|partition| file(&rig, partition, SEGMENT))
        .filter(|file| std::path::Path::new(file).exists())
        .flat_map(|file| records(&millstream(&["log", "dump", &file, "--json"]).ok()))
        .collect();
    assert!(
        of_transactions.iter().any(|record| record["key"] == json!({ "transactional_id": "tx" })),
        "{of_transactions:?}"
    );
}

#[test]
fn damage_is_found_and_what_comes_before_it_is_shown() {
    let mut rig = Rig::start();
    rig.create_topic("in", 1);
    rig.produce("in", 0, &[1]);
    rig.produce("in", 0, &[2]);
    rig.stop();
    let segment = file(&rig, "in-0", SEGMENT);
    let whole = std::fs::read(&segment).expect("the segment");
    let half = whole.len() / 2;
    let write = |bytes: &[u8]| std::fs::write(&segment, bytes).expect("the segment");
    write(&whole[..whole.len() - 1]);
    let shown = millstream(&["log", "dump", &segment]).failed(1, &format!("at byte {half}"));
    assert!(shown.contains("\"key\" = \"value\""), "{shown}");
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("it is not empty") ^= 1;
    write(&flipped);
    let shown = millstream(&["log", "dump", &segment, "--json"]).failed(1, "checksum");
    assert_eq!(objects(&shown).len(), 2);
    // Zeros that were written ahead are none of it.
    let mut ahead = whole.clone();
    ahead.extend([0; 4096]);
    write(&ahead);
    assert_eq!(objects(&millstream(&["log", "dump", &segment, "--json"]).ok()).len(), 2);
}

#[test]
fn indexes_are_read_and_other_files_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let entry = [0, 0, 0, 5, 0, 0, 1, 0];
    let index = write("00000000000000000100.index", &[entry, [0; 8]].concat());
    assert_eq!(millstream(&["log", "dump", &index]).ok(), "OFFSET  POSITION\n   105       256\n");
    let times = write("00000000000000000100.timeindex", &[0, 0, 0, 0, 0, 0, 3, 232, 0, 0, 0, 7]);
    let found = objects(&millstream(&["log", "dump", &times, "--json"]).ok());
    assert_eq!(found, [json!({ "timestamp": 1000, "offset": 107 })]);
    let cut = write("00000000000000000200.index", &entry[..7]);
    millstream(&["log", "dump", &cut]).failed(1, "7 bytes after the last whole entry");
    let other = write("meta.properties", b"");
    millstream(&["log", "dump", &other]).failed(2, "none of .log");
    millstream(&["log", "dump", "missing.log"]).failed(4, "cannot read missing.log");
}
