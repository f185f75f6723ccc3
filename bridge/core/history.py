"""What the model is sent of the conversation: records in, Responses input items out.

Rule 1: input() is a function of the records added and of the dialect. While the dialect stays, an
earlier input is a prefix of a later one, so that the provider's prompt cache holds.
Rule 2: every call in an input has exactly one output after it, every output its call, and no
reasoning stands without what it led to: servers refuse the whole request otherwise.
Rule 3: what enters is never changed in place.
Rule 4: what a server would refuse of a model's items enters mended, as sound.py says.
Rule 5: the conversation gets shorter, or loses what a server cannot take, by a record only.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast

from bridge.core import window
from bridge.core.content import message, output, without_media
from bridge.core.records import (
    Compacted,
    Forgotten,
    GoalChanged,
    Item,
    Learned,
    LeftOut,
    Noted,
    Prompted,
    Record,
    Responded,
    Returned,
    Unreadable,
)
from bridge.core.sound import sound
from bridge.core.wire import JsonObject, Settled
from tools.frozen import frozen

INTERRUPTED = "Error: the call was interrupted before it ended; it may have had effects."

_SUMMARY = """\
The conversation up to here was compacted. This is your own summary of it:

<summary>
{}
</summary>

Go on from it with what the user wants, and do not repeat what is done.
"""

_LONGEST_CALL_ID = 64
_CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_OUTPUTS = frozenset(_CALLS.values())

# What of an item another request may carry. Ids and statuses are looked up by servers that keep
# nothing, and not found. A compaction's ciphertext is bound to its id, so it stays whole.
_PORTABLE: dict[str, tuple[str, ...]] = {
    "reasoning": ("type", "summary", "content", "encrypted_content", "signature", "format"),
    "message": ("type", "role", "content", "phase"),
    "function_call": ("type", "call_id", "name", "arguments", "namespace", "caller"),
    "custom_tool_call": ("type", "call_id", "name", "input"),
}

Origin: TypeAlias = Literal[
    "prompt", "goal", "note", "knowledge", "summary", "model", "output", "past"
]
"""What an item is; "past" is the task of a goal that is not worked on any more."""
_ASKED = frozenset({"prompt", "goal"})
"""Origins of what the user wants."""


@frozen
class Dialect:
    """How the server at hand wants its own items back."""

    maker: str
    """Provider and model: encrypted reasoning of another maker is left out."""
    replay: Literal["portable", "verbatim"] = "portable"
    reasoning: Literal["encrypted", "content", "both", "none"] = "encrypted"
    images: bool = True
    files: bool = True


@frozen
class _Entry:
    prompt: int
    item: Item
    origin: Origin
    maker: str = ""
    """Whose item it is; nobody's where no server can read it any more."""


