"""(g) Many due launches: how fast they go out, and how long another app's writes take beside them.

The launches are copies of one, written into the database while the service is stopped.
"""

import sqlite3
import statistics
import time

from launch_latency import Peer, answer
from surroundings import Service, wait_until

CROWDS, APPS, SECONDS = (2_000, 100_000), 100, 10


def failed_launch(api):
    """Leaves one launch that waits for its second attempt."""
    api("PATCH", "/v1/app", {"webhook": {"url": "http://127.0.0.1:1/"}})
    api("PUT", "/v1/sessions/bench", {})
    api("POST", "/v1/sessions/bench/tasks", {"kind": "download", "request": {"url": "http://127.0.0.1:1/"}})
    api("POST", "/v1/sessions/bench/tasks/cancel", {})

    def attempted():
        items = api("GET", "/v1/launches")["items"]
        return items and items[0]["state"] == "pending" and items[0]["attempts"]

    wait_until(attempted, 60, "the first attempt")


def copy(path, count, url):
    """Makes `count` launches of `APPS` apps of the one there is."""
    db = sqlite3.connect(path)
    (app, due), = db.execute("SELECT app, due_at FROM launch")

    def clone(table, key, **changes):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
        values = ", ".join(changes.get(column, column) for column in columns)
        return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {key}"

    document = db.execute("SELECT webhook_document FROM app WHERE id = ?", (app,)).fetchone()[0]
    document = bytes(document).replace(b"http:\\/\\/127.0.0.1:1\\/", url.encode()).replace(b"http://127.0.0.1:1/", url.encode())
    for number in range(APPS):
        db.execute(clone("app", f"id = {app}", identifier=f"'crowd-{number}'", webhook_document="?"), (document,))
    apps = [row[0] for row in db.execute("SELECT id FROM app WHERE identifier LIKE 'crowd-%'")]
    statement = clone("launch", "id = ?3", public_id="?1", app="?2", session="NULL")
    template = db.execute("SELECT id FROM launch").fetchone()[0]
    db.executemany(statement, ((f"lnch_crowd{n}", apps[n % APPS], template) for n in range(count)))
    db.execute("UPDATE launch SET state = 'superseded', ended_at = created_at, due_at = NULL WHERE id = ?", (template,))
    if any(row[1] == "next_launch_at" for row in db.execute("PRAGMA table_info(app)")):
        db.execute("UPDATE app SET next_launch_at = (SELECT min(due_at) FROM launch WHERE app = app.id AND state = 'pending')")
    db.commit()
    db.close()
    return due


def run(scratch):
    for count in CROWDS:
        receiver = Peer(answer(b'{"completed": true}', "application/json"), "arrived")
        with Service(scratch / f"due-{count}") as service:
            failed_launch(service.api())
            service.stop()
            due = copy(scratch / f"due-{count}" / "urlsessiond.db", count, receiver.url)
            time.sleep(max(0, due / 1000 - time.time()))
            service.start()
            api, writes = service.api(), []
            receiver.moments.get(timeout=60)
            began, arrived = time.monotonic(), 1
            while time.monotonic() - began < SECONDS and arrived < count:
                before = time.monotonic()
                api("PUT", f"/v1/sessions/other-{len(writes)}", {})
                writes.append((time.monotonic() - before) * 1000)
                arrived = 1 + receiver.moments.qsize()
                time.sleep(0.005)
            took = time.monotonic() - began
        receiver.listener.close()
        writes.sort()
        yield (f"(g) launches sent with {count:,} due", f"{arrived / took:,.0f}/s", f"{APPS} apps, one receiver")
        yield (f"(g) another app's write beside {count:,} due", f"{statistics.median(writes):.1f} ms",
               f"median; worst {writes[-1]:.1f} ms")
