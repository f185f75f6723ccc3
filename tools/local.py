"""The files of this machine, without keeping anyone waiting.

Rule 1: whatever may wait for a disk runs in a worker thread. A scan can be cancelled between two
blocks; a change, once begun, is finished.
Rule 2: changes of one path run one after another.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from weakref import WeakValueDictionary

import anyio
from anyio import from_thread, to_thread

from tools import commit, regular
from tools.base import Bytes, Found, Query
from tools.commit import Move
from tools.exchange import exchange
from tools.search import FindRipgrep, confirmed, ripgrep, search
from tools.seen import Stamp, Version


class LocalFiles:
    """The port Files on this machine; one for the whole process, so that rule 2 holds."""

    def __init__(
        self, swap: Move = exchange, link: Move = os.link, find: FindRipgrep = ripgrep
    ) -> None:
        self._swap = swap
        """Lets two files change places."""
        self._link = link
        """Gives the first file the second name too."""
        self._find = find
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def resolve(self, path: str) -> str:
        """The path with every symbolic link followed; what does not exist is kept as written."""
        return await to_thread.run_sync(_resolved, path)

    async def versions(self, paths: Iterable[str]) -> dict[str, Version | None]:
        """Which state each file is in; None: nothing can be seen."""
        return await to_thread.run_sync(regular.versions, tuple(paths))

    async def scan(self, path: str, feed: Callable[[bytes], None]) -> Stamp | None:
        """Feed all bytes, block by block, in a worker thread; None if nothing is there."""

        def checked(block: bytes) -> None:
            from_thread.check_cancelled()
            feed(block)

        return await to_thread.run_sync(regular.scan, path, checked)

    async def read(self, path: str, most: int) -> Bytes | None:
        """The whole file; None if nothing is there; FileTooLarge beyond `most` bytes."""
        return await to_thread.run_sync(regular.read, path, most)

    async def replace(self, path: str, data: bytes, expected: Stamp) -> Stamp:
        """Put data in the place of the expected bytes; StaleFile if there are others by now."""
        async with self._locks.setdefault(path, anyio.Lock()):
            return await to_thread.run_sync(commit.replace, path, data, expected, self._swap)

    async def create(self, path: str, data: bytes) -> Stamp:
        """Make a new file and its folders; FileExistsError if something is there by now."""
        return await to_thread.run_sync(commit.create, path, data, self._link)

    async def remove(self, path: str, expected: Stamp) -> None:
        """Delete a file that holds the expected bytes; StaleFile if it holds others by now."""
        async with self._locks.setdefault(path, anyio.Lock()):
            await to_thread.run_sync(commit.remove, path, expected)

    async def search(self, query: Query, take: Callable[[Found], None]) -> str:
        """Search a folder or a file; why there may be more, or nothing if that is all."""
        return await search(query, take, self._find)

    async def confirmed(self, found: Sequence[Found]) -> list[Found]:
        """Those of the files that are what a search found: a look that follows no link."""
        return await to_thread.run_sync(confirmed, tuple(found))


_TRIES = 20


def _resolved(path: str) -> str:
    """The path with every link followed; as it is written where links come and go too fast."""
    for _ in range(_TRIES):
        # A link that is gone between two looks at it makes realpath raise.
        with suppress(OSError):
            return os.path.realpath(path)
    return path
