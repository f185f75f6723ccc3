"""What a session writes down as it goes, and all it needs to go on later.

Rule 1: the records of a session, in order, are its whole truth: history, replay and state are
functions of them, the same for a session that runs and for one that is loaded.
Rule 2: encode() and decode() are inverse. decode() gives None for what it does not understand,
so that an older program reads a newer log as far as it can.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Literal, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError

from bridge.core.wire import load_object
from tools.base import Card, Console, Shown, Step, Text
from tools.frozen import frozen

FORMAT = 1

Item: TypeAlias = Mapping[str, object]
"""A JSON object of one of the wires, kept as it came."""


@frozen
class Opened:
    """The first record: what does not change, and the options at the start."""

    session: str
    cwd: str
    at: str
    """RFC 3339, UTC."""
    mode: str
    model: str
    effort: str | None
    permission: str
    format: int = FORMAT


@frozen
class Prompted:
    """The user's prompt, as the editor sent it."""

    prompt: int
    blocks: tuple[Item, ...]
    content: tuple[Item, ...]
    """The same as Responses input parts."""
    at: str
    forwarded: bool = True
    """False: a slash command, which the model never sees."""


@frozen
class Noted:
    """A message we add for the model; the person does not see it."""

    text: str
    parts: tuple[Item, ...] = ()
    """Pictures that came with it."""
    asked: bool = False
    """It stands for what the user wants: the message of a slash command, the task of a goal."""
    goal: bool = False
    """It is the task of a goal, and holds no longer than that is worked on."""


@frozen
class Learned:
    """Instructions of the project or the user that the model was told; they outlast compactions."""

    source: str
    """The file they come from."""
    text: str


@frozen
class SaidText:
    """Message or thought text that the person saw under one message id."""

    role: Literal["message", "thought"]
    message: str
    text: str


@frozen
class Announced:
    """A tool call that the person saw, with the card it had."""

    card_id: str
    """The id towards the editor: unique in the session."""
    call_id: str
    name: str
    arguments: str
    card: Card


@frozen
class Hosted:
    """A call that the provider made itself, and how it ended."""

    call: Announced
    shown: tuple[Text | Console, ...]
    ok: bool


@frozen
class Cost:
    """An amount of money."""

    amount: float
    currency: str
    """ISO 4217."""


@frozen
class Metered:
    """What one answer took, all attempts at it together, and how its request went on from the last.

    Tokens as the server counted them.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    """Of the input, what the provider had in its cache."""
    upstream: str = ""
    """Who served it, where the server says so."""
    before: int = 0
    """Bytes of the request before it; 0 where there is none to compare with."""
    kept: int = 0
    """Those that its own request begins with."""
    broke: str = ""
    """The part in which the two differ first; none where the one before is a prefix of its own."""


@frozen
class Responded:
    """One answer of the model's: what was seen of it, and what goes back in later requests."""

    response: int
    maker: str
    """Provider and model that made it: encrypted reasoning is theirs alone."""
    seen: tuple[SaidText | Announced | Hosted, ...]
    items: tuple[Item, ...]
    """Provider items as received; empty where the attempt failed."""
    used: int | None = None
    """Tokens in the context after it, as the server counted."""
    cost: Cost | None = None
    """What it cost, where that is known."""
    metered: Metered | None = None


@frozen
class Returned:
    """How a tool call ended."""

    card_id: str
    call_id: str
    custom: bool
    text: str
    ok: bool
    shown: tuple[Shown, ...] | None = None
    title: str | None = None
    data: Item | None = None
    media: tuple[Item, ...] = ()
    """What the model got beside the text, as input parts."""


@frozen
class Changing:
    """A file that a call is about to change: on disk before the file is touched.

    What the file holds tells afterwards whether it happened.
    """

    card_id: str
    path: str
    """Absolute and resolved."""
    before: str | None
    """Digest of the whole file; None: there was none."""
    after: str


@frozen
class Undone:
    """The file changes of this prompt were taken back."""

    prompt: int


@frozen
class Told:
    """A message of our own to the person; the model does not see it."""

    message: str
    text: str


@frozen
class Forgotten:
    """The model no longer sees this prompt and what followed up to here."""

    prompt: int


