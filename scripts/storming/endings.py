"""How a session ends: brought to quiet and judged as a whole, or deleted in the middle of its work."""
import json
import time

from . import apps, checks, operations
from .failure import Violation

# Generous: the machine may be slow, and the service is killed meanwhile.
QUIET_WITHIN, LAUNCHED_WITHIN, GONE_WITHIN = 240, 120, 120


def end(worker, session):
    choice = worker.random.random()
    if choice < 0.6:
        finish(worker, session)
    elif choice < 0.8:
        delete(worker, session)
    else:
        invalidate(worker, session)


def finish(worker, session):
    """The origins become well-behaved: each task ends, and a launch tells of it."""
    client = worker.client(session)
    quieten(worker, session)
    for task in session.tasks.values():
        if not task.content_read:
            checks.read_content(client, task)
        checks.check_destination(worker.storm, task)
    checks.audit(client, session)
    check_counts(client, session)
    if session.configuration.get("sessionSendsLaunchEvents", True) and session.app.webhook:
        await_launch(worker, session)
    delete(worker, session)


def quieten(worker, session):
    """Returns when every task has ended."""
    client, deadline = worker.client(session), time.monotonic() + QUIET_WITHIN
    for resource in session.resources:
        resource.calm = True
    for task in session.tasks.values():
        task.suspended, task.started = False, True
    # A long body that cannot be resumed has to come through between two kills.
    operations.lift_bandwidth_limit(worker, session)
    while True:
        worker.audit()
        client.call("POST", f"{session.path}/tasks/resume", {})
        operations.answer_questions(worker, session, kindly=True)
        if left := session.unfinished():
            client.call("GET", f"{left[0].path}?wait=1")
        for number, found in checks.list_tasks(client, session).items():
            checks.examine(session.tasks[number], found)
        left = session.unfinished()
        if not left:
            return
        if time.monotonic() > deadline:
            found = client.call("GET", left[0].path).json
            checks.fail(f"{left[0].path} has not ended {QUIET_WITHIN} s after its origin became well-behaved "
                        f"({len(left)} tasks of the session have not).", left[0], found)


def check_counts(client, session):
    """The counts of a session whose tasks have all ended."""
    counts = client.call("GET", session.path).json["taskCounts"]
    expected = {"suspended": 0, "running": 0, "canceling": 0, "completed": len(session.tasks)}
    for outcome in ("succeeded", "httpError", "failed", "cancelled", "notModified"):
        expected[outcome] = sum(task.done["outcome"] == outcome for task in session.tasks.values())
    if counts != expected:
        raise Violation(f"The taskCounts of {session.path} are {counts} and not {expected}.", session=session)


def await_launch(worker, session):
    """Where a completion is not acknowledged, the receiver gets a launch, and completing it acknowledges."""
    client, deadline = worker.client(session), time.monotonic() + LAUNCHED_WITHIN
    redelivered = set()
    while True:
        apps.await_webhook(worker.storm, session.app)
        checks.read_events(client, session)
        found = client.call("GET", session.path).json
        if found["acknowledgedSeq"] >= max(session.log.completions.values(), default=0):
            return
        launch = found["launch"]
        if launch and launch["launchId"] not in redelivered:
            client.call("POST", f"/v1/launches/{launch['launchId']}/redeliver", allowed=("launch-not-open",))
            redelivered.add(launch["launchId"])
        for known in session.launches():
            if not known.completed:
                _complete(client, session, known)
        if time.monotonic() > deadline:
            raise Violation(f"{session.path} has finished, and no launch of it arrived within {LAUNCHED_WITHIN} s.",
                            session=session, documents=[json.dumps(found)])
        time.sleep(0.2)


def _complete(client, session, launch):
    client.call("POST", f"/v1/launches/{launch.identifier}/complete", allowed=("attachment-fenced",))
    state = client.call("GET", f"/v1/launches/{launch.identifier}").json
    if state["state"] in ("completed", "superseded"):
        launch.completed = launch.completed or time.time()
    if state["state"] == "completed":
        checks.read_events(client, session)
        if launch.identifier not in session.log.finished_launches:
            raise Violation(f"The launch {launch.identifier} is completed, and session.didFinishEvents is missing.",
                            session=session, documents=[json.dumps(state)])


def invalidate(worker, session):
    """Lets the tasks finish or cancels them; session.didBecomeInvalid is the last event."""
    client = worker.client(session)
    if worker.random.random() < 0.5:
        client.call("POST", f"{session.path}/finish-tasks-and-invalidate")
    else:
        session.may_cancel = True
        for task in session.tasks.values():
            task.suspended = False
        client.call("POST", f"{session.path}/invalidate-and-cancel")
    session.note("invalidated")
    quieten(worker, session)
    deadline = time.monotonic() + QUIET_WITHIN
    while not session.log.invalid:
        checks.read_events(client, session)
        if time.monotonic() > deadline:
            raise Violation(f"{session.path} was invalidated, its tasks have ended, and session.didBecomeInvalid is missing.",
                            session=session)
        time.sleep(0.1)
    checks.audit(client, session)
    delete(worker, session)


def delete(worker, session):
    """Deletes the session and its bodies, and forgets what the storm knows of it."""
    client, storm = worker.client(session), worker.storm
    client.call("DELETE", session.path, allowed=(404,))
    deadline = time.monotonic() + GONE_WITHIN
    while client.call("GET", session.path, allowed=(404,)).status != 404:
        if time.monotonic() > deadline:
            raise Violation(f"{session.path} was deleted and is there {GONE_WITHIN} s later.", session=session)
        time.sleep(0.05)
    for body in session.bodies:
        client.call("DELETE", f"/v1/bodies/{body}", allowed=(404,))
    for task in session.tasks.values():
        checks.check_destination(storm, task)
        storm.count(task)
    for task in session.tasks.values():
        if task.destination:
            (storm.service.files / task.destination).unlink(missing_ok=True)
    for resource in session.resources:
        storm.registry.forget(resource)
    storm.receiver.forget(session.app.identifier, session.identifier)
    forget_bodies(client, older=300)
    worker.sessions.remove(session)


def forget_bodies(client, older):
    """Deletes the app's bodies that no task needs. The service would keep them for a day."""
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - older))
    page = client.call("GET", f"/v1/bodies?inUse=false&limit=1000&createdBefore={before}").json
    for body in page["items"]:
        client.call("DELETE", f"/v1/bodies/{body['id']}", allowed=(404,))
    return len(page["items"])
