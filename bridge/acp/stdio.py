"""The line to the editor: two descriptors, read and written without ever blocking the program.

It must not know what the bytes mean.

Rule 1: only this file uses the editor's descriptors once the program runs.
Rule 2: write() never waits. drain(), one task of the caller's, puts out what is queued: everything
that was queued by the time it wakes up goes out in one system call.
Rule 3: an editor that closed its end is no error: `closed` says so, what is still queued or comes
later is dropped, and the owner ends as at the end of input.
"""

import errno
import os
from collections.abc import AsyncIterator, Callable

import anyio
from anyio.lowlevel import checkpoint

_MOST_READ = 1024 * 1024
_MOST_BACKLOG = 8 * 1024 * 1024
"""Producers wait for room() above this."""

_NEVER_BLOCKS = frozenset({errno.EPERM, errno.EINVAL})
"""How epoll and kqueue refuse to watch what is always ready: files and /dev/null."""


class Stdio:
    """The editor's two descriptors; owner of the queue of bytes to be written."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._queue: list[bytes] = []
        self._queued: anyio.Event | None = None
        self._moved: anyio.Event | None = None
        self._watched = True
        self.backlog = 0
        """Bytes queued and not yet written."""
        self.closed = anyio.Event()
        """Nothing can be written any more."""
        self.on_read: Callable[[bytes], None] | None = None
        self.on_write: Callable[[bytes], None] | None = None
        """Told of all bytes in either direction."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """What the editor sends, as it comes, up to the end of input; for one reader, once."""
        while True:
            await self._readable()
            try:
                data = os.read(self._stdin, _MOST_READ)
            except BlockingIOError:
                continue
            except OSError:
                return  # a reset connection, a terminal that went away
            if not data:
                return
            if self.on_read is not None:
                self.on_read(data)
            yield data

    def write(self, data: bytes) -> None:
        """Queue bytes; they leave in this order."""
        if self.closed.is_set():
            return
        if self.on_write is not None:
            self.on_write(data)
        self._queue.append(data)
        self.backlog += len(data)
        if self._queued is not None:
            self._queued.set()

    async def drain(self) -> None:
        """Write what is queued, for ever; to be run by one task until the program ends."""
        blocking = os.get_blocking(self._stdout)
        if not os.isatty(self._stdout):  # shared with the shell, which would not expect it
            os.set_blocking(self._stdout, False)
        try:
            while not self.closed.is_set():
                await self._some_queued()
                data = b"".join(self._queue)
                self._queue.clear()
                await self._put(data)
        finally:
            # Whoever shares the descriptor gets it back as it was.
            os.set_blocking(self._stdout, blocking)

    async def room(self) -> None:
        """Wait while the editor is far behind in reading."""
        await self._backlog_at_most(_MOST_BACKLOG)

    async def flushed(self) -> None:
        """Wait until everything queued is written, or can never be."""
        await self._backlog_at_most(0)

    async def _readable(self) -> None:
        if not self._watched:
            await checkpoint()
            return
        try:
            await anyio.wait_readable(self._stdin)
        except OSError as error:
            if error.errno not in _NEVER_BLOCKS:
                raise
            self._watched = False

    async def _some_queued(self) -> None:
        if not self._queue:
            self._queued = anyio.Event()
            await self._queued.wait()
            self._queued = None

    async def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                written = os.write(self._stdout, left)
            except BlockingIOError:
                await anyio.wait_writable(self._stdout)
                continue
            except OSError:
                self._close()
                return
            left = left[written:]
            self.backlog -= written
            self._tell_moved()

    def _close(self) -> None:
        self._queue.clear()
        self.backlog = 0
        self.closed.set()
        self._tell_moved()

    async def _backlog_at_most(self, most: int) -> None:
        while self.backlog > most:
            if self._moved is None:
                self._moved = anyio.Event()
            await self._moved.wait()

    def _tell_moved(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None
