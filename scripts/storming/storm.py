"""One storm: the service, its origins and its receiver, the workers, the kills, and what is said at the end."""
import collections
import pathlib
import random
import shutil
import signal
import tempfile
import threading
import time
import traceback

from . import endings, report
from .authentication import Authentication
from .client import Client
from .failure import Stopped, Violation
from .model import App
from .origins import Origin, Proxy
from .receiver import Receiver
from .resources import Registry
from .service import Service
from .tls import Identity, SecureOrigin
from .workers import Worker

SETTLED_WITHIN, CLEANED_WITHIN = 600, 120


class Storm:
    """The state that all threads share."""

    def __init__(self, program, seconds, seed, workers, keep):
        self.seconds, self.seed, self.keep = seconds, seed, keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="urlsessiond-storm."))
        self.service = Service(program, self.folder)
        self.failure, self.settling, self.over = None, False, threading.Event()
        self.operations = self.created = self.uploads = 0
        # `met` counts what the choices led to, so that a closing line shows what a run did not come to.
        self.outcomes, self.met, self.lock = collections.Counter(), collections.Counter(), threading.Lock()
        self.registry, self.receiver = Registry(), Receiver(self)
        self.plain = [Origin(self.registry, self, host) for host in ("127.0.0.1", "127.0.0.1", "localhost")]
        for origin in self.plain:
            origin.others = self.plain
        # Without openssl no origin is behind TLS.
        names = ("server", "client", "stranger") if shutil.which("openssl") else ()
        self.identities = {name: Identity(self.folder, name) for name in names}
        self.secure = [SecureOrigin(self.registry, self, self.identities["server"], clients)
                       for clients in ((None, self.identities["client"]) if names else ())]
        self.origins = self.plain + self.secure
        self.proxy = Proxy(self.registry, self)
        self.random = random.Random(f"{seed}/kills")
        self.worker_count, self.workers, self.apps = workers, [], []

    # What threads say and ask

    def check_running(self):
        if self.over.is_set():
            raise Stopped

    def fail(self, violation):
        """The first violation ends the storm."""
        with self.lock:
            if self.failure is None:
                self.failure = violation
        self.over.set()

    def broken(self, error):
        self.fail(Violation(f"The storm itself failed: {error!r}.", documents=[traceback.format_exc()]))

    def origin_at(self, port):
        return next(origin for origin in self.origins if origin.port == port)

    def client_of_operator(self):
        return Client(self, "dev-admin")

    def client(self, app):
        return Client(self, app.key)

    def meet(self, what):
        with self.lock:
            self.met[what] += 1

    def count(self, task):
        with self.lock:
            outcome = task.done["outcome"] if task.done else "deleted"
            self.outcomes[outcome] += 1
            self.met.update(f"{trait}: {outcome}" for trait in task.traits())
            self.uploads += task.body is not None and bool(task.done) and task.done["outcome"] == "succeeded"

    # The course of a storm

    def run(self):
        """Whether every guarantee held."""
        began = time.monotonic()
        try:
            self.service.start()
            self._make_apps()
            self.workers = [Worker(self, number, self.apps[number % len(self.apps)]) for number in range(self.worker_count)]
            for worker in self.workers:
                worker.start()
            self._blow(began + self.seconds)
            self.settling = True
            self._settle()
        except Stopped:
            pass
        except Violation as violation:
            self.fail(violation)
        except KeyboardInterrupt:
            self.fail(Violation("The storm was interrupted."))
        except Exception as error:  # pylint: disable=broad-except
            self.broken(error)
        self.over.set()
        if self.failure:
            report.failure(self, time.monotonic() - began)
        self.service.kill_for_good()
        print(report.met_line(self))
        print(report.closing_line(self, time.monotonic() - began), flush=True)
        if not self.failure and not self.keep:
            shutil.rmtree(self.folder)
        return self.failure is None

    def _make_apps(self):
        operator = self.client_of_operator()
        for identifier in ("storm.a", "storm.bc", "storm.c"):
            created = operator.call("POST", "/v1/apps", {"identifier": identifier, "webhook": {
                "url": self.receiver.url(identifier), "launchDeadline": 5, "includeEvents": 10}}).json
            self.receiver.know(identifier, created["webhook"]["secret"])
            known = {scheme: Authentication(scheme, identifier) for scheme in ("Basic", "Digest", "Bearer")}
            # An origin asks one scheme or two. Where one credential is stored for it, the service may send it unasked.
            spaces = {origin.port: [known[self.random.choice(["Basic", "Digest", "Digest", "Bearer"])]
                                    for _ in range(self.random.choice([1, 1, 2]))] for origin in self.plain}
            # The credential of a task is a certificate or one of HTTP.
            spaces.update({origin.port: [] if origin.clients else [known["Basic"]] for origin in self.secure})
            self.apps.append(App(identifier, created["apiKey"], spaces, True))

    def _blow(self, until):
        """Kills the service every few seconds, mostly after each worker has audited the last restart."""
        while time.monotonic() < until:
            pause = min(max(self.random.expovariate(1 / 4.5), 0.2), 15)
            self._wait(min(pause, max(0, until - time.monotonic())))
            number = signal.SIGKILL if self.random.random() < 0.7 else signal.SIGTERM
            self.service.stop(number)
            if self.random.random() < 0.1:
                self.service.spawn()
                self._wait(self.random.random())
                self.service.stop(signal.SIGKILL)
            self.service.start()
            if self.random.random() < 0.8:
                self._await_audits()

    def _await_audits(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and any(worker.audited != self.service.generation for worker in self.workers):
            self._wait(0.05)

    def _wait(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.service.check_alive()
            if self.over.wait(min(left, 0.2)):
                raise Stopped

    def _settle(self):
        """Every session is brought to its end, and no file is left."""
        deadline = time.monotonic() + SETTLED_WITHIN
        for worker in self.workers:
            while worker.is_alive():
                self._wait(0.2)
                if time.monotonic() > deadline:
                    raise Violation(f"{worker.name} has not settled within {SETTLED_WITHIN} s.")
        deadline = time.monotonic() + CLEANED_WITHIN
        for app in self.apps:
            while endings.forget_bodies(self.client(app), older=-60):
                pass
        while left := self.service.leftovers():
            self._wait(0.5)
            if time.monotonic() > deadline:
                raise Violation(f"All sessions are deleted, and {len(left)} files are left in the data folder "
                                f"{CLEANED_WITHIN} s later.", documents=left[:50])
        self.service.stop(signal.SIGTERM)
