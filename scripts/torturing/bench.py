"""A bench: a folder, a service, an origin and a receiver, where one run follows the other."""
import dataclasses
import pathlib
import shutil
import time
import traceback

from storming.failure import Stopped, Violation
from storming.model import App
from storming.origins import Origin
from storming.receiver import Receiver
from storming.resources import Registry

from . import ledger, sequences
from .client import Client
from .service import Service
from .shim import Shim
from .story import Story

ENDS_WITHIN, CLEAN_WITHIN = 90, 20
# The writer copies its log into the database when it has been idle for half a second: these calls count too.
IDLE = 0.8


@dataclasses.dataclass
class Result:
    """The outcome of a run."""
    sequence: str
    call: object = None
    fault: str = None
    is_met: bool = False
    # The ends of processes by the fault: "killed", "exit 70".
    ends: list = dataclasses.field(default_factory=list)
    # Requests that were refused or broken by it.
    refused: list = dataclasses.field(default_factory=list)
    complaints: list = dataclasses.field(default_factory=list)
    # The violated guarantee, and the evidence.
    failure: str = None
    report: list = dataclasses.field(default_factory=list)
    seconds: float = 0
    counts: dict = dataclasses.field(default_factory=dict)

    @property
    def is_silent(self):
        """Whether the error reached neither a client nor the log."""
        return self.is_met and self.fault in ("EIO", "ENOSPC") and not (self.complaints or self.refused or self.ends)


class Bench:
    """The folder and the peers of one worker. Origin, receiver and clients use a bench in place of a storm."""

    settling, seed = True, "torture"

    def __init__(self, program, library, folder, other):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.registry, self.receiver = Registry(), Receiver(self)
        self.origin = Origin(self.registry, self)
        self.service = Service(program, self.folder, pathlib.Path(other), self)
        self.shim = Shim(library, self.folder, {"data": self.service.data, "backups": self.service.backups,
                                                **self.service.roots})
        self.failure, self.fault, self.deadline, self.started, self.operations = None, None, None, None, 0
        self.refused, self.notes, self.files_before = [], [], {}
        self.app = None
        self.snapshot = self._make_snapshot()

    # The interface of a storm

    def check_running(self):
        if self.failure is not None:
            raise Stopped
        if time.monotonic() > self.deadline:
            raise Violation(f"The run had not ended after {ENDS_WITHIN} s.")

    def fail(self, violation):
        self.failure = self.failure or violation

    def broken(self, error):
        self.fail(Violation(f"The torture itself failed: {error!r}.", documents=[traceback.format_exc()]))

    def meet(self, _):
        pass

    def note(self, text):
        self.notes.append(text.strip())

    # For sequences

    @property
    def kills(self):
        return self.fault is None or self.fault.startswith("kill")

    @property
    def client(self):
        return Client(self, self.app.key)

    def make_app(self):
        """Creates the app, with the admin key of the data folder."""
        key = (self.service.data / "admin.key").read_text().strip()
        operator = Client(self, key)
        made = operator.call("POST", "/v1/apps", {"identifier": "torture", "webhook": {
            "url": self.receiver.url("torture"), "launchDeadline": 5}}).json
        self._know(made["apiKey"], made["webhook"]["secret"])
        return made["apiKey"], made["webhook"]["secret"]

    def _know(self, key, secret):
        self.app = App("torture", key, {}, True)
        self.receiver.know("torture", secret)

    def put_file(self, root, path, data):
        file = self.service.roots[root] / path
        file.write_bytes(data)
        self.files_before[str(file)] = data

    def _make_snapshot(self):
        self.deadline = time.monotonic() + ENDS_WITHIN
        self.service.reset()
        self.service.start()
        self.known = self.make_app()
        self.service.end()
        return shutil.copytree(self.service.data, self.folder / "snapshot")

    # One run

    def run(self, name, call=None, fault=None):
        """Carries out a sequence with a fault, or counts its calls."""
        result, began = Result(name, call, fault), time.monotonic()
        self.failure, self.fault, self.deadline, self.started = None, fault, began + ENDS_WITHIN, began
        self.refused, self.notes, self.files_before = [], [], {}
        self._know(*self.known)
        story = Story(self)
        try:
            self._run(sequences.ALL[name](), story, result, (call, fault))
            if self.failure:
                raise self.failure
        except Stopped:
            self._report(result, self.failure)
        except Violation as violation:
            self._report(result, violation)
        except Exception as error:  # pylint: disable=broad-except
            self.broken(error)
            self._report(result, self.failure)
        result.is_met, result.ends, result.refused = self.shim.is_met if call else False, self.service.ends, self.refused
        result.complaints = self.service.complaints() + self.notes
        self.service.kill_for_good()
        for resource in list(self.registry.resources.values()):
            self.registry.forget(resource)
        result.seconds = time.monotonic() - began
        return result

    def _run(self, sequence, story, result, armed):
        self.service.retention = sequence.retention
        sequence.begin(self, armed)
        self.started = time.monotonic()
        sequence.prepare(story)
        if not self.shim.page.armed:
            self.shim.arm(*armed)
        sequence.act(story)
        self._await_fault(armed[0])
        if not sequence.counts_end:
            result.counts = self.shim.counts()
            self.shim.page.armed = 0
        if self.service.has_shim:
            self.service.end()
            result.counts = result.counts or self.shim.counts()
            self.service.start()
        story.check()
        sequence.check(story)
        self._await_no_strays()
        self.service.end()
        ledger.check(self.service.data, self.service.roots.values())
        sequence.check_stopped(self)

    def _await_fault(self, call):
        until = time.monotonic() + IDLE
        while time.monotonic() < until and not (call and self.shim.is_met):
            self.service.check_alive()
            time.sleep(0.02)

    def _await_no_strays(self):
        deadline = time.monotonic() + CLEAN_WITHIN
        while left := ledger.strays(self.service.data):
            if time.monotonic() > deadline:
                raise Violation(f"{len(left)} files are useless or incomplete {CLEAN_WITHIN} s after a start.", documents=left)
            time.sleep(0.1)

    def _report(self, result, violation):
        """Records a violation with its evidence."""
        result.failure = violation.sentence
        lines = [*violation.documents]
        if violation.task is not None:
            lines += ["-- task", str(violation.task.creation)[:1000], violation.task.resource.describe()]
        if self.refused:
            lines += ["-- refused", *self.refused]
        lines += ["-- last calls", *self.shim.recent(), *self.service.recent_log()]
        result.report = lines
