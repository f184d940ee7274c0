"""The pydantic models accept members that a later version adds to responses and events, and refuse unknown ones in requests.

    new_members.py DESCRIPTION.json    with the module `models` on the path

Each example of the description gets a new member in every object.
"""
import functools
import json
import pathlib
import sys

import models
from pydantic import TypeAdapter, ValidationError

NAME = "memberOfALaterVersion"


def extended(value: object) -> object:
    """A copy of the value with a new member in each object. The pins of a session are a map of hosts to lists."""
    if isinstance(value, list):
        return [extended(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: member if name == "pinnedPublicKeys" else extended(member) for name, member in value.items()}
    return members | {NAME: "new"}


def model(schema: dict) -> tuple[str, TypeAdapter] | None:
    name = schema.get("$ref", "").split("/")[-1]
    return (name, TypeAdapter(getattr(models, name))) if name else None


def examples(part: dict) -> list[tuple[str, TypeAdapter, object]]:
    content = part.get("content", {})
    content = content.get("application/json") or content.get("application/problem+json") or {}
    given = [entry["value"] for entry in content.get("examples", {}).values()]
    given += [content["example"]] if "example" in content else []
    known = model(content.get("schema", {}))
    return [(*known, example) for example in given] if known else []


def refuses(adapter: TypeAdapter, value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return True
    return False


def main(description: str) -> int:
    document = json.loads(pathlib.Path(description).read_text())

    def resolved(part: dict) -> dict:
        if "$ref" in part:
            part = functools.reduce(dict.__getitem__, part["$ref"].split("/")[1:], document)
        return part

    faults, seen = [], 0
    operations = [
        operation
        for item in document["paths"].values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    received = [resolved(response) for operation in operations for response in operation["responses"].values()]
    received += [item["post"]["requestBody"] for item in document["webhooks"].values()]
    for part in received:
        for name, adapter, example in examples(part):
            seen += 1
            try:
                adapter.validate_python(extended(example))
            except ValidationError as error:
                faults.append(f"{name} refuses a new member: {error}")
    for operation in operations:
        for name, adapter, example in examples(resolved(operation.get("requestBody", {}))):
            seen += 1
            if refuses(adapter, example):
                faults.append(f"{name} refuses its own example")
            elif isinstance(example, dict) and not refuses(adapter, example | {NAME: "new"}):
                faults.append(f"{name} accepts an unknown member")
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{seen} examples, {len(faults)} faults")
    return 1 if faults or seen < 100 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
