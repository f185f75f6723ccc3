"""Regular files, opened without harm and read as they were at one moment.

Rule 1: a path is looked at before it is opened: opening can hang (a FIFO) or do harm (a device).
Rule 2: as many bytes are read as the file had when it was opened, so that a growing file ends.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from tools.base import Bytes, FileTooLarge, NotRegular
from tools.seen import Stamp, Version, new_digest

_BLOCK = 256 * 1024

_SIZELESS = 1024 * 1024
"""Bytes read of a file that claims to be empty: files of the kernel do, and are not."""

_FLAGS = sum(
    getattr(os, name, 0)
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_BINARY")
)

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


@contextmanager
def opened(
    path: str, flags: int = os.O_RDONLY
) -> Generator[tuple[int, os.stat_result], None, None]:
    """A descriptor of the regular file at a resolved path, and its status."""
    _demand_regular(os.lstat(path))
    descriptor = os.open(path, flags | _FLAGS)
    try:
        status = os.fstat(descriptor)
        _demand_regular(status)
        yield descriptor, status
    finally:
        os.close(descriptor)


def stream(descriptor: int, status: os.stat_result, feed: Callable[[bytes], None]) -> Stamp:
    """Feed all bytes, block by block."""
    digest = new_digest()
    left = status.st_size or _SIZELESS
    while block := os.read(descriptor, min(left, _BLOCK)):
        digest.update(block)
        feed(block)
        left -= len(block)
    return Stamp(digest.hexdigest(), version(status))


def scan(path: str, feed: Callable[[bytes], None]) -> Stamp | None:
    """Feed all bytes of a file; None if nothing is there."""
    try:
        with opened(path) as (descriptor, status):
            return stream(descriptor, status, feed)
    except FileNotFoundError:
        return None


def read(path: str, most: int) -> Bytes | None:
    """The whole file; None if nothing is there; FileTooLarge beyond so many bytes."""
    try:
        with opened(path) as (descriptor, status):
            if status.st_size > most:
                raise FileTooLarge(status.st_size)
            return whole(descriptor, status)
    except FileNotFoundError:
        return None


def whole(descriptor: int, status: os.stat_result) -> Bytes:
    """All bytes of an open file."""
    blocks: list[bytes] = []
    stamp = stream(descriptor, status, blocks.append)
    return Bytes(b"".join(blocks), stamp)


def version(status: os.stat_result) -> Version:
    """What a Stamp keeps of a status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def versions(paths: Iterable[str]) -> dict[str, Version | None]:
    """The version of what is at each path; None: nothing can be seen there."""
    return {path: _version_at(path) for path in paths}


def _version_at(path: str) -> Version | None:
    try:
        return version(os.lstat(path))
    except OSError:
        return None


def _demand_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(_KINDS.get(stat.S_IFMT(status.st_mode), "a device"))
