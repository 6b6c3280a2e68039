#!/usr/bin/env python3
"""Static members of stock clients, bounced one after the other (KIP-345, KIP-848).

    conformance/bounce.py HOST:PORT [java|librdkafka|franz-go|streams ...]

For each client and both protocols: a group of 20 static consumers; each in turn is closed and started again within its session. It has to come
back to the partitions that it had, at the same generation, and nobody else may notice. Then a second consumer comes with the instance id of
one that runs: exactly one of the two is fenced, and no other member notices. For `streams` it is a Kafka Streams application of 4 instances, with
the classic and with the streams protocol.

A client is a program that holds the members of one group. It reads `start NAME INSTANCE` and `stop NAME`, and prints what becomes of them:
`NAME owns GENERATION PARTITIONS` at each change, `NAME failed ERROR`, `NAME stopped`. Needs Java, Go, and a librdkafka that
run-librdkafka.sh of the harness has built in WORK; a client that cannot be built is passed over, loudly.
"""

import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "bounce"
HARNESS = pathlib.Path(os.environ.get("HARNESS", HERE.parent.parent / "shared" / "harness"))
WORK = pathlib.Path(os.environ.get("WORK", "/tmp/suites-work"))
# Members of a group, and partitions of its topic.
SIZES = {"streams": (4, 8)}
CONSUMERS = (20, 40)
# This client says that a static member leaves for a while, but not which, so that the coordinator removes the member: on Kafka 4.4, too.
LEAVES_FOR_GOOD = [("franz-go", "consumer")]
LIMIT_S, SESSION_S = 90, 30


def jars():
    return os.environ["KAFKA_LIBS"] + "/*" if "KAFKA_LIBS" in os.environ else \
        subprocess.run(["bash", HARNESS / "kafka.sh", "classpath"], capture_output=True, text=True, check=True).stdout.strip()


def java(folder, source="Member.java"):
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx768m", f"-Djava.io.tmpdir={folder}", "-cp", jars(), SOURCES / source]


def streams(folder):
    return java(folder, "Streams.java")


def librdkafka(folder):
    built = WORK / "librdkafka" / "src" / "src"
    if not (built / "librdkafka.so.1").exists():
        return None
    program = folder / "member"
    subprocess.run(["gcc", "-O1", "-o", program, SOURCES / "member.c", f"-I{built}", built / "librdkafka.so.1", f"-Wl,-rpath,{built}", "-lpthread"], check=True)
    return [program]


def franz_go(folder):
    if shutil.which("go") is None:
        return None
    source = folder / "go"
    shutil.copytree(SOURCES, source, ignore=shutil.ignore_patterns("*.c", "*.java"))
    subprocess.run(["go", "build", "-mod=mod", "-o", folder / "bounce", "."], cwd=source, check=True)
    return [folder / "bounce"]


CLIENTS = {"java": java, "librdkafka": librdkafka, "franz-go": franz_go, "streams": streams}


class Failed(Exception):
    pass


