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
LOST_AT_MOST = 8 << 20  # bytes of one download that a kill may cost: received, and not yet recorded to be on disk
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
    wrong, kept = [], {digest(path) for path in (work / "inbox").iterdir()}
    for path in paths:
        source = digest(work / "tree" / path)
        told = finished.get(path, {"data": {"digest": {"value": None}}})["data"]["digest"]["value"]
        if told != source or source not in kept:
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
    sent, starts, resumed = collections.Counter(), collections.defaultdict(list), 0
    for line in (work / "origin/access.log").read_text().splitlines():
        method, status, count, uri, asked = line.split(" ", 4)
        if method == "GET":
            sent[uri[1:]] += int(count)
            starts[uri[1:]].append(int(asked[len("bytes="):-1]) if asked.startswith("bytes=") else 0)
            resumed += status == "206"
    lost = collections.defaultdict(list)
    for found in lines("lost"):
        lost[found["path"]].append(found)
    sizes = {path: (work / "tree" / path).stat().st_size for path in paths}
    requests = sum(map(len, starts.values()))
    excess = [(path, starts[path]) for path in paths if len(starts[path]) > kills + 1 or not starts[path]]
    check("no file was asked for more than once a life of the service" if kills else "every file was fetched once",
          not excess, excess[:5])
    if kills:
        check_resumptions(paths, starts, lost)
    total, tree = sum(sent[path] for path in paths), sum(sizes.values())
    print(f"\n  The tree has {tree:,} bytes; the origin sent {total:,}: {total - tree:+,} ({(total - tree) / tree:+.2%}),"
          f" in {requests:,} requests, {resumed} of them resumptions.")
    found = [entry for entries in lost.values() for entry in entries]
    if found:
        unrecorded = [entry["received"] - entry["recorded"] for entry in found]
        kept = sum(entry["recorded"] for entry in found)
        print(f"  {len(found)} times a kill cut a download short. Of the {kept:,} bytes recorded at these moments none was"
              f" fetched again;\n  {sum(unrecorded):,} had come and were not recorded yet: they came twice,"
              f" {max(unrecorded) / 2**20:.1f} MiB of one download at most.\n  The rest of what the origin sent twice was"
              " on its way in the buffers of connections, and nobody had read it.")


def check_resumptions(paths, starts, lost):
    """Each request after a kill begins where the record before it ended: not a byte below, not a byte beyond."""
    wrong = []
    for path in paths:
        recorded = {entry["recorded"] for entry in lost[path]}
        fresh = 1 + sum(entry["recorded"] == 0 for entry in lost[path])
        asked = starts[path]
        if set(asked) - {0} != recorded - {0} or asked != sorted(asked) or asked.count(0) > fresh:
            wrong.append((path, asked, lost[path]))
    check("each resumption began at the last byte recorded before the kill, no byte below was asked for again",
          not wrong, wrong[:3])
    most = max((entry["received"] - entry["recorded"] for entries in lost.values() for entry in entries), default=0)
    check("a kill cost no download more than 8 MiB", most <= LOST_AT_MOST, most)


paths = (work / "paths").read_text().split()
print("\nWhat came of it:")
check_bytes(paths, check_events(paths))
check_launches()
check_origin(paths)
if problems:
    sys.exit(f"\nFAILED: {len(problems)} of these are not as they must be.")
print("\nNothing lost, nothing doubled, every byte right.")
