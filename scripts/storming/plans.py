"""Draws what the workers create: configurations, tasks of every kind with bodies of every form, and scripts of misdeeds."""
import base64
import hashlib
import json
import time

from .content import BLOCK, Bytes, size
from .model import TaskModel
from .resources import Resource

# Each with the errors that it may end a task with.
BAD_DOWNLOADS = [("cut", ()), ("cut", ()), ("reset_download", ()), ("too_long", ()), ("no_range", ()), ("version", ()),
                 ("slow", ()), ("chunked", ()), ("empty", ()), ("stall", ()), ("unsatisfiable", ()), ("garbage", (-1017,)),
                 ("interim", ()), ("status", ()), ("status", ()), ("redirect", ())]
BAD_UPLOADS = [("cut_upload", ()), ("reset", ()), ("empty", ()), ("stall", ()), ("slow_upload", ()), ("interim", ()),
               ("garbage", (-1017,)), ("status", ()), ("status", ()), ("early", ()), ("redirect", ())]
BAD_DRAFTS = [("cut_upload", ()), ("cut_upload", ()), ("reset", ()), ("reset", ()), ("empty", ()), ("lose", ()),
              ("slow_upload", ()), ("status", ())]
# The last of a bounded number of attempts may have been any of these; -1011 is a 416 that fits nothing.
BROKEN = (-1005, -1001, -1004, -1, -1011)


def configuration(random, proxy):
    drawn = {"timeoutIntervalForRequest": random.choice([3, 5, 10]), "retryPolicy": retry_policy(random),
             "httpMaximumConnectionsPerHost": random.choice([1, 2, 4, 6])}
    if random.random() < 0.2:
        drawn["sessionSendsLaunchEvents"] = False
    if random.random() < 0.25:
        drawn["authenticationChallenges"] = "performDefaultHandling"
    if random.random() < 0.2:
        drawn["resumableUploads"] = "off"
    if random.random() < 0.2:
        drawn["httpAdditionalHeaders"] = {"X-Session": "storm"}
    if random.random() < 0.1:
        drawn["bandwidthLimit"] = random.choice([2_000_000, 20_000_000])
    if random.random() < 0.1:
        drawn["timeoutIntervalForResource"] = random.choice([5, 20])
    if random.random() < 0.1:
        drawn["proxy"] = {"type": "http", "host": proxy.host, "port": proxy.port}
        if random.random() < 0.3:
            drawn["proxy"]["credential"] = proxy.authentication.credential()
    return drawn


def retry_policy(random):
    if random.random() < 0.25:
        return random.choice(["robust", "apple"])
    policy = {"statusCodes": [408, 425, 429, 500, 502, 503, 504], "initialDelay": 0.1, "maximumDelay": random.choice([0.2, 1, 3])}
    if random.random() < 0.2:
        policy["maximumAttempts"] = random.choice([1, 3, 6])
    return policy


def misdeed(random, name):
    """The argument of a misdeed."""
    match name:
        case "cut" | "reset_download" | "cut_upload" | "reset":
            return random.choice([0, 0.1, 0.5, 0.9, random.random()])
        case "status":
            return random.choice([500, 502, 503, 504, 429, 408, 425, 503])
        case "early":
            return random.choice([401, 403, 404, 413, 500, 503, 200, 201])
        case "slow":
            return random.choice([0.01, 0.05, 0.2])
        case "slow_upload":
            return random.choice([0.1, 1])
        case "stall":
            return random.choice([1, 6, 15])
        case "redirect":
            return random.choice([301, 302, 303, 307, 307, 308]), random.random() < 0.5
        case "garbage":
            return random.choice(["nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"])
    return None


