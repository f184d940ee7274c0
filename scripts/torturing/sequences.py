"""The sequences: their preparation, and the operations whose calls count."""
import hashlib
import os
import subprocess
import time

from storming import checks
from storming.failure import Violation

from . import ledger
from .shim import Call

ROW, FILE, LARGE = 10_000, 300_000, 2_500_000
# The seconds after a start in which no launch is created: the grace period of clients.
GRACE = 5.3
DONE_WITHIN = 30


class Sequence:
    """A sequence begins with a running service whose calls do not count yet."""

    # Whether the calls of the service's end count as well.
    counts_end = False
    # The retention of contents after their acknowledgement.
    retention = "1h"

    def begin(self, bench, armed):
        """Starts the service. `armed` is the call and the fault."""
        bench.service.reset(bench.snapshot)
        bench.service.start(has_shim=True)
        bench.service.await_rest()

    def prepare(self, story):
        raise NotImplementedError

    def act(self, story):
        raise NotImplementedError

    def check(self, story):
        """Checks the guarantees of this sequence alone."""

    def check_stopped(self, bench):
        """Checks the files of this sequence after the end of the service."""


class Create(Sequence):
    """Sessions and tasks, one by one, in a batch and as lines; a change, a credential, a deletion."""

    def prepare(self, story):
        pass

    def act(self, story):
        story.open_session()
        story.create("one", ROW, state="suspended", metadata={"a": "b"})
        tasks = [story.plan(f"batch-{number}", ROW, state="suspended") for number in range(3)]
        answer = story.client.call("POST", f"{story.session.path}/tasks/batch", {"tasks": [task.creation for task in tasks]}).json
        for task, item in zip(tasks, answer["items"], strict=True):
            story.adopt(task, item)
        changed = story.client.call("PATCH", story.tasks[1].path, {"priority": 0.75}).json
        story.tasks[1].expected["priority"] = changed["priority"]
        self.credential = story.client.call("POST", "/v1/credentials", {
            "protectionSpace": {"host": "127.0.0.1", "port": story.bench.origin.port, "protocol": "http", "realm": "r",
                                "authenticationMethod": "HTTPBasic"},
            "credential": {"user": "u", "password": "p"}}).json

    def check(self, story):
        stored = story.client.call("GET", "/v1/credentials").json["items"]
        if stored != [self.credential]:
            raise Violation("Accepted is kept: one credential was stored.", documents=[str(stored), str(self.credential)])


class Settle(Sequence):
    """Downloads of each size, and one that ends with a page of an error."""

    def prepare(self, story):
        story.open_session()
        for name, length in [("row", ROW), ("file", FILE), ("large", LARGE)]:
            story.create(name, length, state="suspended")
        story.create("missing", ROW, state="suspended", final=404)

    def act(self, story):
        story.resume()
        story.await_end()


class Publish(Sequence):
    """Downloads to destinations: into a new folder, over a file, from a row, and onto another filesystem."""

    def prepare(self, story):
        bench = story.bench
        story.open_session()
        bench.put_file("files", "old.bin", b"old")
        bench.put_file("other", "old.bin", b"old")
        for name, length, root, path in [("new", FILE, "files", "a/b/new.bin"), ("over", FILE, "files", "old.bin"),
                                         ("row", ROW, "files", "row.bin"), ("there", LARGE, "other", "new/there.bin"),
                                         ("over-there", FILE, "other", "old.bin")]:
            story.create(name, length, state="suspended",
                         destination={"root": root, "path": path, "replace": path == "old.bin"})

    def act(self, story):
        story.resume()
        story.await_end()


class Resume(Sequence):
    """Downloads that break off: resumed, resumed from resume data, and in segments with a piece that is wrong."""

    def prepare(self, story):
        story.open_session()
        story.create("broken", LARGE, state="suspended", script=[("reset_download", 0.7)])
        story.create("held", LARGE, script=[("reset_download", 0.6), ("slow_upload", 60)])
        pieces = [hashlib.sha256(piece).hexdigest()
                  for piece in story.plan("segments", LARGE).resource.content().pieces(size=1 << 19)]
        story.create("segments", LARGE, state="suspended", segments=2, script=[("flip", 0.3)],
                     pieces={"length": 1 << 19, "algorithm": "sha-256", "values": pieces})
        self._await_bytes(story, 2)

    @staticmethod
    def _await_bytes(story, number):
        deadline = time.monotonic() + DONE_WITHIN
        while not story.client.call("GET", story.tasks[number].path).json["countOfBytesReceived"]:
            if time.monotonic() > deadline:
                raise Violation("The download has no bytes.")
            time.sleep(0.05)

    def act(self, story):
        held = story.tasks[2]
        held.cancel = "asked"
        answer = story.client.call("POST", f"{held.path}/cancel", {"byProducingResumeData": True}, allowed=("task-completed",))
        if answer.status < 400:
            held.cancel = "confirmed"
        if data := answer.json.get("resumeData"):
            task = story.plan("held", LARGE)
            task.creation = {"kind": "download", "resumeData": data, "clientTaskId": "again"}
            held.resource.script.clear()
            task.resource = held.resource
            story.bench.registry.add(held.resource)
            story.adopt(task, story.client.call("POST", f"{story.session.path}/tasks", task.creation).json)
        story.resume()
        story.await_end()


