"""What one streamed response means for the editor: events in, effects out.

It must not know how effects are shown, nor how events were received.

Rule 1: everything that decides what the editor sees during a response lives in this file.
Rule 2: feed() never raises on what a server sends; it ends the response with a Failed effect.
Rule 3: text reaches the editor once. A server may stream an item, send it whole at the end, or do
both; we remember how much of each part was shown and emit only the rest. The same holds for a
second attempt at a response of which something was shown.
Rule 4: an item is known by its index, or else by its id; a call by its call id.
Rule 5: calls may run only when the response has ended as completed.
"""

from collections.abc import Iterable

from bridge.core.effects import (
    Call,
    Effect,
    Failed,
    Finished,
    HostedCall,
    HostedStatus,
    Outcome,
    Restart,
    Say,
    Think,
    Usage,
)
from bridge.core.hosted import LOOKS, has_failed
from bridge.core.item import (
    THOUGHTS,
    Item,
    Slot,
    call_id_of,
    kind_of,
    said_in,
    texts_of,
)
from bridge.core.lane import Growing, Line, Stage
from bridge.core.wire import Json, JsonObject, list_of, object_of, text_of
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
    Served,
)
from bridge.responses.faults import clean, of_event, truncated
from bridge.responses.upstream import upstream_in

_MOST_TOKENS = 10**12
_MOST_COST = 1e9
"""More than this was not counted but made up, and would spoil every sum."""

EARLY = 1024
"""Characters of streamed arguments after which an unfinished call is announced."""

_KINDS: dict[Family, str] = {
    "text": "message",
    "refusal": "message",
    "summary": "reasoning",
    "raw": "reasoning",
}
_BLANK = "\n\n"
"""Stands between two thoughts, and between two parts of one."""


