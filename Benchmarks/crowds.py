"""(crowds) How long another app's write waits at most while one app's crowds start, launch, finish and are deleted."""

import contextlib
import http.server
import multiprocessing
import socketserver
import sqlite3
import threading
import time

from surroundings import Origin, Service, wait_until

SESSIONS, EVENTS, LANES, CONTENTS, TASKS = 100_000, 1_000_000, 50_000, 40_000, 10_000


class Probe:
    """Another app that writes every 5 ms, in a process of its own: no other part of the benchmark holds it up."""

    def __init__(self, api):
        self.api = api
        self.longest = multiprocessing.Value("d", 0.0)
        self.process = multiprocessing.Process(target=self._run, daemon=True)

    def __enter__(self):
        self.api("PUT", "/v1/sessions/probe", {})
        self.process.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()

    def _run(self):
        number = 0
        self.api.connection.close()
        while True:
            time.sleep(0.005)
            number += 1
            began = time.monotonic()
            self.api("PATCH", "/v1/sessions/probe", {"sessionDescription": str(number)})
            took = time.monotonic() - began
            with self.longest.get_lock():
                self.longest.value = max(self.longest.value, took)

    def stall(self):
        """The longest write since the last look."""
        if not self.process.is_alive():
            raise ChildProcessError("the probe's writes have failed")
        with self.longest.get_lock():
            longest, self.longest.value = self.longest.value, 0.0
        return f"longest stall {longest * 1000:.0f} ms"


class Receiver:
    """Takes webhooks and completes each at once."""

    def __enter__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                body = b'{"completed": true, "through": 0}'
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                 % (len(body), body))
                receiver.count += 1

            def log_message(self, *_):
                pass

        receiver = self
        self.count = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Gate:
    """An origin that responds to no request until it is opened."""

    def __enter__(self):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while self.rfile.readline().strip():
                    pass
                gate.opened.wait()
                with contextlib.suppress(OSError):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, request_queue_size = True, 128

        gate = self
        self.opened = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.opened.set()
        self.server.shutdown()
        self.server.server_close()


def multiply(db, table, where, count, **changed):
    """Inserts `count` copies of a row, the n-th with some columns changed by expressions over n."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    values = [changed.get(column, f'"{column}"') for column in columns]
    db.execute(
        f"""WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {count})
        INSERT INTO {table} SELECT {", ".join(values)} FROM (SELECT * FROM {table} WHERE {where}), number""")


def one(db, sql):
    return db.execute(sql).fetchone()[0]


def load(path):
    """What would take the API very long: straight into the stopped service's database, as copies of what it made."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN")
    sessions, tasks = one(db, "SELECT max(id) FROM session"), one(db, "SELECT max(id) FROM task")
    done = one(db, "SELECT id FROM session WHERE identifier = 'done'")
    task = one(db, f"SELECT id FROM task WHERE session = {done}")
    multiply(db, "session", f"id = {done}", SESSIONS, id=f"{sessions} + n", identifier="'done-' || n", open_launch="NULL")
    multiply(db, "incarnation", "identifier = 'done'", SESSIONS, identifier="'done-' || n")
    multiply(db, "task", f"id = {task}", SESSIONS, id=f"{tasks} + n", session=f"{sessions} + n")
    multiply(db, "event", f"session = {done}", SESSIONS, session=f"{sessions} + n", task=f"{tasks} + n")
    tasks += SESSIONS
    big = one(db, "SELECT id FROM session WHERE identifier = 'big'")
    task = one(db, f"SELECT id FROM task WHERE session = {big}")
    more = EVENTS // 2 - 1
    multiply(db, "task", f"id = {task}", more, id=f"{tasks} + n", number="n + 1", completed_seq="2 * n + 2")
    multiply(db, "event", f"session = {big}", more, seq="seq + 2 * n", task=f"{tasks} + n")
    db.execute(f"""UPDATE session SET next_task = {more} + 2, last_seq = {EVENTS}, last_completion_seq = {EVENTS},
        cancelled = {more} + 1 WHERE id = {big}""")
    tasks += more
    kept = one(db, "SELECT id FROM session WHERE identifier = 'contents'")
    task = one(db, f"SELECT id FROM task WHERE session = {kept}")
    more = CONTENTS - 1
    multiply(db, "task", f"id = {task}", more, id=f"{tasks} + n", number="n + 1", completed_seq="3 * n + 3")
    multiply(db, "event", f"session = {kept}", more, seq="seq + 3 * n", task=f"{tasks} + n")
    multiply(db, "content", f"task = {task}", more, task=f"{tasks} + n", seq="3 * n + 3")
    db.execute(f"""UPDATE session SET next_task = {CONTENTS} + 1, last_seq = 3 * {CONTENTS},
        last_completion_seq = 3 * {CONTENTS}, succeeded = {CONTENTS} WHERE id = {kept}""")
    db.execute(f"UPDATE app SET stored_bytes = (SELECT sum(length) FROM content) WHERE identifier = 'crowd'")
    db.execute("COMMIT")
    db.close()