class Upload(Sequence):
    """Uploads of bodies: stored whole and in parts, a file below a root, text, and the content of a download."""

    def prepare(self, story):
        story.open_session()
        story.create("source", FILE)
        story.await_end()

    def act(self, story):
        for name, length, parts in [("row", ROW, 1), ("file", FILE, 1), ("large", LARGE, 1), ("draft", FILE, 2)]:
            identifier, body = story.store_body(name, length, parts)
            story.create(name, kind="upload", sent=body, body={"id": identifier})
        story.bench.put_file("files", "body.bin", story.tasks[1].resource.content().all())
        content = story.tasks[1].resource.content()
        story.create("root", kind="upload", sent=content, body={"root": "files", "path": "body.bin"})
        story.create("relay", kind="upload", sent=content, body={"task": 1})
        story.await_end()


class Claim(Sequence):
    """Contents are read, whole and in part, and claimed, one by one and together."""

    def prepare(self, story):
        story.open_session()
        for name, length in [("row", ROW), ("file", FILE), ("large", LARGE), ("kept", FILE)]:
            story.create(name, length)
        story.await_end()

    def act(self, story):
        for task in story.tasks.values():
            checks.read_content(story.client, task)
        story.claim(story.tasks[1])
        story.claim(story.tasks[2])
        story.client.call("POST", f"{story.session.path}/tasks/claim", {"taskIdentifiers": [3]})
        story.tasks[3].claimed = True
        await_files(story.bench, 1)


class Acknowledge(Sequence):
    """Events are read and acknowledged; the retention of their contents ends."""

    retention = "1s"

    def prepare(self, story):
        story.open_session()
        for name, length in [("row", ROW), ("file", FILE)]:
            story.create(name, length)
        story.await_end()

    def act(self, story):
        checks.read_events(story.client, story.session)
        story.acknowledge()
        await_files(story.bench, 0)
        for task in story.tasks.values():
            task.claimed = True


class Launch(Sequence):
    """The last task ends while no client is attached: a webhook is delivered, and its launch completed."""

    def prepare(self, story):
        story.open_session(sessionSendsLaunchEvents=True)
        story.create("row", ROW, state="suspended")
        time.sleep(max(0, story.bench.started + GRACE - time.monotonic()))

    def act(self, story):
        story.resume()
        story.await_end()
        deadline = time.monotonic() + DONE_WITHIN
        while not story.session.launches():
            story.bench.check_running()
            story.bench.service.check_alive()
            if time.monotonic() > deadline:
                raise Violation(f"No launch was delivered within {DONE_WITHIN} s.", session=story.session)
            time.sleep(0.05)
        self.launch = story.session.launches()[0]
        story.client.call("POST", f"/v1/launches/{self.launch.identifier}/complete")
        story.session.acknowledged = self.launch.data["lastSeq"]

    def check(self, story):
        checks.read_events(story.client, story.session)
        state = story.client.call("GET", f"/v1/launches/{self.launch.identifier}").json
        known = len(story.session.launches())
        if state["state"] != "completed" or self.launch.identifier not in story.session.log.finished_launches or known != 1:
            raise Violation(f"Accepted is kept: the launch was completed, and it is {state['state']}; {known} were delivered.",
                            session=story.session, documents=[str(state)])


