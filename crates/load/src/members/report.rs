//! What is said while it runs and in the end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Shared;
use crate::process::{cpu_time, resident_kib};

/// CPU time of the broker and of this program.
pub struct Used {
    broker: Option<Duration>,
    own: Duration,
}

impl Used {
    fn now(shared: &Shared) -> Result<Used> {
        Ok(Used { broker: shared.args.pid.map(cpu_time).transpose()?, own: cpu_time(std::process::id())? })
    }
}

pub fn before(shared: &Shared, partitions: i32) -> Result<Used> {
    let args = &shared.args;
    let protocol = format!("{:?}", args.protocol).to_lowercase();
    println!("{} {protocol} members in {} groups, {partitions} partitions each", args.members, args.groups);
    Used::now(shared)
}

/// The time counts on a machine that has nothing else to do; what it cost in CPU also on others.
pub fn formed(shared: &Shared, took: Duration, before: &Used) -> Result<()> {
    let now = Used::now(shared)?;
    let (connected, heartbeats) = (&shared.board.connected, &shared.board.heartbeats);
    println!(
        "formed      {:.2} s, {} connected, {} heartbeats on the way",
        took.as_secs_f64(),
        connected.load(Ordering::Relaxed),
        heartbeats.load(Ordering::Relaxed)
    );
    let broker =
        before.broker.zip(now.broker).map(|(before, now)| format!("broker {:.1} s, ", (now - before).as_secs_f64()));
    println!("            CPU: {}load {:.1} s", broker.unwrap_or_default(), (now.own - before.own).as_secs_f64());
    Ok(())
}

/// Measures steady heartbeats. Fails if something went wrong at any time.
pub async fn steady(shared: &Shared) -> Result<()> {
    let args = &shared.args;
    // What followed the last assignment is not part of the steady state.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let board = &shared.board;
    let heartbeats = || board.heartbeats.load(Ordering::Relaxed);
    let cpu = || args.pid.map(cpu_time).transpose();
    let own_pid = std::process::id();
    let (count, latencies, used, own) = (heartbeats(), board.latencies(), cpu()?, cpu_time(own_pid)?);
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    let (took, count) = (start.elapsed().as_secs_f64(), heartbeats() - count);
    println!(
        "heartbeats  {:.0} /s, {} us at the median, {} us at 99%",
        count as f64 / took,
        board.latency_micros(&latencies, 0.5),
        board.latency_micros(&latencies, 0.99)
    );
    if let (Some(pid), Some(before), Some(after)) = (args.pid, used, cpu()?) {
        let used = (after - before).as_secs_f64();
        println!(
            "broker      {:.1} us of CPU per heartbeat, {:.0}% of a core, {} MiB resident",
            used * 1e6 / count.max(1) as f64,
            used / took * 100.0,
            resident_kib(pid)? / 1024
        );
    }
    println!("load        {:.0}% of a core", (cpu_time(own_pid)? - own).as_secs_f64() / took * 100.0);
    let (errors, double) = (board.errors(), board.double_owned());
    let sum: u64 = errors.values().sum();
    println!("errors      {sum}");
    errors.iter().for_each(|(what, count)| println!("            {count} x {what}"));
    println!("two owners  {double}");
    if sum > 0 || double > 0 {
        bail!("not everything went well");
    }
    Ok(())
}