def templates(crowd, origin):
    """A session of each kind, made by the service itself."""
    for identifier in ("done", "big"):
        crowd("PUT", f"/v1/sessions/{identifier}", {})
        crowd("POST", f"/v1/sessions/{identifier}/tasks",
              {"kind": "download", "state": "suspended", "request": {"url": "http://127.0.0.1:9/"}})
        crowd("POST", f"/v1/sessions/{identifier}/tasks/1/cancel")
    crowd("PUT", "/v1/sessions/contents", {"configuration": {"sessionSendsLaunchEvents": False}})
    crowd("POST", "/v1/sessions/contents/tasks", {"kind": "download", "request": {"url": f"{origin.url}/x"}})
    crowd("GET", "/v1/sessions/contents/tasks/1?wait=30")


def run(scratch):
    (scratch / "tree").mkdir()
    (scratch / "tree" / "x").write_bytes(b"x" * 4096)
    data = scratch / "crowds"
    database = data / "urlsessiond.db"
    with Origin(scratch / "nginx", scratch / "tree") as origin, Receiver() as receiver, Gate() as gate, \
            Service(data, "--content-retention", "0s") as service:
        admin = service.api(key="dev-admin")
        crowd_key, other_key = (admin("POST", "/v1/apps", {"identifier": name})["apiKey"] for name in ("crowd", "other"))
        templates(service.api(key=crowd_key), origin)
        with Probe(service.api(key=other_key)) as probe:
            time.sleep(5)
            yield ("(crowds) nothing", probe.stall(), "a write of another app every 5 ms, for 5 s")
        service.stop()
        began = time.monotonic()
        load(database)
        loaded = time.monotonic() - began

        ready = service.start()
        yield (f"(crowds) start with {SESSIONS:,} unacknowledged sessions", f"ready after {ready * 1000:.0f} ms",
               f"loaded by SQL in {loaded:.0f} s, {database.stat().st_size / 2**20:,.0f} MiB")
        crowd = service.api(key=crowd_key)
        reader = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        with Probe(service.api(key=other_key)) as probe:
            began = time.monotonic()
            wait_until(lambda: time.sleep(0.2) or one(reader, "SELECT count(*) FROM launch") >= SESSIONS, 300, "launches")
            yield (f"(crowds) {SESSIONS:,} launches written after the start", probe.stall(),
                   f"{time.monotonic() - began:.1f} s, 5 of them grace")
            yield released(crowd, reader, receiver, probe)
            yield parked(crowd, reader, probe)
            for identifier, what, last in (("contents", f"{CONTENTS:,} contents of 4 KiB", 3 * CONTENTS),
                                           ("big", f"{EVENTS:,} events", EVENTS)):
                yield acknowledged(crowd, reader, probe, identifier, what, last)
            yield timed_out(crowd, gate, probe)
            yield cancelled(crowd, gate, probe)
            yield from lanes(service, crowd, other_key, gate, origin, probe)
            began = time.monotonic()
            crowd("DELETE", "/v1/sessions/big")
            took = time.monotonic() - began
            began = time.monotonic()
            service.api(key="dev-admin")("DELETE", "/v1/apps/crowd")
            took = f"DELETE of the session {took * 1000:.1f} ms, of the app {(time.monotonic() - began) * 1000:.1f} ms"
            yield ("(crowds) deletion as its caller sees it", probe.stall(), took)
            began = time.monotonic()
            wait_until(lambda: time.sleep(0.5) or not one(reader, "SELECT count(*) FROM deleted_app"), 1800, "deletion")
            emptied = time.monotonic() - began
            stall = probe.stall()
            wait_until(lambda: time.sleep(0.5) or database.stat().st_size < 64 << 20, 600, "a smaller file")
            yield ("(crowds) all of it removed", stall,
                   f"{emptied:.0f} s; the file has {database.stat().st_size / 2**20:.0f} MiB after "
                   f"{time.monotonic() - began:.0f} s, {probe.stall()} meanwhile")
        reader.close()


