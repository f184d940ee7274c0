"""An origin's part of the IETF draft for resumable uploads, in its interop versions 8, 6 and 3."""
import threading
import time

from .failure import Violation
from .wire import Gone

VERSION = "upload-draft-interop-version"


class DraftUpload:
    """An upload resource: how many bytes it has, and whether they are those of the task's body."""

    def __init__(self, resource, number):
        self.resource, self.path = resource, f"{resource.path}/up/{number}"
        self.offset, self.same, self.complete, self.gone, self.redeemed = 0, True, False, False, False
        self.lock = threading.Lock()  # Of the request that appends.


class Drafting:
    """What `Answering` does with requests of the draft."""

    def _draft(self, misdeed, argument):
        """The response to a request of the draft; None where it is handled as any other."""
        version = self.head.fields.get(VERSION)
        if self.resource.draft is None or version is None:
            return None
        if "/up/" in self.head.path:
            return self._at_upload(version, misdeed, argument)
        if misdeed not in (None, "cut_upload", "reset", "status", "empty", "slow_upload", "lose"):
            return None
        upload = self.resource.begin_upload()
        self.origin.storm.meet(f"draft {version} begun")
        with upload.lock:
            self._announce(version, upload)
            return self._receive(version, upload, misdeed, argument)

    def _announce(self, version, upload):
        self.wire.send(f"HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: {version}\r\n"
                       f"Location: {upload.path}\r\n\r\n".encode())

    def _at_upload(self, version, misdeed, argument):
        upload = self.resource.uploads.get(self.head.path)
        if upload is None or upload.gone or misdeed == "lose":
            if upload is not None:
                upload.gone = True
            self._read()
            return self._answer(404, {}, self.resource.page(404))
        # A connection that the service has given up may still be read.
        if not upload.lock.acquire(timeout=20):
            return self._answer(409, {"Upload-Offset": upload.offset})
        try:
            if self.head.method == "HEAD":
                return self._tell(version, upload)
            if self.head.method == "DELETE":
                upload.gone = True
                self.origin.storm.meet("draft deleted")
                return self._answer(204, {})
            return self._append(version, upload, misdeed, argument)
        finally:
            upload.lock.release()

    def _tell(self, version, upload):
        fields = {"Upload-Offset": upload.offset, "Cache-Control": "no-store", **completeness(version, upload.complete)}
        if upload.complete:
            self.origin.storm.meet("draft complete by HEAD")
            self.resource.redeem(upload)
        return self._answer(204, fields)

    def _append(self, version, upload, misdeed, argument):
        self.origin.storm.meet(f"draft append at {'0' if upload.offset == 0 else 'more'}")
        if self.head.method != "PATCH":
            raise Violation(f"The upload resource {upload.path} got a {self.head.method}.", resource=self.resource)
        if version != "3" and self.head.fields.get("content-type") != "application/partial-upload":
            raise Violation(f"An append to {upload.path} has the type {self.head.fields.get('content-type')}.",
                            resource=self.resource)
        if upload.complete or self.head.fields.get("upload-offset") != str(upload.offset):
            self._read()
            return self._answer(409, {"Upload-Offset": upload.offset, **completeness(version, upload.complete)})
        self.exchange.base = upload.offset
        if misdeed in ("cut_upload", "reset", "status", "empty", "slow_upload"):
            return self._receive(version, upload, misdeed, argument)
        return self._receive(version, upload, None, None)

    def _receive(self, version, upload, misdeed, argument):
        """Reads the bytes of a creation or an append, keeps what it got, and answers when the upload is complete."""
        self.exchange.resumable, total = True, self.resource.body.length
        stop = int(argument * (total - upload.offset)) if misdeed in ("cut_upload", "reset") else None
        try:
            self._read(until=stop, pause=0.002 if misdeed == "slow_upload" else 0)
        finally:
            upload.offset += self.exchange.received
            upload.same = upload.same and self.exchange.same
        if upload.offset > total:
            raise Violation(f"The upload resource {upload.path} got {upload.offset} bytes of {total}.", resource=self.resource)
        if misdeed == "cut_upload":
            return False
        if misdeed == "reset":
            self.wire.reset()
            raise Gone
        if misdeed == "status":
            return self._answer(argument, completeness(version, False), self.resource.page(argument))
        upload.complete = upload.offset == total
        if misdeed == "empty":  # The response is lost: a later `HEAD` tells that the upload is complete.
            return False
        if not upload.complete:
            return self._answer(400, {}, self.resource.page(400))
        if misdeed == "slow_upload":
            time.sleep(argument)
        final = self.resource.final
        status = self.random.choice([200, 201, 204]) if final == 200 else final
        if status < 400 or status in self.resource.acceptable:
            self.resource.redeem(upload)
        return self._answer(status, completeness(version, True), b"" if status == 204 else self.resource.page(status))


def completeness(version, complete):
    if version == "3":
        return {"Upload-Incomplete": "?0" if complete else "?1"}
    return {"Upload-Complete": "?1" if complete else "?0"}
