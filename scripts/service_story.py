"""What programs in a root of their own must show: the service becomes healthy, transfers and stops, and the README's first
story comes true."""
import json
import os
import pathlib
import re
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


def version():
    return re.search(r'"(\d[^"]*)"', (ROOT / "Sources/Wire/Release.swift").read_text())[1]


def check_versions(root):
    for program in "urlsessiond", "urlsession":
        said = root.run([program, "--version"]).strip()
        if said != f"{program} {version()}":
            sys.exit(f"{program} --version says {said}, and the release is {version()}")
    say("both programs are of version", version())


def tell_first_story(root, command, environment, ids, origin, expected):
    """README, "Run" and "The first transfer", with the programs of the root: a receiver is launched and saves."""
    home, port = "/tmp/first", free_port()
    root.run(f"install -d -o {ids.replace(':', ' -g ')} {home}")
    settings = {"PATH": PATH, **environment, "HOME": home, "URLSESSIOND_LISTEN": f"127.0.0.1:{port}",
                "URLSESSION_URL": f"http://127.0.0.1:{port}"}

    def start(*words):
        return subprocess.Popen(root.inside(words, ids, home), env=settings, stdin=subprocess.DEVNULL, cwd="/",
                                stdout=subprocess.DEVNULL)

    def urlsession(*words):
        return root.run(["urlsession", *words], settings, ids=ids, folder=home)

    def until(what, condition):
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"the first story: {what} does not come: {urlsession('launches')}")
            time.sleep(0.2)

    def listens(port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    hook, place = free_port(), root.at(home)
    service = start(*command, "--dev", "--data-dir", f"{home}/data")
    receiver = None
    try:
        until("the service", lambda: listens(port))
        urlsession("get", origin)
        if (place / "file.bin").read_bytes() != expected:
            sys.exit("urlsession get saved something else")
        receiver = start("urlsession", "receive", "--save", "inbox", "--listen", f"127.0.0.1:{hook}")
        until("the receiver", lambda: listens(hook))
        urlsession("open", "first")
        urlsession("get", "--detach", "--session", "first", origin)
        until("the launch", lambda: "\tcompleted\t" in urlsession("launches"))
        if (place / "inbox/file.bin").read_bytes() != expected or "succeeded" not in urlsession("explain", "first", "1"):
            sys.exit("the receiver saved something else")
    finally:
        for process in filter(None, (receiver, service)):
            process.send_signal(signal.SIGTERM)
            process.wait(20)
    say("the README's first story: a download, and a launch whose receiver saved it")


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
        check_versions(root)
        tell_first_story(root, command, environment, ids, f"http://127.0.0.1:{origin_port}/file.bin", expected)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        subprocess.run([*origin, "stop", str(scratch / "origin")])
