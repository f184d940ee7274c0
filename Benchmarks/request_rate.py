"""(d) Requests a second: wrk reads one session over kept-alive connections, and creates tasks one at a time."""

import re
import subprocess

from surroundings import Service

SECONDS, THREADS, CONNECTIONS = 8, 2, 32

CREATE = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"kind": "download", "state": "suspended", "request": {"url": "http://127.0.0.1:9/x"}}'
"""


def measured(url, script=None, seconds=SECONDS):
    """What wrk says: rate in requests a second, median and p99 as texts."""
    command = ["wrk", f"-t{THREADS}", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-H", "Authorization: Bearer dev"]
    text = subprocess.run([*command, *(["-s", str(script)] if script else []), url],
                          check=True, capture_output=True, text=True).stdout
    if refused := re.search(r"(Non-2xx.*|Socket errors.*)", text):
        raise RuntimeError(refused.group(0))
    rate, median, p99 = (re.search(pattern, text).group(1) for pattern in
                         (r"Requests/sec:\s+([\d.]+)", r"\n\s+50%\s+(\S+)", r"\n\s+99%\s+(\S+)"))
    return float(rate), median, p99


def wrk(url, script=None):
    rate, median, p99 = measured(url, script)
    return f"{rate:,.0f}/s", f"median {median}, p99 {p99}, {CONNECTIONS} connections"


def run(scratch):
    script = scratch / "create.lua"
    script.write_text(CREATE)
    with Service(scratch / "requests") as service:
        service.api()("PUT", "/v1/sessions/bench", {})
        url = f"http://127.0.0.1:{service.port}/v1/sessions/bench"
        yield ("(d) GET of a session", *wrk(url))
        yield ("(d) POST of a task, each committed", *wrk(f"{url}/tasks", script))
