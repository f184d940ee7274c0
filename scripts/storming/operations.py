"""What a worker does to its sessions: one function for each call of the API, drawn at random."""
import json
import time

from . import checks, plans
from .events import Stream
from .failure import Violation
from .model import ANY, TaskModel
from .questions import answer_questions, forget_credentials, store_credential


def adopt(storm, session, task, number):
    """The creation of a task was confirmed."""
    task.number = number
    session.tasks[number] = task
    task.expected.update({name: task.creation[name] for name in ("priority", "metadata", "group", "clientTaskId")
                          if name in task.creation})
    storm.created += 1
    task.note(f"created: {json.dumps(task.creation)[:600]}")
    source = task.creation.get("body") or task.creation["request"].get("body") or {}
    if "path" in source:  # The service has a copy, and later changes of the file must not show.
        file = storm.service.files / source["path"]
        file.write_bytes(b"changed") if task.number % 2 else file.unlink(missing_ok=True)


def create_one(worker, session):
    task = worker.planner.task(session)
    client, path = worker.client(session), f"{session.path}/tasks"
    key = worker.key()
    answer = client.call("POST", path, task.creation, keyed=key)
    adopt(worker.storm, session, task, answer.json["taskIdentifier"])
    if worker.random.random() < 0.1:
        again = client.call("POST", path, task.creation, keyed=key)
        if again.json["taskIdentifier"] != task.number:
            checks.fail("The same request with the same Idempotency-Key created another task.", task, again.json)


def create_batch(worker, session):
    tasks = [worker.planner.task(session) for _ in range(worker.random.randint(1, 8))]
    answer = worker.client(session).call("POST", f"{session.path}/tasks/batch", {"tasks": [task.creation for task in tasks]})
    for task, item in zip(tasks, answer.json["items"], strict=True):
        adopt(worker.storm, session, task, item["taskIdentifier"])


def create_lines(worker, session):
    """NDJSON has no Idempotency-Key: its lines are repeated with the same `clientTaskId`s, as are those that met a shutdown."""
    tasks = [worker.planner.task(session) for _ in range(worker.random.randint(1, 8))]
    for task in tasks:
        task.creation["clientTaskId"] = f"c{task.resource.path}"
    while tasks:
        answer = worker.client(session).call("POST", f"{session.path}/tasks", kind="application/x-ndjson", keyed=False,
                                             raw="".join(json.dumps(task.creation) + "\n" for task in tasks).encode())
        results = [json.loads(line) for line in answer.body.decode().splitlines()]
        left = []
        for task, result in zip(tasks, results, strict=True):
            if result["status"] == 503 and result["problem"]["code"] == "shutting-down":
                left.append(task)
            elif result["status"] not in (200, 201):
                checks.fail("A line of NDJSON was refused.", task, result)
            else:
                adopt(worker.storm, session, task, result["taskIdentifier"])
        tasks = left


def create_from_metalink(worker, session):
    task, document = worker.planner.metalink(session)
    answer = worker.client(session).call("POST", f"{session.path}/tasks", raw=document, kind="application/metalink4+xml")
    adopt(worker.storm, session, task, answer.json["taskIdentifier"])


def suspend(worker, session):
    if task := worker.some_open(session):
        answer = worker.client(session).call("POST", f"{task.path}/suspend", allowed=("task-completed",))
        task.note(f"suspend: {answer.status} {answer.code or answer.json['state']}")
        if answer.status == 200 and answer.json["state"] == "suspended":
            task.suspended = True


def resume(worker, session):
    if task := worker.some_open(session):
        task.suspended, task.started = False, True
        answer = worker.client(session).call("POST", f"{task.path}/resume", allowed=("task-completed",))
        task.note(f"resume: {answer.status} {answer.code or answer.json['state']}")


def cancel(worker, session):
    task = worker.some_open(session)
    if task is None:
        return
    task.cancel, task.suspended = task.cancel or "asked", False
    produces = worker.random.random() < 0.35
    answer = worker.client(session).call("POST", f"{task.path}/cancel", {"byProducingResumeData": True} if produces else None,
                                         allowed=("task-completed",))
    task.note(f"cancel: {answer.status} {answer.code or ''} {answer.body[:80] if produces else ''}")
    if answer.status < 400:
        task.cancel = "confirmed"
    if produces and answer.status == 200 and answer.json["resumeData"]:
        _continue(worker, session, task, answer.json["resumeData"])


