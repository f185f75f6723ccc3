"""Connections on which nothing is secured, on the event loop's own transports.

The HTTP library's own begins and ends the watching of a socket with each read, and enters a cancel
scope for it, which costs more than what is done with a word that streams. Here a socket is watched
for as long as it is open, and what came waits for whoever reads next. A connection is still made
by the library, and one that will be secured stays with it.

It must not know what is said on a connection.

Rule 1: errors are httpcore's.
Rule 2: who does not read stops the other end: no more waits here than _MOST_WAITING and a read.
Rule 3: what is closed hangs up at once.
"""

import asyncio
from collections.abc import Iterable
from math import inf
from selectors import EVENT_READ, DefaultSelector
from typing import Any, cast

import anyio
import httpcore

_MOST_WAITING = 64 * 1024
"""Bytes that wait to be read when reading from the socket stops."""


class Sockets(httpcore.AsyncNetworkBackend):
    """Makes the connections."""

    def __init__(self) -> None:
        self._library = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library's own name)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect; raises ConnectError or ConnectTimeout."""
        made = await self._library.connect_tcp(host, port, timeout, local_address, socket_options)
        # Nothing reads there, so that whoever has the socket too has the connection.
        try:
            line = made.get_extra_info("socket").dup()
            _, inbox = await asyncio.get_running_loop().create_connection(_Inbox, sock=line)
        except BaseException as reason:
            with anyio.CancelScope(shield=True):
                await made.aclose()
            if isinstance(reason, OSError):
                raise httpcore.ConnectError(str(reason)) from reason
            raise
        return _Stream(inbox, made)


class _Inbox(asyncio.Protocol):
    """What came on a connection and was not read yet."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.is_over = False
        """No more will come, nor go out."""
        self.error: Exception | None = None
        """Why not, unless the other end just hung up."""
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_full = False
        self._is_backed_up = False
        """Much of what was written has not gone out."""
        self._deadline = inf
        self._alarm: asyncio.TimerHandle | None = None
        """Goes off at the deadline of some read, and is then set for the one that waits."""
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # -- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _MOST_WAITING and not self._is_full:
            self._is_full = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        self.end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(exc)

    def pause_writing(self) -> None:
        self._is_backed_up = True

    def resume_writing(self) -> None:
        self._is_backed_up = False
        _wake(self._writer)

    # -- what the owner of the connection wants

    @property
    def has_news(self) -> bool:
        """There is something to read, be it the end."""
        return bool(self._waiting) or self.is_over

    @property
    def is_lost(self) -> bool:
        """Nothing can be written any more, as is known here before it is told."""
        return self.is_over or self.transport.is_closing()

    def end(self, error: Exception | None) -> None:
        """Expect nothing more of the other end."""
        if not self.is_over:
            self.is_over = True
            self.error = error
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        _wake(self._reader)
        _wake(self._writer)

    async def news(self, patience: float) -> None:
        """Wait until there is something to read; TimeoutError after so many seconds."""
        loop = asyncio.get_running_loop()
        self._reader = loop.create_future()
        self._deadline = loop.time() + patience
        if self._alarm is None or self._alarm.when() > self._deadline:
            self._set_alarm(loop)
        try:
            await self._reader
        finally:
            self._reader = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        may_end = self._deadline < inf
        self._alarm = loop.call_at(self._deadline, self._ring, loop) if may_end else None

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        if self._reader is None or self._reader.done():
            return
        if loop.time() < self._deadline:
            self._set_alarm(loop)
        else:
            self._reader.set_exception(TimeoutError())

    async def sent(self) -> None:
        """Wait until most of what was written has gone out, or cannot."""
        while self._is_backed_up and not self.is_lost:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None

    def take(self, most: int) -> bytes:
        """What is there, up to so many bytes; none at the end."""
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        self._waiting.clear()
        if len(data) > most:
            self._waiting.append(data[most:])
            data = data[:most]
        self._size -= len(data)
        if self._is_full and not self._size:
            self._is_full = False
            if not self.is_over:
                self.transport.resume_reading()
        return data


class _Stream(httpcore.AsyncNetworkStream):
    """One connection."""

    def __init__(self, inbox: _Inbox, made: httpcore.AsyncNetworkStream) -> None:
        self._inbox = inbox
        self._made = made
        """What the library made; to close it may end what goes out on the socket (shutdown)."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's)
        inbox = self._inbox
        if not inbox.has_news:
            try:
                await inbox.news(inf if timeout is None else timeout)
            except TimeoutError as reason:
                raise httpcore.ReadTimeout from reason
        data = inbox.take(max_bytes)
        if not data and inbox.error is not None:
            raise httpcore.ReadError(str(inbox.error)) from inbox.error
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        inbox = self._inbox
        if not inbox.is_lost:
            inbox.transport.write(buffer)
            try:
                with anyio.fail_after(timeout):
                    await inbox.sent()
            except TimeoutError as reason:
                raise httpcore.WriteTimeout from reason
        if inbox.is_lost:
            raise httpcore.WriteError(str(inbox.error or "hung up")) from inbox.error

    async def aclose(self) -> None:
        self._inbox.transport.abort()
        self._inbox.end(anyio.ClosedResourceError())
        with anyio.CancelScope(shield=True):
            await self._made.aclose()

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "socket":
                return self._inbox.transport.get_extra_info("socket")
            case "client_addr":
                return self._inbox.transport.get_extra_info("sockname")
            case "server_addr":
                return self._inbox.transport.get_extra_info("peername")
            case "is_readable":
                return self._inbox.has_news or _is_readable(self.get_extra_info("socket"))
            case _:
                return None


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _is_readable(line: Any) -> bool:
    """Whether something has come that the event loop has not seen yet, be it the end."""
    with DefaultSelector() as selector:
        selector.register(line, EVENT_READ)
        return bool(selector.select(0))
