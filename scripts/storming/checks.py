"""What must hold of a task that has ended, of a session after a restart, and of files at their destinations."""
import hashlib
import json
import time

from .content import Bytes
from .failure import Violation
from .model import ANY


OPEN_LAUNCHES = ("pending", "delivering", "launched", "parked")


def fail(sentence, task, found):
    raise Violation(sentence, session=task.session, task=task, documents=[json.dumps(found, indent=1)])


def summary(found):
    """The members of a completed task that never change again."""
    kept = {name: found[name] for name in ("outcome", "error", "completedAt", "startedAt", "countOfBytesReceived",
                                           "countOfBytesSent", "kind")}
    content = found["content"]
    return {**kept, "content": content and {"length": content["length"], "digest": content["digest"]},
            "status": found["response"] and found["response"]["statusCode"]}


def examine(task, found):
    """Compares a task as it was just read with what was confirmed before."""
    if found["taskIdentifier"] != task.number or found["kind"] != task.kind:
        fail(f"{task.path} is another task than the one that was created.", task, found)
    for member, value in task.expected.items():
        if found[member] != value:
            fail(f"Accepted is kept: {member} of {task.path} was confirmed as {value!r}.", task, found)
    if task.done:
        if not found["content"] and task.claimed:
            task.done["content"] = None
        if summary(found) != task.done:
            fail(f"{task.path} had ended as {task.done} and changed.", task, found)
        return
    if found["state"] == "completed":
        _judge_end(task, found)
        task.done = summary(found)
        task.note(f"ended: {found['outcome']} {task.done['status']} {(found['error'] or {}).get('code')}")
        return
    if task.cancel == "confirmed" and found["state"] != "canceling":
        fail(f"Accepted is kept: the cancellation of {task.path} was confirmed, and it is {found['state']}.", task, found)
    if task.suspended and found["state"] != "suspended":
        fail(f"Accepted is kept: the suspension of {task.path} was confirmed, and it is {found['state']}.", task, found)


def _judge_end(task, found):
    outcome, error, resource = found["outcome"], found["error"], task.resource
    status = found["response"] and found["response"]["statusCode"]
    if task.cancel == "confirmed" and outcome != "cancelled":
        fail(f"The cancellation of {task.path} was confirmed, and it ended {outcome}.", task, found)
    # A suspended task still completes when its transfer was over at the moment of the suspension.
    if task.suspended and not task.started and outcome not in ("cancelled", "failed"):
        fail(f"{task.path} was created suspended and never resumed, and it ended {outcome}.", task, found)
    match outcome:
        case "succeeded":
            complete = task.kind == "download" and status == 416  # All bytes were there already.
            if status not in resource.statuses or not (200 <= status < 300 or complete or status in resource.acceptable):
                fail(f"{task.path} succeeded with the status {status}, which no origin sent.", task, found)
            if task.body is not None:
                judge_receipt(task, found)
            _judge_content(task, found)
        case "httpError":
            if status not in resource.statuses or error is not None:
                fail(f"{task.path} ended with the status {status}, which no origin sent.", task, found)
        case "notModified":
            if 304 not in resource.statuses:
                fail(f"{task.path} ended notModified, and no origin sent 304.", task, found)
        case "cancelled":
            if not task.cancel and not task.session.may_cancel:
                fail(f"{task.path} ended cancelled, and no client cancelled it.", task, found)
            if error["code"] != -999:
                fail(f"{task.path} was cancelled with the code {error['code']}.", task, found)
        case "failed":
            if error["code"] not in task.plausible_errors:
                fail(f"{task.path} failed with {error['code']}; its origin gave cause for "
                     f"{sorted(task.plausible_errors) or 'no failure'}.", task, found)


def judge_receipt(task, found):
    """A succeeded task: the origin has the body byte for byte. The origin may still be reading what it was sent."""
    deadline, resource = time.monotonic() + 20, task.resource
    resource.succeeded += 1
    while resource.received_exactly < resource.succeeded and time.monotonic() < deadline:
        time.sleep(0.02)
    if resource.received_exactly < resource.succeeded:
        fail(f"The upload {task.path} succeeded, and no origin received its {task.body.length} bytes "
             f"(countOfBytesSent is {found['countOfBytesSent']}).", task, found)
    if task.kind == "upload" and found["countOfBytesSent"] < task.body.length:
        fail(f"The upload {task.path} of {task.body.length} bytes succeeded with countOfBytesSent "
             f"{found['countOfBytesSent']}.", task, found)


def _judge_content(task, found):
    content = found["content"]
    if task.kind != "download" or task.body is not None or content is None:
        return
    matching = [version for version in task.resource.served
                if (body := task.resource.content(version)).length == content["length"]
                and body.digest == content["digest"]["value"]]
    page = task.resource.page(found["response"]["statusCode"])
    if not matching and (found["response"]["statusCode"] not in task.resource.acceptable
                         or content["digest"]["value"] != Bytes.of(page).digest):
        fail(f"The content of {task.path} is no version of the resource.", task, found)
    if found["countOfBytesReceived"] != content["length"] or found["countOfBytesExpectedToReceive"] not in (
            None, content["length"]):
        fail(f"The content of {task.path} has {content['length']} bytes, and the counts are "
             f"{found['countOfBytesReceived']} of {found['countOfBytesExpectedToReceive']}.", task, found)