def _continue(worker, session, task, data):
    # Bytes that an origin falsified are told by digests alone, which resume data does not carry.
    digests = {name: task.creation[name] for name in ("pieces", "expectedDigest") if name in task.creation}
    creation = {"kind": "download", "resumeData": data, **digests}
    again = TaskModel(session, task.resource, {**creation, "request": task.creation["request"]}, "download")
    again.is_segmented, again.plausible_errors = task.is_segmented, set(task.plausible_errors)
    answer = worker.client(session).call("POST", f"{session.path}/tasks", creation, allowed=("session-invalidated",))
    if answer.status == 201:
        adopt(worker.storm, session, again, answer.json["taskIdentifier"])


def retry(worker, session):
    ended = [task for task in session.tasks.values() if task.done]
    if not ended:
        return
    task = worker.random.choice(ended)
    answer = worker.client(session).call("POST", f"{task.path}/retry",
                                         allowed=("content-expired", "not-found", "session-invalidated", "invalid-value"))
    task.note(f"retry: {answer.status} {answer.code or answer.json['taskIdentifier']}")
    if answer.status < 400:
        adopt_retry(worker, session, task, answer.json["taskIdentifier"])


def adopt_retry(worker, session, task, number):
    """The task of that number was created from a completed one."""
    creation = {name: value for name, value in task.creation.items() if name not in ("clientTaskId", "state")}
    again = TaskModel(session, task.resource, creation, task.kind, task.body)
    again.plausible_errors = task.plausible_errors | ({-3000} if task.destination else set())
    adopt(worker.storm, session, again, number)
    again.expected = {}


def patch(worker, session):
    if not session.tasks:
        return
    task = worker.random.choice(list(session.tasks.values()))
    changes = {"taskDescription": f"d{worker.random.randrange(1000)}"}
    if worker.random.random() < 0.5:
        changes["metadata"] = {"patched": str(worker.random.randrange(1000))}
    if task.done is None and worker.random.random() < 0.4:
        changes["priority"] = worker.random.choice([0, 0.25, 0.5, 1])
    if task.done is None and worker.random.random() < 0.2:
        changes["request"] = _changed_request(worker, task)
    if task.done is None and worker.random.random() < 0.2:
        changes["earliestBeginDate"] = worker.random.choice([None, plans.moment(worker.random.uniform(0, 4))])
    for member in changes:
        task.expected.pop(member, None)
    answer = worker.client(session).call("PATCH", task.path, changes, allowed=("task-completed",))
    task.note(f"patch {changes}: {answer.status}")
    if answer.status == 200:
        if "request" in changes and answer.json["originalRequest"]["url"] != changes["request"]["url"]:
            checks.fail("The change of a request is not in the response to it.", task, answer.json)
        task.expected.update({name: value for name, value in changes.items() if name != "request"})


def _changed_request(worker, task):
    """The same resource under another URL, sometimes with other headers, as for a presigned URL that has expired."""
    request = {"url": task.creation["request"]["url"].partition("?")[0] + f"?changed={worker.random.randrange(1000)}"}
    if worker.random.random() < 0.3:
        request["headers"] = {**task.creation["request"].get("headers", {}), "X-Changed": "1"}
    return request


def read_task(worker, session):
    if not session.tasks:
        return
    task = worker.random.choice(list(session.tasks.values()))
    wait = worker.random.choice(["", "", "?wait=1"])
    checks.examine(task, worker.client(session).call("GET", task.path + wait).json)
    if task.done:
        checks.read_content(worker.client(session), task)
        checks.check_destination(worker.storm, task)


def acknowledge(worker, session):
    client = worker.client(session)
    checks.read_events(client, session)
    if session.log.last:
        through = worker.random.randint(1, session.log.last)
        answer = client.call("POST", f"{session.path}/events/ack", {"through": through}, allowed=("attachment-fenced",))
        session.note(f"acknowledge through {through}: {answer.status}")
        if answer.status == 200:
            session.acknowledged = max(session.acknowledged, through)


def reset(worker, session):
    worker.client(session).call("POST", f"{session.path}/reset")


