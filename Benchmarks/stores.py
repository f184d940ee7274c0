"""(stores) 10,000 small downloads with the state in SQLite, and on a PostgreSQL server, in one session and in eight.

The server's files are in the scratch folder too, with fsync as it comes. What the server needs of the processors is told
apart from what the service does; both share the machine with the origin.
"""

import subprocess
import time

from small_files import PARALLEL, make_tree
from surroundings import Origin, PostgreSQL, Service, cpu_seconds, wait_until

COUNT = 10_000


def play(here, origin, sessions, store):
    """Seconds, processor seconds of the service, seconds until all were created, commits, round trips of each."""
    limits = ("--max-transfers-per-host", str(PARALLEL), "--max-transfers", "256")
    with Service(here / "service", *limits, *store) as running:
        api = running.api()
        names = [f"bench{n}" for n in range(sessions)]
        for name in names:
            api("PUT", f"/v1/sessions/{name}", {"configuration": {
                "httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}})
        share = COUNT // sessions
        counters = ("urlsessiond_commit_duration_seconds_count", "urlsessiond_commit_round_trips_total")
        before, counted = cpu_seconds(running.pid), [running.metric(name) for name in counters]
        began = time.monotonic()
        for number, name in enumerate(names):
            api("POST", f"/v1/sessions/{name}/tasks/batch?return=minimal", {"tasks": [
                {"kind": "download", "request": {"url": f"{origin.url}/{n:05}.bin"}}
                for n in range(number * share, (number + 1) * share)]})
        created = time.monotonic() - began
        completed = lambda: all(
            api("GET", f"/v1/sessions/{name}")["taskCounts"]["completed"] >= share for name in names)
        took = wait_until(completed, 600, "the downloads") - began
        used = cpu_seconds(running.pid) - before
        commits, trips = (running.metric(name) - earlier for name, earlier in zip(counters, counted))
        for name in names:
            counts = api("GET", f"/v1/sessions/{name}")["taskCounts"]
            if counts["succeeded"] != share:
                raise RuntimeError(f"not all succeeded: {counts}")
        return took, used, created, commits, trips / commits


def run(scratch, rounds=5):
    """Yields (what, median, all rounds)."""
    tree = scratch / "tree"
    make_tree(tree, COUNT)
    figures = {}
    with Origin(scratch / "origin", tree) as origin, PostgreSQL(scratch / "postgresql") as server:
        for number in range(rounds):
            for sessions in (1, 8):
                for engine in ("SQLite", "PostgreSQL"):
                    here = scratch / f"round-{number}-{sessions}-{engine}"
                    here.mkdir()
                    store = () if engine == "SQLite" else ("--store", server.database())
                    figures.setdefault((engine, sessions), []).append(play(here, origin, sessions, store))
                    subprocess.run(["rm", "-rf", str(here)])
    for (engine, sessions), rows in figures.items():
        took, used, created, commits, trips = sorted(rows)[len(rows) // 2]
        yield (f"(stores) {COUNT:,} × 10 KiB, {engine}, {sessions} session{'s' if sessions > 1 else ''}",
               f"{took:.2f} s ({COUNT / took:,.0f}/s)",
               f"{used / COUNT * 1e6:.0f} µs CPU a task; {commits:.0f} commits of {trips:.1f} round trips; created in {created:.2f} s; rounds "
               + ", ".join(f"{row[0]:.2f}" for row in rows))
    for sessions in (1, 8):
        shares = sorted(p[1] / s[1] for p, s in zip(figures["PostgreSQL", sessions], figures["SQLite", sessions]))
        yield (f"(stores) PostgreSQL against SQLite, {sessions} session{'s' if sessions > 1 else ''}",
               f"{shares[len(shares) // 2]:.2f} × its processor time in the service",
               "rounds " + ", ".join(f"{share:.2f}" for share in shares))


if __name__ == "__main__":
    import os
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 5):
            print(" | ".join(row))