class History:
    """The conversation as the model knows it; owned by one session."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._prompt = 0
        self._overhead: int | None = None
        """Tokens of a request beside the conversation; None before the server has counted."""
        self._counted = self._estimated = self._sized = 0
        """Tokens: as the server counted them, and as we estimate those of what came later; and
        how many entries are in these figures."""
        self._answered = 0
        """How many entries the last request had that was answered."""
        self._dialect: Dialect | None = None
        self._shaped: list[Settled | None] = []
        """The first entries as the last request had them, in that dialect."""
        self.maker: str | None = None
        """Who made the last answer; None before the first."""

    @property
    def tokens(self) -> int:
        """About how many tokens a request with the conversation takes."""
        self._estimated += _estimate(self._entries[self._sized :])
        self._sized = len(self._entries)
        return self._counted + self._estimated

    @property
    def is_worked_on(self) -> bool:
        """Something is there that a summary could replace."""
        return any(entry.origin == "model" for entry in self._entries)

    def add(self, record: Record) -> None:
        """Take one more record; kinds that the model does not see change nothing."""
        match record:
            case Prompted(prompt=number, forwarded=False):
                self._prompt = number
            case Prompted(prompt=number, content=content):
                self._prompt = number
                said: Item = {"type": "message", "role": "user", "content": list(content)}
                self._append(said, "prompt")
            case Noted(text=text, parts=parts, asked=asked, goal=goal):
                origin = "goal" if goal else "prompt" if asked else "note"
                self._append(message(text, *parts), origin)
            case GoalChanged():
                self._entries = _resting(self._entries, record)
            case Learned(text=text):
                self._append(message(text), "knowledge")
            case Responded():
                self._respond(record)
            case Returned(call_id=call_id, custom=custom, text=text, media=media):
                kind = _CALLS["custom_tool_call" if custom else "function_call"]
                told = output(text, media)
                self._append({"type": kind, "call_id": call_id, "output": told}, "output")
            case Forgotten() | Compacted() | LeftOut() | Unreadable():
                self._shorten(record)
            case _:
                pass

    def input(self, dialect: Dialect, *, left_out: int | None = None) -> list[Item]:
        """The conversation so far as input items for a server of this dialect.

        left_out: as if LeftOut(left_out) were recorded.
        """
        if left_out is None:
            shaped = self._in(dialect)
        else:
            shaped = _in_shape(_left_out(self._entries, left_out), dialect)
        return list(_paired(_led_on([item for item in shaped if item is not None])))

    def suspect(self, dialect: Dialect) -> int | None:
        """From where on a request holds what this server may not take; None: nowhere."""
        first = self._answered if self.maker == dialect.maker else 0
        return None if self.input(dialect, left_out=first) == self.input(dialect) else first

    def _in(self, dialect: Dialect) -> list[Settled | None]:
        """The entries in this dialect: each is brought into shape, and later written, once."""
        if dialect != self._dialect:
            self._dialect, self._shaped = dialect, []
        self._shaped += _in_shape(self._entries[len(self._shaped) :], dialect)
        return self._shaped

    def _respond(self, record: Responded) -> None:
        if not record.items:
            return
        self._answered, self.maker = len(self._entries), record.maker
        for item in record.items:
            self._append(sound(cast("JsonObject", item)), "model", record.maker)
        if record.used is not None:
            if self._overhead is None:
                self._overhead = max(0, record.used - _estimate(self._entries))
            self._counted, self._estimated, self._sized = record.used, 0, len(self._entries)

    def _shorten(self, record: Forgotten | Compacted | LeftOut | Unreadable) -> None:
        entries = self._entries
        match record:
            case Forgotten(prompt=number):
                self._replace(
                    one for one in entries if one.prompt < number or one.origin == "knowledge"
                )
            case Compacted(summary=summary):
                self._replace(_compacted(entries, summary))
                self._answered = 0  # what is kept moved to the front
            case LeftOut(first=first):
                self._replace(_left_out(entries, first))
            case Unreadable():
                self._replace(replace(one, maker="") for one in entries)

    def _append(self, item: Item, origin: Origin, maker: str = "") -> None:
        self._entries.append(_Entry(self._prompt, item, origin, maker))

    def _replace(self, entries: Iterable[_Entry]) -> None:
        self._entries = list(entries)
        self._shaped = []
        self._answered = min(self._answered, len(self._entries))
        self._counted, self._estimated, self._sized = self._overhead or 0, 0, 0


def _estimate(entries: Iterable[_Entry]) -> int:
    return sum(window.tokens(entry.item) for entry in entries)


def _resting(entries: list[_Entry], goal: GoalChanged) -> list[_Entry]:
    """The same; where the goal is not worked on any more, its task is a thing of the past."""
    if goal.objective is not None and goal.status == "active":
        return entries
    return [replace(one, origin="past") if one.origin == "goal" else one for one in entries]


def _compacted(entries: Sequence[_Entry], summary: str) -> list[_Entry]:
    """Knowledge, the last prompt with its notes, and the summary where it belongs in time."""
    known = [entry for entry in entries if entry.origin == "knowledge"]
    prompts = [index for index, entry in enumerate(entries) if entry.origin in _ASKED]
    since = entries[prompts[-1] if prompts else 0 :]
    user = [entry for entry in since if entry.origin in _ASKED | {"note"}]
    # Of notes that say the same, the last one stands where it counts.
    user = list({str(entry.item): entry for entry in reversed(user)}.values())[::-1]
    told = _Entry(0, message(_SUMMARY.format(summary)), "summary")
    is_begun = any(entry.origin == "model" for entry in since)
    return [*known, *user, told] if is_begun else [*known, told, *user]


def _left_out(entries: Sequence[_Entry], first: int) -> list[_Entry]:
    """From there on texts, calls and outputs alone; notes in the place of media."""
    later = (replace(entry, item=without_media(entry.item)) for entry in entries[first:])
    plain = (one for one in later if one.item.get("type", "message") in window.PLAIN)
    return [*entries[:first], *plain]


def _in_shape(entries: Iterable[_Entry], dialect: Dialect) -> list[Settled | None]:
    shapes = (_shape(entry, dialect) for entry in entries)
    return [None if shape is None else Settled(shape) for shape in shapes]


def _shape(entry: _Entry, dialect: Dialect) -> Item | None:
    """The item as this server may see it, or None where it must not."""
    item, kind = entry.item, str(entry.item.get("type", "message"))
    if entry.origin == "model":
        own = entry.maker == dialect.maker
        if kind == "reasoning":
            return _reasoning(item, dialect, own=own)
        if kind not in _PORTABLE:
            return item if own else None
        if dialect.replay == "portable":
            item = _picked(item, kind)
    else:
        item = without_media(item, images=dialect.images, files=dialect.files)
    return _with_short_id(item)


def _reasoning(item: Item, dialect: Dialect, *, own: bool) -> Item | None:
    wanted = dialect.reasoning
    if wanted == "none":
        return None
    shaped = dict(item if dialect.replay == "verbatim" else _picked(item, "reasoning"))
    shaped.setdefault("summary", [])
    if not own or wanted == "content" or not shaped.get("encrypted_content"):
        shaped.pop("encrypted_content", None)
    if wanted == "encrypted" or not shaped.get("content"):
        shaped.pop("content", None)
    # Some routers sign a thought: the signature holds for its text, and only where it was made.
    if not own or "content" not in shaped:
        shaped.pop("signature", None)
    if not own:
        shaped.pop("format", None)
    said = ("summary", "content", "encrypted_content")
    return shaped if any(shaped.get(key) for key in said) else None


def _picked(item: Item, kind: str) -> Item:
    picked = {key: item[key] for key in _PORTABLE[kind] if key in item}
    content = picked.get("content")
    if kind == "message" and isinstance(content, list):
        picked["content"] = [_without_logprobs(part) for part in cast("list[Item]", content)]
    return picked


def _without_logprobs(part: Item) -> Item:
    return {key: value for key, value in part.items() if key != "logprobs"}


def _with_short_id(item: Item) -> Item:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or len(call_id) <= _LONGEST_CALL_ID:
        return item
    digest = hashlib.blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=16)
    return {**item, "call_id": f"call_{digest.hexdigest()}"}


def _led_on(items: Sequence[Item]) -> Iterator[Item]:
    """Leaves out reasoning that is not followed by a message or call of the model's."""
    followed = False
    kept: list[Item] = []
    for item in reversed(items):
        is_thought = item.get("type") == "reasoning"
        if not is_thought:
            followed = item.get("role") != "user" and item.get("type") not in _OUTPUTS
        if followed or not is_thought:
            kept.append(item)
    return reversed(kept)


def _paired(items: Iterable[Item]) -> Iterator[Item]:
    """Gives every call one output, before the next user message at the latest."""
    open_calls: dict[object, str] = {}

    def closing() -> Iterator[Item]:
        for call_id, kind in open_calls.items():
            yield {"type": kind, "call_id": call_id, "output": INTERRUPTED}
        open_calls.clear()

    for item in items:
        kind = str(item.get("type"))
        if kind in _CALLS:
            open_calls[item.get("call_id")] = _CALLS[kind]
        elif kind in _OUTPUTS:
            if open_calls.pop(item.get("call_id"), None) is None:
                continue
        elif item.get("role") == "user":
            yield from closing()
        yield item
    yield from closing()
