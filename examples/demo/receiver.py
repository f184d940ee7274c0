#!/usr/bin/env python3
"""../receiver.py, with every launch verified by the PyPI packages `standardwebhooks` and `svix` as well.

Each attempt that arrives is a line in ATTEMPTS: its id and who accepted its signature.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import receiver
import standardwebhooks
import svix

SECRET = os.environ.get("WEBHOOK_SECRET") or receiver.app()["webhook"]["secret"]
VERIFIERS = {
    "receiver.py": receiver.verify,
    "standardwebhooks": lambda headers, body: standardwebhooks.Webhook(SECRET).verify(body, dict(headers)),
    "svix": lambda headers, body: svix.Webhook(SECRET).verify(body, dict(headers)),
}


def verify(headers, body):
    headers = {name.lower(): value for name, value in headers.items()}
    accepted = {}
    for name, check in VERIFIERS.items():
        try:
            check(headers, body)
            accepted[name] = True
        except Exception as problem:
            accepted[name] = repr(problem)
    attempt = {"id": headers.get("webhook-id"), "type": json.loads(body).get("type"), "accepted": accepted}
    with open(os.environ["ATTEMPTS"], "a") as attempts:
        attempts.write(json.dumps(attempt) + "\n")
    if any(answer is not True for answer in accepted.values()):
        raise ValueError(f"refused: {accepted}")


receiver.serve(verify)
