#!/usr/bin/env python3
"""A receiver of urlsessiond's launches, with Python's standard library alone.

A launch says only "there is something to handle". So: verify the signature and answer 2xx at once, then drain the
session's events page by page, handle each (here: save the finished download below INBOX), acknowledge, and complete
the launch. Each step may be repeated after a crash of either side: an uncompleted launch comes again.

Environment: URLSESSIOND, API_KEY, WEBHOOK_SECRET (those of `urlsessiond serve --dev`), LISTEN, INBOX; or APP_FILE,
the answer of POST /v1/apps, for key and secret.
"""
import base64, hashlib, hmac, json, os, pathlib, queue, shutil, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin

INBOX = pathlib.Path(os.environ.get("INBOX", "inbox")).resolve()
DEV = {"apiKey": "dev", "webhook": {"secret": "whsec_" + base64.b64encode(bytes(32)).decode()}}


def app():
    return json.loads(pathlib.Path(os.environ["APP_FILE"]).read_text()) if "APP_FILE" in os.environ else DEV


def verify(headers, body):
    """Standard Webhooks v1: HMAC-SHA256 over id.timestamp.body, five minutes either way, any one signature matches."""
    secret = os.environ.get("WEBHOOK_SECRET") or app()["webhook"]["secret"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256"))
    if abs(time.time() - int(headers["webhook-timestamp"])) > 300:
        raise ValueError("too old or too new")
    if not any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].encode().split(b" ")):
        raise ValueError("no signature matches")


def call(method, url, body=None):
    key = os.environ.get("API_KEY") or app()["apiKey"]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    url = urljoin(os.environ.get("URLSESSIOND", "http://127.0.0.1:8080"), url)
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60)


def handle(event):
    """One event. Doing it twice must do no harm, so a file gets its name only when it is whole and right."""
    if event["type"] == "task.didFinishDownloading":
        place = (INBOX / (event.get("clientTaskId") or str(event["taskIdentifier"]))).resolve()
        if not place.is_relative_to(INBOX):
            raise ValueError(f"outside the inbox: {place}")
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + ".part")
        with call("GET", event["data"]["contentURL"]) as content, part.open("w+b") as file:
            shutil.copyfileobj(content, file, 1 << 18)
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != event["data"]["digest"]["value"]:
                raise ValueError(f"{place}: the content differs from its digest")
        part.replace(place)
    print(json.dumps(event), flush=True)


def drain(launch):
    """All that is not acknowledged yet, in order, a page at a time; then the launch is done."""
    while items := json.load(call("GET", launch["eventsURL"]))["items"]:
        for event in items:
            handle(event)
        call("POST", f"/v1/sessions/{launch['sessionIdentifier']}/events/ack", {"through": items[-1]["seq"]}).close()
    call("POST", launch["completionURL"], {}).close()


class Webhook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.server.verify(self.headers, body)
        except Exception as problem:
            return self.send_error(401, repr(problem))
        if json.loads(body)["type"] == "session.handleEvents":
            self.server.launches.put(json.loads(body)["data"])
        self.send_response(204)
        self.end_headers()


def serve(verify=verify):
    host, port = os.environ.get("LISTEN", "127.0.0.1:9000").rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Webhook)
    server.verify, server.launches = verify, queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        try:
            drain(server.launches.get())
        except (OSError, ValueError, KeyError) as problem:  # not completed: the launch comes again
            print(json.dumps({"problem": repr(problem)}), flush=True)


if __name__ == "__main__":
    serve()
