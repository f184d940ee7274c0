"""A client of the API that repeats each call until it knows the outcome, through every restart of the service."""
import http.client
import itertools
import json
import time

from .failure import Violation

_keys = itertools.count(1)


class Response:
    """A response, and whether an earlier try of the same call broke (`uncertain`): its effect may have come before."""

    def __init__(self, status, fields, body, uncertain):
        self.status, self.fields, self.body, self.uncertain = status, fields, body, uncertain
        self._json = None

    @property
    def json(self):
        if self._json is None:
            self._json = json.loads(self.body)
        return self._json

    @property
    def code(self):
        """The problem's code."""
        return self.json.get("code") if self.status >= 400 and self.body else None


class Client:
    """The key of one app, or the operator's."""

    # Seconds for one request: generous, because the machine may be slow.
    patience = 90

    def __init__(self, storm, key):
        self.storm, self.service, self.key = storm, storm.service, key

    def call(self, method, path, body=None, *, raw=None, kind="application/json", fields=None, keyed=None, allowed=()):
        """The response below 400, or one whose status or code is in `allowed`. Everything else is a violation.

        A POST gets an Idempotency-Key unless `keyed` is False, so that repeating it does nothing twice.
        """
        fields = {"Authorization": f"Bearer {self.key}", **(fields or {})}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            fields["Content-Type"] = kind
        if method == "POST" and keyed is not False:
            fields.setdefault("Idempotency-Key", keyed or f"{self.storm.seed}-{next(_keys)}")
        uncertain = False
        while True:
            self.storm.check_running()
            self.service.ready.wait(1)
            generation = self.service.generation
            try:
                status, answer, content = self._once(method, path, data, fields)
            except ConnectionRefusedError:
                self._judge_break(generation, method, path, "refused the connection")
                continue
            except (OSError, http.client.HTTPException) as error:
                uncertain = True
                self._judge_break(generation, method, path, f"broke: {error!r}")
                continue
            response = Response(status, answer, content, uncertain)
            if status == 503 or response.code == "idempotency-in-progress":
                self._judge_delay(response, method, path)
                uncertain = True
                continue
            if status < 400 or status in allowed or response.code in allowed:
                self.storm.operations += 1
                return response
            raise Violation(f"{method} {path} answered {status}.",
                            documents=[f"sent: {(data or b'')[:2000]!r}", f"uncertain: {uncertain}", content[:2000].decode(errors="replace")])

    def stream(self, path, seconds):
        """The events of a stream until it ends, at most for so long after the last one. What ends it is no fault: the
        service may have been stopped."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=seconds)
        deadline = time.monotonic() + seconds
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}", "Accept": "text/event-stream"})
            answer = connection.getresponse()
            while answer.status == 200 and time.monotonic() < deadline and (line := answer.readline()):
                if line.startswith(b"data:") and line.endswith(b"\n"):
                    yield json.loads(line[5:])
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _once(self, method, path, data, fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=self.patience)
        try:
            connection.request(method, path, data, fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def _judge_break(self, generation, method, path, what):
        """A connection may break because the service was stopped, and for no other reason."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            self.storm.check_running()
            if self.service.disturbed.is_set() or self.service.generation != generation:
                time.sleep(0.02)
                return
            self.service.check_alive()
            time.sleep(0.02)
        raise Violation(f"{method} {path} {what}, and the service was running.")

    def _judge_delay(self, response, method, path):
        documented = ("shutting-down", "store-unavailable", "rate-limited", "idempotency-in-progress")
        if method != "HEAD" and response.code not in documented:  # The response to a HEAD has no body.
            raise Violation(f"{method} {path} answered 503 with the code {response.code}.", documents=[response.body.decode()])
        time.sleep(0.05)