class Group:
    """The members of one group: what each owns, and what happened since it was last asked."""

    def __init__(self, command, sizes, bootstrap, group, topic, protocol):
        self.members, self.partitions = sizes
        words = [*map(str, command), bootstrap, group, topic, protocol]
        self.program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines, self.state = queue.Queue(), {}
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.program.stdout:
            self.lines.put(line.split())

    def say(self, *words):
        self.program.stdin.write(" ".join(words) + "\n")
        self.program.stdin.flush()

    def next(self, seconds):
        """The next event, or none within the time."""
        try:
            name, *event = self.lines.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            return None
        self.state[name] = event
        return name, event

    def until(self, what, condition, allowed=None):
        """Waits for the condition on the states; only members in `allowed` may say something meanwhile."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            happened = self.next(deadline - time.monotonic())
            if happened is None:
                raise Failed(f"not within {LIMIT_S} s: {what}; {self.state}")
            if allowed is not None and happened[0] not in allowed:
                raise Failed(f"{what}: meanwhile {happened[0]} says {' '.join(happened[1])}")

    def quiet(self, seconds, what):
        happened = self.next(seconds)
        if happened is not None:
            raise Failed(f"{what}: {happened[0]} says {' '.join(happened[1])}")

    def settle(self):
        """All members own the same number at one generation, for a while, and together everything: then nothing is left to be warmed up."""
        def shared():
            owns = [event for event in self.state.values() if event[0] == "owns"]
            parts = sorted(int(part) for event in owns if event[2] != "-" for part in event[2].split(","))
            alike = len({event[1] for event in owns}) == len({event[2].count(",") for event in owns}) == 1
            return len(owns) == self.members and alike and parts == list(range(self.partitions))
        while True:
            self.until("the group settles", shared)
            if self.next(3) is None:
                return

    def close(self):
        self.program.stdin.close()
        try:
            self.program.wait(30)
        except subprocess.TimeoutExpired:
            self.program.kill()


def bounce(group):
    longest = 0
    for i in range(group.members):
        name = f"m{i}"
        before = group.state[name]
        began = time.monotonic()
        group.say("stop", name)
        group.until(f"{name} stops", lambda: group.state[name] == ["stopped"], {name})
        group.say("start", name, f"i{i}")
        group.until(f"{name} is back with {before}", lambda: group.state[name] == before, {name})
        longest = max(longest, time.monotonic() - began)
    group.quiet(3, "after the last one")
    if longest > SESSION_S:
        raise Failed(f"a bounce took {longest:.1f} s, longer than a session")
    return longest


def overlap(group):
    """The instance id of m0 a second time."""
    pair = ("m0", "twin")
    group.say("start", "twin", "i0")
    failed = lambda: [name for name in pair if group.state.get(name, [""])[0] == "failed"]
    errors = {}

    def one_is_out():
        for name in failed():
            errors[name] = group.state[name][1]
        return any(group.state.get(name) == ["stopped"] for name in pair)

    group.until("one of two is fenced", one_is_out, set(pair))
    if len(errors) != 1 or not re.search(r"(?i)fenced|unreleased", next(iter(errors.values()))):
        raise Failed(f"of two members with one instance id failed: {errors}")
    (left,) = [name for name in pair if name not in errors]
    group.until("the other one has the partitions", lambda: group.state[left][0] == "owns" and group.state[left][2] != "-", set(pair))
    group.quiet(3, "after the fence")
    return next(iter(errors.values()))


def main():
    bootstrap, wanted = sys.argv[1], sys.argv[2:] or list(CLIENTS)
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as work:
        for client in wanted:
            folder = pathlib.Path(work) / client
            folder.mkdir()
            command, sizes = CLIENTS[client](folder), SIZES.get(client, CONSUMERS)
            if command is None:
                print(f"=== SKIPPED, {client} is not there ===", flush=True)
                skipped += 4
                continue
            for protocol in ("classic", "consumer"):
                topic = f"bounce-{client}-{protocol}-{os.getpid()}"
                subprocess.run(["java", "-cp", jars(), "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic,
                                "--partitions", str(sizes[1])], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                group = Group(command, sizes, bootstrap, topic, topic, protocol)
                try:
                    for i in range(sizes[0]):
                        group.say("start", f"m{i}", f"i{i}")
                    group.settle()
                    if (client, protocol) in LEAVES_FOR_GOOD:
                        print(f"{client}, {protocol}: not bounced, the client gives up its place", flush=True)
                        skipped += 1
                    else:
                        longest = bounce(group)
                        print(f"{client}, {protocol}: bounced at the same generation, the longest in {longest * 1000:.0f} ms", flush=True)
                        passed += 1
                    print(f"{client}, {protocol}: of two with one instance id one is out: {overlap(group)}", flush=True)
                    passed += 1
                except Failed as why:
                    print(f"FAILED {client}, {protocol}: {str(why)[:1500]}", flush=True)
                    failed += 1
                finally:
                    group.close()
    print(f"SUITE static: passed {passed} failed {failed} skipped {skipped}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
