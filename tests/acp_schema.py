"""The protocol's own JSON schema, applied to one message at a time.

Rule 1: a value is held against the definition of its method. The schema's root accepts anything,
since it must accept extensions.
Rule 2: keys that no definition names are faults too, although the schema is open: nothing but
`_meta` is ours to extend.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from jsonschema import Draft202012Validator  # pyright: ignore[reportMissingTypeStubs] (has none)

Json = dict[str, Any]

_DEFINITIONS: Json = json.loads(
    (Path(__file__).parent / "schemas" / "schema.json").read_text(encoding="utf-8")
)["$defs"]


def faults(
    method: str, side: Literal["agent", "client"], part: Literal["params", "result"], value: object
) -> list[str]:
    """What is wrong with the params or the result of a method that this side serves."""
    name = _NAMES.get((method, side, part)) or _NAMES.get((method, "protocol", part))
    if name is None:
        return [] if method.startswith("_") else [f"{method} has no {part} in the schema"]
    schema = {"$ref": f"#/$defs/{name}"}
    where = f"{method} {part}"
    wrong = [
        f"{where}{_path(error.absolute_path)}: {error.message[:300]}"
        for error in _validator(json.dumps(schema)).iter_errors(value)
    ]
    return wrong or sorted(set(_unknown_keys(schema, value, where)))


def _path(parts: Any) -> str:
    return "".join(f"[{part!r}]" for part in parts)


_NAMES: dict[tuple[str, str, str], str] = {
    (
        definition["x-method"],
        definition["x-side"],
        "result" if name.endswith("Response") else "params",
    ): name
    for name, definition in _DEFINITIONS.items()
    if "x-method" in definition
}


@cache
def _validator(schema: str) -> Any:
    return Draft202012Validator({**json.loads(schema), "$defs": _DEFINITIONS})


def _unknown_keys(schema: Json, value: object, where: str) -> Iterator[str]:
    applied = list(_applied(schema, value))
    if isinstance(value, list):
        for item in cast("list[object]", value):
            for one in applied:
                if isinstance(one.get("items"), dict):
                    yield from _unknown_keys(one["items"], item, f"{where}[]")
    elif isinstance(value, dict):
        yield from _unknown_members(applied, cast("Json", value), where)


def _unknown_members(applied: list[Json], value: Json, where: str) -> Iterator[str]:
    known: Json = {}
    for one in applied:
        for key, schema in one.get("properties", {}).items():
            known[key] = known.get(key) or schema
    if not known or any(one.get("additionalProperties") for one in applied):
        return
    for key, item in value.items():
        if key not in known:
            yield f"{where}: unknown key {key!r}"
        elif key != "_meta" and isinstance(known[key], dict):
            yield from _unknown_keys(known[key], item, f"{where}.{key}")


def _applied(schema: Json, value: object) -> Iterator[Json]:
    """The plain schemas that hold for a value: references, allOf, and the branches it satisfies."""
    yield schema
    if "$ref" in schema:
        yield from _applied(_DEFINITIONS[schema["$ref"].rsplit("/", 1)[1]], value)
    for part in schema.get("allOf", []):
        yield from _applied(part, value)
    for branch in [*schema.get("oneOf", []), *schema.get("anyOf", [])]:
        if _validator(json.dumps(branch)).is_valid(value):
            yield from _applied(branch, value)
