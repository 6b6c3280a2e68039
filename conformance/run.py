#!/usr/bin/env python3
"""Runs the suites of other projects against Millstream and writes CONFORMANCE.md.

    cargo build --release && conformance/run.py [SUITE...]        # all suites, or those named

The suites are the harness's (`../shared/harness`, or HARNESS), unmodified; they need Java, Maven, Go, Python or a C compiler. Each
gets a broker of its own, with the settings that it was written for. Tests that Millstream cannot pass by design are excluded there by name.
A suite that is not run keeps its row.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HARNESS = pathlib.Path(os.environ.get("HARNESS", ROOT.parent / "shared" / "harness"))
SUITES = HARNESS / "suites"
BINARY = pathlib.Path(os.environ.get("MILLSTREAM", ROOT / "target" / "release" / "millstream"))
TABLE = ROOT / "CONFORMANCE.md"

# name: (what it is, Kafka 4.4's passed/failed/skipped, broker settings or None for a broker per test, script and its settings, time limit in minutes)
ALL = {
    "kafka-request": ("Kafka's raw-request coordinator tests", "84 / 1 / 15", None, ["run-kafka-request.sh"], {}, 20),
    "kafka-streams": ("Kafka Streams' integration tests", "56 / 0 / 0", None, ["run-kafka-streams.sh"], {}, 25),
    "kafka-consumer": ("Kafka's consumer integration tests", "227 / 0 / 11", None, ["run-kafka-clients.sh"], {"GROUP": "consumer"}, 40),
    "kafka-producer": ("Kafka's producer and admin tests", "26 / 0 / 12", None, ["run-kafka-clients.sh"], {"GROUP": "producer admin"}, 15),
    "kafka-tools": ("tests of Kafka's command line tools", "74 / 0 / 0", None, ["run-kafka-tools.sh"], {}, 15),
    "kafka-cli": ("Kafka's command line tools", "63 / 0 / 0", [], ["run-kafka-cli.sh"], {}, 10),
    "librdkafka-classic": ("librdkafka, classic protocol", "90 / 0 / 7", ["num.partitions=4"], ["run-librdkafka.sh"], {"PROTO": "classic"}, 25),
    "librdkafka-consumer": ("librdkafka, KIP-848", "89 / 0 / 8", ["num.partitions=4"], ["run-librdkafka.sh"], {"PROTO": "consumer"}, 25),
    "rust-rdkafka": ("rust-rdkafka", "47 / 0 / 0", ["node.id=0", "num.partitions=3"], ["run-rust-rdkafka.sh"], {}, 15),
    "franz-kgo": ("franz-go, kgo", "43 / 0 / 1", [], ["run-franz-kgo.sh"], {}, 10),
    "franz-kafkatests": ("franz-go's Kafka tests", "43 / 0 / 4", [], ["run-franz-kafkatests.sh"], {"SCALE": "4"}, 10),
    "sarama": ("sarama", "66 / 0 / 1", ["node.id=1"], ["run-sarama.sh"], {}, 15),
    "kafka-python": ("kafka-python", "53 / 0 / 10", ["node.id=0", "num.partitions=4"], ["run-kafka-python.sh"], {}, 10),
}


def run(name):
    _, _, settings, script, extra, minutes = ALL[name]
    environment = {**os.environ, **extra, "MILLSTREAM": str(BINARY), "BROKER_CMD": str(SUITES / "lib" / "millstream-cmd.sh")}
    command = ["bash", str(SUITES / script[0]), *script[1:]]
    if settings is None:
        command.append("cmd")
    else:
        command = ["bash", str(SUITES / "lib" / "with-broker.sh"), *settings, "--", *command, "{}"]
    started = time.monotonic()
    log = pathlib.Path(tempfile.gettempdir()) / f"millstream-{name}.log"
    with open(log, "w") as output:
        try:
            subprocess.run(command, env=environment, stdout=output, stderr=subprocess.STDOUT, timeout=minutes * 60)
        except subprocess.TimeoutExpired:
            output.write("\nTIMED OUT\n")
    text = log.read_text(errors="replace")
    counts = re.findall(r"SUITE \S+: passed (\d+) failed (\d+) skipped (\d+)", text)
    result = " / ".join(counts[-1]) if counts else "did not finish"
    print(f"{name}: {result} ({time.monotonic() - started:.0f} s), log {log}", flush=True)
    return result


def rows():
    """The table as it stands: name -> result."""
    found = {}
    if TABLE.exists():
        for line in TABLE.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 4 and cells[0].strip("`") in ALL:
                found[cells[0].strip("`")] = cells[3]
    return found


def main():
    names = sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(ALL)}")
    if not SUITES.exists() or not BINARY.exists():
        sys.exit("needs the harness (HARNESS) and a release build (MILLSTREAM)")
    results = rows()
    for name in names:
        results[name] = run(name)
        body = "".join(f"| `{n}` | {ALL[n][0]} | {ALL[n][1]} | {results.get(n, 'not run')} |\n" for n in ALL)
        TABLE.write_text(
            "# Conformance\n\nSuites of other projects, unmodified, against Millstream: passed / failed / skipped.\n"
            "Made by `conformance/run.py`, which says what is needed.\n\n"
            "| Suite | What it is | Apache Kafka 4.4 | Millstream |\n|---|---|---|---|\n" + body
        )


if __name__ == "__main__":
    main()
