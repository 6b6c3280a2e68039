//! `millstream groups lag`, against counts made by hand.

use serde_json::{Value, json};
use wire::KStr;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};

use super::rig::{Rig, now_ms, words};

const HOUR_MS: i64 = 3_600_000;

fn partitions(rig: &Rig, options: &str) -> Vec<Value> {
    let shown = rig.cli(&format!("groups lag g {options} --json")).json();
    shown["groups"][0]["partitions"].as_array().expect("partitions").clone()
}

/// Hours behind, rounded.
fn hours(row: &Value) -> Option<i64> {
    row["lag_ms"].as_i64().map(|ms| (ms + HOUR_MS / 2) / HOUR_MS)
}

#[test]
fn lag_counts_records_and_the_age_of_the_first_that_is_not_consumed() {
    let rig = Rig::start();
    rig.create_topic("in", 3);
    let now = now_ms();
    rig.produce("in", 0, &[now - 9 * HOUR_MS, now - 5 * HOUR_MS]);
    rig.produce("in", 0, &[now - 2 * HOUR_MS]);
    rig.produce("in", 1, &[now - 7 * HOUR_MS]);
    rig.produce("in", 2, &[now]);
    rig.commit("g", "in", &[1, 1]);
    let rows = partitions(&rig, "");
    assert_eq!(rows.len(), 2, "nothing is committed of partition 2");
    assert_eq!((&rows[0]["lag"], hours(&rows[0])), (&json!(2), Some(5)), "in the middle of a batch");
    assert_eq!((&rows[1]["lag"], hours(&rows[1])), (&json!(0), Some(0)));
    let text = rig.cli("groups lag g --totals").ok();
    assert_eq!(words(&text)[2], ["in", "2", "2", "5", "h", "0", "min"]);
    assert_eq!(words(&text)[3][..4], ["all", "topics", "2", "2"]);
}

#[test]
fn read_committed_stops_at_an_open_transaction_and_passes_over_an_aborted_one() {
    let rig = Rig::start();
    rig.create_topic("in", 1);
    let now = now_ms();
    rig.produce("in", 0, &[now - 9 * HOUR_MS]);
    rig.begin("aborted", "in", 0, &[now - 8 * HOUR_MS; 3]).end(false);
    rig.produce("in", 0, &[now - 3 * HOUR_MS]);
    let open = rig.begin("open", "in", 0, &[now - 2 * HOUR_MS; 2]);
    rig.produce("in", 0, &[now - HOUR_MS]);
    rig.commit("g", "in", &[1]);
    // 3 aborted, their marker, 1 plain; then 2 of the open transaction and 1 plain.
    let all = partitions(&rig, "--isolation read_uncommitted");
    assert_eq!((&all[0]["lag"], hours(&all[0])), (&json!(8), Some(8)));
    let committed = partitions(&rig, "");
    let explicit = partitions(&rig, "--isolation read_committed");
    assert_eq!(committed[0]["end"], explicit[0]["end"], "the default, as the page and the metrics count");
    assert_eq!((&committed[0]["lag"], hours(&committed[0])), (&json!(5), Some(3)));
    open.end(true);
    let rows = partitions(&rig, "--isolation read_committed");
    assert_eq!((&rows[0]["lag"], hours(&rows[0])), (&json!(9), Some(3)));
}

#[test]
fn deleted_records_are_no_lag() {
    let rig = Rig::start();
    rig.create_topic("in", 1);
    let now = now_ms();
    rig.produce("in", 0, &[now - 9 * HOUR_MS, now - 8 * HOUR_MS, now - 7 * HOUR_MS]);
    rig.produce("in", 0, &[now - 4 * HOUR_MS, now]);
    rig.commit("g", "in", &[1]);
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: KStr::from("in"),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: 3, ..Default::default() }],
            ..Default::default()
        }],
        timeout_ms: 10_000,
        ..Default::default()
    };
    rig.call(&request);
    let rows = partitions(&rig, "");
    assert_eq!((&rows[0]["start"], &rows[0]["lag"], hours(&rows[0])), (&json!(3), &json!(2), Some(4)));
}

#[test]
fn groups_without_commits_have_no_lag_and_unknown_groups_are_an_error() {
    let rig = Rig::start();
    rig.create_topic("in", 2);
    rig.produce("in", 0, &[now_ms()]);
    rig.classic_members("g", &["a"]);
    let rows = partitions(&rig, "");
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["lag"], &rows[0]["lag_ms"], &rows[0]["end"]), (&json!(null), &json!(null), &json!(1)));
    assert_eq!(rows[0]["instance_id"], json!("a"));
    rig.cli("groups lag missing").failed(4, "there is no group missing");
    let all = rig.cli("groups lag --all-groups --json").json();
    assert_eq!(all["groups"].as_array().map(Vec::len), Some(1));
}
