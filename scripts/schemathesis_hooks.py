"""What schemathesis does not know by itself: media types of ours, what is no mistake, and which routes it came to."""

import json
import os

import schemathesis

schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")


@schemathesis.serializer("application/x-ndjson")
def one_line_each(context, value):
    if isinstance(value, str):
        return value.encode()
    rows = value if isinstance(value, list) else [value]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@schemathesis.hook
def filter_case(context, case):
    """Lines know no Idempotency-Key, so a wrong one is no reason to refuse them. Bytes are no Metalink document."""
    if case.media_type == "application/x-ndjson":
        return "Idempotency-Key" not in (case.headers or {})
    return case.media_type != "application/metalink4+xml" or not isinstance(getattr(case.body, "data", case.body), bytes)


@schemathesis.hook
def after_call(context, case, response):
    """Notes the routes where links led to something. A task without content has none, nor has a version without files."""
    found = response.status_code != 404 or case.path.endswith(("/content", "/manifest", "/files/{path}"))
    if found and (notes := os.environ.get("REACHED")):
        with open(notes, "a") as file:
            file.write(f"{case.operation.label}\n")
