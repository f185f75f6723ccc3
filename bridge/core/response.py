"""What one streamed response means for the editor: events in, effects out.

Rule 1: everything that decides what the editor sees during a response lives in this file.
Rule 2: feed() never raises on what a server sends; it ends the response with a Failed effect.
Rule 3: text reaches the editor once. A server may stream an item, send it whole at the end, or do
both; we remember how much of each part was shown and emit only the rest.
Rule 4: an item is known by its index, or else by its id; a call by its call id.
Rule 5: calls may run only when the response has ended as completed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bridge.core.wire import Json, JsonObject
from bridge.errors import Fault
from bridge.responses.events import (
    ArgumentsDelta,
    ArgumentsDone,
    Delta,
    Ended,
    Event,
    Failure,
    Family,
    Ignored,
    ItemAdded,
    ItemDone,
    Key,
    PartDone,
    part_text,
)
from bridge.responses.faults import of_event, truncated

EARLY = 1024
"""Characters of streamed arguments after which an unfinished call is announced."""

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_THOUGHTS: tuple[Family, ...] = ("summary", "raw")
"""Families that are shown as thoughts."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call the model makes."""

    item: int
    call_id: str
    name: str
    arguments: str
    """As received: JSON text, or the raw input of a custom call."""
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; what it left out counts as 0."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """Message text of the item with this number."""

    item: int
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Thought text of the item with this number."""

    item: int
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call is to be announced; complete: its arguments are all there."""

    call: FunctionCall
    complete: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """The response ended by itself."""

    outcome: Literal["completed", "max_tokens", "refusal", "stopped"]
    items: tuple[JsonObject, ...]
    """Provider items in the order in which they go back."""
    calls: tuple[FunctionCall, ...]
    """What is to run now, each call id once."""
    usage: Usage | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The response failed or broke off."""

    fault: Fault


Slot: TypeAlias = tuple[Family, int]
"""One text of an item: which kind, and which part of it."""

Effect: TypeAlias = Say | Think | Call | Finished | Failed


@dataclass(eq=False, slots=True)
class _Item:
    number: int
    index: int | None
    kind: str = ""
    first: JsonObject = field(default_factory=dict[str, Json])
    """As it was opened."""
    last: JsonObject | None = None
    """As it was closed."""
    shown: dict[Slot, str] = field(default_factory=dict[Slot, str])
    thought: Family | None = None
    """The family its thoughts are shown from: servers may send both."""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    replaceable: bool = False
    """The arguments came with the opening; streamed ones take their place."""
    announced: Literal["", "early", "complete"] = ""
    double: bool = False
    """Another item has the same call id."""


