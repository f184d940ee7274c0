"""What a worker does to its app and as the operator: webhooks and their secrets, keys that are revoked, apps that are deleted."""
import http.client
import json
import threading
import time

from . import plans
from .client import Client
from .failure import Violation
from .model import App, SessionModel
from .operations import adopt

# How long a delivery that was in flight may still arrive.
IN_FLIGHT, ENDED_WITHIN = 15, 20


def change_webhook(worker, session):
    """Pauses, disables or takes away the webhook of the app, or gives it back."""
    app, random = session.app, worker.random
    choice = random.choice(["paused", "disabled", "no URL", "null", "enabled", "enabled", "enabled", "enabled"])
    with app.lock:
        if choice == "enabled":
            _enable(worker.storm, app)
            return
        change = {"paused": {"state": "paused"}, "disabled": {"state": "disabled"}, "no URL": {"url": None}, "null": None}[choice]
        worker.storm.client(app).call("PATCH", "/v1/app", {"webhook": change})
        worker.storm.receiver.quiet[app.identifier] = time.time() + IN_FLIGHT
        worker.storm.meet(f"webhook {choice}")
    session.note(f"webhook {choice}")


def await_webhook(storm, app):
    """Gives the webhook back where the app, or the service after a 410, has taken it away."""
    with app.lock:
        webhook = storm.client(app).call("GET", "/v1/app").json["webhook"]
        if webhook["state"] != "enabled" or webhook["url"] is None:
            _enable(storm, app)


def _enable(storm, app):
    storm.receiver.quiet.pop(app.identifier, None)
    storm.client(app).call("PATCH", "/v1/app", {"webhook": {
        "url": storm.receiver.url(app.identifier), "state": "enabled", "launchDeadline": 5, "includeEvents": 10}})


def rotate_secret(worker, session):
    """Replaces the secret of the webhook, or takes the replaced ones away."""
    app, secrets, client = session.app, worker.storm.receiver.secrets[session.app.identifier], worker.client(session)
    with app.lock:
        if worker.random.random() < 0.3:
            client.call("DELETE", "/v1/app/webhook/secret/previous")
            secrets.end_previous()
            return
        period = worker.random.choice([0, 2, 3600])
        with secrets.rotation():
            rotated = client.call("POST", "/v1/app/webhook/secret/rotate", {"gracePeriod": period}).json
            secrets.replace(rotated["secret"], period)
        worker.storm.meet("secret rotated")


def ping(worker, session):
    """The receiver has got what the response says it has answered."""
    receiver, app = worker.storm.receiver, session.app.identifier
    before = receiver.pings[app]
    answer = worker.client(session).call("POST", "/v1/app/webhook/ping", allowed=("invalid-value",))
    worker.storm.meet(f"ping {answer.json.get('statusCode')}")
    if answer.json.get("statusCode") == 200 and receiver.pings[app] == before:
        raise Violation(f"A ping of {app} was answered with 200, and its receiver has got none.", session=session,
                        documents=[answer.body.decode()])


