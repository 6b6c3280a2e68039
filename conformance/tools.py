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
DUMP = TOOLS + "DumpLogSegments"
LIMIT_S = 120

passed, failed = 0, 0


def class_path():
    """The jars one by one: an archive of classes does not take a wildcard."""
    wildcard = os.environ.get("KAFKA_LIBS") or subprocess.run(["bash", HARNESS / "kafka.sh", "classpath"], capture_output=True, text=True, check=True).stdout
    return ":".join(map(str, sorted(pathlib.Path(wildcard.strip().removesuffix("/*")).glob("*.jar"))))


def java(*arguments):
    """The classes that a tool loads are kept in an archive, which halves the time of the next one's start."""
    archive = WORK / "classes.jsa"
    sharing = f"-XX:SharedArchiveFile={archive}" if archive.exists() else f"-XX:ArchiveClassesAtExit={archive}"
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Xshare:auto", sharing, f"-Dlog4j2.configurationFile={QUIET}", "-cp", CLASS_PATH,
            *map(str, arguments)]


def run(*arguments, stdin=None):
    done = subprocess.run(java(*arguments), input=stdin, capture_output=True, text=True, timeout=LIMIT_S)
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not line.startswith("SLF4J") and "StatusLogger" not in line and "[cds]" not in line and "[warning]" not in line)


def verdict(name, right, output):
    """Counts a check that is not a pattern."""
    global passed, failed
    if right:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: got: {output[:400]}", flush=True)