def moment(seconds):
    """A time that many seconds ahead, as responses write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + seconds))


class Planner:
    """Draws tasks for one worker."""

    def __init__(self, storm, random, app):
        self.storm, self.random, self.app = storm, random, app

    def task(self, session):
        """A task that is not created yet, with its resource at the origins."""
        random = self.random
        kind = "upload" if random.random() < 0.48 else "download"
        posts = kind == "download" and random.random() < 0.12
        body, source = self._body(session) if kind == "upload" or posts else (None, None)
        origin = random.choice(self.storm.plain)
        if self.storm.secure and not session.configuration.get("proxy") and random.random() < 0.12:
            origin = random.choice(self.storm.secure)
        resource, errors = self._resource(session, kind, body, origin)
        request = {"url": origin.url(resource.path)}
        if kind == "upload":
            request["method"] = random.choice(["PUT", "PUT", "POST", "PATCH"])
        elif posts:
            request.update(method="POST", body=source)
        if request.get("method") in ("POST", "PATCH") and random.random() < 0.5:
            request["headers"] = {"Idempotency-Key": resource.path}
        if random.random() < 0.1:
            request.setdefault("headers", {})["X-Secret"] = "storm"
            request["sensitiveHeaders"] = ["X-Secret"]
        creation = {"kind": kind, "request": request}
        if kind == "upload":
            creation["body"] = source
        task = TaskModel(session, resource, creation, kind, body)
        task.plausible_errors |= errors
        self._members(task, posts)
        return task

    def _members(self, task, posts):
        random, creation = self.random, task.creation
        if random.random() < 0.7:
            creation["clientTaskId"] = f"c{task.resource.path}"
        if random.random() < 0.4:
            creation["group"] = random.choice(["a", "b", "c"])
        if random.random() < 0.5:
            creation["priority"] = random.choice([0, 0.25, 0.75, 1])
        if random.random() < 0.5:
            creation["metadata"] = {"row": task.resource.path}
        if random.random() < 0.12:
            creation["state"] = "suspended"
            task.suspended, task.started = True, False
        if random.random() < 0.08:
            creation["earliestBeginDate"] = moment(random.uniform(0, 4))
        if random.random() < 0.05:
            creation["confirmBeforeStart"] = True
        if random.random() < 0.1:
            creation["failOnHTTPError"] = True
            task.plausible_errors.add(-1011)
        if random.random() < 0.06:
            accepted = random.choice([404, 403, 500, 503, task.resource.final])
            creation["acceptableStatusCodes"] = ["200-299", random.choice([str(accepted), accepted])]
            task.resource.acceptable = {accepted}
            if task.body is not None:  # One that comes before the body was read is none: -1011, after five attempts.
                task.plausible_errors.add(-1011)
        if task.kind == "download" and not posts:
            self._members_of_download(task)

    def _members_of_download(self, task):
        random, creation, resource = self.random, task.creation, task.resource
        if random.random() < 0.25:
            creation["destination"] = {"root": "files", "path": f"{task.session.identifier}{resource.path}.bin",
                                       "replace": random.random() < 0.5}
        if random.random() < 0.3:
            creation["segments"] = random.choice([2, 4, 8, "auto"])
        if random.random() < 0.12:
            self._mirror(task)
        if random.random() < 0.15 or "pieces" not in creation and "mirrors" in creation and random.random() < 0.5:
            creation["expectedDigest"] = {"algorithm": "sha-256", "value": resource.content(1).digest}
            task.plausible_errors.add(-1011)
        if random.random() < 0.05:
            creation["maximumContentLength"] = random.choice([resource.length // 2, resource.length + 100_000])
            task.plausible_errors.add(-1103)
        if ("pieces" in creation or "expectedDigest" in creation) and random.random() < 0.3:
            resource.script.insert(random.randint(0, len(resource.script)), ("flip", random.random()))
            task.plausible_errors.add(-1011)
        if random.random() < 0.05 and resource.validator == "strong" and resource.final == 200:
            creation["ifNoneMatch"] = resource.tag()

    def _mirror(self, task):
        """More sources of the same bytes, with digests of pieces or without."""
        random, resource = self.random, task.resource
        others = [origin.url(resource.path) for origin in self.storm.plain]
        task.creation["mirrors"] = random.sample([url for url in others if url != task.creation["request"]["url"]],
                                                 random.randint(1, 2))
        task.is_segmented = True
        if resource.length and random.random() < 0.7:
            length = random.choice([1024, 50_000, BLOCK, 1 << 20])
            length = max(length, resource.length // 1000)
            task.creation["pieces"] = {"length": length, "algorithm": "sha-256", "values": [
                hashlib.sha256(piece).hexdigest() for piece in resource.content(1).pieces(size=length)]}
            task.plausible_errors.add(-1011)

    def metalink(self, session):
        """A task from a Metalink document, and the document."""
        while True:
            task = self.task(session)
            if task.kind == "download" and task.body is None and task.resource.validator != "none":
                break
        resource, document = task.resource, ['<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a.bin">',
                                             f"<size>{task.resource.content(1).length}</size>"]
        self._mirror(task)
        pieces, mirrors = task.creation.get("pieces"), task.creation["mirrors"]
        for number, url in enumerate([task.creation["request"]["url"], *mirrors]):
            document.append(f'<url priority="{number + 1}">{url}</url>')
        document.append(f'<hash type="sha-256">{resource.content(1).digest}</hash>')
        if pieces:
            document += [f'<pieces length="{pieces["length"]}" type="sha-256">',
                         *(f"<hash>{value}</hash>" for value in pieces["values"]), "</pieces>"]
        creation = {"kind": "download", "request": {"url": task.creation["request"]["url"]}, "mirrors": mirrors,
                    "segments": "auto"}
        if pieces:
            creation["pieces"] = pieces
        made = TaskModel(session, resource, creation, "download")
        made.plausible_errors, made.is_metalink = task.plausible_errors | {-1011, -1103}, True
        resource.acceptable = set()
        return made, "\n".join([*document, "</file></metalink>"]).encode()

    def _resource(self, session, kind, body, origin):
        random = self.random
        session.next_path += 1
        table = BAD_UPLOADS if kind == "upload" or body is not None else BAD_DOWNLOADS
        draft = kind == "upload" and random.random() < 0.3 or None
        weights = [55, 25, 12, 8]
        if draft and random.random() < 0.8:
            table, weights = BAD_DRAFTS, [25, 30, 25, 20]
        drawn = [random.choice(table) for _ in range(random.choices([0, 1, 2, 3], weights)[0])]
        errors = {error for _, some in drawn for error in some} | origin.errors
        policy = session.configuration["retryPolicy"]
        if isinstance(policy, dict) and policy.get("maximumAttempts"):
            errors |= set(BROKEN)
        if session.configuration.get("timeoutIntervalForResource"):
            errors.add(-1001)
        script = [(name, misdeed(random, name)) for name, _ in drawn]
        errors |= {-1011 for name, argument in script if name == "early" and argument < 300}
        final = 200 if random.random() < 0.82 else random.choice([404, 404, 403, 400, 410, 409, 422, 500, 501])
        resource = Resource(
            f"/{session.prefix}/{session.next_path}", size(random), body=body, script=script, final=final,
            authentication=random.choice(self.app.spaces[origin.port] or [None]) if random.random() < 0.3 else None,
            validator=random.choices(["strong", "date", "weak", "none"], [70, 10, 10, 10])[0],
            ranges=random.random() < 0.85, coding="gzip" if random.random() < 0.04 else None, early=random.random() < 0.4,
            draft=draft)
        session.resources.append(resource)
        return self.storm.registry.add(resource), errors

    # Bodies

    def _body(self, session):
        """The bytes to send, and the JSON that names them."""
        random = self.random
        seed = f"body/{session.prefix}/{session.next_path + 1}"
        form = random.choice(["text", "base64", "json", "id", "id", "resumable", "file", "task"])
        if form == "text":
            text = "".join(random.choices("abc äöü\n", k=random.choice([0, 10, 1000, 20000])))
            return Bytes.of(text.encode()), {"text": text}
        if form == "base64":
            data = Bytes(random.choice([0, 1, 1000, 60000]), seed).all()
            return Bytes.of(data), {"base64": base64.b64encode(data).decode()}
        if form == "json":
            value = {"row": random.randrange(1000), "text": "x" * random.choice([0, 100, 30000])}
            return Bytes.of(json.dumps(value, separators=(",", ":")).encode()), {"json": value}
        if form == "task" and (relay := self._relay(session)):
            return relay
        body = Bytes(size(random), seed)
        if form == "file":
            return body, self._file(session, body)
        return body, {"id": self._stored(session, body, form == "resumable")}

    def _relay(self, session):
        """The content of a finished download of the same session."""
        able = [task for task in session.tasks.values() if task.kind == "download" and task.done and task.content_read
                and not task.claimed and not task.destination]
        if not able:
            return None
        task = self.random.choice(able)
        return task.content_read, {"task": task.number}

    def _file(self, session, body):
        """A file below the root, which is removed when the task has been accepted: the service has a copy then."""
        name = f"{session.prefix.replace('/', '-')}-{session.next_path + 1}.body"
        with open(self.storm.service.files / name, "wb") as file:
            for piece in body.pieces():
                file.write(piece)
        return {"root": "files", "path": name}

    def _stored(self, session, body, resumable):
        client = self.storm.client(session.app)
        if not resumable:
            stored = client.call("POST", "/v1/bodies", raw=body.all(), kind="application/octet-stream").json
        else:
            stored = self._stored_in_parts(client, body)
        session.bodies.append(stored["id"])
        return stored["id"]

    def _stored_in_parts(self, client, body):
        """An IETF draft upload to the API, continued by HEAD where a part broke."""
        half = self.random.randint(0, body.length)
        created = client.call("POST", "/v1/bodies", raw=body.slice(0, half), kind="application/octet-stream",
                              fields={"Upload-Complete": "?0"})
        path = "/v1/bodies/" + created.fields["Location"].rsplit("/", 1)[1]
        while True:
            offset = int(client.call("HEAD", path).fields["Upload-Offset"])
            sent = client.call("PATCH", path, raw=body.slice(offset, body.length), kind="application/partial-upload",
                               fields={"Upload-Offset": str(offset), "Upload-Complete": "?1"}, allowed=(409,))
            if sent.status == 200:
                return sent.json
            if client.call("HEAD", path).fields["Upload-Complete"] == "?1":
                return client.call("GET", path).json
