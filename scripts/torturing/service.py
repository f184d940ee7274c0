"""The service as a process whose calls fail. Where it ends by its fault it is started again, without the library."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from storming.failure import Violation
from storming.service import STOPPED_WITHIN, Service as Process

# What the log tells at `info` of a full disk.
WAITS = "task waits for room on the disk"
# Seconds without work after which a start has done all of its own.
REST = 0.15
# `sysexits.h`: what the service ends with where its store or a file cannot be used.
ENDS = (70, 73)


class Service(Process):
    """One data folder and one port for all runs of a bench. `ends` tells how its processes ended by the fault."""

    def __init__(self, program, folder, other, bench):
        super().__init__(program, folder)
        self.bench, self.backups, self.roots = bench, self.folder / "backups", {"files": self.files, "other": other}
        self.has_shim, self.ends, self.retention = False, [], "1h"

    def reset(self, snapshot=None):
        """Empty folders, or those of a snapshot."""
        self.kill_for_good()
        for folder in (self.data, self.backups, *self.roots.values()):
            shutil.rmtree(folder, ignore_errors=True)
        for log in self.folder.glob("log.*"):
            log.unlink()
        for folder in (self.backups, *self.roots.values()):
            folder.mkdir(parents=True)
        if snapshot is not None:
            subprocess.run(["cp", "-a", str(snapshot), str(self.data)], check=True)
        self.generation, self.ends, self.process = 0, [], None
        self.disturbed.clear()
        self.ready.clear()

    @property
    def arguments(self):
        roots = [flag for name, path in self.roots.items() for flag in ("--files-root", f"{name}={path}")]
        return [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data), *roots,
                "--free-disk-floor", "1M", "--log-format", "json", "--allow-egress", "127.0.0.0/8", "--allow-http-webhooks",
                "--content-retention", self.retention, "--transfer-threads", "1"]

    def spawn(self, has_shim=False, armed=None):
        """`armed` is a call and its fault, where the calls of the start count already."""
        self.has_shim = has_shim
        if has_shim:
            self.bench.shim.disarm()
        if armed is not None:
            self.bench.shim.arm(*armed)
        self.log = self.folder / f"log.{self.generation + len(self.ends) + 1}"
        with open(self.log, "wb") as log:
            # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, **(self.bench.shim.environment if has_shim else {})})

    @property
    def is_faulty(self):
        """Whether a call of this process has failed."""
        return self.has_shim and self.bench.shim.is_met

    def start(self, has_shim=False, armed=None):
        self.spawn(has_shim, armed)
        self.await_ready()

    def await_ready(self):
        while not self._is_ready():
            self.bench.check_running()
            if self.process.poll() is not None:
                self._revive()
            time.sleep(0.02)
        self.generation += 1
        self.disturbed.clear()
        self.ready.set()

    def await_rest(self):
        """Returns when the process has used no processor for a while: the work of a start is done."""
        before, since = None, time.monotonic()
        while time.monotonic() < since + REST:
            time.sleep(0.02)
            spent = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            if spent != before:
                before, since = spent, time.monotonic()
            self.bench.check_running()

    def check_alive(self):
        """Starts the service again where its fault ended it."""
        if self.process.poll() is not None:
            self.ready.clear()
            self._revive()
            self.await_ready()

    def _revive(self):
        self._judge_end()
        self.spawn()

    def _judge_end(self):
        """A process ends by itself only with a fault, and not without a word."""
        status, lines = self.process.returncode, self._complaints(self.log)
        if not self.is_faulty:
            raise Violation(f"The service ended with status {status}, without a fault.", documents=self.recent_log(40))
        if status == -signal.SIGKILL and self.bench.kills:
            self.ends.append("killed")
        elif status in ENDS and lines:
            self.ends.append(f"exit {status}")
        else:
            raise Violation(f"The service ended with status {status}" + ("." if lines else ", and its log does not say why."),
                            documents=self.recent_log(40))

    def end(self):
        """SIGTERM, and the end. A fault may come before it."""
        self.check_alive()
        self.disturbed.set()
        self.ready.clear()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            raise Violation(f"The service had not ended {STOPPED_WITHIN} s after SIGTERM.") from None
        if status == 0:
            return
        # Before it listens for signals one ends it, and the next start recovers.
        self._judge_end()

    @staticmethod
    def _complaints(log):
        """The lines of a log that tell of a fault."""
        found = []
        for line in log.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                if entry["level"] in ("warning", "error") or entry.get("error") or entry["message"] == WAITS:
                    found.append(line)
            except (ValueError, TypeError, KeyError):
                if line.startswith("urlsessiond: "):
                    found.append(line)
        return found

    def complaints(self):
        """What all logs of the run tell of faults."""
        return [line for log in sorted(self.folder.glob("log.*")) for line in self._complaints(log)]

    def recent_log(self, lines=60):
        texts = [f"-- {log.name}\n{log.read_text(errors='replace')}" for log in sorted(self.folder.glob("log.*"))]
        return "\n".join(texts).splitlines()[-lines:]
