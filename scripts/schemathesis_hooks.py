"""Media types of ours that schemathesis cannot write by itself."""

import json

import schemathesis

schemathesis.serializer.alias("application/partial-upload", "application/octet-stream")


@schemathesis.serializer("application/x-ndjson")
def one_line_each(context, value):
    rows = value if isinstance(value, list) else [value]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