def read_content(client, task):
    """The bytes that the API has of a finished task must have the length and the digest that it reports. Returns them."""
    if task.claimed or task.destination or not task.done["content"]:
        return None
    answer = client.call("GET", f"{task.path}/content", allowed=(404, 410))
    if answer.status >= 400:
        raise Violation(f"The content of {task.path} cannot be read: {answer.status}.", session=task.session, task=task)
    content = task.done["content"]
    if len(answer.body) != content["length"] or hashlib.sha256(answer.body).hexdigest() != content["digest"]["value"]:
        raise Violation(f"The content of {task.path} is not what its length and digest say.", session=task.session, task=task,
                        documents=[str(task.done), f"{len(answer.body)} bytes, {hashlib.sha256(answer.body).hexdigest()}"])
    if task.done["outcome"] == "succeeded" and task.kind == "download":
        task.content_read = Bytes.of(answer.body) if len(answer.body) < 100_000 else served_bytes(task)
    elif task.done["outcome"] == "httpError" and answer.body not in (task.resource.page(task.done["status"]), b""):
        raise Violation(f"The content of {task.path} is not the page of its status.", session=task.session, task=task,
                        documents=[repr(answer.body[:500])])
    return answer.body


def reread(client, session, number):
    """After the restart `number` the contents of two tasks are read again: all bytes, and those of one range."""
    able = [task for task in session.tasks.values() if task.done and task.done["content"] and not task.claimed
            and not task.destination]
    for step in range(min(2, len(able))):
        task = able[(number * 7919 + step) % len(able)]
        whole = read_content(client, task)
        if not whole:
            continue
        start = number * 104729 % len(whole)
        end = min(len(whole), start + 1 + number * 1299709 % 300_000)
        part = client.call("GET", f"{task.path}/content", fields={"Range": f"bytes={start}-{end - 1}"})
        if part.status != 206 or part.body != whole[start:end]:
            raise Violation(f"The bytes {start} to {end} of the content of {task.path} are not those of the whole "
                            f"({part.status}, {len(part.body)} bytes).", session=session, task=task)


def served_bytes(task):
    """The version of the resource that became the content."""
    for version in task.resource.served:
        if task.resource.content(version).digest == task.done["content"]["digest"]["value"]:
            return task.resource.content(version)
    return False


def check_destination(storm, task):
    """A file at a destination is whole or absent, and absent unless the task succeeded."""
    if not task.destination:
        return
    file = storm.service.files / task.destination
    others = [other for other in task.session.tasks.values() if other is not task and other.destination == task.destination]
    outcome = task.done and task.done["outcome"]
    exists = file.exists()
    if outcome == "succeeded" and not exists:
        raise Violation(f"{task.path} succeeded, and its destination {file} does not exist.", session=task.session, task=task)
    if not exists:
        return
    data = file.read_bytes()
    versions = {Bytes.of(data).digest == task.resource.content(version).digest for version in task.resource.served}
    pages = {task.resource.page(status) for status in task.resource.statuses}
    if True not in versions and data not in pages:
        raise Violation(f"The file at the destination {file} of {task.path} is not whole.", session=task.session, task=task)
    if outcome in ("cancelled", "failed") and not others:
        raise Violation(f"{task.path} ended {outcome}, and a file is at its destination {file}.", session=task.session,
                        task=task)


def audit(client, session):
    """Everything that a session guarantees after a restart: the session, every task, every event."""
    found = client.call("GET", session.path).json
    if found["acknowledgedSeq"] < session.acknowledged:
        raise Violation(f"Accepted is kept: {session.path} was acknowledged through {session.acknowledged}.", session=session,
                        documents=[json.dumps(found)])
    limit = session.configuration.get("bandwidthLimit")
    if found["configuration"]["bandwidthLimit"] != limit:
        raise Violation(f"Accepted is kept: the bandwidthLimit of {session.path} was confirmed as {limit}.",
                        session=session, documents=[json.dumps(found)])
    if session.description is not ANY and found["sessionDescription"] != session.description:
        raise Violation(f"Accepted is kept: the description of {session.path} was confirmed as {session.description!r}.",
                        session=session, documents=[json.dumps(found)])
    listed = list_tasks(client, session)
    for task in list(session.tasks.values()):
        if task.number not in listed:
            raise Violation(f"Accepted is kept: {task.path} was confirmed and is not listed.", session=session, task=task)
        examine(task, listed[task.number])
    for number in listed.keys() - session.tasks.keys():
        raise Violation(f"{session.path} has the task {number}, which no client created.", session=session,
                        documents=[json.dumps(listed[number])])
    launches = client.call("GET", f"/v1/launches?session={session.identifier}&limit=1000").json["items"]
    if len(still := [one for one in launches if one["state"] in OPEN_LAUNCHES]) > 1:
        raise Violation(f"{session.path} has {len(still)} open launches.", session=session, documents=[json.dumps(still)])
    read_events(client, session, after=0)
    for task in session.tasks.values():
        if task.done and session.log.outcomes.get(task.number) != task.done["outcome"]:
            raise Violation(f"G2: {task.path} ended {task.done['outcome']}, and its task.didComplete says "
                            f"{session.log.outcomes.get(task.number)}.", session=session, task=task)


def list_tasks(client, session):
    listed, cursor = {}, ""
    while cursor is not None:
        page = client.call("GET", f"{session.path}/tasks?limit=1000" + (f"&cursor={cursor}" if cursor else "")).json
        listed.update({task["taskIdentifier"]: task for task in page["items"]})
        cursor = page["nextCursor"]
    return listed


def read_events(client, session, after=None):
    """Reads to the end of the log. The outcomes of events that came after the list of tasks are judged the next time."""
    after = session.log.last if after is None else after
    while True:
        page = client.call("GET", f"{session.path}/events?after={after}&limit=1000").json
        session.log.take_page(page, after)
        if not page["items"]:
            return page
        after = page["items"][-1]["seq"]
