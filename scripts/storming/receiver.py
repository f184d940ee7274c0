"""The apps' receiver of webhooks: verifies each signature, records each delivery, and answers well or badly."""
import base64
import collections
import contextlib
import hashlib
import hmac
import http.server
import json
import random
import threading
import time

from .failure import Violation


class Launch:
    """What the receiver knows of one launch."""

    def __init__(self, identifier, body):
        self.identifier, self.body, self.data = identifier, body, json.loads(body)["data"]
        self.deliveries, self.completed, self.inline = [], None, False

    @property
    def session(self):
        return self.data.get("sessionIdentifier")

    def describe(self):
        return f"{self.identifier}: {self.data}, deliveries {self.deliveries}, completed {self.completed}"


class Secrets:
    """The secrets of one app's webhook: the current one, and those that were replaced, each with its end."""

    def __init__(self, secret):
        self.current, self.since, self.previous, self.rotating = secret, 0, [], 0
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def rotation(self):
        """While a replacement is called for, deliveries may be signed with a secret that is not known yet."""
        with self.changed:
            self.rotating += 1
        try:
            yield
        finally:
            with self.changed:
                self.rotating -= 1
                self.changed.notify_all()

    def replace(self, secret, period):
        with self.changed:
            self.previous.append((self.current, time.time() + period))
            self.current, self.since = secret, time.time()

    def end_previous(self):
        with self.changed:
            self.previous = [(secret, min(until, time.time())) for secret, until in self.previous]

    def verdict(self, signatures, timestamp, sign):
        """What is wrong with a delivery, or None. `sign` makes the signature of a secret."""
        deadline = time.monotonic() + 30
        with self.changed:
            while self.rotating and sign(self.current) not in signatures and time.monotonic() < deadline:
                self.changed.wait(1)
            if sign(self.current) not in signatures and (timestamp > self.since + 1 or not any(
                    sign(secret) in signatures for secret, _ in self.previous)):
                return "is not valid"
            if any(timestamp > until + 15 and sign(secret) in signatures for secret, until in self.previous):
                return "is made with a secret that had ended"
        return None


class Receiver:
    """A receiver for all apps, at `/APP`."""

    def __init__(self, storm):
        self.storm, self.secrets, self.launches, self.lock = storm, {}, {}, threading.Lock()
        # The apps that get nothing at present, each with the time from which on a delivery is a fault.
        self.quiet, self.pings = {}, collections.Counter()
        self.by_session, self.delivered = {}, 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver.receive(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # The service was killed meanwhile.
        self.random = random.Random(f"{storm.seed}/receiver")
        threading.Thread(target=self.server.serve_forever, daemon=True, name="receiver").start()

    def know(self, app, secret):
        self.secrets[app] = Secrets(secret)

    def url(self, app):
        return f"http://127.0.0.1:{self.server.server_address[1]}/{app}"

    def receive(self, handler):
        length = int(handler.headers["Content-Length"])
        body = handler.rfile.read(length)
        if len(body) < length:  # The service was killed while it sent.
            handler.close_connection = True
            return
        app = handler.path.strip("/")
        try:
            self._verify(app, handler.headers, body)
            status, answer = self._record(app, handler.headers, body)
        except Violation as violation:
            self.storm.fail(violation)
            return
        if status is None:
            handler.close_connection = True
            return
        data = json.dumps(answer).encode() if answer is not None else b""
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _verify(self, app, fields, body):
        identifier, timestamp = fields["webhook-id"], fields["webhook-timestamp"]

        def sign(secret):
            key = base64.b64decode(secret.removeprefix("whsec_"))
            signed = hmac.new(key, f"{identifier}.{timestamp}.".encode() + body, hashlib.sha256).digest()
            return "v1," + base64.b64encode(signed).decode()

        wrong = self.secrets[app].verdict(fields["webhook-signature"].split(" "), int(timestamp), sign)
        if wrong:
            raise Violation(f"The signature of the webhook {identifier} of {app} {wrong}.", documents=[body.decode()])
        if abs(time.time() - int(timestamp)) > 120:
            raise Violation(f"The webhook {identifier} was not signed when it was sent: its timestamp is {timestamp}.")

    def _record(self, app, fields, body):
        """The status and the JSON of the response, None for a connection that is closed without one."""
        identifier, timestamp = fields["webhook-id"], int(fields["webhook-timestamp"])
        if json.loads(body)["type"] != "session.handleEvents":
            with self.lock:
                self.pings[app] += 1
            return 200, None
        if timestamp > self.quiet.get(app, timestamp):
            raise Violation(f"The launch {identifier} was delivered to {app}, whose webhook had been taken away.",
                            documents=[body.decode()])
        with self.lock:
            launch = self.launches.setdefault(identifier, Launch(identifier, body))
            self.delivered += 1
            self.by_session.setdefault((app, launch.session), {})[identifier] = launch
            launch.deliveries.append(timestamp)
            if launch.body != body:
                raise Violation(f"The body of the launch {identifier} changed between two attempts.",
                                documents=[launch.body.decode(), body.decode()])
            if launch.data["app"] != app:
                raise Violation(f"The receiver of {app} got a launch of {launch.data['app']}.")
            if launch.completed and timestamp > launch.completed + 5:
                raise Violation(f"The launch {identifier} was delivered {timestamp - launch.completed:.0f} s after its "
                                "completion was confirmed.", documents=[launch.describe()])
            choice = self.random.random()
        if self.storm.settling or choice < 0.6:
            return 202, None
        if choice < 0.8:
            launch.inline = True
            return 200, {"completed": True, "through": self.random.randint(0, launch.data["lastSeq"])}
        if choice < 0.85:
            time.sleep(1)
        if choice < 0.9:
            return None, None
        return (500, None) if choice < 0.99 else (410, None)

    def of_session(self, app, identifier):
        with self.lock:
            return list(self.by_session.get((app, identifier), {}).values())

    def forget(self, app, identifier):
        with self.lock:
            for launch in self.by_session.pop((app, identifier), {}):
                self.launches.pop(launch, None)
