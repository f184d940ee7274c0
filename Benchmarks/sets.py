"""(sets) A version of 10,000 small files in a folder, a second one with 1 % changed files, and many versions of a few.

The first two twice: with a digest for each file, so that an unchanged file needs no request; and without digests, so that
nginx confirms it by its strong ETag. The last byte is the end of nginx's last request. Then one small version follows the
other, while one process reads them below `current` and another one through the API, and each compares every byte with what
it expects of the version.
"""

import collections
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import time

from buckets import logging
from small_files import PARALLEL
from surroundings import Origin, Refused, Service, cpu_seconds, disk_bytes, wait_until

FILES, PUBLICATIONS = int(os.environ.get("FILES", "10000")), int(os.environ.get("PUBLICATIONS", "300"))
KEEP, GRACE = 3, 10
SET = "/v1/sets/bench"
SESSION = {"configuration": {"httpMaximumConnectionsPerHost": PARALLEL, "sessionSendsLaunchEvents": False}}
LENGTHS = [10, 0, 1000, 5000, 20_000, 70_000]


@contextlib.contextmanager
def surroundings(here, tree, **members):
    """An origin, a service with a session and a set, and the folder of the set."""
    folder = here / "root/set"
    folder.parent.mkdir(parents=True)
    flags = ("--files-root", f"bench={folder.parent}", "--max-transfers-per-host", str(PARALLEL))
    with logging(Origin(here / "origin", tree)) as origin, Service(here / "service", *flags) as running:
        api = running.api()
        api("PUT", "/v1/sessions/bench", SESSION)
        api("PUT", SET, {"destination": {"root": "bench", "path": folder.name}, **members})
        yield origin, running, folder


def publish(api, version, files):
    """Sends a version as lines and waits until it is published.

    Returns its resource, and the moments at which it was sent and published.
    """
    lines = [{"version": version, "session": "bench"}, *files]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    began = time.time()
    api("POST", f"{SET}/versions", body, kind="application/x-ndjson")
    read = lambda: api("GET", f"{SET}/versions/{version}")
    ended = lambda: read()["state"] not in ("fetching", "verifying", "publishing")
    wait_until(ended, 900, f"version {version}", every=0.002)
    moment = time.time()
    if (found := read())["state"] != "published":
        raise RuntimeError(f"not published: {found}")
    return found, began, moment


# MARK: many files


def write(path, length):
    """A new content with another time of modification, which nginx has in the ETag."""
    later = path.stat().st_mtime + 1 if path.exists() else None
    path.write_bytes(os.urandom(length))
    if later:
        os.utime(path, (later, later))


def make_tree(tree, chance):
    paths = [f"{number // 100:03}/{number:05}.bin" for number in range(FILES)]
    for number, path in enumerate(paths):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        write(tree / path, chance.randint(1 << 10, 20 << 10) if number % 500 else chance.randint(256 << 10, 1 << 20))
    return paths


def check(tree, folder, paths):
    """Compares each published file with the origin's."""
    place = (folder / "current").resolve()
    found = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    if found != set(paths):
        raise RuntimeError(f"{len(found)} files instead of {len(paths)}")
    if wrong := [path for path in paths if (place / path).read_bytes() != (tree / path).read_bytes()]:
        raise RuntimeError(f"{len(wrong)} files have other bytes: {wrong[:5]}")


