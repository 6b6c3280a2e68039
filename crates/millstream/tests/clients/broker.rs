//! The `millstream` binary as a child process on a port of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running broker; killed when dropped.
pub struct Broker {
    child: Child,
    port: u16,
    data: PathBuf,
    options: Vec<String>,
}

impl Broker {
    /// Starts on a free port; returns when the port answers.
    pub fn start(data: &Path, settings: &[&str]) -> Broker {
        Broker::start_with(data, settings.iter().flat_map(|s| ["--set".to_owned(), s.to_string()]).collect())
    }

    /// With a configuration file.
    pub fn start_with_file(data: &Path, file: &Path) -> Broker {
        Broker::start_with(data, vec!["--config".to_owned(), file.display().to_string()])
    }

    fn start_with(data: &Path, options: Vec<String>) -> Broker {
        let port = free_port();
        Broker { child: spawn(data, port, &options), port, data: data.to_path_buf(), options }
    }

    pub fn bootstrap(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// As `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("the broker is our child");
        self.child.wait().expect("a killed child can be waited for");
    }

    /// As an operator does.
    pub fn stop(&mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill is there");
        assert!(asked.success(), "the broker runs");
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "the broker ended with {status}");
    }

    /// Starts again on the same port and data.
    pub fn restart(&mut self) {
        self.child = spawn(&self.data, self.port, &self.options);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(data: &Path, port: u16, options: &[String]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.arg("serve").arg("--listen").arg(format!("localhost:{port}")).arg("--data-dir").arg(data).args(options);
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(data.with_extension("log"))
        .expect("a log file beside the data");
    let errors = log.try_clone().expect("a file handle can be duplicated");
    let mut child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("the binary was built");
    let until = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_err() {
        if let Ok(Some(status)) = child.try_wait() {
            let mut text = String::new();
            let _ = std::fs::File::open(data.with_extension("log")).and_then(|mut file| file.read_to_string(&mut text));
            panic!("the broker ended with {status}:\n{text}");
        }
        assert!(Instant::now() < until, "the broker does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A child whose output is read line by line.
pub struct Program {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// Everything printed so far, for the message of a failure.
    pub output: String,
}

impl Program {
    pub fn start(mut command: Command) -> Program {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Program { child, lines, output: String::new() }
    }

    /// The next line that starts with one of the words; panics when the program ends before.
    pub fn wait_for(&mut self, words: &[&str]) -> String {
        for line in self.lines.by_ref() {
            let line = line.expect("the program prints UTF-8");
            self.output.push_str(&line);
            self.output.push('\n');
            if words.iter().any(|word| line.starts_with(word)) {
                return line;
            }
        }
        panic!("the program ended without {words:?}:\n{}", self.output);
    }

    pub fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the program reads");
    }

    /// Panics unless the last verdict is PASS.
    pub fn expect_pass(mut self) {
        let verdict = self.wait_for(&["PASS", "FAIL"]);
        assert_eq!(verdict, "PASS", "\n{}", self.output);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