class Backup(Sequence):
    """`urlsessiond backup` while the service runs: its own calls count."""

    def begin(self, bench, armed):
        bench.service.reset(bench.snapshot)
        bench.service.start()
        self.armed = armed

    def prepare(self, story):
        story.open_session()
        for name, length in [("row", ROW), ("file", FILE)]:
            story.create(name, length)
        story.await_end()

    def act(self, story):
        bench = story.bench
        bench.shim.disarm()
        bench.shim.arm(*self.armed)
        self.copy = bench.service.backups / "copy.db"
        status, text = self._back_up(bench, bench.shim.environment)
        if status == 0:
            return
        if not bench.shim.is_met or (status != -9 if bench.kills else status != 73 or not text.startswith("urlsessiond: backup: ")):
            raise Violation(f"The backup ended with status {status}: {text!r}")
        bench.service.ends.append("killed" if status == -9 else f"exit {status}")
        bench.note(text)
        if self.copy.exists():  # The copy was complete.
            return
        status, text = self._back_up(bench, {})
        if status != 0:
            raise Violation(f"The next backup ended with status {status}: {text!r}")

    def _back_up(self, bench, environment):
        done = subprocess.run([bench.service.program, "backup", str(self.copy), "--data-dir", str(bench.service.data)],
                              capture_output=True, text=True, timeout=DONE_WITHIN, check=False, env={**os.environ, **environment})
        return done.returncode, done.stderr

    def check_stopped(self, bench):
        """The copy takes the place of the database."""
        service = bench.service
        if (found := os.listdir(service.backups)) != ["copy.db"]:
            raise Violation(f"Beside the backup are files: {found}.")
        if self.copy.stat().st_mode & 0o777 != 0o600:
            raise Violation("Others may read the backup.")
        with (ledger.connect(service.data / "urlsessiond.db", immutable=True) as database,
              ledger.connect(self.copy, immutable=True) as copy):
            for table in ("session", "task", "event", "content"):
                statement = f"SELECT count(*) FROM {table}"
                if database.execute(statement).fetchone() != copy.execute(statement).fetchone():
                    raise Violation(f"The backup has another number of rows in {table}.")
        os.replace(self.copy, service.data / "urlsessiond.db")
        service.start()
        service.end()
        ledger.check(service.data)


class Start(Sequence):
    """The first start in an empty folder, the first task, and the end."""

    counts_end = True

    def begin(self, bench, armed):
        bench.service.reset()
        bench.service.start(has_shim=True, armed=armed)
        bench.make_app()

    def prepare(self, story):
        pass

    def act(self, story):
        story.open_session()
        story.create("file", FILE)
        story.await_end()


class Recover(Sequence):
    """The start after a kill: transfers in flight, a planned move, orphaned files, and the crash marker."""

    def begin(self, bench, armed):
        super().begin(bench, armed)
        self.armed = armed

    def prepare(self, story):
        bench = story.bench
        story.open_session()
        story.create("done", FILE)
        story.await_end()
        identifier, body = story.store_body("body", FILE)
        story.create("partial", LARGE, script=[("reset_download", 0.6), ("slow_upload", 60)])
        story.create("upload", kind="upload", sent=body, script=[("slow_upload", 60)], body={"id": identifier})
        story.create("waiting", ROW, state="suspended")
        self._await_second_request(story, 2)
        bench.shim.arm(Call("renameat2", "files/moved.bin", 1), "kill-after")
        story.create("moved", FILE, script=[("slow_upload", 0.4)], destination={"root": "files", "path": "moved.bin"})
        bench.service.process.wait(DONE_WITHIN)
        for stray in ("partial/999999", "partial/body_stray", "contents/ff/999999", "bodies/00/body_stray"):
            (bench.service.data / stray).write_bytes(b"stray")
        (bench.service.data / "crashed").write_bytes(b"11\n")

    @staticmethod
    def _await_second_request(story, number):
        """Waits until a transfer resumes: its request after the kill finds a well-behaved origin."""
        deadline = time.monotonic() + DONE_WITHIN
        while story.tasks[number].resource.script:
            if time.monotonic() > deadline:
                raise Violation("The download did not resume.")
            time.sleep(0.05)

    def act(self, story):
        service = story.bench.service
        service.start(has_shim=True, armed=self.armed)
        story.resume()
        story.await_end()


def await_files(bench, count):
    """Returns when at most `count` files are left."""
    deadline = time.monotonic() + DONE_WITHIN
    while len(left := ledger.files(bench.service.data)) > count:
        bench.check_running()
        bench.service.check_alive()
        if time.monotonic() > deadline:
            raise Violation(f"The contents are not needed any more, and {len(left)} files are left {DONE_WITHIN} s later.",
                            documents=sorted(left))
        time.sleep(0.05)


ALL = {"create": Create, "settle": Settle, "publish": Publish, "resume": Resume, "upload": Upload, "claim": Claim,
       "acknowledge": Acknowledge, "launch": Launch, "backup": Backup, "start": Start, "recover": Recover}
