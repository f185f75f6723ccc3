"""The line to the editor: two descriptors, read and written without ever blocking the program.

It must not know what the bytes mean.

Rule 1: only this file uses the editor's descriptors once the program runs.
Rule 2: write() never waits: what the editor does not take at once is queued, and drain(), one task
of the caller's, puts it out. Bytes leave in the order in which they were written.
Rule 3: an editor that closed its end is no error: `closed` says so, what is still queued or comes
later is dropped, and the owner ends as at the end of input.
"""

import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager

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
        self._left = memoryview(b"")
        """Of the piece that is being written; all that is queued comes after it."""
        self._may_write = False
        self._full = anyio.Event()
        """The editor takes no more for now, or never again."""
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
        """Send bytes, now or as soon as the editor takes them."""
        if self.closed.is_set():
            return
        if self.on_write is not None:
            self.on_write(data)
        self._queue.append(data)
        self.backlog += len(data)
        if self._may_write:
            self._put()

    @contextmanager
    def together(self) -> Generator[None]:
        """What is written inside goes out at the end, in one system call."""
        before, self._may_write = self._may_write, False
        try:
            yield
        finally:
            self._may_write = before
            if before:
                self._put()

    async def drain(self) -> None:
        """Let bytes out, for ever; to be run by one task until the program ends."""
        blocking = os.get_blocking(self._stdout)
        if not os.isatty(self._stdout):  # shared with the shell, which would not expect it
            os.set_blocking(self._stdout, False)
        try:
            self._put()
            await self._full.wait()
            while not self.closed.is_set():
                await anyio.wait_writable(self._stdout)
                self._full = anyio.Event()
                self._put()
                await self._full.wait()
        finally:
            self._may_write = False
            # Whoever shares the descriptor gets it back as it was.
            os.set_blocking(self._stdout, blocking)

    def room(self) -> Awaitable[None]:
        """Wait while the editor is far behind in reading."""
        return self._backlog_at_most(_MOST_BACKLOG)

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

    def _put(self) -> None:
        """Write what is queued, as far as the editor takes it now."""
        while self.backlog:
            if not self._left:
                self._left = memoryview(b"".join(self._queue))
                self._queue.clear()
            try:
                written = os.write(self._stdout, self._left)
            except BlockingIOError:
                self._may_write = False
                self._full.set()
                return
            except OSError:
                self._close()
                return
            self._left = self._left[written:]
            self.backlog -= written
            self._tell_moved()
        self._may_write = True

    def _close(self) -> None:
        self._queue.clear()
        self.backlog = 0
        self.closed.set()
        self._full.set()
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
