#!/usr/bin/env python3
"""Runs the suites of other projects against Millstream and writes CONFORMANCE.md.

    cargo build --release -p millstream && conformance/run.py [--quick | SUITE...]      # all suites, the quick ones, or those named

The suites are the harness's (`../shared/harness`, or HARNESS), unmodified; they need Java, Maven, Go, Python or a C compiler, which
they say themselves. Each gets a broker of its own, with the settings that it was written for. What is fetched and built goes to
CONFORMANCE_CACHE. Tests that Millstream cannot pass by design are excluded below by name, with the reason.
Ends with 1 if a test failed, or if a suite did not finish. `--quick` leaves the table alone, and passes over a suite whose tools are
not installed. A suite that is not run keeps its row.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "conformance"
HARNESS = pathlib.Path(os.environ.get("HARNESS", ROOT.parent / "shared" / "harness"))
SUITES = HARNESS / "suites"
BINARY = pathlib.Path(os.environ.get("MILLSTREAM", ROOT / "target" / "release" / "millstream"))
CACHE = pathlib.Path(os.environ.get("CONFORMANCE_CACHE", pathlib.Path.home() / ".cache" / "millstream-conformance"))
TABLE = ROOT / "CONFORMANCE.md"

# Kafka's tests compare whole answers; intervals and delays that Millstream adapts are Kafka's constants for them.
AS_CONFIGURED = {"MILLSTREAM_SET": "group.heartbeat.adaptive=false"}
QUICK = ("kafka-cli", "kafka-python", "franz-kgo")
# What a suite is run with; the quick ones are passed over where it is missing.
TOOLS = {"kafka-cli": ("java", "mvn", "unzip"), "kafka-python": ("python3", "pip", "ensurepip"), "franz-kgo": ("go",)}

# name: (what it is, Kafka 4.4's passed / failed / skipped, broker settings or None for a broker per test, script, its settings, minutes)
ALL = {
    "kafka-request": ("Kafka's raw-request coordinator tests", "84 / 1 / 15", None, "run-kafka-request.sh", AS_CONFIGURED, 20),
    "kafka-streams": ("Kafka Streams' integration tests", "56 / 0 / 0", None, "run-kafka-streams.sh", {}, 30),
    "kafka-streams-eos": ("the same, exactly once", "not measured", None, "run-kafka-streams.sh", {"GROUP": "eos"}, 30),
    "kafka-streams-classic": ("the same, classic protocol", "not measured", None, "run-kafka-streams.sh", {"GROUP": "classic"}, 30),
    "kafka-consumer": ("Kafka's consumer integration tests", "227 / 0 / 11", None, "run-kafka-clients.sh", {"GROUP": "consumer"}, 40),
    "kafka-producer": ("Kafka's producer and admin tests", "25 / 0 / 12", None, "run-kafka-clients.sh", {"GROUP": "producer admin"}, 20),
    "kafka-tools": ("tests of Kafka's command line tools", "74 / 0 / 0", None, "run-kafka-tools.sh", {}, 20),
    # Share groups are not built.
    "kafka-cli": ("Kafka's command line tools", "63 / 0 / 0, 3 on share groups", [], "run-kafka-cli.sh", {}, 10),
    "tools": ("the same tools in further forms, Kafka on our files", "not measured", [], "tools.py", {}, 20),
    "static": ("static members of stock clients, bounced", "not measured", [], "bounce.py", {}, 20),
    "librdkafka-classic": ("librdkafka, classic protocol", "90 / 0 / 7", ["num.partitions=4"], "run-librdkafka.sh", {"PROTO": "classic"}, 30),
    "librdkafka-consumer": ("librdkafka, KIP-848", "89 / 0 / 8", ["num.partitions=4"], "run-librdkafka.sh", {"PROTO": "consumer"}, 30),
    "rust-rdkafka": ("rust-rdkafka", "47 / 0 / 0", ["node.id=0", "num.partitions=3"], "run-rust-rdkafka.sh", {}, 20),
    "franz-kgo": ("franz-go, kgo", "43 / 0 / 1, 5 on share groups", [], "run-franz-kgo.sh", {}, 10),
    "franz-kafkatests": ("franz-go's Kafka tests", "43 / 0 / 4", [], "run-franz-kafkatests.sh", {"SCALE": "4"}, 10),
    "sarama": ("sarama", "66 / 0 / 1", ["node.id=1"], "run-sarama.sh", {}, 15),
    "kafka-python": ("kafka-python", "53 / 0 / 10", ["node.id=0", "num.partitions=4"], "run-kafka-python.sh", {}, 10),
    "segmentio": ("kafka-go, a smoke test: failures vary on Kafka, too", "432 / 6 / 4", ["node.id=1"], "run-segmentio.sh", {}, 15),
}
# Its failures say little.
SMOKE = ("segmentio",)
# Failures that are understood, and no fault: suite -> (the tests, why). They are run and counted, and the table says why.
UNDERSTOOD = {
    # It expects what Kafka 4.3 answers.
    "kafka-request": (r".*testFencedMemberCanRejoinWithEpochZero", "the same on Kafka 4.4"),
    # Seen on Kafka 4.4 with the same messages.
    "kafka-streams-eos": (r"RestoreIntegrationTest\.\[1\] useNewProtocol=true :: AssertionError Expected: <3>", "the same on Kafka 4.4"),
    "kafka-streams-classic": (r"AdjustStreamThreadCountTest\.shouldResizeCacheAfterThread(Replacement|RemovalTimesOut)", "the same on Kafka 4.4"),
    # The client's own clock decides both, and they pass more often than not: the first wants records to wait for their topic for longer than
    # 100 ms; the second wants the consumer to have begun a fetch when it is closed (Kafka 4.4 was seen to lose that, too).
    "rust-rdkafka": (r"test_base_producer_timeout", "a race in the client"),
    "kafka-consumer": (
        r"PlaintextConsumerCloseTest\.testAsyncConsumerCloseWithDefaultTakesAtLeastFetchMaxWaitMs",
        "a race in the client",
    ),
}

HEAD = """# Conformance

