#!/usr/bin/env python3
"""The data path, side by side: Kafka's own performance tools against Millstream and against Apache Kafka 4.4, in turn, with ratios.

    cargo build --release && bench/data.py [--megabytes 100] [--policies always,interval,never] [--quick] [--results FILE] [--fresh]

For each combination of acks, record size, partitions and compression: throughput of the producer (`ProducerPerformance`), CPU seconds
of the broker per GB of records, then the same for a consumer (`ConsumerPerformance`, without the time to join its group); and the
latency from producer to consumer (`EndToEndLatency`). Each broker runs alone, on loopback, on data of its own in the same directory
(TMPDIR), has seen some data before it is measured, and is stopped before the other one starts. The reference broker is the harness's,
in ../shared/harness or where HARNESS says; it runs with its default settings, which leave syncing to the operating system, as
Millstream does with log.flush.policy=never. Needs Java 17 and Maven.

A row that was measured is kept in the results file: a run that was interrupted goes on where it was when it is started again with the
same options and the same binary. --fresh begins anew. The whole takes about a quarter of an hour, --quick about two minutes.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from brokers import BINARY, HARNESS, Kafka, Millstream, require

TICKS = os.sysconf("SC_CLK_TCK")
# What runs just in time wants to have seen all that is measured: a cold Kafka needs several times of what it needs later.
WARM_UP = [("1", 1024, 1, "none"), ("all", 100, 100, "lz4")]
WARM_UP_MEGABYTES = 50
LATENCY_RECORDS = 2000
COLUMNS = ["produce MB/s", "CPU s/GB", "median ms", "consume MB/s", "CPU s/GB"]


def cpu_seconds(broker):
    """User and system time of the broker so far; clock ticks are coarse, so of the threads that are there it is the scheduler's."""
    process = pathlib.Path(f"/proc/{broker.pid}")
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    ticks = (int(fields[11]) + int(fields[12])) / TICKS
    try:
        threads = sum(int(path.read_text().split()[0]) for path in process.glob("task/*/schedstat")) / 1e9
    except OSError:
        return ticks, ticks
    return ticks, threads


def cpu_since(broker, before):
    # The time of threads that ended meanwhile is only in the ticks.
    return max(now - then for now, then in zip(cpu_seconds(broker), before))


