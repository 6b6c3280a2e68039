#!/usr/bin/env python3
"""Sends the same random requests to Millstream and to Apache Kafka 4.4, and compares the answers.

    cargo build --release && conformance/beside.py [--seed 1] [--histories 100] [--steps 60] [--trace]

Topics, records, transactions, offsets, configurations, quotas, in all versions that both know; groups have a comparison of their own
(`sim oracle`). A history ends with the first answer that differs, and can be run again by its seed. Not compared: texts of errors, what a broker
chooses itself (ids, times), and the order of lists. Needs the harness, Java 17 and Maven. Ends with 1 if an answer differed.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import brokers  # noqa: E402

SOURCES = ROOT / "conformance" / "beside"
RUNNER = ROOT / "crates" / "millstream" / "tests" / "conformance" / "runner"
# The partitions of the coordinators' topics are seen in descriptions of transactions.
ALIKE = ("auto.create.topics.enable=false", "offsets.topic.num.partitions=50", "transaction.state.log.num.partitions=50")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--histories", type=int, default=100)
    options.add_argument("--steps", type=int, default=60, help="requests in a history")
    options.add_argument("--trace", action="store_true", help="print every request with its answer")
    options = options.parse_args()
    brokers.require("java", "javac", "mvn")
    script = ["bash", brokers.HARNESS / "kafka.sh", "classpath"]
    jars = subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="millstream-beside-") as folder:
        sources = [*SOURCES.glob("*.java"), RUNNER / "Wire.java", RUNNER / "Values.java"]
        subprocess.run(["javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", folder, *sources], check=True)
        ours = brokers.Millstream(folder, *ALIKE)
        kafka = brokers.Kafka(folder, *ALIKE)
        try:
            java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx300m", "-cp", f"{folder}{os.pathsep}{jars}", "Beside"]
            where = [f"localhost:{ours.port}", f"localhost:{kafka.port}"]
            how = [str(options.seed), str(options.histories), str(options.steps), *(["trace"] if options.trace else [])]
            sys.exit(subprocess.run([*java, *where, *how]).returncode)
        finally:
            ours.stop()
            kafka.stop()


if __name__ == "__main__":
    main()