def reconnect(worker, session):
    body = {"configuration": session.configuration} if worker.random.random() < 0.5 else {}
    body["sessionDescription"] = f"d{worker.random.randrange(1000)}"
    session.description = ANY  # Either one, until the call is confirmed.
    answer = worker.client(session).call("PUT", session.path, body, allowed=("session-invalidated",))
    if answer.status == 200:
        session.description = answer.json["sessionDescription"]


def patch_session(worker, session):
    random, changes = worker.random, {}
    if random.random() < 0.6:
        changes["sessionDescription"] = random.choice([None, f"d{random.randrange(1000)}"])
        session.description = ANY
    if random.random() < 0.6:
        changes["bandwidthLimit"] = random.choice([None, None, 1_000_000, 20_000_000])
    answer = worker.client(session).call("PATCH", session.path, changes, allowed=("session-invalidated",))
    session.note(f"patch {changes}: {answer.status}")
    if answer.status != 200:
        return
    if "sessionDescription" in changes:
        session.description = changes["sessionDescription"]
    if "bandwidthLimit" in changes:
        session.configuration["bandwidthLimit"] = changes["bandwidthLimit"]


def lift_bandwidth_limit(worker, session):
    if session.configuration.get("bandwidthLimit") is None:
        return
    changes = {"bandwidthLimit": None}
    answer = worker.client(session).call("PATCH", session.path, changes, allowed=("session-invalidated",))
    session.note(f"patch {changes}: {answer.status}")
    if answer.status == 200:
        session.configuration |= changes


def claim(worker, session):
    ended = [task for task in session.tasks.values() if task.done and task.done["content"] and not task.claimed]
    if ended:
        task = worker.random.choice(ended)
        task.claimed = True
        answer = worker.client(session).call("POST", f"{task.path}/content/claim", allowed=(404, 410))
        task.note(f"claim: {answer.status}")


def change_many(worker, session):
    """The forms for a whole session or group."""
    random = worker.random
    action = random.choice(["suspend", "resume", "resume", "cancel"])
    group = random.choice(["a", "b", "c"])
    for task in session.unfinished():
        if task.creation.get("group") == group or task.creation.get("resumeData") or "group" not in task.creation:
            if action == "cancel":
                task.cancel = task.cancel or "asked"
            task.suspended, task.started = False, True
    answer = worker.client(session).call("POST", f"{session.path}/tasks/{action}", {"group": group})
    session.note(f"{action} of group {group}: {answer.json}")


def change_numbered(worker, session):
    """The forms for a whole session with `taskIdentifiers`: after the call each task is as it says, or has completed."""
    tasks = _some_of(worker, session.unfinished())
    if not tasks:
        return
    action = worker.random.choice(["suspend", "resume", "cancel"])
    for task in tasks:
        if action == "cancel":
            task.cancel = task.cancel or "asked"
        task.suspended, task.started = False, True
    answer = worker.client(session).call("POST", f"{session.path}/tasks/{action}", _numbers(tasks))
    session.note(f"{action} of {_numbers(tasks)}: {answer.json}")
    listed = checks.list_tasks(worker.client(session), session)
    for task in tasks:
        state = listed[task.number]["state"]
        if (action, state) in (("suspend", "running"), ("resume", "suspended"), ("cancel", "running"), ("cancel", "suspended")):
            checks.fail(f"The {action} of {task.path} was confirmed, and it is {state}.", task, listed[task.number])
        task.suspended = state == "suspended"
        checks.examine(task, listed[task.number])


def retry_numbered(worker, session):
    """A new task for each of some completed ones; the response counts them, and the list shows which they are."""
    tasks = _some_of(worker, [task for task in session.tasks.values() if task.done])
    if not tasks or len(session.unfinished()) > 30:
        return
    client = worker.client(session)
    answer = client.call("POST", f"{session.path}/tasks/retry", _numbers(tasks), allowed=("session-invalidated",))
    session.note(f"retry of {_numbers(tasks)}: {answer.status} {answer.body[:300]}")
    before = {task.number: task for task in session.tasks.values()}
    found = [item for number, item in sorted(checks.list_tasks(client, session).items()) if number not in before]
    if answer.status >= 400 and found or any(item["retryOf"] not in _numbers(tasks)["taskIdentifiers"] for item in found):
        raise Violation(f"A retry of tasks of {session.path} made others than it was asked for.", session=session,
                        documents=[json.dumps(found), answer.body.decode()])
    for item in found:
        adopt_retry(worker, session, before[item["retryOf"]], item["taskIdentifier"])
    if answer.status == 200 and (len(found) < answer.json["changed"] or
                                 (len(found) > answer.json["changed"] and not answer.uncertain)):
        raise Violation(f"A retry of tasks of {session.path} made {len(found)} tasks.", session=session,
                        documents=[answer.body.decode()])


