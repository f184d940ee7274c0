"""(segments) 1 GiB over sixteen connections of 20 MB/s each, and from four mirrors of 80 MB/s, beside aria2.

nginx limits the rate of each answer (limit_rate), and lets the first second's worth of it pass at once. A mirror is a
server of its own with as much for each of four connections. Contestants run in turn within each round, each in an empty
directory, and what one leaves unwritten is synced before the next begins. What they promise differs: the service computes
SHA-256, and the content is durable before it says "complete"; aria2 does neither.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import time

from large_files import GIB, make, measured
from surroundings import Origin, Service, cpu_seconds, wait_until

PIECE = 4 << 20
KILLS = 5
SESSION = {"configuration": {"httpMaximumConnectionsPerHost": 16, "sessionSendsLaunchEvents": False}}


@contextlib.contextmanager
def limited(scratch, name, tree, rate):
    os.environ["LIMIT_RATE"] = rate
    try:
        with Origin(scratch / name, tree) as origin:
            del os.environ["LIMIT_RATE"]
            yield origin
    finally:
        os.environ.pop("LIMIT_RATE", None)


def aria2(directory, urls):
    # Its -x counts by the name of the host, whatever the port.
    return measured([["aria2c", "--no-conf", "-q", "--no-proxy=*", "-x16", "-s16", "-k1M",
                      "--file-allocation=none", "-d", str(directory), "-o", "0", *urls]])


def service(directory, urls, kills=0, **more):
    with Service(directory / "service") as running:
        api = running.api()
        api("PUT", "/v1/sessions/bench", SESSION)
        task = {"kind": "download", "request": {"url": urls[0]}, "mirrors": urls[1:], "segments": 16, **more}
        used, began = -cpu_seconds(running.pid), time.monotonic()
        api("POST", "/v1/sessions/bench/tasks", task)
        read = lambda: running.api()("GET", "/v1/sessions/bench/tasks/1")
        for kill in range(kills):
            wait_until(lambda: read()["countOfBytesReceived"] > GIB * (kill + 1) / (kills + 1), 300, "enough for a kill")
            used += cpu_seconds(running.pid)
            running.process.send_signal(signal.SIGKILL)
            running.process.wait()
            running.start()
            used -= cpu_seconds(running.pid)
        ended = wait_until(lambda: read()["state"] == "completed", 600, "the service's download")
        task = read()
        if task["outcome"] != "succeeded":
            raise RuntimeError(f"it did not succeed: {task}")
        return ended - began, used + cpu_seconds(running.pid)


def pieces(path):
    with open(path, "rb") as file:
        values = [hashlib.sha256(piece).hexdigest() for piece in iter(lambda: file.read(PIECE), b"")]
    return {"length": PIECE, "algorithm": "sha-256", "values": values}


def compared(what, scratch, contestants, rounds):
    figures = {name: [] for name in contestants}
    for number in range(rounds):
        for name, play in contestants.items():
            here = scratch / f"{number}-{name.split()[0]}"
            here.mkdir()
            figures[name].append(play(here))
            shutil.rmtree(here)
            os.sync()
    for name, rows in figures.items():
        middle = sorted(rows)[len(rows) // 2]
        yield (f"(segments) {what}, {name}", f"{middle[0]:.2f} s",
               f"{middle[1]:.2f} s CPU; rounds " + ", ".join(f"{took:.2f}" for took, _ in rows))
    ours, theirs = figures.values()
    shares = sorted(mine[0] / other[0] for mine, other in zip(ours, theirs))
    yield (f"(segments) {what}, against aria2", f"{shares[len(shares) // 2]:.2f} × its time",
           "same round; rounds " + ", ".join(f"{share:.2f}" for share in shares))


def one(scratch, tree, rounds):
    with limited(scratch, "one", tree, "20m") as origin:
        url = f"{origin.url}/a"
        yield from compared("1 GiB, 16 × 20 MB/s", scratch, {
            "urlsessiond": lambda here: service(here, [url]), "aria2": lambda here: aria2(here, [url])}, rounds)
        here = scratch / "killed"
        here.mkdir()
        took, used = service(here, [url], kills=KILLS)
        yield f"(segments) the same, with {KILLS} SIGKILLs on the way", f"{took:.2f} s", f"{used:.2f} s CPU; once"
        shutil.rmtree(here)


def mirrors(scratch, tree, rounds):
    with contextlib.ExitStack() as stack:
        lying = scratch / "lying"
        lying.mkdir()
        shutil.copy(tree / "a", lying / "a")
        with open(lying / "a", "r+b") as file:
            file.seek(GIB // 2)
            byte = file.read(1)
            file.seek(GIB // 2)
            file.write(bytes([byte[0] ^ 1]))
        origins = [stack.enter_context(limited(scratch, f"m{n}", tree, "20m")) for n in range(4)]
        urls = [f"{origin.url}/a" for origin in origins]
        known = pieces(tree / "a")
        yield from compared("1 GiB, 4 mirrors × 80 MB/s", scratch, {
            "urlsessiond": lambda here: service(here, urls, pieces=known), "aria2": lambda here: aria2(here, urls)},
            rounds)
        liar = stack.enter_context(limited(scratch, "liar", lying, "20m"))
        here = scratch / "lie"
        here.mkdir()
        took, used = service(here, [*urls[:3], f"{liar.url}/a"], pieces=known)
        yield "(segments) the same, one of the mirrors wrong in one byte", f"{took:.2f} s", f"{used:.2f} s CPU; once"
        shutil.rmtree(here)


def run(scratch, rounds=5, only=("one", "mirrors")):
    """Yields (what, median, all rounds)."""
    tree = scratch / "tree"
    tree.mkdir()
    make(tree / "a", GIB)
    if "one" in only:
        yield from one(scratch, tree, rounds)
    if "mirrors" in only:
        yield from mirrors(scratch, tree, rounds)


if __name__ == "__main__":
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5, only=sys.argv[2:] or ("one", "mirrors")):
            print(" | ".join(row))
