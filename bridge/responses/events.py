"""What a server streams: one JSON object in, one typed event out.

It must not know what becomes of an event.

Rule 1: EVENTS is the whole list; everything else is Ignored.
Rule 2: parse() never raises. A field that is missing or of the wrong type has its default, and an
event without the field that makes it what it is, is Ignored.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

from bridge.core.wire import Json, JsonObject, object_of, text_of
from bridge.errors import Fault
from tools.frozen import frozen

Family = Literal["text", "refusal", "summary", "raw"]
"""Kinds of text: of a message, and of reasoning as a summary or as it was thought."""
Status = Literal["completed", "incomplete", "cancelled"]


@frozen
class Key:
    """Which item an event is about; servers may leave out either, or both."""

    index: int | None
    id: str | None


@frozen
class ItemAdded:
    """An item opens."""

    key: Key
    item: JsonObject


@frozen
class ItemDone:
    """An item closes; this is how it stands."""

    key: Key
    item: JsonObject


@frozen
class Delta:
    """A piece of text."""

    key: Key
    family: Family
    part: int
    text: str


@frozen
class PartDone:
    """All the text of one part."""

    key: Key
    family: Family
    part: int
    text: str


@frozen
class ArgumentsDelta:
    """A piece of a call's arguments."""

    key: Key
    text: str


@frozen
class ArgumentsDone:
    """All the arguments of a call."""

    key: Key
    text: str
    name: str | None = None


@frozen
class Ended:
    """The response is over, and not as failed."""

    status: Status
    response: JsonObject


@frozen
class Failure:
    """The response failed, in one of the forms servers use to say so."""

    body: JsonObject
    fault: Fault | None = None
    """What it means, where more is known than the body says: the transport has the headers."""


@frozen
class Served:
    """Who answers, as the head of the HTTP answer tells; not part of what is streamed."""

    upstream: str


@frozen
class Ignored:
    """Signs of life, and what we do not know."""


Event: TypeAlias = (
    ItemAdded
    | ItemDone
    | Delta
    | PartDone
    | ArgumentsDelta
    | ArgumentsDone
    | Ended
    | Failure
    | Served
    | Ignored
)

IGNORED = Ignored()
Reader: TypeAlias = Callable[[JsonObject], Event]

PARTS: dict[Family, tuple[str, str]] = {
    "text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "summary": ("summary_text", "text"),
    "raw": ("reasoning_text", "text"),
}
"""Type of the content part that holds such a text, and the text's field."""
_FAMILIES: dict[str, tuple[Family, str]] = {
    "text": ("text", "text"),
    **{kind: (family, field) for family, (kind, field) in PARTS.items()},
}
_WORSE: dict[str, Status] = {"incomplete": "incomplete", "cancelled": "cancelled"}
"""Than completed."""


def parse(data: JsonObject) -> Event:
    """The event that this object is."""
    name = text_of(data, "type")
    reader = EVENTS.get(name)
    if reader is not None:
        return reader(data)
    # Some servers send an error object without saying what it is. In an event about a part of the
    # response it is an error of that part.
    failed = data.get("error") and not name.startswith("response.")
    return Failure(data) if failed else IGNORED


def part_text(part: Json) -> tuple[Family, str] | None:
    """Family and text of a content part; None for parts that are not text."""
    if not isinstance(part, dict):
        return None
    family, field = _FAMILIES.get(text_of(part, "type"), (None, ""))
    text = part.get(field)
    return (family, text) if family is not None and isinstance(text, str) else None


def _key(data: JsonObject) -> Key:
    index = data.get("output_index")
    return Key(
        index if isinstance(index, int) and not isinstance(index, bool) else None,
        text_of(data, "item_id") or None,
    )


def _part(data: JsonObject) -> int:
    for name in ("content_index", "summary_index"):
        index = data.get(name)
        if isinstance(index, int):
            return index
    return 0


def _delta(family: Family) -> Reader:
    def read(data: JsonObject) -> Event:
        text = data.get("delta")
        if isinstance(text, dict):  # as old forks of one server send it
            text = text.get("content") or text.get("text")
        return Delta(_key(data), family, _part(data), text) if isinstance(text, str) else IGNORED

    return read


def _text_done(family: Family, field: str) -> Reader:
    def read(data: JsonObject) -> Event:
        text = data.get(field)
        return PartDone(_key(data), family, _part(data), text) if isinstance(text, str) else IGNORED

    return read


def _part_done(data: JsonObject) -> Event:
    found = part_text(data.get("part"))
    return IGNORED if found is None else PartDone(_key(data), found[0], _part(data), found[1])


def _arguments_delta(data: JsonObject) -> Event:
    text = data.get("delta")
    return ArgumentsDelta(_key(data), text) if isinstance(text, str) else IGNORED


def _arguments_done(field: str) -> Reader:
    def read(data: JsonObject) -> Event:
        text, name = data.get(field), data.get("name")
        if not isinstance(text, str):
            return IGNORED
        return ArgumentsDone(_key(data), text, name if isinstance(name, str) else None)

    return read


def _item(kind: type[ItemAdded] | type[ItemDone]) -> Reader:
    def read(data: JsonObject) -> Event:
        item = data.get("item")
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return IGNORED
        key = _key(data)
        return kind(Key(key.index, text_of(item, "id") or key.id), item)

    return read


def _ended(name: Status) -> Reader:
    """The event's name and the response's own status may differ; then the worse one counts."""

    def read(data: JsonObject) -> Event:
        response = object_of(data, "response")
        said = text_of(response, "status")
        if said == "failed":
            return Failure(data)
        return Ended(_WORSE.get(said, name) if name == "completed" else name, response)

    return read


EVENTS: dict[str, Reader] = {
    "response.output_item.added": _item(ItemAdded),
    "response.output_item.done": _item(ItemDone),
    "response.output_text.delta": _delta("text"),
    "response.output_text.done": _text_done("text", "text"),
    "response.refusal.delta": _delta("refusal"),
    "response.refusal.done": _text_done("refusal", "refusal"),
    "response.reasoning_summary_text.delta": _delta("summary"),
    "response.reasoning_summary_text.done": _text_done("summary", "text"),
    "response.reasoning_summary.delta": _delta("summary"),
    "response.reasoning_summary.done": _text_done("summary", "text"),
    "response.reasoning_text.delta": _delta("raw"),
    "response.reasoning_text.done": _text_done("raw", "text"),
    "response.reasoning.delta": _delta("raw"),
    "response.reasoning.done": _text_done("raw", "text"),
    "response.content_part.done": _part_done,
    "response.reasoning_summary_part.done": _part_done,
    "response.function_call_arguments.delta": _arguments_delta,
    "response.function_call_arguments.done": _arguments_done("arguments"),
    "response.custom_tool_call_input.delta": _arguments_delta,
    "response.custom_tool_call_input.done": _arguments_done("input"),
    "response.completed": _ended("completed"),
    "response.done": _ended("completed"),
    "response.incomplete": _ended("incomplete"),
    "response.failed": Failure,
    "response.error": Failure,
    "error": Failure,
}
