"""The log of a session's events as a client has read it, and what its order guarantees."""
import collections
import datetime
import hashlib
import json
import time

from .failure import Violation

FINISHED, METRICS, COMPLETE = "task.didFinishDownloading", "task.didFinishCollectingMetrics", "task.didComplete"
SENT, WRITTEN = "task.didSendBodyData", "task.didWriteData"
PROGRESS = {SENT: ("bytesSent", "totalBytesSent", "totalBytesExpectedToSend"),
            WRITTEN: ("bytesWritten", "totalBytesWritten", "totalBytesExpectedToWrite")}
ORDER = {FINISHED: 1, METRICS: 2, COMPLETE: 3}


def fingerprint(event):
    """What may never change of a stored event. Members such as `expiresAt` or `taskCount` tell of the time of reading."""
    data = event["data"]
    kept = {name: data[name] for name in ("outcome", "error", "digest", "length", "questionId", "fileOffset", "launchId")
            if name in data}
    return hashlib.sha256(json.dumps([event["seq"], event["type"], event.get("taskIdentifier"), event["occurredAt"], kept],
                                     sort_keys=True).encode()).digest()[:8]


class EventLog:
    """Events by `seq`, as fingerprints, and how far the events of each task are."""

    def __init__(self, session):
        self.session, self.prints, self.stages = session, {}, {}
        self.last, self.completions, self.invalid, self.finished_launches = 0, {}, False, {}
        self.outcomes, self.questions = {}, []

    def refuse(self, sentence, event):
        raise Violation(sentence, session=self.session, task=self.session.tasks.get(event.get("taskIdentifier")),
                        documents=[json.dumps(event)])

    def take(self, event):
        """The next event in order, or one that was read before."""
        seq, kind, name = event["seq"], event["type"], self.session.identifier
        if seq in self.prints:
            if self.prints[seq] != fingerprint(event):
                self.refuse(f"G1: the event {seq} of the session {name} is not the one that was read before.", event)
            return
        if seq != self.last + 1:
            self.refuse(f"G1: after the event {self.last} of the session {name} came {seq}.", event)
        if self.invalid:
            self.refuse(f"G7: an event followed session.didBecomeInvalid of {name}.", event)
        self.last, self.prints[seq] = seq, fingerprint(event)
        if kind.startswith("task."):
            self._take_of_task(event)
        elif kind == "session.didBecomeInvalid":
            self.invalid = True
        elif kind == "session.didFinishEvents":
            self._take_finish(event)

    def _take_of_task(self, event):
        task, stage = event["taskIdentifier"], ORDER.get(event["type"], 0)
        before = self.stages.get(task, 0)
        if before == 3:
            rule = "G5: a second task.didComplete" if stage == 3 else "G4: an event"
            self.refuse(f"{rule} followed task.didComplete of the task {task} of {self.session.identifier}.", event)
        if stage < before or (stage == before and stage > 0):
            self.refuse(f"G3: {event['type']} of the task {task} of {self.session.identifier} came out of order.", event)
        self.stages[task] = stage
        if stage == 3:
            if before != 2:
                self.refuse(f"G3: no metrics came before task.didComplete of the task {task}.", event)
            self.completions[task] = event["seq"]
            self.outcomes[task] = event["data"]["outcome"]
        if event["type"] in ("task.didReceiveChallenge", "task.willBeginDelayedRequest"):
            self.questions.append(event["data"]["questionId"])

    def _take_finish(self, event):
        launch = event["data"]["launchId"]
        if launch in self.finished_launches:
            self.refuse(f"The launch {launch} was completed twice.", event)
        self.finished_launches[launch] = event["seq"]
        for known in self.session.launches():
            if known.identifier == launch and known.data["lastSeq"] >= event["seq"]:
                self.refuse(f"G6: session.didFinishEvents of {launch} precedes an event that its launch covers.", event)

    def take_page(self, page, after):
        """A page of `GET …/events?after=`: nothing may be missing or come twice."""
        expected = after
        for event in page["items"]:
            expected += 1
            if event["seq"] != expected:
                self.refuse(f"G1: a page after {after} of {self.session.identifier} has {event['seq']} where {expected} "
                           "belongs.", event)
            self.take(event)
        if page["lastSeq"] < self.last:
            raise Violation(f"The session {self.session.identifier} had {self.last} events and has {page['lastSeq']}.",
                            session=self.session)


class Stream:
    """What one stream shows: nothing of a task follows its task.didComplete, live or kept, and progress is in order."""

    def __init__(self, log):
        self.log, self.began, self.complete = log, time.time(), set(log.completions)
        self.totals, self.falls = {}, collections.Counter()

    def take(self, event):
        """An event of the stream, in the order of its arrival."""
        task = event.get("taskIdentifier")
        if task in self.complete:
            self.log.refuse(f"G4: {event['type']} followed task.didComplete of the task {task} in a stream.", event)
        if event["type"] == COMPLETE:
            self.complete.add(task)
        if event["seq"] is None:
            at = datetime.datetime.fromisoformat(event["occurredAt"].replace("Z", "+00:00")).timestamp()
            if at < self.began - 0.01:
                self.log.refuse(f"G8: a live event of {event['occurredAt']} came in a stream that began later.", event)
        if event["type"] in PROGRESS:
            self._take_progress(self.log.session.tasks[task], event)

    def _take_progress(self, task, event):
        """Totals rise. One falls where a request was sent again, so at most once for each request that the origin saw."""
        step, total, expected = (event["data"][name] for name in PROGRESS[event["type"]])
        if not 0 < step <= total or (expected is not None and event["type"] == WRITTEN and total > expected):
            self.log.refuse(f"G8: progress of {step} bytes to {total} of {expected}.", event)
        key = (task.number, event["type"])
        if total < self.totals.get(key, 0):
            self.falls[key] += 1
            turns = task.resource.turns(self.began - 5, task.is_segmented)  # What the service shows may be a little old.
            if self.falls[key] > turns:
                self.log.refuse(f"G8: the total of {task.path} fell from {self.totals[key]} to {total}, and its origin saw "
                                f"{turns} requests meanwhile.", event)
        self.totals[key] = total