def revoke_key(worker, session):
    """A key of its own opens what its scopes say, and nothing from the moment that it is revoked or expires."""
    storm, random = worker.storm, worker.random
    operator, keys = storm.client_of_operator(), f"/v1/apps/{session.app.identifier}/keys"
    scopes, expires = random.choice([None, ["sessions:read"], ["sessions:read", "events"]]), random.random() < 0.3
    creation = {"scopes": scopes} if scopes else {}
    end = int(time.time() + 4)
    if expires:
        creation["expiresAt"] = plans.moment(4)
    answer = operator.call("POST", keys, creation, allowed=("invalid-value",))
    if answer.status == 422 and expires:  # A restart took longer than the key would have lived.
        return
    made, client = answer.json, Client(storm, answer.json["apiKey"])
    if client.call("GET", session.path, allowed=(401,)).status == 401 and not (expires and time.time() > end - 0.5):
        raise Violation(f"A new key of {session.app.identifier} was refused.", session=session)
    if scopes and client.call("POST", f"{session.path}/tasks/resume", {"group": "none"}, allowed=(401, 403)).status < 400:
        raise Violation(f"A key with the scopes {scopes} was let to resume tasks.", session=session)
    held = _Held(storm, made["apiKey"], f"{session.path}/events?after={session.log.last}&wait=60"
                 if scopes != ["sessions:read"] else f"{session.path}?wait=60&revision=1000000")
    time.sleep(random.random() * 0.2)
    if expires:
        time.sleep(max(0, end + 1.5 - time.time()))
    else:
        operator.call("DELETE", f"{keys}/{made['keyIdentifier']}", allowed=(404,))
    if client.call("GET", session.path, allowed=(401,)).status != 401:
        raise Violation(f"A key of {session.app.identifier} was let in after its end.", session=session)
    held.join(ENDED_WITHIN)
    if held.is_alive() and storm.service.is_steady(held.generation):
        raise Violation(f"A request that was held open by a key of {session.app.identifier} did not end with it.",
                        session=session)
    # With events, the response may have come before the end of the key.
    if held.empty and held.ended - held.began < 50 and storm.service.is_steady(held.generation):
        raise Violation(f"A held read by a key of {session.app.identifier} that had ended was answered as if nothing was there.",
                        session=session)
    storm.meet(f"key {'expired' if expires else 'revoked'} while held: {held.status}")


class _Held(threading.Thread):
    """A request that the service holds."""

    def __init__(self, storm, key, path):
        super().__init__(daemon=True, name="held")
        self.port, self.key, self.path = storm.service.port, key, path
        self.generation, self.status = storm.service.generation, "broken"
        self.began, self.ended, self.empty = time.monotonic(), None, False
        self.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=70)
        try:
            connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            body = answer.read()
            self.status, self.ended = answer.status, time.monotonic()
            self.empty = answer.status == 200 and json.loads(body).get("items") == []
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()


def delete_app(worker, session):
    """An app of its own with some tasks is deleted in the middle of them, sometimes to be made again without them."""
    storm, random, operator = worker.storm, worker.random, worker.storm.client_of_operator()
    worker.apps_made += 1
    name = f"storm.x{worker.number}.{worker.apps_made}"
    created = operator.call("POST", "/v1/apps", {"identifier": name, "webhook": {"url": storm.receiver.url(name)}}).json
    storm.receiver.know(name, created["webhook"]["secret"])
    app = App(name, created["apiKey"], {origin.port: [] for origin in storm.origins}, True)
    short = SessionModel("short", app, plans.configuration(random, storm.proxy), storm.receiver)
    client = storm.client(app)
    client.call("PUT", short.path, {"configuration": short.configuration})
    short.prefix = f"{name}/short"
    planner = plans.Planner(storm, random, app)
    tasks = [planner.task(short) for _ in range(random.randint(1, 6))]
    for task in tasks:
        task.creation.pop("destination", None)
    made = client.call("POST", f"{short.path}/tasks/batch", {"tasks": [task.creation for task in tasks]}).json
    for task, item in zip(tasks, made["items"], strict=True):
        adopt(storm, short, task, item["taskIdentifier"])
    time.sleep(random.choice([0, 0.02, 0.3]))
    operator.call("DELETE", f"/v1/apps/{name}", allowed=(404,))
    storm.receiver.quiet[name] = time.time() + IN_FLIGHT
    if client.call("GET", short.path, allowed=(401,)).status != 401:
        raise Violation(f"The key of {name} was let in after its app was deleted.", session=short)
    if random.random() < 0.4:
        again = operator.call("POST", "/v1/apps", {"identifier": name}).json
        if left := storm.client(App(name, again["apiKey"], {}, False)).call("GET", "/v1/tasks").json["items"]:
            raise Violation(f"The app {name} was deleted and made again, and has the tasks of before.", session=short,
                            documents=[str(left)])
        operator.call("DELETE", f"/v1/apps/{name}", allowed=(404,))
    for resource in short.resources:
        storm.registry.forget(resource)
    storm.meet("app deleted")


OPERATIONS = [(change_webhook, 2), (rotate_secret, 1), (ping, 1), (revoke_key, 0.5), (delete_app, 0.5)]