@frozen
class Compacted:
    """What came before is, for the model, this summary and the user's last message."""

    compaction: int
    summary: str
    used: int | None = None
    """Tokens that it took, as the server counted."""
    cost: Cost | None = None
    metered: Metered | None = None


@frozen
class Extended:
    """The person lets the session go on beyond what the configuration allows it to spend."""

    tokens: int
    """What it had spent by then: as much again may follow."""
    cost: float = 0.0


@frozen
class LeftOut:
    """The server refused a request; without what it may not take of these items, it did not."""

    first: int
    """Where in the history they begin; they go to its end."""


@frozen
class Unreadable:
    """The server cannot read the encrypted reasoning of the answers up to here."""


@frozen
class Switched:
    """A session option changed."""

    option: Literal["mode", "model", "effort", "permission"]
    value: str | None


@frozen
class Titled:
    """The session got its title."""

    title: str
    at: str


@frozen
class SawFile:
    """What the model has seen of a file, for the read-before-edit rule."""

    file: Item


@frozen
class GoalChanged:
    """The goal as it now stands; no objective: there is none."""

    objective: str | None
    status: Literal["active", "paused", "complete", "blocked"] = "active"
    blocker: str = ""
    rounds: int = 0


@frozen
class Planned:
    """The steps that the person was shown, all of them; none: the plan was cleared."""

    steps: tuple[Step, ...]


Record: TypeAlias = (
    Opened
    | Prompted
    | Noted
    | Learned
    | Responded
    | Returned
    | Changing
    | Undone
    | Told
    | Forgotten
    | Compacted
    | Extended
    | LeftOut
    | Unreadable
    | Switched
    | Titled
    | SawFile
    | GoalChanged
    | Planned
)

RECORDS: dict[str, type[Record]] = {
    "opened": Opened,
    "prompted": Prompted,
    "noted": Noted,
    "learned": Learned,
    "responded": Responded,
    "returned": Returned,
    "changing": Changing,
    "undone": Undone,
    "told": Told,
    "forgotten": Forgotten,
    "compacted": Compacted,
    "extended": Extended,
    "left_out": LeftOut,
    "unreadable": Unreadable,
    "switched": Switched,
    "titled": Titled,
    "saw_file": SawFile,
    "goal": GoalChanged,
    "planned": Planned,
}

_NAMES = {kind: name for name, kind in RECORDS.items()}


def encode(record: Record) -> bytes:
    """One line of JSON, line end included; ASCII, so that every text comes back as it was."""
    line = {"type": _NAMES[type(record)], **_plain(record)}
    return json.dumps(line, default=_plain, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Record | None:
    """The record on one line; None if it is damaged or of a kind that is not known here."""
    try:
        values = load_object(line)
        kind = RECORDS.get(str(values.pop("type", "")))
        record = None if kind is None else _reader(kind).validate_python(values)
    except (ValueError, ValidationError):
        return None
    return record if record is None or _is_sound(record) else None


def _is_sound(record: Record) -> bool:
    """Whether what the types leave open is what it is taken for elsewhere."""
    match record:
        case Prompted(content=parts) | Noted(parts=parts):
            return _are_parts(parts)
        case Responded(items=items):
            return all(map(_is_models, items))
        case Told(message=message):
            return message[:1] == "n" and message[1:].isdecimal()
        case _:
            return True


def _is_models(item: Item) -> bool:
    kind, call_id = item.get("type", "message"), item.get("call_id")
    named = isinstance(kind, str) and (call_id is None or isinstance(call_id, str))
    return named and (item.get("role") != "user" or _are_parts(item.get("content")))


def _are_parts(value: object) -> bool:
    parts = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (None,)
    return all(
        isinstance(part, dict) and isinstance(cast("Item", part).get("type"), str) for part in parts
    )


def format_of(line: bytes) -> int | None:
    """The format that a header claims, whatever else is in it; None for what is no header."""
    try:
        values = load_object(line)
    except ValueError:
        return None
    version = values.get("format")
    return version if values.get("type") == "opened" and isinstance(version, int) else None


def _plain(value: object) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}  # pyright: ignore[reportArgumentType] (a record or a part of one)


@cache
def _reader(kind: type[Record]) -> TypeAdapter[Record]:
    return TypeAdapter(kind)
