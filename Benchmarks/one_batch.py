"""(b) 10,000 tasks in one batch: how long its POST takes, on tmpfs and on this machine's disk."""

import json
import pathlib
import statistics
import tempfile
import time

from surroundings import ROOT, Service

COUNT, ROUNDS = 10_000, 5


def batch(count, url="http://127.0.0.1:9/{}", state="suspended"):
    return json.dumps({"tasks": [
        {"kind": "download", "state": state, "request": {"url": url.format(n)}} for n in range(count)]}).encode()


def measure(directory):
    body, times = batch(COUNT), []
    with Service(directory / "one-batch") as service:
        api = service.api()
        api("PUT", "/v1/sessions/bench", {})
        for _ in range(ROUNDS):
            began = time.monotonic()
            api("POST", "/v1/sessions/bench/tasks/batch?return=minimal", body)
            times.append(time.monotonic() - began)
    return times


def run(scratch):
    (ROOT / ".build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".build") as disk:
        for name, directory in (("tmpfs", scratch), ("disk", pathlib.Path(disk))):
            times = measure(directory)
            median = statistics.median(times)
            yield (f"(b) one POST with {COUNT:,} tasks, {name}", f"{median:.3f} s ({COUNT / median:,.0f} tasks/s)",
                   "rounds " + ", ".join(f"{t:.3f}" for t in times))
