"""Connections to a model's server, and whether anybody is still at their other end.

It must not know HTTP: what is written is a request, and what is read after it is the answer.

Rule 1: a connection that served before may have died without a word: a network was left, a machine
slept, a router forgot. The next request on it sends its beginning alone, and the rest once the
other end has acknowledged some of that. No server acts on a request that is not whole, so one that
ends before its rest was sent may be sent again: Vanished.
Rule 2: where nothing is said for long, the system asks the other end for signs of life. A
connection that dies while an answer is awaited ends DEAD_SECONDS later.
Rule 3: on this machine nothing is lost on the way: such a connection is not watched.
Rule 4: what came together is handed on in one piece: see chunks.py.
"""

import socket
import ssl
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import anyio
import anyio.lowlevel
import httpcore

from bridge.responses.chunks import Chunks
from bridge.responses.sockets import Sockets

if sys.platform != "win32":
    import fcntl
    import termios

DEAD_SECONDS = 30
"""Without a sign of life for so long, the other end is dead."""
_ASK_AFTER, _ASK_EVERY, _ASK_TIMES = 15, 5, 3
"""Signs of life: seconds of silence, seconds between questions, questions."""
_BEGINNING = 8 * 1024
"""Bytes: several packets, since the lone one is acknowledged late, and few enough to go at once."""
_HEARD_SECONDS = 0.8
_LOOK_EVERY = (0.001, 0.002, 0.005, 0.01)
"""Seconds between looks at what was acknowledged; the last one stays."""
_SO_NWRITE = 0x1024
"""Of Darwin: the bytes in a socket's send buffer."""

Queued: TypeAlias = Callable[[socket.socket], int]


class Vanished(httpcore.ReadError):
    """Nobody is at the other end, and nobody has seen the whole request."""


def queued(line: socket.socket) -> int:
    """Bytes that were sent, or are to be, and not acknowledged; 0 where the system does not tell.

    Linux and Darwin tell; what one acknowledges leaves the buffer.
    """
    if sys.platform == "win32":
        return 0
    if sys.platform == "darwin":
        return line.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return int(struct.unpack("i", fcntl.ioctl(line, termios.TIOCOUTQ, bytes(4)))[0])


def is_near(line: socket.socket) -> bool:
    """The other end is on this machine."""
    host = str(line.getpeername()[0])
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


