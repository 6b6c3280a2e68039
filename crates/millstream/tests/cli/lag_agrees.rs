//! The command, the page and the metrics say the same of a group's lag, and it is what a count made beside them says
//! (issue 7, "done when" 4): under transactions, compaction, deleted records, and for groups without commits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wire::KStr;
use wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};

use super::rig::{Rig, Transaction, now_ms};

const HOUR_MS: i64 = 3_600_000;
const TOPICS: [&str; 3] = ["plain", "ledger", "table"];
/// Keeps the last record of each key, in segments that are soon closed.
const TABLE: usize = 2;
const PARTITIONS: i32 = 2;

/// What the test itself knows of a partition: everything that it wrote, by offset.
#[derive(Default)]
struct Written {
    /// Hours ago, for records that readers of committed data get.
    hours: BTreeMap<i64, i64>,
    end: i64,
    start: i64,
    /// The first offset of an open transaction.
    open: Option<i64>,
    committed: Option<i64>,
}

impl Written {
    fn write(&mut self, hours: &[i64], readable: bool) {
        for hours in hours {
            if readable {
                self.hours.insert(self.end, *hours);
            }
            self.end += 1;
        }
    }

    /// Offsets between the position and what readers of committed data get, and the age of the first record among them.
    fn lag(&self) -> Option<(i64, Option<i64>)> {
        let next = self.committed?.max(self.start);
        let stable = self.open.unwrap_or(self.end);
        if next >= stable {
            return Some((0, Some(0)));
        }
        Some((stable - next, self.hours.range(next..stable).next().map(|(_, hours)| *hours)))
    }
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

type Counted = BTreeMap<(String, i64), (Option<i64>, Option<i64>)>;

fn in_hours(ms: &Value) -> Option<i64> {
    ms.as_i64().map(|ms| (ms + HOUR_MS / 2) / HOUR_MS)
}

fn of_rows(rows: &Value, records: &str, age: &str) -> Counted {
    let rows = rows.as_array().expect("rows").iter();
    let row = |row: &Value| {
        let at = (row["topic"].as_str().expect("a topic").to_owned(), row["partition"].as_i64().expect("a number"));
        (at, (row[records].as_i64(), in_hours(&row[age])))
    };
    rows.map(row).collect()
}

/// A sample of a metric of the group, by topic.
fn sample(text: &str, name: &str, topic: &str) -> Option<f64> {
    let start = format!("{name}{{group=\"g\",topic=\"{topic}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}

#[test]
fn command_page_and_metrics_agree_with_an_independent_count() {
    let rig = Rig::start_with(&[
        ("admin.http.listener", "127.0.0.1:0"),
        ("log.cleaner.backoff.ms", "50"),
        ("log.retention.ms", "-1"),
    ]);
    for (number, topic) in TOPICS.iter().enumerate() {
        let table = ["cleanup.policy=compact", "min.cleanable.dirty.ratio=0", "segment.ms=1"];
        rig.create_topic_with(topic, PARTITIONS, if number == TABLE { &table } else { &[] });
    }
    let mut draw = Draw(5);
    let mut all: BTreeMap<(usize, i32), Written> = BTreeMap::new();
    let mut open: Vec<Transaction<'_>> = Vec::new();
    for step in 0..240 {
        let at @ (topic, partition) = (draw.below(3) as usize, draw.below(PARTITIONS as u64) as i32);
        let name = TOPICS[topic];
        let written = all.entry(at).or_default();
        // Older ones first: an age tells which record it is of.
        let hours: Vec<i64> = (0..1 + draw.below(3)).map(|nth| 2_000 - step * 5 - nth as i64).collect();
        let times: Vec<i64> = hours.iter().map(|hours| now_ms() - hours * HOUR_MS).collect();
        match draw.below(8) {
            // With one key, so that compaction has something to remove: all but the last record of closed segments.
            0..=2 => {
                rig.produce(name, partition, &times);
                written.write(&hours, true);
            }
            3 if topic != TABLE => {
                let committed = draw.below(2) == 0;
                let id = format!("done-{step}");
                rig.begin(&id, name, partition, &times).end(committed);
                written.write(&hours, committed);
                written.end += 1;
            }
            4 if topic != TABLE && open.len() < 2 && written.open.is_none() => {
                written.open = Some(written.end);
                open.push(rig.begin(&format!("open-{step}"), name, partition, &times));
                // They become readable when it is committed.
                written.write(&hours, false);
            }
            5 if topic != TABLE && written.end > 0 => {
                let stable = written.open.unwrap_or(written.end);
                written.start = written.start.max(draw.below(stable as u64 + 1) as i64);
                let partition =
                    DeleteRecordsPartition { partition_index: partition, offset: written.start, ..Default::default() };
                let topic =
                    DeleteRecordsTopic { name: KStr::from(name), partitions: vec![partition], ..Default::default() };
                let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
                assert_eq!(rig.call(&request).topics[0].partitions[0].error_code, 0);
            }
            6 if written.end > 0 => {
                let offset = draw.below(written.end as u64 + 1) as i64;
                rig.commit_at("g", name, partition, offset);
                written.committed = Some(offset);
            }
            _ => {}
        }
    }
    for at in all.keys().filter(|(topic, _)| *topic == TABLE) {
        // The last segment stays as it is: one more record closes those before it.
        rig.produce(TOPICS[at.0], at.1, &[now_ms() - 9 * HOUR_MS]);
    }
    for (_, written) in all.iter_mut().filter(|((topic, _), _)| *topic == TABLE) {
        written.write(&[9], true);
        // Of the closed segments the last record is left.
        let last = written.end - 1;
        written.hours.retain(|offset, _| *offset + 1 >= last);
    }
    assert!(!open.is_empty(), "a transaction is open");

    let expected: Counted = all
        .iter()
        .filter_map(|((topic, partition), written)| {
            let (records, hours) = written.lag()?;
            Some(((TOPICS[*topic].to_owned(), i64::from(*partition)), (Some(records), hours)))
        })
        .collect();
    assert!(expected.values().filter(|lag| lag.0 > Some(0)).count() > 3, "{expected:?}");
    assert!(expected.keys().any(|(topic, _)| topic == TOPICS[TABLE]), "{expected:?}");

    // The cleaner works when it comes to it; ages of the compacted topic tell that it has.
    let started = Instant::now();
    let seen = loop {
        let shown = rig.cli("groups lag g --json").json();
        let seen = of_rows(&shown["groups"][0]["partitions"], "lag", "lag_ms");
        if seen == expected || started.elapsed() > Duration::from_secs(30) {
            break seen;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(seen, expected, "the command");
    let page = rig.http_json("/groups/g");
    assert_eq!(of_rows(&page["lag"], "records", "age_ms"), expected, "the page");
    let total: i64 = expected.values().filter_map(|lag| lag.0).sum();
    let listed = rig.http_json("/groups");
    assert_eq!((&listed["groups"][0]["group"], &listed["groups"][0]["lag"]), (&json!("g"), &json!(total)));
    let metrics = rig.http("/metrics");
    for topic in TOPICS {
        let of_topic = || expected.iter().filter(|((name, _), _)| name == topic).map(|(_, lag)| lag);
        let records: i64 = of_topic().filter_map(|lag| lag.0).sum();
        assert_eq!(sample(&metrics, "millstream_group_lag_records", topic), Some(records as f64), "{topic}");
        let oldest = of_topic().filter_map(|lag| lag.1).max();
        let seconds = sample(&metrics, "millstream_group_lag_seconds", topic);
        assert_eq!(seconds.map(|seconds| (seconds / 3_600.0).round() as i64), oldest, "{topic}");
    }

    // A group that never committed has no lag anywhere, and says so.
    rig.classic_members("idle", &["a"]);
    let shown = rig.cli("groups lag idle --json").json();
    assert!(shown["groups"][0]["partitions"].as_array().expect("rows").iter().all(|row| row["lag"].is_null()));
    assert_eq!(rig.http_json("/groups/idle")["lag"], json!([]));
    assert!(!rig.http("/metrics").contains("millstream_group_lag_records{group=\"idle\""));
}