class Response:
    """One response as it arrives; owned by the turn that asked for it.

    shown: the failed attempt before this one, if something of it was shown. Then only what it did
    not show is emitted, and a Restart before the first message that differs from what it showed.
    """

    def __init__(self, shown: "Response | None" = None) -> None:
        self.over = False
        """The last effect was given; whatever still comes is ignored."""
        self._items: list[Item] = []
        self._known: dict[tuple[int | str | None, str], Item] = {}
        """By index or id, and kind: servers give an item of each kind the same index or id."""
        self._call_ids: dict[str, Item] = {}
        self._complete: set[str] = set()
        """Ids of the calls that were announced as complete."""
        self.stage: Stage = Stage() if shown is None else shown.stage.next_attempt()
        self._lanes = {Say: self.stage.messages, Think: self.stage.thoughts}
        self._restarted = False
        self._upstream = ""

    def feed(self, event: Event) -> list[Effect]:
        """What this event means; [] for most of what is not text."""
        if self.over:
            return []
        match event:
            case Delta(key=key, family=family, part=part, text=text):
                item = self._item(key, _KINDS[family])
                return self._emit(item, (family, part), text) if text else []
            case PartDone(key=key, family=family, part=part, text=text):
                return self._fill(self._item(key, _KINDS[family]), (family, part), text)
            case ArgumentsDelta():
                return self._more_arguments(event)
            case ArgumentsDone():
                return self._all_arguments(event)
            case ItemAdded(key=key, item=given):
                return self._open(key, given)
            case ItemDone(key=key, item=given):
                return self._close(self._item(key, kind_of(given), _call_id(given)), given)
            case Ended():
                return self._end(event)
            case Failure(body=body, fault=fault):
                return self._fail(fault or of_event(body), _usage_of(object_of(body, "response")))
            case Served(upstream=upstream):
                self._upstream = upstream
                return []
            case Ignored():  # pragma: no branch (every kind of event has its case)
                return []

    def end(self) -> list[Effect]:
        """The stream has ended; without a terminal event that is a failure."""
        return [] if self.over else self._fail(truncated())

    def kept(self) -> tuple[JsonObject, ...]:
        """What a response that was cancelled leaves for the history: whole items, and text."""
        kept = [item for item in self._ordered() if item.last is not None or item.kind == "message"]
        return _finals(kept)

    # -- items

    def _item(self, key: Key, kind: str, call_id: str = "") -> Item:
        """The item an event is about, a new one if need be."""
        found = self._known.get((key.index, kind))
        if found is not None and not call_id:
            return found
        found = self._call_ids.get(call_id) or found or self._named(key, kind)
        if found is None or _is_other(found, key, call_id):
            found = self._open_one(key, kind, call_id) or self._new(kind)
        self._bind(found, key, call_id)
        return found

    def _named(self, key: Key, kind: str) -> Item | None:
        found = None if key.id is None else self._known.get((key.id, kind))
        # An id that another index has already is a repeated id, not the same item.
        is_other = found is not None and key.index is not None and found.index is not None
        return None if is_other else found

    def _open_one(self, key: Key, kind: str, call_id: str) -> Item | None:
        """The open item that an event must be about, where one of the two has no key."""
        for item in reversed(self._items):
            if (
                item.kind == kind
                and item.last is None
                and item.call_id in ("", call_id or item.call_id)
            ):
                return item if _is_bare(key) or _is_bare(item) else None
        return None

    def _repeated(self, position: int, given: JsonObject) -> Item:
        """The item of the stream that the closing list repeats, or a new one."""
        kind, call_id, text = kind_of(given), _call_id(given), said_in(given)
        alike = (
            item
            for item in self._items
            if item.kind == kind and (item.said() == text if text else item.last == given)
        )
        found = (
            self._call_ids.get(call_id)
            or self._known.get((text_of(given, "id"), kind))
            or next(alike, None)
            or self._known.get((position, kind))
        )
        if found is None:
            found = self._new(kind)
            self._bind(found, Key(None, None), call_id)
        return found

    def _new(self, kind: str) -> Item:
        item = Item(next(self.stage.numbers), kind)
        self._items.append(item)
        return item

    def _bind(self, item: Item, key: Key, call_id: str) -> None:
        if key.index is not None:
            item.index = key.index if item.index is None else item.index
            self._known[key.index, item.kind] = item
        if key.id is not None:
            item.id = item.id or key.id
            self._known[key.id, item.kind] = item
        if call_id:
            self._call_ids.setdefault(call_id, item)

    def _ordered(self) -> list[Item]:
        """In the order of their indexes, where all have one; else as first seen."""
        if any(item.index is None for item in self._items):
            return self._items
        return sorted(self._items, key=lambda item: item.index or 0)

    def _open(self, key: Key, given: JsonObject) -> list[Effect]:
        kind, call_id = kind_of(given), _call_id(given)
        if _is_bare(key) and call_id not in self._call_ids:
            self._bind(self._new(kind), key, call_id)
        item = self._item(key, kind, call_id)
        if item.last is not None:
            return []
        item.first = given
        item.describe(given)
        item.replaceable = item.arguments.length > 0
        return self._texts(item, given) + self._host(item, "in_progress")

    def _close(self, item: Item, given: JsonObject) -> list[Effect]:
        """Take over a whole item; where one comes again, only text that is new counts."""
        if item.last is None:
            item.last = given
            item.describe(given)
        effects = self._texts(item, given) + self._settle(item)
        effects += self._host(item, "failed" if has_failed(item.last) else "completed")
        return effects + self._announce(item, complete=True)

    # -- text

    def _texts(self, item: Item, given: JsonObject) -> list[Effect]:
        """The texts of a whole item, as far as they were not shown."""
        return [effect for slot, text in texts_of(given) for effect in self._fill(item, slot, text)]

    def _fill(self, item: Item, slot: Slot, whole: str) -> list[Effect]:
        """Emit what of the whole text was not shown yet; if it drifted, nothing."""
        shown = item.text(slot)
        if len(whole) > len(shown) and whole.startswith(shown):
            return self._emit(item, slot, whole[len(shown) :])
        return []

    def _emit(self, item: Item, slot: Slot, text: str) -> list[Effect]:
        family, known = slot[0], item.texts.get(slot)
        is_new = known is None
        if known is None:
            known = item.texts[slot] = Growing()
        known.add(text)
        if family not in THOUGHTS:
            return self._show(item, Say, text)
        item.thought = item.thought or family
        if item.thought != family:
            return []
        return self._show(item, Think, _BLANK + text if is_new and item.line else text)

    def _show(self, item: Item, kind: type[Say | Think], text: str) -> list[Effect]:
        line = item.line
        if line is None:
            line = item.line = self._lanes[kind].begin(item.number)
        if line.repeated is None:
            return self._grow(line, kind, text)
        new = line.repeat(text)
        if new is None:
            return self._anew(item, line, kind, line.said() + text)
        return [kind(line.number, new)] if new else []

    def _grow(self, line: Line, kind: type[Say | Think], text: str) -> list[Effect]:
        lead = _BLANK if kind is Think and line.follows and not line.text.length else ""
        line.text.add(text)
        return [kind(line.number, lead + text)]

    def _anew(self, item: Item, line: Line, kind: type[Say | Think], text: str) -> list[Effect]:
        """Show a text that differs from what was shown in its place."""
        effects: list[Effect] = []
        if kind is Say and not self._restarted:
            self._restarted = True
            effects.append(Restart())
        item.line = self._lanes[kind].anew(line, next(self.stage.numbers))
        return effects + self._grow(item.line, kind, text)

    def _settle(self, item: Item) -> list[Effect]:
        """A message that ends before what was shown of it ends, differs from that."""
        line = item.line
        if item.kind != "message" or line is None or not line.is_longer():
            return []
        return self._anew(item, line, Say, line.said())

    # -- calls

    def _more_arguments(self, delta: ArgumentsDelta) -> list[Effect]:
        item = self._item(delta.key, "call")
        if item.announced == "complete":
            return []
        if item.replaceable:
            item.arguments, item.replaceable = Growing(), False
        item.arguments.add(delta.text)
        is_long = item.arguments.length > EARLY and not item.announced
        return self._announce(item, complete=False) if is_long else []

    def _all_arguments(self, done: ArgumentsDone) -> list[Effect]:
        item = self._item(done.key, "call")
        if item.announced == "complete":
            return []
        item.set_arguments(done.text)
        item.replaceable = False
        item.name = item.name or done.name or ""
        # Without any, they may still come with the whole item.
        return self._announce(item, complete=True) if item.arguments.length else []

    def _announce(self, item: Item, *, complete: bool) -> list[Effect]:
        call = item.call()
        if call is None or item.announced == "complete" or call.call_id in self._complete:
            return []
        item.announced = "complete" if complete else "early"
        if complete:
            self._complete.add(call.call_id)
        return [Call(call, complete)]

    def _host(self, item: Item, status: HostedStatus) -> list[Effect]:
        """Show a call of the provider's: once when it begins, once when it has ended."""
        known = item.announced == "complete" or (item.announced and status == "in_progress")
        if known or item.kind not in LOOKS:
            return []
        item.announced = "early" if status == "in_progress" else "complete"
        return [HostedCall(item.number, item.id or "", item.last or item.first, status)]

    # -- the end

    def _fail(self, fault: Fault, usage: Usage | None = None) -> list[Effect]:
        self.over = True
        return [Failed(fault, usage)]

    def _end(self, ended: Ended) -> list[Effect]:
        effects: list[Effect] = []
        for position, given in enumerate(list_of(ended.response, "output")):
            if isinstance(given, dict) and kind_of(given):
                effects += self._close(self._repeated(position, given), given)
        for item in self._items:
            effects += self._settle(item) + self._announce(item, complete=True)
        self.over = True
        outcome, reason = self._outcome(ended)
        for item in self._items:
            if item.announced == "early":
                effects += self._host(item, "completed" if outcome == "completed" else "failed")
        ordered = self._ordered()
        calls = [call for item in ordered if item.announced and (call := item.call()) is not None]
        runnable = tuple(calls) if outcome == "completed" else ()
        usage = _usage_of(ended.response)
        upstream = upstream_in(ended.response) or self._upstream
        return [*effects, Finished(outcome, _finals(ordered), runnable, usage, reason, upstream)]

    def _outcome(self, ended: Ended) -> tuple[Outcome, str]:
        reason = clean(text_of(object_of(ended.response, "incomplete_details"), "reason"))
        refused = any(slot[0] == "refusal" for item in self._items for slot in item.texts)
        if refused or (ended.status == "incomplete" and reason == "content_filter"):
            return "refusal", reason
        if ended.status == "completed":
            return "completed", reason
        if ended.status == "incomplete" and reason in ("max_output_tokens", ""):
            return "max_tokens", reason
        return "stopped", reason or ended.status


