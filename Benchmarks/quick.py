#!/usr/bin/env python3
"""Figures of this build as multiples of its peers' in the same minute, held against the recorded ones of floor.json.

    Benchmarks/quick.py            # ends with 1 when one is above its floor
    Benchmarks/quick.py --record   # writes what was measured, and a quarter more for noise, as the floor

Ratios, since the speed of machines differs and that of one machine varies. Each is the median of three rounds, in which
the contestants take turns.
"""

import json
import pathlib
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import large_files
import one_batch
import small_files
from request_rate import CREATE, measured
from surroundings import ROOT, Origin, Scratch, Service, commit, machine

FLOOR = pathlib.Path(__file__).with_name("floor.json")
ROUNDS, MARGIN = 3, 1.25
LARGE = 512 << 20


def medians(ours, theirs):
    """The medians over the rounds of wall and processor time, as shares of a peer's."""
    shares = [[mine / max(other, 0.001) for mine, other in zip(a, b)] for a, b in zip(ours, theirs)]
    return [sorted(column)[len(column) // 2] for column in zip(*shares)]


def small(scratch):
    tree, count = scratch / "small", small_files.COUNT
    small_files.make_tree(tree, count)
    with Origin(scratch / "origin", tree) as origin:
        figures = large_files.rounds(ROUNDS, {name: lambda here, play=play: play(here, origin, count)
                                              for name, play in small_files.CONTESTANTS.items()}, scratch)
    ours, aria2, curl = figures.values()
    wall, processor = medians(ours, aria2)
    yield "10,000 downloads of 10 KiB: time of aria2", wall
    yield "10,000 downloads of 10 KiB: processor time of aria2", processor
    yield "10,000 downloads of 10 KiB: time of curl -Z", medians(ours, curl)[0]


def large(scratch):
    tree = scratch / "large"
    tree.mkdir()
    large_files.make(tree / "file", LARGE)
    (ROOT / ".build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".build") as disk, Origin(scratch / "origin", tree) as origin:
        ours, curl = large_files.rounds(ROUNDS, {
            "urlsessiond": lambda here: large_files.service(here, [f"{origin.url}/file"]),
            "curl": lambda here: large_files.curl(here, [f"{origin.url}/file"])}, disk).values()
    wall, processor = medians(ours, curl)
    yield "a download of 512 MiB: time of curl", wall
    yield "a download of 512 MiB: processor time of curl", processor


def rows_in_sqlite(directory):
    """As many rows as a batch has, one after the other in one durable transaction."""
    began = time.monotonic()
    with sqlite3.connect(directory / "rows.db") as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, session INTEGER, number INTEGER, document TEXT)")
        for n in range(one_batch.COUNT):
            connection.execute("INSERT INTO task VALUES (?, 1, ?, ?)", (n, n, "x" * 400))
    return time.monotonic() - began, 0


def batch(scratch):
    ours = [(took, 0) for took in one_batch.measure(scratch)[:ROUNDS]]
    rows = large_files.rounds(ROUNDS, {"rows": rows_in_sqlite}, scratch)["rows"]
    yield "a batch of 10,000 tasks: time of 10,000 bare rows", medians(ours, rows)[0]


def requests(scratch):
    tree, script = scratch / "page", scratch / "create.lua"
    tree.mkdir()
    (tree / "file").write_bytes(b"x" * 1024)
    script.write_text(CREATE)
    with Origin(scratch / "origin", tree) as origin, Service(scratch / "requests") as service:
        api, url = service.api(), f"http://127.0.0.1:{service.port}/v1/sessions/bench"
        api("PUT", "/v1/sessions/bench", {})
        api("POST", "/v1/sessions/bench/tasks", {
            "kind": "download", "state": "suspended", "request": {"url": f"{origin.url}/file"}})
        for what, ours in (("GET of a session", (url,)), ("GET of a task", (f"{url}/tasks/1",)),
                           ("POST of a task", (f"{url}/tasks", script))):
            shares = sorted(measured(f"{origin.url}/file", seconds=2)[0] / measured(*ours, seconds=3)[0]
                            for _ in range(ROUNDS))
            yield f"{what}: time of nginx for a file of 1 KiB", shares[ROUNDS // 2]


def main(records):
    floor = json.loads(FLOOR.read_text()) if FLOOR.exists() else {}
    print(f"{machine()}\n{commit()}, {time.strftime('%Y-%m-%d')}\n\n| figure | × | floor |\n| --- | --- | --- |", flush=True)
    found, slow = {}, []
    for part in (small, large, batch, requests):
        with Scratch() as scratch:
            for what, share in part(scratch):
                found[what] = round(share * MARGIN, 2)
                print(f"| {what} | {share:.2f} | {floor.get(what, '')} |", flush=True)
                if what not in floor or share > floor[what]:
                    slow.append(what)
    if records:
        FLOOR.write_text(json.dumps(found, indent=4) + "\n")
        return 0
    for what in slow:
        print(f"Slower than its floor: {what}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main("--record" in sys.argv[1:]))
