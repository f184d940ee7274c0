"""The story of scripts/cluster-demo --check: an app's sixty downloads, and a node that is killed in the middle.

The origin and the receiver of webhooks are this process. Everything is asked for through the balancer.
"""
import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNT = 60
SECRET = bytes(32)  # of the app `dev`
# Few slots, so that each node has all of its own taken before the half of the downloads that are held is over.
SLOTS = 8
FLAGS = ("--max-transfers", str(SLOTS))
# How long a silent node is waited for, and time to look and to take over.
TAKEOVER = 25


class Wrong(Exception):
    """Something is not as it should be."""


def expect(holds, what):
    if not holds:
        raise Wrong(what)


def wait_for(what, seconds, condition):
    """What the condition answers, once it is true."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        expect(time.monotonic() < deadline, f"waited {seconds} s in vain: {what}")
        time.sleep(0.1)
    return answer


class Server:
    """An HTTP server of this process, in threads."""

    def __init__(self, handler):
        handler.log_message = lambda *_: None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Origin(Server):
    """Has /0 to /59, of which every other one is of 1 MiB and stops in its middle until `gate` is set."""

    def __init__(self):
        self.contents = [os.urandom(1 << 20 if number % 2 else 1000 + 500 * number) for number in range(COUNT)]
        self.gate, self.requests, self.held = threading.Event(), [0] * COUNT, set()
        origin = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                number = int(self.path[1:])
                content = origin.contents[number]
                origin.requests[number] += 1
                half = len(content) // 2 if number % 2 else len(content)
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content[:half])
                    if half < len(content):
                        origin.held.add(number)
                        origin.gate.wait()
                        self.wfile.write(content[half:])
                except OSError:
                    pass  # the node was killed

        super().__init__(Handler)

    def __exit__(self, *arguments):
        self.gate.set()
        super().__exit__(*arguments)


class Receiver(Server):
    """Takes launches whose signature is right."""

    def __init__(self):
        self.launches, self.refused = [], []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
                signature = "v1," + base64.b64encode(hmac.digest(SECRET, signed, "sha256")).decode()
                is_right = signature in self.headers["webhook-signature"].split()
                launches = receiver.launches if is_right else receiver.refused
                launches.append((self.headers["webhook-id"], json.loads(body)))
                self.send_response(204 if is_right else 401)
                self.end_headers()

        super().__init__(Handler)


def call(url, method="GET", body=None, key="dev"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as refusal:
        raise Wrong(f"{method} {url}: {refusal.code} {refusal.read()[:500]!r}")
    except OSError as problem:
        raise Wrong(f"{method} {url}: {problem}")


def play(cluster):
    """Answers with what it saw, in one line."""
    began = time.monotonic()

    def ask(path, method="GET", body=None, key="dev"):
        answer = call(f"{cluster.url}{path}", method, body, key)
        return json.loads(answer) if answer else None

    def nodes():
        return {node["id"]: node["state"] for node in ask("/v1/nodes", key="dev-admin")["items"]}

    def counts():
        return ask("/v1/sessions/story")["taskCounts"]

    wait_for("all nodes are listed", 10, lambda: list(nodes().values()) == ["active"] * len(cluster.nodes))
    with Origin() as origin, Receiver() as receiver:
        ask("/v1/app", "PATCH", {"webhook": {"url": f"{receiver.url}/"}})
        ask("/v1/sessions/story", "PUT", {"configuration": {"httpMaximumConnectionsPerHost": 32}})
        ask("/v1/sessions/story/tasks/batch", "POST", {"tasks": [
            {"kind": "download", "clientTaskId": str(number), "request": {"url": f"{origin.url}/{number}"}}
            for number in range(COUNT)]})

        wait_for("all slots of all nodes are taken", 30, lambda: len(origin.held) == SLOTS * len(cluster.nodes))
        victim = cluster.nodes[0]
        name = victim.id
        cluster.kill(victim)
        killed, done = time.monotonic(), counts()["completed"]
        origin.gate.set()

        wait_for("the dead node goes from the list", TAKEOVER, lambda: name not in nodes())
        takeover = time.monotonic() - killed
        wait_for("all downloads are done", 30, lambda: counts()["completed"] >= COUNT)
        expect(counts()["succeeded"] == COUNT, f"not all succeeded: {counts()}")
        again = sum(requests - 1 for requests in origin.requests)
        expect(again == SLOTS, f"{SLOTS} downloads were cut off, and {again} begun again")

        launch = wait_for("the app is launched", 30, lambda: receiver.launches)[0][1]["data"]
        events = ask("/v1/sessions/story/events?limit=1000&attach=false")["items"]
        expect([event["seq"] for event in events] == list(range(1, len(events) + 1)), "the events have gaps")
        completed = sorted(event["taskIdentifier"] for event in events if event["type"] == "task.didComplete")
        expect(completed == list(range(1, COUNT + 1)), f"not each task completed once: {completed}")
        for number, content in enumerate(origin.contents):
            found = call(f"{cluster.url}/v1/sessions/story/tasks/{number + 1}/content")
            expect(hashlib.sha256(found).digest() == hashlib.sha256(content).digest(), f"task {number + 1} differs")
        call(launch["completionURL"], "POST", {})
        expect(not receiver.refused, f"webhooks with a wrong signature: {receiver.refused}")
        ids = {name for name, _ in receiver.launches}
        stored = [(one["launchId"], one["state"]) for one in ask("/v1/launches?session=story")["items"]]
        expect(len(ids) == 1 and stored == [(launch["launchId"], "completed")], f"launches: {ids}, {stored}")
        return (
            f"{len(cluster.nodes)} nodes, one killed when {done} of {COUNT} downloads were done: taken over after {takeover:.1f} s, "
            f"its {again} begun again; each done once, all contents right, events 1 to {len(events)}, one launch; {time.monotonic() - began:.0f} s")
