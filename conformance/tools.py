#!/usr/bin/env python3
"""Kafka's own tools against a broker, in the forms that the harness's run-kafka-cli.sh leaves out.

    conformance/tools.py HOST:PORT DATA_DIR [swap]

`kafka-consumer-groups` and `kafka-streams-groups` in every form, `kafka-transactions`, and `kafka-dump-log` on the files in
DATA_DIR. With `swap`, a stopped Kafka of the harness gets the segment files of a topic and has to serve the same records.
Each check compares the output of a tool with a regular expression. Needs Java, and the harness for jars (KAFKA_LIBS) and Kafka.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
HARNESS = pathlib.Path(os.environ.get("HARNESS", HERE.parent.parent / "shared" / "harness"))
TOOLS = "org.apache.kafka.tools."
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
STREAMS = TOOLS + "streams.StreamsGroupCommand"
DUMP = "kafka.tools.DumpLogSegments"
LIMIT_S = 120

passed, failed = 0, 0


def class_path():
    if "KAFKA_LIBS" in os.environ:
        return os.environ["KAFKA_LIBS"] + "/*"
    return subprocess.run(["bash", HARNESS / "kafka.sh", "classpath"], capture_output=True, text=True, check=True).stdout.strip()


def java(*arguments):
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", CLASS_PATH, *map(str, arguments)]


def run(*arguments, stdin=None):
    done = subprocess.run(java(*arguments), input=stdin, capture_output=True, text=True, timeout=LIMIT_S)
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not line.startswith("SLF4J") and "StatusLogger" not in line)


def check(name, pattern, *arguments, stdin=None, absent=False):
    """The output has to match, or with `absent` must not."""
    global passed, failed
    output = run(*arguments, stdin=stdin)
    if bool(re.search(pattern, output, re.MULTILINE)) != absent:
        passed += 1
    else:
        failed += 1
        wanted = "none of" if absent else "want"
        print(f"FAILED {name}: {wanted} /{pattern}/, got: {output[:400]}", flush=True)
    return output


def produce(topic, count, *options):
    records = "".join(f"k{i}:v{i}\n" for i in range(count))
    settings = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    run(TOOLS + "ConsoleProducer", *SERVER, "--topic", topic, *settings, *options, stdin=records)


def consume(topic, group, count, protocol, server=None):
    return run(
        TOOLS + "consumer.ConsoleConsumer", *(server or SERVER), "--topic", topic, "--group", group, "--from-beginning",
        "--max-messages", count, "--timeout-ms", 60000, "--command-property", f"group.protocol={protocol}",
        "--formatter-property", "print.key=true", "--formatter-property", "print.partition=true",
        "--formatter-property", "print.offset=true", "--formatter-property", "print.timestamp=true",
    )


def create(topic, partitions, *configs, server=None):
    settings = [word for config in configs for word in ("--config", config)]
    run(TOOLS + "TopicCommand", *(server or SERVER), "--create", "--topic", topic, "--partitions", partitions, *settings)


def consumer_groups():
    topic, other = f"{NAME}-t", f"{NAME}-o"
    create(topic, 2)
    create(other, 1)
    produce(topic, 40)
    produce(other, 10)
    for protocol, group in (("classic", f"{NAME}-classic"), ("consumer", f"{NAME}-consumer")):
        consume(topic, group, 40, protocol)
        of = [GROUPS, *SERVER]
        one = [*of, "--group", group]
        kind = protocol.capitalize()
        check(f"{protocol}: list", rf"^{group}$", *of, "--list")
        check(f"{protocol}: list by state", rf"^{group} +Empty", *of, "--list", "--state", "Empty")
        check(f"{protocol}: list by type", rf"^{group} +{kind}", *of, "--list", "--type", protocol)
        check(f"{protocol}: list by another type", rf"^{group} ", *of, "--list", "--type", "classic" if protocol == "consumer" else "consumer", absent=True)
        check(f"{protocol}: describe", rf"^{group} +{topic} +0 +\d+ +\d+ +0 ", *one, "--describe")
        check(f"{protocol}: describe --offsets --verbose", rf"^{group} +{topic} +1 ", *one, "--describe", "--offsets", "--verbose")
        check(f"{protocol}: describe --state", rf"^{group} .*Empty +0", *one, "--describe", "--state")
        check(f"{protocol}: describe --state --verbose", rf"^{group} .*Empty", *one, "--describe", "--state", "--verbose")
        check(f"{protocol}: describe --members --verbose", r"has no active members", *one, "--describe", "--members", "--verbose")
        check(f"{protocol}: describe --all-groups", rf"^{group} +{topic} ", *of, "--describe", "--all-groups")
        reset = [*one, "--reset-offsets"]
        rows = rf"^{group} +{topic} +%d +%s *$"
        file = WORK / f"{group}.csv"
        check(f"{protocol}: reset, dry run", rows % (0, "0"), *reset, "--topic", topic, "--to-earliest", "--dry-run")
        check(f"{protocol}: a dry run changes nothing", rf"^{group} +{topic} +0 +0 ", *one, "--describe", absent=True)
        exported = run(*reset, "--topic", topic, "--to-offset", 3, "--export", "--dry-run")
        file.write_text("\n".join(line for line in exported.splitlines() if "," in line) + "\n")
        check(f"{protocol}: reset --from-file", rows % (1, "3"), *reset, "--from-file", file, "--execute")
        check(f"{protocol}: reset was done", rf"^{group} +{topic} +1 +3 ", *one, "--describe")
        check(f"{protocol}: reset --shift-by", rows % (0, "5"), *reset, "--topic", topic, "--shift-by", 2, "--execute")
        check(f"{protocol}: reset --shift-by back beyond the start", rows % (0, "0"), *reset, "--topic", topic, "--shift-by", -100, "--execute")
        check(f"{protocol}: reset of one partition", rows % (1, "1"), *reset, "--topic", f"{topic}:1", "--to-offset", 1, "--execute")
        check(f"{protocol}: the other partition stayed", rf"^{group} +{topic} +0 +0 ", *one, "--describe")
        check(f"{protocol}: reset --to-current", rows % (1, "1"), *reset, "--topic", topic, "--to-current", "--execute")
        check(f"{protocol}: reset --to-datetime", rows % (1, "0"), *reset, "--topic", topic, "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
        check(f"{protocol}: reset --by-duration", rows % (1, "0"), *reset, "--topic", topic, "--by-duration", "P1D", "--execute")
        check(f"{protocol}: reset --to-latest --all-topics", rows % (1, r"[1-9]\d*"), *reset, "--all-topics", "--to-latest", "--execute")
        check(f"{protocol}: reset of a topic never read", rf"^{group} +{other} +0 +0 *$", *reset, "--topic", other, "--to-earliest", "--execute")
        check(f"{protocol}: delete-offsets", r"Successful|successful", *one, "--delete-offsets", "--topic", other)
        check(f"{protocol}: offsets are gone", rf"{other}", *one, "--describe", absent=True)
        check(f"{protocol}: delete-offsets of a missing topic", r"[Ee]rror|does not", *one, "--delete-offsets", "--topic", f"{NAME}-none")
        check(f"{protocol}: delete", r"was successful", *one, "--delete")
        check(f"{protocol}: delete again", r"could not be deleted|not.* found|does not exist", *one, "--delete")
    check("describe of no group", r"does not exist|not found", GROUPS, *SERVER, "--describe", "--group", f"{NAME}-none")


def streams_groups():
    app = subprocess.Popen(["bash", HARNESS / "streams-probe" / "run.sh", SERVER[1], "streams"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + LIMIT_S
    group = None
    while group is None and time.monotonic() < deadline:
        found = re.search(r"^(wc-streams-\d+)", run(STREAMS, *SERVER, "--list"), re.MULTILINE)
        group = found and found[1]
    of, one = [STREAMS, *SERVER], [STREAMS, *SERVER, "--group", group]
    members = ""
    while "TASK" not in members and app.poll() is None:
        members = run(*one, "--describe", "--members", "--verbose")
    check("streams: members while it runs", r".", *one, "--describe", "--members")
    output, _ = app.communicate(timeout=300)
    check("streams: the application", r"PASS", "-version") if "PASS" not in output else None
    check("streams: list", rf"^{group}$", *of, "--list")
    check("streams: list --state", rf"^{group} +(Empty|NotReady|Stable)", *of, "--list", "--state")
    check("streams: describe", rf"^{group} +{group}-in +0 ", *one, "--describe")
    check("streams: describe --offsets --verbose", rf"^{group} +{group}-in +0 ", *one, "--describe", "--offsets", "--verbose")
    check("streams: describe --state", rf"^{group} .*(Empty|NotReady)", *one, "--describe", "--state")
    check("streams: describe --state --verbose", rf"^{group} .*(Empty|NotReady)", *one, "--describe", "--state", "--verbose")
    check("streams: describe --all-groups", rf"^{group} ", *of, "--describe", "--all-groups")
    reset = [*one, "--reset-offsets"]
    row = rf"^{group} +{group}-in +0 +%s *$"
    check("streams: reset, dry run", row % "0", *reset, "--all-input-topics", "--to-earliest", "--dry-run")
    check("streams: reset --to-offset", row % "1", *reset, "--input-topic", f"{group}-in", "--to-offset", 1, "--execute")
    check("streams: reset --shift-by", row % "2", *reset, "--input-topic", f"{group}-in:0", "--shift-by", 1, "--execute")
    check("streams: delete-offsets", r"uccessful", *one, "--delete-offsets", "--input-topic", f"{group}-in")
    check("streams: all groups", rf"^{group} +Streams", TOOLS + "GroupsCommand", *SERVER, "--list")
    check("streams: delete", r"uccessful", *one, "--delete")
    check("streams: it is gone", rf"^{group}$", *of, "--list", absent=True)


def transactions():
    topic, identity = f"{NAME}-x", f"{NAME}-id"
    create(topic, 1)
    perf = [TOOLS + "ProducerPerformance", "--topic", topic, "--num-records", 500, "--record-size", 50, "--throughput", -1]
    run(*perf, "--transactional-id", identity, "--transaction-duration-ms", 50, "--producer-props", f"bootstrap.servers={SERVER[1]}")
    command = [TOOLS + "TransactionsCommand", *SERVER]
    check("transactions: list", rf"^{identity}", *command, "list")
    check("transactions: list, long ones only", rf"^{identity}", *command, "list", "--duration-filter", 600000, absent=True)
    check("transactions: describe", rf"^\d+\s+{identity}.*CompleteCommit", *command, "describe", "--transactional-id", identity)
    check("transactions: describe-producers", r"^\d+\s+\d+\s+-?\d+\s+\d+\s+\d+\s+None", *command, "describe-producers", "--topic", topic, "--partition", 0)
    check("transactions: find-hanging", r"^Topic\s+Partition", *command, "find-hanging", "--topic", topic)
    check("transactions: abort of none", r"[Cc]ould not find any open transactions", *command, "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
    check("transactions: force-terminate", r"^$|[Ff]orce|succe", *command, "force-terminate", "--transactional-id", identity)
    return topic


def dump(topic):
    folder = DATA / f"{topic}-0"
    files = lambda folder, suffix: ",".join(str(path) for path in sorted(folder.glob(f"*{suffix}")))
    log = files(folder, ".log")
    check("dump: batches", r"baseOffset: 0 .*isTransactional: true.*isvalid: true", DUMP, "--files", log)
    check("dump: no damage", r"Found bytes|invalid|mismatch|Exception", DUMP, "--files", log, "--deep-iteration", absent=True)
    check("dump: control records", r"endTxnMarker: COMMIT", DUMP, "--files", log, "--print-data-log", "--deep-iteration")
    for suffix, name in ((".index", "offset index"), (".timeindex", "time index")):
        bad = r"Mismatches|Exception|out of order|not found"
        check(f"dump: {name}", bad, DUMP, "--files", files(folder, suffix), "--verify-index-only", absent=True)
    data = f"{NAME}-t-0"
    check("dump: data", r"keySize: \d+ valueSize: \d+.*payload: v\d+", DUMP, "--files", files(DATA / data, ".log"), "--print-data-log")
    for pattern, name, option in (
        (r"payload: .*offset", "__consumer_offsets", "--offsets-decoder"),
        (r"payload: .*(transactionalId|producerId|state)", "__transaction_state", "--transaction-log-decoder"),
    ):
        logs = ",".join(files(path, ".log") for path in sorted(DATA.glob(f"{name}-*")) if any(f.stat().st_size for f in path.glob("*.log")))
        check(f"dump: {option}", pattern, DUMP, "--files", logs, option)
    snapshots = files(folder, ".snapshot")
    if snapshots:
        check("dump: producer snapshot", r"producerId: \d+ producerEpoch: \d+", DUMP, "--files", snapshots)


def free_port():
    """A port of which the next is free too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("localhost", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("localhost", port + 1))
                return port
            except (OSError, OverflowError):
                continue


