"""Nothing is lost: each schema with members has a type in each client, and the type has every member.

    members.py DESCRIPTION.json FOLDER    with the clients in FOLDER/NAME
"""
import json
import pathlib
import re
import sys

# How each generator declares a type, and the files that have its types.
CLIENTS = {
    "urlsessiond_client": ("models/*.py", r"^class {}:"),
    "datamodel": ("*.py", r"^class {}\("),
    "python": ("openapi_client/models/*.py", r"^class {}\("),
    "swift6": ("**/Models/*.swift", r"^public (?:struct|enum) {}\b"),
    "typescript-fetch": ("**/models/*.ts", r"^export (?:interface|type) {}\b"),
    "go": ("model_*.go", r"^type {} struct"),
}


def declarations(folder: pathlib.Path, files: str, form: str) -> dict[str, str]:
    """Type names in lower case, without underscores, and the text from there to the next type."""
    found: dict[str, str] = {}
    pattern = re.compile(form.format(r"(\w+)"), re.MULTILINE)
    for path in folder.glob(files):
        text = path.read_text()
        starts = list(pattern.finditer(text))
        for index, start in enumerate(starts):
            end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
            found[start[1].lower().replace("_", "")] = text[start.start() : end]
    return found


def members(schema: dict, schemas: dict) -> set[str]:
    """What an object of a schema may have, its allOf included."""
    own = set(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        own |= members(schemas[part["$ref"].split("/")[-1]] if "$ref" in part else part, schemas)
    return own


def main(description: str, folder: str) -> int:
    schemas = json.loads(pathlib.Path(description).read_text())["components"]["schemas"]
    wanted = {name: names for name, schema in schemas.items() if (names := members(schema, schemas))}
    lost = []
    for client, (files, form) in CLIENTS.items():
        types = declarations(pathlib.Path(folder) / client, files, form)
        for name, names in sorted(wanted.items()):
            if (text := types.get(name.lower())) is None:
                lost.append(f"{client}: {name}")
                continue
            lost += [f"{client}: {name}.{member}" for member in sorted(names) if not re.search(rf"\b{member}\b", text)]
    print(*lost, sep="\n", end="\n" if lost else "")
    print(f"{len(wanted)} types in {len(CLIENTS)} clients, {len(lost)} losses")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
