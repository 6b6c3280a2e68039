#!/usr/bin/env python3
"""The data path, side by side: Kafka's own performance tools against Millstream and against Apache Kafka 4.4, in turn, with ratios.

    cargo build --release && bench/data.py [--megabytes 200] [--policies always,interval,never] [--quick]

For each combination of acks, record size, partitions and compression: throughput of the producer (`ProducerPerformance`), CPU seconds
of the broker per GB, then the same for a consumer (`ConsumerPerformance`); and the latency from producer to consumer
(`EndToEndLatency`). Each broker runs alone, on loopback, on data of its own in the same directory (TMPDIR), and is stopped before
the other one starts. The reference broker is the harness's, in ../shared/harness or where HARNESS says; it runs with its default
settings, which leave syncing to the operating system, as Millstream does with log.flush.policy=never. Needs Java 17 and Maven.
"""

import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from brokers import HARNESS, Kafka, Millstream, require

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(broker):
    fields = pathlib.Path(f"/proc/{broker.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Tools:
    def __init__(self):
        self.classpath = subprocess.run([HARNESS / "kafka.sh", "classpath"], check=True, capture_output=True, text=True).stdout.strip()

    def run(self, name, *arguments):
        command = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", self.classpath, f"org.apache.kafka.tools.{name}"]
        done = subprocess.run(command + [str(a) for a in arguments], capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            sys.exit(f"{name} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def topic(self, broker, name, partitions):
        self.run("TopicCommand", "--bootstrap-server", f"localhost:{broker.port}", "--create", "--topic", name, "--partitions", partitions)


def measure(tools, broker, case, megabytes):
    """Producer MB/s, CPU seconds per GB, median latency ms; consumer MB/s, CPU seconds per GB."""
    acks, size, partitions, compression = case
    topic = f"t-{acks}-{size}-{partitions}-{compression}"
    count = max(1000, megabytes * 1_000_000 // size)
    bootstrap = f"localhost:{broker.port}"
    tools.topic(broker, topic, partitions)
    before = cpu_seconds(broker)
    props = [f"bootstrap.servers={bootstrap}", f"acks={acks}", f"compression.type={compression}", "batch.size=65536", "linger.ms=5"]
    out = tools.run("ProducerPerformance", "--topic", topic, "--num-records", count, "--record-size", size, "--throughput", -1, "--producer-props", *props)
    produced = cpu_seconds(broker) - before
    last = [line for line in out.splitlines() if "records/sec" in line][-1]
    rate = float(re.search(r"\(([\d.]+) MB/sec\)", last).group(1))
    median = float((re.search(r"([\d.]+) ms 50th", last) or re.search(r"([\d.]+) ms avg", last)).group(1))
    before = cpu_seconds(broker)
    out = tools.run("ConsumerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", count, "--hide-header", "--timeout", 60000)
    consumed = cpu_seconds(broker) - before
    fields = [field.strip() for field in out.strip().splitlines()[-1].split(",")]
    gigabytes = count * size / 1e9
    return rate, produced / gigabytes, median, float(fields[3]), consumed / gigabytes


def latency(tools, broker):
    """Milliseconds, 50th and 99th percentile, of records that are sent one after the other with acks=all."""
    tools.topic(broker, "latency", 1)
    out = tools.run("EndToEndLatency", "--bootstrap-server", f"localhost:{broker.port}", "--topic", "latency", "--num-records", 2000, "--producer-acks", "all", "--record-size", 100)
    found = re.search(r"50th = (\d+)\D+99th = (\d+)", out)
    return (int(found.group(1)), int(found.group(2))) if found else (float("nan"), float("nan"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--policies", default="always,interval,never")
    parser.add_argument("--quick", action="store_true", help="only 1 KiB, 1 partition and no compression")
    options = parser.parse_args()
    sizes, partitions, compressions = ([1024], [1], ["none"]) if options.quick else ([100, 1024], [1, 100], ["none", "lz4"])
    cases = list(itertools.product(["1", "all"], sizes, partitions, compressions))
    require("java", "mvn")
    tools = Tools()
    print(f"{options.megabytes} MB per case, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; ratios are Millstream : Kafka\n", flush=True)
    names = [(None, "Kafka")] + [(policy, f"Millstream, {policy}") for policy in options.policies.split(",")]
    results = {}
    for policy, name in names:
        with tempfile.TemporaryDirectory(prefix="data-path-") as folder:
            broker = Millstream(folder, f"log.flush.policy={policy}") if policy else Kafka(folder)
            try:
                results[name] = {case: measure(tools, broker, case, options.megabytes) for case in cases}, latency(tools, broker)
            finally:
                broker.stop()
        print(f"{name}: done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    print("| broker | acks | bytes | partitions | compression | produce MB/s | CPU s/GB | median ms | consume MB/s | CPU s/GB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    reference = results["Kafka"][0]
    for name, (measured, _) in results.items():
        for case in cases:
            cells = []
            for value, other in zip(measured[case], reference[case]):
                ratio = f" ({value / other:.2f})" if name != "Kafka" and other else ""
                cells.append(f"{value:.1f}{ratio}")
            print("| " + " | ".join([name, *map(str, case), *cells]) + " |")
    print("\n| broker | end to end, 50th ms | 99th ms |\n|---|---|---|")
    for name, (_, (half, most)) in results.items():
        print(f"| {name} | {half} | {most} |")


if __name__ == "__main__":
    main()
