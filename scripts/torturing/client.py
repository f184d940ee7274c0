"""A client that repeats each call through the fault: with the same Idempotency-Key, until it knows the outcome."""
import itertools
import time

from storming.client import Client as Persistent
from storming.failure import Violation

_keys = itertools.count(1)
# The number of requests that one fault may break or refuse: requests that share its commit.
MOST = 5


class Client(Persistent):
    patience = 30

    def call(self, method, path, body=None, *, keyed=None, allowed=(), **others):
        if method == "POST" and keyed is None:
            keyed = f"torture-{next(_keys)}"
        while True:
            # The response to HEAD has no code.
            faults = (500, 507) if method == "HEAD" else ("internal-error", "insufficient-storage")
            response = super().call(method, path, body, keyed=keyed, allowed=(*allowed, *faults), **others)
            if response.status < 500 or response.status in allowed or response.code in allowed:
                return response
            self._note(f"{method} {path} was answered {response.status} {response.code}.", response.body)
            time.sleep(0.1)

    def _judge_break(self, generation, method, path, what):
        self.service.check_alive()
        if self.service.generation == generation:
            self._note(f"{method} {path} {what}, and the service was running.", b"")
            time.sleep(0.1)

    def _note(self, sentence, document):
        """Accepts a few refused or broken requests for one fault."""
        refused = self.storm.refused
        refused.append(sentence)
        if not self.service.is_faulty or len(refused) > MOST:
            raise Violation(sentence, documents=[*refused, document.decode(errors="replace")])
