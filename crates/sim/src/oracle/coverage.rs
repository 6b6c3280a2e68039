//! What histories have reached: requests with their errors, records, and rules of the specification.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::Family;

/// A rule, and by what one sees that a step reached it, given the command and Kafka's answer.
type Rule = (&'static str, fn(&Value, &Value) -> bool);

/// Sections 1 to 9 of the specification of streams groups.
const STREAMS: [Rule; 50] = [
    ("S 1.1 illegal topic names", |c, a| failed(c, a, 88, 130)),
    ("S 1.2 an invalid request", |c, a| failed(c, a, 88, 42)),
    ("S 1.3 what is an error without a text", |c, a| failed(c, a, 88, -1)),
    ("S 1.5 no such group", |c, a| failed(c, a, 88, 69)),
    ("S 1.6 a full group", |c, a| failed(c, a, 88, 81)),
    ("S 2.2 a join", |c, a| api(c, 88) && c["body"]["memberEpoch"] == 0 && a["response"]["errorCode"] == 0),
    ("S 2.3 an unknown member", |c, a| failed(c, a, 88, 25)),
    ("S 2.3 a fenced epoch", |c, a| failed(c, a, 88, 110)),
    ("S 2.3.3 a lost answer", |c, a| behind(c, a)),
    ("S 2.4 a fenced instance", |c, a| failed(c, a, 88, 82)),
    ("S 2.4 an instance in use", |c, a| failed(c, a, 88, 111)),
    ("S 2.5 leaving", |c, a| api(c, 88) && a["response"]["memberEpoch"] == -1),
    ("S 2.5 leaving for a while", |c, a| api(c, 88) && a["response"]["memberEpoch"] == -2),
    ("S 2.6 a timeout that removes", |c, a| c["op"] == "advance" && removed(a, 19)),
    ("S 2.7 shutdown of the application", |c, a| has_status(c, a, 4)),
    ("S 2.8 a fresh session after a restart", |c, a| c["op"] == "restart" && timer(a, "session-timeout-")),
    ("S 2.8 a rebalance timeout", |_, a| timer(a, "rebalance-timeout-")),
    ("S 2.4.3 a static member is replaced", |c, a| api(c, 88) && removed(a, 19) && wrote(a, 19)),
    ("S 2.6 the last member is gone", |_, a| removed(a, 19) && any_record(a, 20, untimed)),
    ("S 3.4 a group epoch", |_, a| wrote(a, 17)),
    ("S 3.6 an initial delay", |_, a| timer(a, "initial-rebalance-timeout-")),
    ("S 3.6 a target at its end", |c, a| c["op"] == "advance" && wrote(a, 20)),
    ("S 3.7 a target", |c, a| api(c, 88) && wrote(a, 20)),
    ("S 3.7 an assignment delayed", |c, a| has_status(c, a, 5)),
    ("S 4.1 a topology", |_, a| wrote(a, 23)),
    ("S 4.4 missing source topics", |c, a| has_status(c, a, 1)),
    ("S 4.6 incorrectly partitioned topics", |c, a| has_status(c, a, 2)),
    ("S 4.2 another topology", |c, a| message(c, a, "Topology updates are not supported yet")),
    ("S 4.5.3 a loop", |c, a| message(c, a, "There may be loops")),
    ("S 4.5.4 a repartition topic without a writer", |c, a| message(c, a, "never used as a sink topic")),
    ("S 4.6.1 copartitioned topics", |c, a| status(c, a, "Following topics do not have the same number")),
    ("S 4.6.3 a fixed count", |c, a| status(c, a, "Number of partitions [")),
    ("S 4.7.1 no sources", |c, a| message(c, a, "No source topics found")),
    ("S 4.7.3 a topic with another count", |c, a| status(c, a, "Existing topic ")),
    ("S 4.8 internal topics to make", |_, a| a["creatableTopics"].is_array()),
    ("S 5.4 missing tags", |c, a| has_status(c, a, 6)),
    ("S 5 standbys", |_, a| any_record(a, 21, |value| !value["standbyTasks"].as_array().is_none_or(Vec::is_empty))),
    ("S 6.2 tasks to revoke", |_, a| any_record(a, 22, |value| value["state"] == 1)),
    ("S 6.2 tasks to wait for", |_, a| any_record(a, 22, |value| value["state"] == 2)),
    ("S 7 endpoints", |c, a| api(c, 88) && !list(&a["response"]["partitionsByUserEndpoint"]).is_empty()),
    ("S 9.1 describe", |c, _| api(c, 89)),
    ("S 9.3 list", |c, a| api(c, 16) && !list(&a["response"]["groups"]).is_empty()),
    ("S 9.4 expiry", |c, a| c["op"] == "advance" && removed(a, 17)),
    ("S 9.5 a commit", |c, a| api(c, 8) && wrote(a, 1)),
    ("S 9.5 a commit of another epoch", |c, a| partition_failed(c, a, 8, 113)),
    ("S 9.5 a note that is too long", |c, a| partition_failed(c, a, 8, 12)),
    ("S 9.5 a commit in a transaction", |c, a| api(c, 28) && wrote(a, 1)),
    ("S 9.4 delete", |c, a| api(c, 42) && a["response"]["results"][0]["errorCode"] == 0),
    ("S 9.6 group configs", |c, a| c["op"] == "groupConfig" && a["error"].is_null()),
    ("S 9.6 group configs out of bounds", |c, a| c["op"] == "groupConfig" && a["error"]["code"] == 40),
];

/// Sections 1 to 10 of the specification of classic groups and offsets.
const CLASSIC: [Rule; 48] = [
    ("C J-1 no group id", |c, a| failed(c, a, 11, 24)),
    ("C J-2 a session timeout out of bounds", |c, a| failed(c, a, 11, 26)),
    ("C J-6 a full group", |c, a| failed(c, a, 11, 81)),
    ("C J-7 inconsistent protocols", |c, a| failed(c, a, 11, 23)),
    ("C J-8 a member id is required", |c, a| failed(c, a, 11, 79)),
    ("C J-16 a join that waits", |c, a| api(c, 11) && !a["parked"].is_null()),
    ("C J-19 an unknown member", |c, a| failed(c, a, 11, 25)),
    ("C J-19 a fenced instance", |c, a| failed(c, a, 11, 82)),
    ("C J-23 an answer at once", |c, a| api(c, 11) && a["response"]["errorCode"] == 0),
    ("C J-26 an open request of a replaced member", |_, a| completed(a, 82)),
    ("C J-29 an assignment to skip", |_, a| a["response"]["skipAssignment"] == true),
    ("C B-1 open syncs end", |_, a| completed(a, 27)),
    ("C B-5 an initial delay", |c, a| api(c, 11) && timer(a, "join-")),
    ("C B-10 a group becomes empty", |c, a| !api(c, 11) && any_record(a, 2, |v| list(&v["members"]).is_empty())),
    ("C B-11 a join phase is complete", |_, a| completed(a, 0)),
    ("C B-14 an open join of a member that is gone", |_, a| completed(a, 25)),
    ("C S-1 no protocol", |c, a| failed(c, a, 14, 23)),
    ("C S-2 an unknown member", |c, a| failed(c, a, 14, 25)),
    ("C S-3 another generation", |c, a| failed(c, a, 14, 22)),
    ("C S-4 a rebalance is going on", |c, a| failed(c, a, 14, 27)),
    ("C S-6 the leader syncs", |_, a| any_record(a, 2, |value| !list(&value["members"]).is_empty())),
    ("C S-7 a stable group", |c, a| api(c, 14) && a["response"]["errorCode"] == 0),
    ("C H-2 a fenced instance", |c, a| failed(c, a, 12, 82)),
    ("C H-2 another generation", |c, a| failed(c, a, 12, 22)),
    ("C H-3 an unknown member", |c, a| failed(c, a, 12, 25)),
    ("C H-3 a rebalance is going on", |c, a| failed(c, a, 12, 27)),
    ("C H-3 a heartbeat", |c, a| api(c, 12) && a["response"]["errorCode"] == 0),
    ("C L-3 a member leaves", |c, a| api(c, 13) && a["response"]["members"][0]["errorCode"] == 0),
    ("C L-3 a fenced instance leaves", |c, a| api(c, 13) && a["response"]["members"][0]["errorCode"] == 82),
    ("C D-1 describe", |c, a| api(c, 15) && a["response"]["groups"][0]["groupState"] == "Stable"),
    ("C D-6 delete", |c, a| api(c, 42) && a["response"]["results"][0]["errorCode"] == 0),
    ("C D-7 offsets to delete", |c, _| api(c, 47)),
    ("C T-6 an empty group goes", |c, a| c["op"] == "advance" && removed(a, 2)),
    ("C O-1 no such topic", |c, a| partition_failed(c, a, 8, 3)),
    ("C O-1 no such topic id", |c, a| partition_failed(c, a, 8, 100)),
    ("C O-2 no such group", |c, a| partition_failed(c, a, 8, 69)),
    ("C O-3 another generation", |c, a| partition_failed(c, a, 8, 22)),
    ("C O-3 a rebalance is going on", |c, a| partition_failed(c, a, 8, 27)),
    ("C O-3 a fenced instance", |c, a| partition_failed(c, a, 8, 82)),
    ("C O-8 a note that is too long", |c, a| partition_failed(c, a, 8, 12)),
    ("C F-2 no such topic id", |c, a| fetch_failed(c, a, 100)),
    ("C F-7 an open transaction", |c, a| fetch_failed(c, a, 88)),
    ("C X-3 no such group", |c, a| partition_failed(c, a, 28, 69)),
    ("C X-4 a commit in a transaction", |c, a| api(c, 28) && wrote(a, 1)),
    ("C X-7 a transaction ends", |c, a| {
        c["op"] == "txnMarker" && c["commit"] == true && !list(&a["records"]).is_empty()
    }),
    ("C E-1 offsets expire", |c, a| c["op"] == "advance" && removed(a, 1)),
    ("C E-4 a topic is deleted", |c, a| c["op"] == "topics" && removed(a, 1)),
    ("C T-5 open requests at the unload", |_, a| completed(a, 16)),
];

/// Sections 10 to 12: consumer groups and their offsets, and with `MIGRATION` the way between the protocols.
const CONSUMER: [Rule; 25] = [
    ("C K-5 an invalid request", |c, a| failed(c, a, 68, 42)),
    ("C K-5 an unknown assignor", |c, a| failed(c, a, 68, 112)),
    ("C K-8 no such group", |c, a| failed(c, a, 68, 69)),
    ("C K-9 a full group", |c, a| failed(c, a, 68, 81)),
    ("C K-10 an unknown member", |c, a| failed(c, a, 68, 25)),
    ("C K-11 a fenced epoch", |c, a| failed(c, a, 68, 110)),
    ("C K-12 an instance in use", |c, a| failed(c, a, 68, 111)),
    ("C K-13 a fenced instance", |c, a| failed(c, a, 68, 82)),
    ("C K-18 a target", |_, a| wrote(a, 6)),
    ("C K-22 partitions to revoke", |_, a| any_record(a, 8, |value| value["state"] == 1)),
    ("C K-25 partitions to wait for", |_, a| any_record(a, 8, |value| value["state"] == 2)),
    ("C K-27 a timeout that removes", |c, a| c["op"] == "advance" && removed(a, 5)),
    ("C K-33 an invalid expression", |c, a| failed(c, a, 68, 128)),
    ("C O-6 a commit", |c, a| api(c, 8) && wrote(a, 1)),
    ("C O-6 an unknown member", |c, a| partition_failed(c, a, 8, 25)),
    ("C O-6 an old version", |c, a| partition_failed(c, a, 8, 35)),
    ("C O-7 another epoch", |c, a| partition_failed(c, a, 8, 113)),
    ("C O-8 a note that is too long", |c, a| partition_failed(c, a, 8, 12)),
    ("C X-5 a commit in a transaction", |c, a| api(c, 28) && wrote(a, 1)),
    ("C X-5 another epoch", |c, a| partition_failed(c, a, 28, 113) || partition_failed(c, a, 28, 22)),
    ("C F-5 a fetch that is refused", |c, a| {
        api(c, 9) && [25, 113].map(Value::from).contains(&a["response"]["groups"][0]["errorCode"])
    }),
    ("C E-1 offsets expire", |c, a| c["op"] == "advance" && removed(a, 1)),
    ("C E-3 an empty group goes", |c, a| c["op"] == "advance" && removed(a, 3)),
    ("C E-4 a topic is deleted", |c, a| c["op"] == "topics" && removed(a, 1)),
    ("C K-35 an expression is resolved", |_, a| wrote(a, 16)),
];

const MIGRATION: [Rule; 7] = [
    ("C G-3 a classic group is upgraded", |c, a| api(c, 68) && wrote(a, 8) && removed(a, 2)),
    ("C G-6 a classic join is refused", |c, a| failed(c, a, 11, 23)),
    ("C G-7 a classic join is answered", |c, a| api(c, 11) && wrote(a, 8)),
    ("C G-9 a sync in a consumer group", |c, a| failed(c, a, 14, 27)),
    ("C G-11 a heartbeat that asks to rejoin", |c, a| failed(c, a, 12, 27)),
    ("C G-13 a downgrade", |_, a| wrote(a, 2) && removed(a, 3)),
    ("C J-3 a streams group in the way", |c, a| api(c, 88) && a["response"]["errorCode"] != 0),
];

/// Counts steps by what they reached.
#[derive(Debug, Default)]
pub struct Coverage {
    /// By API or operation and error code; the code of the first group or member where the whole has none.
    answers: BTreeMap<(String, i64), usize>,
    records: BTreeMap<i64, usize>,
    rules: BTreeMap<&'static str, usize>,
}

impl Coverage {
    pub fn note(&mut self, command: &Value, kafka: &Value) {
        let what = match command["api"].as_i64() {
            Some(api) => format!("api {api}"),
            None => command["op"].as_str().unwrap_or_default().to_owned(),
        };
        *self.answers.entry((what, code(kafka))).or_default() += 1;
        for record in list(&kafka["records"]) {
            *self.records.entry(record["type"].as_i64().unwrap_or(-1)).or_default() += 1;
        }
        for (rule, reached) in STREAMS.iter().chain(&CLASSIC).chain(&CONSUMER).chain(&MIGRATION) {
            if reached(command, kafka) {
                *self.rules.entry(rule).or_default() += 1;
            }
        }
    }

    pub fn add(&mut self, other: &Coverage) {
        for (key, count) in &other.answers {
            *self.answers.entry(key.clone()).or_default() += count;
        }
        for (kind, count) in &other.records {
            *self.records.entry(*kind).or_default() += count;
        }
        for (rule, count) in &other.rules {
            *self.rules.entry(rule).or_default() += count;
        }
    }

    /// What a family is to reach and has not.
    pub fn missing(&self, family: Family) -> Vec<&'static str> {
        let rules = match family {
            Family::Streams => &STREAMS[..],
            Family::Classic => &CLASSIC[..],
            Family::Consumer => &CONSUMER[..],
            Family::Migration => &MIGRATION[..],
        };
        rules.iter().map(|(rule, _)| *rule).filter(|rule| !self.rules.contains_key(rule)).collect()
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: BTreeSet<&String> = self.answers.keys().map(|(kind, _)| kind).collect();
        for kind in kinds {
            let codes = self.answers.iter().filter(|((of, _), _)| of == kind);
            let codes: Vec<_> = codes.map(|((_, code), count)| format!("{code}: {count}")).collect();
            writeln!(f, "  {kind}, by error: {}", codes.join(", "))?;
        }
        let records: Vec<_> = self.records.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        writeln!(f, "  records by type: {}", records.join(", "))?;
        for (rule, count) in &self.rules {
            writeln!(f, "  reached {count} times: {rule}")?;
        }
        Ok(())
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn code(answer: &Value) -> i64 {
    let response = &answer["response"];
    let lists = ["groups", "members", "results"].map(|key| &response[key][0]["errorCode"]);
    let partition = &response["topics"][0]["partitions"][0]["errorCode"];
    let all = [&answer["error"]["code"], &response["errorCode"]].into_iter().chain(lists).chain([partition]);
    all.filter_map(Value::as_i64).find(|code| *code != 0).unwrap_or(0)
}

fn api(command: &Value, api: i64) -> bool {
    command["api"] == api
}

fn failed(command: &Value, answer: &Value, of: i64, code: i64) -> bool {
    api(command, of) && answer["response"]["errorCode"] == code
}

fn completed(answer: &Value, code: i64) -> bool {
    list(&answer["completed"]).iter().any(|late| late["response"]["errorCode"] == code)
}

fn has_status(command: &Value, answer: &Value, code: i64) -> bool {
    api(command, 88) && list(&answer["response"]["status"]).iter().any(|status| status["statusCode"] == code)
}

fn message(command: &Value, answer: &Value, part: &str) -> bool {
    api(command, 88) && answer["response"]["errorMessage"].as_str().is_some_and(|text| text.contains(part))
}

fn status(command: &Value, answer: &Value, start: &str) -> bool {
    let mut details = list(&answer["response"]["status"]).iter().filter_map(|status| status["statusDetail"].as_str());
    api(command, 88) && details.any(|detail| detail.starts_with(start))
}

fn partition_failed(command: &Value, answer: &Value, of: i64, code: i64) -> bool {
    let mut partitions = list(&answer["response"]["topics"]).iter().flat_map(|topic| list(&topic["partitions"]));
    api(command, of) && partitions.any(|partition| partition["errorCode"] == code)
}

fn fetch_failed(command: &Value, answer: &Value, code: i64) -> bool {
    let topics = list(&answer["response"]["groups"]).iter().flat_map(|group| list(&group["topics"]));
    let mut partitions = topics.flat_map(|topic| list(&topic["partitions"]));
    api(command, 9) && partitions.any(|partition| partition["errorCode"] == code)
}

/// A target that no assignment interval counts from.
fn untimed(target: &Value) -> bool {
    target["assignmentTimestamp"].as_i64().unwrap_or(0) == 0
}

/// A heartbeat with an epoch below that of its answer.
fn behind(command: &Value, answer: &Value) -> bool {
    let (sent, known) = (command["body"]["memberEpoch"].as_i64(), answer["response"]["memberEpoch"].as_i64());
    api(command, 88) && answer["response"]["errorCode"] == 0 && sent > Some(0) && sent < known
}

fn timer(answer: &Value, prefix: &str) -> bool {
    answer["timers"].as_object().is_some_and(|timers| timers.keys().any(|name| name.starts_with(prefix)))
}

fn any_record(answer: &Value, kind: i64, is: impl Fn(&Value) -> bool) -> bool {
    let written = list(&answer["records"]).iter().filter(|record| record["type"] == kind && !record["value"].is_null());
    written.map(|record| &record["value"]).any(is)
}

fn wrote(answer: &Value, kind: i64) -> bool {
    any_record(answer, kind, |_| true)
}

fn removed(answer: &Value, kind: i64) -> bool {
    list(&answer["records"]).iter().any(|record| record["type"] == kind && record["value"].is_null())
}