def swap():
    """Our segment files in Kafka's place: the same records, with the same offsets and times."""
    topic = f"{NAME}-s"
    create(topic, 1, "segment.bytes=1048576")
    produce(topic, 300)
    produce(topic, 300, "--compression-codec", "zstd")
    produce(topic, 300, "--compression-codec", "lz4", "--command-property", "enable.idempotence=true")
    run(TOOLS + "ProducerPerformance", "--topic", topic, "--num-records", 2000, "--record-size", 1000, "--throughput", -1,
        "--transactional-id", topic, "--transaction-duration-ms", 100, "--producer-props", f"bootstrap.servers={SERVER[1]}")
    wanted = sorted(consume(topic, f"{topic}-1", 2900, "classic").splitlines())
    folder = tempfile.mkdtemp(prefix="millstream-swap-")
    port = free_port()
    kafka = lambda *words: subprocess.run(["bash", HARNESS / "kafka.sh", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    server = ["--bootstrap-server", f"localhost:{port}"]
    try:
        kafka("start", folder, port)
        create(topic, 1, "segment.bytes=1048576", server=server)
        kafka("stop", folder)
        theirs = pathlib.Path(folder) / "data" / f"{topic}-0"
        for path in theirs.iterdir():
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
                path.unlink()
        (theirs / "leader-epoch-checkpoint").unlink(missing_ok=True)
        for path in (DATA / f"{topic}-0").iterdir():
            if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
                shutil.copy(path, theirs)
        kafka("start", folder, port)
        got = sorted(consume(topic, f"{topic}-2", 2900, "classic", server).splitlines())
        kafka("stop", folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    global passed, failed
    if got == wanted and len(got) > 2900:
        passed += 1
    else:
        failed += 1
        print(f"FAILED swap: {len(wanted)} lines from here, {len(got)} from Kafka, {len(set(wanted) ^ set(got))} differ")


if __name__ == "__main__":
    SERVER, DATA = ["--bootstrap-server", sys.argv[1]], pathlib.Path(sys.argv[2])
    NAME, CLASS_PATH = f"tools-{os.getpid()}", class_path()
    with tempfile.TemporaryDirectory() as work:
        WORK = pathlib.Path(work)
        consumer_groups()
        streams_groups()
        dump(transactions())
        if "swap" in sys.argv[3:]:
            swap()
    print(f"SUITE tools: passed {passed} failed {failed} skipped 0")
    sys.exit(1 if failed else 0)
