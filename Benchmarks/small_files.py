"""(a) 10,000 downloads of 10 KiB from one nginx, 64 at a time: from submission to the last completion.

The three run in turn, each in an empty directory on tmpfs. What they promise differs: aria2 and curl keep nothing of
their queue and compute no digest; the service commits every task and event to its database and computes SHA-256.
"""

import http.client
import json
import os
import subprocess
import time

from surroundings import Origin, Service, cpu_seconds, free_port, wait_until

COUNT, SIZE, PARALLEL = 10_000, 10 * 1024, 64


def make_tree(tree, count):
    tree.mkdir(parents=True, exist_ok=True)
    for n in range(count):
        (tree / f"{n:05}.bin").write_bytes(os.urandom(SIZE))


def check(directory, count):
    sizes = [entry.stat().st_size for entry in os.scandir(directory)]
    if len(sizes) != count or set(sizes) != {SIZE}:
        raise RuntimeError(f"{len(sizes)} files of sizes {set(sizes)} instead of {count} of {SIZE}")


def curl(scratch, origin, count):
    inbox = scratch / "curl"
    inbox.mkdir()
    listing = scratch / "curl.txt"
    listing.write_text("".join(f'url = "{origin.url}/{n:05}.bin"\noutput = "{inbox}/{n:05}.bin"\n' for n in range(count)))
    before = os.times()
    began = time.monotonic()
    command = ["curl", "-q", "--no-progress-meter", "--fail", "--noproxy", "*", "-Z", "--parallel-max", str(PARALLEL), "-K", str(listing)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # -Z draws its meter whatever it is told
    took = time.monotonic() - began
    after = os.times()
    check(inbox, count)
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def aria2(scratch, origin, count):
    inbox, port = scratch / "aria2", free_port()
    inbox.mkdir()
    process = subprocess.Popen(
        ["aria2c", "--no-conf", "--enable-rpc", f"--rpc-listen-port={port}", "--rpc-max-request-size=64M", "--quiet",
         f"--dir={inbox}", f"--max-concurrent-downloads={PARALLEL}", "--split=1", "--max-connection-per-server=16",
         "--file-allocation=none", "--max-download-result=1000000", "--auto-save-interval=0", "--no-proxy=*"])

    def call(method, *parameters):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("POST", "/jsonrpc", json.dumps(
            {"jsonrpc": "2.0", "id": "1", "method": method, "params": list(parameters)}))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def listening():
        try:
            return call("aria2.getVersion")
        except OSError:
            return False

    try:
        wait_until(listening, 20, "aria2's RPC")
        before = cpu_seconds(process.pid)
        began = time.monotonic()
        call("system.multicall", [
            {"methodName": "aria2.addUri", "params": [[f"{origin.url}/{n:05}.bin"]]} for n in range(count)])
        ended = wait_until(lambda: int(call("aria2.getGlobalStat")["numStoppedTotal"]) >= count, 600, "aria2's downloads")
        used = cpu_seconds(process.pid) - before
    finally:
        process.terminate()
        process.wait()
    check(inbox, count)
    return ended - began, used


def service(scratch, origin, count):
    limits = ("--max-transfers-per-host", str(PARALLEL), "--max-transfers", "256")
    with Service(scratch / "service", *limits) as running:
        api = running.api()
        api("PUT", "/v1/sessions/bench", {"configuration": {
            "httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}})
        before = cpu_seconds(running.pid)
        began = time.monotonic()
        api("POST", "/v1/sessions/bench/tasks/batch?return=minimal", {"tasks": [
            {"kind": "download", "request": {"url": f"{origin.url}/{n:05}.bin"}} for n in range(count)]})
        completed = lambda: api("GET", "/v1/sessions/bench")["taskCounts"]["completed"] >= count
        ended = wait_until(completed, 600, "the service's downloads")
        used = cpu_seconds(running.pid) - before
        counts = api("GET", "/v1/sessions/bench")["taskCounts"]
        if counts["succeeded"] != count:
            raise RuntimeError(f"not all succeeded: {counts}")
        return ended - began, used


CONTESTANTS = {"urlsessiond": service, "aria2 1.36 (JSON-RPC)": aria2, "curl -Z": curl}


def run(scratch, rounds=7, count=COUNT, only=None):
    """Yields (what, median, all rounds)."""
    tree = scratch / "tree"
    make_tree(tree, count)
    chosen = {name: play for name, play in CONTESTANTS.items() if not only or name.split()[0] in only}
    figures = {name: [] for name in chosen}
    with Origin(scratch / "origin", tree) as origin:
        for number in range(rounds):
            for name, play in chosen.items():
                here = scratch / f"round-{number}-{name.split()[0]}"
                here.mkdir()
                figures[name].append(play(here, origin, count))
                subprocess.run(["rm", "-rf", str(here)])
    for name, rows in figures.items():
        middle = sorted(rows)[len(rows) // 2]
        spread = ", ".join(f"{took:.2f}" for took, _ in rows)
        yield (f"(a) {count:,} × 10 KiB, {name}", f"{middle[0]:.2f} s ({count / middle[0]:,.0f}/s)",
               f"{middle[1]:.2f} s CPU; rounds {spread}")
    ours, *others = figures
    for other in others:
        shares = sorted(mine[0] / theirs[0] for mine, theirs in zip(figures[ours], figures[other]))
        yield (f"(a) {ours} against {other}", f"{shares[len(shares) // 2]:.2f} × its time",
               "same round; rounds " + ", ".join(f"{share:.2f}" for share in shares))


if __name__ == "__main__":
    import sys
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, only=sys.argv[1:]):
            print(" | ".join(row))
