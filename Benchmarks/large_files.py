"""(large) Large contents, on this machine's disk, from and to nginx on loopback.

One download of 1 GiB and of 4 GiB, eight of 512 MiB at once, one upload of 4 GiB and 10,000 of 10 KiB, each beside its
peers. They run in turn within each round, each in an empty directory, and what one leaves unwritten is synced before the
next begins. What they promise differs: the service computes SHA-256, and the content is durable before it says
"complete"; curl and wget2 do neither.
"""

import http.client
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

from surroundings import ROOT, Origin, Service, cpu_seconds, wait_until

GIB = 1 << 30
SIZES = {"1 GiB": GIB, "4 GiB": 4 * GIB}
CROWD, CROWD_SIZE = 8, 512 << 20
SMALL, SMALL_SIZE, PARALLEL = 10_000, 10 * 1024, 64


def make(path, size):
    """A file of random blocks that repeat; no peer compresses."""
    block = os.urandom(16 << 20)
    with open(path, "wb") as file:
        for begin in range(0, size, len(block)):
            file.write(block[:size - begin])


def measured(commands):
    """Wall time and processor time of programs that run at once."""
    before, began = os.times(), time.monotonic()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands]
    statuses = [process.wait() for process in running]
    took, after = time.monotonic() - began, os.times()
    if any(statuses):
        raise RuntimeError(f"{commands[0][0]} ended with {statuses}")
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def curl(directory, urls):
    return measured(["curl", "-q", "-s", "--fail", "--noproxy", "*", "-o", f"{directory}/{n}", url]
                    for n, url in enumerate(urls))


def wget2(directory, urls):
    return measured(["wget2", "-q", "--no-config", "--no-proxy", "-O", f"{directory}/{n}", url]
                    for n, url in enumerate(urls))


def aria2(directory, urls):
    return measured(["aria2c", "--no-conf", "-q", "--no-proxy=*", "-x1", "-s1", "--file-allocation=none", "-d",
                     str(directory), "-o", str(n), url] for n, url in enumerate(urls))