class Tools:
    def __init__(self):
        self.classpath = subprocess.run(["bash", HARNESS / "kafka.sh", "classpath"], check=True, capture_output=True, text=True).stdout.strip()

    def run(self, name, *arguments):
        command = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", self.classpath, f"org.apache.kafka.tools.{name}"]
        done = subprocess.run(command + [str(a) for a in arguments], capture_output=True, text=True, timeout=900)
        if done.returncode != 0:
            sys.exit(f"{name} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def topic(self, broker, name, partitions):
        self.run("TopicCommand", "--bootstrap-server", f"localhost:{broker.port}", "--create", "--topic", name, "--partitions", partitions)


def found(pattern, text, tool):
    match = re.search(pattern, text)
    if not match:
        sys.exit(f"{tool} has said something else than expected:\n{text}")
    return match


def measure(tools, broker, topic, case, megabytes):
    """The values of COLUMNS."""
    acks, size, partitions, compression = case
    count = max(1000, megabytes * 1_000_000 // size)
    gigabytes = count * size / 1e9
    bootstrap = f"localhost:{broker.port}"
    tools.topic(broker, topic, partitions)
    before = cpu_seconds(broker)
    props = [f"bootstrap.servers={bootstrap}", f"acks={acks}", f"compression.type={compression}", "batch.size=65536", "linger.ms=5"]
    out = tools.run("ProducerPerformance", "--topic", topic, "--num-records", count, "--record-size", size, "--throughput", -1, "--producer-props", *props)
    produced = cpu_since(broker, before)
    total = found(r"records/sec \(([\d.]+) MB/sec\).* ([\d.]+) ms 50th", out.strip().splitlines()[-1], "ProducerPerformance")
    before = cpu_seconds(broker)
    out = tools.run("ConsumerPerformance", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", count, "--hide-header", "--timeout", 60000)
    consumed = cpu_since(broker, before)
    # start, end, MB, MB/s, records, records/s, ms to join the group, ms to fetch, MB/s and records/s of the fetching.
    lines = [line.split(",") for line in out.splitlines() if line.count(",") == 9]
    if not lines or int(lines[-1][4]) < count:
        sys.exit(f"ConsumerPerformance did not read everything:\n{out}")
    return [float(total.group(1)), produced / gigabytes, float(total.group(2)), float(lines[-1][8]), consumed / gigabytes]


def latency(tools, broker):
    """Average, 50th and 99th percentile, in milliseconds, of records that are sent one after the other with acks=all."""
    tools.topic(broker, "latency", 1)
    out = tools.run("EndToEndLatency", "--bootstrap-server", f"localhost:{broker.port}", "--topic", "latency", "--num-records", LATENCY_RECORDS, "--producer-acks", "all", "--record-size", 100)
    average = found(r"Avg latency: ([\d.]+) ms", out, "EndToEndLatency")
    half, most = found(r"50th = (\d+)\D+99th = (\d+)", out, "EndToEndLatency").groups()
    return [float(average.group(1)), float(half), float(most)]


class Results:
    """Rows that are measured, in a file of one JSON object a line."""

    def __init__(self, path, fresh):
        self.path = pathlib.Path(path)
        if fresh:
            self.path.unlink(missing_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.rows = {row["key"]: row["values"] for row in map(json.loads, filter(lambda line: line.endswith("}"), lines))}

    def get(self, *key):
        return self.rows.get(" ".join(map(str, key)))

    def put(self, values, *key):
        key = " ".join(map(str, key))
        self.rows[key] = values
        with self.path.open("a") as file:
            file.write(json.dumps({"key": key, "values": values, "load": os.getloadavg()[0]}) + "\n")
        print(f"{key}: {' '.join(f'{value:.2f}' for value in values)}", file=sys.stderr, flush=True)


def build(policy):
    """Tells results of one binary from those of another."""
    status = BINARY.stat()
    return f"{status.st_size}-{int(status.st_mtime)}" if policy else "4.4"


def fill(tools, results, policy, name, cases, megabytes):
    """Measures what the results lack of one broker."""
    missing = [case for case in cases if results.get(name, build(policy), megabytes, *case) is None]
    lacks_latency = results.get(name, build(policy), "latency") is None
    if not missing and not lacks_latency:
        return
    with tempfile.TemporaryDirectory(prefix="data-path-") as folder:
        broker = Millstream(folder, f"log.flush.policy={policy}") if policy else Kafka(folder)
        try:
            for case in WARM_UP:
                measure(tools, broker, "warm-up-" + "-".join(map(str, case)), case, WARM_UP_MEGABYTES)
            for case in missing:
                topic = "t-" + "-".join(map(str, case))
                results.put(measure(tools, broker, topic, case, megabytes), name, build(policy), megabytes, *case)
            if lacks_latency:
                results.put(latency(tools, broker), name, build(policy), "latency")
        finally:
            broker.stop()


def table(results, names, cases, megabytes):
    print("| broker | acks | bytes | partitions | compression | " + " | ".join(COLUMNS) + " |")
    print("|---" * (5 + len(COLUMNS)) + "|")
    for case in cases:
        reference = results.get("Kafka", build(None), megabytes, *case)
        for policy, name in names:
            values = results.get(name, build(policy), megabytes, *case)
            ratios = [f" ({value / other:.2f})" if policy and other else "" for value, other in zip(values, reference)]
            cells = [f"{value:.2f}{ratio}" for value, ratio in zip(values, ratios)]
            print("| " + " | ".join([name, *map(str, case), *cells]) + " |")
    print("\n| broker | end to end, average ms | 50th | 99th |\n|---|---|---|---|")
    for policy, name in names:
        average, half, most = results.get(name, build(policy), "latency")
        print(f"| {name} | {average:.2f} | {half:.0f} | {most:.0f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--policies", default="always,interval,never")
    parser.add_argument("--quick", action="store_true", help="only 1 KiB, 1 partition and no compression")
    parser.add_argument("--results", default=os.path.join(tempfile.gettempdir(), "millstream-data-path.jsonl"))
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    sizes, partitions, compressions = ([1024], [1], ["none"]) if options.quick else ([100, 1024], [1, 100], ["none", "lz4"])
    cases = list(itertools.product(["1", "all"], sizes, partitions, compressions))
    require("java", "mvn")
    tools, results = Tools(), Results(options.results, options.fresh)
    names = [(None, "Kafka")] + [(policy, f"Millstream, {policy}") for policy in options.policies.split(",")]
    for policy, name in names:
        fill(tools, results, policy, name, cases, options.megabytes)
    print(f"{options.megabytes} MB per case, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; ratios are Millstream : Kafka\n", flush=True)
    table(results, names, cases, options.megabytes)


if __name__ == "__main__":
    main()