def settled(reader):
    """Waits until no app's launches are being parked or released; seconds since the call."""
    began = time.monotonic()
    sql = "SELECT count(*) FROM app WHERE settled_launch IS NOT NULL"
    return wait_until(lambda: time.sleep(0.1) or not one(reader, sql), 300, "launches in line") - began


def released(crowd, reader, receiver, probe):
    began = time.monotonic()
    crowd("PATCH", "/v1/app", {"webhook": {"url": receiver.url}})
    took, all_took = time.monotonic() - began, settled(reader)
    parked = one(reader, "SELECT count(*) FROM launch WHERE state = 'parked'")
    time.sleep(5)
    return (f"(crowds) {SESSIONS:,} launches released", probe.stall(),
            f"the PATCH took {took * 1000:.1f} ms, all of them {all_took:.1f} s ({parked} left); "
            f"{receiver.count} sent meanwhile and in 5 s, as they are due")


def parked(crowd, reader, probe):
    began = time.monotonic()
    crowd("PATCH", "/v1/app", {"webhook": {"state": "paused"}})
    took, all_took = time.monotonic() - began, settled(reader)
    pending = one(reader, "SELECT count(*) FROM launch WHERE state = 'pending'")
    return (f"(crowds) {SESSIONS:,} launches parked", probe.stall(),
            f"the PATCH took {took * 1000:.1f} ms, all of them {all_took:.1f} s ({pending} left)")


def acknowledged(crowd, reader, probe, identifier, what, last):
    began = time.monotonic()
    crowd("POST", f"/v1/sessions/{identifier}/events/ack", {"through": last})
    took = time.monotonic() - began
    began = time.monotonic()
    sql = f"""SELECT count(*) FROM (SELECT 1 FROM content WHERE expired = 0 AND session =
        (SELECT id FROM session WHERE identifier = '{identifier}') LIMIT 1)"""
    wait_until(lambda: time.sleep(0.2) or not one(reader, sql), 600, "contents to expire")
    return (f"(crowds) one acknowledgement of {what}", probe.stall(),
            f"it took {took * 1000:.1f} ms; contents gone after {time.monotonic() - began:.1f} s")


def fill(crowd, session, gate, **configuration):
    """A session with many tasks, made some at a time; when it was begun."""
    crowd("PUT", f"/v1/sessions/{session}", {"configuration": {"sessionSendsLaunchEvents": False, **configuration}})
    began = time.monotonic()
    for _ in range(0, TASKS, 1000):
        task = {"kind": "download", "request": {"url": gate.url}}
        crowd("POST", f"/v1/sessions/{session}/tasks/batch", {"tasks": [task] * min(1000, TASKS)})
    return began


def timed_out(crowd, gate, probe):
    began = fill(crowd, "late", gate, timeoutIntervalForResource=15)
    time.sleep(max(0, began + 14 - time.monotonic()))
    probe.stall()
    wait_until(lambda: time.sleep(0.2) or crowd("GET", "/v1/sessions/late")["taskCounts"]["running"] == 0, 120, "ends")
    return (f"(crowds) {TASKS:,} tasks of a session that time out at once", probe.stall(),
            f"all ended {time.monotonic() - began - 15:.1f} s after the first was due")


def cancelled(crowd, gate, probe):
    fill(crowd, "unwanted", gate)
    probe.stall()
    began = time.monotonic()
    crowd("POST", "/v1/sessions/unwanted/tasks/cancel")
    return f"(crowds) {TASKS:,} tasks cancelled", probe.stall(), f"it took {time.monotonic() - began:.2f} s"


def lanes(service, crowd, other_key, gate, origin, probe):
    """Many sessions with a task each for one host, and one task of another app for another."""
    for number in range(LANES):
        crowd("PUT", f"/v1/sessions/lane-{number}", {"configuration": {"sessionSendsLaunchEvents": False}})
        crowd("POST", f"/v1/sessions/lane-{number}/tasks", {"kind": "download", "request": {"url": gate.url}})
    yield (f"(crowds) {LANES:,} lanes behind one host made", probe.stall(), "one session and task each, by the API")
    gate.opened.set()
    began = time.monotonic()
    other = service.api(key=other_key)
    other("PUT", "/v1/sessions/one", {"configuration": {"sessionSendsLaunchEvents": False}})
    other("POST", "/v1/sessions/one/tasks",
          {"kind": "download", "request": {"url": f"{origin.url}/x"}})
    other("GET", "/v1/sessions/one/tasks/1?wait=60")
    waited = time.monotonic() - began
    time.sleep(10)
    yield (f"(crowds) {LANES:,} lanes behind one host under way", probe.stall(),
           f"another app's task for another host took {waited * 1000:.0f} ms")