def versions(here, tree, paths, has_digests, chance):
    how = "with digests" if has_digests else "without digests"

    def version(name):
        """Publishes the files of the tree; nginx's new lines, and seconds from the last request to the publication."""
        files = [{"path": path, "request": {"url": f"{origin.url}/{path}"}} for path in paths]
        if has_digests:
            for file in files:
                value = hashlib.sha256((tree / file["path"]).read_bytes()).hexdigest()
                file["expectedDigest"] = {"algorithm": "sha-256", "value": value}
        log = origin.directory / "access.log"
        before, used = len(log.read_text().splitlines()), -cpu_seconds(running.pid)
        found, began, moment = publish(running.api(), name, files)
        used += cpu_seconds(running.pid)
        check(tree, folder, paths)
        statuses = collections.Counter(line.split()[1] for line in log.read_text().splitlines()[before:])
        after = f"{max(0, moment - log.stat().st_mtime):.2f} s after the last byte (goal 2)"
        return found, moment - began, f"{after}; {used:.2f} s CPU", statuses

    with surroundings(here, tree) as (origin, running, folder):
        found, took, besides, statuses = version("one")
        length, disk, copies = found["bytes"]["total"], disk_bytes(here / "service"), disk_bytes(here / "service", folder)
        if found["files"]["fetched"] != FILES or statuses != {"200": FILES}:
            raise RuntimeError(f"not fetched once each: {found['files']}, {statuses}")
        yield (f"(sets) {FILES:,} files of {length / 2**20:.0f} MiB in all, {how}", f"{took:.2f} s ({FILES / took:,.0f}/s)",
               f"published {besides}; {disk / 2**20:.0f} MiB in the data directory, {(copies - disk) / 2**20:.0f} MiB besides "
               "in the folder")

        changed = chance.sample(paths, max(1, FILES // 100))
        for path in changed:
            write(tree / path, (tree / path).stat().st_size)
        found, took, besides, statuses = version("two")
        wanted = {"200": len(changed)} if has_digests else {"200": len(changed), "304": FILES - len(changed)}
        requests = ", ".join(f"{count:,} with {status}" for status, count in sorted(statuses.items()))
        grown = disk_bytes(here / "service", folder) - copies
        yield (f"(sets) {len(changed):,} of {FILES:,} files changed, {how}", f"{took:.2f} s",
               f"published {besides}; requests to the origin: {requests}" + ("" if statuses == wanted else f" NOT {wanted}")
               + f"; {found['files']['reused']:,} files reused; {grown / 2**20:.0f} MiB more")


# MARK: many versions


def content(version, number):
    """The bytes of a file of a version; the first file has the name of the version."""
    if number == 0:
        return f"{version:0{LENGTHS[0]}}".encode()
    return hashlib.shake_128(f"{version}/{number}".encode()).digest(LENGTHS[number])


def path(number):
    return f"folder-{number}/file" if number % 2 else f"file-{number}"


@contextlib.contextmanager
def below(folder):
    """Reads the files of the current version as a program does that resolves the link once."""
    place = os.open(folder / "current", os.O_RDONLY | os.O_DIRECTORY)

    def read(name):
        with open(name, "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=place)) as file:
            return file.read()

    try:
        yield read
    finally:
        os.close(place)


@contextlib.contextmanager
def through(api):
    """Reads the files of the current version as a client does that reads the manifest first."""
    version = api("GET", f"{SET}/manifest")["versionId"]
    yield lambda name: api("GET", f"{SET}/versions/{version}/files/{name}", raw=True)


class Reader:
    """A process that reads one current version after the other, and counts faults."""

    KINDS = ["reads", "mixed", "short", "missing", "older"]

    def __init__(self, current):
        """`current` returns a context with the function that reads a file of the version that is current then."""
        self.current = current
        self.counts = multiprocessing.Array("q", len(self.KINDS))
        self.process = multiprocessing.Process(target=self._run, daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()

    def _run(self):
        last, is_first = 0, True
        while True:
            time.sleep(0.001)  # leaves the service a core
            try:
                with self.current() as read:
                    version = int(read(path(0)))
                    faults = [self._fault(read(path(number)), content(version, number)) for number in range(len(LENGTHS))]
                    faults.append("older" if version < last else None)
                    last, detail = version, f"version {version} after {last}: {faults}"
            except (FileNotFoundError, Refused) as problem:
                faults, detail = ["missing"], problem
            for fault in [*filter(None, faults), "reads"]:
                self.counts[self.KINDS.index(fault)] += 1
            if any(faults) and is_first:
                print(time.strftime("%T"), detail, file=sys.stderr, flush=True)
                is_first = False

    @staticmethod
    def _fault(found, wanted):
        return None if found == wanted else "short" if wanted.startswith(found) else "mixed"

    def found(self):
        if not self.process.is_alive():
            raise ChildProcessError("a reader has failed")
        return dict(zip(self.KINDS, self.counts))


def publications(here, tree):
    with contextlib.ExitStack() as stack:
        origin, running, folder = stack.enter_context(surroundings(here, tree, keep=KEEP, grace=GRACE))
        api, times, readers = running.api(), [], {}
        for version in range(1, PUBLICATIONS + 1):
            for number in range(len(LENGTHS)):
                file = tree / str(version) / path(number)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content(version, number))
            _, began, moment = publish(api, str(version), [
                {"path": path(number), "request": {"url": f"{origin.url}/{version}/{path(number)}"}}
                for number in range(len(LENGTHS))])
            times.append(moment - began)
            shutil.rmtree(tree / str(version))
            if version == 1:
                api_of_reader = running.api()
                readers = {"below current": Reader(lambda: below(folder)),
                           "through the API": Reader(lambda: through(api_of_reader))}
                for reader in readers.values():
                    stack.enter_context(reader)
            if version % 100 == 0:
                api("POST", "/v1/sessions/bench/events/ack", {"through": api("GET", "/v1/sessions/bench")["lastEventSeq"]})
        times.sort()
        yield (f"(sets) {PUBLICATIONS:,} versions of {len(LENGTHS)} files, one after the other",
               f"{len(times) / sum(times):.0f} publications/s",
               f"median {times[len(times) // 2] * 1000:.0f} ms, worst {times[-1] * 1000:.0f} ms, beside two readers")
        for where, reader in readers.items():
            counts = reader.found()
            yield (f"(sets) reads of whole versions {where} meanwhile", f"{counts.pop('reads'):,}",
                   "faults: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
        began = time.monotonic()
        left = lambda: len(os.listdir(folder / ".versions"))
        removed = wait_until(lambda: left() <= KEEP + 1, GRACE + 120, f"{left()} versions to go", every=0.2) - began
        yield ("(sets) replaced versions removed", f"{removed:.0f} s",
               f"after the last publication (goal {GRACE + 60}); {left()} are left, with "
               f"{disk_bytes(here / 'service', folder) / 2**20:.1f} MiB of disk in all")
        if faults := [reader.found() for reader in readers.values() if any(list(reader.found().values())[1:])]:
            raise RuntimeError(f"faults of readers: {faults}")


def run(scratch, only=("digests", "tags", "publications")):
    """Yields (what, value, besides)."""
    chance = random.Random(1)
    for name in only:
        here, tree = scratch / name, scratch / f"{name}-tree"
        tree.mkdir()
        if name == "publications":
            yield from publications(here, tree)
        else:
            yield from versions(here, tree, make_tree(tree, chance), name == "digests", chance)
        shutil.rmtree(here)
        shutil.rmtree(tree)


if __name__ == "__main__":
    from surroundings import Scratch, machine

    print(machine(), "load", os.getloadavg())
    with Scratch() as scratch:
        for row in run(scratch, only=sys.argv[1:] or ("digests", "tags", "publications")):
            print(" | ".join(row), flush=True)
