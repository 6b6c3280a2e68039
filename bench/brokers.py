"""The two brokers that benchmarks compare: Millstream, and Apache Kafka 4.4 from the harness. Each on a free port of loopback, on
data of its own, with its default settings but for those that are given; the binary is MILLSTREAM or target/release/millstream, the
harness is HARNESS or beside the checkout."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HARNESS = pathlib.Path(os.environ.get("HARNESS", ROOT.parent / "shared" / "harness"))
BINARY = pathlib.Path(os.environ.get("MILLSTREAM", ROOT / "target" / "release" / "millstream"))


def free_port():
    # The reference broker takes the port after its own too.
    while True:
        with socket.socket() as a, socket.socket() as b:
            a.bind(("127.0.0.1", 0))
            port = a.getsockname()[1]
            try:
                b.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


class Millstream:
    name = "Millstream"

    def __init__(self, folder, *settings):
        self.port = free_port()
        log = open(pathlib.Path(folder) / "millstream.log", "w")
        command = [BINARY, "serve", "--listen", f"localhost:{self.port}", "--data-dir", pathlib.Path(folder) / "data"]
        command += [word for setting in settings for word in ("--set", setting)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.pid = self.process.pid
        wait_for(self.port)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Kafka:
    name = "Kafka 4.4"

    def __init__(self, folder, *settings):
        self.port = free_port()
        self.folder = pathlib.Path(folder) / "kafka"
        command = ["bash", HARNESS / "kafka.sh", "start", self.folder, str(self.port), *settings]
        started = subprocess.run(command, check=True, capture_output=True, text=True)
        self.pid = int(started.stdout.split()[-1])

    def stop(self):
        subprocess.run(["bash", HARNESS / "kafka.sh", "stop", self.folder], check=True)


def wait_for(port):
    for _ in range(1000):
        try:
            socket.create_connection(("localhost", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    sys.exit("the broker does not listen")


def require(*tools):
    """Ends the program with what is missing."""
    if not (HARNESS / "kafka.sh").exists():
        sys.exit(f"no harness at {HARNESS}; set HARNESS")
    if not BINARY.exists():
        sys.exit(f"no binary at {BINARY}; run cargo build --release, or set MILLSTREAM")
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
