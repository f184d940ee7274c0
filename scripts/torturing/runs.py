"""Which cases there are, who runs them, and what is printed."""
import argparse
import collections
import itertools
import multiprocessing
import os
import pathlib
import queue
import random
import shutil
import signal
import sys
import tempfile
import time

from . import shim
from .bench import Bench
from .sequences import ALL

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of a class with more calls than this, so many are tried, evenly spread: a start makes 512 folders of one kind, and a
# commit writes dozens of pages. Calls that only read leave the disk as it was.
MOST_CHANGES, MOST_READS = 24, 8
KINDS = ("kill-before", "kill-after", "EIO", "ENOSPC", "short", "EINTR")


def main(description):
    options = _options(description)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The folders are removed.
    folder = _folder("/dev/shm", "/tmp")
    # Contents move to another filesystem by a copy. Where there is none, "other" is one more folder of the same.
    other = _folder("/var/tmp", folder)
    try:
        return Torture(options, pathlib.Path(folder), pathlib.Path(other)).run()
    finally:
        if not options.keep:
            for path in (folder, other):
                shutil.rmtree(path, ignore_errors=True)


def _options(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one call of each class with one fault, both drawn")
    parser.add_argument("--sequence", action="append", choices=ALL, help="one sequence; repeatable")
    parser.add_argument("--fault", action="append", choices=KINDS, help="one kind of fault; repeatable")
    parser.add_argument("--call", type=shim.Call.parse, help="one call of one sequence, as a failure names it")
    parser.add_argument("--times", type=int, default=1, help="how often a case is run (1)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (2)")
    parser.add_argument("--calls", action="store_true", help="print the calls of each sequence, and end")
    parser.add_argument("--all", action="store_true", help=f"every call of each class, not {MOST_CHANGES} or {MOST_READS} of them")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    options = parser.parse_args()
    if options.call and not (options.sequence and options.fault):
        parser.error("--call needs --sequence and --fault")
    return options


def program():
    """The service to try."""
    named = os.environ.get("URLSESSIOND")
    for path in [named] if named else [ROOT / ".build/tests/debug/urlsessiond", ROOT / ".build/release/urlsessiond"]:
        if os.access(path, os.X_OK):
            return str(path)
    sys.exit(f"There is no urlsessiond{f' at {named}' if named else ': make test or make build makes one'}.")


def _folder(*places):
    for place in places:
        if os.access(place, os.W_OK):
            return tempfile.mkdtemp(prefix="urlsessiond-torture.", dir=place)
    return tempfile.mkdtemp(prefix="urlsessiond-torture.")


class Torture:
    """All cases of one call of the program."""

    def __init__(self, options, folder, other):
        self.options, self.folder, self.other, self.program = options, folder, other, program()
        self.library = shim.build(folder)
        self.sequences = options.sequence or list(ALL)
        self.results, self.failed, self.began = [], [], time.monotonic()
        context = multiprocessing.get_context("fork")
        self.cases, self.done = context.Queue(), context.Queue()
        self.workers = [context.Process(target=self._work, args=(number,), daemon=True) for number in range(options.jobs)]

    def _work(self, number):
        """A process that runs cases on a bench of its own."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        bench = Bench(self.program, self.library, self.folder / f"bench-{number}", self.other / f"bench-{number}")
        while True:
            self.done.put(bench.run(*self.cases.get()))

    def run(self):
        """The exit status."""
        for worker in self.workers:
            worker.start()
        try:
            if self.options.call:
                planned = [(self.options.sequence[0], self.options.call, fault)
                           for fault in self.options.fault for _ in range(self.options.times)]
            else:
                planned = self._plan()
                if planned is None:
                    return 1
            for result in self._carry_out(planned):
                self._take(result, len(planned))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        finally:
            for worker in self.workers:
                worker.kill()  # Its service dies with it.
                worker.join()
        self._print_table()
        return 1 if self.failed else 0

    def _carry_out(self, planned):
        for case in planned:
            self.cases.put(case)
        for _ in planned:
            while True:
                try:
                    yield self.done.get(timeout=5)
                    break
                except queue.Empty:
                    if dead := [worker.exitcode for worker in self.workers if worker.exitcode]:
                        raise SystemExit(f"A worker ended with status {dead[0]}.") from None

    def _plan(self):
        """Counts the calls of each sequence, twice: what varies is tried up to the larger number."""
        self.counts = {name: collections.Counter() for name in self.sequences}
        for result in self._carry_out([(name, None, None) for name in self.sequences for _ in range(2)]):
            if result.failure:
                self._tell(result)
                return None
            self.counts[result.sequence] |= collections.Counter(result.counts)
        planned = []
        for name in self.sequences:
            calls = [shim.Call(function, path, number) for (function, path), count in sorted(self.counts[name].items())
                     for number in self._numbers(function, count)]
            cases = [(name, call, fault) for call in calls for fault in call.faults()
                     if fault in (self.options.fault or KINDS)]
            if self.options.quick:
                classes = itertools.groupby(cases, lambda case: (case[1].function, case[1].path))
                cases = [random.choice(list(group)) for _, group in classes]
            print(f"torture: {name}: {sum(self.counts[name].values())} calls of {len(self.counts[name])} classes, "
                  f"{len(cases)} runs", flush=True)
            if self.options.calls:
                for (function, path), count in sorted(self.counts[name].items()):
                    print(f"  {count:5} {function}:{path}")
            planned += cases
        return [] if self.options.calls else planned

    def _numbers(self, function, count):
        most = MOST_CHANGES if function in shim.CHANGES else MOST_READS
        if count <= most or self.options.all:
            return range(1, count + 1)
        return sorted({1 + round(step * (count - 1) / (most - 1)) for step in range(most)})

    def _take(self, result, count):
        self.results.append(result)
        if result.failure:
            self.failed.append(result)
            self._tell(result)
        if len(self.results) % 50 == 0 or len(self.results) == count:
            print(f"torture: {len(self.results)} of {count} runs, {time.monotonic() - self.began:.0f} s, "
                  f"{len(self.failed)} failed", flush=True)

    @staticmethod
    def _tell(result):
        print(f"\n== FAILED: {result.failure}\n   scripts/torture --sequence {result.sequence}"
              + (f" --call '{result.call}' --fault {result.fault}" if result.call else " --calls"),
              *("   " + str(line)[:600] for line in result.report), sep="\n", flush=True)

    def _print_table(self):
        if not self.results:
            return
        print(f"\n{'sequence':12} {'calls':>6} {'runs':>6} {'not met':>8} " + " ".join(f"{kind:>11}" for kind in KINDS)
              + f" {'ended itself':>13} {'refused':>8} {'seconds':>8} {'FAILED':>7}")
        for name in self.sequences:
            runs = [result for result in self.results if result.sequence == name]
            met = collections.Counter(result.fault for result in runs if result.is_met)
            calls = len({result.call for result in runs if result.is_met})
            print(f"{name:12} {calls:6} {len(runs):6} {len(runs) - sum(met.values()):8} "
                  + " ".join(f"{met[kind]:11}" for kind in KINDS)
                  + f" {sum(any(end != 'killed' for end in result.ends) for result in runs):13}"
                    f" {sum(bool(result.refused) for result in runs):8} {sum(result.seconds for result in runs):8.0f}"
                    f" {sum(bool(result.failure) for result in runs):7}")
        silent = collections.Counter(f"{result.call.function} {result.call.path}: {result.fault}" for result in self.results
                                     if result.is_silent)
        if silent:
            print("\nNobody was told of these errors:")
            for what, count in sorted(silent.items()):
                print(f"  {count:4} {what}")
        print(f"\ntorture: {time.monotonic() - self.began:.0f} s, {len(self.results)} runs; "
              + (f"{len(self.failed)} FAILED" if self.failed else "every guarantee held"), flush=True)
