//! The wire scenarios under `tests/conformance` (streams, classic and consumer groups, transactions) against the binary:
//! requests of every kind and version, encoded and decoded by Kafka's own classes, with the answers that a real Kafka 4.4
//! gave, or those that the decisions ask for where the two differ. Those under `tests/field-cases` are of the same kind: what
//! went wrong with other brokers and clients in the field.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::broker::Broker;
use crate::java::Java;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The scenarios of these folders with the broker settings that they were written for.
fn conformance(profile: &str, suites: &[PathBuf]) {
    let Some(java) = Java::with_coordinator_records() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let runner = java.compile(&folder().join("runner"), &dir.path().join("classes"));

    let settings = folder().join(format!("{profile}.properties"));
    let broker = Broker::start_with_file(&dir.path().join("data"), &settings);
    let bootstrap = broker.bootstrap();
    let (restart, _restarter) = restarter(broker);

    let mut command = Command::new("java");
    command.args([
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    ]);
    command.arg("-cp").arg(runner).arg("Conformance").arg("--common").arg(folder().join("common"));
    // Access rules are not built (decision 29).
    command.args([&bootstrap, "--without", "acl", "--profile", profile, "--restart", &restart]);
    command.args(suites);
    let output = command.stdin(Stdio::null()).output().expect("java starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{said}");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for suite in suites {
        let suite = suite.file_name().expect("a folder has a name").display();
        let passed = said.lines().find_map(|line| line.strip_prefix(&format!("SUITE conformance-{suite}: passed ")));
        let passed: usize = passed.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or_default();
        assert!(passed > 0, "no scenario of {suite} ran:\n{said}");
    }
}

/// A shell command that kills the broker hard, starts it again and returns when it listens. The broker lives as long as the
/// returned guard.
fn restarter(broker: Broker) -> (String, Arc<Mutex<Broker>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let broker = Arc::new(Mutex::new(broker));
    let weak = Arc::downgrade(&broker);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (Ok(mut connection), Some(broker)) = (connection, weak.upgrade()) else { return };
            let mut broker = broker.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            broker.kill();
            broker.restart();
            let _ = writeln!(connection, "restarted");
        }
    });
    let ask = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && read -r line <&3 && test \"$line\" = restarted");
    (format!("bash -c '{ask}'"), broker)
}

fn rules(suites: &[&str]) -> Vec<PathBuf> {
    suites.iter().map(|suite| folder().join(suite)).collect()
}

/// All of `tests/field-cases`.
const CLASSES: [&str; 9] = [
    "streams-group",
    "static-membership",
    "consumer-848",
    "classic",
    "offsets",
    "admin-cli",
    "transactions",
    "data-plane",
    "storage-recovery",
];

fn field_cases(classes: &[&str]) -> Vec<PathBuf> {
    classes.iter().map(|class| folder().join("../field-cases").join(class)).collect()
}

#[test]
fn wire_scenarios_with_short_sessions_and_small_groups() {
    conformance("reference", &rules(&["streams", "classic", "consumer", "transactions"]));
}

#[test]
fn wire_scenarios_with_an_initial_delay_expiry_and_no_migration() {
    let suites = [rules(&["streams", "classic"]), field_cases(&["offsets"])].concat();
    conformance("second", &suites);
}

#[test]
fn wire_scenarios_of_retention_and_compaction() {
    conformance("cleaning", &rules(&["transactions"]));
}

#[test]
fn field_cases_over_the_wire() {
    conformance("reference", &field_cases(&CLASSES));
}
