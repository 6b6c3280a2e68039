//! What the kernel knows of a process: CPU time, memory; and how many files this one may open.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to what this process may have, and returns it.
pub fn raise_open_files_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let now = if raised.is_ok() { maximum } else { current };
    // No limit at all is none that anybody reaches.
    now.unwrap_or(u64::MAX)
}

/// CPU time that a process has used, all of its threads together. Linux only.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("no such process")?;
    cpu_ticks(&stat).map(|ticks| Duration::from_millis(ticks * 10)).context("/proc/PID/stat has another form")
}

/// User and system time in ticks, of which Linux shows 100 a second on all machines. The name in front may contain anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Resident memory in KiB. Linux only.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("no such process")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    kib.context("/proc/PID/status has another form")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1000 200";
        assert_eq!(cpu_ticks(stat), Some(300));
        assert_eq!(cpu_ticks("nothing"), None);
    }
}
