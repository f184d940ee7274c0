"""How a storm ends early: a guarantee did not hold, or another thread has found that one did not."""


class Stopped(Exception):
    """The storm is over; the thread that gets this ends."""


class Violation(Exception):
    """A guarantee that did not hold: one sentence, and what belongs to it for the report."""

    def __init__(self, sentence, *, session=None, task=None, resource=None, documents=()):
        super().__init__(sentence)
        self.sentence, self.session, self.task, self.documents = sentence, session, task, documents
        self.resource = resource or (task.resource if task is not None else None)