def check(name, pattern, *arguments, stdin=None, absent=False):
    """The output has to match, or with `absent` must not."""
    output = run(*arguments, stdin=stdin)
    wanted = "none of" if absent else "want"
    verdict(f"{name}: {wanted} /{pattern}/", bool(re.search(pattern, output, re.MULTILINE)) != absent, output)
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
    topic, group = f"{NAME}-in", f"{NAME}-app"
    create(topic, 2)
    produce(topic, 20)
    of, one = [STREAMS, *SERVER], [STREAMS, *SERVER, "--group", group]
    app = subprocess.Popen(java(HERE / "Steady.java", SERVER[1], group, topic), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + LIMIT_S
    settled = False
    while not settled and app.poll() is None and time.monotonic() < deadline:
        settled = re.search(rf"^{group} +{topic} +\d+ +[1-9]", run(*one, "--describe"), re.MULTILINE)
    try:
        row = rf"^{group} +{topic} +\d+ +"
        check("streams: describe", row + r"\d+ *$", *one, "--describe")
        check("streams: describe --offsets --verbose", row + r"\d+ +(\d+|-) +\d+ +\d+ *$", *one, "--describe", "--offsets", "--verbose")
        check("streams: describe --members", rf"^{group} +\S+ +.*ACTIVE:", *one, "--describe", "--members")
        check("streams: describe --members --verbose", rf"^{group} +\d+ +0 +\S+ +streams .*ACTIVE:", *one, "--describe", "--members", "--verbose")
        check("streams: describe --state", rf"^{group} .*Stable +1 *$", *one, "--describe", "--state")
        check("streams: describe --state --verbose", rf"^{group} .*sticky +Stable +\d+ +\d+ +1 *$", *one, "--describe", "--state", "--verbose")
        check("streams: describe --all-groups", row, *of, "--describe", "--all-groups")
        check("streams: a group with members keeps its offsets", r"[Ee]rror|not (empty|inactive)|active", *one, "--reset-offsets", "--all-input-topics", "--to-earliest", "--execute")
        check("streams: a group with members is not deleted", r"could not be deleted|not empty|NOT_EMPTY|not EMPTY", *one, "--delete")
    finally:
        app.stdin.close()
        app.wait(LIMIT_S)
    # The last member says that it leaves; the tool asks for the state, because the process ends without waiting for the answer.
    check("streams: list", rf"^{group}$", *of, "--list")
    check("streams: list --state", rf"^{group} +(Empty|Stable)", *of, "--list", "--state")
    emptied = False
    while not emptied and time.monotonic() < deadline + LIMIT_S:
        emptied = re.search(rf"^{group} .*Empty +0 *$", run(*one, "--describe", "--state"), re.MULTILINE)
    check("streams: describe --state of an empty group", rf"^{group} .*Empty +0 *$", *one, "--describe", "--state")
    reset = [*one, "--reset-offsets"]
    row = rf"^{group} +{topic} +0 +%s *$"
    check("streams: reset, dry run", row % "0", *reset, "--all-input-topics", "--to-earliest", "--dry-run")
    check("streams: reset --to-offset", row % "1", *reset, "--input-topic", topic, "--to-offset", 1, "--execute")
    check("streams: reset --shift-by", row % "2", *reset, "--input-topic", f"{topic}:0", "--shift-by", 1, "--execute")
    check("streams: reset --to-current", row % "2", *reset, "--input-topic", f"{topic}:0", "--to-current", "--execute")
    check("streams: delete-offsets", rf"^{topic} +0 +Successful", *one, "--delete-offsets", "--input-topic", topic)
    check("streams: all groups", rf"^{group} +Streams", TOOLS + "GroupsCommand", *SERVER, "--list")
    check("streams: delete", r"was successful", *one, "--delete")
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
    check("transactions: describe-producers", r"^\d+\s+\d+\s+-?\d+\s+-?\d+\s+\d+\s+None", *command, "describe-producers", "--topic", topic, "--partition", 0)
    check("transactions: find-hanging", r"^Topic\s+Partition", *command, "find-hanging", "--topic", topic)
    check("transactions: abort of none", r"[Cc]ould not find any open transactions", *command, "abort", "--topic", topic, "--partition", 0, "--start-offset", 0)
    epoch = lambda output: int(re.search(rf"^\d+\s+{identity}\s+\d+\s+(\d+)", output, re.MULTILINE)[1])
    before = epoch(run(*command, "describe", "--transactional-id", identity))
    run(*command, "forceTerminateTransaction", "--transactionalId", identity)
    after = check("transactions: describe after forceTerminateTransaction", rf"^\d+\s+{identity}", *command, "describe", "--transactional-id", identity)
    verdict("transactions: forceTerminateTransaction fences the producer", epoch(after) > before, after)


def files(folder, suffix):
    return sorted(folder.glob(f"*{suffix}"))


def dump(topic):
    """`topic` is written by transactions, in more than one segment, so that there are finished index files."""
    folder = DATA / f"{topic}-0"
    damage = r"Found bytes|isvalid: false|[Mm]ismatch|Exception|out of order|not found"
    listed = lambda paths: ",".join(map(str, paths))
    log = listed(files(folder, ".log"))
    check("dump: batches", r"baseOffset: 0 .*isTransactional: false .*isvalid: true", DUMP, "--files", log)
    check("dump: transactional batches", r"isTransactional: true isControl: false .*isvalid: true", DUMP, "--files", log)
    check("dump: no damage", damage, DUMP, "--files", log, "--deep-iteration", absent=True)
    check("dump: control records", r"endTxnMarker: COMMIT", DUMP, "--files", log, "--print-data-log", "--deep-iteration")
    for suffix, entry in ((".index", r"^offset: \d+ position: \d+"), (".timeindex", r"^timestamp: \d+ offset: \d+")):
        there = [path for path in files(folder, suffix) if path.stat().st_size][:1]
        check(f"dump: {suffix}", entry, DUMP, "--files", listed(there))
        check(f"dump: {suffix} without damage", damage, DUMP, "--files", listed(there), absent=True)
        check(f"dump: {suffix} verified", damage, DUMP, "--files", listed(there), "--verify-index-only", absent=True)
    check("dump: data", r"keySize: \d+ valueSize: \d+.*payload: v\d+", DUMP, "--files", listed(files(DATA / f"{NAME}-t-0", ".log")), "--print-data-log")
    for name, option, patterns in (
        ("__consumer_offsets", "--offsets-decoder", (
            r'key: \{"type":"1","data":\{"group":.*payload: \{"version":.*"offset":', r'key: \{"type":"2",', r'key: \{"type":"3",', r'key: \{"type":"17",',
        )),
        ("__transaction_state", "--transaction-log-decoder", (r'key: \{"type":"0","data":\{"transactionalId":.*payload: \{"version":"1"',)),
    ):
        logs = [path for part in sorted(DATA.glob(f"{name}-*")) for path in files(part, ".log") if path.stat().st_size]
        output = run(DUMP, "--files", listed(logs), option)
        for pattern in patterns:
            verdict(f"dump: {option}: {pattern}", re.search(pattern, output), output)
        verdict(f"dump: {option}: every record is known", not re.search(r"[Uu]nknown|[Ee]xception|Could not decode", output), "\n".join(re.findall(r".*(?:nknown|xception|Could not).*", output)))
    snapshots = files(folder, ".snapshot")
    verdict("dump: a producer snapshot is there", snapshots, str(list(folder.iterdir())))
    if snapshots:
        check("dump: producer snapshot", r"producerId: \d+ producerEpoch: \d+", DUMP, "--files", snapshots[-1])


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


def mixed():
    """A topic of three segments with batches of many kinds: its name, and what a consumer reads of it."""
    topic = f"{NAME}-s"
    create(topic, 1, "segment.bytes=1048576")
    produce(topic, 300)
    produce(topic, 300, "--compression-codec", "zstd")
    produce(topic, 300, "--compression-codec", "lz4", "--command-property", "enable.idempotence=true")
    run(TOOLS + "ProducerPerformance", "--topic", topic, "--num-records", 2000, "--record-size", 1000, "--throughput", -1,
        "--transactional-id", topic, "--transaction-duration-ms", 100, "--producer-props", f"bootstrap.servers={SERVER[1]}")
    return topic, sorted(consume(topic, f"{topic}-1", 2900, "classic").splitlines())


def swap(topic, wanted):
    """Our segment files in Kafka's place: the same records, with the same offsets and times."""
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
    verdict("swap", got == wanted and len(got) >= 2900, f"{len(wanted)} lines from here, {len(got)} from Kafka, {len(set(wanted) ^ set(got))} differ")


if __name__ == "__main__":
    SERVER, DATA = ["--bootstrap-server", sys.argv[1]], pathlib.Path(sys.argv[2])
    NAME, CLASS_PATH = f"tools-{os.getpid()}", class_path()
    with tempfile.TemporaryDirectory() as work:
        WORK = pathlib.Path(work)
        QUIET = WORK / "log4j2.yaml"
        QUIET.write_text('Configuration:\n  status: "off"\n  Loggers:\n    Root: {level: "off"}\n')
        run(TOOLS + "TopicCommand", *SERVER, "--list")
        consumer_groups()
        streams_groups()
        transactions()
        topic, wanted = mixed()
        dump(topic)
        if "swap" in sys.argv[3:]:
            swap(topic, wanted)
    print(f"SUITE tools: passed {passed} failed {failed} skipped 0")
    sys.exit(1 if failed else 0)
