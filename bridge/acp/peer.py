"""JSON-RPC over lines: bytes in, messages out; calls in, bytes out.

It must not know any method but `initialize`, nor where bytes come from or go to.

Rule 1: feed() and end() never raise on what an editor sends. A line that is no message is answered
here, once, and the next line is read as if nothing had been.
Rule 2: a notification or an answer is never answered, however wrong it is.
Rule 3: an id goes back exactly as it came.
Rule 4: before an `initialize` has come nothing else is served, whatever becomes of that.
"""

from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

from bridge.core import wire
from bridge.core.wire import Json, JsonObject
from bridge.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    BridgeError,
    EditorError,
    to_editor,
)
from tools.frozen import frozen

Id: TypeAlias = str | int | None

_LONGEST_LINE = 64 * 1024 * 1024
"""Room for the images of a prompt, which clients cap at 32 MiB."""


@frozen
class Request:
    """To be answered, under its id."""

    id: Id
    method: str
    params: JsonObject


@frozen
class Note:
    """Not to be answered."""

    method: str
    params: JsonObject


@frozen
class Reply:
    """The answer to a request of ours, or to one that we do not know."""

    id: Id
    result: Json = None
    error: JsonObject | None = None
    """None: it went well."""


Message: TypeAlias = Request | Note | Reply


class Peer:
    """One connection; owner of the unfinished line, the outbox and the ids of our requests."""

    def __init__(self, *, initialized: bool = False, limit: int = _LONGEST_LINE) -> None:
        self._initialized = initialized
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._outbox: list[bytes] = []
        self._last_id = 0

    def feed(self, data: bytes) -> list[Message]:
        """The messages that these bytes complete; call take() afterwards."""
        *ends, rest = data.split(b"\n")
        messages: list[Message] = []
        for end in ends:
            self._add(end)
            messages += self.end()
        self._add(rest)
        return messages

    def end(self) -> list[Message]:
        """The message of the line so far, as if its end had come: for the end of input."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if not line.strip():
            return []
        message = self._message(line)
        return [] if message is None else [message]

    def take(self) -> bytes:
        """Everything to be sent by now, as whole lines; each is given once."""
        data = b"".join(self._outbox)
        self._outbox.clear()
        return data

    def request(self, method: str, params: Mapping[str, object]) -> int:
        """Ask the editor; the Reply will bear the id returned."""
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Tell the editor."""
        self._send({"method": method, "params": params})

    def result(self, request: Id, result: Mapping[str, object]) -> None:
        """Answer a request."""
        self._send({"id": request, "result": result})

    def refuse(self, request: Id, error: BridgeError) -> None:
        """Answer a request that failed."""
        answer = to_editor(error)
        told = {"code": answer.code, "message": answer.message, "data": answer.data}
        self._send({"id": request, "error": told})

    def _send(self, members: Mapping[str, object]) -> None:
        self._outbox.append(wire.dump({"jsonrpc": "2.0", **members}) + b"\n")

    def _add(self, piece: bytes) -> None:
        """More of the current line; one that got too long is dropped up to its end."""
        fitted = self._size <= self._limit
        self._size += len(piece)
        if self._size <= self._limit:
            self._pieces.append(piece)
        elif fitted:
            self._pieces.clear()
            self.refuse(
                None, EditorError(PARSE_ERROR, f"Parse error: a line of over {self._limit} bytes")
            )

    def _message(self, line: bytes) -> Message | None:
        try:
            value = wire.load(line)
        except ValueError:
            self.refuse(None, EditorError(PARSE_ERROR, "Parse error: not one JSON value in UTF-8"))
            return None
        if not isinstance(value, dict):
            self.refuse(None, EditorError(INVALID_REQUEST, "Invalid request: not a JSON object"))
            return None
        if "method" not in value and ("result" in value or "error" in value):
            return _reply(value)
        return self._call(value)

    def _call(self, value: JsonObject) -> Message | None:
        method, request = value.get("method"), value.get("id")
        if value.get("jsonrpc") != "2.0" or not isinstance(method, str) or not _is_id(request):
            self.refuse(None, EditorError(INVALID_REQUEST, "Invalid request: not JSON-RPC 2.0"))
            return None
        params = value.get("params")
        params = {} if params is None else params
        if "id" not in value:
            if not self._initialized or not isinstance(params, dict):
                return None
            return Note(method, params)
        if not self._initialized and method != "initialize":
            self.refuse(
                request, EditorError(INVALID_REQUEST, "Invalid request: initialize comes first")
            )
            return None
        if not isinstance(params, dict):
            self.refuse(request, EditorError(INVALID_PARAMS, "params: must be an object"))
            return None
        # At once, not when it is answered: the next request may be in the same bytes.
        self._initialized = True
        return Request(request, method, params)


def _reply(value: JsonObject) -> Reply | None:
    request, error = value.get("id"), value.get("error")
    if not _is_id(request):
        return None
    if error is None:
        return Reply(request, result=value.get("result"))
    return Reply(request, error=error if isinstance(error, dict) else {"message": error})


def _is_id(value: Json) -> TypeGuard[Id]:
    return value is None or (isinstance(value, str | int) and not isinstance(value, bool))
