#!/usr/bin/env python3
"""What the demo left behind against what must be: files, events, launches, and what the origin sent.

    verify.py WORK FILES UPLOADS KILLS
"""
import collections
import hashlib
import json
import pathlib
import sys

work, files, uploads, kills = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
KEPT_APART = 16 << 20  # 8 MiB may be unsynced at a kill, and about as much wait in socket buffers, sent and not read
problems = []


def check(fact, right, detail=""):
    print(f"  {'ok ' if right else 'BAD'}  {fact}" + (f": {detail}" if detail and not right else ""))
    if not right:
        problems.append(fact)


def digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def lines(name):
    return [json.loads(line) for line in (work / name).read_text().splitlines()]


def check_events(paths):
    events = lines("events")
    numbers = [event.get("seq") for event in events]
    check(f"{len(events)} events came in order, without a gap, each once", numbers == list(range(1, len(events) + 1)),
          [e for e in events if "problem" in e][:3])
    completions = [e for e in events if e["type"] == "task.didComplete"]
    finished = {e["clientTaskId"]: e for e in events if e["type"] == "task.didFinishDownloading"}
    expected = set(paths) | {f"uploads/{path.name}" for path in (work / "uploads").iterdir()}
    ids = [e["clientTaskId"] for e in completions]
    check(f"{files + uploads} completions, one a task", len(ids) == len(expected) and set(ids) == expected, len(ids))
    outcomes = collections.Counter(e["data"]["outcome"] for e in completions)
    check("all of them succeeded", set(outcomes) == {"succeeded"}, dict(outcomes))
    return finished


def check_bytes(paths, finished):
    wrong = []
    for path in paths:
        source = digest(work / "tree" / path)
        kept = work / "inbox" / path
        told = finished.get(path, {"data": {"digest": {"value": None}}})["data"]["digest"]["value"]
        if told != source or not kept.exists() or digest(kept) != source:
            wrong.append(path)
    check(f"SHA-256 of {files} downloads: origin = event = content", not wrong, wrong[:5])
    sent = [p.name for p in (work / "uploads").iterdir() if (work / "tree/uploads" / p.name).exists()
            and digest(p) == digest(work / "tree/uploads" / p.name)]
    check(f"SHA-256 of {uploads} uploads: source = origin", len(sent) == uploads, len(sent))


def check_launches():
    attempts, launches = lines("attempts"), json.loads((work / "launches").read_text())["items"]
    check("exactly one launch, completed", [l["state"] for l in launches] == ["completed"], launches)
    check("it arrived once", len(attempts) == 1 and attempts[0]["id"] == launches[0]["launchId"], attempts)
    accepted = attempts[0]["accepted"]
    check("its signature verifies: " + ", ".join(accepted), all(a is True for a in accepted.values()), accepted)


def check_origin(paths):
    sent, requests, resumed, again, excess = collections.Counter(), collections.Counter(), 0, [], []
    for line in (work / "origin/access.log").read_text().splitlines():
        method, status, count, uri, asked = line.split(" ", 4)
        if method == "GET":
            sent[uri[1:]] += int(count)
            requests[uri[1:]] += 1
            resumed += status == "206"
    sizes = {path: (work / "tree" / path).stat().st_size for path in paths}
    for path, size in sizes.items():
        allowed = size + (requests[path] - 1) * min(size, KEPT_APART)
        if requests[path] > 1:
            again.append((sent[path] - size) / (requests[path] - 1))
        if sent[path] > allowed or requests[path] > kills + 1:
            excess.append((path, size, sent[path], requests[path]))
    total, tree = sum(sent[path] for path in paths), sum(sizes.values())
    check("no file was asked for more than once a life of the service" if kills else "every file was fetched once",
          not excess, excess[:5])
    print(f"\n  The tree has {tree:,} bytes; the origin sent {total:,}: {total - tree:+,} ({(total - tree) / tree:+.2%}),"
          f" in {sum(requests.values())} requests, {resumed} of them resumptions.")
    if again:
        print(f"  A transfer that a kill cut off cost {sum(again) / len(again) / 2**20:.1f} MiB more in the mean,"
              f" {max(again) / 2**20:.1f} MiB at most:\n  what was not synced yet (8 MiB at most),"
              " and what the origin had sent and nobody had read.")


paths = (work / "paths").read_text().split()
print("\nWhat came of it:")
check_bytes(paths, check_events(paths))
check_launches()
check_origin(paths)
if problems:
    sys.exit(f"\nFAILED: {len(problems)} of these are not as they must be.")
print("\nNothing lost, nothing doubled, every byte right.")