Suites of other projects, unmodified, against Millstream: passed / failed / skipped, of the last run of each. `conformance/run.py` runs
them, says what is needed and what is left out, and keeps the table. Where Kafka's number says "not measured", the harness has none.

| Suite | What it is | Apache Kafka 4.4 | Millstream |
|---|---|---|---|
"""


def command_of(name):
    _, _, settings, script, _, _ = ALL[name]
    if settings is None:
        return ["bash", SUITES / script, "cmd"]
    if script == "tools.py":
        # The data directory is beside the settings, which only the broker's command learns: one is chosen here.
        data = tempfile.mkdtemp(prefix="millstream-tools-")
        return ["bash", SUITES / "lib" / "with-broker.sh", f"log.dirs={data}", "--", sys.executable, HERE / script, "{}", data, "swap"]
    program = [sys.executable, HERE / script] if script.endswith(".py") else ["bash", SUITES / script]
    return ["bash", SUITES / "lib" / "with-broker.sh", *settings, "--", *program, "{}"]


def run(name):
    """What became of it: (its line of counts, whether that is as it should be)."""
    extra, minutes = ALL[name][4:]
    environment = {
        **os.environ, **extra, "MILLSTREAM": str(BINARY), "BROKER_CMD": str(HERE / "broker.sh"), "WORK": str(CACHE),
        "HARNESS": str(HARNESS), "MILLSTREAM_LOG": str(CACHE / "brokers" / name),
    }
    started = time.monotonic()
    log = CACHE / f"{name}.log"
    shutil.rmtree(CACHE / "brokers" / name, ignore_errors=True)
    with open(log, "w") as output:
        suite = subprocess.Popen(list(map(str, command_of(name))), env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            suite.wait(minutes * 60)
        except subprocess.TimeoutExpired:
            # The broker and the suite's own children are of its session.
            os.killpg(suite.pid, 9)
            suite.wait()
            output.write("\nTIMED OUT\n")
    text = log.read_text(errors="replace")
    counts = re.findall(r"SUITE [^:]+: passed (\d+) failed (\d+) skipped (\d+)", text)
    result = " / ".join(counts[-1]) if counts else "did not finish"
    failures = re.findall(r"^FAILED (.*)", text, re.MULTILINE)
    tests, why = UNDERSTOOD.get(name, ("$.", ""))
    understood = bool(counts) and 0 < int(counts[-1][1]) == sum(bool(re.match(tests, failure)) for failure in failures) == len(failures)
    if understood:
        result += f"; {why}"
    right = bool(counts) and (counts[-1][1] == "0" or understood or name in SMOKE)
    print(f"{name}: {result} ({time.monotonic() - started:.0f} s), log {log}", flush=True)
    if not right:
        print("\n".join(line for line in text.splitlines() if line.startswith("FAILED"))[:4000] or text[-2000:], flush=True)
    return result, right


def is_there(tool):
    """A program, or a module that some distributions of Python leave out."""
    return shutil.which(tool) is not None or importlib.util.find_spec(tool) is not None


def rows():
    """The table as it stands: name -> result."""
    found = {}
    if TABLE.exists():
        for line in TABLE.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 4 and cells[0].strip("`") in ALL:
                found[cells[0].strip("`")] = cells[3]
    return found


def write(results):
    body = "".join(f"| `{n}` | {ALL[n][0]} | {ALL[n][1]} | {results.get(n, 'not run')} |\n" for n in ALL)
    TABLE.write_text(HEAD + body)


def main():
    quick = sys.argv[1:] == ["--quick"]
    names = QUICK if quick else sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(ALL)}")
    if not SUITES.exists() or not BINARY.exists():
        sys.exit("needs the harness (HARNESS) and a build of the broker (MILLSTREAM)")
    CACHE.mkdir(parents=True, exist_ok=True)
    results, all_right = rows(), True
    for name in names:
        missing = [tool for tool in TOOLS.get(name, ()) if not is_there(tool)]
        if quick and missing:
            print(f"=== SKIPPED, the suite {name} did not run: {', '.join(missing)} is not installed ===", flush=True)
            continue
        results[name], right = run(name)
        all_right &= right
        if not quick:
            write(results)
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
