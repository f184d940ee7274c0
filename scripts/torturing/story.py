"""What one run does through the API, and what it knows to be confirmed."""
import itertools
import time

from storming import checks, endings
from storming.content import Bytes
from storming.failure import Violation
from storming.model import SessionModel, TaskModel
from storming.resources import Resource

_numbers = itertools.count(1)
ENDED_WITHIN = 40


class Story:
    """One session, its tasks and bodies. A sequence acts on it; its check follows the restart."""

    def __init__(self, bench):
        self.bench, self.prefix = bench, f"s{next(_numbers)}"
        self.session, self.bodies = None, {}

    @property
    def client(self):
        return self.bench.client

    @property
    def tasks(self):
        return self.session.tasks

    # What sequences do

    def open_session(self, **configuration):
        """A session that retries soon. It sends no launches unless the configuration says so."""
        configuration = {"sessionSendsLaunchEvents": False, **configuration, "retryPolicy": {
            "statusCodes": [500, 503], "initialDelay": 0.1, "maximumDelay": 0.2}}
        self.session = SessionModel(self.prefix, self.bench.app, configuration, self.bench.receiver)
        self.client.call("PUT", self.session.path, {"configuration": configuration})

    def plan(self, name, length=0, *, kind="download", sent=None, script=(), final=200, **members):
        """A task that is not created yet, with its resource at the origin. `sent` are the bytes of an upload."""
        resource = self.bench.registry.add(Resource(f"/{self.prefix}/{name}", length, body=sent, script=script, final=final))
        creation = {"kind": kind, "request": {"url": self.bench.origin.url(resource.path)}, "clientTaskId": name,
                    **members}
        return TaskModel(self.session, resource, creation, kind, sent)

    def adopt(self, task, answer):
        task.number = answer["taskIdentifier"]
        task.expected["clientTaskId"] = task.creation["clientTaskId"]
        self.tasks[task.number] = task

    def create(self, *arguments, **members):
        task = self.plan(*arguments, **members)
        self.adopt(task, self.client.call("POST", f"{self.session.path}/tasks", task.creation).json)
        return task

    def resume(self):
        for task in self.tasks.values():
            task.suspended, task.started = False, True
        self.client.call("POST", f"{self.session.path}/tasks/resume", {})

    def store_body(self, name, length, parts=1):
        """A stored body; of several parts by the draft for resumable uploads."""
        body = Bytes(length, f"{self.prefix}/{name}")
        if parts == 1:
            stored = self.client.call("POST", "/v1/bodies", raw=body.all(), kind="application/octet-stream").json
            identifier = stored["id"]
        else:
            identifier = self._store_in_parts(body)
        self.bodies[identifier] = body
        return identifier, body

    def _store_in_parts(self, body):
        created = self.client.call("POST", "/v1/bodies", raw=body.slice(0, body.length // 2), kind="application/octet-stream",
                                   fields={"Upload-Complete": "?0"})
        path = "/v1/bodies/" + created.fields["Location"].rsplit("/", 1)[1]
        for _ in range(5):
            known = self.client.call("HEAD", path).fields
            if known["Upload-Complete"] == "?1":
                break
            offset = int(known["Upload-Offset"])
            self.client.call("PATCH", path, raw=body.slice(offset, body.length), kind="application/partial-upload",
                             fields={"Upload-Offset": str(offset), "Upload-Complete": "?1"}, allowed=(409,))
        return path.rsplit("/", 1)[1]

    def await_end(self):
        """Returns when every task has ended."""
        deadline = time.monotonic() + ENDED_WITHIN
        while left := [task for task in self.tasks.values() if task.done is None]:
            found = self.client.call("GET", f"{left[0].path}?wait=2").json
            checks.examine(left[0], found)
            if time.monotonic() > deadline:
                checks.fail(f"{left[0].path} has not ended {ENDED_WITHIN} s after its origin became well-behaved.", left[0], found)

    def acknowledge(self):
        last = self.client.call("GET", f"{self.session.path}/events?limit=1").json["lastSeq"]
        self.client.call("POST", f"{self.session.path}/events/ack", {"through": last})
        self.session.acknowledged = last

    def claim(self, task):
        self.client.call("POST", f"{task.path}/content/claim")
        task.claimed = True

    # What must hold

    def check(self):
        """Every guarantee, after a start without a fault: tasks end, and all that was confirmed is there."""
        if self.session is None:
            return
        checks.audit(self.client, self.session)
        self.resume()
        self.await_end()
        checks.audit(self.client, self.session)
        endings.check_counts(self.client, self.session)
        for task in self.tasks.values():
            self._check_content(task)
            self._check_destination(task)
        for identifier, body in self.bodies.items():
            found = self.client.call("GET", f"/v1/bodies/{identifier}").json
            if (found["length"], found["digest"]["value"]) != (body.length, body.digest):
                raise Violation(f"Accepted is kept: the body {identifier} was stored.", documents=[str(found), repr(body)])

    def _check_content(self, task):
        if task.done["content"] and not task.claimed and not task.destination and not self.session.acknowledged:
            checks.read_content(self.client, task)
        if task.claimed and self.client.call("GET", f"{task.path}/content", allowed=(404, 410)).status < 400:
            raise Violation(f"Accepted is kept: the content of {task.path} was claimed, and it can be read.", task=task)

    def _check_destination(self, task):
        """The file at a destination is the content where the task succeeded. Else nothing has changed there."""
        if not task.destination:
            return
        file = self.bench.service.roots[task.creation["destination"]["root"]] / task.destination
        found, before = file.read_bytes() if file.exists() else None, self.bench.files_before.get(str(file))
        succeeded = task.done["outcome"] == "succeeded"
        if found != (task.resource.content().all() if succeeded else before):
            raise Violation(f"{task.path} ended {task.done['outcome']}, and at its destination is "
                            f"{'no file' if found is None else f'a file of {len(found)} bytes'}.", session=self.session, task=task,
                            documents=[str(task.done)])
