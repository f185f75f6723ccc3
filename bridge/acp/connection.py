"""The line to the editor: what we send goes out in order, what we ask is matched with its answer.

Rule 1: sending never waits and never fails; what a closed line loses nobody is there to miss.
Rule 2: an answer that comes after we stopped waiting is dropped.
"""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from bridge.acp.peer import Peer, Reply
from bridge.core.wire import Json
from bridge.errors import INTERNAL_ERROR, BridgeError, EditorError


class Output(Protocol):
    """What carries our lines to the editor."""

    def write(self, data: bytes) -> None: ...
    def together(self) -> AbstractContextManager[None]: ...
    def room(self) -> Awaitable[None]: ...


@dataclass(eq=False, slots=True)
class _Waiting:
    arrived: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply = field(init=False)
    """Stands there once it has arrived."""


class Connection:
    """Both directions of the line; owner of the requests that are open."""

    def __init__(self, peer: Peer, output: Output) -> None:
        self._peer = peer
        self._output = output
        self._waiting: dict[int | str, _Waiting] = {}
        self.knows_cancelling = False
        """The editor has taken back a request itself, so it knows what that means."""

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification."""
        self._peer.notify(method, params)
        self.flush()

    def raw(self, line: bytes) -> None:
        """Send a line that is ready, line end included."""
        self._output.write(line)

    def result(self, request: str | int | None, result: Mapping[str, object]) -> None:
        """Answer a request of the editor's."""
        self._peer.result(request, result)
        self.flush()

    def refuse(self, request: str | int | None, error: BridgeError) -> None:
        """Answer a request of the editor's with an error."""
        self._peer.refuse(request, error)
        self.flush()

    async def request(self, method: str, params: Mapping[str, object]) -> Json:
        """Ask the editor and wait for as long as it takes; EditorError if it refuses.

        Whoever is cancelled while waiting gives the request up, which the editor is told where it
        knows the word (ACP, Cancellation); a late answer changes nothing.
        """
        request, waiting = self._peer.request(method, params), _Waiting()
        self._waiting[request] = waiting
        self.flush()
        try:
            await waiting.arrived.wait()
        finally:
            if self._waiting.pop(request, None) is not None and self.knows_cancelling:
                self.notify("$/cancel_request", {"requestId": request})
        return _result(waiting.reply)

    def settle(self, reply: Reply) -> None:
        """Hand an answer of the editor's to whoever waits for it."""
        if not isinstance(reply.id, int | str):
            return
        waiting = self._waiting.pop(reply.id, None)
        if waiting is not None:
            waiting.reply = reply
            waiting.arrived.set()

    def together(self) -> AbstractContextManager[None]:
        """What is sent inside goes out in one piece."""
        return self._output.together()

    def room(self) -> Awaitable[None]:
        """Wait while the editor is far behind in reading."""
        return self._output.room()

    def flush(self) -> None:
        """Send what the peer has ready."""
        data = self._peer.take()
        if data:
            self._output.write(data)


def _result(reply: Reply) -> Json:
    if reply.error is None:
        return reply.result
    code = reply.error.get("code")
    raise EditorError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        f"the editor answered with an error: {str(reply.error.get('message'))[:200]}",
    )
