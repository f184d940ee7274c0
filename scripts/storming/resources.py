"""What an origin offers under one path: bytes in versions, a script of misdeeds, and a record of each exchange."""
import collections
import gzip
import itertools
import threading
import time

from .content import Bytes
from .drafts import DraftUpload

_numbers = itertools.count(1)


class Exchange:
    """One request at an origin, and what the origin read of its body."""

    def __init__(self, resource, connection, method, target, fields):
        self.number, self.began = next(_numbers), time.time()
        self.resource, self.connection, self.method, self.target = resource, connection, method, target
        self.fields = {name: fields[name] for name in ("content-length", "transfer-encoding", "expect", "range", "if-range",
                                                       "upload-complete", "upload-offset") if name in fields}
        self.authorized_with = fields.get("authorization", "").split(" ")[0] or None
        self.misdeed, self.status, self.received, self.same, self.whole = None, None, 0, True, False
        self.ended_at = 0
        # Where the bytes of an append begin; whether they belong to a resumable upload, which counts them itself.
        self.base, self.resumable = 0, False

    def take(self, piece):
        """Compares what has arrived with the body of the task, byte for byte."""
        expected = self.resource.body
        start = self.base + self.received
        if expected is None or expected.slice(start, start + len(piece)) != piece:
            self.same = False
        self.received += len(piece)

    @property
    def exact(self):
        """Whether the origin received the body of the task entirely and nothing else."""
        expected = self.resource.body
        return self.whole and self.same and self.received == (expected.length if expected else 0)

    def __str__(self):
        body = "body exact" if self.exact else f"body {'whole' if self.whole else 'cut'}, {'same' if self.same else 'OTHER'}"
        return (f"{self.began:.3f} connection {self.connection}: {self.method} {self.target} {self.fields} "
                f"authorization {self.authorized_with}, {self.misdeed or 'ok'} -> {self.status}, received {self.received}, "
                f"{body}{'' if self.ended_at else ', not ended'}")


class Resource:
    """A path of its own for each task. A script has one misdeed for each request; after it the resource behaves as `final`."""

    def __init__(self, path, length, *, body=None, script=(), final=200, authentication=None, validator="strong",
                 ranges=True, coding=None, early=False, draft=None):
        self.path, self.length, self.body, self.script, self.final = path, length, body, list(script), final
        self.authentication, self.validator, self.ranges, self.coding = authentication, validator, ranges, coding
        # `draft` is True where the draft for resumable uploads is spoken; `acceptable` are statuses that are no error.
        self.early, self.draft, self.uploads, self.acceptable = early, draft, {}, set()
        self.version, self.calm, self.lock = 1, False, threading.Lock()
        self.log = collections.deque(maxlen=150)
        self.statuses, self.misdeeds, self.served = set(), set(), set()
        # How often the whole body came with an answer below 400, and how many tasks of this resource succeeded: a retry of
        # a completed task has the same resource, and must have sent the body again.
        self.received_exactly = self.succeeded = 0

    def content(self, version=None):
        version = version or self.version
        plain = Bytes(self.length, f"{self.path}#{version}")
        if self.coding == "gzip":
            return Bytes.of(gzip.compress(plain.all(), 1, mtime=0))
        return plain

    def tag(self):
        return f'"{self.path.strip("/").replace("/", "-")}.{self.version}"'

    def page(self, status):
        """The page of a status that is no success."""
        return f"{status} at {self.path}\n".encode()

    def next_misdeed(self):
        """The misdeed of this request, or None. A calm resource has none, so that each task can end."""
        with self.lock:
            return None if self.calm or not self.script else self.script.pop(0)

    def begin_upload(self):
        """A new upload resource."""
        with self.lock:
            upload = DraftUpload(self, next(_numbers))
            self.uploads[upload.path] = upload
            return upload

    def redeem(self, upload):
        """The bytes of a complete upload count once."""
        with self.lock:
            self.received_exactly += upload.same and not upload.redeemed
            upload.redeemed = True

    def note(self, exchange, status):
        exchange.status = status
        with self.lock:
            self.statuses.add(status)

    def end(self, exchange):
        with self.lock:
            exchange.ended_at = time.time()
            good = (exchange.status or 500) < 400 or exchange.status in self.acceptable
            self.received_exactly += exchange.exact and good and not exchange.resumable

    def open(self, exchange):
        with self.lock:
            self.log.append(exchange)

    def turns(self, since, with_ends):
        """How many requests began here since then, and `with_ends` also how many ended: segments fall back at their end."""
        with self.lock:
            return sum((exchange.began > since) + (with_ends and exchange.ended_at > since) for exchange in self.log)

    def describe(self):
        lines = [f"{self.path}: {self.length} bytes, version {self.version}, final {self.final}, validator {self.validator}, "
                 f"ranges {self.ranges}, coding {self.coding}, authentication {self.authentication}, body {self.body}, "
                 f"calm {self.calm}, script left {self.script}"]
        return "\n".join(lines + ["  " + str(exchange) for exchange in list(self.log)])


class Registry:
    """The resources of all origins, by path."""

    def __init__(self):
        self.resources = {}

    def add(self, resource):
        self.resources[resource.path] = resource
        return resource

    def find(self, path):
        """The resource at a path, or that of an upload resource below it."""
        return self.resources.get(path.partition("/up/")[0])

    def forget(self, resource):
        self.resources.pop(resource.path, None)
