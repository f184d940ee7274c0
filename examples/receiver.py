#!/usr/bin/env python3
"""A receiver of urlsessiond's launches: verify, answer 2xx at once, drain the session's events, acknowledge, complete.
Each step may be repeated after a crash of either side: a launch that is not completed comes again. Environment: LISTEN,
INBOX, URLSESSIOND, API_KEY, WEBHOOK_SECRET (else those of `--dev`), or APP_FILE, the answer of POST /v1/apps, for both.
"""
import base64, hashlib, hmac, itertools, json, os, pathlib, re, shutil, time, urllib.error, urllib.parse, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
LISTEN, INBOX = os.environ.get("LISTEN", "127.0.0.1:9000"), pathlib.Path(os.environ.get("INBOX", "inbox")).resolve()
UNSAFE = "[\0-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffd]"  # controls, marks that turn text
DEV = {"apiKey": "dev", "webhook": {"secret": "whsec_" + base64.b64encode(bytes(32)).decode()}}

def app():
    return json.loads(pathlib.Path(os.environ["APP_FILE"]).read_text()) if "APP_FILE" in os.environ else DEV

def verify(headers, body):
    """Standard Webhooks v1: HMAC-SHA256 over id.timestamp.body, five minutes either way, any one signature matches."""
    key = base64.b64decode((os.environ.get("WEBHOOK_SECRET") or app()["webhook"]["secret"]).removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))
    is_new = abs(time.time() - int(headers["webhook-timestamp"])) <= 300
    if not is_new or not any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].encode().split()):
        raise ValueError("no signature matches, or it is too old")

def call(method, url, body=None, read=json.load):
    """One request and what `read` makes of its answer; again while the service restarts, for each may be repeated."""
    url = urllib.parse.urljoin(os.environ.get("URLSESSIOND", "http://127.0.0.1:8080"), url)
    headers = {"Authorization": "Bearer " + (os.environ.get("API_KEY") or app()["apiKey"]), "Content-Type": "application/json"}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    for pause in (0.5, 1, 2, 4, 8, None):
        try:
            return read(urllib.request.urlopen(request, timeout=90))  # closed where it is let go
        except OSError as problem:
            if pause is None or isinstance(problem, urllib.error.HTTPError) and problem.code not in (429, 503):
                raise
        time.sleep(pause)

def places(event):
    """Where its content may go, the best place first: docs/webhooks.md, "Names of saved files"."""
    for name in (event["data"]["suggestedFilename"], event.get("clientTaskId"), f"task-{event['taskIdentifier']}"):
        last = re.split(r"[/\\]", (name or "").rstrip("/\\"))[-1]
        if name := re.sub(UNSAFE, "", last).strip(" ").rstrip(" ."):
            break
    stem, ending = os.path.splitext(name := re.sub(r"^\.", "_", name.encode()[-200:].decode(errors="ignore")))
    yield from (INBOX / (f"{stem}-{number}{ending}" if number > 1 else name) for number in itertools.count(1))

def save(event):
    """One event. Doing it twice must do no harm, so a file gets its name only when it is whole and right."""
    task = f"/v1/sessions/{event['sessionIdentifier']}/tasks/{event.get('taskIdentifier')}"
    if event["type"] == "task.didFinishDownloading" and call("GET", task)["outcome"] == "succeeded":  # no error's page
        INBOX.mkdir(parents=True, exist_ok=True)
        part = INBOX / f".{event['sessionIdentifier']}-{event['taskIdentifier']}.part"
        with open(part, "wb") as file:
            call("GET", event["data"]["contentURL"], read=lambda body: file.seek(0) or shutil.copyfileobj(body, file))
        if not has(part, event["data"]["digest"]["value"]):
            raise ValueError(f"{part}: the content differs from its digest")
        for place in places(event):
            try:
                os.link(part, place)  # replaces nothing
            except FileExistsError:
                if not has(place, event["data"]["digest"]["value"]):
                    continue
            break
        part.unlink()
    print(json.dumps(event), flush=True)

def has(path, digest):
    return path.is_file() and hashlib.file_digest(path.open("rb"), "sha256").hexdigest() == digest

def drain(launch, handle):
    """All that is not acknowledged, in order, a page at a time. Fenced: an earlier handler of the launch gets 409."""
    session = f"/v1/sessions/{launch['sessionIdentifier']}"
    lease = call("POST", f"{session}/attachment", {"ttl": 300, "launchId": launch["launchId"], "takeover": True})
    while items := call("GET", launch["eventsURL"])["items"]:
        for event in items:
            handle(event)
        call("POST", f"{session}/events/ack", {"through": items[-1]["seq"], "epoch": lease["epoch"]})
    call("POST", launch["completionURL"], {"epoch": lease["epoch"]})

def serve(verify=verify, handle=save, fetch=lambda launch: "noData"):
    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            try:
                verify(self.headers, body := self.rfile.read(int(self.headers["Content-Length"])))
            except Exception as problem:
                return self.send_error(401, repr(problem))
            self.send_response(204)
            self.end_headers()  # launched; the rest takes its own time
            try:
                launch = json.loads(body)
                if launch["type"] == "session.handleEvents":
                    drain(launch["data"], handle)
                elif launch["type"] == "app.performFetch":
                    call("POST", launch["data"]["completionURL"], {"result": fetch(launch["data"])})
            except Exception as problem:  # not completed: the launch comes again
                print(json.dumps({"problem": repr(problem)}), flush=True)
    host, port = LISTEN.rsplit(":", 1)
    ThreadingHTTPServer((host, int(port)), Webhook).serve_forever()

if __name__ == "__main__":
    serve()
