"""Regular files, opened without harm and read as they were at one moment.

Rule 1: a path is looked at before it is opened: opening can hang (a FIFO) or do harm (a device).
Rule 2: as many bytes are read as the file had when it was opened, so that a growing file ends.
Rule 3: a path was judged as it is written, so no link on the way is followed, not even one that
appears in this moment: a command may put one there, to lead us where it cannot go itself.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

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

_HELD = "/proc/self/fd/"
"""How a name begins that stands below an open folder. A resolved path never does."""

_STEP = (os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC) if hasattr(os, "O_PATH") else 0

LED_AWAY = "the path leads elsewhere by now"


@contextmanager
def anchored(path: str, *, make: bool = False) -> Generator[str, None, None]:
    """A name by which the resolved path is reached, whatever its folders become meanwhile; OSError.

    With make, folders that are missing are made. A name from here stays as it is. Where the system
    has no such names (macOS), it is the path.
    """
    if path.startswith(_HELD):
        yield path
        return
    if not _STEP or not os.path.isdir(_HELD):
        if make:
            _make_folder(Path(path).parent)
        yield path
        return
    folder = _entered(os.path.dirname(path), make=make)
    try:
        yield f"{_HELD}{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def _entered(path: str, *, make: bool) -> int:
    """A descriptor of the folder, which is reached without following any link."""
    folder = os.open("/", _STEP)
    for name in filter(None, path.split("/")):
        try:
            below = _below(folder, name, make=make)
        finally:
            os.close(folder)
        folder = below
    return folder


def _below(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError as error:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, LED_AWAY) from error
        raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return _below(folder, name, make=False)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error


@contextmanager
def opened(
    path: str, flags: int = os.O_RDONLY
) -> Generator[tuple[int, os.stat_result], None, None]:
    """A descriptor of the regular file at a resolved path, and its status."""
    with anchored(path) as name:
        _demand_regular(os.lstat(name))
        descriptor = os.open(name, flags | _FLAGS)
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