def claim_numbered(worker, session):
    tasks = _some_of(worker, [task for task in session.tasks.values() if task.done])
    if tasks:
        for task in tasks:
            task.claimed = task.claimed or bool(task.done["content"])
        answer = worker.client(session).call("POST", f"{session.path}/tasks/claim", _numbers(tasks))
        session.note(f"claim of {_numbers(tasks)}: {answer.json}")


def _some_of(worker, tasks):
    return worker.random.sample(tasks, min(len(tasks), worker.random.randint(1, 5)))


def _numbers(tasks):
    return {"taskIdentifiers": [task.number for task in tasks]}


def complete_launch(worker, session):
    """The launched app reads, acknowledges and completes."""
    client = worker.client(session)
    for launch in session.launches():
        if launch.completed:
            continue
        checks.read_events(client, session)
        answer = client.call("POST", f"/v1/launches/{launch.identifier}/complete", allowed=("attachment-fenced", 404))
        session.note(f"complete {launch.identifier}: {answer.status}")
        if answer.status == 200:
            launch.completed = time.time()
            if not launch.inline:  # A completion with another `through` may have come first.
                session.acknowledged = max(session.acknowledged, launch.data["lastSeq"])


def attach(worker, session):
    """Takes the lease, acknowledges with its epoch, and releases it."""
    client = worker.client(session)
    lease = client.call("POST", f"{session.path}/attachment", {"ttl": 5}, allowed=("session-in-use", "session-invalidated"))
    if lease.status != 201:
        return
    epoch = lease.json["epoch"]
    page = checks.read_events(client, session)
    answer = client.call("POST", f"{session.path}/events/ack", {"through": page["lastSeq"], "epoch": epoch},
                         allowed=("attachment-fenced",))
    if answer.status == 200:
        session.acknowledged = max(session.acknowledged, page["lastSeq"])
    client.call("DELETE", f"{session.path}/attachment?epoch={epoch}", allowed=(404, "attachment-fenced"))


def watch(worker, session):
    """A stream of kept and live events, until the service is killed or a second has passed."""
    client, after = worker.client(session), session.log.last
    attach, seconds = worker.random.choice(["true", "false"]), worker.random.choice([1, 1, 3])
    stream = Stream(session.log)
    for event in client.stream(f"{session.path}/events?after={after}&attach={attach}", seconds):
        if event["seq"] is not None:
            after += 1
            if event["seq"] != after:
                session.log.refuse(f"G1: a stream of {session.path} has {event['seq']} where {after} belongs.", event)
            session.log.take(event)
        stream.take(event)


def trespass(worker, session):
    """Another app's key opens nothing."""
    stranger = worker.random.choice([app for app in worker.storm.apps if app is not session.app])
    client, task = worker.storm.client(stranger), next(iter(session.tasks.values()), None)
    for method, path in [("GET", session.path), ("DELETE", session.path), ("GET", f"{session.path}/events")] + (
            [("GET", task.path), ("POST", f"{task.path}/cancel"), ("GET", f"{task.path}/content")] if task else []):
        if client.call(method, path, allowed=(404,)).status != 404:
            raise Violation(f"{stranger.identifier} was let to {method} {path} of {session.app.identifier}.", session=session)


OPERATIONS = [(create_one, 30), (create_batch, 4), (create_lines, 3), (create_from_metalink, 1), (suspend, 3), (resume, 4), (cancel, 5), (retry, 3),
              (patch, 6), (read_task, 25), (acknowledge, 6), (answer_questions, 12), (store_credential, 3),
              (forget_credentials, 2), (reset, 1), (reconnect, 3), (claim, 3), (change_many, 2), (complete_launch, 6),
              (attach, 2), (watch, 2), (trespass, 1), (patch_session, 2), (change_numbered, 2), (retry_numbered, 1),
              (claim_numbered, 1)]