def _finals(items: Iterable[Item]) -> tuple[JsonObject, ...]:
    return tuple(final for item in items if (final := item.final()) is not None)


def _is_bare(known: Key | Item) -> bool:
    """Nothing tells which item it is."""
    return known.index is None and known.id is None


def _is_other(found: Item, key: Key, call_id: str) -> bool:
    """A call that is closed under this key is not the one that comes now."""
    is_same = not call_id or found.call_id in ("", call_id)
    return not is_same and found.last is not None and (key.id is None or key.id != found.id)


def _call_id(given: JsonObject) -> str:
    return call_id_of(given) if kind_of(given) == "call" else ""


def _usage_of(response: JsonObject) -> Usage | None:
    given = response.get("usage")
    if not isinstance(given, dict):
        return None
    return Usage(
        _count(given, "input_tokens") or _count(given, "prompt_tokens"),
        _count(given, "output_tokens") or _count(given, "completion_tokens"),
        _count(object_of(given, "input_tokens_details"), "cached_tokens"),
        _count(object_of(given, "output_tokens_details"), "reasoning_tokens"),
        _number(given.get("cost"), _MOST_COST),
    )


def _count(given: JsonObject, name: str) -> int:
    return int(_number(given.get(name), _MOST_TOKENS) or 0)


def _number(given: Json, most: float) -> float | None:
    if not isinstance(given, int | float) or isinstance(given, bool):
        return None
    return float(given) if 0 <= given <= most else None
