"""The invariants of the data folder of a stopped service: counters, events, contents and files."""
import contextlib
import hashlib
import os
import sqlite3

from storming.failure import Violation

# Each row that a statement returns is a fault. `Tests/StoreTests/Ledger.swift` checks the same counters.
FAULTS = {
    "a counter of a session": """
        SELECT s.identifier, c.name, c.kept, c.counted FROM session s JOIN (
            SELECT id, 'suspended' name, suspended kept,
                (SELECT count(*) FROM live WHERE session = s.id AND stage = 'suspended') counted FROM session s
            UNION ALL SELECT id, 'running', running,
                (SELECT count(*) FROM live WHERE session = s.id AND stage <> 'suspended') FROM session s
            UNION ALL SELECT id, 'succeeded', succeeded,
                (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'succeeded') FROM session s
            UNION ALL SELECT id, 'httpError', http_error,
                (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'httpError') FROM session s
            UNION ALL SELECT id, 'failed', failed,
                (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'failed') FROM session s
            UNION ALL SELECT id, 'cancelled', cancelled,
                (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'cancelled') FROM session s
            UNION ALL SELECT id, 'next task', next_task,
                (SELECT count(*) + 1 FROM task WHERE session = s.id) FROM session s
        ) c ON c.id = s.id WHERE s.forgotten = 0 AND c.kept <> c.counted""",
    "a counter of a lane": """
        SELECT l.id, l.queued FROM lane l WHERE queued <> (SELECT count(*) FROM live WHERE lane = l.id AND stage = 'queued')""",
    "the unfinished tasks of an app": """
        SELECT a.identifier, a.unfinished_tasks FROM app a
        WHERE unfinished_tasks <> (SELECT count(*) FROM live WHERE app = a.id)""",
    "the stored bytes of an app": """
        SELECT a.identifier, a.stored_bytes FROM app a WHERE stored_bytes <>
            (SELECT coalesce(sum(length), 0) FROM body WHERE app = a.id)
            + (SELECT coalesce(sum(length), 0) FROM resume_data WHERE app = a.id AND spent = 0)
            + (SELECT coalesce(sum(c.length), 0) FROM content c JOIN session s ON s.id = c.session
               WHERE s.app = a.id AND c.expired = 0)""",
    "a counter of an app's cache": """
        SELECT a.identifier, k.entries, k.shared_bytes FROM app a JOIN cache k ON k.app = a.id
        WHERE k.entries <> (SELECT count(*) FROM cached WHERE app = a.id) OR k.shared_bytes <>
            (SELECT coalesce(sum(length * (uses - 1)), 0) FROM (SELECT length, count(*) uses FROM (
                SELECT coalesce(file, object) place, length FROM content WHERE app = a.id
                UNION ALL SELECT coalesce(file, object), length FROM cached WHERE app = a.id)
             WHERE place IS NOT NULL GROUP BY place, length))""",
    "the uses of a body": """
        SELECT b.public_id, b.uses FROM body b WHERE uses <> (SELECT count(*) FROM live WHERE body = b.id)""",
    "a gap in the events of a session": """
        SELECT s.identifier, s.dropped_seq, s.last_seq FROM session s WHERE s.last_seq - s.dropped_seq <>
            (SELECT count(*) FROM event WHERE session = s.id AND seq > s.dropped_seq AND seq <= s.last_seq)""",
    "not one didComplete of a completed task": """
        SELECT t.id FROM task t JOIN session s ON s.id = t.session WHERE t.state = 'completed' AND s.dropped_seq = 0
            AND (SELECT count(*) FROM event WHERE task = t.id AND kind = 'task.didComplete') <> 1""",
    "more than one open launch of a session": """
        SELECT session, count(*) FROM launch WHERE session IS NOT NULL
            AND state IN ('pending', 'delivering', 'launched', 'parked') GROUP BY session HAVING count(*) > 1""",
    "a row of a task that has ended": """
        SELECT 'live', task FROM live WHERE task IN (SELECT id FROM task WHERE state = 'completed')
        UNION ALL SELECT 'bucket_upload', task FROM bucket_upload
        UNION ALL SELECT 'held_connection', session FROM held_connection
        UNION ALL SELECT 'flight', id FROM flight
        UNION ALL SELECT 'useless_file', path FROM useless_file""",
}
AREAS = ("partial", "contents", "bodies")
# The names that a stopped service may leave in its data folder.
KNOWN = {"urlsessiond.db", "master.key", "admin.key", "lock", "reserve", *AREAS}
RESERVE = 8 << 20


def connect(path, immutable=False):
    """A connection that reads. SQLite makes no files for it if the database is immutable: nothing has it open."""
    return contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro{'&immutable=1' if immutable else ''}", uri=True, timeout=10))


def files(data):
    """The files of contents and bodies, and partial files, by their paths in the data folder."""
    return {os.path.relpath(os.path.join(folder, name), data)
            for area in AREAS for folder, _, names in os.walk(data / area) for name in names}


def needed(database):
    """The files that rows refer to."""
    found = {row[0] for row in database.execute(
        "SELECT file FROM content WHERE file IS NOT NULL UNION SELECT file FROM body WHERE file IS NOT NULL "
        "UNION SELECT file FROM cached WHERE file IS NOT NULL UNION SELECT file FROM resume_data")}
    return found | {f"partial/{row[0]}" for row in database.execute("SELECT task FROM live")}


def strays(data):
    """The files that belong to no row, files that a row names for removal, and an incomplete reserve, which the service
    completes within seconds of its start. The service may run."""
    before = files(data)
    reserve = set() if _has_whole_reserve(data) else {"reserve"}
    with connect(data / "urlsessiond.db") as database:
        noted = {row[0] for row in database.execute("SELECT path FROM useless_file")}
        return sorted((before - needed(database)) & files(data) | noted | reserve)


def _has_whole_reserve(data):
    """Whether the reserve is complete, or was not begun."""
    try:
        return os.stat(data / "reserve").st_size == RESERVE
    except FileNotFoundError:
        return True


def check(data, roots=()):
    """After the end of the service. `roots` are the folders of destinations."""
    for root in roots:
        if copies := sorted(str(path) for path in root.rglob(".urlsessiond-*")):
            raise Violation("Copies that were not finished are left at a destination.", documents=copies)
    if left := sorted(set(os.listdir(data)) - KNOWN):
        raise Violation(f"Files are left in the data folder: {', '.join(left)}.")
    with connect(data / "urlsessiond.db", immutable=True) as database:
        if (finding := database.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise Violation(f"The database is damaged: {finding}.")
        for what, statement in FAULTS.items():
            if rows := database.execute(statement).fetchall():
                raise Violation(f"There is {what}.", documents=[str(row) for row in rows[:10]])
        _check_contents(data, database)
    if not _has_whole_reserve(data):
        raise Violation("The reserve is incomplete.")


def _check_contents(data, database):
    """The bytes of each content and body have the length and the digest of its row."""
    for name, length, digest, stored, file in database.execute(
            "SELECT 'content ' || task, length, digest, bytes, file FROM content WHERE expired = 0 AND object IS NULL "
            "UNION ALL SELECT public_id, length, digest, bytes, file FROM body WHERE complete = 1"):
        if file is not None:
            stored = (data / file).read_bytes() if (data / file).exists() else None
        if stored is None and not name.startswith("content"):
            raise Violation(f"The body {name} has no bytes.")
        if stored is not None and (len(stored), hashlib.sha256(stored).hexdigest()) != (length, digest):
            raise Violation(f"The bytes of {name} are not those of its row.", documents=[f"{len(stored)} of {length}", digest])
