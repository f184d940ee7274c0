"""A program that knows the service by the generated client alone: an app from its creation to its completed launch.

    story.py URL ADMIN_KEY
"""
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import TypeVar

from urlsessiond_client import AuthenticatedClient
from urlsessiond_client.api.apps import create_app
from urlsessiond_client.api.bodies import create_body
from urlsessiond_client.api.content import get_content
from urlsessiond_client.api.events import list_events
from urlsessiond_client.api.launches import complete_launch, get_launch
from urlsessiond_client.api.questions import answer_question, list_questions
from urlsessiond_client.api.sessions import create_or_reconnect_session, get_session
from urlsessiond_client.api.tasks import create_task, create_tasks, get_task
from urlsessiond_client.models import (
    Answer,
    AppCreation,
    Batch,
    BatchCreation,
    BodySource,
    CreatedApp,
    Credential,
    Disposition,
    EventPage,
    HandleEventsPayload,
    Launch,
    LaunchCompletion,
    LaunchState,
    Problem,
    ProblemCode,
    Question,
    QuestionPage,
    QuestionState,
    RetryPolicyName,
    Session,
    SessionConfiguration,
    SessionPut,
    SessionTask,
    StoredBody,
    TaskCreation,
    TaskDidCompleteEvent,
    TaskDidFinishCollectingMetricsEvent,
    TaskDidReceiveChallengeEvent,
    TaskKind,
    TaskMetadata,
    TaskOutcome,
    TransferRequestCreation,
    WebhookChange,
)
from urlsessiond_client.types import File

CONTENT = bytes(range(256)) * 100
T = TypeVar("T")


class World(BaseHTTPRequestHandler):
    """The origin that is fetched from and the app's receiver of webhooks, in one."""

    uploads: list[bytes] = []
    launches: list[HandleEventsPayload] = []

    def do_GET(self) -> None:
        allowed = self.path != "/guarded" or "Authorization" in self.headers
        self.send_response(200 if allowed else 401)
        if not allowed:
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
        self.finish_with(CONTENT if allowed else b"")

    def do_PUT(self) -> None:
        self.uploads.append(self.body())
        self.send_response(200)
        self.finish_with(b"")

    def do_POST(self) -> None:
        self.launches.append(HandleEventsPayload.from_dict(json.loads(self.body())))
        self.send_response(204)
        self.end_headers()

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def finish_with(self, content: bytes) -> None:
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def got(kind: type[T], answer: object) -> T:
    """The answer, which must be of this type: what else came is told."""
    assert isinstance(answer, kind), f"{kind.__name__} was expected, not {answer}"
    return answer


def eventually(what: str, look: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    raise TimeoutError(what)


def main(url: str, admin_key: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), World)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    world = f"http://127.0.0.1:{server.server_port}"
    name = "com.example.story"

    admin = AuthenticatedClient(base_url=url, token=admin_key)
    creation = AppCreation(identifier=name, webhook=WebhookChange(url=f"{world}/launches", include_events=100))
    app = got(CreatedApp, create_app.sync(client=admin, body=creation))
    client = AuthenticatedClient(base_url=url, token=app.api_key)

    configuration = SessionConfiguration(timeout_interval_for_resource=600, retry_policy=RetryPolicyName.APPLE)
    session = got(
        Session, create_or_reconnect_session.sync(name, client=client, body=SessionPut(configuration=configuration))
    )
    assert session.configuration.timeout_interval_for_resource == 600
    assert session.configuration.retry_policy == RetryPolicyName.APPLE
    problem = got(Problem, get_session.sync("another", client=client))
    assert problem.code == ProblemCode.NOT_FOUND

    metadata = TaskMetadata()
    metadata["row"] = "17"
    plain = TaskCreation(
        kind=TaskKind.DOWNLOAD,
        request=TransferRequestCreation(url=f"{world}/plain"),
        client_task_id="plain",
        priority=0.75,
        metadata=metadata,
        segments=2,
    )
    guarded = TaskCreation(kind=TaskKind.DOWNLOAD, request=TransferRequestCreation(url=f"{world}/guarded"))
    batch = got(Batch, create_tasks.sync(name, client=client, body=BatchCreation(tasks=[plain, guarded])))
    assert batch.created == 2
    body = got(StoredBody, create_body.sync(client=client, body=File(payload=BytesIO(b"stored"))))
    upload = TaskCreation(
        kind=TaskKind.UPLOAD, request=TransferRequestCreation(url=f"{world}/in"), body=BodySource(id=body.id)
    )
    uploaded = got(SessionTask, create_task.sync(name, client=client, body=upload))

    def asked() -> Question | None:
        page = got(QuestionPage, list_questions.sync(client=client, session=name, state=[QuestionState.OPEN]))
        return page.items[0] if page.items else None

    question = eventually("a question", asked)
    answer = Answer(
        disposition=Disposition.USECREDENTIAL, credential=Credential(user="me", password="secret")
    )
    answered = got(Question, answer_question.sync(question.question_id, client=client, body=answer))
    assert answered.state == QuestionState.ANSWERED

    for number in (1, 2, uploaded.task_identifier):
        task = got(SessionTask, get_task.sync(name, number, client=client, wait=30))
        assert task.outcome == TaskOutcome.SUCCEEDED, task
    assert World.uploads == [b"stored"]
    first = got(SessionTask, get_task.sync(name, 1, client=client))
    assert (first.client_task_id, first.priority, first.segments) == ("plain", 0.75, 2)
    assert got(TaskMetadata, first.metadata)["row"] == "17"

    events = got(EventPage, list_events.sync(name, client=client, after=0))
    completions = [event for event in events.items if isinstance(event, TaskDidCompleteEvent)]
    assert sorted(event.task_identifier for event in completions) == [1, 2, 3]
    assert all(event.data.outcome == TaskOutcome.SUCCEEDED for event in completions)
    challenge = next(event for event in events.items if isinstance(event, TaskDidReceiveChallengeEvent))
    assert challenge.data.protection_space.realm == "private"
    metrics = next(event for event in events.items if isinstance(event, TaskDidFinishCollectingMetricsEvent))
    assert metrics.data.transaction_metrics[0].status_code == 200

    content = got(File, get_content.sync(name, 2, client=client))
    assert content.payload.read() == CONTENT

    completed: dict[str, Launch] = {}

    def all_acknowledged() -> Session | None:
        for launch in World.launches:
            assert launch.data.session_identifier == name and launch.data.events
            if (launch_id := launch.data.launch_id) not in completed:
                completion = LaunchCompletion(through=launch.data.last_seq)
                got(Launch, complete_launch.sync(launch_id, client=client, body=completion))
                completed[launch_id] = got(Launch, get_launch.sync(launch_id, client=client))
        session = got(Session, get_session.sync(name, client=client))
        return session if session.acknowledged_seq >= events.last_seq else None

    eventually("launches that tell of all", all_acknowledged)
    assert all(launch.state == LaunchState.COMPLETED for launch in completed.values()), completed
    print("The generated client lived through the story.")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
