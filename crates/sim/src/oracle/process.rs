//! The oracle as a child process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::source::Source;

/// Kafka's coordinator, one line at a time. It ends with this value.
pub struct Oracle {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// The script that starts it: `COORDINATOR_ORACLE`, or its place beside the checkout.
    pub fn script() -> Option<PathBuf> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/harness/coordinator-oracle/run.sh");
        let script = std::env::var_os("COORDINATOR_ORACLE").map_or(beside, PathBuf::from);
        let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok();
        (script.exists() && has_java).then_some(script)
    }

    pub fn start(script: &Path) -> Result<Oracle, String> {
        let command = Command::new("bash").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = command.map_err(|error| format!("{}: {error}", script.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output")?;
        Ok(Oracle { child, input, output: BufReader::new(output) })
    }

    fn answer(&mut self, line: &str) -> Result<Value, String> {
        let input = self.input.as_mut().ok_or("the oracle has ended")?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| format!("{error}: {answer}"))
    }
}

impl Source for Oracle {
    fn ask(&mut self, line: &str) -> Result<Value, String> {
        self.answer(line)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It ends with its input; waiting leaves nothing behind.
        drop(self.input.take());
        if self.child.wait().is_err() {
            let _ = self.child.kill();
        }
    }
}
