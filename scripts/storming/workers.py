"""The workers: each has its own generator of choices, its own sessions, and audits them after each restart."""
import random
import threading
import time

from . import apps, checks, endings, operations, plans
from .failure import Stopped, Violation
from .model import SessionModel

SESSIONS, OPEN_TASKS = 3, 40


class Worker(threading.Thread):
    """A thread that drives the sessions of one app until the storm is over, and then brings them to their ends."""

    def __init__(self, storm, number, app):
        super().__init__(daemon=True, name=f"worker-{number}")
        self.storm, self.number, self.app = storm, number, app
        self.random = random.Random(f"{storm.seed}/{number}")
        self.planner = plans.Planner(storm, self.random, app)
        self.sessions, self.made, self.audited, self.keys, self.apps_made = [], 0, 1, 0, 0

    def client(self, session):
        return self.storm.client(session.app)

    def key(self):
        """An Idempotency-Key of its own."""
        self.keys += 1
        return f"{self.name}-{self.keys}"

    def run(self):
        try:
            while not self.storm.settling:
                self._step()
            while self.sessions:
                endings.finish(self, self.sessions[0])
        except Stopped:
            pass
        except Violation as violation:
            self.storm.fail(violation)
        except Exception as error:  # pylint: disable=broad-except
            self.storm.broken(error)

    def audit(self):
        """After a restart: everything that was confirmed before it."""
        generation = self.storm.service.generation
        if self.audited == generation:
            return
        for session in self.sessions:
            checks.audit(self.client(session), session)
            checks.reread(self.client(session), session, generation)
            for task in session.tasks.values():
                checks.check_destination(self.storm, task)
        self.audited = generation

    def _step(self):
        self.storm.check_running()
        self.audit()
        if len(self.sessions) < SESSIONS and (not self.sessions or self.random.random() < 0.1):
            self._make_session()
        session = self.random.choice(self.sessions)
        if session.budget <= 0:
            endings.end(self, session)
            return
        session.budget -= 1
        functions, weights = zip(*operations.OPERATIONS, *apps.OPERATIONS)
        operation = self.random.choices(functions, weights)[0]
        if operation.__name__.startswith("create") and len(session.unfinished()) > OPEN_TASKS:
            operation = operations.read_task
        operation(self, session)
        time.sleep(self.random.random() * 0.03)

    def _make_session(self):
        self.made += 1
        identifier = f"w{self.number}.s{self.made}"
        session = SessionModel(identifier, self.app, plans.configuration(self.random, self.storm.proxy), self.storm.receiver)
        session.budget = self.random.randint(30, 250)
        if self.random.random() < 0.5:
            self.client(session).call("PUT", session.path, {"configuration": session.configuration})
        else:
            self.client(session).call("POST", "/v1/sessions",
                                      {"identifier": identifier, "configuration": session.configuration})
        self.sessions.append(session)

    def some_open(self, session):
        tasks = session.unfinished()
        return self.random.choice(tasks) if tasks else None
