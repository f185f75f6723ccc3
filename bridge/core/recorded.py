"""What is written of a recording: its lines, without secrets, also those that come in pieces.

Rule 1: a loaded key is replaced wherever it stands, and so is what looks like a secret.
Rule 2: a text that streams is looked at as a whole. Its pieces wait until it has ended; where the
whole held a secret, the first piece becomes the whole without it and the others become empty.
Rule 3: lines come out in the order in which they came in.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from bridge.core.scrub import scrubbed, scrubbed_values
from bridge.core.secrets import HIDDEN, conceal, loaded
from bridge.core.wire import load_object

Line = dict[str, Any]

FORMAT = 1
"""Counts up when older programs could not read what is written."""


@dataclass(eq=False, slots=True)
class _Stream:
    """One text that comes in pieces: where each of them stands."""

    places: list[tuple[Line, str]] = field(default_factory=list[tuple[Line, str]])
    is_open: bool = True


class Lines:
    """The lines on their way to the file; owner of those that wait and of the keys."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()
        self._waiting: deque[tuple[Line, _Stream | None]] = deque()
        self._streams: dict[tuple[object, ...], _Stream] = {}

    def hide(self, values: Iterable[str]) -> None:
        """Let none of these values be in any line that comes out from now on."""
        self._secrets = loaded({*self._secrets, *values})

    def feed(self, line: Line) -> Iterator[bytes]:
        """The lines that are ready after this one came; the caller lets go of it."""
        key, place = _piece(line)
        if place is None:
            self._close(key)
            self._waiting.append((line, None))
        else:
            stream = self._streams.setdefault(key, _Stream())
            stream.places.append(place)
            self._waiting.append((line, stream))
        return self._ready()

    def end(self) -> Iterator[bytes]:
        """All that still waits; nothing more will come."""
        self._close(())
        return self._ready()

    def _close(self, key: tuple[object, ...]) -> None:
        """End the streams whose keys begin like this."""
        for other in [one for one in self._streams if one[: len(key)] == key]:
            stream = self._streams.pop(other)
            stream.is_open = False
            text = "".join(holder[name] for holder, name in stream.places)
            clean = scrubbed(self._without_keys(text))
            if clean != text:
                for holder, name in stream.places:
                    holder[name], clean = clean, ""

    def _without_keys(self, text: str) -> str:
        return json.loads(conceal(json.dumps(text).encode("ascii"), self._secrets))

    def _ready(self) -> Iterator[bytes]:
        while self._waiting:
            line, stream = self._waiting[0]
            if stream is not None and stream.is_open:
                return
            self._waiting.popleft()
            text = json.dumps(scrubbed_values(line), separators=(",", ":"))
            yield conceal(text.encode("ascii") + b"\n", self._secrets)


_NEVER = ("nobody",)
"""The beginning of no key."""


def _piece(line: Line) -> tuple[tuple[object, ...], tuple[Line, str] | None]:
    """The stream that a line belongs to and where its text stands; None: it ends these streams."""
    match line:
        case {"who": "model", "ask": ask, "event": {"type": str(kind), "delta": str()} as event}:
            part = (event.get("output_index"), event.get("content_index"))
            return ("model", ask, kind, *part, event.get("summary_index")), (event, "delta")
        case {"who": "model", "ask": ask}:
            return ("model", ask), None
        case {"who": "agent", "message": {"params": {"sessionId": session} as params}}:
            key, place = _shown(params.get("update"))
            return ("agent", session, *key), place
        case {"who": "agent"}:
            return ("agent",), None
        case _:
            return _NEVER, None


def _shown(update: Any) -> tuple[tuple[object, ...], tuple[Line, str] | None]:
    match update:
        case {"_meta": {"terminal_output": {"data": str()} as output}, "toolCallId": call}:
            return ("printed", call), (output, "data")
        case {"sessionUpdate": str(kind), "content": {"text": str()} as content}:
            return (kind, update.get("messageId")), (content, "text")
        case _:
            return (), None


def take_server_secrets(message: Line) -> list[str]:
    """Take what a message of the editor's gives to MCP servers out of it."""
    found: list[str] = []
    for server in _objects(message.get("params"), "mcpServers"):
        for pair in (*_objects(server, "env"), *_objects(server, "headers")):
            if isinstance(pair.get("value"), str):
                found.append(pair["value"])
                pair["value"] = HIDDEN
    return found


def _objects(holder: Any, name: str) -> list[Line]:
    """The objects of a list that this may have under this name."""
    values: Any = cast("Line", holder).get(name) if isinstance(holder, dict) else None
    every = cast("list[Any]", values) if isinstance(values, list) else []
    return [cast("Line", value) for value in every if isinstance(value, dict)]


def message(text: str) -> Line:
    """What stands for one line of the editor's or the agent's: the message, or the text."""
    try:
        return {"message": load_object(text)}
    except ValueError:
        return {"text": text}
