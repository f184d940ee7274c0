#!/usr/bin/env python3
"""A receiver of urlsessiond's launches: verify, answer 2xx at once, drain the session's events, acknowledge, complete.
Each step may be repeated after a crash of either side: a launch that is not completed comes again. Environment: LISTEN,
INBOX, URLSESSIOND, API_KEY, WEBHOOK_SECRET (else those of `--dev`), or APP_FILE, the answer of POST /v1/apps, for both.
"""
import base64, hashlib, hmac, json, os, pathlib, shutil, time, urllib.error, urllib.parse, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
LISTEN, INBOX = os.environ.get("LISTEN", "127.0.0.1:9000"), pathlib.Path(os.environ.get("INBOX", "inbox")).resolve()
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

def save(event):
    """One event. Doing it twice must do no harm, so a file gets its name only when it is whole and right."""
    if event["type"] == "task.didFinishDownloading":
        place = (INBOX / (event.get("clientTaskId") or str(event["taskIdentifier"]))).resolve()
        (INBOX / place.relative_to(INBOX)).parent.mkdir(parents=True, exist_ok=True)  # ValueError outside of INBOX
        with open(f"{place}.part", "w+b") as file:
            call("GET", event["data"]["contentURL"], read=lambda body: file.seek(0) or shutil.copyfileobj(body, file))
            if file.seek(0) or hashlib.file_digest(file, "sha256").hexdigest() != event["data"]["digest"]["value"]:
                raise ValueError(f"{place}: the content differs from its digest")
        os.replace(f"{place}.part", place)
    print(json.dumps(event), flush=True)

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
