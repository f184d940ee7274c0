"""What a service in a root of its own must show: it becomes healthy, transfers, and stops."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from debian_root import PATH, say

ROOT = pathlib.Path(__file__).resolve().parent.parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(method, url, key, body=None):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
        return answer.read()


def send_a_transfer(admin, url, origin, expected):
    """As an operator and an app would, without --dev: with the operator's key, and an app of our own."""
    app = json.loads(call("POST", f"{url}/v1/apps", admin, {"identifier": "com.example.app"}))
    key, session = app["apiKey"], f"{url}/v1/sessions/com.example.bg"
    call("PUT", session, key, {})
    created = json.loads(call("POST", f"{session}/tasks", key, {"kind": "download", "request": {"url": origin}}))
    number = created["taskIdentifier"]
    task = json.loads(call("GET", f"{session}/tasks/{number}?wait=30", key))
    if task["outcome"] != "succeeded" or call("GET", f"{session}/tasks/{number}/content", key) != expected:
        sys.exit(f"the transfer did not succeed: {task}")
    say(f"a download of {len(expected):,} bytes succeeded and reads back the same")


def serve_and_check(root, command, check, environment, ids, scratch):
    """The command serves in the root until SIGTERM; `check` is its health check."""
    port, origin_port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    # A health check asks the port of the settings; ours listens elsewhere, so it is told where.
    settings = {"PATH": PATH, **environment, "URLSESSIOND_LISTEN": f"127.0.0.1:{port}", "URLSESSIOND_PUBLIC_URL": url,
                "URLSESSIOND_ALLOW_EGRESS": "127.0.0.0/8"}
    expected = os.urandom(3_000_000)
    (scratch / "tree").mkdir(parents=True)
    (scratch / "tree/file.bin").write_bytes(expected)
    origin = [str(ROOT / "scripts/origin")]
    subprocess.run([*origin, "start", str(scratch / "origin"), str(scratch / "tree"), str(origin_port)], check=True)
    process = subprocess.Popen(root.inside(command, ids), env=settings, stdin=subprocess.DEVNULL, cwd="/")
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(root.inside(check, ids), env=settings, timeout=30).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"not healthy; exit status {process.poll()}")
            time.sleep(0.2)
        say("healthy, as user", ids)
        admin = root.at("/var/lib/urlsessiond/admin.key").read_text().strip()
        send_a_transfer(admin, url, f"http://127.0.0.1:{origin_port}/file.bin", expected)
        process.send_signal(signal.SIGTERM)
        status = process.wait(20)
        if status:
            sys.exit(f"SIGTERM: exit status {status}")
        say("SIGTERM: exit status 0")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        subprocess.run([*origin, "stop", str(scratch / "origin")])
