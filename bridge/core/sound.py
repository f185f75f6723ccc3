"""An item that a model made, as any server takes it back.

It must not know other items, nor which server gets this one.

Rule 1: models and servers make items that servers refuse: a tool's name with a dot in it, arguments
that were cut, a message with a part that is null. Every later request would carry such an item, and
the session could never go on.
Rule 2: what is sound stays as it is.
Rule 3: nothing that was said is lost: arguments that are no object go back inside of one.
"""

import re
from collections.abc import Callable
from typing import cast

from bridge.core.item import CALLS
from bridge.core.wire import Json, JsonObject, dump, list_of, load_object, text_of
from bridge.responses.events import part_text

_FOREIGN = r"[^a-zA-Z0-9_-]+"
_LONGEST_NAME = 64
"""OpenAI, function calling: names are of letters, digits, underscores and dashes, 64 at most."""


def sound(item: JsonObject) -> JsonObject:
    """The item, changed only where a server would refuse it."""
    mend = _MENDS.get(text_of(item, "type"))
    return item if mend is None else {**item, **mend(item)}


def _call(item: JsonObject) -> JsonObject:
    field = CALLS[text_of(item, "type")]
    given = text_of(item, field)
    name = re.sub(_FOREIGN, "_", text_of(item, "name"))[:_LONGEST_NAME]
    return {"name": name or "_", field: _arguments(given) if field == "arguments" else given}


def _arguments(given: str) -> str:
    """The arguments as a JSON object, as they came where they are one."""
    try:
        load_object(given)
    except ValueError:
        return dump({"arguments": given} if given.strip() else {}).decode()
    return given


def _message(item: JsonObject) -> JsonObject:
    parts = [part for given in _list(item, "content", "output_text") for part in _part(given)]
    return {"role": "assistant", "content": parts}


def _part(given: Json) -> list[Json]:
    """The part of a message, or nothing where it says nothing."""
    found = part_text(given)
    if found is None or not (text := found[1]):
        return []
    known = cast("JsonObject", given).get("type") in ("output_text", "refusal")
    return [given if known else {"type": "output_text", "text": text}]


def _reasoning(item: JsonObject) -> JsonObject:
    mended: JsonObject = {"summary": _thoughts(item, "summary", "summary_text")}
    if "content" in item:
        mended["content"] = _thoughts(item, "content", "reasoning_text")
    if "encrypted_content" in item:
        mended["encrypted_content"] = text_of(item, "encrypted_content")
    return mended


def _thoughts(item: JsonObject, name: str, kind: str) -> list[Json]:
    given = _list(item, name, kind)
    return [part for part in given if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _list(item: JsonObject, name: str, kind: str) -> list[Json]:
    """The parts under a name; a text stands for one part."""
    text = text_of(item, name)
    return [{"type": kind, "text": text}] if text else list_of(item, name)


_MENDS: dict[str, Callable[[JsonObject], JsonObject]] = {
    "function_call": _call,
    "custom_tool_call": _call,
    "message": _message,
    "reasoning": _reasoning,
}
