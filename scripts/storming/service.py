"""The service as a process: started again and again on one data folder and one port."""
import collections
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

from .failure import Violation

READY_WITHIN, STOPPED_WITHIN = 90, 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """`generation` counts the starts. `disturbed` is set from a signal to the next time that the service is ready."""

    def __init__(self, program, folder):
        self.program, self.folder, self.port = program, pathlib.Path(folder), free_port()
        self.data, self.files = self.folder / "data", self.folder / "files"
        self.files.mkdir(parents=True)
        self.generation, self.disturbed, self.process, self.log = 0, threading.Event(), None, None
        self.ready = threading.Event()
        self.kills = self.terms = 0
        self.tail = collections.deque(maxlen=400)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        """Returns when `/readyz` answers 200."""
        self.spawn()
        self.await_ready()

    def spawn(self):
        self.log = self.folder / f"log.{self.generation + 1}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--dev", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data),
                 "--files-root", f"files={self.files}", "--log-format", "json", "--free-disk-floor", "1M"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def await_ready(self):
        deadline = time.monotonic() + READY_WITHIN
        while not self._is_ready():
            if self.process.poll() is not None:
                self._end()
                raise Violation(f"The service ended at its start with status {self.process.returncode}.")
            if time.monotonic() > deadline:
                raise Violation(f"The service was not ready within {READY_WITHIN} s.")
            time.sleep(0.03)
        self.generation += 1
        self.disturbed.clear()
        self.ready.set()

    def _is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def is_steady(self, generation):
        """Whether the service has run since that start, and has got no signal."""
        return self.generation == generation and not self.disturbed.is_set()

    def check_alive(self):
        """The service ends by the signals of the storm alone."""
        if not self.disturbed.is_set() and self.process.poll() is not None:
            self._end()
            raise Violation(f"The service ended by itself with status {self.process.returncode}.")

    def stop(self, number):
        """Sends the signal and waits for the end. `SIGTERM` must end with status 0."""
        self.check_alive()
        self.disturbed.set()
        self.ready.clear()
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.kills += 1
        else:
            self.terms += 1
        try:
            status = self.process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            raise Violation(f"The service had not ended {STOPPED_WITHIN} s after {number.name}.") from None
        self._end()
        if status != (-signal.SIGKILL if number == signal.SIGKILL else 0):
            raise Violation(f"The service ended with status {status} after {number.name}.")

    def _end(self):
        """Reads the log of the generation that has ended, and removes it."""
        faults = []
        with open(self.log, errors="replace") as log:
            for line in log:
                self.tail.append(line.rstrip("\n")[:1000])
                if self._is_fault(line):
                    faults.append(line.strip()[:1000])
        self.log.unlink()
        if faults:
            raise Violation("The service logged an internal fault.", documents=faults[:20])

    @staticmethod
    def _is_fault(line):
        """Whether a line is of level `error` or above, or no line of the log at all (a crash report)."""
        if not line.strip() or line.startswith("urlsessiond listening on "):
            return False
        try:
            return json.loads(line).get("level") in ("error", "critical", "fatal")
        except (ValueError, AttributeError):
            return True

    def recent_log(self, lines=120):
        if self.log and self.log.exists():
            with open(self.log, errors="replace") as log:
                self.tail.extend(line.rstrip("\n")[:1000] for line in collections.deque(log, 300))
        return list(self.tail)[-lines:]

    def kill_for_good(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def leftovers(self):
        """The files of contents, bodies and partial files in the data folder."""
        found = []
        for name in ("contents", "bodies", "partial"):
            for folder, _, files in os.walk(self.data / name):
                found += [os.path.join(folder, file) for file in files]
        return found
