"""The apps' receiver of webhooks: verifies each signature, records each delivery, and answers well or badly."""
import base64
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


class Receiver:
    """A receiver for all apps, at `/APP`."""

    def __init__(self, storm):
        self.storm, self.secrets, self.launches, self.lock = storm, {}, {}, threading.Lock()
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
        key = base64.b64decode(self.secrets[app].removeprefix("whsec_"))
        signed = hmac.new(key, f"{identifier}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(signed).decode()
        if expected not in fields["webhook-signature"].split(" "):
            raise Violation(f"The signature of the webhook {identifier} of {app} is not valid.", documents=[body.decode()])
        if abs(time.time() - int(timestamp)) > 120:
            raise Violation(f"The webhook {identifier} was not signed when it was sent: its timestamp is {timestamp}.")

    def _record(self, app, fields, body):
        """The status and the JSON of the response, None for a connection that is closed without one."""
        identifier, timestamp = fields["webhook-id"], int(fields["webhook-timestamp"])
        if json.loads(body)["type"] != "session.handleEvents":
            return 200, None
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
        return (None, None) if choice < 0.9 else (500, None)

    def of_session(self, app, identifier):
        with self.lock:
            return list(self.by_session.get((app, identifier), {}).values())

    def forget(self, app, identifier):
        with self.lock:
            for launch in self.by_session.pop((app, identifier), {}):
                self.launches.pop(launch, None)