class Response:
    """One response as it arrives; owned by the turn that asked for it."""

    def __init__(self) -> None:
        self.over = False
        """The last effect was given; whatever still comes is ignored."""
        self._items: list[_Item] = []
        self._by_index: dict[int, _Item] = {}
        self._by_id: dict[str | None, _Item] = {}
        self._call_ids: dict[str, _Item] = {}
        self._has_thought = False

    def feed(self, event: Event) -> list[Effect]:
        """What this event means; [] for most of what is not text."""
        if self.over:
            return []
        match event:
            case Delta():
                return list(self._grow(event))
            case PartDone(key=key, family=family, part=part, text=text):
                return list(self._fill(self._item(key), family, part, text))
            case ArgumentsDelta():
                return list(self._more_arguments(event))
            case ArgumentsDone():
                return list(self._all_arguments(event))
            case ItemAdded(key=key, item=item):
                return list(self._open(self._item(key), item))
            case ItemDone(key=key, item=item):
                return list(self._close(self._item(key), item))
            case Ended():
                return self._end(event)
            case Failure(body=body):
                return self._fail(of_event(body, {}, 0))
            case Ignored():
                return []

    def end(self) -> list[Effect]:
        """The stream has ended; without a terminal event that is a failure."""
        return [] if self.over else self._fail(truncated())

    def kept(self) -> tuple[JsonObject, ...]:
        """What a response that was cancelled leaves for the history."""
        kept: list[JsonObject] = []
        for item in self._ordered():
            if item.last is not None or item.kind == "message" or item.shown:
                kept += _final(item)
        return tuple(kept)

    # -- items

    def _item(self, key: Key) -> _Item:
        found = None if key.index is None else self._by_index.get(key.index)
        if found is None:
            same_id = self._by_id.get(key.id)
            # An id that another index has already is a repeated id, not the same item.
            fits = same_id is not None and (key.index is None or same_id.index is None)
            found = same_id if fits else None
        if found is None:
            found = _Item(len(self._items), key.index)
            self._items.append(found)
        if key.index is not None:
            found.index = key.index
            self._by_index[key.index] = found
        self._by_id.setdefault(key.id, found)
        return found

    def _ordered(self) -> list[_Item]:
        """In the order of their indexes, where all have one; else as first seen."""
        items = [item for item in self._items if not item.double]
        if all(item.index is not None for item in items):
            items.sort(key=lambda item: item.index or 0)
        return items

    def _open(self, item: _Item, opened: JsonObject) -> Iterator[Effect]:
        if item.last is None:
            item.first = opened
            self._describe(item, opened)
            item.replaceable = bool(item.arguments)
            yield from self._texts(item, opened)

    def _close(self, item: _Item, closed: JsonObject) -> Iterator[Effect]:
        if item.last is not None:
            return
        item.last = closed
        self._describe(item, closed)
        yield from self._texts(item, closed)
        yield from self._announce(item, complete=True)

    def _describe(self, item: _Item, given: JsonObject) -> None:
        item.kind = _text(given, "type") or item.kind
        if item.kind not in _CALLS:
            return
        item.call_id = _text(given, "call_id") or item.call_id
        item.name = _text(given, "name") or item.name
        item.arguments = _text(given, _CALLS[item.kind]) or item.arguments
        if item.call_id:
            item.double = self._call_ids.setdefault(item.call_id, item) is not item

    # -- text

    def _grow(self, delta: Delta) -> Iterator[Effect]:
        item = self._item(delta.key)
        slot: Slot = delta.family, delta.part
        item.kind = item.kind or ("reasoning" if delta.family in _THOUGHTS else "message")
        if delta.text:
            yield from self._emit(item, slot, delta.text)

    def _fill(self, item: _Item, family: Family, part: int, whole: str) -> Iterator[Effect]:
        """Emit what of the whole text was not shown yet; if it drifted, nothing."""
        item.kind = item.kind or ("reasoning" if family in _THOUGHTS else "message")
        shown = item.shown.get((family, part), "")
        if len(whole) > len(shown) and whole.startswith(shown):
            yield from self._emit(item, (family, part), whole[len(shown) :])

    def _emit(self, item: _Item, slot: Slot, text: str) -> Iterator[Effect]:
        family, is_new = slot[0], slot not in item.shown
        item.shown[slot] = item.shown.get(slot, "") + text
        if family not in _THOUGHTS:
            yield Say(item.number, text)
            return
        item.thought = item.thought or family
        if item.thought == family:
            yield Think(item.number, f"\n\n{text}" if is_new and self._has_thought else text)
            self._has_thought = True

    def _texts(self, item: _Item, given: JsonObject) -> Iterator[Effect]:
        """The texts of a whole item, as far as they were not shown."""
        for part, text in enumerate(_list(given, "summary")):
            found = part_text(text)
            if found is not None:
                yield from self._fill(item, "summary", part, found[1])
        for part, content in enumerate(_list(given, "content")):
            found = part_text(content)
            if found is not None:
                family: Family = "raw" if item.kind == "reasoning" else found[0]
                yield from self._fill(item, family, part, found[1])

    # -- calls

    def _more_arguments(self, delta: ArgumentsDelta) -> Iterator[Effect]:
        item = self._item(delta.key)
        if item.replaceable:
            item.arguments, item.replaceable = "", False
        item.arguments += delta.text
        if len(item.arguments) > EARLY and not item.announced:
            yield from self._announce(item, complete=False)

    def _all_arguments(self, done: ArgumentsDone) -> Iterator[Effect]:
        item = self._item(done.key)
        item.arguments = done.text or item.arguments
        item.replaceable = False
        item.name = item.name or done.name or ""
        yield from self._announce(item, complete=True)

    def _announce(self, item: _Item, *, complete: bool) -> Iterator[Effect]:
        call = _call(item)
        if call is not None and item.announced != "complete":
            item.announced = "complete" if complete else "early"
            yield Call(call, complete)

    # -- the end

    def _fail(self, fault: Fault) -> list[Effect]:
        self.over = True
        return [Failed(fault)]

    def _end(self, ended: Ended) -> list[Effect]:
        effects: list[Effect] = []
        for index, item in enumerate(_list(ended.response, "output")):
            if isinstance(item, dict) and item.get("type"):
                effects += self._close(self._known(index, item), item)
        for item in self._items:
            effects += self._announce(item, complete=True)
        self.over = True
        outcome, reason = self._outcome(ended)
        items = [final for item in self._ordered() for final in _final(item)]
        calls = [call for item in self._ordered() if (call := _call(item)) is not None]
        runnable = tuple(calls) if outcome == "completed" else ()
        usage = _usage(ended.response.get("usage"))
        return [*effects, Finished(outcome, tuple(items), runnable, usage, reason)]

    def _known(self, index: int, given: JsonObject) -> _Item:
        """The item of the stream that the closing list repeats, or a new one."""
        same_call = self._call_ids.get(_text(given, "call_id"))
        if same_call is not None:
            return same_call
        name, texts = _text(given, "id"), _said(given)
        if index not in self._by_index and name not in self._by_id:
            for item in self._items:
                if item.kind == given.get("type") and texts and texts == _shown(item):
                    return item
        return self._item(Key(index, name or None))

    def _outcome(
        self, ended: Ended
    ) -> tuple[Literal["completed", "max_tokens", "refusal", "stopped"], str]:
        details = ended.response.get("incomplete_details")
        reason = _text(details, "reason") if isinstance(details, dict) else ""
        refused = any(slot[0] == "refusal" for item in self._items for slot in item.shown)
        if refused or (ended.status == "incomplete" and reason == "content_filter"):
            return "refusal", reason
        if ended.status == "completed":
            return "completed", reason
        if ended.status == "incomplete" and reason in ("max_output_tokens", ""):
            return "max_tokens", reason
        return "stopped", reason or ended.status


