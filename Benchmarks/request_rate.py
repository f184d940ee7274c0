"""(d) Requests a second: wrk reads over kept-alive connections, and creates tasks one at a time. Long pages one by one."""

import json
import re
import subprocess
import time

from small_files import make_tree
from surroundings import Origin, Service, wait_until

SECONDS, THREADS, CONNECTIONS = 8, 2, 32
TASKS, PAGES = 1000, 30

CREATE = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"kind": "download", "state": "suspended", "request": {"url": "http://127.0.0.1:9/x"}}'
"""


def measured(url, script=None, seconds=SECONDS, connections=CONNECTIONS):
    """What wrk says: rate in requests a second, median and p99 as texts."""
    command = ["wrk", f"-t{THREADS}", f"-c{connections}", f"-d{seconds}s", "--latency", "-H", "Authorization: Bearer dev"]
    text = subprocess.run([*command, *(["-s", str(script)] if script else []), url],
                          check=True, capture_output=True, text=True).stdout
    if refused := re.search(r"(Non-2xx.*|Socket errors.*)", text):
        raise RuntimeError(refused.group(0))
    rate, median, p99 = (re.search(pattern, text).group(1) for pattern in
                         (r"Requests/sec:\s+([\d.]+)", r"\n\s+50%\s+(\S+)", r"\n\s+99%\s+(\S+)"))
    return float(rate), median, p99


def wrk(url, script=None, connections=CONNECTIONS, goal=""):
    rate, median, p99 = measured(url, script, connections=connections)
    return f"{rate:,.0f}/s", f"median {median}, p99 {p99}, {connections} connections{goal}"


def download(api, origin):
    """Fills a session with downloads that are done."""
    api("PUT", "/v1/sessions/done", {"configuration": {"sessionSendsLaunchEvents": False}})
    api("POST", "/v1/sessions/done/tasks/batch?return=minimal", {"tasks": [
        {"kind": "download", "request": {"url": f"{origin.url}/{n:05}.bin"}} for n in range(TASKS)]})
    wait_until(lambda: api("GET", "/v1/sessions/done")["taskCounts"]["succeeded"] == TASKS, 60, "the downloads")


def page(api, path):
    """The median time of a page, its length and its number of items."""
    times = []
    for _ in range(PAGES):
        began = time.monotonic()
        text = api("GET", path, raw=True)
        times.append(time.monotonic() - began)
    return sorted(times)[PAGES // 2], len(text), len(json.loads(text)["items"])


def run(scratch):
    script, tree = scratch / "create.lua", scratch / "tree"
    script.write_text(CREATE)
    make_tree(tree, TASKS)
    with Origin(scratch / "origin", tree) as origin, Service(scratch / "requests") as service:
        api, base = service.api(), f"http://127.0.0.1:{service.port}/v1/sessions"
        api("PUT", "/v1/sessions/bench", {})
        download(api, origin)
        yield ("(d) GET of a session", *wrk(f"{base}/bench"))
        yield ("(d) GET of a task", *wrk(f"{base}/done/tasks/1", connections=64, goal="; goal 35,000/s, p99 5 ms"))
        took, length, count = page(api, "/v1/sessions/done/events?after=0&limit=1000")
        yield (f"(d) page of {count:,} events", f"{length / took / 1e6:.0f} MB/s",
               f"{length:,} bytes in {took * 1000:.1f} ms, median of {PAGES}; goal 50 MB/s")
        took, length, count = page(api, "/v1/sessions/done/tasks?limit=1000")
        yield (f"(d) list of {count:,} tasks", f"{took * 1000:.1f} ms",
               f"{length:,} bytes, median of {PAGES}; goal 4 ms")
        yield ("(d) POST of a task, each committed", *wrk(f"{base}/bench/tasks", script))
