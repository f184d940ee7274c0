#!/usr/bin/env python3
"""A news feed that refreshes itself every hour: `app.py FEED_URL`. README.md beside it tells the story.

urlsessiond wakes the app (`app.performFetch`); the app has it download the feed as a task of the session `news`, on the
condition that it changed, and answers `newData`, `noData` or `failed`. When the task is done the session launches the
app, which takes the content and notes the headlines it has not seen.

Environment: STATE (news.json) where all it knows is kept; PUBLIC (http://LISTEN/) where urlsessiond reaches it; INTERVAL
(3600); and what ../receiver.py takes: URLSESSIOND, API_KEY, WEBHOOK_SECRET, LISTEN.
"""
import json, os, pathlib, sys, threading, xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import receiver
from receiver import call

FEED = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
STATE = pathlib.Path(os.environ.get("STATE", "news.json"))
SESSION = "/v1/sessions/news"
lock = threading.Lock()  # launches arrive in threads of their own


def state():
    """`etag` and `digest` of the feed as it was last, and the `headlines` so far, by their identifiers."""
    return json.loads(STATE.read_text()) if STATE.exists() else {"etag": None, "digest": None, "headlines": {}}


def keep(state):
    part = STATE.with_name(STATE.name + ".part")
    part.write_text(json.dumps(state, indent=2, ensure_ascii=False))
    part.replace(STATE)


def fetch(launch):
    """We have 30 s. What the service needs longer for, it does without us: the session's launch tells of it."""
    known = state()
    # Named for the launch, so that one that comes twice makes one task.
    task = {"kind": "download", "request": {"url": FEED}, "clientTaskId": launch["launchId"], "maximumContentLength": 1 << 24}
    if known["etag"]:
        task["ifNoneMatch"] = known["etag"]
    number = call("POST", SESSION + "/tasks", task)["taskIdentifier"]
    done = call("GET", f"{SESSION}/tasks/{number}?wait=20")
    if done["outcome"] == "notModified":
        return "noData"
    if done["outcome"] == "succeeded":  # a server without entity tags sends the same again
        return "noData" if done["content"]["digest"]["value"] == known["digest"] else "newData"
    return "failed"


def handle(event):
    """One event of the session. Handling one twice changes nothing: a headline is new only once."""
    if event["type"] != "task.didFinishDownloading":
        return
    task = call("GET", f"{SESSION}/tasks/{event['taskIdentifier']}")
    if task["outcome"] != "succeeded":  # the page of an error
        return
    with lock:
        known = state()
        if event["data"]["digest"]["value"] == known["digest"]:
            return
        try:
            headlines = list(parse(call("GET", event["data"]["contentURL"], read=lambda content: content.read())))
        except xml.ParseError as problem:  # for good, so it must not keep the launch from being completed
            return print(f"not a feed: {problem}", flush=True)
        for identifier, title in headlines:
            if identifier not in known["headlines"]:
                print(f"NEW {title}", flush=True)
            known["headlines"][identifier] = title
        known["etag"] = next((v for k, v in task["response"]["headers"].items() if k.lower() == "etag"), None)
        known["digest"] = event["data"]["digest"]["value"]
        keep(known)


def parse(content):
    """Identifier and title of each item of RSS 2.0, or entry of Atom."""
    for item in xml.fromstring(content).iter():
        if item.tag.rpartition("}")[2] in ("item", "entry"):
            parts = {child.tag.rpartition("}")[2]: (child.text or child.get("href") or "").strip() for child in item}
            title = parts.get("title") or "(no title)"
            yield parts.get("guid") or parts.get("id") or parts.get("link") or title, title


if __name__ == "__main__":
    # The same calls at every start: a session that is there is reconnected to.
    call("PUT", SESSION, {"configuration": {"timeoutIntervalForResource": 3000}})  # give up before the next hour
    call("PATCH", "/v1/app", {"webhook": {"url": os.environ.get("PUBLIC", f"http://{receiver.LISTEN}/")}})
    interval = float(os.environ.get("INTERVAL", 3600))
    refresh = call("PUT", "/v1/app/background-refresh", {"minimumBackgroundFetchInterval": interval})
    print(f"next fetch: {refresh['nextFetchAt']} ({refresh['why']})", flush=True)
    receiver.serve(handle=handle, fetch=fetch)