def joined(effects: Iterable[Effect]) -> list[Effect]:
    """Neighbouring texts of one item as one text."""
    result: list[Effect] = []
    pieces: list[str] = []
    for effect in effects:
        last = result[-1] if result else None
        if isinstance(effect, Say | Think) and _run_on(last, effect):
            pieces.append(effect.text)
            continue
        _seal(result, pieces)
        result.append(effect)
        pieces = [effect.text] if isinstance(effect, Say | Think) else []
    _seal(result, pieces)
    return result


def _run_on(last: Effect | None, effect: Say | Think) -> bool:
    return isinstance(last, type(effect)) and last.item == effect.item


def _seal(result: list[Effect], pieces: list[str]) -> None:
    last = result[-1] if result else None
    if len(pieces) > 1 and isinstance(last, Say | Think):
        result[-1] = type(last)(last.item, "".join(pieces))


def _call(item: _Item) -> FunctionCall | None:
    if item.kind not in _CALLS or item.double or not item.call_id or not item.name:
        return None
    custom = item.kind == "custom_tool_call"
    return FunctionCall(item.number, item.call_id, item.name, item.arguments, custom)


def _final(item: _Item) -> Iterator[JsonObject]:
    """The item as it goes back: as it was closed, else put together from what came."""
    given = item.first if item.last is None else item.last
    if item.kind in _CALLS:
        if _call(item) is not None:
            yield _with(given, item, {_CALLS[item.kind]: item.arguments})
    elif item.kind == "message":
        if _said(given):
            yield given
        elif item.shown:
            yield _with(given, item, {"role": "assistant", "content": _content(item)})
    elif item.kind == "reasoning" and item.last is None:
        yield _with(given, item, _reasoned(item))
    elif item.last is not None:
        yield given


def _with(given: JsonObject, item: _Item, more: JsonObject) -> JsonObject:
    identity: JsonObject = {"type": item.kind}
    if item.kind in _CALLS:
        identity |= {"call_id": item.call_id, "name": item.name}
    return {**identity, **given, **more}


def _content(item: _Item) -> list[Json]:
    parts: list[Json] = []
    for (family, _), text in sorted(item.shown.items(), key=lambda slot: slot[0][1]):
        key = "refusal" if family == "refusal" else "text"
        parts.append({"type": "refusal" if family == "refusal" else "output_text", key: text})
    return parts


def _reasoned(item: _Item) -> JsonObject:
    kinds: dict[Family, tuple[str, str]] = {
        "summary": ("summary", "summary_text"),
        "raw": ("content", "reasoning_text"),
    }
    found: dict[str, list[Json]] = {"summary": []}
    for (family, _), text in sorted(item.shown.items(), key=lambda slot: slot[0][1]):
        if family in kinds:
            name, kind = kinds[family]
            found.setdefault(name, []).append({"type": kind, "text": text})
    return {**found}


def _said(given: JsonObject) -> str:
    """All the text of a whole item."""
    parts = [*_list(given, "summary"), *_list(given, "content")]
    return "".join(found[1] for part in parts if (found := part_text(part)) is not None)


def _shown(item: _Item) -> str:
    return "".join(item.shown.values())


def _usage(given: Json) -> Usage | None:
    if not isinstance(given, dict):
        return None
    details_in, details_out = given.get("input_tokens_details"), given.get("output_tokens_details")
    return Usage(
        _count(given, "input_tokens") or _count(given, "prompt_tokens"),
        _count(given, "output_tokens") or _count(given, "completion_tokens"),
        _count(details_in, "cached_tokens"),
        _count(details_out, "reasoning_tokens"),
    )


def _count(given: Json, name: str) -> int:
    value = given.get(name) if isinstance(given, dict) else None
    return max(0, int(value)) if isinstance(value, int | float) and value == value else 0


def _list(given: JsonObject, name: str) -> list[Json]:
    value = given.get(name)
    return value if isinstance(value, list) else []


def _text(given: JsonObject, name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
