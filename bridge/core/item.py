"""One output item, put together from what a server streams of it.

It must not know of other items, nor what of it is shown.

Rule 1: an item goes back as it was closed. What a server left out of that, or never closed, is put
together from the pieces.
Rule 2: the arguments of a call stay as they are once they were announced as complete: what a
person allows is what runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bridge.core.effects import FunctionCall
from bridge.core.lane import Growing, Line
from bridge.core.wire import Json, JsonObject, list_of, text_of
from bridge.responses.events import PARTS, Family, part_text

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls, and where their arguments are."""
THOUGHTS: tuple[Family, ...] = ("summary", "raw")
"""Families that are shown as thoughts."""

Slot: TypeAlias = tuple[Family, int]
"""One text of an item: which family, and which part of it."""


@dataclass(eq=False, slots=True)
class Item:
    """One item as far as it is known; owned by its response."""

    number: int
    """In the order of first sight, over all attempts at one response."""
    kind: str
    """Its type; "call" for both types of calls."""
    index: int | None = None
    id: str | None = None
    first: JsonObject = field(default_factory=dict[str, Json])
    """As it was opened."""
    last: JsonObject | None = None
    """As it was closed."""
    texts: dict[Slot, Growing] = field(default_factory=dict[Slot, Growing])
    thought: Family | None = None
    """The family its thoughts are shown from: servers may send both."""
    line: Line | None = None
    """Where its text is shown."""
    type: str = "function_call"
    """Of a call."""
    call_id: str = ""
    name: str = ""
    arguments: Growing = field(default_factory=Growing)
    replaceable: bool = False
    """The arguments came with the opening; streamed ones take their place."""
    announced: Literal["", "early", "complete"] = ""

    def text(self, slot: Slot) -> str:
        """All that is known of one text."""
        known = self.texts.get(slot)
        return "" if known is None else known.whole()

    def said(self) -> str:
        """All the text of it that is known."""
        return "".join(text.whole() for text in self.texts.values())

    def describe(self, given: JsonObject) -> None:
        """Take over what a whole item says of its call."""
        if self.kind != "call" or self.announced == "complete":
            return
        self.type = text_of(given, "type")
        self.set_arguments(text_of(given, CALLS[self.type]))
        if not self.announced:
            self.call_id = call_id_of(given) or self.call_id
            self.name = text_of(given, "name") or self.name

    def set_arguments(self, text: str) -> None:
        """Take these as all the arguments; some servers send none where they should be."""
        if text:
            self.arguments.set(text)

    def call(self) -> FunctionCall | None:
        """The call this is; None for other items and as long as it cannot be named."""
        if self.kind != "call" or not self.call_id or not self.name:
            return None
        custom = self.type == "custom_tool_call"
        return FunctionCall(self.number, self.call_id, self.name, self.arguments.whole(), custom)

    def final(self) -> JsonObject | None:
        """The item as it goes back to the server; None if it says nothing."""
        closed = self.last or {}
        match self.kind:
            case "call":
                if not self.announced:  # it has no name, or another item is the same call
                    return None
                named = {"type": self.type, "call_id": self.call_id, "name": self.name}
                return {**self._given(), **named, CALLS[self.type]: self.arguments.whole()}
            case "message" if not said_in(closed):
                more = {"type": "message", "role": "assistant"}
                content = self._content("text", "refusal")
                return {**self._given(), **more, "content": content} if self.texts else None
            case "reasoning" if (
                self.texts and not said_in(closed) and not closed.get("encrypted_content")
            ):
                raw = self._content("raw")
                more = {"type": "reasoning", "summary": self._content("summary")}
                return {**self._given(), **more, **({"content": raw} if raw else {})}
            case _:
                return self.last

    def _given(self) -> JsonObject:
        """What the server sent of the item itself; the status of an open item is out of date."""
        if self.last is not None:
            return self.last
        return {key: value for key, value in self.first.items() if key != "status"}

    def _content(self, *families: Family) -> list[Json]:
        """The texts of these families as content parts."""
        texts = sorted(self.texts.items(), key=lambda slot: slot[0][1])
        wanted = ((*PARTS[family], text) for (family, _), text in texts if family in families)
        return [{"type": kind, field: text.whole()} for kind, field, text in wanted]


def kind_of(given: JsonObject) -> str:
    """The kind of a whole item."""
    kind = text_of(given, "type")
    return "call" if kind in CALLS else kind


def call_id_of(given: JsonObject) -> str:
    """What a call is known by; some servers name only the item."""
    return text_of(given, "call_id") or text_of(given, "id")


def texts_of(given: JsonObject) -> Iterator[tuple[Slot, str]]:
    """The texts of a whole message or reasoning, in order."""
    kind = given.get("type")
    if kind == "reasoning":
        yield from _parts(given, "summary", lambda _: "summary")
        yield from _parts(given, "content", lambda _: "raw")
    elif kind == "message":
        yield from _parts(given, "content", lambda family: "text" if family in THOUGHTS else family)


def _parts(
    given: JsonObject, name: str, slot_family: Callable[[Family], Family]
) -> Iterator[tuple[Slot, str]]:
    if whole := text_of(given, name):  # some gateways leave the list out
        yield (slot_family("text"), 0), whole
    for part, content in enumerate(list_of(given, name)):
        found = part_text(content)
        if found is not None:
            yield (slot_family(found[0]), part), found[1]


def said_in(given: JsonObject) -> str:
    """All the text of a whole item."""
    return "".join(text for _, text in texts_of(given))
