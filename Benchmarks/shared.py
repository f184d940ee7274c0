"""(shared) 1,000 tasks for one file of 256 MiB, submitted in one batch with a cache policy: the origin sends it once.

Then the same with a disturbance when the leading task has half of the bytes: it is cancelled, suspended, or the service is
killed; and with a leading task whose own digest does not fit. Then on three nodes, undisturbed and with the node of the
leading task killed for good. For disturbances nginx limits the rate of a response (limit_rate), so that there is a half.
The task with the highest priority leads. Bytes are those that nginx has handed to the kernel.
"""

import collections
import contextlib
import hashlib
import os
import shutil
import time

from buckets import Store, digest, logging, sent
from large_files import make
from segments import limited
from surroundings import PostgreSQL, Service, cpu_seconds, disk_bytes, wait_until

LENGTH, TASKS = int(os.environ.get("MIB", "256")) << 20, int(os.environ.get("TASKS", "1000"))
SESSION = "/v1/sessions/bench"
KEPT = ["task.didFinishDownloading", "task.didFinishCollectingMetrics", "task.didComplete"]


class One:
    """A node with SQLite and its contents on disk."""

    def __init__(self, here):
        self.here, self.nodes = here, [Service(here / "node")]

    def __enter__(self):
        self.nodes[0].start()
        return self

    def __exit__(self, *_):
        self.nodes[0].stop()

    def api(self):
        return self.nodes[-1].api()

    def disk(self):
        return disk_bytes(self.here / "node")


class Three(One):
    """Three nodes with one PostgreSQL server, their contents in one SeaweedFS."""

    def __enter__(self):
        self.here.parent.chmod(0o755)  # PostgreSQL runs as another user
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(PostgreSQL(self.here / "postgresql"))
            store = stack.enter_context(Store(self.here / "seaweedfs"))
            flags = ("--store", server.database(), "--contents", store.flags[1].split("=", 1)[1],
                     "--master-key-file", str(self.here / "master.key"))
            # One after the other: the first one makes the key, the tables and the app.
            self.nodes = [stack.enter_context(Service(self.here / f"node{number}", *flags)) for number in range(3)]
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def disk(self):
        return disk_bytes(*self.here.glob("node[0-9]"), self.here / "seaweedfs")

    def lose(self):
        """Ends the node that transfers with SIGKILL."""
        node, = (node for node in self.nodes if node.metric("urlsessiond_transfers_running") > 0)
        node.process.kill()
        self.nodes.remove(node)


def completed(running, count):
    # After a kill the connection of an earlier API is closed.
    api = running.api()
    return wait_until(lambda: api("GET", SESSION)["taskCounts"]["completed"] >= count, 900, f"{count} tasks")