class Lines(httpcore.AsyncNetworkBackend):
    """Makes connections as the HTTP library does, and watches over the far ones."""

    def __init__(
        self,
        *,
        near: Callable[[socket.socket], bool] = is_near,
        queued: Queued = queued,
        inner: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._inner = inner or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
        self._near = near
        self._queued = queued

    def plain(self) -> "Lines":
        """The same for connections on which nothing will be secured."""
        return Lines(near=self._near, queued=self._queued, inner=Sockets())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library's own name)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect; raises httpcore's errors."""
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        try:
            # The library loses a connection where it is cancelled before it writes to it.
            await anyio.lowlevel.checkpoint_if_cancelled()
            return self._watched(stream)
        except OSError as error:  # it was hung up as soon as it was made
            await stream.aclose()
            raise httpcore.ReadError(str(error)) from None
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
            raise

    def _watched(self, stream: httpcore.AsyncNetworkStream) -> "Near":
        line = _socket(stream)
        if self._near(line):
            return Near(stream)
        for option, value in _signs_of_life():
            line.setsockopt(*option, value)
        return Line(stream, self._queued)


class Near(httpcore.AsyncNetworkStream):
    """One connection on this machine, or what every connection does."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._answer = Chunks()
        """To the request that was written last."""
        self.patience: float | None = None
        """How long reads of this answer wait that have no limit of their own; in seconds."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's)
        patience = self.patience if timeout is None else timeout
        try:
            while data := await self._stream.read(max_bytes, patience):
                if joined := self._answer.feed(data):
                    return joined
        except ssl.SSLError as error:  # the library leaves it as it is
            raise httpcore.ReadError(str(error)) from error
        return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        self._begin()
        await self._send(buffer, timeout)

    def _begin(self) -> None:
        """Expect another answer."""
        self._answer = Chunks()
        self.patience = None

    async def _send(self, data: bytes, timeout: float | None) -> None:  # noqa: ASYNC109 (as write)
        try:
            await self._stream.write(data, timeout)
        except ssl.SSLError as error:  # as above
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        try:
            secured = await self._stream.start_tls(ssl_context, server_hostname, timeout)
            await anyio.lowlevel.checkpoint_if_cancelled()  # as after connecting
        except BaseException:  # the library hangs up after errors, but not where it is cancelled
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise
        return self._same(secured)

    def _same(self, stream: httpcore.AsyncNetworkStream) -> "Near":
        return Near(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class Line(Near):
    """One connection to elsewhere; owner of the request that is on its way out."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, queued: Queued) -> None:
        super().__init__(stream)
        self._queued = queued
        self._has_served = False
        self._request = b""
        """What is to be sent, on a connection that has served."""
        self._write_timeout: float | None = None
        self._is_partial = False
        """The other end has the beginning of a request and will not get the rest."""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        if self._has_served:
            self._begin()
            self._request += buffer
            self._write_timeout = timeout
        else:
            await super().write(buffer, timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's)
        if self._request:
            await self._ask()
        try:
            data = await super().read(max_bytes, timeout)
        except httpcore.ReadError as error:
            raise (Vanished(str(error)) if self._is_partial else error) from None
        if not data and self._is_partial:
            raise Vanished("hung up before the request was whole")
        self._has_served = True
        return data

    def _same(self, stream: httpcore.AsyncNetworkStream) -> "Line":
        return Line(stream, self._queued)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._is_partial:
            return True  # which to the library means that it is not fit for another request
        return super().get_extra_info(info)

    async def _ask(self) -> None:
        """Send the request: its beginning, and the rest when that has arrived."""
        request, self._request = self._request, b""
        size = min(_BEGINNING, len(request) - 1)
        self._is_partial = True
        try:
            await self._send(request[:size], self._write_timeout)
        except httpcore.WriteError as error:
            raise Vanished(str(error)) from None
        is_heard = await self._is_heard()
        if self._stream.get_extra_info("is_readable"):
            return  # it hung up in that moment, or answers what it does not want to hear
        if not is_heard:
            raise Vanished("acknowledges nothing")
        self._is_partial = False
        try:
            await self._send(request[size:], self._write_timeout)
        except httpcore.WriteError:
            return  # the reason is to be read

    async def _is_heard(self) -> bool:
        """Whether the other end has acknowledged some of what was sent."""
        line = _socket(self._stream)
        # A line that was closed meanwhile has no number any more, and tells nothing.
        with suppress(OSError, ValueError), anyio.move_on_after(_HEARD_SECONDS):
            sent = self._queued(line)
            looks = iter(_LOOK_EVERY)
            while 0 < self._queued(line) >= sent:  # noqa: ASYNC110 (nothing tells of it)
                await anyio.sleep(next(looks, _LOOK_EVERY[-1]))
            return True
        return False


def _socket(stream: httpcore.AsyncNetworkStream) -> socket.socket:
    return cast("socket.socket", stream.get_extra_info("socket"))


def _signs_of_life() -> list[tuple[tuple[int, int], int]]:
    """The options of a socket that make the system ask, as far as it has them."""
    wanted = {
        "TCP_KEEPIDLE": _ASK_AFTER,
        "TCP_KEEPALIVE": _ASK_AFTER,  # what Darwin calls the former
        "TCP_KEEPINTVL": _ASK_EVERY,
        "TCP_KEEPCNT": _ASK_TIMES,
        "TCP_USER_TIMEOUT": DEAD_SECONDS * 1000,  # for what was sent and not acknowledged
    }
    known = [name for name in wanted if hasattr(socket, name)]
    return [
        ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
        *(((socket.IPPROTO_TCP, getattr(socket, name)), wanted[name]) for name in known),
    ]
