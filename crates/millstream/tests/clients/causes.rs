//! `millstream groups explain` names why a group rebalanced, whatever the reason, with unmodified clients and over a restart
//! (issue 7, "done when" 2).

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::broker::{Broker, Program, free_port};
use crate::java::Java;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients are told to do, the group, and what is to be said of it: kind, client id, and words of the text.
type Step = (&'static [&'static str], &'static str, &'static str, Option<&'static str>, &'static str);

const STEPS: &[Step] = &[
    (&["topic orders 4", "consume a g consumer orders"], "g", "member-joined", Some("a"), "4 partitions move"),
    (&["consume b g consumer orders"], "g", "member-joined", Some("b"), "2 partitions move"),
    (&["grow orders 6"], "g", "topic-grew", None, "orders"),
    (&["topic payments 2", "subscribe b orders,payments"], "g", "subscription-changed", Some("b"), "payments"),
    (&["delete payments"], "g", "topic-deleted", None, "payments"),
    (&["close b"], "g", "member-left", Some("b"), "left"),
    (&["consume s1 g consumer orders till-7"], "g", "member-joined", Some("s1"), "till-7"),
    (&["close s1"], "g", "member-away", Some("s1"), "till-7"),
    (&["consume s2 g consumer orders till-7"], "g", "member-returned", Some("s2"), "till-7"),
    // A dynamic member of the classic protocol says itself why it goes.
    (&["consume c1 old classic orders"], "old", "member-joined", Some("c1"), ""),
    (&["consume c2 old classic orders"], "old", "member-joined", Some("c2"), ""),
    (&["stop-polling c2"], "old", "member-left", Some("c2"), "poll timeout"),
    // A second instance has to build up state before it gets tasks.
    (
        &[
            "group-config app streams.acceptable.recovery.lag=10",
            "topic in 4",
            "records in 4000",
            "application x app in",
        ],
        "app",
        "member-joined",
        Some("x"),
        "",
    ),
    (&["application y app in"], "app", "warmup-progress", None, "task"),
    (&["group-config app streams.num.standby.replicas=1"], "app", "config-changed", None, "standby"),
];

struct Explain<'a> {
    broker: &'a Broker,
    http: String,
}

impl Explain<'_> {
    /// All that is known of a group.
    fn events(&self, group: &str) -> Vec<Value> {
        let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
            .args(["groups", "explain", group, "--json", "--http", &self.http])
            .args(["--bootstrap-server", &self.broker.bootstrap()])
            .output()
            .expect("the binary runs");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        told["events"].as_array().cloned().unwrap_or_default()
    }

    /// Waits for a matching event among those after the first `seen`.
    fn wait_for(&self, group: &str, seen: usize, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let events = self.events(group);
            if let Some(found) = events.iter().skip(seen).find(|event| is(event)) {
                return found.clone();
            }
            let told =
                || events.iter().map(|event| format!("\n{} {}", event["seq"], event["text"])).collect::<String>();
            assert!(started.elapsed() < PATIENCE, "no {what} of {group} after {seen} in {}", told());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn is(event: &Value, kind: &str) -> bool {
    event["kind"] == kind || event["also"].as_array().is_some_and(|also| also.iter().any(|other| other == kind))
}

fn is_of(event: &Value, client: Option<&str>) -> bool {
    client.is_none_or(|client| event["who"]["client_id"].as_str().is_some_and(|id| id.starts_with(client)))
}

#[test]
fn explain_names_each_cause_also_after_a_restart() {
    let Some(java) = Java::with_clients("4.4.0") else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let http = format!("localhost:{}", free_port());
    let listener = format!("admin.http.listener={http}");
    let settings = [
        &listener,
        "group.consumer.min.session.timeout.ms=5000",
        "group.consumer.session.timeout.ms=10000",
        // A client that looks for the topic that is being deleted would have it made again.
        "auto.create.topics.enable=false",
    ];
    let mut broker = Broker::start(&dir.path().join("data"), &settings);
    let mut clients = Program::start(java.application("Causes", &[&broker.bootstrap()]));
    let explain = Explain { broker: &broker, http: http.clone() };
    for (commands, group, kind, client, words) in STEPS {
        let seen = explain.events(group).len();
        for command in *commands {
            clients.say(command);
            clients.wait_for(&["DONE"]);
        }
        let found = explain.wait_for(group, seen, kind, |event| is(event, kind) && is_of(event, *client));
        let text = found["text"].as_str().unwrap_or_default();
        println!("{} {commands:?}: {text}", found["seq"]);
        assert!(text.contains(words), "{commands:?}: {words:?} is not in {text:?}");
        // The next cause comes to a group that has dealt with this one.
        let settled = found["seq"].as_u64();
        if found["epoch"]["old"] != found["epoch"]["new"] {
            explain.wait_for(group, seen, "stable", |event| is(event, "stable") && event["seq"].as_u64() >= settled);
        }
    }

    // A process that dies says nothing: its session ends.
    let seen = explain.events("g").len();
    let mut mortal = Program::start(java.application("Causes", &[&broker.bootstrap()]));
    mortal.say("consume d g consumer orders");
    explain.wait_for("g", seen, "member-joined", |event| is(event, "member-joined") && is_of(event, Some("d")));
    drop(mortal);
    explain.wait_for("g", seen, "session-expired", |event| is(event, "session-expired") && is_of(event, Some("d")));

    drop(clients);
    let groups = ["g", "old", "app"];
    let before: Vec<Vec<Value>> = groups.iter().map(|group| explain.events(group)).collect();
    broker.stop();
    broker.restart();
    let explain = Explain { broker: &broker, http };
    for (group, before) in groups.iter().zip(before) {
        explain.wait_for(group, 0, "event", |_| true);
        let after = explain.events(group);
        assert_eq!(after.get(..before.len()), Some(&before[..]), "{group}");
    }
}