def half(running):
    api = running.api()
    received = lambda: api("GET", f"{SESSION}/tasks/1")["countOfBytesReceived"]
    wait_until(lambda: received() > LENGTH // 2, 300, "half of the bytes in the leading task")


def cancelled(running):
    half(running)
    running.api()("POST", f"{SESSION}/tasks/1/cancel")


def suspended(running):
    half(running)
    running.api()("POST", f"{SESSION}/tasks/1/suspend")
    completed(running, TASKS - 1)
    running.api()("POST", f"{SESSION}/tasks/1/resume")


def killed(running):
    half(running)
    running.nodes[0].kill()


def lost(running):
    half(running)
    running.lose()


def undisturbed(running):
    pass


WRONG = {"expectedDigest": {"algorithm": "sha-256", "value": "0" * 64}}
# The disturbance, members of the leading task, its outcome, the goal, where.
CASES = {
    "undisturbed": (undisturbed, {}, "succeeded", 1.01, One),
    "the leading task cancelled": (cancelled, {}, "cancelled", 1.1, One),
    "the leading task suspended, later resumed": (suspended, {}, "succeeded", 1.1, One),
    "the leading task with a digest that does not fit": (undisturbed, WRONG, "failed", 2.1, One),
    "SIGKILL": (killed, {}, "succeeded", 1.1, One),
    "three nodes, undisturbed": (undisturbed, {}, "succeeded", 1.01, Three),
    "three nodes, that of the leading task lost": (lost, {}, "succeeded", 1.1, Three),
}


def pages(api, path, after):
    """All items of a list."""
    while path:
        page = api("GET", path)
        yield from page["items"]
        path = page["items"] and after(page)


def check(api, wanted, outcome):
    """Every task has its own content and its own events; how often each cache status occurs."""
    listed = f"{SESSION}/tasks?limit=1000"
    tasks = list(pages(api, listed, lambda page: page["nextCursor"] and f"{listed}&cursor={page['nextCursor']}"))
    outcomes = {task["taskIdentifier"]: task["outcome"] for task in tasks}
    if outcomes != {1: outcome, **{number: "succeeded" for number in range(2, TASKS + 1)}}:
        raise RuntimeError(f"outcomes: {outcomes.pop(1)}, {collections.Counter(outcomes.values())}")
    digests = {task["content"]["digest"]["value"] for task in tasks if task["outcome"] == "succeeded"}
    if digests != {wanted}:
        raise RuntimeError(f"contents with the digests {digests}")
    read = hashlib.sha256(api("GET", f"{SESSION}/tasks/{TASKS}/content", raw=True)).hexdigest()
    if read != wanted:
        raise RuntimeError(f"the content of task {TASKS} has the digest {read}")

    listed = f"{SESSION}/events?limit=1000&after="
    events = list(pages(api, f"{listed}0", lambda page: f"{listed}{page['items'][-1]['seq']}"))
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        raise RuntimeError("the events have a gap")
    own = collections.defaultdict(list)
    for event in events:
        if event["type"] in KEPT:
            own[event["taskIdentifier"]].append(event["type"])
    for number, outcome in {1: outcome, **outcomes}.items():
        if own[number] != (KEPT if outcome == "succeeded" else KEPT[1:]):
            raise RuntimeError(f"task {number}, which {outcome}, has the events {own[number]}")
    return collections.Counter(str(task["cacheStatus"]) for task in tasks)


def play(here, tree, wanted, disturb, members, outcome, place):
    """What the origin sent, wall and processor time, disk, and the cache statuses."""
    rate = "0" if (disturb, members) == (undisturbed, {}) else str(LENGTH // 4)
    with logging(limited(here, "origin", tree, rate)) as origin:
        with place(here) as running:
            api = running.api()
            api("PUT", SESSION, {"configuration": {
                "requestCachePolicy": "useProtocolCachePolicy", "sessionSendsLaunchEvents": False}})
            task = {"kind": "download", "request": {"url": f"{origin.url}/a"}}
            began = time.monotonic()
            api("POST", f"{SESSION}/tasks/batch?return=minimal",
                {"tasks": [{**task, "priority": 1.0, **members}, *[task] * (TASKS - 1)]})
            disturb(running)
            took = completed(running, TASKS) - began
            used = sum(cpu_seconds(node.pid) for node in running.nodes)
            statuses = check(running.api(), wanted, outcome)
            disk = running.disk()
        origin.end()
        return sent(origin), took, used, disk, statuses


def run(scratch, only=()):
    """Yields (what, value, besides)."""
    tree = scratch / "tree"
    tree.mkdir()
    make(tree / "a", LENGTH)
    with open(tree / "a", "rb") as file:
        wanted = digest(file)
    for what, (*case, goal, place) in CASES.items():
        if only and not any(word in what for word in only):
            continue
        here = scratch / "here"
        here.mkdir()
        bytes_sent, took, used, disk, statuses = play(here, tree, wanted, *case, place)
        shutil.rmtree(here)
        share = bytes_sent / LENGTH
        yield (f"(shared) {TASKS:,} tasks for {LENGTH >> 20} MiB, {what}", f"the origin sent {share:.4f} × the length",
               f"goal {goal}: {'met' if share <= goal else 'not met'}; {took:.2f} s, {used:.2f} s CPU since the last start, "
               f"{disk / 2**20:.0f} MiB of disk; " + ", ".join(f"{count} {status}" for status, count in statuses.most_common()))


if __name__ == "__main__":
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, only=sys.argv[1:]):
            print(" | ".join(row), flush=True)
