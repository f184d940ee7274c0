"""What a worker knows of its sessions and tasks: what was confirmed, and what was asked for without an answer yet."""
import collections
import threading
import time

from .events import EventLog


# A value that is not known, because a change of it is not confirmed yet.
ANY = object()


class App:
    """An app with its key; several workers share one. `spaces` has the protection spaces of each origin, by its port."""

    def __init__(self, identifier, key, spaces, webhook):
        self.identifier, self.key, self.spaces, self.webhook = identifier, key, spaces, webhook
        self.lock = threading.Lock()  # Of changes of the webhook, which workers share.

    def space(self, realm):
        """The protection space of a question."""
        return next(space for spaces in self.spaces.values() for space in spaces if space.realm == realm)


class TaskModel:
    """One task. `creation` is the JSON it was created from."""

    def __init__(self, session, resource, creation, kind, body=None):
        self.session, self.resource, self.creation, self.kind, self.body = session, resource, creation, kind, body
        self.number, self.done, self.claimed, self.content_read = None, None, False, False
        # Whether a suspension was confirmed and nothing has resumed the task since.
        self.suspended = creation.get("state") == "suspended"
        # Whether the task may ever have been claimed.
        self.started = not self.suspended
        # None, "asked" where the outcome may be another, "confirmed" where it must be `cancelled`.
        self.cancel = None
        self.plausible_errors, self.expected = set(), {}
        self.is_metalink = False
        self.is_segmented = creation.get("segments", 1) != 1 or bool(creation.get("mirrors"))
        self.history = collections.deque(maxlen=40)

    @property
    def path(self):
        return f"{self.session.path}/tasks/{self.number}"

    @property
    def destination(self):
        """The path below the root, or None."""
        return (self.creation.get("destination") or {}).get("path")

    def traits(self):
        """The rarer of its properties, for the count of what a storm came to."""
        found = {"https": self.creation["request"]["url"].startswith("https"), "Metalink": self.is_metalink,
                 "proxy": self.session.configuration.get("proxy"), "draft": self.resource.draft,
                 "acceptable": self.done and self.done["status"] in self.resource.acceptable,
                 "mirrors": self.creation.get("mirrors"), "pieces": self.creation.get("pieces"),
                 "resume data": self.creation.get("resumeData")}
        return [name for name, has in found.items() if has]

    def note(self, what):
        self.history.append(f"{time.time():.3f} {what}")
        self.session.note(f"task {self.number}: {what}")


class SessionModel:
    """One session of one worker."""

    def __init__(self, identifier, app, configuration, receiver):
        self.identifier, self.app, self.configuration, self.receiver = identifier, app, configuration, receiver
        self.tasks, self.log, self.acknowledged, self.incarnation = {}, EventLog(self), 0, 1
        self.description, self.bodies, self.resources = ANY, [], []
        self.state, self.created, self.next_path, self.may_cancel = "active", time.monotonic(), 0, False
        self.audited, self.budget, self.prefix = 0, 0, identifier
        self.history = collections.deque(maxlen=400)

    @property
    def path(self):
        return f"/v1/sessions/{self.identifier}"

    def launches(self):
        return self.receiver.of_session(self.app.identifier, self.identifier)

    def unfinished(self):
        return [task for task in self.tasks.values() if task.done is None]

    def note(self, what):
        self.history.append(f"{time.time():.3f} {what}")
