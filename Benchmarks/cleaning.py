"""(cleaning) 1,000 sessions a minute created, drained and deleted: what is left must not grow. MINUTES (10)."""

import os
import sqlite3
import threading
import time

from surroundings import Origin, Service

A_MINUTE, CLIENTS = 1000, 8
MINUTES = int(os.environ.get("MINUTES", 10))
SIZES = {"small": 4096, "large": 100_000}
TABLES = ["session", "task", "live", "event", "content", "acknowledgement", "lane", "incarnation", "launch",
          "discarded_file"]


def one_session(api, identifier, origin):
    session = f"/v1/sessions/{identifier}"
    api("PUT", session, {"configuration": {"sessionSendsLaunchEvents": False}})
    api("POST", f"{session}/tasks/batch",
        {"tasks": [{"kind": "download", "request": {"url": f"{origin.url}/{name}"}} for name in SIZES]})
    while not (page := api("GET", f"{session}/events?after=0&wait=30"))["finished"] or page["lastSeq"] == 0:
        api("GET", f"{session}/tasks/{len(SIZES)}?wait=30")
    for number in range(1, len(SIZES) + 1):
        api("GET", f"{session}/tasks/{number}/content", raw=True)
    api("POST", f"{session}/events/ack", {"through": page["lastSeq"]})
    api("DELETE", session)


def client(service, origin, index, until, failures):
    """Its share of the sessions of each minute, at an even pace; identifiers come again every minute."""
    api = service.api()
    share = A_MINUTE // CLIENTS
    due = time.monotonic()
    number = 0
    try:
        while due < until:
            time.sleep(max(0, due - time.monotonic()))
            one_session(api, f"job-{index}-{number % share}", origin)
            number += 1
            due += 60 / share
    except Exception as problem:
        failures.append(problem)


def sample(reader, data):
    rows = {table: reader.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    files = sum(1 for name in ("contents", "bodies", "partial") for path in (data / name).rglob("*") if path.is_file())
    return (data / "urlsessiond.db").stat().st_size / 2**20, files, rows


def run(scratch):
    (scratch / "tree").mkdir()
    for name, size in SIZES.items():
        (scratch / "tree" / name).write_bytes(b"x" * size)
    data = scratch / "cleaning"
    with Origin(scratch / "nginx", scratch / "tree") as origin, Service(data) as service:
        failures = []
        began = time.monotonic()
        clients = [threading.Thread(target=client, args=(service, origin, index, began + MINUTES * 60, failures))
                   for index in range(CLIENTS)]
        for thread in clients:
            thread.start()
        reader = sqlite3.connect(f"file:{data / 'urlsessiond.db'}?mode=ro", uri=True)
        for minute in range(1, MINUTES + 1):
            time.sleep(max(0, began + minute * 60 - time.monotonic()))
            if failures:
                raise failures[0]
            size, files, rows = sample(reader, data)
            yield (f"(cleaning) minute {minute}", f"{size:.1f} MiB, {files} files, {sum(rows.values()):,} rows",
                   ", ".join(f"{name} {count:,}" for name, count in rows.items() if count))
        for thread in clients:
            thread.join()
        time.sleep(10)
        size, files, rows = sample(reader, data)
        yield ("(cleaning) ten seconds later", f"{size:.1f} MiB, {files} files, {sum(rows.values()):,} rows",
               ", ".join(f"{name} {count:,}" for name, count in rows.items() if count))
        reader.close()
