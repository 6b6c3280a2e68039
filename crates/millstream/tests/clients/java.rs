//! Java applications with unmodified Kafka clients of a chosen version.
//!
//! Jars come from Maven once, into the user's cache. Where Java or Maven is missing the test is skipped loudly, or fails if
//! `MILLSTREAM_REQUIRE_CLIENTS=1` says that clients are required.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

/// Jars of one version of the Kafka clients.
pub struct Java {
    libs: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// One application at a time: several virtual machines at once would only measure how they wait for each other.
static TURN: Mutex<()> = Mutex::new(());

impl Java {
    /// `None` means: skip, it was said why.
    pub fn with_clients(version: &str) -> Option<Java> {
        Java::with_jars(&format!("-Dkafka.version={version}"), "pom.xml", version)
    }

    /// With what the wire scenarios' runner needs besides the clients: the classes of the coordinator's records.
    pub fn with_coordinator_records() -> Option<Java> {
        Java::with_jars("-q", "scenarios-pom.xml", "4.4.0-scenarios")
    }

    fn with_jars(flag: &str, pom: &str, cache: &str) -> Option<Java> {
        for (tool, flag) in [("java", "-version"), ("javac", "-version"), ("mvn", "-version")] {
            let found = Command::new(tool).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !found.is_ok_and(|status| status.success()) {
                return missing(&format!("{tool} is not installed"));
            }
        }
        // A test that failed leaves nothing behind that the next one could trip over.
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match fetch(flag, pom, cache) {
            Ok(libs) => Some(Java { libs, _turn: turn }),
            Err(why) => missing(&format!("the jars of Kafka {cache} cannot be fetched: {why}")),
        }
    }

    /// `java NAME.java ARGS` with the application from `tests/java`.
    pub fn application(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("java");
        command.arg("-Xmx600m").arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
        command.arg("-cp").arg(format!("{}/*", self.libs.display()));
        command.arg(sources().join(format!("{name}.java"))).args(arguments);
        command
    }

    /// Compiles all sources of a folder; returns the class path to run them with.
    pub fn compile(&self, sources: &Path, classes: &Path) -> String {
        let libs = format!("{}/*", self.libs.display());
        let mut command = Command::new("javac");
        command.args(["-nowarn", "-cp", &libs, "-d"]).arg(classes);
        for entry in std::fs::read_dir(sources).expect("the sources are there") {
            command.arg(entry.expect("a folder can be read").path());
        }
        let output = command.output().expect("javac starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        format!("{}:{libs}", classes.display())
    }
}

fn missing(why: &str) -> Option<Java> {
    assert!(std::env::var_os("MILLSTREAM_REQUIRE_CLIENTS").is_none_or(|v| v != "1"), "clients are required, but {why}");
    println!("SKIPPED: {why}");
    eprintln!("=== SKIPPED, a test with Java clients did not run: {why} ===");
    None
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java")
}

fn fetch(flag: &str, pom: &str, cache: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    let libs = home.join(".cache/millstream-tests").join(cache);
    if libs.join(".done").exists() {
        return Ok(libs);
    }
    let status = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(sources().join(pom))
        .arg(flag)
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", libs.display()))
        .status()
        .map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("Maven ended with {status}"));
    }
    std::fs::write(libs.join(".done"), "").map_err(|error| error.to_string())?;
    Ok(libs)
}