def perform(running, tasks):
    """Creates tasks in one batch; wall and processor time until all have succeeded."""
    api = running.api()
    api("PUT", "/v1/sessions/bench", {"configuration": {
        "httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}})
    before, began = cpu_seconds(running.pid), time.monotonic()
    api("POST", "/v1/sessions/bench/tasks/batch?return=minimal", {"tasks": tasks})
    counts = lambda: api("GET", "/v1/sessions/bench")["taskCounts"]
    ended = wait_until(lambda: counts()["completed"] >= len(tasks), 1800, "the service's transfers")
    used = cpu_seconds(running.pid) - before
    if counts()["succeeded"] != len(tasks):
        raise RuntimeError(f"not all succeeded: {counts()}")
    return ended - began, used


def service(directory, urls):
    with Service(directory / "service", "--max-transfers-per-host", str(PARALLEL)) as running:
        return perform(running, [{"kind": "download", "request": {"url": url}} for url in urls])


class Probe:
    """How long a GET of the session takes while transfers run, every 5 ms."""

    def __init__(self, port):
        self.port, self.took, self.ended = port, [], threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.ended.wait(0.005):
            began = time.monotonic()
            connection.request("GET", "/v1/sessions/bench", headers={"Authorization": "Bearer dev"})
            connection.getresponse().read()
            self.took.append(time.monotonic() - began)

    def percentile(self, share):
        return sorted(self.took)[min(len(self.took) - 1, int(len(self.took) * share))]


def crowd(directory, urls, probes):
    with Service(directory / "service", "--max-transfers-per-host", str(PARALLEL)) as running:
        with Probe(running.port) as probe:
            figures = perform(running, [{"kind": "download", "request": {"url": url}} for url in urls])
        probes.append(probe.percentile(0.99))
        return figures


def upload(directory, files, origin):
    root = f"bench={files[0].parent}"
    with Service(directory / "service", "--files-root", root, "--max-transfers-per-host", str(PARALLEL)) as running:
        return perform(running, [
            {"kind": "upload", "request": {"url": f"{origin.url}/uploads/{file.name}", "method": "PUT"},
             "body": {"root": "bench", "path": file.name}} for file in files])


def curl_upload(directory, files, origin):
    listing = directory / "curl.txt"
    listing.write_text("".join(f'url = "{origin.url}/uploads/{file.name}"\nupload-file = "{file}"\n' for file in files))
    return measured([["curl", "-q", "-s", "--no-progress-meter", "--fail", "--noproxy", "*", "-Z", "--parallel-max",
                      str(PARALLEL), "-K", str(listing)]])


def warm(directory, size):
    """Allocates memory and frees it: a virtual machine may get it slowly, at the cost of the first user."""
    path = directory / "warm"
    make(path, size)
    path.unlink()


def rounds(number, contestants, disk, clear=None, memory=0):
    """The figures of each contestant, who take turns in each round."""
    figures = {name: [] for name in contestants}
    for _ in range(number):
        for name, play in contestants.items():
            here = pathlib.Path(tempfile.mkdtemp(dir=disk))
            os.sync()
            if clear:
                shutil.rmtree(clear, ignore_errors=True)
                clear.mkdir()
                warm(clear, memory)
            figures[name].append(play(here))
            shutil.rmtree(here)
    return figures


def rows(what, size, figures, compared="time"):
    def middle(values):
        return sorted(values)[len(values) // 2]

    for name, pairs in figures.items():
        took = middle([took for took, _ in pairs])
        yield (f"(large) {what}, {name}", f"{took:.2f} s ({size / took / 1e6:,.0f} MB/s)",
               f"{middle([used for _, used in pairs]):.2f} s CPU; rounds " + ", ".join(f"{took:.2f}" for took, _ in pairs))
    ours, *others = figures
    for other in others:
        walls = [mine[0] / theirs[0] for mine, theirs in zip(figures[ours], figures[other])]
        used = [mine[1] / max(theirs[1], 0.01) for mine, theirs in zip(figures[ours], figures[other])]
        yield (f"(large) {what}, {ours} against {other}", f"{middle(walls):.2f} × its time, {middle(used):.2f} × its CPU",
               "same round; rounds " + ", ".join(f"{share:.2f}" for share in sorted(walls)))


def downloads(origin, disk, number):
    for what, size in SIZES.items():
        url = f"{origin.url}/{size}"
        peers = {"urlsessiond": service, "wget2": wget2, "curl": curl, "aria2": aria2}
        yield from rows(f"one download of {what}", size, rounds(
            number, {name: lambda here, play=play: play(here, [url]) for name, play in peers.items()}, disk))


def crowds(origin, disk, number):
    urls, probes = [f"{origin.url}/{CROWD_SIZE}"] * CROWD, []
    peers = {"urlsessiond": lambda here: crowd(here, urls, probes), "curl": lambda here: curl(here, urls)}
    yield from rows(f"{CROWD} downloads of {CROWD_SIZE >> 20} MiB at once", CROWD * CROWD_SIZE, rounds(number, peers, disk))
    yield ("(large) p99 of a session's GET meanwhile", f"{sorted(probes)[len(probes) // 2] * 1000:.1f} ms",
           "rounds " + ", ".join(f"{probe * 1000:.1f}" for probe in probes))


def uploads(origin, tree, disk, number):
    large, small = tree / "large", tree / "small"
    for directory in (large, small):
        directory.mkdir()
    os.link(tree / str(4 * GIB), large / "body")
    for n in range(SMALL):
        (small / f"{n:05}.bin").write_bytes(os.urandom(SMALL_SIZE))
    for what, folder, size in (("one upload of 4 GiB", large, 4 * GIB),
                               (f"{SMALL:,} uploads of 10 KiB", small, SMALL * SMALL_SIZE)):
        files = sorted(folder.iterdir())
        peers = {"urlsessiond": lambda here: upload(here, files, origin),
                 "curl -T": lambda here: curl_upload(here, files, origin)}
        yield from rows(what, size, rounds(number, peers, disk, clear=tree / "uploads", memory=size + GIB))


def run(scratch, number=5):
    tree = scratch / "tree"
    tree.mkdir()
    for size in {*SIZES.values(), CROWD_SIZE}:
        make(tree / str(size), size)
    (ROOT / ".build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".build") as disk, Origin(scratch / "origin", tree) as origin:
        yield from downloads(origin, disk, number)
        yield from crowds(origin, disk, number)
        yield from uploads(origin, tree, disk, number)


if __name__ == "__main__":
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, *map(int, sys.argv[1:])):
            print(" | ".join(row))
