#!/usr/bin/env python3
"""Group protocol, side by side: the same load against Millstream and against Apache Kafka 4.4, in turn, with ratios.

    cargo build --release && bench/groups.py [--members 100] [--partitions 1000] [--runs 3] [--heartbeat-members 500]

The load is the harness's own (`groupload`, in Go, over real sockets), the reference broker too; both are expected beside the
checkout, in ../shared/harness or where HARNESS says. Needs Go, Java 17 and Maven. Each broker runs alone, on loopback, with its
default settings, on data of its own, and is stopped before the other one starts.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

from brokers import HARNESS, Kafka, Millstream, require


def load(broker, mode, *arguments):
    command = ["bash", HARNESS / "groupload" / "run.sh", mode, "-bootstrap", f"localhost:{broker.port}", "-pid", str(broker.pid)]
    done = subprocess.run([*map(str, command), *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(make, options):
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        broker = make(folder)
        try:
            runs = [
                load(broker, "rebalance", "-members", options.members, "-partitions", options.partitions)
                for _ in range(options.runs)
            ]
            beats = load(
                broker, "heartbeat", "-members", options.heartbeat_members, "-partitions", options.partitions,
                "-seconds", options.seconds,
            )
        finally:
            broker.stop()
    for key in sorted({key for run in runs for key in run if key.endswith("_ms")}):
        figures[f"{key}, median of {options.runs}"] = statistics.median(run[key] for run in runs if key in run)
    for key in ("double_owned", "errors"):
        figures[key] = sum(run.get(key, 0) for run in runs) + beats.get(key, 0)
    for key in ("broker_cpu_us_per_hb", "per_s", "p50_us", "p99_us", "broker_rss_mib"):
        if key in beats:
            figures[f"heartbeat: {key}"] = beats[key]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--heartbeat-members", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    require("go", "java", "mvn")
    ours, theirs = measure(Millstream, options), measure(Kafka, options)
    print(f"{options.members} members, {options.partitions} tasks, heartbeats of {options.heartbeat_members} members\n")
    print("| | Millstream | Kafka 4.4 | ratio |")
    print("|---|---|---|---|")
    for key in ours:
        a, b = ours[key], theirs.get(key)
        ratio = f"{a / b:.3f}" if isinstance(b, (int, float)) and b else "-"
        number = lambda x: "-" if x is None else f"{x:.1f}" if isinstance(x, float) else str(x)
        print(f"| {key} | {number(a)} | {number(b)} | {ratio} |")


if __name__ == "__main__":
    main()
