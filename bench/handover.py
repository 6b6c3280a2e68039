#!/usr/bin/env python3
"""How long tasks are without an owner when a stateful application is scaled from one to two instances: Millstream beside Apache
Kafka 4.4, in turn, with unmodified clients.

    cargo build --release && bench/handover.py [--mib 1024] [--value-bytes 1024]

The application is crates/millstream/tests/java/Handover.java: one thread per instance, six tasks, commit.interval.ms=200, a record for
each task every 5 ms. Needs Java 17 and Maven, and the harness for the reference broker.
"""

import argparse
import json
import subprocess
import tempfile

from brokers import HARNESS, ROOT, Kafka, Millstream, require

APPLICATION = ROOT / "crates" / "millstream" / "tests" / "java" / "Handover.java"


def measure(make, jars, options):
    with tempfile.TemporaryDirectory() as folder:
        broker = make(folder)
        try:
            done = subprocess.run(
                ["java", "-Xmx1g", "-cp", jars, APPLICATION, f"localhost:{broker.port}", str(options.mib), str(options.value_bytes)],
                capture_output=True, text=True, timeout=3600,
            )
        finally:
            broker.stop()
    lines = [line for line in done.stdout.splitlines() if line.startswith("HANDOVER ")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"{broker.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(lines[-1].removeprefix("HANDOVER "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the store")
    parser.add_argument("--value-bytes", type=int, default=1024)
    options = parser.parse_args()
    require("java", "mvn")
    jars = subprocess.run(["bash", HARNESS / "kafka.sh", "classpath"], check=True, capture_output=True, text=True).stdout.strip()
    ours, theirs = measure(Millstream, jars, options), measure(Kafka, jars, options)
    print(f"store of {options.mib} MiB, values of {options.value_bytes} bytes\n")
    print("| | Millstream | Kafka 4.4 | ratio |")
    print("|---|---|---|---|")
    for key, name in (("longest_gap_ms", "longest time a task is not processed"), ("handed_over_ms", "until the second instance has its tasks")):
        print(f"| {name} | {ours[key]} ms | {theirs[key]} ms | {ours[key] / max(1, theirs[key]):.3f} |")


if __name__ == "__main__":
    main()
