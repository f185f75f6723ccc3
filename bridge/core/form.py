"""Forms that MCP servers want filled in: their schema in, one the editor takes out; and back.

Rule 1: a form is flat: texts, numbers, yes or no, and choices. What else a server asks for cannot
be asked (ACP, Elicitation: the same subset of JSON schema as MCP's).
Rule 2: an answer goes to the server only where it fits what the server asked for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bridge.core.records import Item
from tools.base import Filled

_SHARED = ("title", "description", "default")
_KEYS: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "enum", "oneOf"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("items", "minItems", "maxItems"),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


def form(schema: Item) -> dict[str, Any] | None:
    """The schema of a form for the editor; None where it cannot be asked."""
    properties = _object(schema.get("properties"))
    fields = {name: _field(_object(field)) for name, field in properties.items()}
    if not all(fields.values()):
        return None
    required = [name for name in _texts(schema.get("required")) if name in fields]
    return {"type": "object", "properties": fields, "required": required}


def checked(schema: Item, content: object) -> Filled:
    """The content of an accepted form, if it is what was asked for."""
    if not isinstance(content, Mapping):
        return Filled("cancel")
    given = cast("Mapping[str, Any]", content)
    fields = _object(schema.get("properties"))
    fits = all(_fits(_object(fields.get(name)), value) for name, value in given.items())
    complete = all(name in given for name in _texts(schema.get("required")))
    return Filled("accept", dict(given)) if fits and complete else Filled("cancel")


def _field(field: Item) -> dict[str, Any]:
    kind = str(field.get("type"))
    if kind not in _KEYS:
        return {}
    clean = {key: field[key] for key in ("type", *_SHARED, *_KEYS[kind]) if key in field}
    values, names = _texts(field.get("enum")), _texts(field.get("enumNames"))
    if names and len(names) == len(values):
        # MCP, Elicitation: enumNames is the older way to give choices a title.
        pairs = zip(values, names, strict=True)
        clean["oneOf"] = [{"const": value, "title": title} for value, title in pairs]
        del clean["enum"]
    return clean


def _fits(field: Item, value: object) -> bool:
    kind = str(field.get("type"))
    if not isinstance(value, _TYPES.get(kind, ())) or isinstance(value, bool) != (
        kind == "boolean"
    ):
        return False
    chosen = cast("list[object]", value) if isinstance(value, list) else [value]
    choices = _choices(_object(field.get("items")) if kind == "array" else field)
    return not choices or all(one in choices for one in chosen)


def _choices(field: Item) -> list[object]:
    """All that may be chosen; none: anything."""
    titled = field.get("oneOf") or field.get("anyOf") or ()
    named = [_object(one).get("const") for one in cast("Sequence[object]", titled)]
    return [*_texts(field.get("enum")), *named]


def _texts(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def _object(value: object) -> Item:
    return cast("Item", value) if isinstance(value, Mapping) else {}
