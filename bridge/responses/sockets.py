"""Connections to servers on the event loop's own transports, for the HTTP library.

The library's own backend begins and ends the watching of a socket with each read, and enters a
cancel scope for it, which costs more than what is done with a word that streams. Here a socket is
watched for as long as it is open, and what came waits for whoever reads next.

It must not know what is said on a connection.

Rule 1: errors are httpcore's.
Rule 2: who does not read stops the other end: no more waits here than _MOST_WAITING and a read.
Rule 3: what is closed hangs up at once; no goodbye is awaited.
"""

import asyncio
import ssl
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from math import inf
from selectors import EVENT_READ, DefaultSelector
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpcore

_MOST_WAITING = 64 * 1024
"""Bytes that wait to be read when reading from the socket stops."""
_PIECE = 64 * 1024
"""Bytes that are written in one go."""
_NEXT_ADDRESS_AFTER = 0.25
"""Seconds until another address of the same name is tried too (RFC 8305)."""


class Sockets(httpcore.AsyncNetworkBackend):
    """Makes the connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library's own name)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect; raises ConnectError or ConnectTimeout."""
        loop = asyncio.get_running_loop()
        local = None if local_address is None else (local_address, 0)
        with _told_as(httpcore.ConnectError, httpcore.ConnectTimeout), anyio.fail_after(timeout):
            transport, inbox = await loop.create_connection(
                _Inbox, host, port, local_addr=local, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER
            )
        stream = _Stream(transport, inbox)
        for option in socket_options or ():
            stream.get_extra_info("socket").setsockopt(*option)
        return stream


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
        while self._is_backed_up and not self.is_over:
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

    def __init__(self, transport: asyncio.Transport, inbox: _Inbox) -> None:
        self._transport = transport
        self._inbox = inbox

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
        with _told_as(httpcore.WriteError, httpcore.WriteTimeout), anyio.fail_after(timeout):
            # TLS tells that something has not gone out only of what is written after it.
            for start in range(0, len(buffer), _PIECE):
                if not inbox.is_over:
                    self._transport.write(buffer[start : start + _PIECE])
                    await inbox.sent()
        if inbox.is_over:
            raise httpcore.WriteError(str(inbox.error or "hung up")) from inbox.error

    async def aclose(self) -> None:
        self._transport.abort()
        self._inbox.end(anyio.ClosedResourceError())
        await anyio.lowlevel.cancel_shielded_checkpoint()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        inbox = self._inbox
        with _told_as(httpcore.ConnectError, httpcore.ConnectTimeout), anyio.fail_after(timeout):
            try:
                transport = await loop.start_tls(
                    self._transport,
                    inbox,
                    ssl_context,
                    server_hostname=server_hostname,
                    ssl_handshake_timeout=timeout and timeout + 1,  # ours ends it before
                )
            except ConnectionError as reason:
                raise ssl.SSLEOFError("[SSL] hung up") from reason
            if transport is None:  # lost in the moment in which it was secured
                raise ssl.SSLEOFError("[SSL] hung up")
        inbox.transport = transport
        return _Stream(transport, inbox)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object" | "socket":
                return self._transport.get_extra_info(info)
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "is_readable":
                return self._inbox.has_news or _is_readable(self.get_extra_info("socket"))
            case _:
                return None


def _wake(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _is_readable(line: Any) -> bool:
    """Whether something has come that the event loop has not seen yet, be it the end."""
    if line.fileno() < 0:
        return True
    with DefaultSelector() as selector:
        selector.register(line, EVENT_READ)
        return bool(selector.select(0))


@contextmanager
def _told_as(error: type[Exception], late: type[Exception]) -> Generator[None]:
    """Raise httpcore's errors for those of the event loop."""
    try:
        yield
    except TimeoutError as reason:
        raise late(str(reason)) from reason
    except OSError as reason:
        raise error(str(reason)) from reason
