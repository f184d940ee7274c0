"""The app's answers to questions, and the credentials that it stores ahead of them."""
import base64

from .failure import Violation


def answer_questions(worker, session, kindly=False):
    """Answers what is open: mostly with the right credential, sometimes with another or none."""
    client = worker.client(session)
    page = client.call("GET", f"/v1/questions?session={session.identifier}&state=open&limit=1000").json
    for question in page["items"]:
        answer = _answer(worker, session, question, 0 if kindly else worker.random.random())
        sent = client.call("POST", f"/v1/questions/{question['questionId']}/answer", answer, allowed=("question-answered", 404))
        if sent.status == 200:
            space = question.get("protectionSpace") or {"authenticationMethod": "a delayed request", "isProxy": False}
            worker.storm.meet(f"{answer['disposition']} for {'a proxy: ' * space['isProxy']}{space['authenticationMethod']}")
        session.note(f"answer {question['questionId']} of task {question['taskIdentifier']}: {str(answer)[:300]} {sent.status}")


def _answer(worker, session, question, choice):
    if question["type"] == "task.willBeginDelayedRequest":
        return _begin(worker, session, session.tasks[question["taskIdentifier"]], choice)
    if choice < 0.85:
        persistence = worker.random.choice(["none", "forSession", "forSession", "permanent"])
        credential = _credential(worker, session, question["protectionSpace"], wrong=choice > 0.75)
        return {"disposition": "useCredential", "credential": {**credential, "persistence": persistence}}
    if choice < 0.9:
        return {"disposition": "performDefaultHandling"}
    if choice < 0.95:
        session.may_cancel = True
        return {"disposition": "cancelAuthenticationChallenge"}
    return {"disposition": "rejectProtectionSpace"}


def _begin(worker, session, task, choice):
    if choice > 0.9:
        session.may_cancel = True
        return {"disposition": "cancel"}
    if choice > 0.5:
        request = {name: value for name, value in task.creation["request"].items() if name != "body"}
        request["url"] = request["url"].partition("?")[0] + f"?new={worker.random.randrange(1000)}"
        return {"disposition": "useNewRequest", "request": request}
    return {"disposition": "continueLoading"}


def _credential(worker, session, space, wrong):
    """What answers a protection space, or something else of the same kind."""
    storm = worker.storm
    if space["authenticationMethod"] == "ServerTrust":
        origin = storm.origin_at(space["port"])
        if space["serverPublicKey"] != origin.identity.pin:
            raise Violation(f"A question names another key than {origin.identity.pin}, the one of its origin.",
                            session=session, documents=[str(space)])
        return {"trustPublicKey": "sha256/" + base64.b64encode(bytes(32)).decode() if wrong else origin.identity.pin}
    if space["authenticationMethod"] == "ClientCertificate":
        identity = storm.identities["stranger" if wrong else "client"]
        return {"certificate": identity.certificate, "key": identity.key}
    if space["isProxy"]:
        return storm.proxy.authentication.credential(wrong=wrong)
    return session.app.space(space["realm"]).credential(wrong=wrong)


def store_credential(worker, session):
    """A credential of the whole app, stored ahead of any challenge."""
    random = worker.random
    origin = random.choice([origin for origin in worker.storm.origins if session.app.spaces[origin.port]])
    known = random.choice(session.app.spaces[origin.port])
    space = {"host": origin.host, "port": origin.port, "protocol": origin.scheme, "realm": known.realm,
             "authenticationMethod": known.method}
    worker.client(session).call("POST", "/v1/credentials", {
        "protectionSpace": space, "credential": {**known.credential(wrong=random.random() < 0.1), "persistence": "permanent"}})


def forget_credentials(worker, session):
    client = worker.client(session)
    items = client.call("GET", "/v1/credentials?limit=1000").json["items"]
    if items:
        client.call("DELETE", f"/v1/credentials/{worker.random.choice(items)['credentialIdentifier']}", allowed=(404,))
